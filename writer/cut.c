/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "formats/live-block.h"
#include "formats/trace-clock.h"
#include "formats/trace-dat.h"
#include "writer/cut-internal.h"
#include "writer/store.h"

/*
 * A segment may hold a little that is later than the first of the next one: sub-buffers are taken
 * CPU by CPU, and a partial one waits for the flush timer.
 */
#define OVERLAP_USEC (60 * USEC_PER_SEC)

static void source_done(struct cut_source *s)
{
	trace_dat_free(s->dat);
	close_p(&s->fd);
	free(s->name);
	free(s->clock);
	free(s->slices);
}

void cut_free(struct cut *cut)
{
	if (!cut)
		return;
	for (size_t i = 0; i < cut->n; i++)
		source_done(&cut->sources[i]);
	free(cut->sources);
	free(cut);
}

/* --- which files */

/* When a segment began; the live one, at the end of time */
static uint64_t begin_of(const char *name)
{
	uint64_t usec = UINT64_MAX;

	(void)store_parse_archive_name(name, &usec);
	return usec;
}

static bool is_segment(const char *name)
{
	return begin_of(name) != UINT64_MAX || strcmp(name, STORE_CURRENT) == 0;
}

/* --- what of a file */

static bool begins_until(const void *nsec, uint64_t timestamp)
{
	return timestamp <= *(const uint64_t *)nsec;
}

static int slice_cpu(struct cut_source *s, unsigned cpu, uint64_t from_nsec, uint64_t to_nsec,
		     struct fault *why)
{
	const struct trace_dat_region *region = &s->dat->buffers[0].regions[cpu];
	const struct trace_dat_extent extent = {region->offset, region->size};
	uint64_t subbuf = s->dat->page_size, first = 0, end = 0;
	int r;

	if (region->size == 0)
		return 0;
	r = trace_dat_check_region(s->dat, &s->dat->buffers[0], cpu, why);
	if (r < 0)
		return r;
	r = trace_dat_search(s->dat, &extent, begins_until, &from_nsec, &first, why);
	if (r >= 0)
		r = trace_dat_search(s->dat, &extent, begins_until, &to_nsec, &end, why);
	if (r < 0)
		return r;
	s->slices[cpu].begins_before = first > 0;
	/* The one that begins before may hold what happened after */
	if (first > 0)
		first--;
	if (end > first) {
		s->slices[cpu].offset = region->offset + first * subbuf;
		s->slices[cpu].size = (end - first) * subbuf;
	}
	return 0;
}

static void read_boot(struct cut_source *s)
{
	_cleanup_free_ struct live_block *block = NULL;
	uint64_t at = live_block_place(s->dat->clock.offset + s->dat->clock.size);

	struct own_clocks clocks;
	struct fault ignored;

	/* version 7 has none, nor has what was cut or converted */
	if (s->dat->version == 6 && s->dat->clock.size > 0 &&
	    live_block_read(s->fd, at, s->dat->n_cpus, &block) >= 0)
		memcpy(s->boot_id, block->boot_id, sizeof(s->boot_id));
	else if (own_content_clocks(s->dat, &clocks, NULL, &ignored) >= 0)
		memcpy(s->boot_id, clocks.boot_id, sizeof(s->boot_id));
}

static int read_clock(struct cut_source *s, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	int r = trace_dat_date(s->dat, &s->date_usec, why);

	s->has_date = r > 0;
	if (r >= 0)
		r = trace_dat_clock(s->dat, &text, why);
	if (r < 0)
		return r;
	s->clock = trace_dat_clock_name(text);
	return s->clock ? 0 : -ENOMEM;
}

static bool has_slices(const struct cut_source *s)
{
	for (unsigned cpu = 0; cpu < s->dat->n_cpus; cpu++)
		if (s->slices[cpu].size > 0)
			return true;
	return false;
}

/*
 * Return: 1 with @ret set, 0 if there is nothing of the time in it, or negative errno. @is_last:
 * the newest of all. A time cannot be found by a clock that counts none; whatever is older than the
 * change of the clock is not looked at.
 */
static int open_source(int dir_fd, const char *name, bool is_last, uint64_t from_usec,
		       uint64_t to_usec, struct cut_source *ret, struct fault *why)
{
	_cleanup_(source_done) struct cut_source s = {.fd = -EBADF};
	bool all = from_usec == 0 && to_usec == UINT64_MAX;
	int r;

	s.name = strdup(name);
	s.fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (!s.name || (s.fd < 0 && errno == ENOENT)) /* retention was faster */
		return s.name ? 0 : -ENOMEM;
	if (s.fd < 0)
		return fault_errno(why, -errno, "cannot open %s", name);
	r = trace_dat_open_fd(s.fd, name, &s.dat, why);
	if (r >= 0)
		r = read_clock(&s, why);
	if (r < 0)
		return r;
	if (!s.has_date && !all && is_last)
		return fault_set(why, -EOPNOTSUPP,
				 "%s: its clock counts no time that could be found again", name);
	if (!s.has_date && !all)
		return 0;
	s.slices = calloc(s.dat->n_cpus, sizeof(*s.slices));
	if (!s.slices)
		return -ENOMEM;
	s.from_nsec = trace_clock_nsec(from_usec, s.date_usec);
	s.to_nsec = trace_clock_nsec(to_usec, s.date_usec);
	for (unsigned cpu = 0; cpu < s.dat->n_cpus && r >= 0; cpu++)
		r = slice_cpu(&s, cpu, s.from_nsec, s.to_nsec, why);
	if (r < 0)
		return r;
	if (!has_slices(&s))
		return 0;
	read_boot(&s);
	*ret = s;
	s = (struct cut_source){.fd = -EBADF};
	return 1;
}

static int add_source(struct cut *cut, int dir_fd, const char *name, bool is_last,
		      uint64_t from_usec, uint64_t to_usec, struct fault *why)
{
	int r = array_grow(&cut->sources, cut->n, sizeof(*cut->sources));

	if (r < 0)
		return r;
	r = open_source(dir_fd, name, is_last, from_usec, to_usec, &cut->sources[cut->n], why);
	cut->n += r > 0;
	return r;
}

/* --- which of them belong together */

/*
 * Each source gave its last sub-buffer that begins before the time; of these only the newest can
 * reach into it.
 */
static void leave_out_older(struct cut *cut)
{
	for (size_t i = cut->n; i-- > 0;) {
		const struct cut_source *newer = &cut->sources[i];

		for (unsigned cpu = 0; cpu < newer->dat->n_cpus; cpu++)
			for (size_t k = 0; k < i && newer->slices[cpu].begins_before; k++)
				if (cpu < cut->sources[k].dat->n_cpus)
					cut->sources[k].slices[cpu].size = 0;
	}
}

/* Nothing but sub-buffers that begin before the time, and may end before it as well */
static bool is_doubtful(const struct cut_source *s)
{
	for (unsigned cpu = 0; cpu < s->dat->n_cpus; cpu++) {
		uint64_t before = s->slices[cpu].begins_before ? s->dat->page_size : 0;

		if (s->slices[cpu].size > before)
			return false;
	}
	return true;
}

static bool knows_boot(const uint8_t boot_id[static 16])
{
	static const uint8_t unknown[16];

	return memcmp(boot_id, unknown, sizeof(unknown)) != 0;
}

const uint8_t *cut_boot_id(const struct cut *cut)
{
	for (size_t i = cut->n; i-- > 0;)
		if (knows_boot(cut->sources[i].boot_id))
			return cut->sources[i].boot_id;
	return cut_newest(cut)->boot_id;
}

static bool belongs(const struct cut_source *s, const struct cut_source *newest,
		    const uint8_t boot_id[static 16])
{
	return s->has_date == newest->has_date && strcmp(s->clock, newest->clock) == 0 &&
	       s->dat->n_cpus == newest->dat->n_cpus &&
	       s->dat->page_size == newest->dat->page_size &&
	       (!knows_boot(s->boot_id) || !knows_boot(boot_id) ||
		memcmp(s->boot_id, boot_id, 16) == 0);
}

/* Those with nothing left, and those that cannot be in one file with the newest of the others */
static void leave_out(struct cut *cut)
{
	const struct cut_source *newest = NULL;
	uint8_t boot_id[16];
	size_t n = 0;

	for (size_t i = 0; i < cut->n; i++) {
		if (has_slices(&cut->sources[i]))
			cut->sources[n++] = cut->sources[i];
		else
			source_done(&cut->sources[i]);
	}
	cut->n = n;
	if (n == 0)
		return;
	/* The array is moved together: what it is compared with has to stay */
	memcpy(boot_id, cut_boot_id(cut), sizeof(boot_id));
	newest = cut_newest(cut);
	n = 0;
	for (size_t i = 0; i < cut->n; i++) {
		struct cut_source *s = &cut->sources[i];

		if (s == newest || belongs(s, newest, boot_id)) {
			cut->sources[n++] = *s;
		} else {
			cut->left_out += !is_doubtful(s);
			source_done(s);
		}
	}
	cut->n = n;
	cut->n_cpus = cut_newest(cut)->dat->n_cpus;
}

uint64_t cut_size(const struct cut *cut)
{
	const struct trace_dat_buffer *newest = &cut_newest(cut)->dat->buffers[0];
	uint64_t size = cut->n_cpus > 0 ? newest->regions[0].offset : 0;

	for (size_t i = 0; i < cut->n; i++)
		for (unsigned cpu = 0; cpu < cut->sources[i].dat->n_cpus; cpu++)
			size += cut->sources[i].slices[cpu].size;
	return size;
}

int cut_open(int dir_fd, uint64_t from_usec, uint64_t to_usec, struct cut **ret, struct fault *why)
{
	_cleanup_(cut_freep) struct cut *cut = calloc(1, sizeof(*cut));
	_cleanup_(strv_freep) char **names = NULL;
	int r;

	if (!cut)
		return fault_errno(why, -ENOMEM, "cannot cut");
	/* in the order of their names: oldest first, the live one last */
	r = io_list_at(dir_fd, ".", is_segment, &names);
	if (r < 0)
		return fault_errno(why, r, "cannot list segments");
	STRV_FOREACH (name, names) {
		uint64_t begin = begin_of(*name), next = name[1] ? begin_of(name[1]) : UINT64_MAX;
		bool ends_before = next != UINT64_MAX && next + OVERLAP_USEC < from_usec;
		bool begins_after = begin != UINT64_MAX && begin > to_usec;

		if (r >= 0 && !ends_before && !begins_after)
			r = add_source(cut, dir_fd, *name, !name[1], from_usec, to_usec, why);
	}
	if (r < 0)
		return r;
	leave_out_older(cut);
	leave_out(cut);
	if (cut->n == 0)
		return fault_set(why, -ENODATA, "nothing was recorded in that time");
	*ret = TAKE_PTR(cut);
	return 0;
}
