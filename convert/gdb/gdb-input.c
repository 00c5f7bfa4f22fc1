/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/io.h"
#include "basic/log.h"
#include "convert/gdb/gdb-input.h"

#define WINDOW	    (4 * MIB)
#define MAGIC_KNOWN (GDB_TFILE_MAGIC_SIZE - 2) /* up to the version */
#define GUESS	    64U			       /* frames that tell the byte order */

struct gdb_input {
	const struct import *import;
	int fd; /* can seek; the import's or our copy */
	uint64_t size;
	struct gdb_tfile *tfile;
	bool big_endian;

	uint8_t *window;
	size_t room, in_window;
	uint64_t window_at;
};

/* --- bytes */

/* A pipe cannot be read twice: copy it to a file without a name */
static int open_file(struct gdb_input *input, struct fault *why)
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
static int look(struct gdb_input *input, uint64_t offset, size_t n, const uint8_t **ret,
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

int gdb_input_block(const struct gdb_input *input, const struct gdb_input_frame *frame,
		    uint32_t *pos, struct gdb_tfile_block *ret, struct fault *why)
{
	return gdb_tfile_block(frame->bytes, &frame->head, input->tfile->register_size,
			       input->big_endian, input->import->name, pos, ret, why);
}

static void collect_variable(struct gdb_input_frame *f, const struct gdb_tfile_block *block)
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

static int collect(const struct gdb_input *input, struct gdb_input_frame *f, struct fault *why)
{
	struct gdb_tfile_block block = {};
	uint32_t pos = 0;
	int r;

	f->shape.tracepoint = f->head.tracepoint;
	f->shape.has_registers = false;
	f->shape.n = 0;
	f->n_more = f->n_memory = 0;
	for (;;) {
		r = gdb_input_block(input, f, &pos, &block, why);
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

static int each_of(struct gdb_input *input, uint32_t most, gdb_input_take *take, void *userdata,
		   struct fault *why)
{
	struct gdb_input_frame f;
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

int gdb_input_each(struct gdb_input *input, gdb_input_take *take, void *userdata, struct fault *why)
{
	return each_of(input, UINT32_MAX, take, userdata, why);
}

const int64_t *gdb_input_value(const struct gdb_input_frame *frame, uint32_t number)
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

static int read_description(struct gdb_input *input, struct fault *why)
{
	const uint8_t *bytes;
	int r;

	r = look(input, 0, GDB_TFILE_DESCRIPTION_MAX, &bytes, why);
	if (r < 0)
		return r;
	return gdb_tfile_parse(bytes, MIN(input->size, GDB_TFILE_DESCRIPTION_MAX),
			       input->import->name, on_unknown, &input->tfile, why);
}

static int find_endian(struct gdb_input *input, struct fault *why)
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

int gdb_input_open(const struct import *import, struct gdb_input **ret, struct fault *why)
{
	_cleanup_(gdb_input_freep) struct gdb_input *input = calloc(1, sizeof(*input));
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

struct gdb_input *gdb_input_free(struct gdb_input *input)
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

const struct gdb_tfile *gdb_input_tfile(const struct gdb_input *input)
{
	return input->tfile;
}

bool gdb_input_big_endian(const struct gdb_input *input)
{
	return input->big_endian;
}
