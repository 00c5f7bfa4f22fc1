/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "formats/trace-dat.h"
#include "writer/sections.h"

#define TABLE_ALIGN 16 /* an 8-byte size must never straddle two pages or cache lines */

int sections_put(FILE *out, const void *data, size_t size)
{
	errno = 0;
	if (fwrite(data, 1, size, out) == size)
		return 0;
	return errno > 0 ? -errno : -EIO;
}

int sections_put_u32(FILE *out, size_t value)
{
	uint32_t n = (uint32_t)value;

	return value <= UINT32_MAX ? sections_put(out, &n, sizeof(n)) : -EFBIG;
}

int sections_put_text32(FILE *out, const char *text, size_t size)
{
	int r = sections_put_u32(out, size);

	return r < 0 ? r : sections_put(out, text, size);
}

int sections_put_text64(FILE *out, const char *text, size_t size)
{
	uint64_t n = size;
	int r = sections_put(out, &n, sizeof(n));

	return r < 0 ? r : sections_put(out, text, size);
}

int sections_put_start(FILE *out, unsigned long_size, unsigned page_size)
{
	const char flags[2] = {__BYTE_ORDER == __BIG_ENDIAN, (char)long_size};
	int r = sections_put(out, TRACE_DAT_MAGIC, TRACE_DAT_MAGIC_SIZE);

	if (r >= 0)
		r = sections_put(out, "6", 2);
	if (r >= 0)
		r = sections_put(out, flags, sizeof(flags));
	return r < 0 ? r : sections_put_u32(out, page_size);
}

int sections_formats_add(struct sections_formats *formats, const char *system, char *text)
{
	if (!text || array_grow(&formats->list, formats->n, sizeof(*formats->list)) < 0) {
		free(text);
		return -ENOMEM;
	}
	formats->list[formats->n++] = (struct sections_format){system, text};
	return 0;
}

void sections_formats_done(struct sections_formats *formats)
{
	for (size_t i = 0; i < formats->n; i++)
		free((char *)formats->list[i].text);
	free(formats->list);
}

static int put_system(FILE *out, const struct sections_format *formats, size_t n,
		      const char *system)
{
	size_t of_system = 0;
	int r;

	for (size_t i = 0; i < n; i++)
		of_system += strcmp(formats[i].system, system) == 0;
	r = sections_put_u32(out, of_system);
	for (size_t i = 0; i < n && r >= 0; i++)
		if (strcmp(formats[i].system, system) == 0)
			r = sections_put_text64(out, formats[i].text, strlen(formats[i].text));
	return r;
}

/* Is this the first format of its system? ftrace's have a section of their own. */
static bool begins_system(const struct sections_format *formats, size_t i)
{
	/* backwards: most often the one before is of the same system */
	for (size_t k = i; k-- > 0;)
		if (strcmp(formats[k].system, formats[i].system) == 0)
			return false;
	return strcmp(formats[i].system, "ftrace") != 0;
}

int sections_put_formats(FILE *out, const struct sections_format *formats, size_t n)
{
	size_t systems = 0;
	int r = put_system(out, formats, n, "ftrace");

	for (size_t i = 0; i < n; i++)
		systems += begins_system(formats, i);
	if (r >= 0)
		r = sections_put_u32(out, systems);
	for (size_t i = 0; i < n && r >= 0; i++) {
		const char *system = formats[i].system;

		if (!begins_system(formats, i))
			continue;
		r = sections_put(out, system, strlen(system) + 1);
		if (r >= 0)
			r = put_system(out, formats + i, n - i, system);
	}
	return r;
}

/* Not by putc(): a start would spend a tenth of its time here */
static int put_newlines(FILE *out, uint64_t size)
{
	char block[8192];
	int r = 0;

	memset(block, '\n', sizeof(block));
	for (; size > 0 && r >= 0; size -= MIN(size, sizeof(block)))
		r = sections_put(out, block, MIN(size, sizeof(block)));
	return r;
}

int sections_put_tables(FILE *out, const char *names, size_t names_size, size_t room,
			unsigned n_cpus, const struct options *options, const char *clock,
			struct sections_places *ret)
{
	const uint64_t entry[2] = {0, 0};
	uint64_t at = (uint64_t)ftello(out) + sizeof(uint64_t), table_at, size;
	int r;

	table_at = round_up(at + MAX(room, names_size) + sizeof(uint32_t) + options->size,
			    TABLE_ALIGN);
	size = table_at - options->size - sizeof(uint32_t) - at;
	r = sections_put(out, &size, sizeof(size));
	if (r >= 0)
		r = sections_put(out, names, names_size);
	if (r >= 0)
		r = put_newlines(out, size - names_size);
	if (r >= 0)
		r = sections_put_u32(out, n_cpus);
	if (r >= 0)
		r = sections_put(out, options->data, options->size);
	for (unsigned cpu = 0; cpu < n_cpus && r >= 0; cpu++)
		r = sections_put(out, entry, sizeof(entry));
	if (r >= 0)
		r = sections_put_text64(out, clock, strlen(clock) + 1);
	if (r < 0)
		return r;
	*ret = (struct sections_places){at, size, table_at - options->size, table_at};
	return 0;
}

FILE *sections_open(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");

	if (!out)
		close_p(&copy);
	return out;
}
