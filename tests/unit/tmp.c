/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/io.h"
#include "tests/unit/tmp.h"

static char paths[16][sizeof(((struct tmp *)NULL)->path)]; /* of those not done yet; "": free */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

/* A test that fails does not come to tmp_done() */
static void remove_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (paths[i][0])
			(void)nftw(paths[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void remember(const char *path)
{
	static bool registered;

	if (!registered)
		assert_int_equal(atexit(remove_all), 0);
	registered = true;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (!paths[i][0]) {
			(void)strcpy(paths[i], path);
			return;
		}
}

static void forget(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (strcmp(paths[i], path) == 0)
			paths[i][0] = '\0';
}

void tmp_init(struct tmp *tmp)
{
	const char *dir = getenv("TMPDIR");

	assert_in_range(snprintf(tmp->path, sizeof(tmp->path), "%s/flyrec-unit-XXXXXX",
				 dir && strlen(dir) < 40 ? dir : "/tmp"),
			1, sizeof(tmp->path) - 1);
	assert_non_null(mkdtemp(tmp->path));
	remember(tmp->path);
	tmp->fd = open(tmp->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(tmp->fd >= 0);
}

void tmp_done(struct tmp *tmp)
{
	close(tmp->fd);
	forget(tmp->path);
	assert_int_equal(nftw(tmp->path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void tmp_write_bytes(struct tmp *tmp, const char *path, const void *data, size_t size)
{
	_cleanup_free_ char *copy = strdup(path);
	_cleanup_close_ int fd = -EBADF;

	assert_non_null(copy);
	for (char *slash = copy; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		assert_true(mkdirat(tmp->fd, copy, 0755) >= 0 || errno == EEXIST);
	}
	fd = openat(tmp->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, data, size), 0);
}

void tmp_write(struct tmp *tmp, const char *path, const char *text)
{
	tmp_write_bytes(tmp, path, text, strlen(text));
}

unsigned tmp_count(const struct tmp *tmp)
{
	DIR *dir = opendir(tmp->path);
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(dir);
	return n;
}
