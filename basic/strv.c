/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "basic/strv.h"

void strv_free(char **list)
{
	STRV_FOREACH (s, list)
		free(*s);
	free(list);
}

size_t strv_length(char *const *list)
{
	size_t n = 0;

	STRV_FOREACH (s, list)
		n++;
	return n;
}

bool strv_contains(char *const *list, const char *text)
{
	STRV_FOREACH (s, list)
		if (strcmp(*s, text) == 0)
			return true;
	return false;
}

bool strv_equal(char *const *a, char *const *b)
{
	size_t n = strv_length(a);

	if (n != strv_length(b))
		return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(a[i], b[i]) != 0)
			return false;
	return true;
}

int strv_append(char ***list, const char *text)
{
	size_t n = strv_length(*list);
	char **more, *copy;

	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	more = reallocarray(*list, n + 2, sizeof(*more));
	if (!more) {
		free(copy);
		return -ENOMEM;
	}
	more[n] = copy;
	more[n + 1] = NULL;
	*list = more;
	return 0;
}

void strv_remove(char **list, const char *text)
{
	char **to = list;

	if (!list)
		return;
	for (char **from = list; *from; from++)
		if (strcmp(*from, text) == 0)
			free(*from);
		else
			*to++ = *from;
	*to = NULL;
}

int strv_copy(char *const *list, char ***ret)
{
	_cleanup_(strv_freep) char **copy = NULL;
	int r;

	STRV_FOREACH (s, list) {
		r = strv_append(&copy, *s);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(copy);
	return 0;
}

int strv_set(char **field, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

int strv_appendf(char ***list, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, format);
	text = vstrf(format, ap);
	va_end(ap);
	return text ? strv_append(list, text) : -ENOMEM;
}

char *strf(const char *format, ...)
{
	char *text;
	va_list ap;

	va_start(ap, format);
	text = vstrf(format, ap);
	va_end(ap);
	return text;
}

char *vstrf(const char *format, va_list ap)
{
	char *text;

	return vasprintf(&text, format, ap) < 0 ? NULL : text;
}

bool text_equal(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool ends_with(const char *text, const char *suffix)
{
	size_t n = strlen(text), k = strlen(suffix);

	return n >= k && strcmp(text + n - k, suffix) == 0;
}
