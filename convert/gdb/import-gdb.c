/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * import --format=gdb-tfile. The file is read twice, a window of it at a time, as formats come
 * before events. What is read is checked.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/log.h"
#include "convert/convert.h"
#include "convert/gdb/gdb-record.h"

#define WINDOW	    (4 * MIB)
#define MAGIC_KNOWN (GDB_TFILE_MAGIC_SIZE - 2) /* up to the version */
#define GUESS	    64U			       /* frames that tell the byte order */
#define MAX_SHAPES  8192U
#define NOTE_MAX    (900 * KIB) /* readers take a MiB */

struct input {
	const struct import *import;
	int fd; /* can seek; the import's or our copy */
	uint64_t size;
	struct gdb_tfile *tfile;
	bool big_endian;

	uint8_t *window;
	size_t room, in_window;
	uint64_t window_at;
};

/* A frame, with what its blocks have together; pointers are good as long as it is at hand */
struct input_frame {
	uint32_t number;	     /* from 0 */
	struct gdb_tfile_frame head; /* its place in the file, for messages; its tracepoint */
	const uint8_t *bytes;	     /* the blocks, head.size bytes */
	struct gdb_shape shape;
	int64_t values[GDB_RECORD_VARIABLES]; /* of shape.variables; the last one counts */
	const uint8_t *registers;	      /* the first block of them, if shape.has_registers */
	uint32_t n_more, n_memory; /* blocks of variables without room in the shape; of memory */
};

typedef int take_frame(void *userdata, const struct input_frame *frame);

/* --- bytes */

/* A pipe cannot be read twice: copy it to a file without a name */
static int open_file(struct input *input, struct fault *why)
{
	const struct import *import = input->import;
	_cleanup_free_ char *buffer = NULL;
	const char *dir = getenv("TMPDIR");
	struct stat st;

	input->fd = import->fd;
	if (fstat(import->fd, &st) < 0)
		return fault_errno(why, -errno, "%s: cannot read", import->name);
	if (S_ISREG(st.st_mode)) {
		input->size = (uint64_t)st.st_size;
		return 0;
	}
	buffer = malloc(MIB);
	input->fd = open(dir && *dir ? dir : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (input->fd < 0 || !buffer)
		return fault_errno(why, -errno, "%s: cannot keep a copy", import->name);
	for (;;) {
		ssize_t n = import_read(import, buffer, MIB, why);
		int r;

		if (n <= 0)
			return (int)n;
		/* before much is copied of what may have no end */
		if (input->size == 0 &&
		    memcmp(buffer, GDB_TFILE_MAGIC, MIN((size_t)n, MAGIC_KNOWN)) != 0)
			return fault_set(why, -EBADMSG, "%s: no trace file of gdb", import->name);
		r = io_pwrite_all(input->fd, buffer, (size_t)n, input->size);
		if (r < 0)
			return fault_errno(why, r, "%s: cannot keep a copy", import->name);
		input->size += (uint64_t)n;
	}
}

/* @n bytes at @offset, fewer only at the end of the file; good until the next call */
static int look(struct input *input, uint64_t offset, size_t n, const uint8_t **ret,
		struct fault *why)
{
	n = MIN(n, input->size - offset);
	if (offset < input->window_at || offset + n > input->window_at + input->in_window) {
		int r = import_stopped(input->import, why);

		if (r < 0)
			return r;
		if (n > input->room) {
			uint8_t *more = realloc(input->window, n);

			if (!more)
				return fault_errno(why, -ENOMEM, "%s", input->import->name);
			input->window = more;
			input->room = n;
		}
		input->window_at = offset;
		input->in_window = MIN(input->room, input->size - offset);
		r = io_pread_all(input->fd, input->window, input->in_window, offset);
		if (r < 0) {
			input->in_window = 0;
			return fault_errno(why, r, "%s: offset 0x%" PRIx64 ": cannot read",
					   input->import->name, offset);
		}
	}
	*ret = input->window + (offset - input->window_at);
	return 0;
}

/* --- frames */

static int input_block(const struct input *input, const struct input_frame *frame, uint32_t *pos,
		       struct gdb_tfile_block *ret, struct fault *why)
{
	return gdb_tfile_block(frame->bytes, &frame->head, input->tfile->register_size,
			       input->big_endian, input->import->name, pos, ret, why);
}

static void collect_variable(struct input_frame *f, const struct gdb_tfile_block *block)
{
	for (uint32_t i = 0; i < f->shape.n; i++)
		if (f->shape.variables[i] == block->number) {
			f->values[i] = block->value; /* the last one counts, as for gdb */
			return;
		}
	if (f->shape.n == GDB_RECORD_VARIABLES) {
		f->n_more++;
		return;
	}
	f->values[f->shape.n] = block->value;
	f->shape.variables[f->shape.n++] = block->number;
}

static int collect(const struct input *input, struct input_frame *f, struct fault *why)
{
	struct gdb_tfile_block block = {};
	uint32_t pos = 0;
	int r;

	f->shape.tracepoint = f->head.tracepoint;
	f->shape.has_registers = false;
	f->shape.n = 0;
	f->n_more = f->n_memory = 0;
	for (;;) {
		r = input_block(input, f, &pos, &block, why);
		if (r <= 0)
			return r;
		if (block.type == 'V') {
			collect_variable(f, &block);
		} else if (block.type == 'M') {
			f->n_memory++;
		} else if (!f->shape.has_registers) { /* the first one counts */
			f->shape.has_registers = true;
			f->registers = block.data;
		}
	}
}

/* Hands over each frame, from the first one on; @take returns negative errno to end it */
static int each_of(struct input *input, uint32_t most, take_frame *take, void *userdata,
		   struct fault *why)
{
	struct input_frame f;
	uint64_t at = input->tfile->frames_at;

	for (f.number = 0; f.number < most; f.number++) {
		int r;

		r = look(input, at, GDB_TFILE_HEAD_SIZE, &f.bytes, why);
		if (r < 0)
			return r;
		r = gdb_tfile_frame(f.bytes, input->size - at, input->big_endian, at,
				    input->import->name, &f.head, why);
		if (r <= 0)
			return r;
		at += GDB_TFILE_HEAD_SIZE;
		r = look(input, at, f.head.size, &f.bytes, why);
		if (r >= 0)
			r = collect(input, &f, why);
		if (r >= 0 && take)
			r = take(userdata, &f);
		if (r < 0)
			return r;
		at += f.head.size;
	}
	return 0;
}

/* What the frame has of a variable; NULL: it is not among its values, or @number is 0 */
static const int64_t *input_value(const struct input_frame *frame, uint32_t number)
{
	for (uint32_t i = 0; number && i < frame->shape.n; i++)
		if (frame->shape.variables[i] == number)
			return &frame->values[i];
	return NULL;
}

/* --- the description */

static void on_unknown(const char *text)
{
	log_warning("%s", text);
}

static int read_description(struct input *input, struct fault *why)
{
	const uint8_t *bytes;
	int r;

	r = look(input, 0, GDB_TFILE_DESCRIPTION_MAX, &bytes, why);
	if (r < 0)
		return r;
	return gdb_tfile_parse(bytes, MIN(input->size, GDB_TFILE_DESCRIPTION_MAX),
			       input->import->name, on_unknown, &input->tfile, why);
}

static int find_endian(struct input *input, struct fault *why)
{
	const char *given = input->import->options->endian;
	struct fault ignored = {};
	int little, big;

	if (given) {
		input->big_endian = strcmp(given, "big") == 0;
		if (!input->big_endian && strcmp(given, "little") != 0)
			return fault_set(why, -EINVAL, "--endian=%s: must be little or big", given);
		return 0;
	}
	little = each_of(input, GUESS, NULL, NULL, &ignored);
	input->big_endian = true;
	big = little < 0 ? each_of(input, GUESS, NULL, NULL, &ignored) : -EBADMSG;
	input->big_endian = big >= 0;
	return 0;
}

static struct input *input_free(struct input *input)
{
	if (!input)
		return NULL;
	if (input->fd != input->import->fd)
		close_p(&input->fd);
	gdb_tfile_free(input->tfile);
	free(input->window);
	free(input);
	return NULL;
}
DEFINE_CLEANUP(struct input *, input_free)

/*
 * A pipe is read to its end, into a file without a name in $TMPDIR or /var/tmp. Lines of the
 * description that mean nothing to us are logged. The byte order is that of --endian=, or that in
 * which the first frames make sense: little if both.
 */
static int input_open(const struct import *import, struct input **ret, struct fault *why)
{
	_cleanup_(input_freep) struct input *input = calloc(1, sizeof(*input));
	int r;

	if (!input)
		return fault_errno(why, -ENOMEM, "%s", import->name);
	input->import = import;
	input->fd = -EBADF;
	input->room = WINDOW;
	input->window = malloc(input->room);
	if (!input->window)
		return fault_errno(why, -ENOMEM, "%s", import->name);
	r = open_file(input, why);
	if (r >= 0)
		r = read_description(input, why);
	if (r >= 0)
		r = find_endian(input, why);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(input);
	return 0;
}

/* --- kinds of frames */

struct shape {
	struct gdb_shape shape;
	int32_t next;	  /* of the same tracepoint, -1: none */
	unsigned ordinal; /* among them, from 1 */
};

struct import_gdb {
	struct import *import;
	struct fault *why;
	struct input *input;
	const struct gdb_tfile *tfile; /* its description */
	struct gdb_record *record;

	struct shape *shapes;
	size_t n_shapes;
	int32_t first[GDB_TFILE_MAX_NUMBER + 1]; /* shape of a tracepoint, -1: none */
	uint32_t time_variable;			 /* $trace_timestamp, 0: none */
	bool has_time;				 /* some frame has it */
	uint32_t pid_variable;

	uint32_t frame; /* number of the one at hand */
	uint64_t ts;
};

static void find_variables(struct import_gdb *g)
{
	for (size_t i = 0; i < g->tfile->n_variables; i++) {
		const struct gdb_tfile_variable *v = &g->tfile->variables[i];

		if (strcmp(v->name, "trace_timestamp") == 0)
			g->time_variable = v->number;
		else if (strcmp(v->name, "pid") == 0)
			g->pid_variable = v->number;
	}
}

static bool same_shape(const struct gdb_shape *a, const struct gdb_shape *b)
{
	return a->has_registers == b->has_registers && a->n == b->n &&
	       memcmp(a->variables, b->variables, a->n * sizeof(*a->variables)) == 0;
}

static int32_t find_shape(const struct import_gdb *g, const struct gdb_shape *shape)
{
	int32_t i = g->first[shape->tracepoint];

	while (i >= 0 && !same_shape(&g->shapes[i].shape, shape))
		i = g->shapes[i].next;
	return i;
}

static int learn_shape(void *userdata, const struct input_frame *f)
{
	struct import_gdb *g = userdata;
	struct shape *fresh;
	int32_t *last = &g->first[f->shape.tracepoint];
	unsigned ordinal = 1;

	g->has_time |= input_value(f, g->time_variable) != NULL;
	if (find_shape(g, &f->shape) >= 0)
		return 0;
	if (g->n_shapes == MAX_SHAPES)
		return fault_set(g->why, -E2BIG,
				 "%s: offset 0x%" PRIx64 ": frames of more than %u kinds",
				 g->import->name, f->head.offset, MAX_SHAPES);
	if (array_grow(&g->shapes, g->n_shapes, sizeof(*g->shapes)) < 0)
		return fault_errno(g->why, -ENOMEM, "%s", g->import->name);
	for (; *last >= 0; last = &g->shapes[*last].next)
		ordinal++;
	*last = (int32_t)g->n_shapes;
	fresh = &g->shapes[g->n_shapes++];
	fresh->shape = f->shape;
	fresh->next = -1;
	fresh->ordinal = ordinal;
	return 0;
}

/* --- output */

static int put(struct import_gdb *g, int r)
{
	if (r >= 0)
		return 0;
	return fault_errno(g->why, r, "%s: cannot write", g->import->out.path);
}

/* An event with its head */
static int begin_event(struct import_gdb *g, uint16_t id, int32_t pid, size_t size, uint8_t **ret)
{
	const struct event_file_head head = {.type = id, .pid = pid};
	void *at;
	int r = event_file_reserve(g->import->file, 0, g->ts, size, &at);

	if (r < 0)
		return put(g, r);
	memcpy(at, &head, sizeof(head));
	memcpy((uint8_t *)at + GDB_RECORD_FRAME_AT, &g->frame, sizeof(g->frame));
	*ret = at;
	return 0;
}

/* Memory at @from, or registers from that place of the block on: in as many events as it takes */
static int put_bytes(struct import_gdb *g, uint16_t id, uint64_t from, const uint8_t *bytes,
		     uint32_t n)
{
	const bool memory = id == GDB_RECORD_MEMORY_ID;
	const uint32_t head = memory ? GDB_RECORD_MEMORY_SIZE : GDB_RECORD_REGISTERS_SIZE;

	do {
		const uint32_t piece = MIN(n, EVENT_FILE_MAX_EVENT - head);
		const uint32_t loc = piece << 16 | head, place = memory ? 0 : (uint32_t)from;
		uint8_t *event;
		int r = begin_event(g, id, 0, head + piece, &event);

		if (r < 0)
			return r;
		memcpy(event + GDB_RECORD_REGISTERS_FROM_AT, &place, sizeof(place));
		if (memory)
			memcpy(event + GDB_RECORD_MEMORY_ADDRESS_AT, &from, sizeof(from));
		memcpy(event + head - sizeof(loc), &loc, sizeof(loc));
		memcpy(event + head, bytes, piece);
		bytes += piece;
		from += piece;
		n -= piece;
	} while (n > 0);
	return 0;
}

static int put_variable(struct import_gdb *g, const struct input_frame *f,
			const struct gdb_tfile_block *block)
{
	uint8_t *event;
	int r;

	for (uint32_t i = 0; i < f->shape.n; i++)
		if (f->shape.variables[i] == block->number)
			return 0;
	r = begin_event(g, GDB_RECORD_VARIABLE_ID, 0, GDB_RECORD_VARIABLE_SIZE, &event);
	if (r < 0)
		return r;
	memcpy(event + GDB_RECORD_VARIABLE_AT, &block->number, sizeof(block->number));
	memcpy(event + GDB_RECORD_VARIABLE_VALUE_AT, &block->value, sizeof(block->value));
	return 0;
}

/* The time in nanoseconds; never 0 nor back: readers would stop or complain */
static uint64_t frame_time(const struct import_gdb *g, const struct input_frame *f)
{
	const int64_t *usec = input_value(f, g->time_variable);
	uint64_t ts = g->ts;

	if (usec && *usec >= 0 && (uint64_t)*usec <= INT64_MAX / NSEC_PER_USEC)
		ts = (uint64_t)*usec * NSEC_PER_USEC;
	else if (!g->has_time)
		ts = g->frame * NSEC_PER_USEC;
	return MAX(MAX(ts, g->ts), UINT64_C(1));
}

static int write_frame(void *userdata, const struct input_frame *f)
{
	struct import_gdb *g = userdata;
	const int32_t shape = find_shape(g, &f->shape);
	const int64_t *pid = input_value(f, g->pid_variable);
	struct gdb_tfile_block block = {};
	uint32_t pos = 0;
	uint8_t *event;
	int r;

	if (shape < 0)
		return fault_set(g->why, -EBADMSG, "%s: changed while it was read",
				 g->import->name);
	g->frame = f->number;
	g->ts = frame_time(g, f);
	r = begin_event(g, (uint16_t)(GDB_RECORD_FIRST_ID + shape), pid ? (int32_t)*pid : 0,
			gdb_record_size(g->record, &f->shape), &event);
	if (r < 0)
		return r;
	memcpy(event + GDB_RECORD_TRACEPOINT_AT, &f->head.tracepoint, sizeof(f->head.tracepoint));
	event += GDB_RECORD_BLOCK_AT;
	if (f->shape.has_registers) {
		memcpy(event, f->registers, g->record->kept);
		if (g->input->big_endian != (__BYTE_ORDER == __BIG_ENDIAN))
			gdb_record_swap(g->record, event);
		event += g->record->kept;
	}
	memcpy(event, f->values, f->shape.n * sizeof(*f->values));
	if (f->shape.has_registers && g->record->kept < g->tfile->register_size)
		r = put_bytes(g, GDB_RECORD_REGISTERS_ID, g->record->kept,
			      f->registers + g->record->kept,
			      g->tfile->register_size - g->record->kept);
	if (f->n_memory == 0 && f->n_more == 0)
		return r;
	while (r >= 0) {
		r = input_block(g->input, f, &pos, &block, g->why);
		if (r <= 0)
			break;
		if (block.type == 'M')
			r = put_bytes(g, GDB_RECORD_MEMORY_ID, block.address, block.data,
				      block.size);
		else if (block.type == 'V' && f->n_more)
			r = put_variable(g, f, &block);
	}
	return r;
}

static int put_note(struct import_gdb *g)
{
	_cleanup_free_ char *note = NULL;
	size_t size;
	FILE *out = open_memstream(&note, &size);

	if (!out)
		return put(g, -ENOMEM);
	(void)fprintf(out, GDB_RECORD_NOTE "%s\n", g->input->big_endian ? "big" : "little");
	for (size_t i = 0; i < g->tfile->n_lines; i++)
		(void)fprintf(out, "%s\n", g->tfile->lines[i]);
	if (fclose(out) != 0)
		return put(g, -ENOMEM);
	if (size > NOTE_MAX) {
		log_warning("%s: the description is too long to be kept: no export to gdb-tfile",
			    g->import->name);
		return 0;
	}
	return put(g, event_file_note(g->import->file, note));
}

static const char *machine_of(enum gdb_arch arch)
{
	static const char *const names[] = {
		[GDB_X86_64] = "gdb - - x86_64",
		[GDB_AARCH64] = "gdb - - aarch64",
		[GDB_NIOS2] = "gdb - - nios2",
		[GDB_ARCH_UNKNOWN] = "gdb - - unknown",
	};

	return names[arch];
}

static int write_events(struct import_gdb *g)
{
	_cleanup_(sections_formats_done) struct sections_formats formats = {};
	struct event_file_params params = {
		.clock = "[local]\n",
		.uname = machine_of(g->record->arch),
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(gdb_record_formats) && r >= 0; i++)
		r = sections_formats_add(&formats, GDB_RECORD_SYSTEM,
					 strdup(gdb_record_formats[i]));
	for (size_t i = 0; i < g->n_shapes && r >= 0; i++) {
		char *text = NULL;

		r = gdb_record_format(g->record, g->tfile, &g->shapes[i].shape,
				      g->shapes[i].ordinal, (unsigned)(GDB_RECORD_FIRST_ID + i),
				      &text);
		if (r >= 0)
			r = sections_formats_add(&formats, GDB_RECORD_SYSTEM, text);
	}
	r = put(g, r);
	params.formats = formats.list;
	params.n_formats = formats.n;
	if (r >= 0)
		r = import_begin(g->import, &params, g->why);
	if (r >= 0)
		r = put_note(g);
	if (r >= 0)
		r = each_of(g->input, UINT32_MAX, write_frame, g, g->why);
	if (r >= 0)
		r = import_finish(g->import, NULL, g->why);
	return r;
}

static int import(struct import_gdb *g)
{
	int r;

	r = input_open(g->import, &g->input, g->why);
	if (r < 0)
		return r;
	g->tfile = g->input->tfile;
	find_variables(g);
	r = gdb_record_new(g->tfile, &g->record);
	if (r < 0)
		return fault_errno(g->why, r, "%s", g->import->name);
	r = each_of(g->input, UINT32_MAX, learn_shape, g, g->why);
	return r < 0 ? r : write_events(g);
}

int import_gdb_tfile(struct import *given, struct fault *why)
{
	struct import_gdb *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return fault_errno(why, -ENOMEM, "%s", given->name);
	g->import = given;
	g->why = why;
	memset(g->first, 0xff, sizeof(g->first)); /* all -1 */
	r = import(g);
	gdb_record_free(g->record);
	input_free(g->input);
	free(g->shapes);
	free(g);
	return r;
}
