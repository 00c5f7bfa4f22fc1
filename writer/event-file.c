/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/io.h"
#include "basic/new-file.h"
#include "basic/strv.h"
#include "formats/trace-dat.h"
#include "writer/event-file.h"

#define ALIGN 4096
/* Behind the header that a file would have now, for CPUs and names yet to come. If it is too small
 * the direct CPU is moved in the end. */
#define HEADER_SPARE	 (32 * KIB)
#define EVENT_FILE_CHUNK (64U * 1024) /* bytes of a CPU in memory, written at once */

/* One CPU: pieces of EVENT_FILE_CHUNK bytes that were written, then the chunk in memory */
struct event_file_cpu {
	uint8_t *chunk;		   /* NULL: no event yet */
	uint32_t used;		   /* bytes of ended sub-buffers in it */
	struct subbuf_write write; /* the one behind them; bytes NULL: none begun */
	uint64_t last_ts;
	uint64_t events, subbufs;
	uint64_t *pieces; /* where they are in the spool; of the direct CPU: NULL */
	size_t n_pieces;
};

struct event_file {
	struct event_file_params params;
	struct new_file out;
	struct event_file_cpu *cpus;
	unsigned n_cpus;
	int direct;	       /* the CPU that is written straight to its place; -1: none yet */
	uint64_t direct_at;    /* where its region begins */
	struct new_file spool; /* the pieces of the others; fd -EBADF: none yet */
	uint64_t spooled;      /* bytes */
	char *names;	       /* "PID COMM\n" lines */
	size_t names_size;
	FILE *names_stream;
	char *note;
	int error; /* writing has failed */
};

/* The header and all tables in memory, with the file's own numbers of events and sub-buffers */
struct event_file_header {
	char *bytes;
	size_t size;
	uint64_t table_at; /* the first CPU's entry: all zero yet */
};

/* --- the header */

#define CPUSTAT_ROOM 384

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n"
				   "\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n\n"
				   "\tpadding     : type == 29\n"
				   "\ttime_extend : type == 30\n"
				   "\ttime_stamp : type == 31\n"
				   "\tdata max type_len  == 28\n";

static int put_named(FILE *out, const char *name, const char *text)
{
	int r = sections_put(out, name, strlen(name) + 1);

	return r < 0 ? r : sections_put_text64(out, text, strlen(text));
}

static int make_options(const struct event_file *file, unsigned n_cpus, struct options *ret)
{
	struct options_params wanted = {
		.n_cpus = n_cpus,
		.cpustat_room = CPUSTAT_ROOM,
		.clock = file->params.clock,
		.has_date = file->params.has_date,
		.date_usec = file->params.date_usec,
		.trace_id = options_new_trace_id(),
		.uname = file->params.uname,
		.note = file->note,
	};
	int r;

	r = options_make(&wanted, ret);
	for (unsigned cpu = 0; cpu < n_cpus && r >= 0; cpu++) {
		struct options_count count = {0};

		if (cpu < file->n_cpus) {
			count.events = file->cpus[cpu].events;
			count.subbufs = file->cpus[cpu].subbufs;
		}
		count.bytes = count.subbufs * EVENT_FILE_SUBBUF;
		options_cpustat_final(ret->data + ret->cpustat_at[cpu], CPUSTAT_ROOM, cpu, &count);
	}
	return r;
}

static int put_all(const struct event_file *file, FILE *out, uint64_t *ret_table_at)
{
	unsigned n_cpus = MAX(file->n_cpus, 1U);
	_cleanup_(options_done) struct options options = {0};
	struct sections_places places;
	int r = make_options(file, n_cpus, &options);

	if (r >= 0)
		r = sections_put_start(out, sizeof(uint64_t), EVENT_FILE_SUBBUF);
	if (r >= 0)
		r = put_named(out, TRACE_DAT_HEADER_PAGE, header_page);
	if (r >= 0)
		r = put_named(out, TRACE_DAT_HEADER_EVENT, header_event);
	if (r >= 0)
		r = sections_put_formats(out, file->params.formats, file->params.n_formats);
	if (r >= 0) /* no symbols */
		r = sections_put_text32(out, "", 0);
	if (r >= 0) /* no printk formats */
		r = sections_put_text32(out, "", 0);
	if (r >= 0 && fflush(file->names_stream) != 0)
		r = -ENOMEM;
	if (r >= 0)
		r = sections_put_tables(out, file->names, file->names_size, 0, n_cpus, &options,
					file->params.clock, &places);
	if (r >= 0)
		*ret_table_at = places.table_at;
	return r;
}

/* For as many CPUs as there are now */
static int event_file_make_header(const struct event_file *file, struct event_file_header *ret)
{
	struct event_file_header header = {};
	FILE *out = open_memstream(&header.bytes, &header.size);
	int r;

	if (!out)
		return -ENOMEM;
	r = put_all(file, out, &header.table_at);
	if (fclose(out) != 0 && r >= 0)
		r = -ENOMEM;
	if (r < 0)
		free(header.bytes);
	else
		*ret = header;
	return r;
}

/* --- events come in */

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
	return path ? new_file_open(ret, path, 0600) : -ENOMEM;
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
			r = array_grow(&c->pieces, c->n_pieces, sizeof(*c->pieces));
		if (r >= 0)
			c->pieces[c->n_pieces++] = file->spooled;
		file->spooled += c->used;
	}
	c->used = 0;
	return r;
}

/* The sub-buffer that was begun, if one was */
static void end_subbuf(struct event_file_cpu *c)
{
	if (!c->write.bytes)
		return;
	subbuf_write_end(&c->write);
	c->write.bytes = NULL;
	c->used += EVENT_FILE_SUBBUF;
	c->subbufs++;
}

/* It is full: begin the next one */
static int next_subbuf(struct event_file *file, unsigned cpu)
{
	struct event_file_cpu *c = &file->cpus[cpu];
	int r = 0;

	if (!c->chunk) {
		c->chunk = aligned_alloc(ALIGN, EVENT_FILE_CHUNK);
		if (!c->chunk)
			return -ENOMEM;
	}
	end_subbuf(c);
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

/* --- the file is put together */

/* The header has outgrown its room: the direct CPU's data moves to another file, behind more room
 */
static int move_direct(struct event_file *file, uint64_t to)
{
	uint64_t size = file->cpus[file->direct].n_pieces * (uint64_t)EVENT_FILE_CHUNK;
	struct new_file old = file->out;
	int r;

	file->out = (struct new_file){.fd = -EBADF};
	r = new_file_open(&file->out, old.path, file->params.mode);
	if (r >= 0)
		r = io_copy_range(old.fd, file->direct_at, file->out.fd, to, size);
	new_file_done(&old);
	file->direct_at = to;
	return r;
}

/*
 * The pieces of a CPU from the spool, those that follow each other at once. What has been copied is
 * given back to the disk, where it can, so that the spool and the file together do not need twice
 * the room.
 */
static int join(const struct event_file *file, const struct event_file_cpu *c, uint64_t at)
{
	int r = 0;

	for (size_t i = 0, n; i < c->n_pieces && r >= 0; i += n) {
		for (n = 1; i + n < c->n_pieces &&
			    c->pieces[i + n] == c->pieces[i] + n * (uint64_t)EVENT_FILE_CHUNK;)
			n++;
		r = io_copy_range(file->spool.fd, c->pieces[i], file->out.fd, at,
				  n * (uint64_t)EVENT_FILE_CHUNK);
		(void)fallocate(file->spool.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)c->pieces[i], (off_t)(n * EVENT_FILE_CHUNK));
		at += n * (uint64_t)EVENT_FILE_CHUNK;
	}
	return r;
}

/* All of a CPU that is not there yet, at @at. @ret: behind it. */
static int write_region(struct event_file *file, unsigned cpu, uint64_t at, char *entry,
			uint64_t *ret)
{
	const struct event_file_cpu *c = &file->cpus[cpu];
	uint64_t values[2] = {at, c->subbufs * EVENT_FILE_SUBBUF};
	int r = 0;

	if ((int)cpu != file->direct)
		r = join(file, c, at);
	if (r >= 0)
		r = io_pwrite_all(file->out.fd, c->chunk, c->used,
				  at + c->n_pieces * (uint64_t)EVENT_FILE_CHUNK);
	memcpy(entry, values, sizeof(values));
	*ret = at + values[1];
	return r;
}

static int write_all(struct event_file *file, struct event_file_header *header,
		     struct event_file_totals *totals)
{
	uint64_t at = round_up(header->size, ALIGN);
	char *table = header->bytes + header->table_at;
	int r = 0;

	if (file->direct >= 0) {
		if (at > file->direct_at)
			r = move_direct(file, at);
		if (r >= 0)
			r = write_region(file, (unsigned)file->direct, file->direct_at,
					 table + file->direct * TRACE_DAT_ENTRY_SIZE, &at);
	}
	for (unsigned cpu = 0; cpu < file->n_cpus && r >= 0; cpu++) {
		if ((int)cpu != file->direct)
			r = write_region(file, cpu, at, table + cpu * TRACE_DAT_ENTRY_SIZE, &at);
		totals->events += file->cpus[cpu].events;
	}
	if (file->n_cpus == 0) /* a table has one entry at least; its size is 0 */
		memcpy(table, &at, sizeof(at));
	totals->cpus = MAX(file->n_cpus, 1U);
	totals->bytes = at;
	if (r >= 0 && ftruncate(file->out.fd, (off_t)at) < 0)
		r = -errno;
	return r < 0 ? r : io_pwrite_all(file->out.fd, header->bytes, header->size, 0);
}

int event_file_finish(struct event_file *file, struct event_file_totals *ret, struct fault *why)
{
	const char *name = file->params.path ? file->params.path : "temporary file";
	struct event_file_header header = {};
	struct event_file_totals totals = {};
	int r = file->error;

	for (unsigned cpu = 0; cpu < file->n_cpus; cpu++)
		end_subbuf(&file->cpus[cpu]);
	if (r >= 0)
		r = event_file_make_header(file, &header);
	if (r >= 0)
		r = write_all(file, &header, &totals);
	free(header.bytes);
	if (r >= 0 && file->params.path)
		r = new_file_publish(&file->out);
	if (r < 0)
		return fault_errno(why, r, "%s: cannot write", name);
	if (ret)
		*ret = totals;
	return 0;
}
