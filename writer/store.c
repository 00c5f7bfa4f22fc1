/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#include "basic/io.h"
#include "basic/new-dir.h"
#include "basic/now.h"
#include "basic/owner.h"
#include "basic/strv.h"
#include "writer/store.h"

#define FINISHING  ".finishing"
#define CORESIGHT  ".coresight"
#define PINNED	   "user.flyrec.pinned"
#define MEMBER_UID "user.flyrec.member_uid"
#define RANK	   "user.flyrec.rank"
#define IDS	   "user.flyrec.id"
#define RAW_BYTES  "user.flyrec.raw_bytes"
#define ACCESS	   "system.posix_acl_access"

#define IDS_SIZE	    2048	/* of all ids of a file */
#define ATTRIBUTE_NAMES_MAX (64 * 1024) /* XATTR_LIST_MAX, and XATTR_SIZE_MAX */

/* A segment that begins so much before the last one: the clock was set back */
#define CLOCK_STEP_USEC (60 * USEC_PER_SEC)

void store_new_name(const char *name, char ret[STORE_NAME_SIZE + 8])
{
	(void)snprintf(ret, STORE_NAME_SIZE + 8, ".%.*s.new", STORE_NAME_SIZE, name);
}

int store_create_new(int dir_fd, const char *name)
{
	char tmp[STORE_NAME_SIZE + 8];
	int fd;

	store_new_name(name, tmp);
	(void)unlinkat(dir_fd, tmp, 0); /* of a process that was killed here: nobody has seen it */
	fd = openat(dir_fd, tmp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	return fd < 0 ? -errno : fd;
}

void store_drop_new(int dir_fd, const char *name)
{
	char tmp[STORE_NAME_SIZE + 8];

	store_new_name(name, tmp);
	(void)unlinkat(dir_fd, tmp, 0);
}

int store_publish_new(int dir_fd, const char *name, bool replace)
{
	char tmp[STORE_NAME_SIZE + 8];

	store_new_name(name, tmp);
	if (!replace)
		return io_rename_new_at(dir_fd, tmp, name);
	return renameat(dir_fd, tmp, dir_fd, name) < 0 ? -errno : 0;
}

int store_file_open(struct store_file *ret, int dir_fd, const char *name, struct fault *why)
{
	int fd = store_create_new(dir_fd, name);

	if (fd < 0)
		return fault_errno(why, fd, "cannot create %s", name);
	*ret = (struct store_file){fd, dir_fd, name, true};
	return 0;
}

int store_file_publish(struct store_file *file, struct fault *why)
{
	int r;

	if (fsync(file->fd) < 0)
		return fault_errno(why, -errno, "cannot sync %s", file->name);
	r = store_publish_new(file->dir_fd, file->name, false);
	if (r < 0)
		return fault_errno(why, r, "cannot rename to %s", file->name);
	file->unfinished = false;
	(void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
	return fsync(file->dir_fd) < 0 ? fault_errno(why, -errno, "cannot sync the directory") : 0;
}

void store_file_done(struct store_file *file)
{
	close_p(&file->fd);
	if (file->unfinished)
		store_drop_new(file->dir_fd, file->name);
}

int store_open_dir(int dir_fd, const char *name, int *ret_fd, struct fault *why)
{
	/* First of all: where a file system is frozen, making one waits even if there is one */
	_cleanup_close_ int fd = io_open_dir_at(dir_fd, name);
	struct stat st;

	if (fd == -ENOENT) {
		if (mkdirat(dir_fd, name, 0750) < 0)
			return fault_errno(why, -errno, "cannot make directory %s", name);
		fd = io_open_dir_at(dir_fd, name);
	}
	if (fd < 0)
		return fault_errno(why, fd, "cannot open directory %s", name);
	if (fstat(fd, &st) < 0)
		return fault_errno(why, -errno, "cannot stat directory %s", name);
	if (st.st_uid != owner_uid())
		return fault_set(why, -EPERM, "directory %s belongs to user %u, not to us", name,
				 st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return fault_set(why, -EPERM, "directory %s can be written by others (mode %04o)",
				 name, st.st_mode & 07777);
	if (faccessat(fd, ".", W_OK, AT_EACCESS) < 0)
		return fault_errno(why, -errno, "cannot write to directory %s", name);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static void time_name(uint64_t usec, char ret[STORE_NAME_SIZE])
{
	time_t seconds = (time_t)(usec / USEC_PER_SEC);
	struct tm tm;
	size_t n;

	(void)gmtime_r(&seconds, &tm);
	n = strftime(ret, STORE_NAME_SIZE, "%Y%m%dT%H%M%S", &tm);
	(void)snprintf(ret + n, STORE_NAME_SIZE - n, ".%06uZ", (unsigned)(usec % USEC_PER_SEC));
}

int store_snapshot_name(int dir_fd, uint64_t realtime_usec, const char *reason,
			char ret_name[STORE_NAME_SIZE])
{
	char time[STORE_NAME_SIZE], name[STORE_NAME_SIZE];

	for (unsigned tries = 0; tries < 1000; tries++) {
		time_name(realtime_usec + tries, time);
		(void)snprintf(name, sizeof(name), "%.24s-%.28s.dat", time, reason);
		if (faccessat(dir_fd, name, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0) {
			(void)strcpy(ret_name, name);
			return 0;
		}
	}
	return -EEXIST;
}

/* 0 in the pattern stands for any digit; strptime() and sscanf() would take blanks and signs too */
static bool matches(const char *name, const char *pattern)
{
	for (; *pattern; name++, pattern++)
		if (*pattern == '0' ? *name < '0' || *name > '9' : *name != *pattern)
			return false;
	return true;
}

bool store_parse_archive_name(const char *name, uint64_t *ret_usec)
{
	static const char pattern[] = "00000000T000000.000000Z";
	const char *rest = name + strlen(pattern);
	struct tm tm = {};

	if (!matches(name, pattern) || (*rest != '-' && *rest != '.') || !ends_with(rest, ".dat") ||
	    !strptime(name, "%Y%m%dT%H%M%S", &tm))
		return false;
	*ret_usec = (uint64_t)timegm(&tm) * USEC_PER_SEC + strtoul(name + 16, NULL, 10);
	return true;
}

bool store_is_damaged(const char *name)
{
	return name[0] != '.' && ends_with(name, ".damaged");
}

void store_coresight_name(const char *snapshot, char ret_name[STORE_NAME_SIZE])
{
	size_t n = strlen(snapshot);

	if (ends_with(snapshot, ".dat"))
		n -= strlen(".dat");
	(void)snprintf(ret_name, STORE_NAME_SIZE, "%.*s" CORESIGHT,
		       (int)MIN(n, STORE_NAME_SIZE - sizeof(CORESIGHT)), snapshot);
}

bool store_coresight_owner(const char *name, char ret_snapshot[STORE_NAME_SIZE])
{
	size_t n = strlen(name);
	uint64_t usec;

	if (!ends_with(name, CORESIGHT) || n >= STORE_NAME_SIZE)
		return false;
	(void)snprintf(ret_snapshot, STORE_NAME_SIZE, "%.*s.dat", (int)(n - strlen(CORESIGHT)),
		       name);
	return store_parse_archive_name(ret_snapshot, &usec);
}

void store_finishing_name(const char *archive, char ret_name[STORE_NAME_SIZE])
{
	(void)snprintf(ret_name, STORE_NAME_SIZE, ".%.40s" FINISHING, archive);
}

static bool is_taken(int dir_fd, const char *archive)
{
	char finishing[STORE_NAME_SIZE];

	store_finishing_name(archive, finishing);
	return faccessat(dir_fd, archive, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) >= 0 ||
	       faccessat(dir_fd, finishing, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) >= 0;
}

/* When the last finished segment began; 0: there is none */
static uint64_t last_begin(int dir_fd)
{
	_cleanup_(strv_freep) char **names = NULL;
	uint64_t last = 0, usec;

	(void)io_list_at(dir_fd, ".", NULL, &names);
	STRV_FOREACH (name, names)
		if (store_parse_archive_name(*name, &usec))
			last = MAX(last, usec);
	return last;
}

int store_archive_name(int dir_fd, uint64_t realtime_usec, char ret_name[STORE_NAME_SIZE])
{
	uint64_t last = last_begin(dir_fd);
	char name[STORE_NAME_SIZE];

	if (realtime_usec <= last && last - realtime_usec < CLOCK_STEP_USEC)
		realtime_usec = last + 1;
	for (unsigned tries = 0; tries < 1000; tries++) {
		time_name(realtime_usec + tries, name);
		(void)strcat(name, ".dat");
		if (!is_taken(dir_fd, name)) {
			(void)strcpy(ret_name, name);
			return 0;
		}
	}
	return -EEXIST;
}

bool store_finished_name(int dir_fd, const char *finishing, char ret_name[STORE_NAME_SIZE])
{
	size_t n = strlen(finishing), k = strlen(FINISHING);
	char name[STORE_NAME_SIZE];
	uint64_t usec;

	if (n <= 1 + k || n >= STORE_NAME_SIZE || finishing[0] != '.' ||
	    !ends_with(finishing, FINISHING))
		return false;
	(void)snprintf(name, sizeof(name), "%.*s", (int)(n - 1 - k), finishing + 1);
	if (!store_parse_archive_name(name, &usec) ||
	    faccessat(dir_fd, name, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) >= 0)
		return false;
	(void)strcpy(ret_name, name);
	return true;
}

static bool is_finishing(const char *name)
{
	return strlen(name) < STORE_NAME_SIZE && name[0] == '.' && ends_with(name, FINISHING);
}

int store_list_finishing(int dir_fd, char ***ret)
{
	return io_list_at(dir_fd, ".", is_finishing, ret);
}

static bool is_unfinished(const char *name)
{
	return name[0] == '.' &&
	       (ends_with(name, ".dat.new") || ends_with(name, FINISHING ".dense") ||
		(strstr(name, CORESIGHT ".") && ends_with(name, ".new")));
}

void store_remove_unfinished(int dir_fd)
{
	_cleanup_(strv_freep) char **names = NULL;

	(void)io_list_at(dir_fd, ".", is_unfinished, &names);
	STRV_FOREACH (name, names)
		if (unlinkat(dir_fd, *name, 0) < 0 && errno == EISDIR)
			(void)remove_tree_at(dir_fd, *name);
}

bool store_same_file(int dir_fd, const char *name, const char *other)
{
	struct stat a, b;

	return fstatat(dir_fd, name, &a, AT_SYMLINK_NOFOLLOW) >= 0 &&
	       fstatat(dir_fd, other, &b, AT_SYMLINK_NOFOLLOW) >= 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Where no symbolic link may be made, under whatever name, a file says where it has pointed to */
static int set_aside_link(int dir_fd, const char *name, const char *to)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target));
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (n < 0)
		return -EACCES;
	fd = openat(dir_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	r = io_pwrite_all(fd, target, (size_t)n, 0);
	return r < 0 ? r : unlinkat(dir_fd, name, 0) < 0 ? -errno : 0;
}

int store_set_aside(int dir_fd, const char *name, char ret_name[STORE_NAME_SIZE])
{
	char time[STORE_NAME_SIZE], to[STORE_NAME_SIZE];
	int r;

	for (unsigned tries = 0; tries < 1000; tries++) {
		time_name(now_usec(CLOCK_REALTIME) + tries, time);
		(void)snprintf(to, sizeof(to), "%.24s-%.28s.damaged", name + (name[0] == '.'),
			       time);
		r = io_rename_new_at(dir_fd, name, to);
		if (r == -EACCES)
			r = set_aside_link(dir_fd, name, to);
		if (r >= 0)
			(void)strcpy(ret_name, to);
		if (r != -EEXIST)
			return r;
	}
	return -EEXIST;
}

int store_pin(int fd, bool pin)
{
	if (pin)
		return fsetxattr(fd, PINNED, "1", 1, 0) < 0 ? -errno : 0;
	return fremovexattr(fd, PINNED) < 0 && errno != ENODATA ? -errno : 0;
}

bool store_is_pinned(int fd)
{
	return fgetxattr(fd, PINNED, NULL, 0) >= 0;
}

int store_set_member(int fd, uid_t uid)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", uid);

	return fsetxattr(fd, MEMBER_UID, text, (size_t)n, 0) < 0 ? -errno : 0;
}

bool store_is_members(int fd)
{
	return fgetxattr(fd, MEMBER_UID, NULL, 0) >= 0;
}

int store_set_rank(int fd, unsigned rank)
{
	char digit = (char)('0' + MIN(rank, 9U));

	return fsetxattr(fd, RANK, &digit, 1, 0) < 0 ? -errno : 0;
}

unsigned store_rank(int fd, unsigned highest)
{
	char digit;

	if (fgetxattr(fd, RANK, &digit, 1) != 1 || digit < '0' || digit > '9')
		return highest;
	return MIN((unsigned)(digit - '0'), highest);
}

/* Return: how many there are */
static unsigned read_ids(int fd, char ret[static IDS_SIZE])
{
	ssize_t n = fgetxattr(fd, IDS, ret, IDS_SIZE - 1);
	unsigned ids = n > 0;

	ret[MAX(n, 0)] = '\0';
	for (const char *c = ret; *c; c++)
		ids += *c == ' ';
	return ids;
}

static bool has_id(const char *ids, const char *id)
{
	size_t n = strlen(id);

	for (const char *at = ids; *at; at += strspn(at, " ")) {
		size_t k = strcspn(at, " ");

		if (k == n && memcmp(at, id, n) == 0)
			return true;
		at += k;
	}
	return false;
}

int store_add_id(int fd, const char *id)
{
	char ids[IDS_SIZE];
	unsigned n = read_ids(fd, ids);
	size_t size = strlen(ids);

	if (has_id(ids, id))
		return 0;
	if (n >= STORE_IDS_MAX || size + 1 + strlen(id) >= sizeof(ids))
		return -ENOSPC;
	(void)snprintf(ids + size, sizeof(ids) - size, "%s%s", n > 0 ? " " : "", id);
	return fsetxattr(fd, IDS, ids, strlen(ids), 0) < 0 ? -errno : 1;
}

int store_find_id(int dir_fd, const char *id, char ret_name[STORE_NAME_SIZE])
{
	_cleanup_(strv_freep) char **names = NULL;
	int r = io_list_at(dir_fd, ".", NULL, &names);

	for (size_t i = strv_length(names); r >= 0 && i-- > 0;) {
		_cleanup_close_ int fd = -EBADF;
		char ids[IDS_SIZE];
		uint64_t usec;

		if (strlen(names[i]) >= STORE_NAME_SIZE ||
		    !store_parse_archive_name(names[i], &usec))
			continue;
		fd = io_open_at(dir_fd, names[i], O_NOFOLLOW);
		if (fd < 0 || read_ids(fd, ids) == 0 || !has_id(ids, id))
			continue;
		(void)snprintf(ret_name, STORE_NAME_SIZE, "%s", names[i]);
		return 0;
	}
	return r < 0 ? r : -ENOENT;
}

int store_set_raw_bytes(int fd, uint64_t bytes)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%" PRIu64, bytes);

	return fsetxattr(fd, RAW_BYTES, text, (size_t)n, 0) < 0 ? -errno : 0;
}

uint64_t store_raw_bytes(int fd)
{
	char text[24];
	ssize_t n = fgetxattr(fd, RAW_BYTES, text, sizeof(text) - 1);

	if (n < 0)
		return 0;
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

static int copy_attribute(int from_fd, int to_fd, const char *name, char *value)
{
	ssize_t n = fgetxattr(from_fd, name, value, ATTRIBUTE_NAMES_MAX);

	if (n < 0)
		return errno == ENODATA ? 0 : -errno; /* somebody has just removed it */
	return fsetxattr(to_fd, name, value, (size_t)n, 0) < 0 ? -errno : 0;
}

int store_copy_attributes(int from_fd, int to_fd)
{
	_cleanup_free_ char *names = malloc(ATTRIBUTE_NAMES_MAX);
	_cleanup_free_ char *value = malloc(ATTRIBUTE_NAMES_MAX);
	ssize_t n;
	int r = 0;

	if (!names || !value)
		return -ENOMEM;
	n = flistxattr(from_fd, names, ATTRIBUTE_NAMES_MAX);
	if (n < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (const char *name = names; name < names + n && r >= 0; name += strlen(name) + 1)
		if (strncmp(name, "user.", 5) == 0 || strcmp(name, ACCESS) == 0)
			r = copy_attribute(from_fd, to_fd, name, value);
	return r;
}

bool store_takes_attributes(int fd)
{
	return fgetxattr(fd, MEMBER_UID, NULL, 0) >= 0 || errno == ENODATA;
}
