/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "formats/subbuf.h"
#include "writer/recover.h"

#define UNREADABLE_MAX 64

/* Time and length: no two sub-buffers of a CPU have both in common */
#define HEADER_SIZE (2 * sizeof(uint64_t))

/* One CPU's region while it is looked at */
struct scan {
	struct trace_file_region region;
	struct subbuf_layout layout;
	char *bytes;	     /* one sub-buffer */
	unsigned unreadable; /* so many reads have failed */
	bool readable;	     /* one has not */
};

/* What a bad sector holds is nonsense, as zeros are: it may not cost all that is to come. Where
 * more than some cannot be read, or nothing else can, it is the disk, which may be there again
 * later. */
static int read_subbuf(struct scan *s, uint64_t at)
{
	int r = io_pread_all(s->region.buffered_fd, s->bytes, s->layout.size,
			     s->region.offset + at);

	s->readable |= r >= 0;
	if (r != -EIO || ++s->unreadable > UNREADABLE_MAX)
		return r;
	memset(s->bytes, 0, s->layout.size);
	return 0;
}

/* 1: a sub-buffer as the kernel writes them, 0: zeros or nonsense, or negative errno */
static int is_sane(struct scan *s, uint64_t at, uint64_t *ret_timestamp)
{
	struct subbuf_fault fault;
	struct subbuf_info info;
	int r = read_subbuf(s, at);

	if (r < 0)
		return r;
	if (subbuf_check(&s->layout, s->bytes, NULL, &info, &fault) != 0)
		return 0;
	if (info.header.commit == 0) /* the kernel hands out none that is empty: one that was cut */
		return 0;
	*ret_timestamp = info.header.timestamp;
	return 1;
}

static bool all_zero(const char *bytes, size_t size)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* Bytes from @from to @to are no trace, but somebody may want to look at them */
static int set_aside(struct scan *s, int dir_fd, const char *name, unsigned cpu, uint64_t from,
		     uint64_t to, bool *ret_kept)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -EBADF;
	int r;

	for (uint64_t at = from; at < to; at += s->layout.size) {
		r = read_subbuf(s, at);
		if (r < 0)
			return r;
		if (fd < 0 && all_zero(s->bytes, s->layout.size))
			continue;
		if (fd < 0) {
			/* Not hidden, as unfinished files are */
			path = strf("%s.cpu%u.damaged", name + (name[0] == '.'), cpu);
			if (!path)
				return -ENOMEM;
			fd = openat(dir_fd, path,
				    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0640);
			if (fd < 0)
				return -errno;
		}
		r = io_write_all(fd, s->bytes, s->layout.size);
		if (r < 0)
			return r;
	}
	*ret_kept |= fd >= 0;
	return fd >= 0 && fsync(fd) < 0 ? -errno : 0;
}

/* The size that the bytes bear out, counted from @size down to @least and then up */
static int true_size(struct scan *s, uint64_t size, uint64_t least, uint64_t *ret_tail,
		     uint64_t *ret_size)
{
	uint64_t timestamp = 0, last = 0;
	int r = 0;

	for (; size > least; size -= s->layout.size) {
		r = is_sane(s, size - s->layout.size, &last);
		if (r != 0)
			break;
	}
	if (r < 0)
		return r;
	*ret_tail = size;
	if (size > 0 && last == 0)
		(void)is_sane(s, size - s->layout.size, &last);
	for (; size + s->layout.size <= s->region.room; size += s->layout.size, last = timestamp) {
		r = is_sane(s, size, &timestamp);
		if (r < 0)
			return r;
		if (r == 0 || timestamp < last)
			break;
	}
	*ret_size = size;
	return 0;
}

static int clear_written_slot(struct scan *s, uint64_t size, char *slot)
{
	int r;

	if (size == 0)
		return 0;
	r = read_subbuf(s, size - s->layout.size);
	if (r >= 0 && memcmp(s->bytes, slot, s->layout.size) == 0)
		memset(slot, 0, s->layout.size);
	return r;
}

/*
 * The process was killed while it wrote these, or before it could tell: the file ends before the
 * first of them. Whole or torn, all of them are written there once more.
 * @tail: what the file told of before; @size: its end now
 */
static int end_before(struct scan *s, const struct recover_batch *batch, uint64_t tail,
		      uint64_t *size)
{
	uint64_t least = *size - MIN(batch->size, *size);
	int r = 0;

	for (uint64_t at = *size; at > MAX(tail, least) && r >= 0;) {
		at -= s->layout.size;
		r = read_subbuf(s, at);
		if (r >= 0 && memcmp(s->bytes, batch->bytes, HEADER_SIZE) == 0) {
			*size = at;
			break;
		}
	}
	return r;
}

static int recover_cpu(struct scan *s, struct trace_file *file, unsigned cpu, int dir_fd,
		       const char *name, const struct recover_hand *hand,
		       struct recover_report *report)
{
	uint64_t subbuf = s->layout.size, recorded, synced, tail = 0, size = 0;
	int r;

	recorded = MIN(s->region.size, s->region.room);
	recorded -= recorded % subbuf;
	synced = trace_file_live_block(file)->synced[cpu]; /* 0 of a file that was cut */
	synced = MIN(synced - synced % subbuf, recorded);
	r = true_size(s, recorded, synced, &tail, &size);
	for (size_t i = 0; hand && i < hand->n_batches && r >= 0; i++)
		if (hand->batches[i].cpu == cpu)
			r = end_before(s, &hand->batches[i], tail, &size);
	if (r >= 0 && s->unreadable > 0 && !s->readable)
		r = read_subbuf(s, 0) < 0 || !s->readable ? -EIO : 0;
	if (r < 0)
		return r;
	report->unreadable |= s->unreadable > 0;
	if (size < recorded) {
		report->cut += recorded - size;
		r = set_aside(s, dir_fd, name, cpu, size, recorded, &report->kept_cut);
	}
	report->adopted += size - tail;
	if (r >= 0 && size != s->region.size)
		r = trace_file_set_size(file, cpu, size);
	if (r >= 0 && hand && hand->slots)
		r = clear_written_slot(s, size, hand->slots + cpu * subbuf);
	return r;
}

int recover_file(struct trace_file *file, int dir_fd, const char *name,
		 const struct recover_hand *hand, struct recover_report *ret, struct fault *why)
{
	uint32_t subbuf = trace_file_subbuf_size(file);
	_cleanup_free_ char *bytes = malloc(subbuf);
	struct recover_report report = {};
	int r = 0;

	if (!bytes)
		return fault_errno(why, -ENOMEM, "cannot recover %s", name);
	for (unsigned cpu = 0; cpu < trace_file_n_cpus(file) && r >= 0; cpu++) {
		struct scan s = {
			.layout = subbuf_layout_native(subbuf),
			.bytes = bytes,
		};

		trace_file_region(file, cpu, &s.region);
		r = recover_cpu(&s, file, cpu, dir_fd, name, hand, &report);
	}
	if (r < 0)
		return fault_errno(why, r, "cannot recover %s", name);
	*ret = report;
	return 0;
}
