/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
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

int sections_put_tables(FILE *out, const char *names, size_t names_size, unsigned n_cpus,
			const struct options *options, const char *clock,
			struct sections_places *ret)
{
	const uint64_t entry[2] = {0, 0};
	uint64_t at = (uint64_t)ftello(out) + sizeof(uint64_t), table_at, size;
	int r;

	table_at = round_up(at + names_size + sizeof(uint32_t) + options->size, TABLE_ALIGN);
	size = table_at - options->size - sizeof(uint32_t) - at;
	r = sections_put(out, &size, sizeof(size));
	if (r >= 0)
		r = sections_put(out, names, names_size);
	for (uint64_t i = names_size; i < size && r >= 0; i++)
		r = sections_put(out, "\n", 1);
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
	*ret = (struct sections_places){table_at - options->size, table_at};
	return 0;
}
