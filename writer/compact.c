/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "basic/fault-point.h"
#include "basic/io.h"
#include "basic/strv.h"
#include "writer/compact.h"
#include "writer/trace-file-internal.h"

/* A dense file's regions: offsets as they will be, sizes as they are */
struct plan {
	uint64_t *offset, *size; /* [n_cpus] */
	uint64_t end;		 /* of the file */
	uint32_t unit;
};

static void plan_done(struct plan *plan)
{
	free(plan->offset);
	free(plan->size);
}

static int plan_make(const struct trace_file *file, uint32_t unit, struct plan *plan)
{
	uint64_t at = file->region_at[0];
	int r;

	plan->offset = calloc(file->n_cpus, sizeof(*plan->offset));
	plan->size = calloc(file->n_cpus, sizeof(*plan->size));
	if (!plan->offset || !plan->size)
		return -ENOMEM;
	plan->unit = unit;
	plan->end = at;
	for (unsigned cpu = 0; cpu < file->n_cpus; cpu++) {
		r = trace_file_read_size(file, cpu, &plan->size[cpu]);
		if (r < 0)
			return r;
		plan->offset[cpu] = at;
		if (plan->size[cpu] > 0)
			plan->end = at + plan->size[cpu];
		at += round_up(plan->size[cpu], unit);
	}
	return 0;
}

static int write_phase(struct trace_file *file, enum live_phase phase, uint32_t unit)
{
	file->live->phase = phase;
	file->live->unit = unit;
	return live_block_write(file->fd, file->live_at, file->live);
}

static int note_phase(struct trace_file *file, enum live_phase phase, uint32_t unit)
{
	int r = write_phase(file, phase, unit);

	return r >= 0 && fsync(file->fd) < 0 ? -errno : r;
}

/*
 * Offsets into the table; then, when gaps and offsets are on the disk, the phase, which need not be
 * there: until it is, the gaps are looked for again and there are none.
 */
static int write_offsets(struct trace_file *file, const struct plan *plan)
{
	int r = 0;

	fault_point("compact-collapsed");
	for (unsigned cpu = 0; cpu < file->n_cpus && r >= 0; cpu++) {
		r = trace_file_write_offset(file, cpu, plan->offset[cpu]);
		if (cpu == 0)
			fault_point("compact-table");
	}
	if (r >= 0 && fsync(file->fd) < 0)
		r = -errno;
	return r < 0 ? r : write_phase(file, LIVE_DENSE, plan->unit);
}

/* Close one gap. -EINVAL: not on this file system's allocation unit. */
static int collapse(int fd, uint64_t from, uint64_t to)
{
	if (to <= from)
		return 0;
	fault_point("compact-gap");
	return fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, (off_t)from, (off_t)(to - from)) < 0 ? -errno
											    : 0;
}

/*
 * From the last gap to the first, so that what lies before a gap is still where it was.
 * Neighbouring gaps (a CPU without data between them) are one.
 */
static int collapse_gaps(struct trace_file *file, const struct plan *plan, bool *ret_begun)
{
	uint64_t next = 0; /* where the region behind the gap begins; 0: none, it is the end */

	for (unsigned i = file->n_cpus; i-- > 0;) {
		uint64_t end = file->region_at[i] + round_up(plan->size[i], plan->unit);
		int r = 0;

		if (plan->size[i] == 0 && i > 0)
			continue;
		/* A gap that reaches the end of the file cannot be collapsed, only cut off */
		if (next == 0 &&
		    ftruncate(file->fd, (off_t)(file->region_at[i] + plan->size[i])) < 0)
			r = -errno;
		else if (next > 0)
			r = collapse(file->fd, end, next);
		if (r < 0)
			return r;
		*ret_begun |= next > 0;
		next = file->region_at[i];
	}
	return 0;
}

static int collapse_file(struct trace_file *file, uint32_t unit, bool *ret_begun, struct fault *why)
{
	_cleanup_(plan_done) struct plan plan = {};
	int r = plan_make(file, unit, &plan);

	if (r >= 0)
		r = note_phase(file, LIVE_COLLAPSING, unit);
	fault_point("compact-begun");
	if (r >= 0)
		r = collapse_gaps(file, &plan, ret_begun);
	if (r >= 0)
		r = write_offsets(file, &plan);
	return r < 0 ? fault_errno(why, r, "cannot collapse") : 0;
}

/* The other descriptor counts as another opener; data has been written through it, all is synced */
static bool take_lease(struct trace_file *file)
{
	if (file->direct_fd != file->fd)
		close(file->direct_fd);
	file->direct_fd = file->fd;
	return fcntl(file->fd, F_SETLEASE, F_WRLCK) >= 0;
}

bool compact_in_use(struct trace_file *file)
{
	bool in_use = !take_lease(file);

	(void)fcntl(file->fd, F_SETLEASE, F_UNLCK);
	return in_use;
}

static int back_to_sparse(struct trace_file *file, struct fault *why)
{
	/* The end may have been cut off already: readers compare the table with the size */
	if (ftruncate(file->fd, (off_t)file->end) < 0)
		return fault_errno(why, -errno, "cannot set the file's size");
	return note_phase(file, LIVE_SPARSE, 0);
}

/* What was said of the file by attributes, as that it is pinned; where there are such */
static void copy_labels(int from, int to)
{
	char names[1024], value[256];
	ssize_t size = flistxattr(from, names, sizeof(names));

	for (char *name = names; name < names + size; name += strlen(name) + 1) {
		ssize_t n = fgetxattr(from, name, value, sizeof(value));

		if (strncmp(name, "user.", 5) == 0 && n >= 0)
			(void)fsetxattr(to, name, value, (size_t)n, 0);
	}
}

/* Reflink into another file: for file systems with shared extents and no collapse (btrfs) */
static int clone_file(struct trace_file *file, int dir_fd, const char *name, struct fault *why)
{
	_cleanup_(plan_done) struct plan plan = {};
	_cleanup_free_ char *tmp = strf("%s.dense", name);
	int old_fd = file->fd, fd, r;

	if (!tmp)
		return -ENOMEM;
	(void)unlinkat(dir_fd, tmp, 0);
	fd = openat(dir_fd, tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return fault_errno(why, -errno, "cannot create %s", tmp);
	r = plan_make(file, REGION_ALIGN, &plan);
	if (r >= 0)
		r = io_clone_range(old_fd, 0, fd, 0, file->region_at[0]);
	for (unsigned cpu = 0; cpu < file->n_cpus && r >= 0; cpu++)
		r = io_clone_range(old_fd, file->region_at[cpu], fd, plan.offset[cpu],
				   plan.size[cpu]);
	if (r >= 0 && ftruncate(fd, (off_t)plan.end) < 0)
		r = -errno;
	copy_labels(old_fd, fd);
	if (r >= 0) {
		file->fd = fd;
		r = write_offsets(file, &plan);
		/* This one knows of no collapse: dense and not said to be would be misread */
		if (r >= 0 && fsync(fd) < 0)
			r = -errno;
		file->fd = old_fd;
	}
	fault_point("compact-cloned");
	if (r >= 0 && renameat(dir_fd, tmp, dir_fd, name) < 0)
		r = -errno;
	close(fd);
	if (r >= 0)
		return COMPACT_DENSE;
	(void)unlinkat(dir_fd, tmp, 0);
	file->live->phase = LIVE_SPARSE;
	if (r == -EOPNOTSUPP || r == -ENOTTY || r == -EINVAL || r == -EXDEV)
		return COMPACT_NOT_HERE;
	return fault_errno(why, r, "cannot make %s", tmp);
}

int compact_file(struct trace_file *file, int dir_fd, const char *name, struct fault *why)
{
	bool begun = false;
	int r;

	if (!take_lease(file))
		return COMPACT_BUSY;
	r = collapse_file(file, file->subbuf_size, &begun, why);
	if (r == -EINVAL && !begun &&
	    file->subbuf_size < REGION_ALIGN) /* clusters of several blocks */
		r = collapse_file(file, REGION_ALIGN, &begun, why);
	if (r < 0 && !begun) {
		int back = back_to_sparse(file, why);

		r = back < 0 ? back : r;
	}
	(void)fcntl(file->fd, F_SETLEASE, F_UNLCK);
	if (r >= 0)
		return COMPACT_DENSE;
	if (!begun && (r == -EOPNOTSUPP || r == -EINVAL))
		return clone_file(file, dir_fd, name, why);
	return r;
}

bool compact_interrupted(const struct trace_file *file)
{
	return file->live->phase == LIVE_COLLAPSING;
}

/* Every hole behind @at; what the next data is moves up to it */
static int close_holes(int fd, uint64_t at, uint32_t unit)
{
	for (;;) {
		off_t hole = lseek(fd, (off_t)at, SEEK_HOLE), data;
		off_t end = lseek(fd, 0, SEEK_END);
		int r;

		if (hole < 0 || end < 0)
			return -errno;
		if (hole >= end)
			return 0;
		data = lseek(fd, hole, SEEK_DATA);
		if (data < 0 && errno != ENXIO)
			return -errno;
		if (data < 0) /* a hole up to the end */
			return ftruncate(fd, hole) < 0 ? -errno : 0;
		hole = (off_t)round_up((uint64_t)hole, unit);
		r = collapse(fd, (uint64_t)hole, round_down((uint64_t)data, unit));
		if (r < 0)
			return r;
		at = hole < data ? (uint64_t)hole : (uint64_t)data;
	}
}

static int resume_with(struct trace_file *file, uint32_t unit, struct fault *why)
{
	_cleanup_(plan_done) struct plan plan = {};
	struct stat st;
	int r;

	r = plan_make(file, unit, &plan);
	if (r >= 0)
		r = close_holes(file->fd, file->region_at[0], unit);
	if (r >= 0 && fstat(file->fd, &st) < 0)
		r = -errno;
	if (r < 0)
		return fault_errno(why, r, "cannot go on collapsing");
	/* The tail of the last unit may be there or not, it holds nothing */
	if ((uint64_t)st.st_size < plan.end ||
	    (uint64_t)st.st_size > round_up(plan.end, MAX(unit, (uint32_t)REGION_ALIGN)))
		return fault_set(why, -EBADMSG, "holds %lld bytes where its sizes say %llu",
				 (long long)st.st_size, (unsigned long long)plan.end);
	if (ftruncate(file->fd, (off_t)plan.end) < 0)
		return fault_errno(why, -errno, "cannot set the file's size");
	r = write_offsets(file, &plan);
	if (r < 0)
		return fault_errno(why, r, "cannot write the offsets");
	memcpy(file->region_at, plan.offset, file->n_cpus * sizeof(*plan.offset));
	file->end = plan.end;
	return 0;
}

int compact_resume(struct trace_file *file, struct fault *why)
{
	uint32_t unit = file->live->unit;
	unsigned n = file->n_cpus;
	int r;

	if (unit < 512 || unit > REGION_ALIGN || (unit & (unit - 1)) != 0)
		return fault_set(why, -EBADMSG, "the live block makes no sense");
	r = resume_with(file, unit, why);
	/* Its writer ended before it found out what this file system takes: nothing has moved yet
	 */
	if (r == -EINVAL && unit < REGION_ALIGN)
		r = resume_with(file, REGION_ALIGN, why);
	if (r != -EOPNOTSUPP)
		return r;
	if (n > 1)
		file->end = 2 * file->region_at[n - 1] - file->region_at[n - 2];
	return back_to_sparse(file, why);
}
