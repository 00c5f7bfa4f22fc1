/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <search.h>
#include <string.h>

#include "basic/crc32.h"
#include "basic/macro.h"
#include "formats/own-section.h"
#include "formats/own-tasks.h"

#define UNCHECKED 8 /* of the head: size and checksum */
#define ALIGN	  16
#define AT_BOOT	  8
#define AT_FIRST  16

#define VARINT_MAX 10 /* bytes of a number of 64 bits */

/* Small differences of either sign become small numbers */
static uint64_t fold(int64_t value)
{
	return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static int64_t unfold(uint64_t value)
{
	return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

/* --- reading */

struct part {
	const uint8_t *at, *end;
	bool bad;
};

/* Of all parts so far */
struct strings {
	char **list;
	size_t n;
};

static uint64_t take(struct part *p)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 7 * VARINT_MAX && p->at < p->end; shift += 7) {
		uint8_t byte = *p->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	p->bad = true;
	return 0;
}

static void drop_strings(struct strings *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->list[i]);
	free(s->list);
	*s = (struct strings){};
}

static int take_strings(struct part *p, uint32_t n, struct strings *s)
{
	for (; n > 0 && !p->bad; n--) {
		uint64_t size = take(p);

		if (p->bad || size > (uint64_t)(p->end - p->at)) {
			p->bad = true;
			break;
		}
		if (array_grow(&s->list, s->n, sizeof(char *)) < 0)
			return -ENOMEM;
		s->list[s->n] = strndup((const char *)p->at, size);
		if (!s->list[s->n])
			return -ENOMEM;
		s->n++;
		p->at += size;
	}
	return 0;
}

static int take_tasks(struct part *p, uint32_t n, const struct own_look *look,
		      const struct strings *s, const struct own_tasks_reader *reader)
{
	int64_t pid = 0, start = 0;
	int r = 0;

	for (; n > 0 && r >= 0; n--) {
		int64_t tgid;
		uint64_t name, cgroup;
		struct own_task task;

		/* As unsigned: in a hostile file they may overflow */
		pid = (int64_t)((uint64_t)pid + (uint64_t)unfold(take(p)));
		tgid = (int64_t)((uint64_t)pid + (uint64_t)unfold(take(p)));
		start = (int64_t)((uint64_t)start + (uint64_t)unfold(take(p)));
		name = take(p);
		cgroup = take(p);
		p->bad |= pid < 0 || pid > INT32_MAX || tgid < 0 || tgid > INT32_MAX || start < 0 ||
			  name >= s->n || cgroup > s->n;
		if (p->bad)
			return 0;
		task = (struct own_task){
			.pid = (int32_t)pid,
			.tgid = (int32_t)tgid,
			.start = (uint64_t)start,
			.name = s->list[name],
			.cgroup = cgroup > 0 ? s->list[cgroup - 1] : NULL,
		};
		r = reader->on_task(reader->userdata, look, &task);
	}
	return r;
}

/* Strings of a part that is missing are missing to this one, too */
static int take_part(const uint8_t *head, uint32_t size, bool big_endian, struct strings *s,
		     const struct own_tasks_reader *reader, bool *ret_bad)
{
	const struct own_look look = {
		.boot = own_u64(big_endian, head + AT_BOOT),
		.hierarchy = own_u32(big_endian, head + AT_FIRST + 12),
	};
	uint32_t first = own_u32(big_endian, head + AT_FIRST);
	struct part p = {.at = head + OWN_TASKS_HEAD, .end = head + size};
	int r;

	if (first == 0)
		drop_strings(s);
	p.bad = first != s->n;
	r = p.bad ? 0 : take_strings(&p, own_u32(big_endian, head + AT_FIRST + 4), s);
	if (r >= 0 && !p.bad)
		r = take_tasks(&p, own_u32(big_endian, head + AT_FIRST + 8), &look, s, reader);
	*ret_bad = p.bad;
	return r;
}

int own_tasks_read(const uint8_t *bytes, size_t size, bool big_endian,
		   const struct own_tasks_reader *reader)
{
	struct strings strings = {};
	size_t at = 0;
	int r = 0;

	while (at < size && r >= 0) {
		const uint8_t *head = bytes + at;
		const size_t left = size - at;
		uint32_t own = left < OWN_TASKS_HEAD ? 0 : own_u32(big_endian, head);
		bool bad = true;

		if (own < OWN_TASKS_HEAD || own > left || own % ALIGN != 0)
			own = 0;
		else if (crc32_add(0, head + UNCHECKED, own - UNCHECKED) ==
			 own_u32(big_endian, head + 4))
			r = take_part(head, own, big_endian, &strings, reader, &bad);
		if (bad && reader->on_damage)
			reader->on_damage(reader->userdata, at);
		if (own == 0)
			break; /* where the next one begins is not known */
		at += own;
	}
	drop_strings(&strings);
	return r;
}

/* --- writing */

struct bytes {
	uint8_t *bytes;
	size_t size, room;
};

struct string {
	uint32_t number;
	char text[];
};

struct own_tasks_writer {
	void *strings; /* tree of struct string, by text */
	uint32_t n_strings;

	/* the part in the making */
	struct own_look look;
	size_t left;	/* bytes that it may still have */
	uint32_t first; /* n_strings when it was begun */
	uint32_t n;
	int64_t pid, start; /* of the task before */
	struct bytes texts, tasks;
};

static int by_text(const void *a, const void *b)
{
	const struct string *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static uint8_t *make_room(struct bytes *b, size_t more)
{
	if (b->room - b->size < more) {
		size_t room = MAX(2 * b->room, b->size + more + 256);
		uint8_t *p = realloc(b->bytes, room);

		if (!p)
			return NULL;
		b->bytes = p;
		b->room = room;
	}
	return b->bytes + b->size;
}

static size_t put_number(uint8_t *to, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		to[n++] = (uint8_t)(value | 0x80);
	to[n++] = (uint8_t)value;
	return n;
}

static int add_string(struct own_tasks_writer *w, const char *text, uint32_t *ret)
{
	size_t size = strlen(text);
	struct string *string = malloc(sizeof(*string) + size + 1), **found;
	uint8_t *to;

	if (!string)
		return -ENOMEM;
	memcpy(string->text, text, size + 1);
	string->number = w->n_strings;
	found = tsearch(string, &w->strings, by_text);
	if (!found || *found != string)
		free(string);
	if (!found)
		return -ENOMEM;
	*ret = (*found)->number;
	if (*found != string)
		return 0;
	w->n_strings++;
	to = make_room(&w->texts, VARINT_MAX + size);
	if (!to)
		return -ENOMEM;
	w->texts.size += put_number(to, size);
	memcpy(w->texts.bytes + w->texts.size, text, size);
	w->texts.size += size;
	return 0;
}

struct own_tasks_writer *own_tasks_writer_new(void)
{
	return calloc(1, sizeof(struct own_tasks_writer));
}

void own_tasks_forget(struct own_tasks_writer *w)
{
	tdestroy(w->strings, free);
	w->strings = NULL;
	w->n_strings = 0;
}

struct own_tasks_writer *own_tasks_writer_free(struct own_tasks_writer *w)
{
	if (!w)
		return NULL;
	own_tasks_forget(w);
	free(w->texts.bytes);
	free(w->tasks.bytes);
	free(w);
	return NULL;
}

void own_tasks_begin(struct own_tasks_writer *w, const struct own_look *look, size_t room)
{
	w->look = *look;
	w->left = round_down(room, ALIGN) - MIN(round_down(room, ALIGN), (uint64_t)OWN_TASKS_HEAD);
	w->first = w->n_strings;
	w->n = 0;
	w->pid = w->start = 0;
	w->texts.size = w->tasks.size = 0;
}

int own_tasks_add(struct own_tasks_writer *w, const struct own_task *task)
{
	size_t most = strlen(task->name) + (task->cgroup ? strlen(task->cgroup) : 0) +
		      (5 + 2) * VARINT_MAX;
	uint32_t name, cgroup = 0;
	uint8_t *to, *p;

	if (w->texts.size + w->tasks.size + most > w->left)
		return OWN_TASKS_E_FULL;
	p = to = make_room(&w->tasks, 5 * VARINT_MAX);
	if (!to || add_string(w, task->name, &name) < 0 ||
	    (task->cgroup && add_string(w, task->cgroup, &cgroup) < 0))
		return -ENOMEM;
	p += put_number(p, fold(task->pid - w->pid));
	p += put_number(p, fold((int64_t)task->tgid - task->pid));
	p += put_number(p, fold((int64_t)(task->start - (uint64_t)w->start)));
	p += put_number(p, name);
	p += put_number(p, task->cgroup ? (uint64_t)cgroup + 1 : 0);
	w->tasks.size += (size_t)(p - to);
	w->pid = task->pid;
	w->start = (int64_t)task->start;
	w->n++;
	return 0;
}

int own_tasks_end(struct own_tasks_writer *w, bool big_endian, uint8_t **ret, size_t *ret_size)
{
	size_t texts = OWN_TASKS_HEAD + w->texts.size;
	size_t size = round_up(texts + w->tasks.size, ALIGN);
	uint8_t *bytes;

	*ret = NULL;
	*ret_size = 0;
	if (w->n == 0)
		return 0;
	bytes = calloc(1, size);
	if (!bytes)
		return -ENOMEM;
	own_put_u32(big_endian, bytes, (uint32_t)size);
	own_put_u64(big_endian, bytes + AT_BOOT, w->look.boot);
	own_put_u32(big_endian, bytes + AT_FIRST, w->first);
	own_put_u32(big_endian, bytes + AT_FIRST + 4, w->n_strings - w->first);
	own_put_u32(big_endian, bytes + AT_FIRST + 8, w->n);
	own_put_u32(big_endian, bytes + AT_FIRST + 12, w->look.hierarchy);
	if (w->texts.size > 0)
		memcpy(bytes + OWN_TASKS_HEAD, w->texts.bytes, w->texts.size);
	memcpy(bytes + texts, w->tasks.bytes, w->tasks.size);
	own_put_u32(big_endian, bytes + 4, crc32_add(0, bytes + UNCHECKED, size - UNCHECKED));
	*ret = bytes;
	*ret_size = size;
	return 0;
}
