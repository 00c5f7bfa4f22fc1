/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "writer/event-file-internal.h"

#define ALIGN 4096
/* Behind the header that a file would have now, for CPUs and names yet to come. If it is too small
 * the direct CPU is moved in the end. */
#define HEADER_SPARE (32 * KIB)
#define PIECES_MIN   16

struct event_file *event_file_free(struct event_file *file)
{
	if (!file)
		return NULL;
	for (unsigned cpu = 0; cpu < file->n_cpus; cpu++) {
		free(file->cpus[cpu].chunk);
		free(file->cpus[cpu].pieces);
	}
	free(file->cpus);
	if (file->names_stream)
		(void)fclose(file->names_stream);
	free(file->names);
	free(file->note);
	new_file_done(&file->spool);
	new_file_done(&file->out);
	free(file);
	return NULL;
}

/* Beside the file, or where temporary files go: a name that is never given */
static int open_temporary(const struct event_file *file, struct new_file *ret)
{
	const char *directory = getenv("TMPDIR");
	_cleanup_free_ char *path = NULL;

	if (file->params.path)
		return new_file_open(ret, file->params.path, 0600);
	path = strf("%s/flyrec", directory && *directory ? directory : "/var/tmp");
	if (!path)
		return -ENOMEM;
	return new_file_open(ret, path, 0600);
}

int event_file_new(const struct event_file_params *params, struct event_file **ret,
		   struct fault *why)
{
	_cleanup_(event_file_freep) struct event_file *file = calloc(1, sizeof(*file));
	int r;

	if (!file)
		return fault_errno(why, -ENOMEM, "cannot begin a file");
	file->params = *params;
	file->out.fd = file->spool.fd = -EBADF;
	file->direct = -1;
	file->names_stream = open_memstream(&file->names, &file->names_size);
	if (!file->names_stream)
		return fault_errno(why, -ENOMEM, "cannot begin a file");
	if (params->path)
		r = new_file_open(&file->out, params->path, params->mode);
	else
		r = open_temporary(file, &file->out);
	if (r < 0)
		return fault_errno(why, r, "%s: cannot create",
				   params->path ? params->path : "temporary file");
	*ret = TAKE_PTR(file);
	return 0;
}

static int add_cpus(struct event_file *file, unsigned n)
{
	struct event_file_cpu *more;

	if (n > EVENT_FILE_MAX_CPUS)
		return -ERANGE;
	more = reallocarray(file->cpus, n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + file->n_cpus, 0, (n - file->n_cpus) * sizeof(*more));
	file->cpus = more;
	file->n_cpus = n;
	return 0;
}

/* Remember where a piece is. Pieces of a CPU alone in the spool lie one behind the other. */
static int add_piece(struct event_file_cpu *c, uint64_t at)
{
	if (c->n_pieces == c->room_pieces) {
		size_t room = MAX(2 * c->room_pieces, (size_t)PIECES_MIN);
		uint64_t *more = reallocarray(c->pieces, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		c->pieces = more;
		c->room_pieces = room;
	}
	c->pieces[c->n_pieces++] = at;
	return 0;
}

static int choose_direct(struct event_file *file, unsigned cpu)
{
	struct event_file_header header;
	int r = event_file_make_header(file, &header);

	if (r < 0)
		return r;
	free(header.bytes);
	file->direct = (int)cpu;
	file->direct_at = round_up(header.size + HEADER_SPARE, ALIGN);
	return 0;
}

/* A full chunk goes to the file, or to the spool */
static int write_chunk(struct event_file *file, unsigned cpu)
{
	struct event_file_cpu *c = &file->cpus[cpu];
	int r = 0;

	if (file->direct < 0)
		r = choose_direct(file, cpu);
	if (r >= 0 && (int)cpu == file->direct) {
		r = io_pwrite_all(file->out.fd, c->chunk, c->used,
				  file->direct_at + c->n_pieces * (uint64_t)EVENT_FILE_CHUNK);
		c->n_pieces += r >= 0;
	} else if (r >= 0) {
		if (file->spool.fd < 0)
			r = open_temporary(file, &file->spool);
		if (r >= 0)
			r = io_pwrite_all(file->spool.fd, c->chunk, c->used, file->spooled);
		if (r >= 0)
			r = add_piece(c, file->spooled);
		file->spooled += c->used;
	}
	c->used = 0;
	return r;
}

/* The sub-buffer is full: begin the next one */
static int next_subbuf(struct event_file *file, unsigned cpu)
{
	struct event_file_cpu *c = &file->cpus[cpu];
	int r = 0;

	if (!c->chunk) {
		c->chunk = aligned_alloc(ALIGN, EVENT_FILE_CHUNK);
		if (!c->chunk)
			return -ENOMEM;
	}
	if (c->write.bytes) {
		subbuf_write_end(&c->write);
		c->used += EVENT_FILE_SUBBUF;
		c->subbufs++;
		c->write.bytes = NULL;
	}
	if (c->used == EVENT_FILE_CHUNK)
		r = write_chunk(file, cpu);
	if (r < 0)
		return file->error = r;
	subbuf_write_begin(&c->write, c->chunk + c->used, EVENT_FILE_SUBBUF);
	return 0;
}

int event_file_reserve(struct event_file *file, unsigned cpu, uint64_t ts, size_t size, void **ret)
{
	struct event_file_cpu *c;
	int r;

	if (file->error < 0)
		return file->error;
	if (size > EVENT_FILE_MAX_EVENT || size < sizeof(struct event_file_head))
		return -EMSGSIZE;
	if (cpu >= file->n_cpus) {
		r = add_cpus(file, cpu + 1);
		if (r < 0)
			return r;
	}
	c = &file->cpus[cpu];
	if (ts == 0 || ts < c->last_ts)
		return -EINVAL;
	r = SUBBUF_WRITE_E_FULL;
	if (c->write.bytes)
		r = subbuf_write_event(&c->write, ts, (uint32_t)size, ret);
	if (r == SUBBUF_WRITE_E_FULL) {
		r = next_subbuf(file, cpu);
		if (r >= 0)
			r = subbuf_write_event(&c->write, ts, (uint32_t)size, ret);
	}
	if (r < 0)
		return r;
	c->last_ts = ts;
	c->events++;
	return 0;
}

int event_file_add(struct event_file *file, unsigned cpu, uint64_t ts, const void *data,
		   size_t size)
{
	void *at;
	int r = event_file_reserve(file, cpu, ts, size, &at);

	if (r >= 0)
		memcpy(at, data, size);
	return r;
}

uint64_t event_file_last_ts(const struct event_file *file, unsigned cpu)
{
	return cpu < file->n_cpus ? file->cpus[cpu].last_ts : 0;
}

int event_file_task(struct event_file *file, int pid, const char *comm)
{
	return fprintf(file->names_stream, "%d %s\n", pid, comm) < 0 ? -ENOMEM : 0;
}

int event_file_note(struct event_file *file, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(file->note);
	file->note = copy;
	return 0;
}

int event_file_fd(const struct event_file *file)
{
	return file->out.fd;
}
