/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bytes by address, of a file that holds them in pieces: as they are, compressed, or made up. This
 * is how a trace.dat of version 7 is read like one of version 6 (formats/trace-dat-v7.h).
 *
 * Pieces lie behind each other, in the order in which they were added. Compressed ones are unpacked
 * when they are read and kept until all of them was read, or others need the room: 12 MiB. The
 * index of chunks is bounded, too: where there are too many, only each second, fourth, … has an
 * entry. Owner: struct trace_dat; one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basic/fault.h"
#include "basic/macro.h"

#define DATA_CHUNK_MAX	 (16 * MIB) /* unpacked; nobody writes larger ones */
#define DATA_SECTION_MAX (64 * MIB)
#define DATA_CHUNK_HEAD	 8 /* of a chunk: packed:u32 unpacked:u32 */

enum data_kind {
	DATA_MADE,   /* not in the file; place: what it was made of */
	DATA_COPIED, /* as DATA_MADE, but byte for byte as at place */
	DATA_PLAIN,  /* in the file as it is */
	DATA_BLOCK,  /* one compressed block */
	DATA_CUT,    /* the beginning of one, from which size bytes come */
	DATA_CHUNKS, /* n_chunks of them, each with its head */
};

struct data_piece {
	enum data_kind kind;
	uint32_t n_chunks;
	uint64_t size;	 /* unpacked */
	uint64_t place;	 /* in the file: of the first head, if there are any */
	uint64_t length; /* there */
	uint64_t at;	 /* address; set when it is added */
	union {
		uint64_t memory;   /* DATA_MADE and _COPIED: set, too */
		uint64_t first_ts; /* DATA_CHUNKS: of the first sub-buffer; 0: not known */
	};
};

/* Where in the file an address is */
struct data_place {
	uint64_t offset;
	bool packed;	 /* at offset a compressed block begins, with its head if it has one: */
	uint64_t inside; /* bytes from its unpacked beginning */
};

struct trace_dat_data;

/**
 * trace_dat_data_new() - without pieces
 * @fd: of the file, stays the caller's
 * @path: for messages, stays the caller's
 */
struct trace_dat_data *trace_dat_data_new(int fd, const char *path, bool big_endian);
void trace_dat_data_free(struct trace_dat_data *data);
DEFINE_CLEANUP(struct trace_dat_data *, trace_dat_data_free)

/**
 * trace_dat_data_add() - one more piece, at trace_dat_data_end()
 * @bytes: piece->size of them to copy, for DATA_MADE and DATA_COPIED
 * Return: 0 or -ENOMEM.
 */
int trace_dat_data_add(struct trace_dat_data *data, const struct data_piece *piece,
		       const void *bytes);

/**
 * trace_dat_data_drop() - take the last piece away again
 */
void trace_dat_data_drop(struct trace_dat_data *data);

/**
 * trace_dat_data_end() - the address behind the last piece
 */
uint64_t trace_dat_data_end(const struct trace_dat_data *data);

/**
 * trace_dat_data_align() - let the next piece begin at a multiple of @size, a power of two
 */
void trace_dat_data_align(struct trace_dat_data *data, uint64_t size);

/**
 * trace_dat_data_patch() - other bytes where pieces were made
 */
void trace_dat_data_patch(struct trace_dat_data *data, uint64_t at, const void *bytes, size_t size);

/**
 * trace_dat_data_begins() - does a piece begin at this address, or the last one end?
 */
bool trace_dat_data_begins(const struct trace_dat_data *data, uint64_t at);

/**
 * trace_dat_data_known() - the piece that has @at, if it begins with a sub-buffer whose timestamp
 * is known, so that it need not be unpacked for that
 * @ret_begin, @ret_end: its addresses
 */
bool trace_dat_data_known(const struct trace_dat_data *data, uint64_t at, uint64_t *ret_begin,
			  uint64_t *ret_end, uint64_t *ret_ts);

/**
 * trace_dat_data_times_wrong() - did a piece that was unpacked begin with another timestamp than
 * was known? From then on none is. Return: the address of such a piece, or 0.
 */
uint64_t trace_dat_data_times_wrong(const struct trace_dat_data *data);

/**
 * trace_dat_data_read() - up to @size bytes
 * @ret: bytes that were read, at least one; fewer than @size if the next ones cannot be. With
 *	-EBADMSG: bytes from @at on that are damaged and should be left out
 * Return: 0 or negative errno with file, offset and reason in @why.
 */
int trace_dat_data_read(struct trace_dat_data *data, void *bytes, size_t size, uint64_t at,
			size_t *ret, struct fault *why);

/**
 * trace_dat_data_forget() - keep nothing of what was unpacked so far
 */
void trace_dat_data_forget(struct trace_dat_data *data);

/**
 * trace_dat_data_place() - where an address is in the file
 */
struct data_place trace_dat_data_place(struct trace_dat_data *data, uint64_t at);

/**
 * trace_dat_data_number() - up to 8 bytes in the file's byte order
 */
uint64_t trace_dat_data_number(const struct trace_dat_data *data, const uint8_t *bytes,
			       size_t size);

/**
 * trace_dat_data_file() - bytes of the file itself
 * @place: of them
 * Return: 0, or -ENODATA: it ends before, or negative errno.
 */
int trace_dat_data_file(const struct trace_dat_data *data, void *bytes, size_t size, uint64_t place,
			struct fault *why);

/**
 * trace_dat_data_unpack() - one compressed block
 * @place: of it in the file, behind its head; @length: there
 * @bytes: @size of them, which must be what comes out
 */
int trace_dat_data_unpack(struct trace_dat_data *data, uint64_t place, uint64_t length, void *bytes,
			  size_t size, struct fault *why);

/**
 * trace_dat_data_unpack_cut() - the same of a block whose end is missing
 * @ret: bytes that came out
 */
int trace_dat_data_unpack_cut(struct trace_dat_data *data, uint64_t place, uint64_t length,
			      void *bytes, size_t size, size_t *ret, struct fault *why);

/**
 * trace_dat_data_is_packed() - do these 4 bytes begin a compressed block?
 */
bool trace_dat_data_is_packed(const uint8_t bytes[static 4]);
