/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stepping through the frame of a trace.dat, for formats/trace-dat-read.c: numbers, words, strings
 * and sized texts, each checked against the end of the file, with a line that says what it ends
 * inside. Small reads go through a window, so that a frame costs few preads. All functions return 0
 * or a negative errno with the story in why, which may be NULL.
 */
#pragma once

#include "formats/trace-dat-read.h"

#define CURSOR_WINDOW	(64 * KIB)
#define CURSOR_NAME_MAX 4096U

struct cursor {
	struct trace_dat *dat; /* path, fd, file size, byte order */
	struct fault *why;
	uint64_t pos;
	uint64_t window_offset;
	size_t window_size;
	uint8_t *window; /* CURSOR_WINDOW bytes, the caller's */
};

/**
 * cursor_broken() - "PATH: offset 0x…: what"
 * Return: @error.
 */
int cursor_broken(struct cursor *c, int error, uint64_t offset, const char *format, ...)
	_printf_(4, 5);

/**
 * cursor_cut() - the file ends inside @what
 * Return: -ENODATA.
 */
int cursor_cut(struct cursor *c, const char *what);

/**
 * cursor_left() - bytes between here and the end of the file
 */
uint64_t cursor_left(const struct cursor *c);

/**
 * cursor_get() - @size bytes, at most CURSOR_WINDOW; @ret is good until the next call
 */
int cursor_get(struct cursor *c, size_t size, const char *what, const uint8_t **ret);

/**
 * cursor_number() - 1, 2, 4 or 8 bytes in the file's byte order
 */
int cursor_number(struct cursor *c, size_t size, const char *what, uint64_t *ret);

/**
 * cursor_count() - a u32: how many things follow that take up at least a byte each
 */
int cursor_count(struct cursor *c, uint64_t max, const char *what, uint64_t *ret);

/**
 * cursor_extent() - a size of @size_size bytes, then that much text, which is skipped
 */
int cursor_extent(struct cursor *c, size_t size_size, const char *what,
		  struct trace_dat_extent *ret);

/**
 * cursor_word() - @word must be here, @size bytes with its NUL
 */
int cursor_word(struct cursor *c, const char *word, size_t size);

/**
 * cursor_string() - a NUL-terminated name shorter than CURSOR_NAME_MAX
 * @ret: malloc'ed
 */
int cursor_string(struct cursor *c, const char *what, char **ret);

/**
 * cursor_grow() - room for one more in a growing array
 * @array_p: address of the pointer; room doubles when @n is a power of two
 * @n: items in it, each of @item bytes
 */
int cursor_grow(void *array_p, size_t n, size_t item);

/**
 * trace_dat_read_tables() - the last part of the frame: number of CPUs, options, CPU tables of all
 * buffers; c->pos at the number of CPUs. In formats/trace-dat-tables.c.
 */
int trace_dat_read_tables(struct cursor *c);
