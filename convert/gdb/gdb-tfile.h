/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The trace file of gdb, which `tsave` writes and `target tfile` reads ("Trace File Format" in
 * gdb's manual; where that and gdb 13.1 disagree, this is gdb):
 *
 *   "\x7fTRACE0\n"
 *   description: lines of text, at most 999 bytes each, in any order:
 *     R SIZE                      of a register block in bytes, hexadecimal; must be there
 *     status 0;tstop::0;tframes:N;…        as the remote packet qTStatus
 *     tsv NUMBER:INITIAL:BUILTIN:NAME      a trace state variable; all hexadecimal
 *     tp TNUMBER:ADDRESS:E:STEP:PASS       a tracepoint; further lines with A S Z V, see below
 *     tdesc XML                   the lines make up a target description
 *   an empty line
 *   frames: tracepoint:s16 size:u32, then size bytes of blocks:
 *     'R' bytes                   registers, as in the remote packet g
 *     'M' address:u64 length:u16 bytes
 *     'V' number:u32 value:s64    a trace state variable
 *   a frame of tracepoint 0, without size: the end; the file may also just end
 *
 * Numbers behind the description are in the target's byte order, which nothing in the file tells.
 *
 *     tp ZNUMBER:ADDRESS:at:OFFSET:LENGTH:TEXT     source text: where it was set ("at"), what it
 *     tp ZNUMBER:ADDRESS:cmd:OFFSET:LENGTH:TEXT    collects ("cmd"); text in hexadecimal
 *     tp VNUMBER:ADDRESS:HITS:BYTES
 *
 * Reading works on plain memory and believes nothing. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "basic/fault.h"

#define GDB_TFILE_MAGIC	     "\x7fTRACE0\n"
#define GDB_TFILE_MAGIC_SIZE 8U
#define GDB_TFILE_LINE_MAX   999U /* without the newline; gdb has a buffer of 1000 */
#define GDB_TFILE_HEAD_SIZE  6U	  /* of a frame */
#define GDB_TFILE_MAX_NUMBER 32767

/* How much the description may take, and a frame; gdb has no bounds, but memory */
#define GDB_TFILE_DESCRIPTION_MAX (16 * MIB)
#define GDB_TFILE_FRAME_MAX	  (256 * MIB)

struct gdb_tfile_variable {
	uint32_t number;
	int64_t initial;
	char *name;
};

struct gdb_tfile_tracepoint {
	uint32_t number;
	uint64_t address;
};

/* The description, taken apart */
struct gdb_tfile {
	char **lines; /* each as it is, without the newline; for who writes it again */
	size_t n_lines;
	uint32_t register_size;
	char *tdesc; /* the XML, NULL: none */
	struct gdb_tfile_variable *variables;
	size_t n_variables;
	struct gdb_tfile_tracepoint *tracepoints;
	size_t n_tracepoints;
	uint64_t frames_at; /* where the first frame is */
};

/**
 * gdb_tfile_parse() - the description
 * @bytes: the beginning of the file, all of it or GDB_TFILE_DESCRIPTION_MAX bytes
 * @path: for messages
 * @on_unknown: a line that means nothing to us (nor to gdb), left out but kept in lines[]
 * Return: 0, -EBADMSG with file, byte offset and reason in @why, or -ENOMEM.
 */
int gdb_tfile_parse(const void *bytes, size_t size, const char *path,
		    void (*on_unknown)(const char *text), struct gdb_tfile **ret,
		    struct fault *why);
struct gdb_tfile *gdb_tfile_free(struct gdb_tfile *tfile);
DEFINE_CLEANUP(struct gdb_tfile *, gdb_tfile_free)

struct gdb_tfile_frame {
	uint64_t offset; /* of its head in the file, for messages */
	uint32_t tracepoint;
	uint32_t size; /* of the blocks */
};

/**
 * gdb_tfile_frame() - the head of the next frame
 * @bytes: from there on; at least GDB_TFILE_HEAD_SIZE, or all that is left of the file
 * @left: bytes between there and the end of the file
 * Return: 1, 0 at the end, -EBADMSG with the reason in @why.
 */
int gdb_tfile_frame(const uint8_t *bytes, uint64_t left, bool big_endian, uint64_t offset,
		    const char *path, struct gdb_tfile_frame *ret, struct fault *why);

struct gdb_tfile_block {
	char type;
	uint64_t address;    /* M */
	uint32_t number;     /* V */
	int64_t value;	     /* V */
	const uint8_t *data; /* R, M */
	uint32_t size;
};

/**
 * gdb_tfile_block() - the next block of a frame
 * @bytes: the frame's frame->size bytes
 * @pos: 0 for the first; moved on
 * Return: 1, 0 behind the last, -EBADMSG with the reason in @why.
 */
int gdb_tfile_block(const uint8_t *bytes, const struct gdb_tfile_frame *frame,
		    uint32_t register_size, bool big_endian, const char *path, uint32_t *pos,
		    struct gdb_tfile_block *ret, struct fault *why);

/* Numbers of 1 to 8 bytes in either byte order */
static inline uint64_t gdb_tfile_get(const uint8_t *bytes, size_t n, bool big_endian)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value = value << 8 | bytes[big_endian ? i : n - 1 - i];
	return value;
}

static inline void gdb_tfile_set(uint8_t *bytes, size_t n, bool big_endian, uint64_t value)
{
	for (size_t i = 0; i < n; i++, value >>= 8)
		bytes[big_endian ? n - 1 - i : i] = (uint8_t)value;
}

/* Writing: sizes of what the functions below put; each returns the place behind it */
#define GDB_TFILE_MEMORY_SIZE	11U /* and the bytes */
#define GDB_TFILE_VARIABLE_SIZE 13U

static inline uint8_t *gdb_tfile_put_frame(uint8_t *p, bool big_endian, uint32_t tracepoint,
					   uint32_t size)
{
	gdb_tfile_set(p, 2, big_endian, tracepoint);
	gdb_tfile_set(p + 2, 4, big_endian, size);
	return p + GDB_TFILE_HEAD_SIZE;
}

static inline uint8_t *gdb_tfile_put_memory(uint8_t *p, bool big_endian, uint64_t address,
					    const void *bytes, uint16_t size)
{
	*p++ = 'M';
	gdb_tfile_set(p, 8, big_endian, address);
	gdb_tfile_set(p + 8, 2, big_endian, size);
	memcpy(p + 10, bytes, size);
	return p + 10 + size;
}

static inline uint8_t *gdb_tfile_put_variable(uint8_t *p, bool big_endian, uint32_t number,
					      uint64_t value)
{
	*p++ = 'V';
	gdb_tfile_set(p, 4, big_endian, number);
	gdb_tfile_set(p + 4, 8, big_endian, value);
	return p + 12;
}

/**
 * gdb_tfile_put_hex() - @size bytes of text in hexadecimal
 */
void gdb_tfile_put_hex(FILE *out, const void *bytes, size_t size);

/**
 * gdb_tfile_put_source() - a "tp Z" line; cut to what a line holds
 * @type: "at" or "cmd"
 */
void gdb_tfile_put_source(FILE *out, uint32_t tracepoint, uint64_t address, const char *type,
			  const char *text);

/**
 * gdb_tfile_put_tdesc() - XML as "tdesc" lines
 */
void gdb_tfile_put_tdesc(FILE *out, const char *xml);
