/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An open tracefs directory - the top or an instance - and its files. Everything goes through the
 * directory's fd: if somebody removes an instance and makes one of the same name, writes meant for
 * the old one fail instead of reaching the new one. A refusal becomes a fault that names the file
 * and quotes what the kernel wrote to the directory's error_log meanwhile.
 * Owner: whoever opened it. Main thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

struct tracedir {
	int fd; /* -EBADF: not open */
	char *path;
};

/* What a check found changed by somebody else, for one line */
struct changes {
	unsigned n;
	bool emptied; /* one of them, or its repair, emptied the ring buffer */
	char text[512];
};

/**
 * tracedir_open() - open @path, a directory
 */
int tracedir_open(struct tracedir *ret, const char *path);
void tracedir_done(struct tracedir *dir);

/**
 * tracedir_fault() - fill in @why: "WHAT: DIR/FILE: strerror(-error)"
 * Return: @error.
 */
int tracedir_fault(const struct tracedir *dir, const char *file, int error, struct fault *why,
		   const char *what, ...) _printf_(5, 6);

/**
 * tracedir_read() - a whole file, NUL-terminated
 * Return: 0 or negative errno with @why set.
 */
int tracedir_read(const struct tracedir *dir, const char *file, char **ret, struct fault *why);

/**
 * tracedir_read_line() - the same without the newline at the end
 */
int tracedir_read_line(const struct tracedir *dir, const char *file, char **ret, struct fault *why);

/**
 * tracedir_write() - one write(2)
 * @flags: O_TRUNC empties set_event_pid, set_ftrace_filter, trigger and dynamic_events first
 * @what: what was tried, "cannot set filter of sched:sched_switch"
 * Return: 0 or negative errno with @why set, error_log quoted.
 */
int tracedir_write(const struct tracedir *dir, const char *file, const char *text, int flags,
		   struct fault *why, const char *what, ...) _printf_(6, 7);

/**
 * tracedir_exists() - is there such a file or directory?
 */
bool tracedir_exists(const struct tracedir *dir, const char *file);

/**
 * tracedir_event_path() - "events/SYSTEM/NAME/FILE", or "events/SYSTEM/FILE" if @name is NULL
 * Return: 0 or -ENOMEM.
 */
int tracedir_event_path(const char *system, const char *name, const char *file, char **ret);

/**
 * first_fault() - for work that goes on after an error: keep the first
 * @first: 0, or the first error so far
 * @r: what the step returned, with @step filled in if negative; -ENOENT, gone already, is none
 * @why: gets @step's text when @r is the first error
 * Return: the first error so far.
 */
int first_fault(int first, int r, const struct fault *step, struct fault *why);

/**
 * changes_add() - append to the list, "; " between; what does not fit is cut
 */
void changes_add(struct changes *changes, const char *format, ...) _printf_(2, 3);
