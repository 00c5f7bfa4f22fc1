/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "analysis/source-set.h"
#include "formats/own-clocks.h"
#include "formats/own-section.h"

#define KEEP_OPEN 2U /* that nobody has open: each has some MiB of formats */

struct member {
	struct source source;
	struct trace_dat *dat; /* NULL: not open */
	struct decoder *decoder;
	unsigned refs;
	uint64_t used; /* when it was closed last */
	struct stat opened;

	struct source_look look;
	struct stat looked;
	bool known, ends; /* the look is, with the times of ends */
};

struct source_set {
	size_t n;
	uint64_t clock;
	struct member members[];
};

int source_set_new(const struct source *sources, size_t n, struct source_set **ret)
{
	struct source_set *set = calloc(1, sizeof(*set) + n * sizeof(set->members[0]));

	if (!set)
		return -ENOMEM;
	set->n = n;
	for (size_t i = 0; i < n; i++)
		set->members[i].source = sources[i];
	*ret = set;
	return 0;
}

static void shut(struct member *m)
{
	m->decoder = decoder_free(m->decoder);
	m->dat = trace_dat_free(m->dat);
}

struct source_set *source_set_free(struct source_set *set)
{
	if (!set)
		return NULL;
	for (size_t i = 0; i < set->n; i++) {
		shut(&set->members[i]);
		free(set->members[i].look.ends);
	}
	free(set);
	return NULL;
}

size_t source_set_size(const struct source_set *set)
{
	return set->n;
}

const struct source *source_set_source(const struct source_set *set, size_t i)
{
	return &set->members[i].source;
}

static bool is_as_before(const struct member *m, const struct stat *before)
{
	struct stat now;

	return fstat(m->source.fd, &now) >= 0 && now.st_size == before->st_size &&
	       now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

int source_set_open(struct source_set *set, size_t i, const struct decoder **ret, struct fault *why)
{
	struct member *m = &set->members[i];
	int r = 0;

	if (!m->decoder) {
		/* before it is read: what is written meanwhile makes it old */
		if (fstat(m->source.fd, &m->opened) < 0)
			return fault_errno(why, -errno, "%s: cannot read", m->source.name);
		r = trace_dat_open_frame(m->source.fd, m->source.name, m->source.frame, &m->dat,
					 why);
		if (r >= 0)
			r = decoder_new(m->dat, &m->decoder, why);
		if (r >= 0 && m->source.placed)
			decoder_place(m->decoder, &m->source.rate, m->source.offset,
				      m->source.dated);
	}
	if (r < 0) {
		shut(m);
		return r;
	}
	m->refs++;
	*ret = m->decoder;
	return 0;
}

void source_set_close(struct source_set *set, size_t i)
{
	struct member *m = &set->members[i], *oldest = NULL;
	unsigned idle = 0;

	m->used = ++set->clock;
	if (--m->refs > 0)
		return;
	for (size_t k = 0; k < set->n; k++) {
		struct member *other = &set->members[k];

		if (!other->decoder || other->refs > 0)
			continue;
		idle++;
		if (!oldest || other->used < oldest->used)
			oldest = other;
	}
	if (idle > KEEP_OPEN)
		shut(oldest);
}

void source_set_fresh(struct source_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		struct member *m = &set->members[i];

		if (m->decoder && m->refs == 0 && !is_as_before(m, &m->opened))
			shut(m);
	}
}

/* --- when they begin and end */

static int last_time(const struct decoder *decoder, const struct trace_dat_region *region,
		     uint64_t *ret, struct fault *why)
{
	const struct trace_dat *dat = decoder_dat(decoder);
	const uint32_t size = dat->page_size;
	_cleanup_free_ uint8_t *bytes = malloc(size);
	struct subbuf_info info;
	int r;

	if (!bytes)
		return fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
	/* one that is damaged does not tell; nor does one that is empty */
	for (uint64_t at = region->size; at >= size; at -= size) {
		r = trace_dat_read(dat, bytes, size, region->offset + at - size, why);
		if (r < 0 && r != -EBADMSG)
			return r;
		if (r < 0 || subbuf_check(&dat->layout, bytes, NULL, &info, NULL) != 0)
			continue;
		*ret = decoder_time(decoder, info.last_ts);
		return 0;
	}
	return 0;
}

static int look_at_region(const struct decoder *decoder, uint32_t buffer, uint32_t cpu, bool ends,
			  struct source_look *look, struct fault *why)
{
	const struct trace_dat *dat = decoder_dat(decoder);
	const struct trace_dat_region *region = &dat->buffers[buffer].regions[cpu];
	struct fault broken;
	uint64_t ts, last = 0;
	int r;

	if (region->size == 0 ||
	    trace_dat_check_region(dat, &dat->buffers[buffer], cpu, &broken) < 0)
		return 0;
	r = trace_dat_timestamp(dat, region->offset, region->offset + region->size, &ts, why);
	if (r >= 0 && ends)
		r = last_time(decoder, region, &last, why);
	if (r < 0)
		return r;
	if (ts != UINT64_MAX)
		look->first = MIN(look->first, decoder_time(decoder, ts));
	look->last = MAX(look->last, last);
	look->bytes += region->size;
	if (buffer == 0)
		look->ends[cpu] = last;
	return 0;
}

static int read_clock(const struct trace_dat *dat, struct source_clock *ret, struct fault *why)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct own_clocks clocks;
	size_t size;
	int r = own_section_read(dat, OWN_CLOCKS, &bytes, &size, why);

	if (r == -ENOENT || r == -EBADMSG)
		return 0;
	if (r >= 0 && own_clocks_take(bytes, size, dat->big_endian, &clocks, NULL, NULL) >= 0) {
		memcpy(ret->boot_id, clocks.boot_id, sizeof(ret->boot_id));
		memcpy(ret->name, clocks.clock, sizeof(ret->name));
	}
	return r;
}

static int look_at(const struct decoder *decoder, bool ends, struct source_look *ret,
		   struct fault *why)
{
	const struct trace_dat *dat = decoder_dat(decoder);
	struct source_look look = {
		.first = UINT64_MAX,
		.n_cpus = dat->n_cpus,
		.clock.offset = decoder_facts(decoder)->offset,
	};
	int r = read_clock(dat, &look.clock, why);

	if (r < 0)
		return r;
	look.ends = calloc(MAX(dat->n_cpus, 1U), sizeof(*look.ends));
	if (!look.ends)
		return fault_errno(why, -ENOMEM, "%s: cannot read", dat->path);
	for (uint32_t b = 0; r >= 0 && b < dat->n_buffers; b++)
		for (uint32_t cpu = 0; r >= 0 && cpu < dat->n_cpus; cpu++)
			r = look_at_region(decoder, b, cpu, ends, &look, why);
	if (r < 0) {
		free(look.ends);
		return r;
	}
	free(ret->ends);
	*ret = look;
	return 0;
}

int source_set_look(struct source_set *set, size_t i, bool ends, const struct source_look **ret,
		    struct fault *why)
{
	struct member *m = &set->members[i];
	const struct decoder *decoder;
	int r;

	*ret = &m->look;
	if (m->known && m->ends >= ends && (m->refs > 0 || is_as_before(m, &m->looked)))
		return 0;
	r = source_set_open(set, i, &decoder, why);
	if (r < 0)
		return r;
	r = look_at(decoder, ends, &m->look, why);
	m->known = r >= 0;
	m->ends = ends;
	m->looked = m->opened;
	source_set_close(set, i);
	return r;
}
