/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A fault is an error with its story: the negative errno that the code acts on, and one line for a
 * person that names the file and the reason. recorder/, writer/ and formats/ fill one in and return
 * the errno; daemon/ and ctl/ log the text once, at the place that decides. Plain value, any
 * thread.
 */
#pragma once

#include <stdint.h>

#include "basic/macro.h"

struct fault {
	int error;	 /* negative errno, 0: none */
	char text[1024]; /* one line, no newline at the end */
};

/**
 * fault_set() - record what went wrong
 * @fault: may be NULL (nobody asked)
 * @error: negative errno
 * Return: @error, so that callers can write `return fault_set(why, -EINVAL, "…")`.
 */
int fault_set(struct fault *fault, int error, const char *format, ...) _printf_(3, 4);

/**
 * fault_errno() - the same, with ": strerror(-error)" appended
 */
int fault_errno(struct fault *fault, int error, const char *format, ...) _printf_(3, 4);

/**
 * fault_at() - the same as fault_set(), of a place in a file: "PATH: offset 0x…: …"
 */
int fault_at(struct fault *fault, int error, const char *path, uint64_t offset, const char *format,
	     ...) _printf_(5, 6);
