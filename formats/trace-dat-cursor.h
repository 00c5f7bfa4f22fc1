/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stepping through the frame of a trace.dat, for formats/trace-dat-read.c: numbers, words, strings
 * and sized texts, each checked against the end of the file, with a line that says what it ends
 * inside. Small reads go through a window, so that a frame costs few preads.
 *
 * The first error stays, with its story in why: from then on nothing is read, and all that is asked
 * for is 0 or NULL. Who asks looks at it before it believes what it got.
 */
#pragma once

#include "formats/trace-dat-read.h"

#define CURSOR_WINDOW	(64 * KIB)
#define CURSOR_NAME_MAX 4096U

struct cursor {
	struct trace_dat *dat; /* path, fd, file size, byte order */
	struct fault *why;     /* may be NULL */
	int error;	       /* negative errno; -ENOMEM comes without a story */
	uint64_t pos;
	uint64_t window_offset;
	size_t window_size;
	uint8_t *window; /* CURSOR_WINDOW bytes, the caller's */
};

/**
 * cursor_broken() - "PATH: offset 0x…: what", unless there is an error already
 * Return: the error.
 */
int cursor_broken(struct cursor *c, int error, uint64_t offset, const char *format, ...)
	_printf_(4, 5);

/**
 * cursor_cut() - the file ends inside @what: -ENODATA
 */
int cursor_cut(struct cursor *c, const char *what);

/**
 * cursor_left() - bytes between here and the end of the file
 */
uint64_t cursor_left(const struct cursor *c);

/**
 * cursor_get() - @size bytes, at most CURSOR_WINDOW; good until the next call
 */
const uint8_t *cursor_get(struct cursor *c, size_t size, const char *what);

/**
 * cursor_number() - 1, 2, 4 or 8 bytes in the file's byte order
 */
uint64_t cursor_number(struct cursor *c, size_t size, const char *what);

/**
 * cursor_count() - a u32: how many things follow that take up at least a byte each
 */
uint64_t cursor_count(struct cursor *c, uint64_t max, const char *what);

/**
 * cursor_extent() - a size of @size_size bytes, then that much text, which is skipped
 */
struct trace_dat_extent cursor_extent(struct cursor *c, size_t size_size, const char *what);

/**
 * cursor_word() - @word must be here, @size bytes with its NUL
 */
void cursor_word(struct cursor *c, const char *word, size_t size);

/**
 * cursor_string() - a NUL-terminated name shorter than CURSOR_NAME_MAX, malloc'ed
 */
char *cursor_string(struct cursor *c, const char *what);

/**
 * cursor_grow() - array_grow(), if there is no error yet
 * Return: there is room.
 */
bool cursor_grow(struct cursor *c, void *array_p, size_t n, size_t item);
