/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kinds of flyrec's own section (formats/own-section.h) that are lines of text: columns separated
 * by tabs, none of which has control characters. Plain memory, any thread.
 */
#pragma once

#include <stddef.h>

#include "basic/macro.h"

/**
 * own_text_column() - a text as a column: escaped as in basic/escape.h, tabs become blanks
 * @text: @size bytes, of any kind
 * Return: malloc'ed, NULL without memory.
 */
char *own_text_column(const char *text, size_t size);

/**
 * own_text_take() - the next line, split
 * @bytes: @size of them, with a NUL byte behind; lines that were taken are changed
 * @at: where it begins, moved behind it
 * @columns: @n pointers into @bytes
 * Return: 1, 0 there are no more, or -EBADMSG: control characters, or another number of columns.
 */
int own_text_take(char *bytes, size_t size, size_t *at, char **columns, size_t n);
