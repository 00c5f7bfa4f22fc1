/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>

#include "basic/fault-point.h"
#include "basic/io.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "engine/segment-internal.h"
#include "writer/compact.h"
#include "writer/file-age.h"
#include "writer/store.h"

void segment_note(struct segment *s, int level, int error, const char *format, ...)
{
	struct segment_note *item;
	va_list ap;

	if (s->notes.n == SEGMENT_NOTES_MAX)
		return;
	item = &s->notes.items[s->notes.n++];
	item->level = level;
	item->fault.error = error;
	va_start(ap, format);
	(void)vsnprintf(item->fault.text, sizeof(item->fault.text), format, ap);
	va_end(ap);
}

void segment_done(struct segment *s)
{
	trace_file_free(s->file);
	trace_file_free(s->old);
	for (unsigned cpu = 0; s->cpustat && cpu < s->plan.params.n_cpus; cpu++)
		free(s->cpustat[cpu]);
	file_plan_done(&s->plan);
	free(s->cpustat);
	strv_free(s->finished);
	free(s->evicted);
	free(s->unsure);
	close_p(&s->dir_fd);
	*s = (struct segment){.dir_fd = -EBADF, .eio_usec = s->eio_usec};
}

int segment_write_names(struct segment *s, struct trace_file *file)
{
	return file_plan_write_names(&s->plan, file, s->scan_tasks);
}

void segment_refresh_names(struct segment *s)
{
	int r = segment_write_names(s, s->file);

	if (r < 0)
		segment_note(s, LOG_WARNING, r, "cannot write task names: %s", strerror(-r));
}

static int write_stats(struct segment *s, struct trace_file *file)
{
	int r = 0;

	for (unsigned cpu = 0; s->cpustat && cpu < trace_file_n_cpus(file) && r >= 0; cpu++)
		if (s->cpustat[cpu])
			r = trace_file_write_cpustat(file, cpu, s->cpustat[cpu]);
	return r;
}

static bool has_data(const struct trace_file *file)
{
	for (unsigned cpu = 0; cpu < trace_file_n_cpus(file); cpu++) {
		uint64_t size = 1;

		if (trace_file_read_size(file, cpu, &size) < 0 || size > 0)
			return true;
	}
	return false;
}

/* @beside: bytes on the disk that will count as a finished file in a moment */
static void retain(struct segment *s, uint64_t beside)
{
	struct retention_report report = {.cpu_subbufs = s->evicted,
					  .n_cpus = s->plan.params.n_cpus};
	struct retention_limits limits = s->limits;
	struct fault why;
	int r;

	/* To delete what is open frees nothing: it would be done again and again */
	if (atomic_load(&s->held_open))
		limits.keep_free = 0;
	if (s->file)
		limits.live_reserve += trace_file_header_size(s->file) + beside;
	r = retention_apply(s->dir_fd, &limits, &report, &why);

	s->kept_files = report.kept_files;
	s->kept_bytes = report.kept_bytes;
	s->past = report.past;
	if (report.files > 0)
		segment_note(s, LOG_DEBUG, 0, "retention removed %u old files, %llu bytes",
			     report.files, (unsigned long long)report.bytes);
	if (r < 0)
		segment_note(s, LOG_WARNING, r, "%s", why.text);
}

/* Make a complete file dense that is called @name now, where that goes; then give it the name @to
 */
static int compact_and_rename(struct segment *s, struct trace_file *file, const char *name,
			      const char *to, struct fault *why)
{
	int r = COMPACT_DENSE;

	if (trace_file_phase(file) != LIVE_DENSE)
		r = compact_file(file, s->dir_fd, name, why);
	if (r < 0)
		return r;
	s->sparse_left |= r == COMPACT_BUSY;
	fault_point("finish-rename");
	r = io_rename_new_at(s->dir_fd, name, to);
	if (r < 0)
		return fault_errno(why, r, "cannot rename %s to %s", name, to);
	fault_point("finish-renamed");
	if (fsync(s->dir_fd) < 0)
		return fault_errno(why, -errno, "cannot sync the directory of %s", to);
	return 0;
}

static bool is_of_this_boot(const struct segment *s, const struct trace_file *file)
{
	return memcmp(trace_file_live_block(file)->boot_id, s->plan.params.boot_id,
		      sizeof(s->plan.params.boot_id)) == 0;
}

int segment_archive(struct segment *s, struct trace_file *file, const char *name, struct fault *why)
{
	uint64_t usec = trace_file_first_time(file);
	char to[STORE_NAME_SIZE], finishing[STORE_NAME_SIZE];
	int r;

	s->archive[0] = '\0';
	if (!has_data(file))
		return unlinkat(s->dir_fd, name, 0) < 0
			       ? fault_errno(why, -errno, "cannot remove empty %s", name)
			       : 0;
	fault_point("finish-begin");
	r = trace_file_complete(file);
	if (r < 0)
		return fault_errno(why, r, "cannot finish %s", name);
	r = store_finished_name(s->dir_fd, name, to) ? 0 : -ENOENT;
	if (r < 0)
		r = store_archive_name(s->dir_fd, usec > 0 ? usec : now_usec(CLOCK_REALTIME), to);
	if (r < 0)
		return fault_errno(why, r, "cannot name %s", name);
	/* Not under the name current.dat: what is seen while gaps are closed is no valid file */
	if (strcmp(name, STORE_CURRENT) == 0) {
		store_finishing_name(to, finishing);
		if (renameat(s->dir_fd, name, s->dir_fd, finishing) < 0)
			return fault_errno(why, -errno, "cannot rename %s", name);
		name = finishing;
		fault_point("finish-hidden");
	}
	r = compact_and_rename(s, file, name, to, why);
	if (r < 0)
		return r;
	if (is_of_this_boot(s, file))
		file_age_note(s->dir_fd, to,
			      usec > 0 ? (int64_t)usec - s->old_clock_usec
				       : (int64_t)now_usec(CLOCK_BOOTTIME),
			      now_usec(CLOCK_BOOTTIME));
	(void)strcpy(s->archive, to);
	(void)strv_append(&s->finished, to);
	return 0;
}

/* Can what the instance holds be appended to this file? */
static bool continues(const struct segment *s, const struct trace_file *file)
{
	return s->adopt && trace_file_n_cpus(file) == s->plan.params.n_cpus &&
	       (s->plan.params.direct != STORAGE_DIRECT_YES || trace_file_is_direct(file)) &&
	       trace_file_subbuf_size(file) == s->plan.params.subbuf_size &&
	       is_of_this_boot(s, file);
}

static int create(struct segment *s, struct trace_file **ret, struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	int r;

	r = trace_file_create(s->dir_fd, STORE_CURRENT, &s->plan.params, &file, why);
	if (r < 0)
		return r;
	s->scan_tasks = true;
	r = segment_write_names(s, file);
	/* Before it gets its name: a power cut must not leave a current.dat without a header */
	if (r >= 0)
		r = trace_file_sync(file);
	if (r < 0) {
		store_remove_unfinished(s->dir_fd);
		return fault_errno(why, r, "cannot write the next segment's header");
	}
	*ret = TAKE_PTR(file);
	return 0;
}

/* What is synced later is of no use if nobody finds the file after a power cut */
static void sync_names(struct segment *s)
{
	if (fsync(s->dir_fd) < 0)
		segment_note(s, LOG_WARNING, -errno, "cannot sync directory record: %s, ignoring",
			     strerror(errno));
}

static void count_files(struct segment *s)
{
	struct retention_report report = {0};

	if (retention_count(s->dir_fd, &report) < 0)
		return;
	s->kept_files = report.kept_files;
	s->kept_bytes = report.kept_bytes;
	s->past = report.past;
}

/* A sub-buffer begins with its time */
static bool any_slot_used(const struct segment *s)
{
	static const char none[sizeof(uint64_t)];

	for (unsigned cpu = 0; s->slots && cpu < s->plan.params.n_cpus; cpu++)
		if (memcmp(s->slots + (size_t)cpu * s->plan.params.subbuf_size, none,
			   sizeof(none)) != 0)
			return true;
	return false;
}

/*
 * What an earlier process left; @ret: current.dat, if there is one. One bad sector in a finished
 * file is no reason not to record; that file is waited for if it may have what is in the slots.
 */
static int put_right(struct segment *s, struct trace_file **ret, struct fault *why)
{
	int r, left = segment_finish_leftovers(s, why);
	struct fault left_why = *why;

	if (left < 0 && (left != -EIO || (any_slot_used(s) && !segment_has_waited(s))))
		return left;
	count_files(s);
	r = segment_take_up(s, STORE_CURRENT, ret, why);
	if (r < 0)
		return r;
	if (left < 0)
		segment_note(s, LOG_WARNING, left, "%s; trying again with each sync",
			     left_why.text);
	else
		s->eio_usec = 0;
	s->unfinished_left = left < 0;
	return 0;
}

int segment_open(struct segment *s, struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	int r;

	s->clock_usec = s->old_clock_usec = file_age_offset_usec();
	r = put_right(s, &file, why);
	if (r == -ENOSPC || r == -EDQUOT) {
		retain(s, 0);
		r = put_right(s, &file, why);
	}
	if (r < 0 && r != -EIO)
		s->eio_usec = 0;
	if (r < 0)
		return r;
	s->slots = NULL; /* from now on they are of this process */
	if (file && continues(s, file)) {
		segment_note(s, LOG_INFO, 0, "continuing record/" STORE_CURRENT);
		sync_names(s);
		s->file = TAKE_PTR(file);
		return 0;
	}
	if (file) {
		r = segment_archive(s, file, STORE_CURRENT, why);
		if (r < 0)
			return r;
		s->archived_id = trace_file_trace_id(file);
		segment_note(s, LOG_INFO, 0, "finished the segment of an earlier run");
		trace_file_free(TAKE_PTR(file));
	}
	retain(s, 0);
	r = create(s, &file, why);
	if (r >= 0)
		r = trace_file_publish(s->dir_fd, STORE_CURRENT, false, why);
	if (r < 0)
		return r;
	sync_names(s);
	s->file = TAKE_PTR(file);
	return 0;
}

/* current.dat gets its other name, and the new file the name current.dat, which is never missing */
static int swap_current(struct segment *s, struct fault *why)
{
	int r;

	if (linkat(s->dir_fd, STORE_CURRENT, s->dir_fd, s->old_name, 0) < 0)
		return fault_errno(why, -errno, "cannot link %s", STORE_CURRENT);
	fault_point("rotate-linked");
	r = trace_file_publish(s->dir_fd, STORE_CURRENT, true, why);
	if (r < 0)
		(void)unlinkat(s->dir_fd, s->old_name, 0);
	fault_point("rotate-swapped");
	return r;
}

int segment_begin_next(struct segment *s, struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	uint64_t usec = trace_file_first_time(s->file);
	char archive[STORE_NAME_SIZE];
	int r;

	retain(s, trace_file_disk_bytes(s->file));
	r = store_archive_name(s->dir_fd, usec > 0 ? usec : now_usec(CLOCK_REALTIME), archive);
	if (r < 0)
		return fault_errno(why, r, "cannot name the finished segment");
	store_finishing_name(archive, s->old_name);
	r = create(s, &file, why);
	if (r < 0)
		return r;
	fault_point("rotate-created");
	r = swap_current(s, why);
	if (r < 0)
		return r;
	s->old = s->file;
	s->file = TAKE_PTR(file);
	s->old_clock_usec = s->clock_usec;
	s->clock_usec = file_age_offset_usec();
	return 0;
}

void segment_close_current(struct segment *s)
{
	s->old = TAKE_PTR(s->file);
	s->old_clock_usec = s->clock_usec;
	(void)strcpy(s->old_name, STORE_CURRENT);
}

/* Written through the page cache, and since a sync failed not on the disk for all we know */
static void count_unsure(struct segment *s, struct trace_file *file, const char *name)
{
	const uint64_t *synced = trace_file_live_block(file)->synced;
	uint64_t bytes = 0;

	if (!s->unsure || !trace_file_take_unsure(file))
		return;
	for (unsigned cpu = 0; cpu < s->plan.params.n_cpus; cpu++) {
		uint64_t size = 0;

		(void)trace_file_read_size(file, cpu, &size);
		size -= MIN(synced[cpu], size);
		s->unsure[cpu] += size;
		bytes += size;
	}
	segment_note(s, LOG_ERR, -EIO, "up to %llu bytes of record/%s may not be on the disk",
		     (unsigned long long)bytes, name);
}

int segment_finish_old(struct segment *s, struct fault *why)
{
	int r;

	if (s->file)
		sync_names(s);
	s->scan_tasks = true;
	r = segment_write_names(s, s->old);
	if (r >= 0)
		r = write_stats(s, s->old);
	if (r < 0)
		segment_note(s, LOG_WARNING, r,
			     "cannot write the last task names and statistics into record/%s: %s",
			     s->old_name, strerror(-r));
	r = segment_archive(s, s->old, s->old_name, why);
	count_unsure(s, s->old, s->old_name);
	s->unfinished_left |= r < 0;
	trace_file_free(TAKE_PTR(s->old));
	retain(s, 0);
	return r;
}

/*
 * A finished file that is still sparse: under a hidden name while its gaps are closed
 * @was: it keeps the time of its last data, by which it ages
 */
static int make_dense(struct segment *s, const char *name, const struct stat *was,
		      struct fault *why)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, was->st_mtim};
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	char finishing[STORE_NAME_SIZE];
	int r;

	r = trace_file_open(s->dir_fd, name, STORAGE_DIRECT_NO, &file, why);
	if (r < 0 || trace_file_phase(file) != LIVE_SPARSE)
		return 0; /* not of our making: leave it alone */
	if (compact_in_use(file)) {
		s->sparse_left = true;
		return 0;
	}
	store_finishing_name(name, finishing);
	if (renameat(s->dir_fd, name, s->dir_fd, finishing) < 0)
		return fault_errno(why, -errno, "cannot rename it");
	r = compact_and_rename(s, file, finishing, name, why);
	if (r >= 0)
		(void)utimensat(s->dir_fd, name, times, AT_SYMLINK_NOFOLLOW);
	return r;
}

static void compact_leftovers(struct segment *s)
{
	struct dirent **entries = NULL;
	int n = scandirat(s->dir_fd, ".", &entries, NULL, alphasort);

	s->sparse_left = false;
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		struct fault why;
		struct stat st;
		uint64_t usec;

		if (store_parse_archive_name(name, &usec) &&
		    fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) >= 0 &&
		    st.st_blocks * 512 < st.st_size && make_dense(s, name, &st, &why) < 0) {
			segment_note(s, LOG_WARNING, -EIO, "record/%s stays sparse: %s", name,
				     why.text);
			s->unfinished_left = true; /* perhaps under its hidden name */
		}
		free(entries[i]);
	}
	free(entries);
}

int segment_sync(struct segment *s, struct fault *why)
{
	struct fault ignored;
	int r, synced;

	retain(s, 0);
	r = segment_write_names(s, s->file);
	s->scan_tasks = false;
	if (r >= 0)
		r = write_stats(s, s->file);
	/* Where there was no room for the names the data may still be made safe */
	synced = trace_file_sync(s->file);
	count_unsure(s, s->file, STORE_CURRENT);
	if (s->unfinished_left && segment_finish_leftovers(s, &ignored) >= 0) {
		s->unfinished_left = false;
		s->eio_usec = 0;
	}
	if (s->sparse_left)
		compact_leftovers(s);
	r = synced < 0 ? synced : r;
	return r < 0 ? fault_errno(why, r, "cannot sync record/" STORE_CURRENT) : 0;
}

int segment_probe_disk(struct segment *s, struct fault *why)
{
	int r = 0;

	/* What the first writes, the second waits for */
	for (unsigned i = 0; i < 2 && s->file && r >= 0; i++)
		r = trace_file_sync(s->file);
	return r < 0 ? fault_errno(why, r, "cannot sync record/" STORE_CURRENT) : 0;
}
