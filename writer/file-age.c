/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "basic/io.h"
#include "basic/now.h"
#include "writer/file-age.h"

/* "BOOT-ID BEGIN END MODIFIED", the id as in /proc */
#define ATTRIBUTE    "user.flyrec.since-boot"
#define BOOT_ID_SIZE 37

int64_t file_age_offset_usec(void)
{
	return (int64_t)(now_usec(CLOCK_REALTIME) - now_usec(CLOCK_BOOTTIME));
}

static char boot_id[BOOT_ID_SIZE]; /* of this boot; empty: cannot be read */

static void read_boot_id(void)
{
	_cleanup_free_ char *text = NULL;

	if (io_read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &text, NULL) >= 0 &&
	    strlen(text) >= BOOT_ID_SIZE - 1)
		(void)snprintf(boot_id, BOOT_ID_SIZE, "%.36s", text);
}

/* Read once: retention asks for each file, each time */
static bool know_boot_id(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, read_boot_id);
	return boot_id[0] != '\0';
}

void file_age_note(int dir_fd, const char *name, int64_t begin_usec, uint64_t end_usec)
{
	_cleanup_close_ int fd = io_open_at(dir_fd, name, O_NOFOLLOW);
	char text[128];
	struct stat st;
	int n;

	if (fd < 0 || fstat(fd, &st) < 0 || !know_boot_id())
		return;
	n = snprintf(text, sizeof(text), "%s %" PRId64 " %" PRIu64 " %" PRIu64, boot_id, begin_usec,
		     end_usec, timespec_usec(st.st_mtim));
	(void)fsetxattr(fd, ATTRIBUTE, text, (size_t)n, 0);
}

bool file_age_read(int fd, int64_t offset_usec, uint64_t *begin_usec, uint64_t *end_usec)
{
	char boot[BOOT_ID_SIZE], text[128];
	uint64_t end, modified;
	struct stat st;
	int64_t begin;
	ssize_t n = fgetxattr(fd, ATTRIBUTE, text, sizeof(text) - 1);

	if (n < 0)
		return false;
	text[n] = '\0';
	/* Once somebody has touched the file, its modification time is what they want to have
	 * looked at */
	if (sscanf(text, "%36s %" SCNd64 " %" SCNu64 " %" SCNu64, boot, &begin, &end, &modified) !=
		    4 ||
	    fstat(fd, &st) < 0 || modified != timespec_usec(st.st_mtim) || !know_boot_id() ||
	    strcmp(boot, boot_id) != 0 || end > now_usec(CLOCK_BOOTTIME))
		return false;
	*begin_usec = (uint64_t)(begin + offset_usec);
	*end_usec = end + (uint64_t)offset_usec;
	return true;
}
