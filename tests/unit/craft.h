/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Building little sub-buffers and trace.dat files byte by byte, for tests: any byte order and long
 * size, right unless told otherwise. Written from trace-cmd.dat(5) and ring_buffer.h, not with our
 * own readers' code. Aborts without memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What each event format begins with, behind its name and ID */
#define CRAFT_COMMON_FIELDS                                                            \
	"format:\n"                                                                    \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

struct craft {
	bool big_endian;
	unsigned commit_size; /* 4 or 8 */
	uint8_t *bytes;
	size_t size, room;
};

void craft_done(struct craft *c);

/* Both byte orders and both sizes of long, and a loop over an empty one of each */
#define CRAFT_KINDS 4
extern const struct craft craft_kinds[CRAFT_KINDS];

#define FOR_EACH_CRAFT(c)                                                  \
	for (size_t _k = 0; _k < CRAFT_KINDS; _k++)                        \
		for (struct craft c = craft_kinds[_k], *_once = &c; _once; \
		     craft_done(&c), _once = NULL)

/* Append a number of @n bytes, bytes, text with its NUL; or overwrite a number that is there */
void craft_number(struct craft *c, unsigned n, uint64_t value);
void craft_bytes(struct craft *c, const void *bytes, size_t size);
void craft_text(struct craft *c, const char *text);
void craft_fill(struct craft *c, uint8_t byte, size_t size);
void craft_set(struct craft *c, size_t offset, unsigned n, uint64_t value);

/* Events, appended behind craft_page_begin(); @type_len and @delta as in ring_buffer.h */
void craft_head(struct craft *c, unsigned type_len, uint32_t delta);
void craft_event(struct craft *c, unsigned words, uint32_t delta, uint16_t id);
void craft_long_event(struct craft *c, uint32_t length, uint32_t delta, uint16_t id);
void craft_time(struct craft *c, unsigned type_len, uint64_t time);
void craft_discarded(struct craft *c, uint32_t length, uint32_t delta);

/* A sub-buffer: begin, events, end; end sets the commit and fills up. Return: its offset. */
size_t craft_page_begin(struct craft *c, uint64_t timestamp);
void craft_page_end(struct craft *c, size_t page, size_t page_size, uint64_t flags);
/* the same with RB_MISSED_EVENTS, and the number behind the events */
void craft_page_end_missed(struct craft *c, size_t page, size_t page_size, uint64_t missed);

#define CRAFT_EVENT_ID 42 /* of the event "demo:hello" in craft_dat()'s file, 8 + 8 bytes */

/* Where things are in a file of craft_dat() */
struct craft_dat {
	size_t page_size, n_cpus;   /* where these words are */
	size_t header_page, format; /* where these texts are */
	size_t cmdlines;
	size_t option_cpustat; /* data of cpu 0's CPUSTAT; 0: none */
	size_t table;	       /* first entry */
	size_t region[2];
	size_t buffer_table_end; /* of the BUFFER part; 0: none */
};

/*
 * A whole version 6 file: 2 CPUs, sub-buffers of 4096; cpu 0 has two sub-buffers of 3 and 1 events,
 * cpu 1 one of 2 with 5 lost before it. @cpustat: text for cpu 0, or NULL. @buffer: name of a
 * BUFFER part whose cpu 1 has one sub-buffer of 1 event, or NULL.
 */
void craft_dat(struct craft *c, const char *cpustat, const char *buffer, struct craft_dat *ret);
