/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event file is put together: header, tables, regions. The caller's thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/io.h"
#include "formats/trace-dat.h"
#include "writer/event-file-internal.h"

#define CPUSTAT_ROOM 384
#define REGION_ALIGN 4096
#define ENTRY_SIZE   16

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

int event_file_make_header(const struct event_file *file, struct event_file_header *ret)
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

static void end_subbufs(struct event_file *file)
{
	for (unsigned cpu = 0; cpu < file->n_cpus; cpu++) {
		struct event_file_cpu *c = &file->cpus[cpu];

		if (!c->write.bytes)
			continue;
		subbuf_write_end(&c->write);
		c->write.bytes = NULL;
		c->used += EVENT_FILE_SUBBUF;
		c->subbufs++;
	}
}

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
	memcpy(entry, values, ENTRY_SIZE);
	*ret = at + values[1];
	return r;
}

static int write_all(struct event_file *file, struct event_file_header *header,
		     struct event_file_totals *totals)
{
	uint64_t at = round_up(header->size, REGION_ALIGN), empty[2];
	char *table = header->bytes + header->table_at;
	int r = 0;

	if (file->direct >= 0) {
		if (at > file->direct_at)
			r = move_direct(file, at);
		if (r >= 0)
			r = write_region(file, (unsigned)file->direct, file->direct_at,
					 table + file->direct * ENTRY_SIZE, &at);
	}
	for (unsigned cpu = 0; cpu < file->n_cpus && r >= 0; cpu++) {
		if ((int)cpu != file->direct)
			r = write_region(file, cpu, at, table + cpu * ENTRY_SIZE, &at);
		totals->events += file->cpus[cpu].events;
	}
	if (file->n_cpus == 0) { /* a table has one entry at least */
		empty[0] = at;
		empty[1] = 0;
		memcpy(table, empty, ENTRY_SIZE);
	}
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

	end_subbufs(file);
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
