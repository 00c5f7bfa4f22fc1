/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/rates.h"
#include "basic/strv.h"

#define CHUNK	  MIB			/* to be read at a time */
#define NEAR_NSEC (NSEC_PER_SEC / 1000) /* enough to know of where to begin */

/* Of an id in the file that is being read */
struct count {
	uint64_t events[_RATES_MAX], bytes[_RATES_MAX];
};

struct reader {
	const struct rates_config *config;
	struct rates *rates;
	struct count *counts; /* [SUBBUF_EVENT_IDS] */
	uint8_t *chunk;
	size_t chunk_size;
	uint64_t left; /* bytes that may still be read */
	/* the file */
	struct trace_dat *dat;
	struct decoder *decoder;
};

static uint64_t begin_of(const struct reader *reader, enum rates_window window)
{
	uint64_t usec = reader->rates->from_usec[window];

	return usec < UINT64_MAX / NSEC_PER_USEC ? usec * NSEC_PER_USEC : UINT64_MAX;
}

static uint64_t end_of(const struct reader *reader)
{
	uint64_t usec = reader->config->to_usec;

	return usec < UINT64_MAX / NSEC_PER_USEC ? usec * NSEC_PER_USEC : UINT64_MAX;
}

/* --- where to begin */

struct moment {
	const struct decoder *decoder;
	uint64_t nsec;
};

static bool is_before(const void *userdata, uint64_t timestamp)
{
	const struct moment *m = userdata;

	return timestamp != UINT64_MAX && decoder_time(m->decoder, timestamp) < m->nsec;
}

static bool is_readable(const struct reader *reader, const struct trace_dat_buffer *buffer,
			uint32_t cpu)
{
	struct fault ignored;

	return buffer->regions[cpu].size > 0 &&
	       trace_dat_check_region(reader->dat, buffer, cpu, &ignored) >= 0;
}

/* Where in a region the sub-buffer begins that may have the first event of a time */
static int find(const struct reader *reader, const struct trace_dat_region *region, uint64_t nsec,
		uint64_t *ret, struct fault *why)
{
	const struct moment moment = {.decoder = reader->decoder, .nsec = nsec};
	const struct trace_dat_extent extent = {.offset = region->offset, .size = region->size};
	uint64_t n;
	int r = trace_dat_search(reader->dat, &extent, is_before, &moment, &n, why);

	if (r >= 0)
		*ret = (n - (n > 0)) * reader->dat->page_size;
	return r;
}

/* Bytes of the file from a time on */
static int measure(const struct reader *reader, uint64_t nsec, uint64_t *ret, struct fault *why)
{
	uint64_t bytes = 0, skipped = 0;
	int r = 0;

	for (size_t b = 0; b < reader->dat->n_buffers; b++)
		for (uint32_t cpu = 0; cpu < reader->dat->n_cpus && r >= 0; cpu++) {
			const struct trace_dat_buffer *buffer = &reader->dat->buffers[b];

			if (!is_readable(reader, buffer, cpu))
				continue;
			r = find(reader, &buffer->regions[cpu], nsec, &skipped, why);
			bytes += buffer->regions[cpu].size - skipped;
		}
	*ret = bytes;
	return r;
}

/* Begin later if it would be too much */
static int fit(struct reader *reader, struct fault *why)
{
	uint64_t low = begin_of(reader, RATES_LONG), high = end_of(reader), bytes;
	int r = measure(reader, low, &bytes, why);

	if (r < 0)
		return r;
	if (bytes >= reader->left) {
		while (r >= 0 && high > low && high - low > NEAR_NSEC) {
			uint64_t middle = low + (high - low) / 2;

			r = measure(reader, middle, &bytes, why);
			if (bytes >= reader->left)
				low = middle;
			else
				high = middle;
		}
		for (unsigned window = 0; window < _RATES_MAX; window++)
			reader->rates->from_usec[window] =
				MAX(reader->rates->from_usec[window], high / NSEC_PER_USEC);
		reader->left = 0;
	} else {
		reader->left -= bytes;
	}
	return r;
}

/* --- counting */

/* Return: 1, or 0: it is later, as all that follow */
static int count_page(struct reader *reader, const uint8_t *page)
{
	const uint64_t from[] = {begin_of(reader, RATES_SHORT), begin_of(reader, RATES_LONG)};
	const uint64_t to = end_of(reader);
	struct subbuf_iter it;
	struct subbuf_event event;
	uint32_t before;
	uint64_t ts;

	if (subbuf_iter_init(&reader->dat->layout, page, &it, NULL) != 0)
		return 1;
	ts = decoder_time(reader->decoder, it.header.timestamp);
	if (ts > to)
		return 0;
	for (unsigned window = 0; window < _RATES_MAX; window++)
		if (ts >= from[window])
			reader->rates->subbuf_bytes[window] += reader->dat->page_size;
	for (before = it.pos; subbuf_iter_next(&it, &event, NULL) > 0; before = it.pos) {
		struct count *count = &reader->counts[trace_dat_u16(reader->dat, event.data)];

		ts = decoder_time(reader->decoder, event.ts);
		if (ts > to)
			break;
		for (unsigned window = 0; window < _RATES_MAX; window++)
			if (ts >= from[window]) {
				count->events[window]++;
				count->bytes[window] += it.pos - before;
			}
	}
	return 1;
}

static int read_region(struct reader *reader, const struct trace_dat_region *region,
		       struct fault *why)
{
	const uint32_t page_size = reader->dat->page_size;
	uint64_t at;
	int r = find(reader, region, begin_of(reader, RATES_LONG), &at, why);

	while (r >= 0 && at < region->size) {
		size_t n = 0, want = MIN(reader->chunk_size, region->size - at);

		r = trace_dat_read_some(reader->dat, reader->chunk, want, region->offset + at, &n,
					why);
		if (r == -EBADMSG) {
			at += round_up(MAX(n, (size_t)1), page_size);
			r = 0;
			continue;
		}
		for (size_t page = 0; r >= 0 && page + page_size <= n; page += page_size)
			if (count_page(reader, reader->chunk + page) == 0)
				return 0;
		/* what follows a part of one is damaged */
		at += n >= page_size ? round_down(n, page_size) : page_size;
	}
	return r;
}

static struct rates_event *find_event(struct rates *rates, const char *name)
{
	for (size_t i = 0; i < rates->n_events; i++)
		if (strcmp(rates->events[i].name, name) == 0)
			return &rates->events[i];
	if (array_grow(&rates->events, rates->n_events, sizeof(*rates->events)) < 0)
		return NULL;
	rates->events[rates->n_events] = (struct rates_event){.name = strdup(name)};
	return rates->events[rates->n_events].name ? &rates->events[rates->n_events++] : NULL;
}

/* Ids differ from file to file, names do not */
static int add_counts(struct reader *reader)
{
	for (uint32_t id = 0; id < SUBBUF_EVENT_IDS; id++) {
		const struct count *count = &reader->counts[id];
		int32_t format = decoder_find(reader->decoder, id);
		_cleanup_free_ char *name = NULL;
		struct rates_event *event;

		if (count->events[RATES_LONG] == 0)
			continue;
		if (format < 0)
			name = strf("%u", id);
		else
			name = strf("%s:%s",
				    reader->dat->systems[reader->dat->formats[format].system],
				    decoder_name(reader->decoder, (size_t)format));
		event = name ? find_event(reader->rates, name) : NULL;
		if (!event)
			return -ENOMEM;
		for (unsigned window = 0; window < _RATES_MAX; window++) {
			event->count[window] += count->events[window];
			event->bytes[window] += count->bytes[window];
			reader->rates->count[window] += count->events[window];
		}
	}
	return 0;
}

static int read_regions(struct reader *reader, struct fault *why)
{
	const struct decoder_facts *facts = decoder_facts(reader->decoder);
	int r;

	if (!facts->has_date || !facts->in_usecs)
		return fault_set(why, -EINVAL, "%s: its clock has no time of day",
				 reader->dat->path);
	r = fit(reader, why);
	memset(reader->counts, 0, SUBBUF_EVENT_IDS * sizeof(*reader->counts));
	reader->chunk_size =
		MAX(round_down(CHUNK, reader->dat->page_size), (uint64_t)reader->dat->page_size);
	free(reader->chunk);
	reader->chunk = malloc(reader->chunk_size);
	if (r >= 0 && !reader->chunk)
		return fault_errno(why, -ENOMEM, "%s: cannot read", reader->dat->path);
	for (size_t b = 0; b < reader->dat->n_buffers; b++)
		for (uint32_t cpu = 0; cpu < reader->dat->n_cpus && r >= 0; cpu++) {
			const struct trace_dat_buffer *buffer = &reader->dat->buffers[b];

			if (is_readable(reader, buffer, cpu))
				r = read_region(reader, &buffer->regions[cpu], why);
		}
	if (r >= 0 && add_counts(reader) < 0)
		r = fault_errno(why, -ENOMEM, "%s: cannot read", reader->dat->path);
	return r;
}

static int read_file(struct reader *reader, const struct source *source, struct fault *why)
{
	int r = trace_dat_open_fd(source->fd, source->name, &reader->dat, why);

	if (r >= 0)
		r = decoder_new(reader->dat, &reader->decoder, why);
	if (r >= 0)
		r = read_regions(reader, why);
	reader->decoder = decoder_free(reader->decoder);
	reader->dat = trace_dat_free(reader->dat);
	return r;
}

static int by_bytes(const void *a, const void *b)
{
	const struct rates_event *x = a, *y = b;

	if (x->bytes[RATES_LONG] != y->bytes[RATES_LONG])
		return x->bytes[RATES_LONG] > y->bytes[RATES_LONG] ? -1 : 1;
	return strcmp(x->name, y->name);
}

int rates_read(const struct rates_config *config, struct rates *ret, struct fault *why)
{
	struct rates rates = {};
	struct reader reader = {.config = config, .rates = &rates, .left = config->read_max};
	int r = 0;

	memcpy(rates.from_usec, config->from_usec, sizeof(rates.from_usec));
	reader.counts = calloc(SUBBUF_EVENT_IDS, sizeof(*reader.counts));
	if (!reader.counts)
		return fault_errno(why, -ENOMEM, "cannot count events");
	/* the last one first: what there is no time for is at the beginning */
	for (size_t i = config->n; i > 0 && r >= 0; i--)
		if (reader.left > 0)
			r = read_file(&reader, &config->sources[i - 1], why);
	free(reader.chunk);
	free(reader.counts);
	if (r < 0) {
		rates_done(&rates);
		return r;
	}
	if (rates.n_events > 0)
		qsort(rates.events, rates.n_events, sizeof(*rates.events), by_bytes);
	*ret = rates;
	return 0;
}

void rates_done(struct rates *rates)
{
	for (size_t i = 0; i < rates->n_events; i++)
		free(rates->events[i].name);
	free(rates->events);
	*rates = (struct rates){};
}
