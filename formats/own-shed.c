/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/parse.h"
#include "formats/own-shed.h"

void own_sheds_done(struct own_sheds *sheds)
{
	for (size_t i = 0; i < sheds->n; i++)
		free(sheds->list[i].event);
	free(sheds->list);
	*sheds = (struct own_sheds){};
}

int own_sheds_add(struct own_sheds *sheds, const char *event, uint64_t from, uint64_t to)
{
	struct own_shed *shed;

	for (size_t i = 0; i < sheds->n; i++) {
		shed = &sheds->list[i];
		if (shed->from == from && strcmp(shed->event, event) == 0) {
			shed->to = to;
			return 0;
		}
	}
	if (array_grow(&sheds->list, sheds->n, sizeof(*sheds->list)) < 0)
		return -ENOMEM;
	shed = &sheds->list[sheds->n];
	*shed = (struct own_shed){strdup(event), from, to};
	if (!shed->event)
		return -ENOMEM;
	sheds->n++;
	return 0;
}

int own_sheds_add_all(struct own_sheds *sheds, const struct own_sheds *others)
{
	int r = 0;

	for (size_t i = 0; i < others->n && r >= 0; i++) {
		const struct own_shed *shed = &others->list[i];

		r = own_sheds_add(sheds, shed->event, shed->from, shed->to);
	}
	return r;
}

void own_sheds_trim(struct own_sheds *sheds, size_t n)
{
	const size_t gone = sheds->n - MIN(sheds->n, n);

	for (size_t i = 0; i < gone; i++)
		free(sheds->list[i].event);
	if (gone > 0)
		memmove(sheds->list, sheds->list + gone, n * sizeof(*sheds->list));
	sheds->n -= gone;
}

void own_sheds_end(struct own_sheds *sheds, uint64_t to)
{
	for (size_t i = 0; i < sheds->n; i++)
		if (sheds->list[i].to == UINT64_MAX)
			sheds->list[i].to = MAX(to, sheds->list[i].from);
}

static int put_lines(const struct own_sheds *sheds, char **ret, size_t *ret_size)
{
	_cleanup_fclose_ FILE *out = open_memstream(ret, ret_size);

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < sheds->n; i++) {
		const struct own_shed *shed = &sheds->list[i];

		(void)fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%s\n", shed->from, shed->to,
			      shed->event);
	}
	return fflush(out) == 0 ? 0 : -ENOMEM;
}

/* Of each event one, from its first time to its last */
static int join(const struct own_sheds *sheds, struct own_sheds *ret)
{
	for (size_t i = 0; i < sheds->n; i++) {
		const struct own_shed *shed = &sheds->list[i];
		uint64_t from = shed->from, to = shed->to;

		for (size_t j = 0; j < sheds->n; j++) {
			if (strcmp(sheds->list[j].event, shed->event) != 0)
				continue;
			from = MIN(from, sheds->list[j].from);
			to = MAX(to, sheds->list[j].to);
		}
		if (own_sheds_add(ret, shed->event, from, to) < 0)
			return -ENOMEM;
	}
	return 0;
}

int own_sheds_put(const struct own_sheds *sheds, size_t room, char **ret, size_t *ret_size)
{
	_cleanup_own_sheds_ struct own_sheds joined = {};
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r = put_lines(sheds, &text, &size);

	if (r >= 0 && size > room) {
		free(TAKE_PTR(text));
		r = join(sheds, &joined);
		if (r >= 0)
			r = put_lines(&joined, &text, &size);
	}
	if (r < 0)
		return r;
	while (size > room || (size > 0 && text[size - 1] != '\n'))
		size = MIN(size - 1, room);
	*ret = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}

/* @line: will be changed */
static int take_line(struct own_sheds *sheds, char *line)
{
	const char *from_text = strsep(&line, "\t"), *to_text = strsep(&line, "\t");
	uint64_t from, to;

	if (!to_text || !line || !*line || strchr(line, '\t') ||
	    escape_plain(line, strlen(line), false) != strlen(line) ||
	    parse_u64(from_text, &from) < 0 || parse_u64(to_text, &to) < 0 || to < from)
		return -EBADMSG;
	return own_sheds_add(sheds, line, from, to);
}

int own_sheds_take(struct own_sheds *sheds, const uint8_t *bytes, size_t size,
		   void (*on_bad)(void *userdata, size_t at), void *userdata)
{
	for (size_t at = 0; at < size;) {
		const uint8_t *end = memchr(bytes + at, '\n', size - at);
		size_t n = (end ? (size_t)(end - bytes) : size) - at;
		_cleanup_free_ char *line = strndup((const char *)bytes + at, n);
		int r = line ? take_line(sheds, line) : -ENOMEM;

		if (r == -ENOMEM)
			return r;
		if (on_bad && (r < 0 || !end))
			on_bad(userdata, at);
		at += n + 1;
	}
	return 0;
}
