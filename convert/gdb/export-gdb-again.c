/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export --format=gdb-tfile of what import --format=gdb-tfile made: the same description, and the
 * frames whose events the filter lets through, each as it was.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "convert/gdb/export-gdb.h"
#include "convert/gdb/gdb-record.h"
#include "decode/event-stream.h"
#include "decode/text.h"
#include "formats/trace-dat.h"

#define OUTPUT_SIZE MIB

/* Where a kind of frame has its variables */
struct kind {
	bool known, has_registers;
	uint32_t n;
	uint32_t numbers[GDB_RECORD_VARIABLES];
	uint32_t size; /* of its events */
};

struct again {
	struct export_gdb_job *job;
	struct gdb_tfile *tfile;
	struct gdb_record *record;
	bool big_endian;
	struct kind *kinds; /* by index of the format */

	bool writing; /* else counting */
	bool more;
	uint64_t frames;
	bool in_frame; /* its events are wanted */
	uint32_t frame, tracepoint;
	struct text blocks;  /* of the frame at hand */
	size_t registers_at; /* in them */
	struct text output;
	struct fault *why;
};

static int no_memory(struct again *a)
{
	return fault_errno(a->why, -ENOMEM, "%s: cannot export", a->job->dat->path);
}

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
	int n;

	if (!lines)
		return fault_set(why, -EBADMSG, "%s: no description of a gdb trace file",
				 a->job->dat->path);
	*lines++ = '\0';
	a->big_endian = strcmp(order, "big") == 0;
	n = asprintf(&text, GDB_TFILE_MAGIC "%s\n", lines);
	if (n < 0)
		return no_memory(a);
	return gdb_tfile_parse(text, (size_t)n, a->job->dat->path, NULL, &a->tfile, why);
}

/* --- kinds of events */

static int learn_kind(struct again *a, size_t format)
{
	struct kind *kind = &a->kinds[format];
	size_t n = 0;
	const struct field *fields = decoder_fields(a->job->decoder, format, &n);
	const uint32_t end = GDB_RECORD_BLOCK_AT + a->record->kept;

	*kind = (struct kind){.known = true, .size = GDB_RECORD_BLOCK_AT};
	for (const struct field *f = fields; f < fields + n; f++) {
		const uint32_t at = f->offset;
		uint32_t number;

		if (at < GDB_RECORD_BLOCK_AT)
			continue;
		kind->size = MAX(kind->size, at + f->size);
		if (gdb_record_variable(a->record, a->tfile, f->name, &number) && f->size == 8 &&
		    kind->n < GDB_RECORD_VARIABLES)
			kind->numbers[kind->n++] = number;
		else if (at + f->size <= end)
			kind->has_registers = true;
	}
	if (kind->size !=
	    GDB_RECORD_BLOCK_AT + (kind->has_registers ? a->record->kept : 0) + 8 * kind->n)
		return fault_set(a->why, -EBADMSG, "%s: %s:%s is no format that import makes",
				 a->job->dat->path, GDB_RECORD_SYSTEM,
				 decoder_name(a->job->decoder, format));
	return 0;
}

/* --- frames */

static int flush(struct again *a)
{
	int r = out_file_write(a->job->fd, a->output.bytes, a->output.size, a->why);

	a->output.size = 0;
	return r;
}

static int end_frame(struct again *a)
{
	uint8_t head[GDB_TFILE_HEAD_SIZE];

	if (!a->in_frame)
		return 0;
	a->in_frame = false;
	a->frames++;
	if (!a->writing)
		return 0;
	(void)gdb_tfile_put_frame(head, a->big_endian, a->tracepoint, (uint32_t)a->blocks.size);
	text_bytes(&a->output, head, sizeof(head));
	text_bytes(&a->output, a->blocks.bytes, a->blocks.size);
	if (a->output.no_memory || a->blocks.no_memory)
		return no_memory(a);
	return a->output.size >= OUTPUT_SIZE ? flush(a) : 0;
}

static void put_variable(struct again *a, uint32_t number, uint64_t value)
{
	uint8_t block[GDB_TFILE_VARIABLE_SIZE];

	(void)gdb_tfile_put_variable(block, a->big_endian, number, value);
	text_bytes(&a->blocks, block, sizeof(block));
}

static int begin_frame(struct again *a, const struct decode_event *event, size_t format)
{
	const struct trace_dat *dat = a->job->dat;
	const struct kind *kind = &a->kinds[format];
	uint32_t at = GDB_RECORD_BLOCK_AT;
	int r;

	r = kind->known ? 0 : learn_kind(a, format);
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
	if (!a->writing)
		return 0;
	if (kind->has_registers) {
		text_char(&a->blocks, 'R');
		a->registers_at = a->blocks.size;
		text_bytes(&a->blocks, event->data + at, a->record->kept);
		text_fill(&a->blocks, '\0', a->tfile->register_size - a->record->kept);
		if (a->blocks.no_memory)
			return no_memory(a);
		if (a->big_endian != dat->big_endian)
			gdb_record_swap(a->record, (uint8_t *)a->blocks.bytes + a->registers_at);
		at += a->record->kept;
	}
	for (uint32_t i = 0; i < kind->n; i++, at += 8)
		put_variable(a, kind->numbers[i], trace_dat_u64(dat, event->data + at));
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
static int add_to_frame(struct again *a, const struct decode_event *event, uint32_t id)
{
	static const uint32_t sizes[] = {GDB_RECORD_MEMORY_SIZE, GDB_RECORD_REGISTERS_SIZE,
					 GDB_RECORD_VARIABLE_SIZE};

	if (event->size < sizes[id - GDB_RECORD_MEMORY_ID])
		return bad_event(a, event);
	if (!a->in_frame || get32(a, event, GDB_RECORD_FRAME_AT) != a->frame || !a->writing)
		return 0;
	if (id == GDB_RECORD_REGISTERS_ID)
		return more_registers(a, event);
	if (id == GDB_RECORD_MEMORY_ID)
		return put_memory(a, event);
	put_variable(a, get32(a, event, GDB_RECORD_VARIABLE_AT),
		     trace_dat_u64(a->job->dat, event->data + GDB_RECORD_VARIABLE_VALUE_AT));
	return 0;
}

/* Return: 1 to go on, 0 enough, OUT_FILE_E_PIPE + 1 they have, or negative errno */
static int take_event(struct again *a, const struct decode_event *event)
{
	const struct export_gdb_job *job = a->job;
	const uint32_t id = event->id;
	const int32_t format = decoder_find(job->decoder, id);
	int r;

	if (format < 0 ||
	    strcmp(job->dat->systems[job->dat->formats[format].system], GDB_RECORD_SYSTEM) != 0)
		return 1;
	if (id >= GDB_RECORD_MEMORY_ID && id < GDB_RECORD_FIRST_ID) {
		r = add_to_frame(a, event, id);
		return r < 0 ? r : 1;
	}
	r = end_frame(a);
	if (r != 0)
		return r < 0 ? r : OUT_FILE_E_PIPE + 1;
	if (!event_filter_wants(job->filter, event))
		return 1;
	if (job->max_frames && a->frames == job->max_frames) {
		a->more = true;
		return 0;
	}
	r = event->size < GDB_RECORD_BLOCK_AT ? bad_event(a, event)
					      : begin_frame(a, event, (size_t)format);
	return r < 0 ? r : 1;
}

static int pass(struct again *a)
{
	struct export_gdb_job *job = a->job;
	_cleanup_(event_stream_freep) struct event_stream *stream = NULL;
	const struct event_stream_config config = {
		.filter = job->filter,
		.all = true,
		.no_tasks = true,
		.on_fault = a->writing ? NULL : job->on_fault,
	};
	struct decode_event event;
	int r;

	a->frames = 0;
	r = event_stream_new(job->decoder, &config, &stream, a->why);
	if (r < 0)
		return r;
	do {
		r = event_next(stream, &event, a->why);
		if (r > 0 && event.ts > job->filter->to)
			r = 0;
		if (r > 0)
			r = take_event(a, &event);
	} while (r == 1);
	if (r == 0)
		r = end_frame(a);
	else if (r > 0)
		r = OUT_FILE_E_PIPE;
	if (!a->writing)
		job->n_faults += event_stream_faults(stream);
	return r;
}

/* --- output */

/* The status as it was, but for the number of frames */
static void put_status(struct again *a, const char *line)
{
	static const char *const keys[] = {"tframes:", "tcreated:"};

	while (*line) {
		size_t n = strcspn(line, ";");
		bool counts = false;

		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			if (strncmp(line, keys[i], strlen(keys[i])) == 0) {
				text_string(&a->output, keys[i]);
				text_hex(&a->output, a->frames);
				counts = true;
			}
		if (!counts)
			text_bytes(&a->output, line, n);
		line += n;
		if (*line == ';') {
			text_char(&a->output, ';');
			line++;
		}
	}
	text_char(&a->output, '\n');
}

static int write_all(struct again *a)
{
	int r;

	r = pass(a);
	if (r != 0)
		return r;
	text_bytes(&a->output, GDB_TFILE_MAGIC, GDB_TFILE_MAGIC_SIZE);
	for (size_t i = 0; i < a->tfile->n_lines; i++) {
		const char *line = a->tfile->lines[i];

		if (strncmp(line, "status ", 7) == 0) {
			put_status(a, line);
			continue;
		}
		text_string(&a->output, line);
		text_char(&a->output, '\n');
	}
	text_char(&a->output, '\n');
	a->writing = true;
	r = pass(a);
	if (r != 0)
		return r;
	text_fill(&a->output, '\0', 4);
	if (a->output.no_memory)
		return no_memory(a);
	return flush(a);
}

static int run(struct again *a)
{
	struct export_gdb_job *job = a->job;
	int r;

	a->kinds = calloc(MAX(job->dat->n_formats, (size_t)1), sizeof(*a->kinds));
	if (!a->kinds || gdb_record_new(a->tfile, &a->record) < 0)
		return no_memory(a);
	r = write_all(a);
	if (r != 0 || !job->command)
		return r;
	(void)fprintf(job->command,
		      "# Written by flyrecctl export, see flyrec-gdb(7). Use: gdb -x THIS-FILE\n"
		      "# An imported trace file: load the program first, with gdb's file command.\n"
		      "target tfile %s\n",
		      job->tfile);
	if (fflush(job->command) != 0)
		return fault_errno(a->why, -EIO, "cannot write the command file");
	return 0;
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
	if (r == 0 && a.more && job->on_notice)
		job->on_notice("not all frames were written, see --max-frames=");
	if (r < 0 && why->error == 0)
		r = fault_errno(why, r, "%s: cannot export", job->dat->path);
	text_done(&a.blocks);
	text_done(&a.output);
	gdb_tfile_free(a.tfile);
	gdb_record_free(a.record);
	free(a.kinds);
	return r;
}
