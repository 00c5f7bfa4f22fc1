/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Log lines: to the journal with fields when systemd started us (JOURNAL_STREAM), else to stderr.
 * Only daemon/, ctl/ and fleet/ log, from the main thread.
 */
#pragma once

#include <errno.h>
#include <syslog.h>

#include <stdbool.h>

#include "basic/macro.h"

/* Journal message ids, explained in the catalog */
#define MESSAGE_STARTED		    "5d1c6bd0b0f84f6c9a1dcb0a2c5f9e01"
#define MESSAGE_STOPPED		    "5d1c6bd0b0f84f6c9a1dcb0a2c5f9e02"
#define MESSAGE_SESSION_FAILED	    "5d1c6bd0b0f84f6c9a1dcb0a2c5f9e03"
#define MESSAGE_SESSION_STARTED	    "5d1c6bd0b0f84f6c9a1dcb0a2c5f9e04"
#define MESSAGE_EVENTS_LOST	    "5d1c6bd0b0f84f6c9a1dcb0a2c5f9e05"
#define MESSAGE_DISK_TROUBLE	    "5d1c6bd0b0f84f6c9a1dcb0a2c5f9e06"
#define MESSAGE_MEDDLING	    "5d1c6bd0b0f84f6c9a1dcb0a2c5f9e07"
#define MESSAGE_RECOVERED	    "5d1c6bd0b0f84f6c9a1dcb0a2c5f9e08"
#define MESSAGE_CONFIG		    "5d1c6bd0b0f84f6c9a1dcb0a2c5f9e09"
#define MESSAGE_SNAPSHOT	    "5d1c6bd0b0f84f6c9a1dcb0a2c5f9e0a"
#define MESSAGE_TRIGGER_UNAVAILABLE "5d1c6bd0b0f84f6c9a1dcb0a2c5f9e0b"
#define MESSAGE_FINDING		    "5d1c6bd0b0f84f6c9a1dcb0a2c5f9e0c"

/**
 * log_open() - decide where lines go and the least severe level shown
 * @level: LOG_ERR … LOG_DEBUG of syslog(3)
 */
void log_open(int level);
void log_set_level(int level);
int log_level(void);

/**
 * log_full() - one line
 * @session: name of the session it is about, or NULL
 * @message_id: one of the above, or NULL
 * @error: negative errno, 0 for none; "%m" in @format prints it
 * Return: @error.
 */
int log_full(int level, const char *session, const char *message_id, int error, const char *format,
	     ...) _printf_(5, 6);

/**
 * log_fields() - one line with further fields in the journal
 * @fields: "NAME=VALUE", NULL-terminated, LOG_FIELDS_MAX at most
 */
void log_fields(int level, const char *session, const char *message_id, char *const *fields,
		const char *format, ...) _printf_(5, 6);
#define LOG_FIELDS_MAX 8

#define log_debug(...)		  log_full(LOG_DEBUG, NULL, NULL, 0, __VA_ARGS__)
#define log_info(...)		  log_full(LOG_INFO, NULL, NULL, 0, __VA_ARGS__)
#define log_notice(...)		  log_full(LOG_NOTICE, NULL, NULL, 0, __VA_ARGS__)
#define log_warning(...)	  log_full(LOG_WARNING, NULL, NULL, 0, __VA_ARGS__)
#define log_error(...)		  log_full(LOG_ERR, NULL, NULL, 0, __VA_ARGS__)
#define log_warning_errno(e, ...) log_full(LOG_WARNING, NULL, NULL, (e), __VA_ARGS__)
#define log_error_errno(e, ...)	  log_full(LOG_ERR, NULL, NULL, (e), __VA_ARGS__)
