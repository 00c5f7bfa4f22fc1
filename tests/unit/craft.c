/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basic/macro.h"
#include "tests/unit/craft.h"

#define PAGE 4096

const struct craft craft_kinds[CRAFT_KINDS] = {
	{.big_endian = false, .commit_size = 8},
	{.big_endian = false, .commit_size = 4},
	{.big_endian = true, .commit_size = 8},
	{.big_endian = true, .commit_size = 4},
};

void craft_done(struct craft *c)
{
	free(c->bytes);
	c->bytes = NULL;
	c->size = c->room = 0;
}

/* Room for @size more; in large steps, for reallocation is slow where it is watched over */
static void make_room(struct craft *c, size_t size)
{
	if (c->room - c->size >= size)
		return;
	c->room = MAX(c->room * 2, c->size + size);
	c->bytes = realloc(c->bytes, c->room);
	if (!c->bytes)
		abort();
}

void craft_bytes(struct craft *c, const void *bytes, size_t size)
{
	if (size == 0)
		return;
	make_room(c, size);
	memcpy(c->bytes + c->size, bytes, size);
	c->size += size;
}

void craft_fill(struct craft *c, uint8_t byte, size_t size)
{
	make_room(c, size);
	memset(c->bytes + c->size, byte, size);
	c->size += size;
}

void craft_set(struct craft *c, size_t offset, unsigned n, uint64_t value)
{
	for (unsigned i = 0; i < n; i++)
		c->bytes[offset + (c->big_endian ? n - 1 - i : i)] = (uint8_t)(value >> (8 * i));
}

void craft_number(struct craft *c, unsigned n, uint64_t value)
{
	craft_fill(c, 0, n);
	craft_set(c, c->size - n, n, value);
}

void craft_text(struct craft *c, const char *text)
{
	craft_bytes(c, text, strlen(text) + 1);
}

void craft_head(struct craft *c, unsigned type_len, uint32_t delta)
{
	craft_number(c, 4,
		     c->big_endian ? (uint32_t)type_len << 27 | delta : delta << 5 | type_len);
}

/* type id, flags, preempt count, pid, then a pattern */
static void data(struct craft *c, uint32_t length, uint16_t id)
{
	size_t at = c->size;

	craft_fill(c, 0x5a, length);
	craft_set(c, at, 2, id);
}

void craft_event(struct craft *c, unsigned words, uint32_t delta, uint16_t id)
{
	craft_head(c, words, delta);
	data(c, 4 * words, id);
}

void craft_long_event(struct craft *c, uint32_t length, uint32_t delta, uint16_t id)
{
	craft_head(c, 0, delta);
	craft_number(c, 4, length + 4);
	data(c, length, id);
}

void craft_time(struct craft *c, unsigned type_len, uint64_t time)
{
	craft_head(c, type_len, time & ((1U << 27) - 1));
	craft_number(c, 4, time >> 27);
}

void craft_discarded(struct craft *c, uint32_t length, uint32_t delta)
{
	craft_head(c, 29, delta);
	craft_number(c, 4, length);
	craft_fill(c, 0xee, length - 4);
}

size_t craft_page_begin(struct craft *c, uint64_t timestamp)
{
	size_t page = c->size;

	craft_number(c, 8, timestamp);
	craft_number(c, c->commit_size, 0);
	return page;
}

void craft_page_end(struct craft *c, size_t page, size_t page_size, uint64_t flags)
{
	craft_set(c, page + 8, c->commit_size, (c->size - page - 8 - c->commit_size) | flags);
	craft_fill(c, 0, page_size - (c->size - page));
}

void craft_page_end_missed(struct craft *c, size_t page, size_t page_size, uint64_t missed)
{
	uint64_t commit = c->size - page - 8 - c->commit_size;

	craft_number(c, c->commit_size, missed);
	/* 1 << 31 is an int: a 64-bit kernel fills the upper half with ones */
	craft_set(c, page + 8, c->commit_size, commit | 1ULL << 30 | UINT64_MAX << 31);
	craft_fill(c, 0, page_size - (c->size - page));
}

static size_t sized_text(struct craft *c, unsigned size_size, const char *text)
{
	craft_number(c, size_size, strlen(text));
	craft_bytes(c, text, strlen(text));
	return c->size - strlen(text);
}

static void option(struct craft *c, unsigned id, size_t size)
{
	craft_number(c, 2, id);
	craft_number(c, 4, size);
}

static void sections(struct craft *c, struct craft_dat *at)
{
	char header_page[512];

	(void)snprintf(header_page, sizeof(header_page),
		       "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		       "\tfield: local_t commit;\toffset:8;\tsize:%u;\tsigned:1;\n"
		       "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		       "\tfield: char data;\toffset:%u;\tsize:%u;\tsigned:0;\n",
		       c->commit_size, 8 + c->commit_size, PAGE - 8 - c->commit_size);
	craft_text(c, "header_page");
	at->header_page = sized_text(c, 8, header_page);
	craft_text(c, "header_event");
	(void)sized_text(c, 8, "# compressed entry header\n");
	craft_number(c, 4, 0);
	craft_number(c, 4, 1);
	craft_text(c, "demo");
	craft_number(c, 4, 1);
	at->format = sized_text(c, 8,
				"name: hello\nID: 42\n" CRAFT_COMMON_FIELDS
				"\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
				"\tfield:int b;\toffset:12;\tsize:4;\tsigned:1;\n\n"
				"print fmt: \"a=%d b=%d\", REC->a, REC->b\n");
	(void)sized_text(c, 4, "ffffffff81000000 T _stext\n");
	(void)sized_text(c, 4, "");
	at->cmdlines = sized_text(c, 8, "1 init\n\n\n\n");
	at->n_cpus = c->size;
	craft_number(c, 4, 2);
}

static void pages(struct craft *c, struct craft_dat *at)
{
	size_t page;

	craft_fill(c, 0, (PAGE - c->size % PAGE) % PAGE);
	at->region[0] = page = c->size;
	craft_page_begin(c, 1000);
	for (unsigned i = 0; i < 3; i++)
		craft_event(c, 4, 10, CRAFT_EVENT_ID);
	craft_page_end(c, page, PAGE, 0);
	page = craft_page_begin(c, 2000);
	craft_event(c, 4, 0, CRAFT_EVENT_ID);
	craft_page_end(c, page, PAGE, 0);
	at->region[1] = page = craft_page_begin(c, 1500);
	craft_event(c, 4, 7, CRAFT_EVENT_ID);
	craft_event(c, 4, 7, CRAFT_EVENT_ID);
	craft_page_end_missed(c, page, PAGE, 5);
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		craft_set(c, at->table + 16 * cpu, 8, at->region[cpu]);
		craft_set(c, at->table + 16 * cpu + 8, 8, cpu == 0 ? 2 * PAGE : PAGE);
	}
}

static size_t buffer_part(struct craft *c, size_t option_data)
{
	size_t table, page;

	craft_set(c, option_data, 8, c->size);
	craft_text(c, "flyrecord");
	table = c->size;
	craft_fill(c, 0, 32);
	craft_fill(c, 0, (PAGE - c->size % PAGE) % PAGE);
	page = craft_page_begin(c, 1600);
	craft_event(c, 4, 3, CRAFT_EVENT_ID);
	craft_page_end(c, page, PAGE, 0);
	craft_set(c, table, 8, page);
	craft_set(c, table + 16, 8, page);
	craft_set(c, table + 24, 8, PAGE);
	return table + 32;
}

void craft_dat(struct craft *c, const char *cpustat, const char *buffer, struct craft_dat *ret)
{
	struct craft_dat at = {};
	size_t option_buffer = 0;

	craft_bytes(c, "\x17\x08\x44tracing", 10);
	craft_text(c, "6");
	craft_number(c, 1, c->big_endian);
	craft_number(c, 1, c->commit_size);
	at.page_size = c->size;
	craft_number(c, 4, PAGE);
	sections(c, &at);
	craft_text(c, "options  ");
	option(c, 4, 8);
	craft_text(c, "[local]");
	if (cpustat) {
		option(c, 2, strlen(cpustat) + 1);
		at.option_cpustat = c->size;
		craft_text(c, cpustat);
	}
	if (buffer) {
		option(c, 3, 8 + strlen(buffer) + 1);
		option_buffer = c->size;
		craft_number(c, 8, 0);
		craft_text(c, buffer);
	}
	craft_number(c, 2, 0);
	craft_text(c, "flyrecord");
	at.table = c->size;
	craft_fill(c, 0, 32);
	(void)sized_text(c, 8, "[local]");
	pages(c, &at);
	if (buffer)
		at.buffer_table_end = buffer_part(c, option_buffer);
	*ret = at;
}
