/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/escape.h"
#include "formats/own-text.h"

char *own_text_column(const char *text, size_t size)
{
	char *column = malloc(ESCAPE_ROOM * size + 1);
	size_t n;

	if (!column)
		return NULL;
	n = escape_bytes(column, text, size, false);
	column[n] = '\0';
	/* Names of tasks may have tabs, which are no control characters there */
	for (char *c = column; *c; c++)
		if (*c == '\t')
			*c = ' ';
	return column;
}

int own_text_take(char *bytes, size_t size, size_t *at, char **columns, size_t n)
{
	char *line = bytes + *at, *end;

	if (*at >= size)
		return 0;
	end = memchr(line, '\n', size - *at);
	if (!end) {
		*at = size;
		return -EBADMSG;
	}
	*at = (size_t)(end - bytes) + 1;
	*end = '\0';
	if (escape_plain(line, (size_t)(end - line), false) != (size_t)(end - line))
		return -EBADMSG;
	for (size_t i = 0; i < n; i++) {
		columns[i] = strsep(&line, "\t");
		if (!columns[i])
			return -EBADMSG;
	}
	return line ? -EBADMSG : 1;
}
