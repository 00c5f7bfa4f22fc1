/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "basic/fault-point.h"
#include "basic/io.h"
#include "basic/scheduling.h"
#include "basic/strv.h"
#include "formats/trace-dat-read.h"
#include "writer/compress.h"
#include "writer/pack.h"

#define GAIN_MIN 8 /* at least one part of so many is to be saved */

size_t compress_choose(const struct compress_item *items, size_t n, struct compress_tally *ret)
{
	struct compress_tally tally = {};
	size_t chosen = n;

	for (size_t i = 0; i < n; i++) {
		const struct compress_item *item = &items[i];

		if (item->packed && item->raw_bytes > 0) {
			tally.files++;
			tally.bytes += item->bytes;
			tally.raw_bytes += item->raw_bytes;
		}
		if (item->packed || item->refused || i == n - 1)
			continue;
		tally.waiting++;
		chosen = i;
	}
	*ret = tally;
	return chosen;
}

bool compress_fits(uint64_t bytes, uint64_t used, uint64_t free_bytes,
		   const struct retention_limits *limits)
{
	uint64_t need = bytes / COMPRESS_SHARE;

	return used + limits->live_reserve + need <= limits->max_use && free_bytes >= need &&
	       free_bytes - need >= limits->keep_free;
}

/* --- what there is */

struct list {
	struct compress_item *items;
	size_t n;
};

static void list_done(struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->items[i].name);
	free(list->items);
}

static void look_into(struct compress_item *item, int dir_fd)
{
	_cleanup_close_ int fd = io_open_at(dir_fd, item->name, O_NOFOLLOW);
	unsigned version;

	if (fd < 0) {
		item->refused = true;
		return;
	}
	item->raw_bytes = store_raw_bytes(fd);
	item->packed =
		item->raw_bytes > 0 || (trace_dat_version(fd, &version) >= 0 && version == 7);
}

static int list_add(struct list *list, const struct compress_order *order, const char *name)
{
	struct compress_item item = {};
	struct stat st;
	uint64_t usec;

	if (!store_parse_archive_name(name, &usec))
		return 0;
	if (fstatat(order->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	item.bytes = (uint64_t)st.st_blocks * 512;
	/* With another name of it somewhere the original would stay, too */
	item.refused = st.st_nlink > 1 || strv_contains(order->refused, name);
	if (array_grow(&list->items, list->n, sizeof(item)) < 0 || !(item.name = strdup(name)))
		return -ENOMEM;
	look_into(&item, order->dir_fd);
	list->items[list->n++] = item;
	return 0;
}

static int list_read(struct list *list, const struct compress_order *order)
{
	_cleanup_(strv_freep) char **names = NULL;
	int r = io_list_at(order->dir_fd, ".", NULL, &names);

	STRV_FOREACH (name, names)
		if (r >= 0)
			r = list_add(list, order, *name);
	return r;
}

static int has_room(const struct compress_order *order, uint64_t bytes)
{
	struct retention_report report = {};
	struct statvfs vfs;
	int r = retention_count(order->dir_fd, &report);

	if (r >= 0 && fstatvfs(order->dir_fd, &vfs) < 0)
		r = -errno;
	return r < 0 ? r
		     : compress_fits(bytes, report.kept_bytes,
				     (uint64_t)vfs.f_bavail * vfs.f_frsize, &order->limits);
}

/* --- one segment */

struct copy {
	int dir_fd;
	const char *name;
	char new_name[STORE_NAME_SIZE + 8];
	int fd, new_fd;
	struct stat was; /* the original */
	bool made;	 /* there is a .NAME.new */
};

static void copy_done(struct copy *c)
{
	close_p(&c->fd);
	close_p(&c->new_fd);
	if (c->made)
		(void)unlinkat(c->dir_fd, c->new_name, 0);
}

/* The room comes first: what fails for lack of it then has cost nothing */
static int begin(struct copy *c, struct fault *why)
{
	c->fd = io_open_at(c->dir_fd, c->name, O_NOFOLLOW);
	if (c->fd < 0)
		return fault_errno(why, c->fd, "cannot open %s", c->name);
	if (fstat(c->fd, &c->was) < 0)
		return fault_errno(why, -errno, "cannot stat %s", c->name);
	store_new_name(c->name, c->new_name);
	c->new_fd = store_create_new(c->dir_fd, c->name);
	if (c->new_fd < 0)
		return fault_errno(why, c->new_fd, "cannot create %s", c->new_name);
	c->made = true;
	if (fallocate(c->new_fd, FALLOC_FL_KEEP_SIZE, 0,
		      c->was.st_blocks * 512 / COMPRESS_SHARE + 1) < 0 &&
	    errno != EOPNOTSUPP)
		return fault_errno(why, -errno, "cannot reserve room for %s", c->new_name);
	fault_point("compress-created");
	return 0;
}

static int pack(struct copy *c, const atomic_bool *cancel, struct fault *why)
{
	const struct pack_options options = {
		.level = PACK_LEVEL, .chunk = PACK_CHUNK, .check = true, .cancel = cancel};
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	struct pack_result result;
	int r = trace_dat_open_fd(c->fd, c->name, &dat, why);

	if (r < 0)
		return r;
	/* Nothing may be left out of a file that is removed afterwards */
	if (dat->damages.n > 0)
		return fault_set(why, -EBADMSG, "%s", dat->damages.lines[0]);
	r = pack_file(dat, c->new_fd, &options, &result, why);
	if (r < 0)
		return r;
	fault_point("compress-packed");
	/* What was reserved and is not needed */
	if (ftruncate(c->new_fd, (off_t)result.file_bytes) < 0)
		return fault_errno(why, -errno, "cannot truncate %s", c->new_name);
	return 0;
}

/* All that is not in its bytes */
static int take_over(const struct copy *c, struct fault *why)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, c->was.st_mtim};
	struct stat st;
	int r = 0;

	if (fstat(c->new_fd, &st) < 0)
		return fault_errno(why, -errno, "cannot stat %s", c->new_name);
	if ((st.st_uid != c->was.st_uid || st.st_gid != c->was.st_gid) &&
	    fchown(c->new_fd, c->was.st_uid, c->was.st_gid) < 0)
		return fault_set(why, -EPERM, "%s belongs to another user or group", c->name);
	if (st.st_mode != c->was.st_mode && fchmod(c->new_fd, c->was.st_mode & 07777) < 0)
		r = -errno;
	if (r >= 0)
		r = store_copy_attributes(c->fd, c->new_fd);
	/* Where there are no attributes the file is as good */
	(void)store_set_raw_bytes(c->new_fd, (uint64_t)c->was.st_blocks * 512);
	if (r >= 0 && futimens(c->new_fd, times) < 0)
		r = -errno;
	return r < 0 ? fault_errno(why, r, "cannot give %s the attributes of %s", c->new_name,
				   c->name)
		     : 0;
}

static int sync_new(const struct copy *c, uint64_t *ret_bytes, struct fault *why)
{
	struct stat st;

	if (fsync(c->new_fd) < 0 || fstat(c->new_fd, &st) < 0)
		return fault_errno(why, -errno, "cannot sync %s", c->new_name);
	(void)posix_fadvise(c->new_fd, 0, 0, POSIX_FADV_DONTNEED);
	*ret_bytes = (uint64_t)st.st_blocks * 512;
	if (st.st_blocks > c->was.st_blocks / GAIN_MIN * (GAIN_MIN - 1))
		return fault_set(why, -ENOTSUP,
				 "%s would become %llu bytes compressed, of %llu: not worth it",
				 c->name, (unsigned long long)*ret_bytes,
				 (unsigned long long)c->was.st_blocks * 512);
	fault_point("compress-synced");
	return 0;
}

static bool is_original(const struct copy *c, const char *name)
{
	struct stat st;

	return fstatat(c->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) >= 0 &&
	       st.st_dev == c->was.st_dev && st.st_ino == c->was.st_ino;
}

static int exchange(const struct copy *c)
{
	return renameat2(c->dir_fd, c->new_name, c->dir_fd, c->name, RENAME_EXCHANGE) < 0 ? -errno
											  : 0;
}

/*
 * Into the place of the original, which must still be there: a rename would bring back what
 * retention has removed
 */
static int replace(struct copy *c, struct fault *why)
{
	int r = exchange(c);

	if (r == -EINVAL || r == -ENOSYS) {
		r = is_original(c, c->name) ? store_publish_new(c->dir_fd, c->name, true) : -ENOENT;
		c->made &= r < 0;
	} else if (r >= 0 && !is_original(c, c->new_name)) {
		(void)exchange(c);
		r = -ENOENT;
	}
	if (r < 0)
		return fault_errno(why, r, "cannot replace %s", c->name);
	/* It may have been pinned, or the contrary, since its attributes were copied */
	(void)store_pin(c->new_fd, store_is_pinned(c->fd));
	fault_point("compress-replaced");
	r = fsync(c->dir_fd) < 0 ? -errno : 0;
	if (c->made)
		(void)unlinkat(c->dir_fd, c->new_name, 0);
	c->made = false;
	fault_point("compress-removed");
	return r < 0 ? fault_errno(why, r, "cannot sync the directory of %s", c->name) : 0;
}

/* Others wait for a directory, or for the file system's journal, as long as we have it and no CPU:
 * idle is only what takes long */
static int make(struct copy *c, const atomic_bool *cancel, uint64_t *ret_bytes, struct fault *why)
{
	int r;

	scheduling_idle();
	r = pack(c, cancel, why);
	if (r >= 0)
		r = take_over(c, why);
	if (r >= 0)
		r = sync_new(c, ret_bytes, why);
	scheduling_normal(0);
	return r;
}

static int compress_one(const struct compress_order *order, const char *name, uint64_t *ret_bytes,
			struct fault *why)
{
	_cleanup_(copy_done) struct copy c = {
		.dir_fd = order->dir_fd, .name = name, .fd = -EBADF, .new_fd = -EBADF};
	int r = begin(&c, why);

	if (r >= 0)
		r = make(&c, order->cancel, ret_bytes, why);
	if (r >= 0 && atomic_load(order->cancel))
		r = fault_set(why, -ECANCELED, "%s: canceled", name);
	return r < 0 ? r : replace(&c, why);
}

static void count(const struct compress_order *order, struct compress_report *ret)
{
	struct retention_report report = {};

	if (retention_count(order->dir_fd, &report) < 0)
		return;
	ret->kept_files = report.kept_files;
	ret->kept_bytes = report.kept_bytes;
}

int compress_next(const struct compress_order *order, struct compress_report *ret,
		  struct fault *why)
{
	_cleanup_(list_done) struct list list = {};
	const struct compress_item *item;
	size_t chosen;
	int r = list_read(&list, order);

	*ret = (struct compress_report){};
	if (r < 0)
		return fault_errno(why, r, "cannot look for segments to compress");
	chosen = compress_choose(list.items, list.n, &ret->tally);
	if (chosen == list.n)
		return COMPRESS_NOTHING;
	item = &list.items[chosen];
	(void)snprintf(ret->name, sizeof(ret->name), "%s", item->name);
	r = has_room(order, item->bytes);
	if (r < 0)
		return fault_errno(why, r, "cannot look for room to compress %s", item->name);
	if (r == 0)
		return COMPRESS_NO_ROOM;
	r = compress_one(order, item->name, &ret->bytes, why);
	if (r == -ENOSPC || r == -EDQUOT)
		return COMPRESS_NO_ROOM;
	if (r < 0)
		return r;
	ret->raw_bytes = item->bytes;
	ret->tally.files++;
	ret->tally.bytes += ret->bytes;
	ret->tally.raw_bytes += item->bytes;
	ret->tally.waiting--;
	count(order, ret);
	return COMPRESS_DONE;
}
