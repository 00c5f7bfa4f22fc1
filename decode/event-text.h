/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Single events of this machine in words, such as those that trigger snapshots: formats as tracefs
 * has them, no trace.dat. Owner: the caller; one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basic/fault.h"

struct event_text;

/**
 * event_text_new() - knows no event yet
 * @dir_fd: of the instance
 */
int event_text_new(int dir_fd, struct event_text **ret, struct fault *why);

/* NULL is fine */
void event_text_free(struct event_text *text);

/**
 * event_text_add() - read the format of an event
 * @ret_id: the type its data begins with
 * Return: 0, -ENOENT when the kernel lacks it, or negative errno with @why set.
 */
int event_text_add(struct event_text *text, const char *system, const char *name, uint32_t *ret_id,
		   struct fault *why);

/**
 * event_text_id() - the type of an event's data; UINT32_MAX: too short to have one
 */
uint32_t event_text_id(const void *data, size_t size);

/**
 * event_text_number() - a field of an event by its name
 * @data, @size: as below. Return: false: it has no such number.
 */
bool event_text_number(struct event_text *text, const void *data, size_t size, const char *name,
		       uint64_t *ret);

/**
 * event_text_string() - the same of an array of characters
 * @ret: of @ret_size bytes; NUL-terminated, "" if there is none
 */
void event_text_string(struct event_text *text, const void *data, size_t size, const char *name,
		       char *ret, size_t ret_size);

/**
 * event_text_describe() - which event, on which CPU, of which task: lines "KEY: VALUE"
 * @data, @size: of the event, from its type on; nothing beyond it is read
 * Return: malloc'ed, or NULL without memory.
 */
char *event_text_describe(struct event_text *text, unsigned cpu, const void *data, size_t size);
