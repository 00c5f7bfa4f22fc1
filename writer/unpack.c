/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "formats/trace-dat.h"
#include "writer/frame.h"
#include "writer/region-read.h"
#include "writer/sections.h"
#include "writer/unpack.h"

#define PIECE	    MIB
#define TABLE_ALIGN 16 /* as sections_put_tables() has it */

/* The options, and where in them the place of each ring buffer but the first goes */
struct tables {
	char *bytes;
	size_t size;
	size_t *place_at; /* [n_buffers] */
};

struct unpack {
	const struct trace_dat *in;
	const struct unpack_options *options;
	struct fault *why;
	struct region_read_told told;
	struct region_read *read;
	FILE *out;
	uint8_t *piece;
	size_t piece_size;
	uint64_t *sizes; /* of all regions, buffer by buffer */
	uint8_t *own;	 /* flyrec's own section, or NULL */
	size_t own_size;
	struct tables tables;
	uint64_t at, total;
};

static void unpack_done(struct unpack *u)
{
	region_read_free(u->read);
	if (u->out)
		(void)fclose(u->out);
	free(u->piece);
	free(u->sizes);
	free(u->own);
	free(u->tables.bytes);
	free(u->tables.place_at);
}

static int unpack_failed(struct unpack *u, int error)
{
	return fault_errno(u->why, error, "cannot write");
}

static int unpack_put(struct unpack *u, const void *bytes, size_t size)
{
	int r = sections_put(u->out, bytes, size);

	u->at += size;
	return r < 0 ? unpack_failed(u, r) : 0;
}

static int unpack_number(struct unpack *u, size_t size, uint64_t value)
{
	uint8_t bytes[8];

	trace_dat_put(u->in, bytes, size, value);
	return unpack_put(u, bytes, size);
}

static int unpack_fill(struct unpack *u, uint8_t byte, uint64_t size)
{
	int r = 0;

	memset(u->piece, byte, MIN(size, u->piece_size));
	for (uint64_t n; size > 0 && r >= 0; size -= n) {
		n = MIN(size, u->piece_size);
		r = unpack_put(u, u->piece, n);
	}
	return r;
}

/* Bytes of @u->in as they are */
static int unpack_range(struct unpack *u, uint64_t offset, uint64_t size)
{
	int r = 0;

	for (uint64_t n; size > 0 && r >= 0; size -= n, offset += n) {
		n = MIN(size, u->piece_size);
		r = trace_dat_read(u->in, u->piece, n, offset, u->why);
		if (r >= 0)
			r = unpack_put(u, u->piece, n);
	}
	return r;
}

/* --- where things will be */

static uint64_t *size_of(const struct unpack *u, size_t buffer, unsigned cpu)
{
	return &u->sizes[buffer * u->in->n_cpus + cpu];
}

static int measure(struct unpack *u)
{
	int r = 0;

	for (size_t i = 0; i < u->in->n_buffers; i++)
		for (unsigned cpu = 0; cpu < u->in->n_cpus && r >= 0; cpu++) {
			r = region_read_size(u->read, &u->in->buffers[i], cpu, size_of(u, i, cpu),
					     u->why);
			u->total += *size_of(u, i, cpu);
		}
	return r;
}

static int write_options(struct unpack *u, FILE *out)
{
	const struct trace_dat *in = u->in;
	int r = sections_put(out, TRACE_DAT_OPTIONS, TRACE_DAT_WORD_SIZE);

	if (r >= 0)
		r = frame_options(out, in, u->why);
	for (size_t i = 1; i < in->n_buffers && r >= 0; i++) {
		size_t n = strlen(in->buffers[i].name) + 1;

		r = frame_option(out, in, TRACE_DAT_OPTION_BUFFER, (uint32_t)(8 + n));
		u->tables.place_at[i] = (size_t)ftello(out);
		if (r >= 0)
			r = frame_number(out, in, 8, 0);
		if (r >= 0)
			r = sections_put(out, in->buffers[i].name, n);
	}
	return r < 0 ? r : frame_number(out, in, 2, TRACE_DAT_OPTION_END);
}

static int make_options(struct unpack *u)
{
	FILE *out = open_memstream(&u->tables.bytes, &u->tables.size);
	int r;

	if (!out)
		return unpack_failed(u, -ENOMEM);
	r = write_options(u, out);
	if (fclose(out) != 0 && r >= 0)
		r = unpack_failed(u, -ENOMEM);
	return r;
}

static bool has_clock(const struct trace_dat *dat)
{
	for (size_t i = 0; i < dat->n_options; i++)
		if (dat->options[i].id == TRACE_DAT_OPTION_TRACECLOCK)
			return true;
	return false;
}

/* "flyrecord", the table, the trace clock if there is one */
static uint64_t part_size(const struct trace_dat *dat)
{
	return TRACE_DAT_WORD_SIZE + (uint64_t)dat->n_cpus * TRACE_DAT_ENTRY_SIZE +
	       (has_clock(dat) ? 8 + dat->clock.size : 0);
}

/* --- the file */

/* Up to the number of CPUs; newlines behind the names put the first table on its alignment */
static int put_texts(struct unpack *u)
{
	const struct trace_dat *in = u->in;
	struct frame_text names;
	uint64_t table, fill;
	int r = unpack_range(u, 0, in->printk_formats.offset + in->printk_formats.size);

	if (r >= 0)
		r = frame_names(in, &names, u->why);
	if (r < 0)
		return r;
	table = u->at + 8 + names.text.size + names.newline + 4 + u->tables.size +
		TRACE_DAT_WORD_SIZE;
	fill = names.newline + round_up(table, TABLE_ALIGN) - table;
	r = unpack_number(u, 8, names.text.size + fill);
	if (r >= 0)
		r = unpack_range(u, names.text.offset, names.text.size);
	if (r >= 0)
		r = unpack_fill(u, '\n', fill);
	return r < 0 ? r : unpack_number(u, 4, in->n_cpus);
}

static int put_options(struct unpack *u)
{
	uint64_t part = u->at + u->tables.size + part_size(u->in);

	for (size_t i = 1; i < u->in->n_buffers; i++, part += part_size(u->in))
		trace_dat_put(u->in, u->tables.bytes + u->tables.place_at[i], 8, part);
	return unpack_put(u, u->tables.bytes, u->tables.size);
}

/* @offset: where the next region will be; set behind those of this buffer */
static int put_part(struct unpack *u, size_t i, uint64_t *offset)
{
	const struct trace_dat *in = u->in;
	int r = unpack_put(u, TRACE_DAT_FLYRECORD, TRACE_DAT_WORD_SIZE);

	for (unsigned cpu = 0; cpu < in->n_cpus && r >= 0; cpu++) {
		r = unpack_number(u, 8, *offset);
		if (r >= 0)
			r = unpack_number(u, 8, *size_of(u, i, cpu));
		*offset += *size_of(u, i, cpu);
	}
	if (r < 0 || !has_clock(in))
		return r;
	r = unpack_number(u, 8, in->clock.size);
	return r < 0 ? r : unpack_range(u, in->clock.offset, in->clock.size);
}

/* And flyrec's own section */
static int put_tables(struct unpack *u)
{
	uint64_t own, end, offset;
	int r = put_options(u);

	own = round_up(u->at + u->in->n_buffers * part_size(u->in), OWN_SECTION_ALIGN);
	end = round_up(own + u->own_size, MAX(OWN_SECTION_ALIGN, u->in->page_size));
	offset = end;
	for (size_t i = 0; i < u->in->n_buffers && r >= 0; i++)
		r = put_part(u, i, &offset);
	if (r >= 0)
		r = unpack_fill(u, 0, own - u->at);
	if (r >= 0 && u->own)
		r = unpack_put(u, u->own, u->own_size);
	return r < 0 ? r : unpack_fill(u, 0, end - u->at);
}

static int put_region(struct unpack *u, uint64_t size)
{
	int r = 0;

	for (uint64_t n; size > 0 && r >= 0; size -= n) {
		n = MIN(size, u->piece_size);
		r = region_read_next(u->read, u->piece, n, u->why);
		if (r >= 0)
			r = unpack_put(u, u->piece, n);
		if (r >= 0 && u->options->progress)
			u->options->progress(u->at, u->total);
	}
	return r;
}

static int put_data(struct unpack *u)
{
	int r = 0;

	u->total += u->at;
	for (size_t i = 0; i < u->in->n_buffers; i++)
		for (unsigned cpu = 0; cpu < u->in->n_cpus && r >= 0; cpu++) {
			uint64_t size = *size_of(u, i, cpu);

			region_read_begin(u->read, &u->in->buffers[i], cpu, size);
			r = put_region(u, size);
		}
	if (r >= 0 && fflush(u->out) != 0)
		r = unpack_failed(u, -errno);
	return r;
}

static int unpack_init(struct unpack *u, int fd)
{
	const struct trace_dat *in = u->in;

	u->piece_size = MAX(PIECE, (size_t)in->page_size);
	u->piece = aligned_alloc(REGION_READ_ALIGN, u->piece_size);
	u->read = region_read_new(in, u->told);
	u->sizes = calloc(in->n_buffers * MAX(in->n_cpus, 1U), sizeof(*u->sizes));
	u->tables.place_at = calloc(in->n_buffers, sizeof(*u->tables.place_at));
	u->out = sections_open(fd);
	return u->piece && u->read && u->sizes && u->tables.place_at && u->out
		       ? 0
		       : unpack_failed(u, -ENOMEM);
}

int unpack_file(const struct trace_dat *in, int out_fd, const struct unpack_options *options,
		struct fault *why)
{
	_cleanup_(unpack_done) struct unpack u = {
		.in = in,
		.options = options,
		.why = why,
		.told = {options->told, options->userdata},
	};
	int r = in->damages.n > 0 && !options->told
			? fault_set(why, -EBADMSG, "%s", in->damages.lines[0])
			: unpack_init(&u, out_fd);

	if (r >= 0)
		r = measure(&u);
	if (r >= 0)
		r = frame_own(in, NULL, u.told, &u.own, &u.own_size, why);
	if (r >= 0)
		r = make_options(&u);
	if (r >= 0)
		r = put_texts(&u);
	if (r >= 0)
		r = put_tables(&u);
	return r < 0 ? r : put_data(&u);
}
