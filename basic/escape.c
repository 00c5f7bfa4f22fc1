/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "basic/escape.h"

size_t utf8_length(const char *text, size_t size)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4 || n > size)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* overlong ones, surrogates, beyond U+10FFFF */
	return (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
			       (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)
		       ? 0
		       : n;
}

size_t escape_plain(const char *text, size_t size, bool lines)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t i = 0;

	while (i < size) {
		size_t n = 1;

		if (s[i] >= 0x80)
			n = utf8_length(text + i, size - i);
		/* U+0080 to U+009F are control characters, too */
		if ((n == 2 && s[i] == 0xc2 && s[i + 1] < 0xa0) || s[i] == 0x7f ||
		    (s[i] < ' ' && s[i] != '\t' && !(lines && s[i] == '\n')))
			n = 0;
		if (n == 0)
			break;
		i += n;
	}
	return i;
}

static char *put_escape(char *to, uint8_t c)
{
	static const char digits[] = "0123456789abcdef";

	*to++ = '\\';
	if (c == '\n' || c == '\r') {
		*to++ = c == '\n' ? 'n' : 'r';
		return to;
	}
	*to++ = 'x';
	*to++ = digits[c >> 4];
	*to++ = digits[c & 15];
	return to;
}

size_t escape_bytes(char *to, const char *text, size_t size, bool lines)
{
	const char *begin = to;

	while (size > 0) {
		size_t n = escape_plain(text, size, lines);

		memcpy(to, text, n);
		to += n;
		text += n;
		size -= n;
		if (size > 0) {
			to = put_escape(to, (uint8_t)*text++);
			size--;
		}
	}
	return (size_t)(to - begin);
}

char *escape_text(const char *text, bool lines)
{
	size_t size = strlen(text);
	char *to = malloc(ESCAPE_ROOM * size + 1);

	if (to)
		to[escape_bytes(to, text, size, lines)] = '\0';
	return to;
}

int escape_replace(char **text)
{
	char *escaped;

	if (!*text || !(*text)[escape_plain(*text, strlen(*text), false)])
		return 0;
	escaped = escape_text(*text, false);
	if (!escaped)
		return -ENOMEM;
	free(*text);
	*text = escaped;
	return 0;
}
