/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if HAVE_ZSTD
#include <zstd.h>
#endif

#include "tests/unit/craft-v7.h"

#define PAGE 4096

/* A file of version 6 and where its parts end */
struct source {
	struct craft c;
	struct craft_dat at;
	size_t begin[22], end[22]; /* by section */
};

static uint64_t get(const struct craft *c, size_t at, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)c->bytes[at + (c->big_endian ? n - 1 - i : i)] << (8 * i);
	return value;
}

static void source_init(struct source *s, const struct craft *kind, const char *cpustat)
{
	const size_t head = 18, systems = 4 + 5 + 4 + 8;
	size_t at;

	*s = (struct source){.c = *kind};
	s->c.bytes = NULL;
	s->c.size = s->c.room = 0;
	craft_dat(&s->c, cpustat, "second", &s->at);
	s->begin[16] = head;
	s->begin[18] = s->end[17] = s->at.format - systems;
	s->begin[17] = s->end[16] = s->begin[18] - 4;
	s->end[18] = s->begin[19] = s->at.format + get(&s->c, s->at.format - 8, 8);
	for (unsigned id = 19; id <= 20; id++) {
		at = s->begin[id];
		s->end[id] = s->begin[id + 1] = at + 4 + get(&s->c, at, 4);
	}
	s->end[21] = s->at.n_cpus;
}

void craft_v7_packed(struct craft *c, const void *bytes, size_t size)
{
#if HAVE_ZSTD
	size_t room = ZSTD_compressBound(size), n;
	void *packed = malloc(room);

	if (!packed)
		abort();
	n = ZSTD_compress(packed, room, bytes, size, 1);
	if (ZSTD_isError(n))
		abort();
	craft_number(c, 4, n);
	craft_number(c, 4, size);
	craft_bytes(c, packed, n);
	free(packed);
#else
	abort();
#endif
}

static size_t section_begin(struct craft *c, unsigned id, bool packed)
{
	size_t at = c->size;

	craft_number(c, 2, id);
	craft_number(c, 2, packed);
	craft_number(c, 4, 0);
	craft_number(c, 8, 0);
	return at;
}

static void section_end(struct craft *c, size_t at)
{
	craft_set(c, at + 8, 8, c->size - at - 16);
}

static void option(struct craft *c, unsigned id, size_t size)
{
	craft_number(c, 2, id);
	craft_number(c, 4, size);
}

static void options_end(struct craft *c, uint64_t next)
{
	option(c, 0, 8);
	craft_number(c, 8, next);
}

static void first_options(struct craft *c, const char *cpustat, struct craft_v7 *at)
{
	size_t place = section_begin(c, 0, false);

	at->sections[0] = place;
	craft_set(c, at->options_place, 8, place);
	for (unsigned id = 16; id <= 21; id++) {
		option(c, id, 8);
		if (id == 18)
			at->option_events = c->size;
		if (id == 19)
			at->option_kallsyms = c->size;
		craft_number(c, 8, at->sections[id]);
	}
	option(c, 4, 8);
	craft_text(c, "[local]");
	if (cpustat) {
		option(c, 2, strlen(cpustat) + 1);
		craft_text(c, cpustat);
	}
	option(c, 8, 4);
	craft_number(c, 4, 2);
	options_end(c, 0);
	at->next = c->size - 8;
	section_end(c, place);
}

/* A CPU's data */
static size_t area(struct craft *c, bool zstd, const struct source *s, size_t from, size_t pages)
{
	size_t at = c->size;

	if (!zstd) {
		craft_bytes(c, s->c.bytes + from, pages * PAGE);
		return at;
	}
	craft_number(c, 4, pages);
	for (size_t i = 0; i < pages; i++)
		craft_v7_packed(c, s->c.bytes + from + i * PAGE, PAGE);
	return at;
}

/* The option of a ring buffer; its first entry is returned */
static size_t buffer_option(struct craft *c, const char *name, size_t section, size_t n)
{
	option(c, 3, 8 + strlen(name) + 1 + strlen("local") + 1 + 8 + 20 * n);
	craft_number(c, 8, section);
	craft_text(c, name);
	craft_text(c, "local");
	craft_number(c, 4, PAGE);
	craft_number(c, 4, n);
	return c->size;
}

static void entry(struct craft *c, unsigned cpu, size_t place, size_t size)
{
	craft_number(c, 4, cpu);
	craft_number(c, 8, place);
	craft_number(c, 8, size);
}

static void buffers(struct craft *c, bool zstd, const struct source *s, struct craft_v7 *at)
{
	const size_t second_page = get(&s->c, s->at.buffer_table_end - 16, 8);
	size_t ends[2], second, second_area, second_end, place;

	at->sections[3] = section_begin(c, 3, zstd);
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		at->area[cpu] = area(c, zstd, s, s->at.region[cpu], cpu == 0 ? 2 : 1);
		ends[cpu] = c->size;
	}
	section_end(c, at->sections[3]);
	second = section_begin(c, 3, zstd);
	second_area = area(c, zstd, s, second_page, 1);
	second_end = c->size;
	section_end(c, second);
	place = section_begin(c, 0, false);
	at->last_options = place;
	craft_set(c, at->next, 8, place);
	at->buffer_option = c->size + 6;
	at->entry[0] = buffer_option(c, "", at->sections[3], 2);
	at->entry[1] = at->entry[0] + 20;
	for (unsigned cpu = 0; cpu < 2; cpu++)
		entry(c, cpu, at->area[cpu], ends[cpu] - at->area[cpu]);
	(void)buffer_option(c, "second", second, 1);
	entry(c, 1, second_area, second_end - second_area);
	at->last_end = c->size;
	options_end(c, 0);
	section_end(c, place);
}

/* The file's beginning, and what version 6 has in front of the data */
static void head(struct craft *c, bool zstd, const struct source *s, struct craft_v7 *at)
{
	craft_bytes(c, "\x17\x08\x44tracing", 10);
	craft_text(c, "7");
	craft_number(c, 1, c->big_endian);
	craft_number(c, 1, c->commit_size);
	craft_number(c, 4, PAGE);
	at->compression = c->size;
	craft_text(c, zstd ? "zstd" : "none");
	craft_text(c, zstd ? "1.5.4" : "");
	at->options_place = c->size;
	craft_number(c, 8, 0);
	for (unsigned id = 16; id <= 21; id++) {
		at->sections[id] = section_begin(c, id, zstd);
		if (zstd)
			craft_v7_packed(c, s->c.bytes + s->begin[id], s->end[id] - s->begin[id]);
		else
			craft_bytes(c, s->c.bytes + s->begin[id], s->end[id] - s->begin[id]);
		section_end(c, at->sections[id]);
	}
}

void craft_v7(struct craft *c, bool zstd, const char *cpustat, struct craft_v7 *ret)
{
	struct craft_v7 at = {};
	struct source s;

	source_init(&s, c, cpustat);
	head(c, zstd, &s, &at);
	first_options(c, cpustat, &at);
	buffers(c, zstd, &s, &at);
	craft_done(&s.c);
	*ret = at;
}

/* --- one with an index */

static uint32_t crc32(const uint8_t *bytes, size_t size)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < size * 8; i++) {
		bool bit = (crc ^ bytes[i / 8] >> i % 8) & 1;

		crc = crc >> 1 ^ (bit ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void long_area(struct craft *c, unsigned cpu, struct craft_long *at)
{
	at->area[cpu] = c->size;
	craft_number(c, 4, CRAFT_CHUNKS);
	for (unsigned i = 0; i < CRAFT_CHUNKS; i++) {
		struct craft pages = {.big_endian = c->big_endian, .commit_size = c->commit_size};

		for (unsigned k = 0; k < CRAFT_CHUNK_PAGES; k++) {
			size_t page = craft_page_begin(
				&pages, craft_page_nsec(cpu, i * CRAFT_CHUNK_PAGES + k));

			craft_event(&pages, 4, 0, CRAFT_EVENT_ID);
			craft_page_end(&pages, page, PAGE, 0);
		}
		at->heads[cpu][i] = c->size;
		craft_v7_packed(c, pages.bytes, pages.size);
		craft_done(&pages);
	}
}

void craft_long_seal(struct craft *c, const struct craft_long *at)
{
	size_t size = get(c, at->entry + 8, 4);

	craft_set(c, at->entry + 12, 4, crc32(c->bytes + at->index, size));
}

static void long_index(struct craft *c, struct craft_long *at)
{
	const size_t size = 8 + 8 + 2 * 8 + (size_t)2 * CRAFT_CHUNKS * 24, room = 1584;
	size_t section = section_begin(c, 0x4652, false), begin = c->size;
	uint8_t head[28];

	at->own = section;
	craft_text(c, "flyrec own 1\n");
	craft_fill(c, 0, 2);
	craft_number(c, 4, 48 + 16 + room + 16);
	craft_fill(c, 0, 28);
	at->entry = c->size;
	craft_number(c, 4, 4);
	craft_number(c, 4, room);
	memcpy(head, c->bytes + begin, 20);
	memcpy(head + 20, c->bytes + at->entry, 8);
	craft_set(c, begin + 20, 4, crc32(head, sizeof(head)));
	craft_number(c, 4, size);
	craft_number(c, 4, 0);
	at->index = c->size;
	for (unsigned i = 0; i < 2; i++) {
		craft_number(c, 4, i == 0 ? 1 : 2); /* buffers, CPUs */
		craft_number(c, 4, 0);
	}
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		craft_number(c, 4, cpu);
		craft_number(c, 4, CRAFT_CHUNKS);
	}
	at->chunks = c->size;
	for (unsigned cpu = 0; cpu < 2; cpu++)
		for (unsigned i = 0; i < CRAFT_CHUNKS; i++) {
			craft_number(c, 8, craft_page_nsec(cpu, i * CRAFT_CHUNK_PAGES));
			craft_number(c, 8, at->heads[cpu][i]);
			craft_bytes(c, c->bytes + at->heads[cpu][i], 8);
		}
	craft_long_seal(c, at);
	craft_fill(c, 0, room - size);
	craft_fill(c, 0, 16); /* the entry that ends them */
	section_end(c, section);
}

static void long_kept(struct craft *c, struct craft_long *at)
{
	at->btf = section_begin(c, 23, true);
	craft_v7_packed(c, CRAFT_BTF, sizeof(CRAFT_BTF));
	section_end(c, at->btf);
	at->modules = section_begin(c, 25, false);
	craft_text(c, CRAFT_MODULES);
	section_end(c, at->modules);
}

static void long_options(struct craft *c, const struct craft_v7 *at,
			 const struct craft_long *at_long, const size_t ends[2])
{
	char date[32];
	size_t place = section_begin(c, 0, false);

	craft_set(c, at->options_place, 8, place);
	for (unsigned id = 16; id <= 21; id++) {
		option(c, id, 8);
		craft_number(c, 8, at->sections[id]);
	}
	(void)snprintf(date, sizeof(date), "0x%llx", (unsigned long long)CRAFT_DATE_USEC);
	option(c, 1, strlen(date) + 1);
	craft_text(c, date);
	option(c, 4, 8);
	craft_text(c, "[local]");
	option(c, 23, 8);
	craft_number(c, 8, at_long->btf);
	option(c, 25, 8);
	craft_number(c, 8, at_long->modules);
	(void)buffer_option(c, "", at->sections[3], 2);
	for (unsigned cpu = 0; cpu < 2; cpu++)
		entry(c, cpu, at_long->area[cpu], ends[cpu] - at_long->area[cpu]);
	options_end(c, 0);
	section_end(c, place);
}

void craft_v7_long(struct craft *c, struct craft_long *ret)
{
	struct craft_long at = {};
	struct craft_v7 v7 = {};
	struct source s;
	size_t ends[2];

	source_init(&s, c, NULL);
	head(c, true, &s, &v7);
	v7.sections[3] = section_begin(c, 3, true);
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		long_area(c, cpu, &at);
		ends[cpu] = c->size;
	}
	section_end(c, v7.sections[3]);
	long_index(c, &at);
	long_kept(c, &at);
	long_options(c, &v7, &at, ends);
	craft_done(&s.c);
	*ret = at;
}
