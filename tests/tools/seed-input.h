/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What seed-reader knows of a file apart from its sections: bytes, numbers, strings, and the files
 * of tracefs that they must be the same as. Each ends the program where there is nothing to read
 * on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basic/macro.h"

struct reader {
	const char *path;
	int fd;
	uint64_t pos;
	uint64_t size;
	bool big_endian;
	uint32_t page_size;
	uint64_t timestamp_offset; /* within a page, from the header_page section */
	unsigned int faults;
	const char *tracefs;  /* NULL: compare nothing */
	const char *instance; /* its directory */
	bool partial;	      /* systems need not be complete */
	bool without_prefix;  /* symbols: without those named __pfx_ */
};

/* Prints and counts it; @at: offset in the file */
void _printf_(3, 4) fault(struct reader *r, uint64_t at, const char *format, ...);

void read_bytes(struct reader *r, void *data, size_t size);
uint64_t read_number(struct reader *r, unsigned int size);
void read_string(struct reader *r, char *buffer, size_t size);
char *read_data(struct reader *r, uint64_t size); /* malloc'ed, with a NUL behind */
void expect_bytes(struct reader *r, const char *bytes, size_t size);

/* With --compare-tracefs: @data, which was at @at, is what the file of that name holds */
void _printf_(5, 6) compare_at(struct reader *r, uint64_t at, const char *data, uint64_t size,
			       const char *format, ...);
