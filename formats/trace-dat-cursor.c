/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "basic/io.h"
#include "formats/trace-dat-cursor.h"

int cursor_broken(struct cursor *c, int error, uint64_t offset, const char *format, ...)
{
	char text[512];
	va_list ap;

	if (c->error)
		return c->error;
	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	c->error = error;
	return fault_set(c->why, error, "%s: offset %s: %s", c->dat->path,
			 trace_dat_at(c->dat, offset).text, text);
}

int cursor_cut(struct cursor *c, const char *what)
{
	return cursor_broken(c, -ENODATA, c->pos, "the file ends inside %s", what);
}

uint64_t cursor_left(const struct cursor *c)
{
	return c->dat->file_size - c->pos;
}

/* @size bytes, or fewer if those behind are damaged, which is of version 7 only */
static const uint8_t *cursor_peek_some(struct cursor *c, size_t size, const char *what, size_t *ret)
{
	int r;

	if (!c->error && cursor_left(c) < size)
		(void)cursor_cut(c, what);
	if (c->error)
		return NULL;
	if (c->pos < c->window_offset || c->pos + size > c->window_offset + c->window_size) {
		c->window_offset = c->pos;
		c->window_size = MIN(cursor_left(c), CURSOR_WINDOW);
		r = trace_dat_read_some(c->dat, c->window, c->window_size, c->pos, &c->window_size,
					c->why);
		if (r < 0) {
			c->window_size = 0;
			c->error = r == -ENODATA ? cursor_cut(c, what) : r;
			return NULL;
		}
	}
	*ret = MIN(size, c->window_offset + c->window_size - c->pos);
	return c->window + (c->pos - c->window_offset);
}

static void cursor_damaged(struct cursor *c, size_t n, const char *what)
{
	(void)cursor_broken(c, -EBADMSG, c->pos + n, "%s cannot be read", what);
}

static const uint8_t *cursor_peek(struct cursor *c, size_t size, const char *what)
{
	size_t n;
	const uint8_t *p = cursor_peek_some(c, size, what, &n);

	if (p && n < size)
		cursor_damaged(c, n, what);
	return c->error ? NULL : p;
}

const uint8_t *cursor_get(struct cursor *c, size_t size, const char *what)
{
	const uint8_t *p = cursor_peek(c, size, what);

	if (p)
		c->pos += size;
	return p;
}

uint64_t cursor_number(struct cursor *c, size_t size, const char *what)
{
	const uint8_t *p = cursor_get(c, size, what);

	if (!p)
		return 0;
	return size == 1   ? *p
	       : size == 2 ? trace_dat_u16(c->dat, p)
	       : size == 4 ? trace_dat_u32(c->dat, p)
			   : trace_dat_u64(c->dat, p);
}

uint64_t cursor_count(struct cursor *c, uint64_t max, const char *what)
{
	uint64_t at = c->pos, n = cursor_number(c, 4, what);

	if (n <= max && n <= cursor_left(c))
		return n;
	(void)cursor_broken(c, -EBADMSG, at, "%s is %" PRIu64 ", which cannot be", what, n);
	return 0;
}

struct trace_dat_extent cursor_extent(struct cursor *c, size_t size_size, const char *what)
{
	uint64_t at = c->pos, size = cursor_number(c, size_size, what);
	struct trace_dat_extent extent = {c->pos, size};

	if (size > cursor_left(c))
		(void)cursor_broken(c, -ENODATA, at,
				    "%s has %" PRIu64 " bytes, but only %" PRIu64
				    " follow in the file",
				    what, size, cursor_left(c));
	if (c->error)
		return (struct trace_dat_extent){};
	c->pos += size;
	return extent;
}

void cursor_word(struct cursor *c, const char *word, size_t size)
{
	uint64_t at = c->pos;
	const uint8_t *p = cursor_get(c, size, word);

	if (p && memcmp(p, word, size) != 0)
		(void)cursor_broken(c, -EBADMSG, at, "\"%s\" is expected here", word);
}

char *cursor_string(struct cursor *c, const char *what)
{
	size_t room = MIN(cursor_left(c), (uint64_t)CURSOR_NAME_MAX), n;
	size_t there = 0;
	const uint8_t *p = cursor_peek_some(c, room, what, &there);
	char *s;

	if (!p)
		return NULL;
	n = strnlen((const char *)p, there);
	if (n == there) {
		if (there < room)
			cursor_damaged(c, n, what);
		else if (room == cursor_left(c))
			(void)cursor_cut(c, what);
		else
			(void)cursor_broken(c, -EBADMSG, c->pos, "%s does not end", what);
		return NULL;
	}
	s = strndup((const char *)p, n);
	if (s)
		c->pos += n + 1;
	else
		c->error = -ENOMEM;
	return s;
}

bool cursor_grow(struct cursor *c, void *array_p, size_t n, size_t item)
{
	if (!c->error)
		c->error = array_grow(array_p, n, item);
	return !c->error;
}
