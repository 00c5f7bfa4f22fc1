/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "basic/io.h"
#include "writer/region-read.h"

struct region_read {
	const struct trace_dat *dat;
	struct region_read_told told;
	uint64_t total;	  /* bytes of all regions so far */
	int direct_fd;	  /* of the same file; -EBADF: there is none */
	uint64_t at, end; /* in the region */
	uint64_t bad;	  /* bytes from at on that are damaged, which has been told */
	bool gap;	  /* what was in front of at is missing */
};

/* The file again, for it is our caller's descriptor; a process without rights gets none */
static int open_direct(const struct trace_dat *dat)
{
	char link[64];

	if (dat->version != 6)
		return -EBADF;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dat->fd);
	return open(link, O_RDONLY | O_DIRECT | O_CLOEXEC);
}

struct region_read *region_read_new(const struct trace_dat *dat, struct region_read_told told)
{
	struct region_read *read = calloc(1, sizeof(*read));

	if (!read)
		return NULL;
	read->dat = dat;
	read->told = told;
	read->direct_fd = open_direct(dat);
	return read;
}

static void drop_direct(struct region_read *read)
{
	close_p(&read->direct_fd);
	read->direct_fd = -EBADF;
}

void region_read_free(struct region_read *read)
{
	if (!read)
		return;
	drop_direct(read);
	free(read);
}

/* @why: a damage. Return: 0 to go on, or what it is. */
static int tell(struct region_read *read, int error, const struct fault *why)
{
	if (error != -EBADMSG || !read->told.told)
		return error;
	read->told.told(read->told.userdata, why->text);
	return 0;
}

/* Bytes that are there; what is wrong with the others goes to @damage */
static uint64_t readable(const struct region_read *read, const struct trace_dat_buffer *buffer,
			 unsigned cpu, struct fault *damage)
{
	const struct trace_dat *dat = read->dat;
	const struct trace_dat_region *region = &buffer->regions[cpu];
	const struct trace_dat_extent *table = &dat->buffers[0].table;
	uint64_t size = region->size;

	(void)trace_dat_check_region(dat, buffer, cpu, damage);
	if (size == 0 || region->offset >= dat->file_size ||
	    region->offset < table->offset + table->size)
		return 0;
	size = round_down(MIN(size, dat->file_size - region->offset), dat->page_size);
	if (size <= dat->file_size - read->total)
		return size;
	/* else a small file could make a large one */
	(void)fault_set(damage, -EBADMSG, "%s: offset %s: cpu %u: the region overlaps others",
			dat->path, trace_dat_at(dat, region->entry).text, cpu);
	return 0;
}

int region_read_size(struct region_read *read, const struct trace_dat_buffer *buffer, unsigned cpu,
		     uint64_t *ret, struct fault *why)
{
	struct fault damage = {};
	uint64_t size = readable(read, buffer, cpu, &damage);
	int r;

	if (damage.error) {
		if (why)
			*why = damage;
		r = tell(read, damage.error, &damage);
		if (r < 0)
			return r;
	}
	read->total += size;
	*ret = size;
	return 0;
}

void region_read_begin(struct region_read *read, const struct trace_dat_buffer *buffer,
		       unsigned cpu, uint64_t size)
{
	read->at = buffer->regions[cpu].offset;
	read->end = read->at + size;
	read->bad = 0;
	read->gap = false;
}

/* Up to @size bytes; -EBADMSG: @ret of them are damaged, which may be more */
static int read_some(struct region_read *read, void *bytes, size_t size, size_t *ret,
		     struct fault *why)
{
	int r = read->direct_fd < 0 ? -EINVAL
				    : io_pread_all(read->direct_fd, bytes, size, read->at);

	if (r >= 0) {
		*ret = size;
		return 0;
	}
	/* not so for this place and size, or not at all; what else it is the other way tells */
	if (read->direct_fd >= 0)
		drop_direct(read);
	return trace_dat_read_some(read->dat, bytes, size, read->at, ret, why);
}

/* @size damaged bytes: sub-buffers of the time of the next one, or such as were never written */
static int fill(struct region_read *read, uint8_t *bytes, size_t size, struct fault *why)
{
	uint64_t timestamp;
	int r = trace_dat_timestamp(read->dat, read->at + read->bad, read->end, &timestamp, why);

	if (r < 0)
		return r;
	for (size_t i = 0; i < size; i += read->dat->page_size)
		subbuf_make_empty(&read->dat->layout, bytes + i,
				  timestamp == UINT64_MAX ? 0 : timestamp);
	read->bad -= size;
	read->gap = true;
	return 0;
}

/* Some of what is wanted; @ret: how much */
static int next(struct region_read *read, uint8_t *bytes, size_t size, size_t *ret,
		struct fault *why)
{
	int r;

	if (read->bad == 0) {
		struct fault damage = {};

		r = read_some(read, bytes, size, ret, &damage);
		if (r == -EBADMSG)
			read->bad = MIN((uint64_t)*ret, read->end - read->at);
		if (r < 0 && why)
			*why = damage;
		if (r < 0)
			r = tell(read, r, &damage);
		if (r < 0)
			return r;
	}
	if (read->bad > 0) {
		*ret = MIN(size, read->bad);
		return fill(read, bytes, *ret, why);
	}
	if (read->gap)
		subbuf_mark_missed(&read->dat->layout, bytes);
	read->gap = false;
	return 0;
}

int region_read_next(struct region_read *read, void *bytes, size_t size, struct fault *why)
{
	int r = 0;

	for (size_t done = 0; done < size && r >= 0;) {
		size_t n = 0;

		r = next(read, (uint8_t *)bytes + done, size - done, &n, why);
		done += n;
		read->at += n;
	}
	return r;
}
