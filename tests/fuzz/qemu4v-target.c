/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "basic/macro.h"
#include "convert/qemu4v/qemu4v-event.h"
#include "decode/text.h"
#include "tests/fuzz/qemu4v-target.h"

static void require(bool true_, const char *what)
{
	if (true_)
		return;
	(void)fprintf(stderr, "qemu4v-target: %s\n", what);
	abort();
}

/* malloc'ed to the byte, so that a byte too many is found */
static char *print(const struct qemu4v_record *r, size_t *ret_size)
{
	_cleanup_(text_done) struct text line = {};
	char *exact;

	qemu4v_print(r, &line);
	require(!line.no_memory, "no memory");
	exact = malloc(line.size + 1);
	require(exact, "no memory");
	if (line.size)
		memcpy(exact, line.bytes, line.size);
	exact[line.size] = '\0';
	*ret_size = line.size;
	return exact;
}

static bool same_text(const char *a, uint32_t a_size, const char *b, uint32_t b_size)
{
	return a_size == b_size && (a_size == 0 || memcmp(a, b, a_size) == 0);
}

static void require_same(const struct qemu4v_record *a, const struct qemu4v_record *b)
{
	require(a->kind == b->kind, "another kind");
	require(memcmp(&a->form, &b->form, sizeof(a->form)) == 0, "another form");
	require(a->time == b->time && a->id == b->id, "another time or id");
	require(a->addr == b->addr && a->phys == b->phys, "another address");
	require(a->data == b->data && a->data_hi == b->data_hi, "other data");
	require(a->bits == b->bits && a->size == b->size, "another size");
	require(a->secure == b->secure && a->taken == b->taken, "other flags of an instruction");
	require(a->write == b->write && a->aborted == b->aborted, "other flags of an access");
	require(memcmp(a->iset, b->iset, sizeof(a->iset)) == 0, "another instruction set");
	require(memcmp(a->mode, b->mode, sizeof(a->mode)) == 0, "another mode");
	require(memcmp(a->attrib, b->attrib, sizeof(a->attrib)) == 0, "another attribute");
	require(same_text(a->name, a->name_size, b->name, b->name_size), "another name");
	require(same_text(a->text, a->text_size, b->text, b->text_size), "another text");
}

/* Into an event and back. Return: the event, which @ret points into. */
static void *through_event(const struct qemu4v_record *r, struct qemu4v_record *ret)
{
	size_t size = qemu4v_event_size(r);
	uint64_t line = 0;
	void *event = malloc(size);

	require(event, "no memory");
	qemu4v_event_write(r, 7, 1, event);
	require(qemu4v_event_read(r->kind, r->cpu, event, size, ret, &line) == 0, "not read back");
	require(line == 7 && qemu4v_event_line(event, size) == 7, "another line");
	require_same(r, ret);
	return event;
}

static void one_line(const char *bytes, size_t size)
{
	_cleanup_free_ char *line = malloc(size ? size : 1), *printed = NULL, *again = NULL;
	_cleanup_free_ void *event = NULL;
	struct qemu4v_record r, back, second;
	const char *reason = NULL;
	size_t n, n_again;
	int error;

	require(line, "no memory");
	if (size)
		memcpy(line, bytes, size);
	error = qemu4v_parse(line, size, &r, &reason);
	require(error == 0 || (reason && r.kind == QEMU4V_TEXT), "malformed, but why?");
	if (qemu4v_event_size(&r) == 0)
		return;
	event = through_event(&r, &back);
	printed = print(&back, &n);
	if (r.kind == QEMU4V_TEXT) {
		require(n == size + 1 && (size == 0 || memcmp(printed, line, size) == 0),
			"a text has changed");
		return;
	}
	require(n > 0 && printed[n - 1] == '\n', "no newline");
	require(qemu4v_parse(printed, n - 1, &second, &reason) == 0, "what was printed is wrong");
	require(second.cpu == r.cpu, "another CPU");
	require_same(&r, &second);
	again = print(&second, &n_again);
	require(n == n_again && memcmp(printed, again, n) == 0, "printed in another way");
}

static void as_event(const uint8_t *data, size_t size)
{
	for (unsigned kind = 0; kind < _QEMU4V_KIND_MAX; kind++) {
		_cleanup_free_ char *printed = NULL;
		struct qemu4v_record r;
		uint64_t line;
		size_t n;

		(void)qemu4v_event_line(data, size);
		if (qemu4v_event_read(kind, 0, data, size, &r, &line) == 0)
			printed = print(&r, &n);
	}
}

void qemu4v_target(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data, *end = p + size;

	as_event(data, size);
	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((newline ? newline : end) - p);

		if (n <= QEMU4V_MAX_LINE)
			one_line(p, n);
		p += n + 1;
	}
}
