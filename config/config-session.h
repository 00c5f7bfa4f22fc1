/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From the text of configuration files to the objects of config/config.h, without touching a disk.
 * Main thread.
 */
#pragma once

#include "config/config-keys.h"
#include "config/config.h"

/* Where a value stands */
struct config_line {
	char *file;
	unsigned line;
	const char *key;
	char *text;
};

/* Where complaints go, and how many there were */
struct config_reader {
	config_complain_t complain;
	void *userdata;
	config_check_probe_t on_probe; /* or NULL */
	struct config_line
		*probes; /* of the session that is being read, to be checked at its end */
	size_t n_probes;
	unsigned n_warnings;
	unsigned n_errors;
};

/**
 * config_complain() - pass one complaint on, counting it
 */
void config_complain(struct config_reader *reader, enum config_severity severity, const char *file,
		     unsigned line, const char *format, ...) _printf_(5, 6);

/**
 * config_reader_forget() - the lines of the session before
 */
void config_reader_forget(struct config_reader *reader);

/**
 * session_config_new() - a session as it is before its files are read
 * @defaults: [Storage] and [Snapshot] come from here; NULL: built-in defaults
 * Return: 0 or -ENOMEM.
 */
int session_config_new(const char *name, const struct session_config *defaults,
		       struct session_config **ret);

/**
 * session_config_read() - put the assignments of one file's text into @session
 * @defaults: as for session_config_new(); what an empty assignment goes back to
 * Return: 0, also when there were complaints, or -ENOMEM.
 */
int session_config_read(struct config_reader *reader, const char *file, const char *text,
			size_t size, const struct session_config *defaults,
			struct session_config *session);

/**
 * session_config_finish() - after the last file: the checks across keys, and the canonical texts
 * @file: for complaints about the session as a whole
 * Return: 0, also when there were complaints, or -ENOMEM.
 */
int session_config_finish(struct config_reader *reader, const char *file,
			  struct session_config *session);

/**
 * daemon_config_init() - built-in defaults of [Daemon], in a zeroed object
 * Return: 0 or -ENOMEM.
 */
int daemon_config_init(struct daemon_config *daemon);

/**
 * daemon_config_read() - put the assignments of one flyrecd.conf into @daemon and @defaults
 * @builtin: what an empty assignment goes back to, and a wrong one leaves: a session_config_new()
 * Return: 0, also when there were complaints, or -ENOMEM.
 */
int daemon_config_read(struct config_reader *reader, const char *file, const char *text,
		       size_t size, const struct session_config *builtin,
		       struct session_config *defaults, struct daemon_config *daemon);

/**
 * daemon_config_done() - free what [Daemon] holds, not the object
 */
void daemon_config_done(struct daemon_config *daemon);
