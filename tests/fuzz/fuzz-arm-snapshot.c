/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz-arm-snapshot - any bytes as the files of an Arm snapshot, checked. libFuzzer target;
 * tests/fuzz/corpus/arm-snapshot has those of real ones and what was found.
 *
 * An input is the files one behind the other, each after a line "=== NAME".
 */
#include <errno.h>
#include <string.h>

#include "basic/macro.h"
#include "convert/arm/arm-check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const char *data;
	size_t size;
};

/* The file's place in the input */
static const char *find(const struct input *input, const char *name, size_t *ret_size)
{
	const char *end = input->data + input->size, *start = NULL;

	for (const char *line = input->data, *next; line < end; line = next) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));

		next = newline ? newline + 1 : end;
		if (next - line < 5 || memcmp(line, "=== ", 4) != 0)
			continue;
		if (start) {
			*ret_size = (size_t)(line - start);
			return start;
		}
		if ((size_t)(next - line) == strlen(name) + 5 &&
		    memcmp(line + 4, name, strlen(name)) == 0)
			start = next;
	}
	if (start)
		*ret_size = (size_t)(end - start);
	return start;
}

static int read_file(void *userdata, const char *name, char **ret_data, size_t *ret_size)
{
	size_t size;
	const char *start = find(userdata, name, &size);

	if (!start)
		return -ENOENT;
	/* no byte more: what is read beyond is noticed */
	*ret_data = malloc(size);
	if (size > 0)
		memcpy(*ret_data, start, size);
	*ret_size = size;
	return 0;
}

static int file_size(void *userdata, const char *name, uint64_t *ret)
{
	size_t size;

	if (!find(userdata, name, &size))
		return -ENOENT;
	*ret = size;
	return 0;
}

static void on_fault(void *userdata, const char *file, unsigned line, const char *text)
{
	if (!*file || !*text)
		abort(); /* each names file and reason */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {(const char *)data, size};
	const struct arm_files files = {read_file, file_size, &input};
	unsigned version;

	if (arm_check(&files, on_fault, NULL, &version) < 0)
		abort();
	return 0;
}
