/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "writer/own-content.h"

#define BIG_ENDIAN_HERE (__BYTE_ORDER == __BIG_ENDIAN)

static bool says_anything(const struct own_content *c)
{
	return c->clocks || c->cause || c->tasks_room > 0 || c->tasks_size > 0 ||
	       c->findings_room > 0 || c->journal_room > 0 || c->shed_room > 0 ||
	       (c->sheds && c->sheds->n > 0);
}

int own_content_build(const struct own_content *content, uint8_t **ret, size_t *ret_size,
		      struct own_places *ret_places)
{
	struct own_entry entries[] = {
		{.kind = OWN_CLOCKS},
		{.kind = OWN_CAUSE},
		{.kind = OWN_TASKS,
		 .room = content->tasks_room,
		 .size = content->tasks_size,
		 .data = content->tasks},
		{.kind = OWN_FINDINGS, .room = content->findings_room},
		{.kind = OWN_JOURNAL, .room = content->journal_room},
		{.kind = OWN_SHED, .room = content->shed_room},
	};
	struct own_entry *shed = &entries[ARRAY_SIZE(entries) - 1];
	_cleanup_free_ char *lines = NULL;
	_cleanup_free_ uint8_t *cause = NULL;
	uint8_t clocks[OWN_CLOCKS_SIZE];
	size_t cause_size = 0, shed_size;
	int r = 0;

	*ret = NULL;
	*ret_size = 0;
	*ret_places = (struct own_places){};
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
	if (r >= 0 && content->sheds) {
		r = own_sheds_put(content->sheds, MAX(content->shed_room, OWN_SHED_ROOM), &lines,
				  &shed_size);
		shed->data = (const uint8_t *)lines;
		shed->size = r >= 0 ? (uint32_t)shed_size : 0;
	}
	if (r >= 0)
		r = own_section_build(entries, ARRAY_SIZE(entries), BIG_ENDIAN_HERE, ret, ret_size);
	if (r >= 0 && content->clocks)
		ret_places->clocks = entries[0].place + OWN_ENTRY_HEAD;
	if (r >= 0 && entries[2].room > 0) {
		ret_places->tasks = entries[2].place + OWN_ENTRY_HEAD;
		ret_places->tasks_room = entries[2].room;
	}
	if (r >= 0 && shed->room > 0) {
		ret_places->shed = shed->place + OWN_ENTRY_HEAD;
		ret_places->shed_room = shed->room;
	}
	return r;
}

int own_content_clocks(const struct trace_dat *dat, struct own_clocks *ret,
		       struct own_places *ret_places, struct fault *why)
{
	_cleanup_own_section_ struct own_section s = {};
	struct own_places places = {};
	int r = own_section_load(dat, &s, why), found = -ENOENT;

	if (r < 0)
		return r == -EBADMSG ? -ENOENT : r;
	for (size_t i = s.n; i-- > 0;) { /* of several the first counts */
		const struct own_entry *e = &s.entries[i];

		if (e->kind == OWN_TASKS) {
			places.tasks = e->place + OWN_ENTRY_HEAD;
			places.tasks_room = e->room;
			places.tasks_used = e->size;
		}
		if (e->kind == OWN_SHED) {
			places.shed = e->place + OWN_ENTRY_HEAD;
			places.shed_room = e->room;
		}
		if (e->kind != OWN_CLOCKS)
			continue;
		places.clocks = 0;
		found = -ENOENT;
		if (e->damaged ||
		    own_clocks_take(e->data, e->size, dat->big_endian, ret, NULL, NULL) < 0)
			continue;
		places.clocks = e->place + OWN_ENTRY_HEAD;
		found = 0;
	}
	if (ret_places)
		*ret_places = places;
	return found;
}

int own_content_sheds(struct own_sheds *sheds, const struct trace_dat *dat, struct fault *why)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size;
	int r = own_section_read(dat, OWN_SHED, &bytes, &size, why);

	if (r == -ENOENT || r == -EBADMSG)
		return 0;
	if (r < 0)
		return r;
	r = own_sheds_take(sheds, bytes, size, NULL, NULL);
	return r < 0 ? fault_errno(why, r, "%s: cannot read flyrec's own section", dat->path) : 0;
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
