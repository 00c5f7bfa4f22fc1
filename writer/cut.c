/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/io.h"
#include "formats/live-block.h"
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

struct candidate {
	char *name;
	uint64_t begin_usec;
};

static void free_candidates(struct candidate *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(c[i].name);
	free(c);
}

static int older_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->begin_usec < y->begin_usec ? -1 : x->begin_usec > y->begin_usec;
}

/* Finished segments, and the live one at the end of time */
static int list_candidates(int dir_fd, struct candidate **ret, size_t *ret_n)
{
	struct dirent **entries = NULL;
	struct candidate *list;
	int n = scandirat(dir_fd, ".", &entries, NULL, NULL), r = 0;
	size_t k = 0;

	if (n < 0)
		return -errno;
	list = calloc((size_t)n + 1, sizeof(*list));
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		uint64_t usec = UINT64_MAX;

		if (list && r >= 0 &&
		    (strcmp(name, STORE_CURRENT) == 0 || store_parse_archive_name(name, &usec))) {
			list[k] = (struct candidate){strdup(name), usec};
			r = list[k].name ? r : -ENOMEM;
			k += r >= 0;
		}
		free(entries[i]);
	}
	free(entries);
	if (!list)
		return -ENOMEM;
	if (r < 0) {
		free_candidates(list, k);
		return r;
	}
	qsort(list, k, sizeof(*list), older_first);
	*ret = list;
	*ret_n = k;
	return 0;
}

/* --- what of a file */

static int read_timestamp(const struct cut_source *s, uint64_t at, uint64_t *ret)
{
	uint64_t raw;
	int r = io_pread_all(s->fd, &raw, sizeof(raw), at);

	*ret = r < 0 ? 0 : trace_dat_u64(s->dat, &raw);
	return r;
}

/* How many of a region's sub-buffers begin at or before @nsec */
static int count_until(const struct cut_source *s, const struct trace_dat_region *region,
		       uint64_t nsec, uint64_t *ret)
{
	uint64_t low = 0, high = region->size / s->dat->page_size;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2, timestamp;
		int r = read_timestamp(s, region->offset + middle * s->dat->page_size, &timestamp);

		if (r < 0)
			return r;
		if (timestamp <= nsec)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return 0;
}

static uint64_t to_clock(const struct cut_source *s, uint64_t usec)
{
	int64_t clock = (int64_t)MIN(usec, (uint64_t)INT64_MAX / 2) - s->date_usec;

	if (clock <= 0)
		return 0;
	return (uint64_t)clock > UINT64_MAX / NSEC_PER_USEC ? UINT64_MAX
							    : (uint64_t)clock * NSEC_PER_USEC;
}

static int slice_cpu(struct cut_source *s, unsigned cpu, uint64_t from_nsec, uint64_t to_nsec,
		     struct fault *why)
{
	const struct trace_dat_region *region = &s->dat->buffers[0].regions[cpu];
	uint64_t subbuf = s->dat->page_size, first = 0, end = 0;
	int r;

	if (region->size == 0)
		return 0;
	r = trace_dat_check_region(s->dat, &s->dat->buffers[0], cpu, why);
	if (r < 0)
		return r;
	r = count_until(s, region, from_nsec, &first);
	if (r >= 0)
		r = count_until(s, region, to_nsec, &end);
	if (r < 0)
		return fault_errno(why, r, "cannot read %s", s->name);
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

/* @needed: to find a time; all there is can be had without */
static int read_date(struct cut_source *s, bool needed, struct fault *why)
{
	int r = trace_dat_date(s->dat, &s->date_usec, why);

	s->has_date = r > 0;
	if (r != 0 || !needed)
		return r;
	return fault_set(why, -EOPNOTSUPP, "%s: its clock counts no time that could be found again",
			 s->name);
}

static void read_boot(struct cut_source *s)
{
	_cleanup_free_ struct live_block *block = NULL;
	uint64_t at = live_block_place(s->dat->clock.offset + s->dat->clock.size);

	if (s->dat->clock.size > 0 && live_block_read(s->fd, at, s->dat->n_cpus, &block) >= 0)
		memcpy(s->boot_id, block->boot_id, sizeof(s->boot_id));
}

static bool has_slices(const struct cut_source *s, unsigned n_cpus)
{
	for (unsigned cpu = 0; cpu < n_cpus; cpu++)
		if (s->slices[cpu].size > 0)
			return true;
	return false;
}

/* Sources whose data cannot stand in one file */
static int compare_shape(const struct cut *cut, const struct cut_source *s, struct fault *why)
{
	const struct trace_dat *a = s->dat, *b;

	if (cut->n == 0)
		return 0;
	b = cut_newest(cut)->dat;
	if (s->has_date != cut_newest(cut)->has_date)
		return fault_set(why, -EOPNOTSUPP,
				 "of %s and %s only one has a clock that counts time",
				 cut_newest(cut)->name, s->name);
	if (a->n_cpus == b->n_cpus && a->page_size == b->page_size)
		return 0;
	return fault_set(why, -EOPNOTSUPP,
			 "%s and %s have different numbers of CPUs or sub-buffer sizes", s->name,
			 cut_newest(cut)->name);
}

/* Return: 1 with @ret set, 0 if there is nothing of the time in it, or negative errno */
static int open_source(int dir_fd, const char *name, uint64_t from_usec, uint64_t to_usec,
		       struct cut_source *ret, struct fault *why)
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
		r = read_date(&s, !all, why);
	if (r < 0)
		return r;
	s.slices = calloc(s.dat->n_cpus, sizeof(*s.slices));
	if (!s.slices)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < s.dat->n_cpus && r >= 0; cpu++)
		r = slice_cpu(&s, cpu, to_clock(&s, from_usec), to_clock(&s, to_usec), why);
	if (r < 0)
		return r;
	if (!has_slices(&s, s.dat->n_cpus))
		return 0;
	read_boot(&s);
	*ret = s;
	s = (struct cut_source){.fd = -EBADF};
	return 1;
}

static void leave_out_earlier_boot(struct cut *cut, const struct cut_source *s)
{
	static const uint8_t unknown[16];
	const uint8_t *boot_id = cut->n > 0 ? cut_newest(cut)->boot_id : unknown;

	if (memcmp(boot_id, unknown, sizeof(unknown)) == 0 ||
	    memcmp(s->boot_id, unknown, sizeof(unknown)) == 0 ||
	    memcmp(boot_id, s->boot_id, sizeof(unknown)) == 0)
		return;
	cut->earlier += (unsigned)cut->n;
	while (cut->n > 0)
		source_done(&cut->sources[--cut->n]);
}

static int add_source(struct cut *cut, int dir_fd, const char *name, uint64_t from_usec,
		      uint64_t to_usec, struct fault *why)
{
	struct cut_source *more = reallocarray(cut->sources, cut->n + 1, sizeof(*more)), source;
	int r;

	if (!more)
		return -ENOMEM;
	cut->sources = more;
	r = open_source(dir_fd, name, from_usec, to_usec, &more[cut->n], why);
	if (r <= 0)
		return r;
	source = more[cut->n];
	leave_out_earlier_boot(cut, &source);
	r = compare_shape(cut, &source, why);
	if (r < 0) {
		source_done(&source);
		return r;
	}
	cut->n_cpus = source.dat->n_cpus;
	cut->sources[cut->n++] = source;
	return 0;
}

/*
 * Each source gave its last sub-buffer that begins before the time; of these only the newest can
 * reach into it.
 */
static void leave_out_older(struct cut *cut)
{
	size_t n = 0;

	for (unsigned cpu = 0; cpu < cut->n_cpus; cpu++) {
		bool covered = false;

		for (size_t i = cut->n; i-- > 0;) {
			if (covered)
				cut->sources[i].slices[cpu].size = 0;
			covered |= cut->sources[i].slices[cpu].begins_before;
		}
	}
	for (size_t i = 0; i < cut->n; i++) {
		if (has_slices(&cut->sources[i], cut->n_cpus))
			cut->sources[n++] = cut->sources[i];
		else
			source_done(&cut->sources[i]);
	}
	cut->n = n;
}

int cut_open(int dir_fd, uint64_t from_usec, uint64_t to_usec, struct cut **ret, struct fault *why)
{
	_cleanup_(cut_freep) struct cut *cut = calloc(1, sizeof(*cut));
	struct candidate *list = NULL;
	size_t n = 0;
	int r;

	if (!cut)
		return fault_errno(why, -ENOMEM, "cannot cut");
	r = list_candidates(dir_fd, &list, &n);
	if (r < 0)
		return fault_errno(why, r, "cannot list segments");
	for (size_t i = 0; i < n && r >= 0; i++) {
		bool ends_before = i + 1 < n && list[i + 1].begin_usec != UINT64_MAX &&
				   list[i + 1].begin_usec + OVERLAP_USEC < from_usec;
		bool begins_after =
			list[i].begin_usec != UINT64_MAX && list[i].begin_usec > to_usec;

		if (!ends_before && !begins_after)
			r = add_source(cut, dir_fd, list[i].name, from_usec, to_usec, why);
	}
	free_candidates(list, n);
	if (r < 0)
		return r;
	leave_out_older(cut);
	if (cut->n == 0)
		return fault_set(why, -ENODATA, "nothing was recorded in that time");
	*ret = TAKE_PTR(cut);
	return 0;
}
