/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NULL-terminated arrays of malloc'ed strings; NULL is the empty one. And strings. Any thread.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

#include "basic/macro.h"

#define STRV_FOREACH(s, list) for (char *const *s = (list); s && *s; s++)

/* NULL is fine */
void strv_free(char **list);

size_t strv_length(char *const *list);

bool strv_contains(char *const *list, const char *text);

/* The same strings in the same order? */
bool strv_equal(char *const *a, char *const *b);

/**
 * strv_append() - add a copy of @text at the end of *@list
 * Return: 0 or -ENOMEM, with *@list as it was.
 */
int strv_append(char ***list, const char *text);

/**
 * strv_appendf() - the same with a text to be composed
 */
int strv_appendf(char ***list, const char *format, ...) _printf_(2, 3);

/**
 * strv_remove() - take every string equal to @text out
 */
void strv_remove(char **list, const char *text);

/**
 * strv_copy() - a deep copy; *@ret is NULL for an empty list
 * Return: 0 or -ENOMEM.
 */
int strv_copy(char *const *list, char ***ret);

/**
 * strv_set() - one string: *@field becomes a copy of @text, which may be NULL
 * Return: 0 or -ENOMEM, with *@field as it was.
 */
int strv_set(char **field, const char *text);

/* malloc'ed text; NULL: no memory */
char *strf(const char *format, ...) _printf_(1, 2);
char *vstrf(const char *format, va_list ap) _printf_(1, 0);

/* Either may be NULL */
bool text_equal(const char *a, const char *b);

bool ends_with(const char *text, const char *suffix);

DEFINE_CLEANUP(char **, strv_free)
