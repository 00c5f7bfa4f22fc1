/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "formats/trace-dat-cursor.h"
#include "formats/trace-dat.h"

/* Nothing real comes near these; they bound what a bad file can make us do */
#define MAX_CPUS    65536U
#define MAX_OPTIONS 1048576U
#define MAX_REGIONS 262144U /* CPUs times buffers */

static int read_options(struct cursor *c)
{
	struct trace_dat *dat = c->dat;

	for (;;) {
		uint64_t at = c->pos, id;
		struct trace_dat_extent data;
		int r;

		r = cursor_number(c, 2, "the options", &id);
		if (r < 0)
			return r;
		if (id == TRACE_DAT_OPTION_END) {
			dat->options_end = at;
			return 0;
		}
		if (dat->n_options >= MAX_OPTIONS)
			return cursor_broken(c, -EBADMSG, at, "more than %u options", MAX_OPTIONS);
		r = cursor_extent(c, 4, "an option", &data);
		if (r < 0)
			return r;
		r = cursor_grow(&dat->options, dat->n_options, sizeof(*dat->options));
		if (r < 0)
			return r;
		dat->options[dat->n_options++] =
			(struct trace_dat_option_place){(uint16_t)id, data};
	}
}

/* "options  "… if there, then "flyrecord"; "latency  " is refused */
static int read_kind(struct cursor *c, bool may_have_options)
{
	uint64_t at = c->pos;
	const uint8_t *p;
	int r;

	r = cursor_get(c, TRACE_DAT_WORD_SIZE, "the kind of data", &p);
	if (r < 0)
		return r;
	if (may_have_options && memcmp(p, TRACE_DAT_OPTIONS, TRACE_DAT_WORD_SIZE) == 0) {
		r = read_options(c);
		if (r < 0)
			return r;
		return read_kind(c, false);
	}
	if (memcmp(p, TRACE_DAT_LATENCY, TRACE_DAT_WORD_SIZE) == 0)
		return cursor_broken(
			c, -EOPNOTSUPP, at,
			"holds the text of a latency tracer (\"latency\"), not ring buffer data");
	if (memcmp(p, TRACE_DAT_FLYRECORD, TRACE_DAT_WORD_SIZE) != 0)
		return cursor_broken(c, -EBADMSG, at,
				     "\"options\", \"latency\" or \"flyrecord\" is expected here");
	return 0;
}

/* At the first entry; @name is taken over in any case */
static int read_table(struct cursor *c, uint64_t start, char *name)
{
	struct trace_dat *dat = c->dat;
	struct trace_dat_buffer *buffer;
	const uint8_t *p;
	int r;

	r = cursor_grow(&dat->buffers, dat->n_buffers, sizeof(*dat->buffers));
	if (r < 0) {
		free(name);
		return r;
	}
	buffer = &dat->buffers[dat->n_buffers++];
	*buffer = (struct trace_dat_buffer){.name = name};
	if (cursor_left(c) / 16 < dat->n_cpus)
		return cursor_cut(c, "the CPU table");
	buffer->regions = calloc(MAX(dat->n_cpus, 1U), sizeof(*buffer->regions));
	if (!buffer->regions)
		return -ENOMEM;
	for (uint32_t i = 0; i < dat->n_cpus; i++) {
		buffer->regions[i].entry = c->pos;
		r = cursor_get(c, 16, "the CPU table", &p);
		if (r < 0)
			return r;
		buffer->regions[i].offset = trace_dat_u64(dat, p);
		buffer->regions[i].size = trace_dat_u64(dat, p + 8);
	}
	buffer->table = (struct trace_dat_extent){start, c->pos - start};
	return 0;
}

/* The option may change the number of CPUs; the last one counts, as for trace-cmd */
static int read_cpu_count(struct cursor *c)
{
	struct trace_dat *dat = c->dat;

	for (size_t i = 0; i < dat->n_options; i++) {
		const struct trace_dat_option_place *o = &dat->options[i];
		uint64_t n;
		int r;

		if (o->id != TRACE_DAT_OPTION_CPUCOUNT)
			continue;
		if (o->data.size < 4)
			return cursor_broken(c, -EBADMSG, o->data.offset,
					     "option CPUCOUNT: it is too short");
		c->pos = o->data.offset;
		r = cursor_number(c, 4, "option CPUCOUNT", &n);
		if (r < 0)
			return r;
		if (n > MAX_CPUS)
			return cursor_broken(c, -EBADMSG, o->data.offset,
					     "option CPUCOUNT: %" PRIu64 " CPUs, which cannot be",
					     n);
		dat->n_cpus = (uint32_t)n;
	}
	return 0;
}

static bool has_option(const struct trace_dat *dat, enum trace_dat_option id)
{
	for (size_t i = 0; i < dat->n_options; i++)
		if (dat->options[i].id == id)
			return true;
	return false;
}

/* The clock text behind the table: readers warn if it is bad and go on, so do we */
static void read_clock(struct cursor *c)
{
	struct fault *why = c->why;
	struct trace_dat_extent clock;

	c->why = NULL;
	if (has_option(c->dat, TRACE_DAT_OPTION_TRACECLOCK) &&
	    cursor_extent(c, 8, "the trace clock", &clock) >= 0 && clock.size <= CURSOR_NAME_MAX)
		c->dat->clock = clock;
	c->why = why;
}

/* Where its part is, and its name, malloc'ed */
static int read_buffer_place(struct cursor *c, const struct trace_dat_option_place *option,
			     uint64_t *ret_place, char **ret_name)
{
	uint64_t end = option->data.offset + option->data.size;
	int r;

	if (option->data.size < 9)
		return cursor_broken(c, -EBADMSG, option->data.offset,
				     "option BUFFER: it is too short");
	c->pos = option->data.offset;
	r = cursor_number(c, 8, "option BUFFER", ret_place);
	if (r >= 0)
		r = cursor_string(c, "the name of a buffer", ret_name);
	if (r < 0 || c->pos <= end)
		return r;
	free(*ret_name);
	return cursor_broken(c, -EBADMSG, option->data.offset,
			     "option BUFFER: the name of the buffer does not end in it");
}

static int read_buffer_part(struct cursor *c, const struct trace_dat_option_place *option,
			    uint64_t place, const char *name)
{
	const uint8_t *word;
	int r;

	if (place > c->dat->file_size)
		return cursor_broken(c, -EBADMSG, option->data.offset,
				     "option BUFFER of \"%.64s\": it points to 0x%" PRIx64
				     ", behind the end of the file",
				     name, place);
	c->pos = place;
	r = cursor_get(c, TRACE_DAT_WORD_SIZE, "the kind of data", &word);
	if (r >= 0 && memcmp(word, TRACE_DAT_FLYRECORD, TRACE_DAT_WORD_SIZE) != 0)
		return cursor_broken(c, -EBADMSG, option->data.offset,
				     "option BUFFER of \"%.64s\": at 0x%" PRIx64
				     ", where it points, is no \"flyrecord\"",
				     name, place);
	return r;
}

/*
 * trace-cmd split, 3.3 for one, writes each of these options twice and leaves the offset of the
 * first zero: who reads such a file finds the buffer by the second.
 */
static int read_buffer_option(struct cursor *c, const struct trace_dat_option_place *option)
{
	uint64_t place;
	char *name;
	int r;

	if ((c->dat->n_buffers + 1) * MAX(c->dat->n_cpus, 64U) > MAX_REGIONS)
		return cursor_broken(c, -EBADMSG, option->data.offset,
				     "more buffers than make sense: %zu of %u CPUs",
				     c->dat->n_buffers, c->dat->n_cpus);
	r = read_buffer_place(c, option, &place, &name);
	if (r < 0)
		return r;
	r = place > 0 ? read_buffer_part(c, option, place, name) : 0;
	if (r < 0 || place == 0) {
		free(name);
		return r;
	}
	return read_table(c, place, name);
}

int trace_dat_read_tables(struct cursor *c)
{
	struct trace_dat *dat = c->dat;
	uint64_t n, table;
	char *name;
	int r;

	dat->n_cpus_offset = c->pos;
	r = cursor_number(c, 4, "the number of CPUs", &n);
	if (r < 0)
		return r;
	if (n > MAX_CPUS)
		return cursor_broken(c, -EBADMSG, dat->n_cpus_offset,
				     "the number of CPUs is %" PRIu64 ", which cannot be", n);
	dat->n_cpus = (uint32_t)n;
	r = read_kind(c, true);
	if (r < 0)
		return r;
	table = c->pos;
	r = read_cpu_count(c);
	if (r < 0)
		return r;
	c->pos = table;
	name = strdup("");
	if (!name)
		return -ENOMEM;
	r = read_table(c, table - TRACE_DAT_WORD_SIZE, name);
	if (r < 0)
		return r;
	read_clock(c);
	for (size_t i = 0; i < dat->n_options; i++) {
		if (dat->options[i].id != TRACE_DAT_OPTION_BUFFER)
			continue;
		r = read_buffer_option(c, &dat->options[i]);
		if (r < 0)
			return r;
	}
	return 0;
}
