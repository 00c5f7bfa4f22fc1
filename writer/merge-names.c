/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/strv.h"
#include "formats/subbuf.h"
#include "writer/merge-names.h"

#define NAMELESS   "<...>"
#define NAME_MAX_N 48 /* bytes of a name that is put together */

struct name {
	uint32_t pid;
	unsigned host;
	uint32_t order; /* the last one of a host counts */
	bool events;
	char *text;
};

struct merge_names {
	struct name *list;
	size_t n;
};

struct merge_names *merge_names_new(void)
{
	return calloc(1, sizeof(struct merge_names));
}

struct merge_names *merge_names_free(struct merge_names *names)
{
	if (!names)
		return NULL;
	for (size_t i = 0; i < names->n; i++)
		free(names->list[i].text);
	free(names->list);
	free(names);
	return NULL;
}

/* @text: taken over; NULL: -ENOMEM */
static int add(struct merge_names *names, unsigned host, uint32_t pid, bool events, char *text)
{
	int r = text ? array_grow(&names->list, names->n, sizeof(*names->list)) : -ENOMEM;

	if (r < 0) {
		free(text);
		return r;
	}
	names->list[names->n] = (struct name){pid, host, (uint32_t)names->n, events, text};
	names->n++;
	return 0;
}

/* Those that have a name are taken out of @pids */
static int add_lines(struct merge_names *names, unsigned host, const char *text,
		     const uint8_t *events, uint8_t *left)
{
	int r = 0;

	for (const char *line = text, *end; *line && r >= 0; line = *end ? end + 1 : end) {
		unsigned long pid;
		char *name;

		end = line + strcspn(line, "\n");
		/* newlines fill up, and would be skipped as blanks are */
		if (*line < '0' || *line > '9')
			continue;
		pid = strtoul(line, &name, 10);
		if (name == line || *name != ' ' || name >= end || pid >= SUBBUF_MOVE_PIDS)
			continue;
		left[pid / 8] &= (uint8_t) ~(1U << pid % 8);
		r = add(names, host, (uint32_t)pid, events[pid / 8] & 1U << pid % 8,
			strndup(name + 1, (size_t)(end - name - 1)));
	}
	return r;
}

int merge_names_add(struct merge_names *names, unsigned host, const char *text, const uint8_t *pids)
{
	_cleanup_free_ uint8_t *left = malloc(SUBBUF_MOVE_PIDS / 8);
	int r;

	if (!left)
		return -ENOMEM;
	memcpy(left, pids, SUBBUF_MOVE_PIDS / 8);
	r = add_lines(names, host, text, pids, left);
	/* pid 0 is the idle task everywhere */
	for (uint32_t pid = 1; pid < SUBBUF_MOVE_PIDS && r >= 0; pid++)
		if (left[pid / 8] == 0)
			pid |= 7;
		else if (left[pid / 8] & 1U << pid % 8)
			r = add(names, host, pid, true, strdup(NAMELESS));
	return r;
}

static int by_pid(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/* Two files of a host may know a name, or not: the last one that does */
static bool is_better(const struct name *old, const struct name *name)
{
	return strcmp(name->text, NAMELESS) != 0 || strcmp(old->text, NAMELESS) == 0;
}

/* Names of one pid, a host's last one each, to the front. Return: how many. */
static size_t choose(struct name **of, struct name *list, size_t n)
{
	bool events = false;
	size_t chosen = 0, kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct name *last = chosen > 0 ? of[chosen - 1] : NULL;

		events |= list[i].events;
		if (!last || last->host != list[i].host) {
			of[chosen++] = &list[i];
			continue;
		}
		list[i].events |= last->events;
		if (is_better(last, &list[i]))
			of[chosen - 1] = &list[i];
		else
			last->events = list[i].events;
	}
	for (size_t i = 0; i < chosen; i++) {
		bool is_new = of[i]->events || !events;

		for (size_t k = 0; k < kept && is_new; k++)
			is_new = strcmp(of[k]->text, of[i]->text) != 0;
		if (is_new)
			of[kept++] = of[i];
	}
	return kept;
}

static void put_name(FILE *out, struct name *const *of, size_t n)
{
	size_t size = 0;

	(void)fprintf(out, "%u ", of[0]->pid);
	for (size_t i = 0; i < n; i++) {
		size += strlen(of[i]->text) + 1;
		if (i > 0 && size > NAME_MAX_N) {
			(void)fputs("|...", out);
			break;
		}
		(void)fprintf(out, "%s%s", i > 0 ? "|" : "", of[i]->text);
	}
	(void)fputc('\n', out);
}

int merge_names_put(struct merge_names *names, size_t room, char **ret, size_t *ret_shared)
{
	_cleanup_free_ struct name **of = calloc(MAX(names->n, (size_t)1), sizeof(struct name *));
	_cleanup_free_ char *text = calloc(room + 1, 1);
	FILE *out = of && text ? fmemopen(text, room + 1, "w") : NULL;
	size_t used = 0;

	if (!out)
		return -ENOMEM;
	*ret_shared = 0;
	if (names->n > 0)
		qsort(names->list, names->n, sizeof(*names->list), by_pid);
	for (size_t i = 0, end; i < names->n; i = end) {
		size_t n;

		for (end = i + 1; end < names->n && names->list[end].pid == names->list[i].pid;)
			end++;
		n = choose(of, &names->list[i], end - i);
		/* on one host only events will tell */
		if (strcmp(of[0]->text, NAMELESS) == 0 &&
		    names->list[i].host == names->list[end - 1].host)
			continue;
		put_name(out, of, n);
		*ret_shared += n > 1;
		if (fflush(out) != 0 || (size_t)ftell(out) >= room)
			break;
		used = (size_t)ftell(out);
	}
	(void)fclose(out);
	memset(text + used, '\n', room - used);
	*ret = TAKE_PTR(text);
	return 0;
}
