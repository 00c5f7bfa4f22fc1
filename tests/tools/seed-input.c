/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <err.h>

#include "basic/io.h"
#include "tests/tools/seed-input.h"

void fault(struct reader *r, uint64_t at, const char *format, ...)
{
	va_list ap;

	printf("FAULT at %" PRIu64 ": ", at);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
	r->faults++;
}

/* A file that ends in the middle of something cannot be read on */
void read_bytes(struct reader *r, void *data, size_t size)
{
	int n = io_pread_all(r->fd, data, size, r->pos);

	if (n < 0) {
		fault(r, r->pos, "%zu bytes wanted here: %s", size, strerror(-n));
		exit(1);
	}
	r->pos += size;
}

/* "[ Now all numbers are written in file defined endianess. ]" */
uint64_t read_number(struct reader *r, unsigned int size)
{
	uint8_t bytes[8];
	uint64_t n = 0;

	read_bytes(r, bytes, size);
	for (unsigned int i = 0; i < size; i++)
		n = n << 8 | bytes[r->big_endian ? i : size - 1 - i];
	return n;
}

/* "A null-terminated string" */
void read_string(struct reader *r, char *buffer, size_t size)
{
	uint64_t at = r->pos;

	for (size_t i = 0; i < size; i++) {
		read_bytes(r, buffer + i, 1);
		if (!buffer[i])
			return;
	}
	fault(r, at, "no string of less than %zu bytes here", size);
	exit(1);
}

/* "The next set of data is of the size read"; malloc'ed, with a NUL behind */
char *read_data(struct reader *r, uint64_t size)
{
	char *data;

	if (size > r->size - MIN(r->pos, r->size)) {
		fault(r, r->pos, "a size of %" PRIu64 " bytes reaches beyond the file", size);
		exit(1);
	}
	data = malloc(size + 1);
	if (!data)
		err(2, "malloc");
	read_bytes(r, data, size);
	data[size] = 0;
	return data;
}

void expect_bytes(struct reader *r, const char *bytes, size_t size)
{
	char found[16];
	uint64_t at = r->pos;

	read_bytes(r, found, size);
	if (memcmp(found, bytes, size) != 0) {
		fault(r, at, "not \"%s\"", bytes);
		exit(1);
	}
}

static void compare(struct reader *r, uint64_t at, const char *data, uint64_t size,
		    const char *path)
{
	_cleanup_free_ char *file = NULL;
	size_t file_size, i;
	int n;

	n = io_read_file_at(AT_FDCWD, path, &file, &file_size);
	if (n < 0) {
		fault(r, at, "cannot read %s to compare: %s", path, strerror(-n));
		return;
	}
	for (i = 0; i < MIN(size, file_size) && data[i] == file[i]; i++)
		;
	if (i < size || i < file_size)
		fault(r, at + i, "differs from byte %zu of %s (%" PRIu64 " bytes, there %zu)", i,
		      path, size, file_size);
}

void compare_at(struct reader *r, uint64_t at, const char *data, uint64_t size, const char *format,
		...)
{
	char path[PATH_MAX];
	va_list ap;

	if (!r->tracefs)
		return;
	va_start(ap, format);
	vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	compare(r, at, data, size, path);
}
