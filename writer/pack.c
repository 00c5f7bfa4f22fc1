/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "basic/io.h"
#include "formats/trace-dat-data.h"
#include "formats/trace-dat-sections.h"
#include "formats/trace-dat-v7.h"
#include "writer/compressor.h"
#include "writer/frame.h"
#include "writer/pack.h"
#include "writer/region-read.h"
#include "writer/sections.h"

#define CLOCK_MAX 4096
#define PIECE	  (256 * KIB)	     /* of a section */
#define BEHIND	  ((off_t)(8 * MIB)) /* are written to the disk while the next ones are made */

/* A chunk of the new file */
struct chunk {
	uint64_t timestamp; /* of its first sub-buffer */
	uint64_t place;	    /* of its head */
	uint32_t packed, unpacked;
};

/* A CPU's data there */
struct area {
	uint32_t cpu;
	uint32_t n_chunks;
	uint64_t raw;		/* bytes */
	uint64_t place, length; /* in the file */
};

struct buffer {
	uint64_t section; /* its place */
	struct area *areas;
	size_t n_areas;
};

struct pack {
	const struct trace_dat *in;
	const struct pack_options *options;
	struct fault *why;
	struct region_read_told told;
	struct region_read *read;
	struct compressor *compressor; /* NULL: it is not compressed */
	int fd;
	FILE *out;
	uint64_t offset_at;			   /* where the place of the options goes */
	uint64_t sections[_TRACE_DAT_SECTION_MAX]; /* their places */
	uint64_t *kept;				   /* [in->n_kept] */
	struct buffer *buffers;			   /* [in->n_buffers] */
	struct chunk *chunks;			   /* in the order of buffers and CPUs */
	size_t n_chunks;
	size_t chunk;
	uint8_t *raw, *packed; /* one chunk each, packed with its head */
	off_t done_behind;     /* up to here it is written back */
	off_t behind;	       /* up to here writing back has begun */
	struct pack_result result;
};

static void pack_done(struct pack *p)
{
	for (size_t i = 0; p->buffers && i < p->in->n_buffers; i++)
		free(p->buffers[i].areas);
	free(p->buffers);
	free(p->kept);
	free(p->chunks);
	free(p->raw);
	free(p->packed);
	if (p->out)
		(void)fclose(p->out);
	compressor_free(p->compressor);
	region_read_free(p->read);
}

static int pack_failed(struct pack *p, int error)
{
	return fault_errno(p->why, error, "cannot write");
}

static int pack_cancelled(const struct pack *p)
{
	const atomic_bool *cancel = p->options->cancel;

	return cancel && atomic_load(cancel) ? fault_set(p->why, -ECANCELED, "stopped") : 0;
}

/* --- bytes of the new file */

static uint64_t pack_at(const struct pack *p)
{
	return (uint64_t)ftello(p->out);
}

static int pack_put(struct pack *p, const void *bytes, size_t size)
{
	int r = sections_put(p->out, bytes, size);

	return r < 0 ? pack_failed(p, r) : 0;
}

static int pack_number(struct pack *p, size_t size, uint64_t value)
{
	int r = frame_number(p->out, p->in, size, value);

	return r < 0 ? pack_failed(p, r) : 0;
}

/* A number that was not known when it was written */
static int pack_patch(struct pack *p, uint64_t place, size_t size, uint64_t value)
{
	uint8_t bytes[8];
	int r;

	trace_dat_put(p->in, bytes, size, value);
	r = fflush(p->out) != 0 ? -errno : io_pwrite_all(p->fd, bytes, size, place);
	return r < 0 ? pack_failed(p, r) : 0;
}

/* What was written some time ago is on the disk by now, and out of the page cache */
static void pack_write_behind(struct pack *p)
{
	const unsigned wait =
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
	off_t at = (off_t)pack_at(p), before = p->behind - p->done_behind;

	if (at - p->behind < BEHIND || fflush(p->out) != 0)
		return;
	(void)sync_file_range(p->fd, p->behind, at - p->behind, SYNC_FILE_RANGE_WRITE);
	if (before > 0 && sync_file_range(p->fd, p->done_behind, before, wait) >= 0)
		(void)posix_fadvise(p->fd, p->done_behind, before, POSIX_FADV_DONTNEED);
	p->done_behind = p->behind;
	p->behind = at;
}

/* --- sections */

static const struct {
	uint16_t id;
	const char *text;
} descriptions[] = {
	{TRACE_DAT_SECTION_HEADERS, "headers"},
	{TRACE_DAT_SECTION_FTRACE, "ftrace events"},
	{TRACE_DAT_SECTION_EVENTS, "events format"},
	{TRACE_DAT_SECTION_KALLSYMS, "kallsyms"},
	{TRACE_DAT_SECTION_PRINTK, "printk"},
	{TRACE_DAT_SECTION_CMDLINES, "command lines"},
	{TRACE_DAT_SECTION_BUFFER, "buffer flyrecord"},
	{TRACE_DAT_V7_OWN, "flyrec"},
	{TRACE_DAT_SECTION_OPTIONS, "options"},
	{TRACE_DAT_SECTION_STRINGS, "strings"},
	{0, "other"}, /* of those that are not in this list */
};

/* Where its description is in the section of strings */
static uint32_t description_at(uint16_t id)
{
	size_t at = 0;

	for (size_t i = 0; i + 1 < ARRAY_SIZE(descriptions) && descriptions[i].id != id; i++)
		at += strlen(descriptions[i].text) + 1;
	return (uint32_t)at;
}

static int section_begin(struct pack *p, uint16_t id, bool packed, uint64_t *ret_place)
{
	int r;

	*ret_place = pack_at(p);
	r = pack_number(p, 2, id);
	if (r >= 0)
		r = pack_number(p, 2, packed ? TRACE_DAT_SECTION_PACKED : 0);
	if (r >= 0)
		r = pack_number(p, 4, description_at(id));
	return r < 0 ? r : pack_number(p, 8, 0);
}

static int section_end(struct pack *p, uint64_t place)
{
	return pack_patch(p, place + TRACE_DAT_SECTION_SIZE_AT, 8,
			  pack_at(p) - place - TRACE_DAT_SECTION_HEAD);
}

/* A section that is one block of @size bytes, which are fed to it */
static int block_begin(struct pack *p, uint16_t id, uint64_t size, uint64_t *ret_place)
{
	int r;

	if (size > DATA_SECTION_MAX)
		return fault_set(p->why, -EFBIG, "%s: a section of %" PRIu64 " bytes is too long",
				 p->in->path, size);
	r = section_begin(p, id, p->compressor, ret_place);
	if (r < 0 || !p->compressor)
		return r;
	r = pack_number(p, 4, 0);
	if (r >= 0)
		r = pack_number(p, 4, size);
	return r < 0 ? r : compressor_begin(p->compressor, size, p->why);
}

static int block_feed(struct pack *p, const void *bytes, size_t size, bool end)
{
	return p->compressor ? compressor_put(p->compressor, bytes, size, end, p->out, p->why)
			     : pack_put(p, bytes, size);
}

static int block_end(struct pack *p, uint64_t place)
{
	uint64_t begin = place + TRACE_DAT_SECTION_HEAD;
	int r = 0;

	if (p->compressor)
		r = pack_patch(p, begin, 4, pack_at(p) - begin - TRACE_DAT_PACKED_HEAD);
	return r < 0 ? r : section_end(p, place);
}

static int put_block(struct pack *p, uint16_t id, const void *bytes, size_t size,
		     uint64_t *ret_place)
{
	int r = block_begin(p, id, size, ret_place);

	if (r >= 0)
		r = block_feed(p, bytes, size, true);
	return r < 0 ? r : block_end(p, *ret_place);
}

static int put_text(struct pack *p, uint16_t id, const struct frame_text *text, uint64_t *ret_place)
{
	uint64_t size = text->text.size;
	int r = block_begin(p, id, text->prefix_size + size + text->newline, ret_place);

	if (r >= 0)
		r = block_feed(p, text->prefix, text->prefix_size, size == 0 && !text->newline);
	for (uint64_t done = 0; done < size && r >= 0;) {
		size_t n = MIN(size - done, PIECE);

		r = pack_cancelled(p);
		if (r >= 0)
			r = trace_dat_read(p->in, p->raw, n, text->text.offset + done, p->why);
		done += n;
		if (r >= 0)
			r = block_feed(p, p->raw, n, done == size && !text->newline);
	}
	if (r >= 0 && text->newline)
		r = block_feed(p, "\n", 1, true);
	return r < 0 ? r : block_end(p, *ret_place);
}

static uint64_t behind(const struct trace_dat_extent *extent)
{
	return extent->offset + extent->size;
}

/* Where the formats of ftrace's own events end, which are the first ones */
static uint64_t ftrace_end(const struct trace_dat *dat)
{
	uint64_t end = behind(&dat->header_event) + sizeof(uint32_t);

	for (size_t i = 0; i < dat->n_formats && dat->formats[i].system == 0; i++)
		end = behind(&dat->formats[i].text);
	return end;
}

/* What version 6 has in one piece; the size of each text belongs to it */
static int put_texts(struct pack *p)
{
	const struct trace_dat *in = p->in;
	const uint64_t ends[] = {
		TRACE_DAT_FILE_HEAD,   behind(&in->header_event),
		ftrace_end(in),	       in->kallsyms.offset - sizeof(uint32_t),
		behind(&in->kallsyms), behind(&in->printk_formats),
	};
	struct frame_text names;
	int r = 0;

	for (size_t i = 0; i + 1 < ARRAY_SIZE(ends) && r >= 0; i++) {
		const struct frame_text text = {.text = {ends[i], ends[i + 1] - ends[i]}};

		r = put_text(p, (uint16_t)(TRACE_DAT_SECTION_HEADERS + i), &text,
			     &p->sections[TRACE_DAT_SECTION_HEADERS + i]);
	}
	if (r >= 0)
		r = frame_names(in, &names, p->why);
	return r < 0 ? r
		     : put_text(p, TRACE_DAT_SECTION_CMDLINES, &names,
				&p->sections[TRACE_DAT_SECTION_CMDLINES]);
}

/* Sections that only version 7 has, as they are */
static int put_kept(struct pack *p)
{
	int r = 0;

	for (size_t i = 0; i < p->in->n_kept && r >= 0; i++) {
		const struct frame_text text = {.text = p->in->kept[i].data};

		r = put_text(p, p->in->kept[i].id, &text, &p->kept[i]);
	}
	return r;
}

/* --- the data of CPUs */

static int put_chunk(struct pack *p, size_t size)
{
	struct chunk chunk = {
		.timestamp = trace_dat_u64(p->in, p->raw),
		.place = pack_at(p),
		.unpacked = (uint32_t)size,
	};
	size_t n;
	int r = compressor_block(p->compressor, p->raw, size, p->packed + DATA_CHUNK_HEAD, &n,
				 p->why);

	if (r < 0)
		return r;
	chunk.packed = (uint32_t)n;
	trace_dat_put(p->in, p->packed, 4, n);
	trace_dat_put(p->in, p->packed + 4, 4, size);
	r = array_grow(&p->chunks, p->n_chunks, sizeof(chunk));
	if (r < 0)
		return pack_failed(p, r);
	p->chunks[p->n_chunks++] = chunk;
	return pack_put(p, p->packed, DATA_CHUNK_HEAD + n);
}

/* Where they are not compressed readers map them, in whole pages */
static int align_area(struct pack *p)
{
	uint64_t at = pack_at(p), end = round_up(at, p->in->page_size);

	memset(p->packed, 0, end - at);
	return pack_put(p, p->packed, end - at);
}

static int put_data(struct pack *p, struct area *area)
{
	int r = p->compressor ? pack_number(p, 4, area->n_chunks) : 0;

	for (uint64_t done = 0; done < area->raw && r >= 0;) {
		size_t n = MIN(area->raw - done, p->chunk);

		r = pack_cancelled(p);
		if (r >= 0)
			r = region_read_next(p->read, p->raw, n, p->why);
		if (r >= 0)
			r = p->compressor ? put_chunk(p, n) : pack_put(p, p->raw, n);
		pack_write_behind(p);
		done += n;
	}
	area->length = pack_at(p) - area->place;
	p->result.raw_bytes += area->raw;
	p->result.packed_bytes += area->length;
	return r;
}

static int put_area(struct pack *p, size_t i, unsigned cpu)
{
	struct area area = {.cpu = cpu};
	struct buffer *b = &p->buffers[i];
	int r = region_read_size(p->read, &p->in->buffers[i], cpu, &area.raw, p->why);

	if (r < 0 || area.raw == 0)
		return r;
	if (!p->compressor)
		r = align_area(p);
	if (r < 0)
		return r;
	area.place = pack_at(p);
	area.n_chunks = (uint32_t)((area.raw + p->chunk - 1) / p->chunk);
	region_read_begin(p->read, &p->in->buffers[i], cpu, area.raw);
	r = put_data(p, &area);
	if (r < 0)
		return r;
	r = array_grow(&b->areas, b->n_areas, sizeof(area));
	if (r < 0)
		return pack_failed(p, r);
	b->areas[b->n_areas++] = area;
	return 0;
}

static int put_buffers(struct pack *p)
{
	int r = 0;

	for (size_t i = 0; i < p->in->n_buffers && r >= 0; i++) {
		uint64_t *section = &p->buffers[i].section;

		r = section_begin(p, TRACE_DAT_SECTION_BUFFER, p->compressor, section);
		for (unsigned cpu = 0; cpu < p->in->n_cpus && r >= 0; cpu++)
			r = put_area(p, i, cpu);
		if (r >= 0)
			r = section_end(p, *section);
	}
	return r;
}

/* --- flyrec's own section */

static int write_index(struct pack *p, FILE *out)
{
	const struct trace_dat *in = p->in;
	int r = frame_number(out, in, 4, in->n_buffers);

	if (r >= 0)
		r = frame_number(out, in, 4, 0);
	for (size_t i = 0; i < in->n_buffers && r >= 0; i++) {
		const struct buffer *b = &p->buffers[i];

		r = frame_number(out, in, 4, b->n_areas);
		if (r >= 0)
			r = frame_number(out, in, 4, 0);
		for (size_t k = 0; k < b->n_areas && r >= 0; k++) {
			r = frame_number(out, in, 4, b->areas[k].cpu);
			if (r >= 0)
				r = frame_number(out, in, 4, b->areas[k].n_chunks);
		}
	}
	for (size_t i = 0; i < p->n_chunks && r >= 0; i++) {
		const struct chunk *c = &p->chunks[i];

		r = frame_number(out, in, 8, c->timestamp);
		if (r >= 0)
			r = frame_number(out, in, 8, c->place);
		if (r >= 0)
			r = frame_number(out, in, 4, c->packed);
		if (r >= 0)
			r = frame_number(out, in, 4, c->unpacked);
	}
	return r;
}

static int make_index(struct pack *p, char **ret, size_t *ret_size)
{
	FILE *out = open_memstream(ret, ret_size);
	int r = out ? write_index(p, out) : -ENOMEM;

	if (out && fclose(out) != 0 && r >= 0)
		r = -ENOMEM;
	return r < 0 ? pack_failed(p, r) : 0;
}

static int put_own(struct pack *p)
{
	_cleanup_free_ char *index = NULL;
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t index_size = 0, size = 0;
	struct own_entry entry = {.kind = OWN_INDEX};
	uint64_t place;
	int r = p->compressor ? make_index(p, &index, &index_size) : 0;

	entry.size = (uint32_t)index_size;
	entry.data = (const uint8_t *)index;
	if (r >= 0)
		r = frame_own(p->in, index ? &entry : NULL, p->told, &bytes, &size, p->why);
	if (r < 0 || size == 0)
		return r;
	r = section_begin(p, TRACE_DAT_V7_OWN, false, &place);
	if (r >= 0)
		r = pack_put(p, bytes, size);
	return r < 0 ? r : section_end(p, place);
}

/* --- options */

static int put_buffer_option(struct pack *p, FILE *out, size_t i, const char *clock)
{
	const struct trace_dat *in = p->in;
	const struct buffer *b = &p->buffers[i];
	size_t name = strlen(in->buffers[i].name) + 1, n = strlen(clock) + 1;
	int r = frame_option(out, in, TRACE_DAT_OPTION_BUFFER,
			     (uint32_t)(8 + name + n + 8 + 20 * b->n_areas));

	if (r >= 0)
		r = frame_number(out, in, 8, b->section);
	if (r >= 0)
		r = sections_put(out, in->buffers[i].name, name);
	if (r >= 0)
		r = sections_put(out, clock, n);
	if (r >= 0)
		r = frame_number(out, in, 4, in->page_size);
	if (r >= 0)
		r = frame_number(out, in, 4, b->n_areas);
	for (size_t k = 0; k < b->n_areas && r >= 0; k++) {
		r = frame_number(out, in, 4, b->areas[k].cpu);
		if (r >= 0)
			r = frame_number(out, in, 8, b->areas[k].place);
		if (r >= 0)
			r = frame_number(out, in, 8, b->areas[k].length);
	}
	return r;
}

/* The clock in use: trace-cmd has it in the option, and "[local]" behind each table */
static int clock_name(struct pack *p, char **ret)
{
	_cleanup_free_ char *option = NULL, *text = NULL, *name = NULL;
	int r = trace_dat_load_option(p->in, TRACE_DAT_OPTION_TRACECLOCK, CLOCK_MAX, &option,
				      p->why);

	if (r > 0)
		name = trace_dat_clock_name(option);
	if (r >= 0 && (!name || !*name)) {
		r = trace_dat_clock(p->in, &text, p->why);
		free(name);
		name = r < 0 ? NULL : trace_dat_clock_name(text);
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(name);
	return *ret ? 0 : pack_failed(p, -ENOMEM);
}

static int write_options(struct pack *p, FILE *out)
{
	const struct trace_dat *in = p->in;
	_cleanup_free_ char *clock = NULL;
	int r = clock_name(p, &clock);

	for (unsigned id = TRACE_DAT_SECTION_HEADERS; id < _TRACE_DAT_SECTION_MAX && r >= 0; id++) {
		r = frame_option(out, in, (uint16_t)id, 8);
		if (r >= 0)
			r = frame_number(out, in, 8, p->sections[id]);
	}
	for (size_t i = 0; i < in->n_kept && r >= 0; i++) {
		r = frame_option(out, in, in->kept[i].id, 8);
		if (r >= 0)
			r = frame_number(out, in, 8, p->kept[i]);
	}
	if (r >= 0)
		r = frame_options(out, in, p->why);
	for (size_t i = 0; i < in->n_buffers && r >= 0; i++)
		r = put_buffer_option(p, out, i, clock);
	if (r >= 0)
		r = frame_option(out, in, TRACE_DAT_OPTION_END, 8);
	return r < 0 ? r : frame_number(out, in, 8, 0);
}

static int put_options(struct pack *p, uint64_t *ret_place)
{
	_cleanup_free_ char *bytes = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&bytes, &size);
	int r;

	if (!out)
		return pack_failed(p, -ENOMEM);
	r = write_options(p, out);
	if (fclose(out) != 0 && r >= 0)
		r = pack_failed(p, -ENOMEM);
	return r < 0 ? r : put_block(p, TRACE_DAT_SECTION_OPTIONS, bytes, size, ret_place);
}

/* --- the file */

static int put_head(struct pack *p)
{
	const char *name = p->compressor ? "zstd" : "none";
	const char *version = p->compressor ? compressor_version() : "";
	int r = pack_put(p, TRACE_DAT_MAGIC, TRACE_DAT_MAGIC_SIZE);

	if (r >= 0)
		r = pack_put(p, "7", 2);
	if (r >= 0)
		r = pack_number(p, 1, p->in->big_endian);
	if (r >= 0)
		r = pack_number(p, 1, p->in->long_size);
	if (r >= 0)
		r = pack_number(p, 4, p->in->page_size);
	if (r >= 0)
		r = pack_put(p, name, strlen(name) + 1);
	if (r >= 0)
		r = pack_put(p, version, strlen(version) + 1);
	p->offset_at = pack_at(p);
	return r < 0 ? r : pack_number(p, 8, 0);
}

static int put_strings(struct pack *p)
{
	uint64_t place;
	int r = section_begin(p, TRACE_DAT_SECTION_STRINGS, false, &place);

	for (size_t i = 0; i < ARRAY_SIZE(descriptions) && r >= 0; i++)
		r = pack_put(p, descriptions[i].text, strlen(descriptions[i].text) + 1);
	return r < 0 ? r : section_end(p, place);
}

static int sync_file(struct pack *p)
{
	if (fflush(p->out) != 0 || fdatasync(p->fd) < 0)
		return pack_failed(p, -errno);
	(void)posix_fadvise(p->fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

static int write_file(struct pack *p)
{
	uint64_t options;
	int r = put_head(p);

	if (r >= 0)
		r = put_texts(p);
	if (r >= 0)
		r = put_kept(p);
	if (r >= 0)
		r = put_buffers(p);
	if (r >= 0)
		r = put_own(p);
	if (r >= 0)
		r = put_options(p, &options);
	if (r >= 0)
		r = put_strings(p);
	p->result.file_bytes = pack_at(p);
	if (r >= 0)
		r = sync_file(p);
	if (r >= 0)
		r = pack_patch(p, p->offset_at, 8, options);
	return r < 0 ? r : sync_file(p);
}

/* --- reading it again */

static int differs(struct pack *p, uint64_t offset, const char *what)
{
	return fault_set(p->why, -EBADMSG, "%s: offset %s: %s, read again from the new file, %s",
			 p->in->path, trace_dat_at(p->in, offset).text, what, "is not the same");
}

static int check_same(struct pack *p, const struct trace_dat_extent *old,
		      const struct trace_dat *new, const struct trace_dat_extent *again,
		      const char *what)
{
	int r = old->size == again->size ? 0 : differs(p, old->offset, what);

	for (uint64_t at = 0; at < old->size && r >= 0; at += PIECE) {
		size_t n = MIN(old->size - at, PIECE);

		r = trace_dat_read(p->in, p->raw, n, old->offset + at, p->why);
		if (r >= 0)
			r = trace_dat_read(new, p->packed, n, again->offset + at, p->why);
		if (r >= 0 && memcmp(p->raw, p->packed, n) != 0)
			r = differs(p, old->offset + at, what);
	}
	return r;
}

/* Everything in front of the task names, as version 6 has it, and what it does not have */
static int check_texts(struct pack *p, const struct trace_dat *new)
{
	const struct trace_dat *in = p->in;
	const struct trace_dat_extent head = {0, behind(&in->printk_formats)};
	const struct trace_dat_extent again = {0, behind(&new->printk_formats)};
	int r = check_same(p, &head, new, &again, "the header");

	if (r >= 0 && new->n_kept != in->n_kept)
		r = differs(p, 0, "the list of other sections");
	for (size_t i = 0; i < in->n_kept && r >= 0; i++)
		r = check_same(p, &in->kept[i].data, new, &new->kept[i].data, "a section");
	return r;
}

/* A number where it was written, as readers find it that know no index */
static int check_number(struct pack *p, uint64_t place, uint32_t value)
{
	uint8_t bytes[4];
	int r = io_pread_all(p->fd, bytes, sizeof(bytes), place);

	if (r < 0)
		return fault_errno(p->why, r, "cannot read the new file");
	return trace_dat_u32(p->in, bytes) == value
		       ? 0
		       : fault_set(p->why, -EBADMSG,
				   "%s: the new file has another number at 0x%" PRIx64, p->in->path,
				   place);
}

/* @n bytes at @at, which are a chunk if it is compressed. Not through the cache of @new. */
static int read_again(struct pack *p, const struct trace_dat *new, uint64_t at, size_t n,
		      const struct chunk *chunk)
{
	int r;

	if (!chunk)
		return trace_dat_read(new, p->packed, n, at, p->why);
	if (chunk->unpacked != n || trace_dat_data_place(new->data, at).offset != chunk->place)
		return fault_set(p->why, -EBADMSG, "%s: the new file has no chunk at 0x%" PRIx64,
				 p->in->path, chunk->place);
	r = check_number(p, chunk->place, chunk->packed);
	if (r >= 0)
		r = check_number(p, chunk->place + 4, chunk->unpacked);
	return r < 0 ? r
		     : trace_dat_data_unpack(new->data, chunk->place + DATA_CHUNK_HEAD,
					     chunk->packed, p->packed, n, p->why);
}

static int check_area(struct pack *p, const struct trace_dat *new, size_t i,
		      const struct area *area, const struct chunk **chunk)
{
	const struct trace_dat_region *from = &p->in->buffers[i].regions[area->cpu];
	const struct trace_dat_region *region = &new->buffers[i].regions[area->cpu];
	int r = region->size == area->raw ? 0 : differs(p, from->offset, "a region");

	if (r >= 0 && p->compressor)
		r = check_number(p, area->place, area->n_chunks);
	region_read_begin(p->read, &p->in->buffers[i], area->cpu, area->raw);
	for (uint64_t done = 0; done < area->raw && r >= 0; done += p->chunk) {
		size_t n = MIN(area->raw - done, p->chunk);

		r = pack_cancelled(p);
		if (r >= 0)
			r = region_read_next(p->read, p->raw, n, p->why);
		if (r >= 0)
			r = read_again(p, new, region->offset + done, n,
				       p->compressor ? (*chunk)++ : NULL);
		if (r >= 0 && memcmp(p->raw, p->packed, n) != 0)
			r = differs(p, from->offset + done, "a region");
	}
	return r;
}

/* What was damaged has been told */
static void tell_nobody(void *userdata, const char *line)
{
}

static int check_file(struct pack *p)
{
	_cleanup_trace_dat_ struct trace_dat *new = NULL;
	const struct chunk *chunk = p->chunks;
	int r = trace_dat_open_fd(p->fd, "the new file", &new, p->why);

	if (r < 0)
		return r;
	if (new->damages.n > 0)
		return fault_set(p->why, -EBADMSG, "%s", new->damages.lines[0]);
	if (new->n_buffers != p->in->n_buffers)
		return differs(p, 0, "the list of ring buffers");
	region_read_free(p->read);
	if (p->told.told)
		p->told.told = tell_nobody;
	p->read = region_read_new(p->in, p->told);
	if (!p->read)
		return pack_failed(p, -ENOMEM);
	r = check_texts(p, new);
	for (size_t i = 0; i < p->in->n_buffers && r >= 0; i++) {
		const struct buffer *b = &p->buffers[i];

		if (strcmp(p->in->buffers[i].name, new->buffers[i].name) != 0)
			r = differs(p, 0, "the name of a ring buffer");
		for (size_t k = 0; k < b->n_areas && r >= 0; k++)
			r = check_area(p, new, i, &b->areas[k], &chunk);
	}
	(void)posix_fadvise(p->fd, 0, 0, POSIX_FADV_DONTNEED);
	return r;
}

static size_t chunk_size(const struct trace_dat *in, uint32_t wanted)
{
	return MAX((size_t)round_down(MIN(wanted, DATA_CHUNK_MAX), in->page_size),
		   (size_t)in->page_size);
}

static int pack_init(struct pack *p)
{
	size_t room = MAX(p->chunk, (size_t)PIECE);
	int r = p->options->level ? compressor_new(p->options->level, &p->compressor, p->why) : 0;

	if (r < 0)
		return r;
	p->read = region_read_new(p->in, p->told);
	p->buffers = calloc(p->in->n_buffers, sizeof(*p->buffers));
	p->kept = calloc(MAX(p->in->n_kept, (size_t)1), sizeof(*p->kept));
	p->raw = aligned_alloc(REGION_READ_ALIGN, round_up(room, REGION_READ_ALIGN));
	p->packed = malloc(DATA_CHUNK_HEAD + compressor_bound(room));
	p->out = sections_open(p->fd);
	return p->read && p->buffers && p->kept && p->raw && p->packed && p->out
		       ? 0
		       : pack_failed(p, -ENOMEM);
}

int pack_file(const struct trace_dat *in, int out_fd, const struct pack_options *options,
	      struct pack_result *ret, struct fault *why)
{
	_cleanup_(pack_done) struct pack p = {
		.in = in,
		.options = options,
		.why = why,
		.told = {options->told, options->userdata},
		.fd = out_fd,
		.chunk = chunk_size(in, options->chunk),
	};
	int r = in->damages.n > 0 && !options->told
			? fault_set(why, -EBADMSG, "%s", in->damages.lines[0])
			: pack_init(&p);

	if (r >= 0)
		r = write_file(&p);
	if (r >= 0 && options->check)
		r = check_file(&p);
	if (r >= 0)
		*ret = p.result;
	return r;
}
