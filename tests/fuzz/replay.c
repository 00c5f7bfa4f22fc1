/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stands in for libFuzzer where its inputs are only to be run again: each file of the corpus, whole
 * and cut at some places, through a target's function. `make check` does so, with sanitizers where
 * they are built in.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basic/io.h"
#include "basic/macro.h"

#define CUTS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of its own size, so that a sanitizer sees what is read beyond its end */
static void run(const char *text, size_t size)
{
	_cleanup_free_ uint8_t *data = malloc(MAX(size, (size_t)1));

	if (!data)
		abort();
	memcpy(data, text, size);
	(void)LLVMFuzzerTestOneInput(data, size);
}

/* The program's own name says which corpus: replay-NAME */
int main(void)
{
	_cleanup_free_ char *path = NULL;
	unsigned n = 0;
	DIR *dir;

	if (asprintf(&path, SOURCE_DIR "/tests/fuzz/corpus/%s",
		     program_invocation_short_name + strlen("replay-")) < 0)
		return 1;
	dir = opendir(path);
	if (!dir) {
		(void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		_cleanup_free_ char *text = NULL;
		size_t size;

		if (entry->d_name[0] == '.')
			continue;
		if (io_read_file_at(dirfd(dir), entry->d_name, &text, &size) < 0) {
			(void)fprintf(stderr, "cannot read %s\n", entry->d_name);
			return 1;
		}
		(void)printf("%s\n", entry->d_name);
		for (size_t i = 1; i <= CUTS; i++)
			run(text, size * i / CUTS);
		n++;
	}
	(void)closedir(dir);
	return n > 0 ? 0 : 1;
}
