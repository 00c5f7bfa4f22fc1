/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export --format=gdb-tfile of what import --format=gdb-tfile made: the same description, and the
 * frames whose events the filter lets through, each as it was.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "convert/gdb/export-gdb.h"
#include "convert/gdb/gdb-command.h"
#include "convert/gdb/gdb-record.h"
#include "formats/trace-dat.h"

struct kind {
	struct gdb_shape shape;
	uint32_t size; /* of its events; 0: not known yet */
};

struct again {
	struct export_gdb_job *job;
	struct gdb_tfile *tfile;
	struct gdb_record *record;
	bool big_endian;
	struct kind *kinds; /* by index of the format */

	bool more;
	uint64_t frames, counted; /* so far in this pass; in all of the first one */
	bool in_frame;		  /* its events are wanted */
	uint32_t frame, tracepoint;
	struct text blocks;  /* of the frame at hand */
	size_t registers_at; /* in them */
	struct fault *why;
};

static int bad_event(struct again *a, const struct decode_event *event)
{
	return fault_set(
		a->why, -EBADMSG,
		"%s: an event %s:%s of cpu %" PRIu32 " that is not as import makes it",
		a->job->dat->path, GDB_RECORD_SYSTEM,
		decoder_name(a->job->decoder, (size_t)decoder_find(a->job->decoder, event->id)),
		event->cpu);
}

static uint32_t get32(const struct again *a, const struct decode_event *event, uint32_t at)
{
	return trace_dat_u32(a->job->dat, event->data + at);
}

/* --- the description */

/* The description as a file of its own, for the one parser that there is */
static int parse_note(struct again *a, char *note, struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	char *order = note, *lines = strchr(order, '\n');

	if (!lines)
		return fault_set(why, -EBADMSG, "%s: no description of a gdb trace file",
				 a->job->dat->path);
	*lines++ = '\0';
	a->big_endian = strcmp(order, "big") == 0;
	text = strf(GDB_TFILE_MAGIC "%s\n", lines);
	if (!text)
		return -ENOMEM;
	return gdb_tfile_parse(text, strlen(text), a->job->dat->path, NULL, &a->tfile, why);
}

/* --- kinds of events */

static int learn_kind(struct again *a, size_t format)
{
	struct kind *kind = &a->kinds[format];
	size_t n = 0;
	const struct field *fields = decoder_fields(a->job->decoder, format, &n);
	const uint32_t end = GDB_RECORD_BLOCK_AT + a->record->kept;
	struct gdb_shape *shape = &kind->shape;

	*kind = (struct kind){.size = GDB_RECORD_BLOCK_AT};
	for (const struct field *f = fields; f < fields + n; f++) {
		const uint32_t at = f->offset;
		uint32_t number;

		if (at < GDB_RECORD_BLOCK_AT)
			continue;
		kind->size = MAX(kind->size, at + f->size);
		if (gdb_record_variable(a->record, a->tfile, f->name, &number) && f->size == 8 &&
		    shape->n < GDB_RECORD_VARIABLES)
			shape->variables[shape->n++] = number;
		else if (at + f->size <= end)
			shape->has_registers = true;
	}
	if (kind->size != gdb_record_size(a->record, shape))
		return fault_set(a->why, -EBADMSG, "%s: %s:%s is no format that import makes",
				 a->job->dat->path, GDB_RECORD_SYSTEM,
				 decoder_name(a->job->decoder, format));
	return 0;
}

/* --- frames */

static int end_frame(struct again *a, struct text *out)
{
	uint8_t head[GDB_TFILE_HEAD_SIZE];

	if (!a->in_frame)
		return 0;
	a->in_frame = false;
	a->frames++;
	if (!out)
		return 0;
	(void)gdb_tfile_put_frame(head, a->big_endian, a->tracepoint, (uint32_t)a->blocks.size);
	text_bytes(out, head, sizeof(head));
	text_bytes(out, a->blocks.bytes, a->blocks.size);
	return a->blocks.no_memory ? -ENOMEM : 0;
}

static int end_pass(void *userdata, struct text *out)
{
	struct again *a = userdata;
	int r = end_frame(a, out);

	a->counted = a->frames;
	a->frames = 0;
	return r;
}

static void put_variable(struct again *a, uint32_t number, uint64_t value)
{
	uint8_t block[GDB_TFILE_VARIABLE_SIZE];

	(void)gdb_tfile_put_variable(block, a->big_endian, number, value);
	text_bytes(&a->blocks, block, sizeof(block));
}

static int begin_frame(struct again *a, const struct decode_event *event, size_t format,
		       bool writing)
{
	const struct trace_dat *dat = a->job->dat;
	const struct kind *kind = &a->kinds[format];
	uint32_t at = GDB_RECORD_BLOCK_AT;
	int r;

	r = kind->size ? 0 : learn_kind(a, format);
	if (r < 0)
		return r;
	if (event->size < kind->size)
		return bad_event(a, event);
	a->in_frame = true;
	a->frame = get32(a, event, GDB_RECORD_FRAME_AT);
	a->tracepoint = get32(a, event, GDB_RECORD_TRACEPOINT_AT);
	if (a->tracepoint == 0 || a->tracepoint > GDB_TFILE_MAX_NUMBER)
		return bad_event(a, event);
	a->blocks.size = 0;
	if (!writing)
		return 0;
	if (kind->shape.has_registers) {
		text_char(&a->blocks, 'R');
		a->registers_at = a->blocks.size;
		text_bytes(&a->blocks, event->data + at, a->record->kept);
		text_fill(&a->blocks, '\0', a->tfile->register_size - a->record->kept);
		if (a->blocks.no_memory)
			return -ENOMEM;
		if (a->big_endian != dat->big_endian)
			gdb_record_swap(a->record, (uint8_t *)a->blocks.bytes + a->registers_at);
		at += a->record->kept;
	}
	for (uint32_t i = 0; i < kind->shape.n; i++, at += 8)
		put_variable(a, kind->shape.variables[i], trace_dat_u64(dat, event->data + at));
	return 0;
}

/* The bytes that a __data_loc at @at means */
static const uint8_t *data_of(const struct again *a, const struct decode_event *event, uint32_t at,
			      uint32_t *ret_size)
{
	const uint32_t word = get32(a, event, at), begin = word & 0xffff, n = word >> 16;

	if (begin > event->size || n > event->size - begin)
		return NULL;
	*ret_size = n;
	return event->data + begin;
}

static int more_registers(struct again *a, const struct decode_event *event)
{
	const uint32_t from = get32(a, event, GDB_RECORD_REGISTERS_FROM_AT);
	const uint8_t *bytes;
	uint32_t n;

	bytes = data_of(a, event, GDB_RECORD_REGISTERS_DATA_AT, &n);
	if (!bytes || from > a->tfile->register_size || n > a->tfile->register_size - from ||
	    a->blocks.size < a->registers_at + a->tfile->register_size)
		return bad_event(a, event);
	memcpy(a->blocks.bytes + a->registers_at + from, bytes, n);
	return 0;
}

static int put_memory(struct again *a, const struct decode_event *event)
{
	uint8_t head[GDB_TFILE_MEMORY_SIZE];
	const uint8_t *bytes;
	uint32_t n;

	bytes = data_of(a, event, GDB_RECORD_MEMORY_DATA_AT, &n);
	if (!bytes)
		return bad_event(a, event);
	*head = 'M';
	gdb_tfile_set(head + 1, 8, a->big_endian,
		      trace_dat_u64(a->job->dat, event->data + GDB_RECORD_MEMORY_ADDRESS_AT));
	gdb_tfile_set(head + 9, 2, a->big_endian, n);
	text_bytes(&a->blocks, head, sizeof(head));
	text_bytes(&a->blocks, bytes, n);
	return 0;
}

/* What belongs to the frame before */
static int add_to_frame(struct again *a, const struct decode_event *event, bool writing)
{
	static const uint32_t sizes[] = {GDB_RECORD_MEMORY_SIZE, GDB_RECORD_REGISTERS_SIZE,
					 GDB_RECORD_VARIABLE_SIZE};
	const uint32_t id = event->id;

	if (event->size < sizes[id - GDB_RECORD_MEMORY_ID])
		return bad_event(a, event);
	if (!a->in_frame || get32(a, event, GDB_RECORD_FRAME_AT) != a->frame || !writing)
		return 0;
	if (id == GDB_RECORD_REGISTERS_ID)
		return more_registers(a, event);
	if (id == GDB_RECORD_MEMORY_ID)
		return put_memory(a, event);
	put_variable(a, get32(a, event, GDB_RECORD_VARIABLE_AT),
		     trace_dat_u64(a->job->dat, event->data + GDB_RECORD_VARIABLE_VALUE_AT));
	return 0;
}

static int take(void *userdata, const struct decode_event *event, struct text *out,
		struct fault *why)
{
	struct again *a = userdata;
	const struct export_gdb_job *job = a->job;
	const int32_t format = decoder_find(job->decoder, event->id);
	int r;

	(void)why; /* a->why */
	if (event->ts > job->filter->to)
		return EXPORT_GDB_ENOUGH;
	if (format < 0 ||
	    strcmp(job->dat->systems[job->dat->formats[format].system], GDB_RECORD_SYSTEM) != 0)
		return 0;
	if (event->id >= GDB_RECORD_MEMORY_ID && event->id < GDB_RECORD_FIRST_ID)
		return add_to_frame(a, event, out);
	r = end_frame(a, out);
	if (r < 0 || !event_filter_wants(job->filter, event))
		return r;
	if (job->max_frames && a->frames == job->max_frames) {
		a->more = true;
		return EXPORT_GDB_ENOUGH;
	}
	if (event->size < GDB_RECORD_BLOCK_AT)
		return bad_event(a, event);
	return begin_frame(a, event, (size_t)format, out);
}

/* --- output */

/* The status as it was, but for the number of frames */
static void put_status(const struct again *a, const char *line, FILE *out)
{
	static const char *const keys[] = {"tframes:", "tcreated:"};

	while (*line) {
		size_t n = strcspn(line, ";");
		const char *key = NULL;

		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			if (strncmp(line, keys[i], strlen(keys[i])) == 0)
				key = keys[i];
		if (key)
			(void)fprintf(out, "%s%" PRIx64, key, a->counted);
		else
			(void)fwrite(line, 1, n, out);
		line += n;
		if (*line)
			(void)putc(*line++, out);
	}
	(void)putc('\n', out);
}

static void put_head(void *userdata, FILE *out)
{
	const struct again *a = userdata;

	(void)fwrite(GDB_TFILE_MAGIC, 1, GDB_TFILE_MAGIC_SIZE, out);
	for (size_t i = 0; i < a->tfile->n_lines; i++) {
		const char *line = a->tfile->lines[i];

		if (strncmp(line, "status ", 7) == 0)
			put_status(a, line, out);
		else
			(void)fprintf(out, "%s\n", line);
	}
	(void)putc('\n', out);
}

static void put_command(void *userdata, FILE *out)
{
	const struct again *a = userdata;

	gdb_command_write(out, a->job->tfile, NULL, 0);
}

static int run(struct again *a)
{
	static const struct export_gdb_maker maker = {
		.all = true,
		.take = take,
		.end_pass = end_pass,
		.put_head = put_head,
		.put_command = put_command,
	};

	a->kinds = calloc(MAX(a->job->dat->n_formats, (size_t)1), sizeof(*a->kinds));
	if (!a->kinds || gdb_record_new(a->tfile, &a->record) < 0)
		return -ENOMEM;
	return export_gdb_write(a->job, &maker, a, a->why);
}

int export_gdb_again(struct export_gdb_job *job, bool *ret_done, struct fault *why)
{
	_cleanup_free_ char *note = NULL;
	struct again a = {.job = job, .why = why};
	size_t from = 0;
	int r;

	*why = (struct fault){};
	*ret_done = false;
	r = trace_dat_next_note(job->dat, GDB_RECORD_NOTE, &from, &note, why);
	if (r <= 0)
		return r;
	*ret_done = true;
	r = parse_note(&a, note, why);
	if (r >= 0)
		r = run(&a);
	if (r == 0 && a.more)
		export_gdb_notice(job, "not all frames were written, see --max-frames=");
	text_done(&a.blocks);
	gdb_tfile_free(a.tfile);
	gdb_record_free(a.record);
	free(a.kinds);
	return export_gdb_result(job, r, why);
}
