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

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	return fault_set(c->why, error, "%s: offset 0x%" PRIx64 ": %s", c->dat->path, offset, text);
}

int cursor_cut(struct cursor *c, const char *what)
{
	return cursor_broken(c, -ENODATA, c->pos, "the file ends inside %s", what);
}

uint64_t cursor_left(const struct cursor *c)
{
	return c->dat->file_size - c->pos;
}

static int cursor_peek(struct cursor *c, size_t size, const char *what, const uint8_t **ret)
{
	int r;

	if (cursor_left(c) < size)
		return cursor_cut(c, what);
	if (c->pos < c->window_offset || c->pos + size > c->window_offset + c->window_size) {
		c->window_offset = c->pos;
		c->window_size = MIN(cursor_left(c), CURSOR_WINDOW);
		r = io_pread_all(c->dat->fd, c->window, c->window_size, c->pos);
		if (r < 0) {
			c->window_size = 0;
			if (r == -ENODATA)
				return cursor_cut(c, what);
			return fault_errno(c->why, r, "%s: offset 0x%" PRIx64 ": cannot read",
					   c->dat->path, c->pos);
		}
	}
	*ret = c->window + (c->pos - c->window_offset);
	return 0;
}

int cursor_get(struct cursor *c, size_t size, const char *what, const uint8_t **ret)
{
	int r = cursor_peek(c, size, what, ret);

	if (r >= 0)
		c->pos += size;
	return r;
}

int cursor_number(struct cursor *c, size_t size, const char *what, uint64_t *ret)
{
	const uint8_t *p;
	int r;

	r = cursor_get(c, size, what, &p);
	if (r < 0)
		return r;
	*ret = size == 1   ? *p
	       : size == 2 ? trace_dat_u16(c->dat, p)
	       : size == 4 ? trace_dat_u32(c->dat, p)
			   : trace_dat_u64(c->dat, p);
	return 0;
}

int cursor_count(struct cursor *c, uint64_t max, const char *what, uint64_t *ret)
{
	uint64_t at = c->pos, n;
	int r;

	r = cursor_number(c, 4, what, &n);
	if (r < 0)
		return r;
	if (n > max || n > cursor_left(c))
		return cursor_broken(c, -EBADMSG, at, "%s is %" PRIu64 ", which cannot be", what,
				     n);
	*ret = n;
	return 0;
}

int cursor_extent(struct cursor *c, size_t size_size, const char *what,
		  struct trace_dat_extent *ret)
{
	uint64_t at = c->pos, size;
	int r;

	r = cursor_number(c, size_size, what, &size);
	if (r < 0)
		return r;
	if (size > cursor_left(c))
		return cursor_broken(c, -ENODATA, at,
				     "%s has %" PRIu64 " bytes, but only %" PRIu64
				     " follow in the file",
				     what, size, cursor_left(c));
	*ret = (struct trace_dat_extent){c->pos, size};
	c->pos += size;
	return 0;
}

int cursor_word(struct cursor *c, const char *word, size_t size)
{
	uint64_t at = c->pos;
	const uint8_t *p;
	int r;

	r = cursor_get(c, size, word, &p);
	if (r < 0)
		return r;
	if (memcmp(p, word, size) != 0)
		return cursor_broken(c, -EBADMSG, at, "\"%s\" is expected here", word);
	return 0;
}

int cursor_string(struct cursor *c, const char *what, char **ret)
{
	size_t room = MIN(cursor_left(c), (uint64_t)CURSOR_NAME_MAX), n;
	const uint8_t *p;
	char *s;
	int r;

	r = cursor_peek(c, room, what, &p);
	if (r < 0)
		return r;
	n = strnlen((const char *)p, room);
	if (n == room)
		return room == cursor_left(c)
			       ? cursor_cut(c, what)
			       : cursor_broken(c, -EBADMSG, c->pos, "%s does not end", what);
	s = strndup((const char *)p, n);
	if (!s)
		return -ENOMEM;
	c->pos += n + 1;
	*ret = s;
	return 0;
}

int cursor_grow(void *array_p, size_t n, size_t item)
{
	void **array = array_p, *p;

	if (n & (n - 1))
		return 0;
	p = reallocarray(*array, MAX(2 * n, (size_t)1), item);
	if (!p)
		return -ENOMEM;
	*array = p;
	return 0;
}
