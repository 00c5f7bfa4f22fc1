/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#include "basic/io.h"
#include "basic/strv.h"

#define COPY_SIZE MIB

int io_open_at(int dir_fd, const char *path, int flags)
{
	const struct timespec pause = {.tv_nsec = 5000000};
	int fd;

	for (unsigned tries = 0; tries < 10000; tries++) {
		fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
		if (fd >= 0 || errno != EWOULDBLOCK)
			break;
		(void)nanosleep(&pause, NULL);
	}
	return fd < 0 ? -errno : fd;
}

int io_open_dir_at(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int io_opendir_at(int dir_fd, const char *path, DIR **ret)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		return -errno;
	TAKE_FD(fd);
	*ret = dir;
	return 0;
}

int io_list_at(int dir_fd, const char *path, bool (*wanted)(const char *name), char ***ret)
{
	struct dirent **entries = NULL;
	int n = scandirat(dir_fd, path, &entries, NULL, alphasort);
	char **names = n < 0 ? NULL : calloc((size_t)n + 1, sizeof(*names)), **end = names;

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;

		if (end && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
		    (!wanted || wanted(name)) && !(*end++ = strdup(name))) {
			strv_free(names);
			end = NULL;
		}
		free(entries[i]);
	}
	free(entries);
	if (!end)
		return -ENOMEM;
	*ret = names;
	return 0;
}

/* @at: -1: at the file position */
static int write_all(int fd, const char *p, size_t size, off_t at)
{
	while (size > 0) {
		ssize_t n =
			TEMP_FAILURE_RETRY(at < 0 ? write(fd, p, size) : pwrite(fd, p, size, at));

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		at += at < 0 ? 0 : n;
		size -= (size_t)n;
	}
	return 0;
}

int io_pwrite_all(int fd, const void *data, size_t size, uint64_t offset)
{
	return offset > INT64_MAX ? -EINVAL : write_all(fd, data, size, (off_t)offset);
}

int io_write_all(int fd, const void *data, size_t size)
{
	return write_all(fd, data, size, -1);
}

int io_pread_all(int fd, void *data, size_t size, uint64_t offset)
{
	char *p = data;

	while (size > 0) {
		ssize_t n = TEMP_FAILURE_RETRY(pread(fd, p, size, (off_t)offset));

		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		p += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

static int copy_by_hand(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size)
{
	_cleanup_free_ char *buffer = malloc(COPY_SIZE);
	int r = buffer ? 0 : -ENOMEM;

	while (size > 0 && r >= 0) {
		size_t n = MIN(size, COPY_SIZE);

		r = io_pread_all(from, buffer, n, from_at);
		if (r >= 0)
			r = io_pwrite_all(to, buffer, n, to_at);
		from_at += n;
		to_at += n;
		size -= n;
	}
	return r;
}

int io_clone_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size)
{
	struct file_clone_range range = {
		.src_fd = from, .src_offset = from_at, .src_length = size, .dest_offset = to_at};

	return size > 0 && ioctl(to, FICLONERANGE, &range) < 0 ? -errno : 0;
}

int io_share_range(int from, int to, uint64_t at, uint64_t size)
{
	_cleanup_free_ struct file_dedupe_range *range = NULL;

	while (size > 0) {
		struct file_dedupe_range_info *info;

		free(range);
		range = calloc(1, sizeof(*range) + sizeof(*info));
		if (!range)
			return -ENOMEM;
		info = range->info;
		range->src_offset = info->dest_offset = at;
		range->src_length = size;
		range->dest_count = 1;
		info->dest_fd = to;
		if (ioctl(from, FIDEDUPERANGE, range) < 0)
			return -errno;
		if (info->status < 0)
			return info->status;
		if (info->status == FILE_DEDUPE_RANGE_DIFFERS || info->bytes_deduped == 0)
			return -EBADE;
		at += MIN(info->bytes_deduped, size);
		size -= MIN(info->bytes_deduped, size);
	}
	return 0;
}

int io_copy_range(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size)
{
	off_t in = (off_t)from_at, out = (off_t)to_at;

	while (size > 0) {
		ssize_t n = TEMP_FAILURE_RETRY(copy_file_range(from, &in, to, &out, size, 0));

		if (n < 0 &&
		    (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS))
			return copy_by_hand(from, (uint64_t)in, to, (uint64_t)out, size);
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		size -= (uint64_t)n;
	}
	return 0;
}

int io_read_up_to(int fd, size_t max, char **ret_data, size_t *ret_size)
{
	_cleanup_free_ char *data = NULL;
	size_t size = 0, room = 0;
	ssize_t n;

	do {
		if (room - size < 2) {
			size_t more = MAX(room * 2, (size_t)(16 * KIB));
			char *p = realloc(data, more);

			if (!p)
				return -ENOMEM;
			data = p;
			room = more;
		}
		n = TEMP_FAILURE_RETRY(read(fd, data + size, MIN(room - size - 1, max - size)));
		if (n < 0)
			return -errno;
		size += (size_t)n;
	} while (n > 0);
	data[size] = '\0';
	*ret_data = TAKE_PTR(data);
	if (ret_size)
		*ret_size = size;
	return 0;
}

int io_read_file_at(int dir_fd, const char *path, char **ret_data, size_t *ret_size)
{
	_cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : io_read_up_to(fd, SIZE_MAX, ret_data, ret_size);
}

static int replace(int dir_fd, const char *name, const void *data, size_t size, mode_t mode,
		   bool sync)
{
	_cleanup_free_ char *tmp = NULL;
	_cleanup_close_ int fd = -EBADF;
	int r;

	tmp = strf(".%s.new", name);
	if (!tmp)
		return -ENOMEM;
	fd = openat(dir_fd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	r = io_write_all(fd, data, size);
	if (r >= 0 && sync && fsync(fd) < 0)
		r = -errno;
	if (r >= 0 && renameat(dir_fd, tmp, dir_fd, name) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlinkat(dir_fd, tmp, 0);
		return r;
	}
	return sync && fsync(dir_fd) < 0 ? -errno : 0;
}

int io_write_file_at(int dir_fd, const char *name, const void *data, size_t size, mode_t mode)
{
	return replace(dir_fd, name, data, size, mode, true);
}

int io_replace_file_at(int dir_fd, const char *name, const void *data, size_t size, mode_t mode)
{
	return replace(dir_fd, name, data, size, mode, false);
}

int io_rename_new_at(int dir_fd, const char *from, const char *to)
{
	if (renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE) >= 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (faccessat(dir_fd, to, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) >= 0)
		return -EEXIST;
	return renameat(dir_fd, from, dir_fd, to) < 0 ? -errno : 0;
}

int io_write_string_at(int dir_fd, const char *path, const char *text, int flags)
{
	_cleanup_close_ int fd = -EBADF;
	size_t size = strlen(text);
	ssize_t n;

	fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | flags);
	if (fd < 0)
		return -errno;
	n = TEMP_FAILURE_RETRY(write(fd, text, size));
	return n < 0 ? -errno : (size_t)n == size ? 0 : -EIO;
}

int io_read_regular(int fd, size_t max, char **ret_data, size_t *ret_size)
{
	_cleanup_free_ char *data = NULL;
	struct stat st;
	size_t size;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	r = io_read_up_to(fd, max + 1, &data, &size);
	if (r < 0)
		return r;
	if (size > max)
		return -EFBIG;
	*ret_data = TAKE_PTR(data);
	if (ret_size)
		*ret_size = size;
	return 0;
}

int io_read_stored_file_at(int dir_fd, const char *path, size_t max, char **ret_data,
			   size_t *ret_size)
{
	_cleanup_close_ int fd = io_open_at(dir_fd, path, O_NOFOLLOW);
	int r = fd < 0 ? fd : io_read_regular(fd, max, ret_data, ret_size);

	return r == -ELOOP || r == -EINVAL || r == -EFBIG ? -EBADMSG : r;
}
