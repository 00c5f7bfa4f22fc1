/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "basic/fault-point.h"
#include "basic/io.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "engine/recording.h"
#include "writer/compact.h"
#include "writer/file-age.h"
#include "writer/recover.h"

#define EIO_USEC (20 * USEC_PER_SEC)

struct recording {
	/* of the step under way */
	const struct recording_input *in;
	struct recording_report *report;

	struct trace_file *file;	/* current.dat; NULL: none open */
	struct trace_file *old;		/* the one before, on its way to the archive */
	char old_name[STORE_NAME_SIZE]; /* its name now */
	int64_t clock_usec;	/* file_age_offset_usec() when current.dat was made, or found */
	int64_t old_clock_usec; /* of the one before */
	bool scan_tasks;	/* look at /proc as well */
	bool sparse_left;	/* finished files may wait to be made dense */
	bool unfinished_left;	/* something could not be finished: to be tried again */
	uint64_t eio_usec;	/* monotonic: first read error of what is left */
	atomic_bool held_open;
};

/* Leave a line for the log; @level: LOG_DEBUG … LOG_ERR */
static void _printf_(4, 5) note(struct recording *s, int level, int error, const char *format, ...)
{
	struct recording_notes *notes = &s->report->notes;
	struct recording_note *item;
	va_list ap;

	if (notes->n == RECORDING_NOTES_MAX)
		return;
	item = &notes->items[notes->n++];
	item->level = level;
	item->fault.error = error;
	va_start(ap, format);
	(void)vsnprintf(item->fault.text, sizeof(item->fault.text), format, ap);
	va_end(ap);
}

static void begin(struct recording *s, const struct recording_input *in,
		  struct recording_report *report)
{
	s->in = in;
	s->report = report;
}

/* The task names that are known now into the file */
static int write_names(struct recording *s, struct trace_file *file)
{
	return file_plan_write_names(&s->in->plan, file, s->scan_tasks);
}

void recording_refresh_names(struct recording *s, const struct recording_input *in,
			     struct recording_report *report)
{
	int r;

	begin(s, in, report);
	r = write_names(s, s->file);
	if (r < 0)
		note(s, LOG_WARNING, r, "cannot write task names: %s", strerror(-r));
}

static int write_stats(struct recording *s, struct trace_file *file)
{
	int r = 0;

	for (unsigned cpu = 0; s->in->cpustat && cpu < trace_file_n_cpus(file) && r >= 0; cpu++)
		if (s->in->cpustat[cpu])
			r = trace_file_write_cpustat(file, cpu, s->in->cpustat[cpu]);
	return r;
}

/* Readings of the clocks since the step before, one of now with them if the file ends */
static void write_clocks(struct recording *s, struct trace_file *file)
{
	int r = 0;

	for (size_t i = 0; i < s->in->n_clocks && r >= 0; i++)
		r = trace_file_add_clock(file, &s->in->clocks[i]);
	if (r < 0)
		note(s, LOG_WARNING, r, "cannot write readings of the clocks: %s, ignoring",
		     strerror(-r));
}

/* Which events were not recorded, also before the step */
static void write_sheds(struct recording *s, struct trace_file *file)
{
	int r = trace_file_write_sheds(file, &s->in->plan.sheds, s->in->plan.sheds_ended);

	if (r < 0)
		note(s, LOG_WARNING, r, "cannot write which events were not recorded: %s, ignoring",
		     strerror(-r));
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

static void take_counts(struct recording *s, const struct retention_report *report)
{
	s->report->counted = true;
	s->report->kept_files = report->kept_files;
	s->report->kept_bytes = report->kept_bytes;
	s->report->past = report->past;
}

/* The segment that ends is a finished one in a moment, and was not there to be counted */
static void count_ended(struct recording_report *report, uint64_t usec, uint64_t bytes)
{
	struct retention_past *past = &report->past;

	if (!report->counted)
		return;
	report->kept_files++;
	report->kept_bytes += bytes;
	past->oldest_usec = past->oldest_usec > 0 ? past->oldest_usec : usec;
	past->recent_usec = past->recent_usec > 0 ? past->recent_usec : usec;
	past->recent_bytes += bytes;
	past->recent_plain += bytes;
}

/* @beside: bytes on the disk that will count as a finished file in a moment */
static void retain(struct recording *s, uint64_t beside)
{
	struct retention_report report = {.cpu_subbufs = s->report->evicted,
					  .n_cpus = s->in->plan.params.n_cpus};
	struct retention_limits limits = s->in->limits;
	struct fault why;
	int r;

	/* To delete what is open frees nothing: it would be done again and again */
	if (atomic_load(&s->held_open))
		limits.keep_free = 0;
	if (s->file)
		limits.live_reserve += trace_file_header_size(s->file) + beside;
	r = retention_apply(s->in->dir_fd, &limits, &report, &why);

	take_counts(s, &report);
	s->report->plain_evicted += report.plain_files;
	if (report.files > 0)
		note(s, LOG_DEBUG, 0, "retention removed %u old files, %llu bytes", report.files,
		     (unsigned long long)report.bytes);
	if (r < 0)
		note(s, LOG_WARNING, r, "%s", why.text);
}

/* Make a complete file dense that is called @name now, where that goes; then give it the name @to
 */
static int compact_and_rename(struct recording *s, struct trace_file *file, const char *name,
			      const char *to, struct fault *why)
{
	int r = COMPACT_DENSE;

	if (trace_file_phase(file) != LIVE_DENSE)
		r = compact_file(file, s->in->dir_fd, name, why);
	if (r < 0)
		return r;
	s->sparse_left |= r == COMPACT_BUSY;
	fault_point("finish-rename");
	r = io_rename_new_at(s->in->dir_fd, name, to);
	if (r < 0)
		return fault_errno(why, r, "cannot rename %s to %s", name, to);
	fault_point("finish-renamed");
	if (fsync(s->in->dir_fd) < 0)
		return fault_errno(why, -errno, "cannot sync the directory of %s", to);
	return 0;
}

static bool is_of_this_boot(const struct recording *s, const struct trace_file *file)
{
	return memcmp(trace_file_live_block(file)->boot_id, s->in->plan.params.boot_id,
		      sizeof(s->in->plan.params.boot_id)) == 0;
}

/* A file called @name now into the archive, complete and dense; or away if there is nothing in it.
 * Sets the report's archive to its name there. */
static int archive(struct recording *s, struct trace_file *file, const char *name,
		   struct fault *why)
{
	uint64_t usec = trace_file_first_time(file);
	char to[STORE_NAME_SIZE], finishing[STORE_NAME_SIZE];
	int r;

	s->report->archive[0] = '\0';
	if (!has_data(file))
		return unlinkat(s->in->dir_fd, name, 0) < 0
			       ? fault_errno(why, -errno, "cannot remove empty %s", name)
			       : 0;
	fault_point("finish-begin");
	r = trace_file_complete(file);
	if (r < 0)
		return fault_errno(why, r, "cannot finish %s", name);
	r = store_finished_name(s->in->dir_fd, name, to) ? 0 : -ENOENT;
	if (r < 0)
		r = store_archive_name(s->in->dir_fd, usec > 0 ? usec : now_usec(CLOCK_REALTIME),
				       to);
	if (r < 0)
		return fault_errno(why, r, "cannot name %s", name);
	/* Not under the name current.dat: what is seen while gaps are closed is no valid file */
	if (strcmp(name, STORE_CURRENT) == 0) {
		store_finishing_name(to, finishing);
		if (renameat(s->in->dir_fd, name, s->in->dir_fd, finishing) < 0)
			return fault_errno(why, -errno, "cannot rename %s", name);
		name = finishing;
		fault_point("finish-hidden");
	}
	r = compact_and_rename(s, file, name, to, why);
	if (r < 0)
		return r;
	if (is_of_this_boot(s, file))
		file_age_note(s->in->dir_fd, to,
			      usec > 0 ? (int64_t)usec - s->old_clock_usec
				       : (int64_t)now_usec(CLOCK_BOOTTIME),
			      now_usec(CLOCK_BOOTTIME));
	(void)strcpy(s->report->archive, to);
	(void)strv_append(&s->report->finished, to);
	return 0;
}

static int set_aside(struct recording *s, const char *name, struct fault *why)
{
	char to[STORE_NAME_SIZE];
	char reason[sizeof(why->text)];
	int r;

	(void)snprintf(reason, sizeof(reason), "%.*s", 900, why->text);
	r = store_set_aside(s->in->dir_fd, name, to);
	if (r < 0)
		return fault_errno(why, r, "cannot rename %s, which is damaged (%s)", name, reason);
	note(s, LOG_WARNING, -EBADMSG, "record/%s is damaged (%s), renamed to %s", name, reason,
	     to);
	return 0;
}

static bool is_damage(int error)
{
	return error == -EBADMSG || error == -ENODATA || error == -EOPNOTSUPP || error == -ELOOP ||
	       error == -EISDIR || error == -ENXIO;
}

/* Has a file of an earlier process been unreadable for so long that it is not for a moment? */
static bool has_waited(struct recording *s)
{
	uint64_t now = now_usec(CLOCK_MONOTONIC);

	if (s->eio_usec == 0)
		s->eio_usec = now;
	return now - s->eio_usec >= EIO_USEC;
}

/*
 * @error: why it cannot be taken up. Read errors may pass: the file is put aside for them when they
 * have not for a while, and where that cannot be done either, it is the disk that is away.
 */
static int refuse(struct recording *s, const char *name, int error, struct fault *why)
{
	struct fault first = *why;
	int r;

	if (!is_damage(error) && (error != -EIO || !has_waited(s)))
		return error;
	r = set_aside(s, name, why);
	if (r >= 0 || error != -EIO)
		return r;
	*why = first;
	return error;
}

/*
 * Open a file that an earlier process left, and make it whole; one that is damaged is renamed.
 * Return: 1 with @ret set, 0 if there is none (any more), or negative errno with @why.
 */
static int take_up(struct recording *s, const char *name, struct trace_file **ret,
		   struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	struct recover_report report;
	const struct recover_hand *hand = &s->in->hand;
	int r;

	if (faccessat(s->in->dir_fd, name, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : fault_errno(why, -errno, "cannot open %s", name);
	/* Direct= may have been set since: what is there is finished all the same */
	r = trace_file_open(s->in->dir_fd, name,
			    s->in->plan.params.direct == STORAGE_DIRECT_NO ? STORAGE_DIRECT_NO
									   : STORAGE_DIRECT_AUTO,
			    &file, why);
	if (r >= 0 && compact_interrupted(file))
		r = compact_resume(file, why);
	if (r < 0)
		return refuse(s, name, r, why);
	/* Its sizes were right and on the disk before the first gap was closed */
	if (trace_file_phase(file) == LIVE_DENSE) {
		*ret = TAKE_PTR(file);
		return 1;
	}
	if (trace_file_n_cpus(file) != s->in->plan.params.n_cpus ||
	    trace_file_subbuf_size(file) != s->in->plan.params.subbuf_size)
		hand = NULL;
	r = recover_file(file, s->in->dir_fd, name, hand, &report, why);
	if (r < 0)
		return refuse(s, name, r, why);
	if (report.adopted > 0 || report.cut > 0)
		note(s, report.unreadable ? LOG_WARNING : LOG_INFO, 0,
		     "record/%s: recovered %llu bytes past the recorded size, dropped %llu bytes%s%s",
		     name, (unsigned long long)report.adopted, (unsigned long long)report.cut,
		     report.unreadable ? " (the disk cannot read some)" : "",
		     report.kept_cut ? " (kept in *.damaged)" : "");
	*ret = TAKE_PTR(file);
	return 1;
}

static int finish_leftover(struct recording *s, const char *name, struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	int r;

	if (store_same_file(s->in->dir_fd, name, STORE_CURRENT)) {
		/* Ended while the two names were swapped: it is still the live file */
		(void)unlinkat(s->in->dir_fd, name, 0);
		return 0;
	}
	r = take_up(s, name, &file, why);
	if (r <= 0)
		return r;
	r = archive(s, file, name, why);
	if (r >= 0)
		note(s, LOG_INFO, 0, "record/%s: finished what had been begun", name);
	return r;
}

/* All files into the archive that an earlier process was about to put there */
static int finish_leftovers(struct recording *s, struct fault *why)
{
	_cleanup_(strv_freep) char **names = NULL;
	struct fault one;
	int r, result = 0;

	r = store_list_finishing(s->in->dir_fd, &names);
	if (r < 0)
		return fault_errno(why, r, "cannot read directory record");
	for (char **name = names; *name; name++) {
		r = finish_leftover(s, *name, &one);
		if (r < 0 && result >= 0) {
			result = r;
			*why = one;
		}
	}
	return result;
}

/* Can what the instance holds be appended to this file? */
static bool continues(const struct recording *s, const struct trace_file *file)
{
	return s->in->adopt && trace_file_n_cpus(file) == s->in->plan.params.n_cpus &&
	       (s->in->plan.params.direct != STORAGE_DIRECT_YES || trace_file_is_direct(file)) &&
	       trace_file_subbuf_size(file) == s->in->plan.params.subbuf_size &&
	       is_of_this_boot(s, file);
}

static int create(struct recording *s, struct trace_file **ret, struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	struct trace_file_params params = s->in->plan.params;
	int r;

	s->scan_tasks = true;
	r = file_plan_read_names(&s->in->plan, true);
	if (r >= 0)
		r = file_plan_names_room(&s->in->plan, &params.names_room);
	if (r < 0)
		return fault_errno(why, r, "cannot read the names of tasks");
	params.own.tasks_room = file_plan_tasks_room(&s->in->plan, params.names_room, s->file);
	r = trace_file_create(s->in->dir_fd, STORE_CURRENT, &params, &file, why);
	if (r < 0)
		return r;
	r = file_plan_put_names(&s->in->plan, file);
	/* Before it gets its name: a power cut must not leave a current.dat without a header */
	if (r >= 0)
		r = trace_file_sync(file);
	if (r >= 0 && s->file)
		trace_file_share(file, s->file);
	if (r < 0) {
		store_remove_unfinished(s->in->dir_fd);
		return fault_errno(why, r, "cannot write the next segment's header");
	}
	if (s->in->plan.names)
		task_names_file_begun(s->in->plan.names);
	*ret = TAKE_PTR(file);
	return 0;
}

/* What is synced later is of no use if nobody finds the file after a power cut */
static void sync_names(struct recording *s)
{
	if (fsync(s->in->dir_fd) < 0)
		note(s, LOG_WARNING, -errno, "cannot sync directory record: %s, ignoring",
		     strerror(errno));
}

static void count_files(struct recording *s)
{
	struct retention_report report = {0};

	if (retention_count(s->in->dir_fd, &report) < 0)
		return;
	take_counts(s, &report);
}

/* A sub-buffer begins with its time */
static bool any_in_hand(const struct recording *s)
{
	static const char none[sizeof(uint64_t)];
	const struct recover_hand *hand = &s->in->hand;

	for (unsigned cpu = 0; hand->slots && cpu < s->in->plan.params.n_cpus; cpu++)
		if (memcmp(hand->slots + (size_t)cpu * s->in->plan.params.subbuf_size, none,
			   sizeof(none)) != 0)
			return true;
	return hand->n_batches > 0;
}

/*
 * What an earlier process left; @ret: current.dat, if there is one. One bad sector in a finished
 * file is no reason not to record; that file is waited for if it may have what was in hand.
 */
static int put_right(struct recording *s, struct trace_file **ret, struct fault *why)
{
	int r, left = finish_leftovers(s, why);
	struct fault left_why = *why;

	if (left < 0 && (left != -EIO || (any_in_hand(s) && !has_waited(s))))
		return left;
	count_files(s);
	r = take_up(s, STORE_CURRENT, ret, why);
	if (r < 0)
		return r;
	if (left < 0)
		note(s, LOG_WARNING, left, "%s; trying again with each sync", left_why.text);
	else
		s->eio_usec = 0;
	s->unfinished_left = left < 0;
	return 0;
}

int recording_open(struct recording *s, const struct recording_input *in,
		   struct recording_report *report, struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	int r;

	begin(s, in, report);
	s->sparse_left = true; /* maybe: an earlier process may have left some */
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
	if (file && continues(s, file)) {
		const struct own_clock *now = file_plan_reading(&in->plan);

		note(s, LOG_INFO, 0, "continuing record/" STORE_CURRENT);
		if (now)
			(void)trace_file_add_clock(file, now);
		sync_names(s);
		s->file = TAKE_PTR(file);
		return 0;
	}
	if (file) {
		r = archive(s, file, STORE_CURRENT, why);
		if (r < 0)
			return r;
		s->report->archived_id = trace_file_trace_id(file);
		note(s, LOG_INFO, 0, "finished the segment of an earlier run");
		trace_file_free(TAKE_PTR(file));
	}
	retain(s, 0);
	r = create(s, &file, why);
	if (r >= 0)
		r = trace_file_publish(s->in->dir_fd, STORE_CURRENT, false, why);
	if (r < 0)
		return r;
	sync_names(s);
	s->file = TAKE_PTR(file);
	return 0;
}

/* current.dat gets its other name, and the new file the name current.dat, which is never missing */
static int swap_current(struct recording *s, struct fault *why)
{
	int r;

	if (linkat(s->in->dir_fd, STORE_CURRENT, s->in->dir_fd, s->old_name, 0) < 0)
		return fault_errno(why, -errno, "cannot link %s", STORE_CURRENT);
	fault_point("rotate-linked");
	r = trace_file_publish(s->in->dir_fd, STORE_CURRENT, true, why);
	if (r < 0)
		(void)unlinkat(s->in->dir_fd, s->old_name, 0);
	fault_point("rotate-swapped");
	return r;
}

int recording_begin_next(struct recording *s, const struct recording_input *in,
			 struct recording_report *report, struct fault *why)
{
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	uint64_t usec = trace_file_first_time(s->file), bytes = trace_file_disk_bytes(s->file);
	char name[STORE_NAME_SIZE];
	int r;

	usec = usec > 0 ? usec : now_usec(CLOCK_REALTIME);
	begin(s, in, report);
	retain(s, bytes);
	r = store_archive_name(s->in->dir_fd, usec, name);
	if (r < 0)
		return fault_errno(why, r, "cannot name the finished segment");
	store_finishing_name(name, s->old_name);
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
	count_ended(report, usec, bytes);
	return 0;
}

void recording_close_current(struct recording *s)
{
	s->old = TAKE_PTR(s->file);
	s->old_clock_usec = s->clock_usec;
	(void)strcpy(s->old_name, STORE_CURRENT);
}

/* Written through the page cache, and since a sync failed not on the disk for all we know */
static void count_unsure(struct recording *s, struct trace_file *file, const char *name)
{
	const uint64_t *synced = trace_file_live_block(file)->synced;
	uint64_t bytes = 0;

	if (!s->report->unsure || !trace_file_take_unsure(file))
		return;
	for (unsigned cpu = 0; cpu < s->in->plan.params.n_cpus; cpu++) {
		uint64_t size = 0;

		(void)trace_file_read_size(file, cpu, &size);
		size -= MIN(synced[cpu], size);
		s->report->unsure[cpu] += size;
		bytes += size;
	}
	note(s, LOG_ERR, -EIO, "up to %llu bytes of record/%s may not be on the disk",
	     (unsigned long long)bytes, name);
}

int recording_finish_old(struct recording *s, const struct recording_input *in,
			 struct recording_report *report, struct fault *why)
{
	int r;

	begin(s, in, report);
	if (s->file)
		sync_names(s);
	s->scan_tasks = true;
	write_clocks(s, s->old);
	write_sheds(s, s->old);
	r = write_names(s, s->old);
	if (r >= 0)
		r = write_stats(s, s->old);
	if (r < 0)
		note(s, LOG_WARNING, r,
		     "cannot write the last task names and statistics into record/%s: %s",
		     s->old_name, strerror(-r));
	r = archive(s, s->old, s->old_name, why);
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
static int make_dense(struct recording *s, const char *name, const struct stat *was,
		      struct fault *why)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, was->st_mtim};
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	char finishing[STORE_NAME_SIZE];
	int r;

	r = trace_file_open(s->in->dir_fd, name, STORAGE_DIRECT_NO, &file, why);
	if (r < 0 || trace_file_phase(file) != LIVE_SPARSE)
		return 0; /* not of our making: leave it alone */
	if (compact_in_use(file)) {
		s->sparse_left = true;
		return 0;
	}
	store_finishing_name(name, finishing);
	if (renameat(s->in->dir_fd, name, s->in->dir_fd, finishing) < 0)
		return fault_errno(why, -errno, "cannot rename it");
	r = compact_and_rename(s, file, finishing, name, why);
	if (r >= 0)
		(void)utimensat(s->in->dir_fd, name, times, AT_SYMLINK_NOFOLLOW);
	return r;
}

static void compact_leftovers(struct recording *s)
{
	_cleanup_(strv_freep) char **names = NULL;

	s->sparse_left = false;
	(void)io_list_at(s->in->dir_fd, ".", NULL, &names);
	STRV_FOREACH (item, names) {
		const char *name = *item;
		struct fault why;
		struct stat st;
		uint64_t usec;

		if (store_parse_archive_name(name, &usec) &&
		    fstatat(s->in->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) >= 0 &&
		    st.st_blocks * 512 < st.st_size && make_dense(s, name, &st, &why) < 0) {
			note(s, LOG_WARNING, -EIO, "record/%s stays sparse: %s", name, why.text);
			s->unfinished_left = true; /* perhaps under its hidden name */
		}
	}
}

int recording_sync(struct recording *s, const struct recording_input *in,
		   struct recording_report *report, struct fault *why)
{
	struct fault ignored;
	int r, synced;

	begin(s, in, report);
	retain(s, 0);
	write_clocks(s, s->file);
	write_sheds(s, s->file);
	r = write_names(s, s->file);
	s->scan_tasks = false;
	if (r >= 0)
		r = write_stats(s, s->file);
	/* Where there was no room for the names the data may still be made safe */
	synced = trace_file_sync(s->file);
	count_unsure(s, s->file, STORE_CURRENT);
	s->report->names_fill = file_plan_names_fill(&s->in->plan, s->file);
	if (s->unfinished_left && finish_leftovers(s, &ignored) >= 0) {
		s->unfinished_left = false;
		s->eio_usec = 0;
	}
	if (s->sparse_left)
		compact_leftovers(s);
	r = synced < 0 ? synced : r;
	return r < 0 ? fault_errno(why, r, "cannot sync record/" STORE_CURRENT) : 0;
}

int recording_probe_disk(struct recording *s, struct fault *why)
{
	int r = 0;

	/* What the first writes, the second waits for */
	for (unsigned i = 0; i < 2 && s->file && r >= 0; i++)
		r = trace_file_sync(s->file);
	return r < 0 ? fault_errno(why, r, "cannot sync record/" STORE_CURRENT) : 0;
}

/* --- between steps */

int recording_new(struct recording **ret)
{
	struct recording *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*ret = s;
	return 0;
}

void recording_close(struct recording *s)
{
	trace_file_free(s->file);
	trace_file_free(s->old);
	*s = (struct recording){.eio_usec = s->eio_usec};
}

void recording_free(struct recording *s)
{
	if (!s)
		return;
	recording_close(s);
	free(s);
}

void recording_forget_errors(struct recording *s)
{
	s->eio_usec = 0;
}

void recording_hold_open(struct recording *s, bool hold)
{
	atomic_store(&s->held_open, hold);
}

struct trace_file *recording_file(const struct recording *s)
{
	return s->file;
}

struct trace_file *recording_old(const struct recording *s)
{
	return s->old;
}

int64_t recording_clock_usec(const struct recording *s)
{
	return s->clock_usec;
}

int recording_report_init(struct recording_report *report, unsigned n_cpus)
{
	report->n_cpus = n_cpus;
	report->evicted = calloc(n_cpus, sizeof(*report->evicted));
	report->unsure = calloc(n_cpus, sizeof(*report->unsure));
	return report->evicted && report->unsure ? 0 : -ENOMEM;
}

void recording_report_clear(struct recording_report *report)
{
	report->notes.n = 0;
	report->counted = report->names_fill = false;
	report->plain_evicted = 0;
	strv_free(TAKE_PTR(report->finished));
	for (unsigned cpu = 0; cpu < report->n_cpus; cpu++)
		report->evicted[cpu] = report->unsure[cpu] = 0;
}

void recording_report_done(struct recording_report *report)
{
	strv_free(report->finished);
	free(report->evicted);
	free(report->unsure);
	*report = (struct recording_report){};
}
