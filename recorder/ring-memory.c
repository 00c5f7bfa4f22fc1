/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "basic/io.h"
#include "recorder/ring-memory.h"

#define MEMINFO	  "/proc/meminfo"
#define SNAPSHOT  "snapshot"
#define HEAD_SIZE 1024 /* of that file: what it says while it is empty */

/* MemAvailable in bytes; 0 when /proc does not tell */
static uint64_t available_memory(void)
{
	_cleanup_free_ char *text = NULL;
	const char *line;

	if (io_read_file_at(AT_FDCWD, MEMINFO, &text, NULL) < 0)
		return 0;
	line = strstr(text, "MemAvailable:");
	return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) * KIB : 0;
}

#define SIZE_TEXT 32

/* "20.9G" */
static const char *size_text(char text[SIZE_TEXT], uint64_t bytes)
{
	static const char units[] = "KMGTPE";
	double value = (double)bytes / KIB;
	unsigned unit = 0;

	for (; value >= 1024 && units[unit + 1]; unit++)
		value /= 1024;
	(void)snprintf(text, SIZE_TEXT,
		       value < 100 && value != (double)(uint64_t)value ? "%.1f%c" : "%.0f%c", value,
		       units[unit]);
	return text;
}

int ring_memory_check(uint64_t size, unsigned n_cpus, struct fault *why)
{
	char one[SIZE_TEXT], all[SIZE_TEXT], there[SIZE_TEXT];
	uint64_t available = available_memory();

	if (available == 0 || size <= available / 2 / n_cpus)
		return 0;
	return fault_set(why, -ENOMEM,
			 "BufferSize=%s on %u CPUs = %s: more than half of the %s available",
			 size_text(one, size), n_cpus, size_text(all, size * n_cpus),
			 size_text(there, available));
}

/* The first one has its memory already: half of all for both is a third of the rest for this */
static int check_spare(uint64_t size, unsigned n_cpus, struct fault *why)
{
	uint64_t available = available_memory();

	if (available == 0 || size <= available / 3 / n_cpus)
		return 0;
	return fault_set(why, -ENOMEM,
			 "BufferSize=%" PRIu64 "K on %u CPUs, which method swap has twice, is more "
			 "than half of the memory that is available: %" PRIu64
			 "K, without the first",
			 (uint64_t)(size / KIB), n_cpus, (uint64_t)(available / KIB));
}

/* Return: 1, 0, or negative errno. With something in it the file does not say, but then it is. */
static int is_allocated(const struct tracedir *dir, struct fault *why)
{
	_cleanup_close_ int fd = openat(dir->fd, SNAPSHOT, O_RDONLY | O_CLOEXEC);
	char text[HEAD_SIZE + 1];
	ssize_t n = fd < 0 ? -1 : read(fd, text, HEAD_SIZE);

	if (n < 0)
		return tracedir_fault(dir, SNAPSHOT, -errno, why,
				      "cannot tell whether there is a second ring buffer");
	text[n] = '\0';
	return !strstr(text, "Snapshot is freed");
}

int ring_memory_drop_spare(const struct tracedir *dir, struct fault *why)
{
	return tracedir_write(dir, SNAPSHOT, "0", 0, why,
			      "cannot give the second ring buffer back");
}

int ring_memory_make_spare(const struct tracedir *dir, uint64_t size, unsigned n_cpus,
			   struct fault *why)
{
	int r = is_allocated(dir, why);

	if (r != 0)
		return r < 0 ? r : 0;
	r = check_spare(size, n_cpus, why);
	return r < 0 ? r
		     : tracedir_write(dir, SNAPSHOT, "1", 0, why,
				      "cannot make a second ring buffer");
}
