/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Texts that others made - names of tasks and files, strings in events - on a terminal: control
 * characters become \n, \t, \x1b and the like, so that none moves the cursor or forges a line.
 * UTF-8 stays as it is, but for the control characters U+0080 to U+009F and bytes that are no
 * UTF-8.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "basic/macro.h"

#define ESCAPE_ROOM 4U /* bytes at most for each byte */

/**
 * utf8_length() - bytes of the character at @text, of @size > 0 bytes; 0: that is no UTF-8 (RFC
 * 3629)
 */
size_t utf8_length(const char *text, size_t size);

/**
 * escape_plain() - how many bytes at the beginning can be shown as they are; a tab can
 * @lines: so can a newline
 */
size_t escape_plain(const char *text, size_t size, bool lines);

/**
 * escape_bytes() - escape all that cannot be shown as it is
 * @to: room for ESCAPE_ROOM * @size
 * Return: bytes in @to.
 */
size_t escape_bytes(char *to, const char *text, size_t size, bool lines);

/**
 * escape_text() - the same for a string
 * Return: malloc'ed, NULL without memory.
 */
char *escape_text(const char *text, bool lines);

/**
 * escape_replace() - put the escaped text, a single line, in its place
 * @text: malloc'ed, or NULL, which stays
 * Return: 0 or -ENOMEM; then nothing is changed.
 */
int escape_replace(char **text);
