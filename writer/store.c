/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#include "basic/io.h"
#include "writer/store.h"

#define FINISHING ".finishing"
#define PINNED	  "user.flyrec.pinned"

int store_open_dir(int dir_fd, const char *name, int *ret_fd, struct fault *why)
{
	_cleanup_close_ int fd = -EBADF;
	struct stat st;

	if (mkdirat(dir_fd, name, 0750) < 0 && errno != EEXIST)
		return fault_errno(why, -errno, "cannot make directory %s", name);
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fault_errno(why, -errno, "cannot open directory %s", name);
	if (fstat(fd, &st) < 0)
		return fault_errno(why, -errno, "cannot stat directory %s", name);
	if (st.st_uid != geteuid())
		return fault_set(why, -EPERM, "directory %s belongs to user %u, not to us", name,
				 st.st_uid);
	if (faccessat(fd, ".", W_OK, AT_EACCESS) < 0)
		return fault_errno(why, -errno, "cannot write to directory %s", name);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

uint64_t store_now_usec(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
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

static bool is_taken(int dir_fd, const char *archive)
{
	char finishing[STORE_NAME_SIZE];

	store_finishing_name(archive, finishing);
	return faccessat(dir_fd, archive, F_OK, AT_SYMLINK_NOFOLLOW) >= 0 ||
	       faccessat(dir_fd, finishing, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
}

/* "TIME<suffix>.dat", the time moved on by microseconds until the name is free */
static int free_name(int dir_fd, uint64_t realtime_usec, const char *suffix,
		     char ret_name[STORE_NAME_SIZE])
{
	char time[STORE_NAME_SIZE], name[STORE_NAME_SIZE];

	for (unsigned tries = 0; tries < 1000; tries++) {
		time_name(realtime_usec + tries, time);
		(void)snprintf(name, sizeof(name), "%.24s%.30s.dat", time, suffix);
		if (!is_taken(dir_fd, name)) {
			(void)strcpy(ret_name, name);
			return 0;
		}
	}
	return -EEXIST;
}

int store_archive_name(int dir_fd, uint64_t realtime_usec, char ret_name[STORE_NAME_SIZE])
{
	return free_name(dir_fd, realtime_usec, "", ret_name);
}

int store_snapshot_name(int dir_fd, uint64_t realtime_usec, const char *reason,
			char ret_name[STORE_NAME_SIZE])
{
	char suffix[STORE_NAME_SIZE];

	(void)snprintf(suffix, sizeof(suffix), "-%.28s", reason);
	return free_name(dir_fd, realtime_usec, suffix, ret_name);
}

static bool ends_with(const char *name, const char *suffix)
{
	size_t n = strlen(name), k = strlen(suffix);

	return n >= k && strcmp(name + n - k, suffix) == 0;
}

bool store_parse_archive_name(const char *name, uint64_t *ret_usec)
{
	static const char shape[] = "00000000T000000.000000Z"; /* 0: any digit */
	struct tm tm = {};
	const char *end;
	unsigned usec;

	/* Retention removes what this takes: nothing that a person may have called so */
	for (size_t i = 0; shape[i]; i++)
		if (shape[i] == '0' ? name[i] < '0' || name[i] > '9' : name[i] != shape[i])
			return false;
	end = name + sizeof(shape) - 1;
	if ((*end != '-' && *end != '.') || !ends_with(end, ".dat") ||
	    !strptime(name, "%Y%m%dT%H%M%S", &tm) || sscanf(name + 16, "%6u", &usec) != 1)
		return false;
	*ret_usec = (uint64_t)timegm(&tm) * USEC_PER_SEC + usec;
	return true;
}

bool store_is_damaged(const char *name)
{
	return name[0] != '.' && ends_with(name, ".damaged");
}

void store_finishing_name(const char *archive, char ret_name[STORE_NAME_SIZE])
{
	(void)snprintf(ret_name, STORE_NAME_SIZE, ".%.40s" FINISHING, archive);
}

static int is_finishing(const struct dirent *entry)
{
	return strlen(entry->d_name) < STORE_NAME_SIZE && entry->d_name[0] == '.' &&
	       ends_with(entry->d_name, FINISHING);
}

int store_list_finishing(int dir_fd, char ***ret)
{
	struct dirent **entries = NULL;
	char **names;
	int n, r = 0;

	n = scandirat(dir_fd, ".", &entries, is_finishing, alphasort);
	if (n < 0)
		return -errno;
	names = calloc((size_t)n + 1, sizeof(*names));
	if (!names)
		r = -ENOMEM;
	for (int i = 0; i < n; i++) {
		if (r >= 0 && !(names[i] = strdup(entries[i]->d_name)))
			r = -ENOMEM;
		free(entries[i]);
	}
	free(entries);
	if (r < 0) {
		for (int i = 0; names && i < n; i++)
			free(names[i]);
		free(names);
		return r;
	}
	*ret = names;
	return 0;
}

static int is_unfinished(const struct dirent *entry)
{
	return entry->d_name[0] == '.' &&
	       (ends_with(entry->d_name, ".dat.new") || ends_with(entry->d_name, ".dense"));
}

int store_remove_unfinished(int dir_fd)
{
	struct dirent **entries = NULL;
	int n = scandirat(dir_fd, ".", &entries, is_unfinished, NULL), r = n < 0 ? -errno : 0;

	for (int i = 0; i < n; i++) {
		if (unlinkat(dir_fd, entries[i]->d_name, 0) < 0 && r >= 0)
			r = -errno;
		free(entries[i]);
	}
	free(entries);
	return r;
}

int store_set_aside(int dir_fd, const char *name, char ret_name[STORE_NAME_SIZE])
{
	char time[STORE_NAME_SIZE], to[STORE_NAME_SIZE];
	int r;

	for (unsigned tries = 0; tries < 1000; tries++) {
		time_name(store_now_usec() + tries, time);
		(void)snprintf(to, sizeof(to), "%.24s-%.28s.damaged", name + (name[0] == '.'),
			       time);
		r = io_rename_new_at(dir_fd, name, to);
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

bool store_is_pinned(int dir_fd, const char *name)
{
	_cleanup_close_ int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0 && fgetxattr(fd, PINNED, NULL, 0) >= 0;
}
