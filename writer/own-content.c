/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "writer/own-content.h"

#define BIG_ENDIAN_HERE (__BYTE_ORDER == __BIG_ENDIAN)

static bool says_anything(const struct own_content *c)
{
	return c->clocks || c->cause || c->tasks_room > 0 || c->findings_room > 0 ||
	       c->journal_room > 0;
}

int own_content_build(const struct own_content *content, uint8_t **ret, size_t *ret_size,
		      size_t *ret_clocks_at)
{
	struct own_entry entries[] = {
		{.kind = OWN_CLOCKS},
		{.kind = OWN_CAUSE},
		{.kind = OWN_TASKS, .room = content->tasks_room},
		{.kind = OWN_FINDINGS, .room = content->findings_room},
		{.kind = OWN_JOURNAL, .room = content->journal_room},
	};
	_cleanup_free_ uint8_t *cause = NULL;
	uint8_t clocks[OWN_CLOCKS_SIZE];
	size_t cause_size = 0;
	int r = 0;

	*ret = NULL;
	*ret_size = *ret_clocks_at = 0;
	if (!says_anything(content))
		return 0;
	if (content->clocks) {
		own_clocks_put(content->clocks, BIG_ENDIAN_HERE, clocks);
		entries[0].data = clocks;
		entries[0].size = sizeof(clocks);
	}
	if (content->cause) {
		r = own_cause_put(content->cause, BIG_ENDIAN_HERE, &cause, &cause_size);
		entries[1].data = cause;
		entries[1].size = (uint32_t)cause_size;
		entries[1].room = (uint32_t)cause_size + content->cause_room;
	}
	if (r >= 0)
		r = own_section_build(entries, ARRAY_SIZE(entries), BIG_ENDIAN_HERE, ret, ret_size);
	if (r >= 0 && content->clocks)
		*ret_clocks_at = entries[0].place + OWN_ENTRY_HEAD;
	return r;
}

int own_content_clocks(const struct trace_dat *dat, struct own_clocks *ret, uint64_t *ret_at,
		       struct fault *why)
{
	_cleanup_own_section_ struct own_section s = {};
	int r = own_section_load(dat, &s, why);

	if (r < 0)
		return r == -EBADMSG ? -ENOENT : r;
	for (size_t i = 0; i < s.n; i++) {
		const struct own_entry *e = &s.entries[i];

		if (e->kind != OWN_CLOCKS)
			continue;
		if (e->damaged ||
		    own_clocks_take(e->data, e->size, dat->big_endian, ret, NULL, NULL) < 0)
			return -ENOENT;
		if (ret_at)
			*ret_at = e->place + OWN_ENTRY_HEAD;
		return 0;
	}
	return -ENOENT;
}

/* --- readings of several files */

void own_readings_done(struct own_readings *readings)
{
	free(readings->list);
	*readings = (struct own_readings){};
}

static bool is_before(const struct own_clock *c, uint64_t nsec)
{
	return !(c->flags & OWN_CLOCK_NO_TRACE) && c->trace < nsec;
}

static bool is_behind(const struct own_clock *c, uint64_t nsec)
{
	return !(c->flags & OWN_CLOCK_NO_TRACE) && c->trace > nsec;
}

int own_readings_add(struct own_readings *readings, const struct trace_dat *dat, uint64_t from_nsec,
		     uint64_t to_nsec, struct fault *why)
{
	const struct own_clock *list[OWN_CLOCKS_MAX];
	struct own_clocks clocks;
	size_t n;
	int r = own_content_clocks(dat, &clocks, NULL, why);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	memcpy(readings->boot_id, clocks.boot_id, sizeof(readings->boot_id));
	n = own_clocks_list(&clocks, list);
	for (size_t i = 0; i < n; i++) {
		if (i + 1 < n && is_before(list[i + 1], from_nsec))
			continue;
		if (i > 0 && is_behind(list[i - 1], to_nsec))
			break;
		r = array_grow(&readings->list, readings->n, sizeof(*readings->list));
		if (r < 0)
			return fault_errno(why, r, "%s: cannot take its readings of clocks",
					   dat->path);
		readings->list[readings->n++] = *list[i];
	}
	return 0;
}

/* All are of one boot, in which this clock never goes back */
static int by_time(const void *a, const void *b)
{
	const struct own_clock *x = a, *y = b;

	return (x->boot > y->boot) - (x->boot < y->boot);
}

void own_readings_merge(struct own_readings *readings, struct own_clocks *clocks)
{
	if (readings->n > 0)
		qsort(readings->list, readings->n, sizeof(*readings->list), by_time);
	for (size_t i = 0; i < readings->n; i++)
		(void)own_clocks_add(clocks, &readings->list[i]);
}
