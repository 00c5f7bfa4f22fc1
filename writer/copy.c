/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "formats/trace-dat-read.h"
#include "writer/copy.h"

#define CHUNK  (4 * MIB)
#define BUFFER (256 * KIB)

struct copy {
	int in_fd, out_fd;
	bool by_copy; /* neither copy_file_range() nor splice() goes */
	char *buffer; /* BUFFER bytes */
	uint64_t done, total;
	void (*progress)(uint64_t done, uint64_t total);
};

/* copy_file_range() between files, splice() into a pipe; -EINVAL: neither */
static ssize_t move(struct copy *c, off_t *at, size_t size)
{
	ssize_t n = copy_file_range(c->in_fd, at, c->out_fd, NULL, size, 0);

	if (n < 0 && (errno == EINVAL || errno == EXDEV || errno == EOPNOTSUPP || errno == EBADF ||
		      errno == ENOSYS || errno == ESPIPE))
		n = splice(c->in_fd, at, c->out_fd, NULL, size, 0);
	return n < 0 ? -errno : n;
}

static ssize_t move_by_copy(struct copy *c, off_t *at, size_t size)
{
	ssize_t n = pread(c->in_fd, c->buffer, MIN(size, BUFFER), *at);
	int r;

	if (n <= 0)
		return n < 0 ? -errno : 0;
	r = io_write_all(c->out_fd, c->buffer, (size_t)n);
	*at += n;
	return r < 0 ? r : n;
}

static int copy_range(struct copy *c, uint64_t from, uint64_t size)
{
	off_t at = (off_t)from;

	while (size > 0) {
		size_t chunk = MIN(size, CHUNK);
		ssize_t n = c->by_copy ? move_by_copy(c, &at, chunk) : move(c, &at, chunk);

		if (n == -EINTR)
			continue;
		if (n == -EINVAL && !c->by_copy) {
			c->by_copy = true;
			continue;
		}
		if (n <= 0)
			return n < 0 ? (int)n : -ENODATA;
		size -= (uint64_t)n;
		c->done += (uint64_t)n;
		if (c->progress)
			c->progress(c->done, c->total);
	}
	return 0;
}

/* Where regions will be, behind each other */
static uint64_t lay_out(const struct trace_dat *dat, uint64_t *ret_header, uint64_t *at)
{
	const struct trace_dat_buffer *b = &dat->buffers[0];
	uint64_t header = UINT64_MAX, end;

	for (unsigned cpu = 0; cpu < dat->n_cpus; cpu++)
		header = MIN(header, b->regions[cpu].offset);
	end = *ret_header = header;
	for (unsigned cpu = 0; cpu < dat->n_cpus; cpu++) {
		at[cpu] = end;
		end += b->regions[cpu].size;
	}
	return end;
}

/* Put the part of the new table into the bytes of the header that are at @at */
static void patch(const struct trace_dat *dat, const uint64_t *offsets, uint64_t at, char *bytes,
		  size_t size)
{
	const struct trace_dat_buffer *b = &dat->buffers[0];

	for (unsigned cpu = 0; cpu < dat->n_cpus; cpu++) {
		const struct trace_dat_region *region = &b->regions[cpu];
		uint64_t values[2] = {offsets[cpu], region->size};
		const char *entry = (const char *)values;

		for (size_t i = 0; i < sizeof(values); i++)
			if (region->entry + i >= at && region->entry + i < at + size)
				bytes[region->entry + i - at] = entry[i];
	}
}

static int copy_header(struct copy *c, const struct trace_dat *dat, const uint64_t *offsets,
		       uint64_t header)
{
	for (uint64_t at = 0; at < header; at += BUFFER) {
		size_t n = MIN(header - at, BUFFER);
		int r = io_pread_all(c->in_fd, c->buffer, n, at);

		if (r < 0)
			return r;
		patch(dat, offsets, at, c->buffer, n);
		r = io_write_all(c->out_fd, c->buffer, n);
		if (r < 0)
			return r;
		c->done += n;
	}
	return 0;
}

static int copy_dense(struct copy *c, const struct trace_dat *dat)
{
	_cleanup_free_ uint64_t *offsets = calloc(dat->n_cpus, sizeof(*offsets));
	uint64_t header;
	int r;

	if (!offsets)
		return -ENOMEM;
	c->total = lay_out(dat, &header, offsets);
	r = copy_header(c, dat, offsets, header);
	for (unsigned cpu = 0; cpu < dat->n_cpus && r >= 0; cpu++)
		r = copy_range(c, dat->buffers[0].regions[cpu].offset,
			       dat->buffers[0].regions[cpu].size);
	return r;
}

/* Version 6, one ring buffer, in this machine's byte order, its regions behind the header: all our
 * own are */
static bool can_make_dense(const struct trace_dat *dat)
{
	const struct trace_dat_buffer *b = &dat->buffers[0];

	if (dat->version != 6 || dat->n_buffers != 1 || dat->n_cpus == 0 ||
	    dat->big_endian != (__BYTE_ORDER == __BIG_ENDIAN))
		return false;
	for (unsigned cpu = 0; cpu < dat->n_cpus; cpu++)
		if (b->regions[cpu].offset % dat->page_size != 0 ||
		    b->regions[cpu].offset < b->table.offset + b->table.size ||
		    b->regions[cpu].offset + b->regions[cpu].size > dat->file_size)
			return false;
	return true;
}

int copy_trace(int in_fd, const char *name, int out_fd,
	       void (*progress)(uint64_t done, uint64_t total), struct fault *why)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_free_ char *buffer = malloc(BUFFER);
	struct copy c = {.in_fd = in_fd, .out_fd = out_fd, .buffer = buffer, .progress = progress};
	struct stat st;
	int r;

	if (!buffer)
		return fault_errno(why, -ENOMEM, "%s", name);
	if (fstat(in_fd, &st) < 0)
		return fault_errno(why, -errno, "%s", name);
	c.total = (uint64_t)st.st_size;
	if (st.st_blocks * 512 < st.st_size && trace_dat_open_fd(in_fd, name, &dat, NULL) >= 0 &&
	    can_make_dense(dat))
		r = copy_dense(&c, dat);
	else
		r = copy_range(&c, 0, (uint64_t)st.st_size);
	return r < 0 ? fault_errno(why, r, "cannot copy %s", name) : 0;
}
