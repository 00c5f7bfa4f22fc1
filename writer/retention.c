/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "basic/io.h"
#include "basic/new-dir.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "formats/trace-dat-read.h"
#include "writer/file-age.h"
#include "writer/retention.h"
#include "writer/store.h"

#define DAY_USEC      (24 * 3600 * USEC_PER_SEC)
#define RATE_USEC_MIN (10 * USEC_PER_SEC) /* less says little */
#define LASTS_MAX     (3650 * DAY_USEC)

static int older_first(const void *a, const void *b)
{
	const struct retention_item *x = a, *y = b;

	if (x->begin_usec != y->begin_usec)
		return x->begin_usec < y->begin_usec ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The newest one is not put aside to be removed at once, whatever its size */
static void cap_damaged(struct retention_item *items, size_t n, uint64_t cap)
{
	bool is_newest = true;
	uint64_t bytes = 0;

	for (size_t i = n; i-- > 0;) {
		if (!items[i].damaged || items[i].pinned)
			continue;
		bytes += items[i].bytes;
		items[i].evict = bytes > cap && !is_newest;
		is_newest = false;
	}
}

/* What is left so far */
struct tally {
	uint64_t used, files, free_bytes;
	uint64_t member_used, member_files; /* of members' that are not pinned */
	size_t newest;			    /* not to be taken away for room */
};

static void tally_drop(struct tally *t, struct retention_item *item)
{
	item->evict = true;
	t->used -= item->bytes;
	t->files--;
	t->free_bytes += item->bytes;
	if (item->by_member) {
		t->member_used -= item->bytes;
		t->member_files--;
	}
}

static bool fits(const struct tally *t, const struct retention_limits *limits)
{
	uint64_t free_bytes = limits->keep_free > 0 ? limits->keep_free + limits->spare : 0;

	return t->used <= limits->max_use && t->free_bytes >= free_bytes &&
	       (limits->max_files == 0 || t->files <= limits->max_files);
}

static bool members_fit(const struct tally *t, const struct retention_limits *limits)
{
	return (limits->member_use == 0 || t->member_used <= limits->member_use) &&
	       (limits->member_files == 0 || t->member_files <= limits->member_files);
}

static bool may_go(const struct retention_item *item, const struct retention_limits *limits)
{
	return !item->evict && !item->pinned && (item->by_member || !limits->members_only);
}

static void count_left(struct tally *t, const struct retention_item *items, size_t n,
		       const struct retention_limits *limits)
{
	for (size_t i = 0; i < n; i++) {
		if (items[i].evict) {
			t->free_bytes += items[i].bytes;
			continue;
		}
		t->used += items[i].bytes;
		t->files++;
		if (items[i].by_member && !items[i].pinned) {
			t->member_used += items[i].bytes;
			t->member_files++;
		}
		if (limits->keep_newest && !items[i].damaged)
			t->newest = i;
	}
}

void retention_choose(struct retention_item *items, size_t n, const struct retention_limits *limits,
		      uint64_t free_bytes, uint64_t now_usec)
{
	struct tally t = {.used = limits->live_reserve + limits->spare,
			  .files = limits->keep_newest ? 0 : 1,
			  .free_bytes = free_bytes,
			  .newest = n};

	if (n > 0) /* items may be NULL then */
		qsort(items, n, sizeof(*items), older_first);
	if (!limits->members_only)
		cap_damaged(items, n, limits->max_use / 4);
	count_left(&t, items, n, limits);
	for (size_t i = 0; i < n; i++)
		if (may_go(&items[i], limits) && limits->max_age_usec > 0 &&
		    now_usec > limits->max_age_usec &&
		    items[i].end_usec < now_usec - limits->max_age_usec)
			tally_drop(&t, &items[i]);
	for (size_t i = 0; i < n; i++)
		if (may_go(&items[i], limits) && items[i].by_member && i != t.newest &&
		    !(fits(&t, limits) && members_fit(&t, limits)))
			tally_drop(&t, &items[i]);
	for (unsigned rank = 0; rank <= RETENTION_RANK_LAST; rank++)
		for (size_t i = 0; i < n; i++)
			if (items[i].rank == rank && may_go(&items[i], limits) && i != t.newest &&
			    !fits(&t, limits))
				tally_drop(&t, &items[i]);
}

unsigned retention_rank(bool is_pressure, bool repeated)
{
	return (is_pressure ? 0 : 2) + (repeated ? 0 : 1);
}

struct list {
	struct retention_item *items;
	size_t n;
	bool sizes_only;     /* nothing of what only the files themselves tell */
	bool has_coresight;  /* there are CoreSight snapshots, of any of them */
	int64_t offset_usec; /* what the wall clock is ahead of the time since boot */
};

static void list_done(struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i].name);
	free(list->items);
}

/* On the disk, of the CoreSight snapshot that goes with a snapshot; 0: there is none */
static uint64_t coresight_bytes(int dir_fd, const char *name)
{
	_cleanup_(strv_freep) char **files = NULL;
	_cleanup_close_ int fd = -EBADF;
	char directory[STORE_NAME_SIZE];
	uint64_t bytes = 0;
	struct stat st;

	store_coresight_name(name, directory);
	fd = io_open_dir_at(dir_fd, directory);
	if (fd >= 0)
		(void)io_list_at(fd, ".", NULL, &files);
	STRV_FOREACH (file, files)
		if (fstatat(fd, *file, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_blocks * 512;
	return bytes;
}

/* Before the snapshot itself: so none is ever left alone */
static int evict_coresight(int dir_fd, const char *name, struct fault *why)
{
	char directory[STORE_NAME_SIZE];
	int r;

	store_coresight_name(name, directory);
	r = remove_tree_at(dir_fd, directory);
	return r < 0 && r != -ENOTDIR ? fault_errno(why, r, "cannot remove %s", directory) : 0;
}

/* A CoreSight snapshot whose snapshot somebody has removed */
static bool is_left_alone(int dir_fd, const char *name, char ret_snapshot[STORE_NAME_SIZE])
{
	return store_coresight_owner(name, ret_snapshot) &&
	       faccessat(dir_fd, ret_snapshot, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0;
}

/* What only the file itself tells; nothing if it cannot be opened */
static void look_into(struct retention_item *item, int dir_fd, const char *name,
		      int64_t offset_usec)
{
	_cleanup_close_ int fd = io_open_at(dir_fd, name, O_NOFOLLOW);

	if (fd < 0)
		return;
	item->pinned = store_is_pinned(fd);
	item->by_member = store_is_members(fd);
	item->rank = store_rank(fd, RETENTION_RANK_LAST);
	item->packed = store_raw_bytes(fd) > 0;
	if (!item->damaged)
		(void)file_age_read(fd, offset_usec, &item->begin_usec, &item->end_usec);
}

static int list_add(struct list *list, int dir_fd, const char *name)
{
	struct retention_item item = {.damaged = store_is_damaged(name),
				      .rank = RETENTION_RANK_LAST};
	char snapshot[STORE_NAME_SIZE];
	bool alone = is_left_alone(dir_fd, name, snapshot);
	struct stat st;

	if (!item.damaged && !store_parse_archive_name(alone ? snapshot : name, &item.begin_usec))
		return 0;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (alone ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
		return 0;
	item.bytes = (uint64_t)st.st_blocks * 512;
	if (!item.damaged && list->has_coresight)
		item.bytes += coresight_bytes(dir_fd, alone ? snapshot : name);
	item.end_usec = timespec_usec(st.st_mtim);
	if (item.damaged)
		item.begin_usec = item.end_usec;
	if (!list->sizes_only)
		look_into(&item, dir_fd, name, list->offset_usec);
	if (array_grow(&list->items, list->n, sizeof(item)) < 0 || !(item.name = strdup(name)))
		return -ENOMEM;
	list->items[list->n++] = item;
	return 0;
}

static int list_read(struct list *list, int dir_fd)
{
	_cleanup_(strv_freep) char **names = NULL;
	char snapshot[STORE_NAME_SIZE];
	int r = io_list_at(dir_fd, ".", NULL, &names);

	STRV_FOREACH (name, names)
		list->has_coresight |= store_coresight_owner(*name, snapshot);
	STRV_FOREACH (name, names)
		if (r >= 0)
			r = list_add(list, dir_fd, *name);
	return r;
}

/* How many sub-buffers of each CPU go with this file? */
static void count_subbufs(int dir_fd, const char *name, struct retention_report *report)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = -EBADF;

	if (!report->cpu_subbufs)
		return;
	fd = io_open_at(dir_fd, name, O_NOFOLLOW);
	if (fd < 0 || trace_dat_open_fd(fd, name, &dat, NULL) < 0 || dat->n_buffers == 0 ||
	    dat->page_size == 0)
		return;
	for (unsigned cpu = 0; cpu < MIN(dat->n_cpus, report->n_cpus); cpu++)
		report->cpu_subbufs[cpu] += dat->buffers[0].regions[cpu].size / dat->page_size;
}

static int evict(int dir_fd, const struct retention_item *item, struct retention_report *report,
		 struct fault *why)
{
	struct retention_report counted = *report;
	_cleanup_free_ uint64_t *subbufs = NULL;

	/* Only those of files that are really gone count */
	if (report->cpu_subbufs && !item->damaged) {
		subbufs = calloc(report->n_cpus, sizeof(*subbufs));
		counted.cpu_subbufs = subbufs;
		count_subbufs(dir_fd, item->name, &counted);
	}
	if (!item->damaged && evict_coresight(dir_fd, item->name, why) < 0)
		return why->error;
	if (unlinkat(dir_fd, item->name, 0) < 0 &&
	    (errno != EISDIR || remove_tree_at(dir_fd, item->name) < 0))
		/* Somebody else was faster, and has counted it if it was one of us */
		return errno == ENOENT ? 0
				       : fault_errno(why, -errno, "cannot remove old segment %s",
						     item->name);
	for (unsigned cpu = 0; subbufs && cpu < report->n_cpus; cpu++)
		report->cpu_subbufs[cpu] += subbufs[cpu];
	report->files++;
	report->bytes += item->bytes;
	report->plain_files += !item->packed && !item->damaged;
	return 0;
}

static void keep(const struct retention_item *item, struct retention_report *report)
{
	struct retention_past *past = &report->past;
	uint64_t now = now_usec(CLOCK_REALTIME);

	report->kept_files++;
	report->kept_bytes += item->bytes;
	if (item->damaged)
		return;
	if (past->oldest_usec == 0 || item->begin_usec < past->oldest_usec)
		past->oldest_usec = item->begin_usec;
	if (item->begin_usec > now || now - item->begin_usec > DAY_USEC)
		return;
	past->recent_bytes += item->bytes;
	past->recent_plain += item->packed ? 0 : item->bytes;
	if (past->recent_usec == 0 || item->begin_usec < past->recent_usec)
		past->recent_usec = item->begin_usec;
}

uint64_t retention_lasts(const struct retention_past *past, const struct retention_live *live,
			 uint64_t max_use, uint64_t now_usec)
{
	uint64_t begin = past->recent_usec > 0 ? past->recent_usec : live->usec;
	double plain = (double)(past->recent_plain + live->bytes);
	double bytes = (double)(past->recent_bytes - past->recent_plain);
	double lasts;

	if (live->raw_bytes > 0 && live->packed_bytes > 0)
		plain *= (double)live->packed_bytes / (double)live->raw_bytes;
	bytes += plain;
	if (begin == 0 || now_usec < begin + RATE_USEC_MIN || bytes < 1)
		return 0;
	lasts = (double)max_use / bytes * (double)(now_usec - begin);
	return lasts < (double)LASTS_MAX ? (uint64_t)lasts : LASTS_MAX;
}

int retention_apply(int dir_fd, const struct retention_limits *limits, struct retention_report *ret,
		    struct fault *why)
{
	_cleanup_(list_done) struct list list = {.offset_usec = file_age_offset_usec()};
	struct statvfs vfs;
	int r = list_read(&list, dir_fd);

	*ret = (struct retention_report){.cpu_subbufs = ret->cpu_subbufs, .n_cpus = ret->n_cpus};
	if (r >= 0 && fstatvfs(dir_fd, &vfs) < 0)
		r = -errno;
	if (r < 0)
		return fault_errno(why, r, "cannot look for old segments");
	retention_choose(list.items, list.n, limits, (uint64_t)vfs.f_bavail * vfs.f_frsize,
			 now_usec(CLOCK_BOOTTIME) + (uint64_t)list.offset_usec);
	for (size_t i = 0; i < list.n; i++) {
		struct fault step;

		if (!list.items[i].evict) {
			keep(&list.items[i], ret);
		} else if (evict(dir_fd, &list.items[i], ret, &step) < 0) {
			keep(&list.items[i], ret);
			r = fault_set(why, step.error, "%s", step.text);
		}
	}
	return r;
}

int retention_count(int dir_fd, struct retention_report *ret)
{
	_cleanup_(list_done) struct list list = {.sizes_only = true};
	int r = list_read(&list, dir_fd);

	if (r < 0)
		return r;
	*ret = (struct retention_report){};
	for (size_t i = 0; i < list.n; i++)
		keep(&list.items[i], ret);
	return 0;
}

int retention_pinned(int dir_fd, uint64_t *ret_bytes)
{
	_cleanup_(list_done) struct list list = {};
	uint64_t bytes = 0;
	int r = list_read(&list, dir_fd);

	if (r < 0)
		return r;
	for (size_t i = 0; i < list.n; i++)
		bytes += list.items[i].pinned ? list.items[i].bytes : 0;
	*ret_bytes = bytes;
	return 0;
}

static int refuse_pin(const char *session, uint64_t pinned, uint64_t max, const char *what,
		      struct fault *why)
{
	return fault_set(why, -EDQUOT,
			 "session %.64s: %.1fM of snapshots are pinned, %s half of [Snapshot] "
			 "MaxUse=, %.1fM: unpin some first",
			 session, (double)pinned / MIB, what, (double)max / MIB);
}

int retention_pins_left(int dir_fd, const char *session, uint64_t max_use, struct fault *why)
{
	uint64_t pinned, max = max_use / 2;
	int r = retention_pinned(dir_fd, &pinned);

	if (r < 0)
		return fault_errno(why, r, "session %.64s: cannot look for pinned snapshots",
				   session);
	return pinned >= max ? refuse_pin(session, pinned, max, "which is", why) : 0;
}

/* Pinned first, then counted: of two at the same time at most one too many is refused */
int retention_pin(int dir_fd, int fd, const char *session, uint64_t max_use, struct fault *why)
{
	uint64_t pinned, max = max_use / 2;
	struct stat st;
	int r;

	if (store_is_pinned(fd))
		return 0;
	r = store_pin(fd, true);
	if (r < 0)
		return fault_errno(why, r, "cannot set the attribute user.flyrec.pinned");
	r = retention_pinned(dir_fd, &pinned);
	if (r >= 0 && pinned <= max)
		return 0;
	(void)store_pin(fd, false);
	if (r < 0 || fstat(fd, &st) < 0)
		return fault_errno(why, r < 0 ? r : -errno,
				   "session %.64s: cannot look for pinned snapshots", session);
	return refuse_pin(session, pinned - MIN(pinned, (uint64_t)st.st_blocks * 512), max,
			  "and with this one it would be more than", why);
}
