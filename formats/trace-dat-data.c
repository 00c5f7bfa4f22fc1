/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#if HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif

#include "basic/io.h"
#include "formats/trace-dat-data.h"

#define CACHE_SIZE     (12 * MIB)
#define CACHE_MAX      256U    /* blocks */
#define INPUT_KEEP     MIB     /* a larger buffer for what is packed is freed after use */
#define PIECES_MAX     131072U /* then pieces of chunks are put together */
#define MAGIC_SIZE     4
#define SIZE_WORD      8  /* in front of a text, at most */
#define WINDOW_LOG_MAX 24 /* 16 MiB: no chunk has a larger one */

/* An unpacked block */
struct block {
	uint64_t place; /* of its packed bytes */
	uint64_t used;	/* the higher, the later */
	uint8_t *bytes;
	size_t size, given; /* given: bytes of it that were read, some perhaps again */
};

/* Of the chunk that was looked for last: the next one is probably behind it */
struct hint {
	size_t piece;
	uint64_t at, place;
};

struct trace_dat_data {
	int fd;
	const char *path;
	bool big_endian;

	struct data_piece *pieces; /* in the order of their addresses */
	size_t n, room;
	uint32_t stride; /* chunks that a piece may have */
	uint64_t end;
	uint8_t *memory; /* what was made */
	size_t memory_size, memory_room;

	struct hint hint;
	uint64_t times_wrong; /* a piece there does not begin with its first_ts; 0: all did */
	struct block blocks[CACHE_MAX];
	size_t n_blocks, cached;
	uint64_t clock;
	uint8_t *input;
	size_t input_room;
#if HAVE_ZSTD
	ZSTD_DCtx *zstd;
#endif
};

struct trace_dat_data *trace_dat_data_new(int fd, const char *path, bool big_endian)
{
	struct trace_dat_data *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->fd = fd;
	d->path = path;
	d->big_endian = big_endian;
	d->stride = 1;
	d->hint.piece = SIZE_MAX;
	return d;
}

void trace_dat_data_free(struct trace_dat_data *data)
{
	if (!data)
		return;
	trace_dat_data_forget(data);
#if HAVE_ZSTD
	ZSTD_freeDCtx(data->zstd);
#endif
	free(data->pieces);
	free(data->memory);
	free(data);
}

/* --- pieces */

static bool is_made(const struct data_piece *p)
{
	return p->kind == DATA_MADE || p->kind == DATA_COPIED;
}

/* May @b, which lies behind @a, be a part of it? */
static bool can_join(const struct trace_dat_data *d, const struct data_piece *a,
		     const struct data_piece *b)
{
	if (a->kind != b->kind || a->at + a->size != b->at)
		return false;
	if (b->kind == DATA_CHUNKS)
		return a->place + a->length == b->place && a->n_chunks + b->n_chunks <= d->stride;
	return b->kind == DATA_MADE && a->place == b->place;
}

/* @a's timestamp is that of both */
static void join(struct data_piece *a, const struct data_piece *b)
{
	a->size += b->size;
	a->length += b->length;
	a->n_chunks += b->n_chunks;
}

static void join_all(struct trace_dat_data *d)
{
	size_t n = 0;

	d->stride *= 2;
	d->hint.piece = SIZE_MAX;
	for (size_t i = 0; i < d->n; i++)
		if (n > 0 && can_join(d, &d->pieces[n - 1], &d->pieces[i]))
			join(&d->pieces[n - 1], &d->pieces[i]);
		else
			d->pieces[n++] = d->pieces[i];
	d->n = n;
}

static int keep_memory(struct trace_dat_data *d, const void *bytes, size_t size)
{
	if (size > d->memory_room - d->memory_size) {
		size_t room = MAX(2 * d->memory_room, d->memory_size + size);
		uint8_t *more = realloc(d->memory, room);

		if (!more)
			return -ENOMEM;
		d->memory = more;
		d->memory_room = room;
	}
	memcpy(d->memory + d->memory_size, bytes, size);
	d->memory_size += size;
	return 0;
}

int trace_dat_data_add(struct trace_dat_data *data, const struct data_piece *piece,
		       const void *bytes)
{
	struct trace_dat_data *d = data;
	struct data_piece p = *piece;

	if (p.size == 0)
		return 0;
	p.at = d->end;
	if (is_made(&p))
		p.memory = d->memory_size;
	if (is_made(&p) && keep_memory(d, bytes, p.size) < 0)
		return -ENOMEM;
	d->end += p.size;
	if (d->n > 0 && can_join(d, &d->pieces[d->n - 1], &p)) {
		join(&d->pieces[d->n - 1], &p);
		return 0;
	}
	if (d->n == d->room) {
		size_t room = MAX(2 * d->room, (size_t)64);
		struct data_piece *more = reallocarray(d->pieces, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		d->pieces = more;
		d->room = room;
	}
	d->pieces[d->n++] = p;
	if (d->n >= PIECES_MAX && p.kind == DATA_CHUNKS && d->stride < PIECES_MAX)
		join_all(d);
	return 0;
}

void trace_dat_data_drop(struct trace_dat_data *data)
{
	data->end = data->pieces[--data->n].at;
}

uint64_t trace_dat_data_end(const struct trace_dat_data *data)
{
	return data->end;
}

void trace_dat_data_align(struct trace_dat_data *data, uint64_t size)
{
	data->end = round_up(data->end, size);
}

/* The piece that has @at, or NULL */
static const struct data_piece *find(const struct trace_dat_data *d, uint64_t at)
{
	size_t low = 0, high = d->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (d->pieces[middle].at <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || at - d->pieces[low - 1].at >= d->pieces[low - 1].size)
		return NULL;
	return &d->pieces[low - 1];
}

void trace_dat_data_patch(struct trace_dat_data *data, uint64_t at, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	/* it may be of several pieces */
	for (size_t i = 0; i < size; i++) {
		const struct data_piece *p = find(data, at + i);

		data->memory[p->memory + (at + i - p->at)] = from[i];
	}
}

bool trace_dat_data_begins(const struct trace_dat_data *data, uint64_t at)
{
	const struct data_piece *p = find(data, at);

	return p ? p->at == at : data->n > 0 && at == data->end;
}

bool trace_dat_data_known(const struct trace_dat_data *data, uint64_t at, uint64_t *ret_begin,
			  uint64_t *ret_end, uint64_t *ret_ts)
{
	const struct data_piece *p = find(data, at);

	if (!p || p->kind != DATA_CHUNKS || p->first_ts == 0 || data->times_wrong)
		return false;
	*ret_begin = p->at;
	*ret_end = p->at + p->size;
	*ret_ts = p->first_ts;
	return true;
}

uint64_t trace_dat_data_times_wrong(const struct trace_dat_data *data)
{
	return data->times_wrong;
}

/* --- compressed blocks */

int trace_dat_data_file(const struct trace_dat_data *data, void *bytes, size_t size, uint64_t place,
			struct fault *why)
{
	int r = io_pread_all(data->fd, bytes, size, place);

	if (r == -ENODATA)
		return fault_at(why, r, data->path, place, "the file ends here");
	return r < 0 ? fault_at(why, r, data->path, place, "cannot read: %s", strerror(-r)) : 0;
}

uint64_t trace_dat_data_number(const struct trace_dat_data *data, const uint8_t *bytes, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value = value << 8 | bytes[data->big_endian ? i : size - 1 - i];
	return value;
}

bool trace_dat_data_is_packed(const uint8_t bytes[static MAGIC_SIZE])
{
	uint32_t magic;

	memcpy(&magic, bytes, sizeof(magic));
	magic = le32toh(magic);
	return magic == 0xfd2fb528 || (magic & 0xfffffff0) == 0x184d2a50; /* may be skipped */
}

#if HAVE_ZSTD
static int unpack(struct trace_dat_data *d, const uint8_t *input, size_t length, uint64_t place,
		  void *bytes, size_t size, struct fault *why)
{
	unsigned long long whole = ZSTD_getFrameContentSize(input, length);
	size_t r;

	if (whole != ZSTD_CONTENTSIZE_UNKNOWN && whole != ZSTD_CONTENTSIZE_ERROR && whole > size)
		return fault_at(why, -EBADMSG, d->path, place,
				"%llu bytes are compressed here, not %zu as it says", whole, size);
	if (!d->zstd)
		d->zstd = ZSTD_createDCtx();
	if (!d->zstd)
		return fault_errno(why, -ENOMEM, "%s: cannot read", d->path);
	r = ZSTD_decompressDCtx(d->zstd, bytes, size, input, length);
	if (ZSTD_isError(r) && ZSTD_getErrorCode(r) == ZSTD_error_dstSize_tooSmall)
		return fault_at(why, -EBADMSG, d->path, place,
				"more is compressed here than the %zu bytes it says", size);
	if (ZSTD_isError(r))
		return fault_at(why, -EBADMSG, d->path, place, "cannot be unpacked: zstd: %s",
				ZSTD_getErrorName(r));
	if (r != size)
		return fault_at(why, -EBADMSG, d->path, place,
				"%zu bytes are compressed here, not %zu as it says", r, size);
	return 0;
}

/* Blocks of 128 KiB, as far as they are there. The window that this takes is not kept. */
static int unpack_cut(struct trace_dat_data *d, const uint8_t *input, size_t length, void *bytes,
		      size_t size, size_t *ret, struct fault *why)
{
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	ZSTD_inBuffer in = {input, length, 0};
	ZSTD_outBuffer out = {bytes, size, 0};
	size_t r = 0, before;

	if (!zstd)
		return fault_errno(why, -ENOMEM, "%s: cannot read", d->path);
	(void)ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	do {
		before = in.pos + out.pos;
		r = ZSTD_decompressStream(zstd, &out, &in);
	} while (!ZSTD_isError(r) && out.pos < size && in.pos + out.pos > before);
	ZSTD_freeDCtx(zstd);
	*ret = out.pos;
	return 0;
}
#else
static int unpack_cut(struct trace_dat_data *d, const uint8_t *input, size_t length, void *bytes,
		      size_t size, size_t *ret, struct fault *why)
{
	*ret = 0;
	return 0;
}

static int unpack(struct trace_dat_data *d, const uint8_t *input, size_t length, uint64_t place,
		  void *bytes, size_t size, struct fault *why)
{
	return fault_at(why, -EBADMSG, d->path, place,
			"compressed with zstd, which this build does not read");
}
#endif

static int get_input(struct trace_dat_data *d, size_t length, struct fault *why)
{
	if (length <= d->input_room)
		return 0;
	free(d->input);
	d->input = malloc(length);
	d->input_room = d->input ? length : 0;
	return d->input ? 0 : fault_errno(why, -ENOMEM, "%s: cannot read", d->path);
}

/* The packed bytes of a block, in d->input */
static int read_packed(struct trace_dat_data *d, uint64_t place, uint64_t length, size_t size,
		       struct fault *why)
{
	int r;

	/* what does not shrink grows by little */
	if (length < MAGIC_SIZE || length > size + size / 64 + 4 * KIB)
		return fault_at(why, -EBADMSG, d->path, place,
				"%" PRIu64 " bytes cannot be %zu bytes that were compressed",
				length, size);
	r = get_input(d, length, why);
	if (r >= 0)
		r = trace_dat_data_file(d, d->input, length, place, why);
	if (r >= 0 && !trace_dat_data_is_packed(d->input))
		r = fault_at(why, -EBADMSG, d->path, place,
			     "wrong magic of zstd: %02x %02x %02x %02x", d->input[0], d->input[1],
			     d->input[2], d->input[3]);
	return r;
}

static void drop_input(struct trace_dat_data *d)
{
	if (d->input_room <= INPUT_KEEP)
		return;
	free(d->input);
	d->input = NULL;
	d->input_room = 0;
}

int trace_dat_data_unpack(struct trace_dat_data *data, uint64_t place, uint64_t length, void *bytes,
			  size_t size, struct fault *why)
{
	int r = read_packed(data, place, length, size, why);

	if (r >= 0)
		r = unpack(data, data->input, length, place, bytes, size, why);
	drop_input(data);
	return r;
}

int trace_dat_data_unpack_cut(struct trace_dat_data *data, uint64_t place, uint64_t length,
			      void *bytes, size_t size, size_t *ret, struct fault *why)
{
	int r = read_packed(data, place, length, size, why);

	if (r >= 0)
		r = unpack_cut(data, data->input, length, bytes, size, ret, why);
	drop_input(data);
	return r;
}

static struct block *cached(struct trace_dat_data *d, uint64_t place)
{
	for (size_t i = 0; i < d->n_blocks; i++)
		if (d->blocks[i].place == place)
			return &d->blocks[i];
	return NULL;
}

static void drop_block(struct trace_dat_data *d, struct block *block)
{
	d->cached -= block->size;
	free(block->bytes);
	*block = d->blocks[--d->n_blocks];
}

void trace_dat_data_forget(struct trace_dat_data *data)
{
	while (data->n_blocks > 0)
		drop_block(data, &data->blocks[0]);
	free(data->input);
	data->input = NULL;
	data->input_room = 0;
}

/* Room for @size bytes more: what was not used for the longest time goes */
static void make_room(struct trace_dat_data *d, size_t size)
{
	while (d->n_blocks > 0 && (d->n_blocks == CACHE_MAX || d->cached + size > CACHE_SIZE)) {
		struct block *oldest = &d->blocks[0];

		for (size_t i = 1; i < d->n_blocks; i++)
			if (d->blocks[i].used < oldest->used)
				oldest = &d->blocks[i];
		drop_block(d, oldest);
	}
}

/* A compressed block: of a piece, or one of its chunks */
struct packed {
	uint64_t at, size;	/* address, unpacked bytes */
	uint64_t place, length; /* without the head */
	uint64_t head;		/* its place, the same if it has none */
	uint64_t first_ts;	/* 0: not known */
	bool cut;
};

static int unpack_block(struct trace_dat_data *d, const struct packed *p, void *bytes,
			struct fault *why)
{
	size_t n = 0;
	int r;

	if (!p->cut)
		return trace_dat_data_unpack(d, p->place, p->length, bytes, p->size, why);
	r = trace_dat_data_unpack_cut(d, p->place, p->length, bytes, p->size, &n, why);
	return r < 0 || n == p->size
		       ? r
		       : fault_at(why, -EBADMSG, d->path, p->place, "cannot be unpacked again");
}

static int get_block(struct trace_dat_data *d, const struct packed *p, struct block **ret,
		     struct fault *why)
{
	struct block *block = cached(d, p->place);
	uint8_t *bytes;
	int r;

	if (!block || block->size != p->size) {
		make_room(d, p->size);
		bytes = malloc(p->size);
		if (!bytes)
			return fault_errno(why, -ENOMEM, "%s: cannot read", d->path);
		r = unpack_block(d, p, bytes, why);
		if (r < 0) {
			free(bytes);
			return r;
		}
		block = &d->blocks[d->n_blocks++];
		*block = (struct block){.place = p->place, .bytes = bytes, .size = p->size};
		d->cached += p->size;
		if (p->first_ts && p->first_ts != trace_dat_data_number(d, bytes, 8))
			d->times_wrong = p->at;
	}
	block->used = ++d->clock;
	*ret = block;
	return 0;
}

/* Once all of it was read nobody comes back for it, as a rule; a text's size was read before */
static void give(struct trace_dat_data *d, struct block *block, void *bytes, size_t size, size_t at)
{
	memcpy(bytes, block->bytes + at, size);
	block->given += size;
	if (at + size == block->size && block->given + SIZE_WORD >= block->size)
		drop_block(d, block);
}

/* --- reading */

/* Is the head as it was when the piece was added, or as the index has it? */
static bool is_head(const struct data_piece *p, const struct hint *h, uint32_t length,
		    uint32_t size)
{
	if (p->n_chunks == 1)
		return size == p->size && (uint64_t)length + DATA_CHUNK_HEAD == p->length;
	return size > 0 && size <= p->at + p->size - h->at;
}

/* The chunk that has @at: from the piece's first, or from where the last search ended, on */
static int find_chunk(struct trace_dat_data *d, const struct data_piece *p, uint64_t at,
		      struct packed *ret, struct fault *why)
{
	size_t index = (size_t)(p - d->pieces);
	struct hint h = {index, p->at, p->place};

	if (d->hint.piece == index && d->hint.at <= at)
		h = d->hint;
	for (;;) {
		uint8_t head[DATA_CHUNK_HEAD];
		int r = trace_dat_data_file(d, head, sizeof(head), h.place, why);
		uint32_t length, size;

		if (r < 0)
			return r;
		length = (uint32_t)trace_dat_data_number(d, head, 4);
		size = (uint32_t)trace_dat_data_number(d, head + 4, 4);
		if (!is_head(p, &h, length, size))
			return fault_at(why, -EBADMSG, d->path, h.place,
					p->first_ts ? "not the chunk that the index has here"
						    : "the file was changed while it was read");
		if (at - h.at < size) {
			*ret = (struct packed){.at = h.at,
					       .size = size,
					       .place = h.place + DATA_CHUNK_HEAD,
					       .length = length,
					       .head = h.place,
					       .first_ts = h.at == p->at ? p->first_ts : 0};
			d->hint = h;
			return 0;
		}
		h.at += size;
		h.place += DATA_CHUNK_HEAD + length;
	}
}

static int find_packed(struct trace_dat_data *d, const struct data_piece *p, uint64_t at,
		       struct packed *ret, struct fault *why)
{
	if (p->kind == DATA_CHUNKS)
		return find_chunk(d, p, at, ret, why);
	*ret = (struct packed){.at = p->at,
			       .size = p->size,
			       .place = p->place,
			       .length = p->length,
			       .head = p->place,
			       .cut = p->kind == DATA_CUT};
	return 0;
}

/* What of one piece, or one chunk, is wanted; @ret as in trace_dat_data_read() */
static int read_piece(struct trace_dat_data *d, const struct data_piece *p, void *bytes,
		      size_t size, uint64_t at, size_t *ret, struct fault *why)
{
	uint64_t left = p->at + p->size - at;
	struct block *block = NULL;
	struct packed packed;
	int r;

	*ret = MIN(size, left);
	if (is_made(p)) {
		memcpy(bytes, d->memory + p->memory + (at - p->at), *ret);
		return 0;
	}
	if (p->kind == DATA_PLAIN)
		return trace_dat_data_file(d, bytes, *ret, p->place + (at - p->at), why);
	*ret = left;
	r = find_packed(d, p, at, &packed, why);
	if (r < 0)
		return r;
	*ret = packed.at + packed.size - at;
	r = get_block(d, &packed, &block, why);
	if (r < 0)
		return r;
	*ret = MIN(size, packed.at + packed.size - at);
	give(d, block, bytes, *ret, at - packed.at);
	return 0;
}

int trace_dat_data_read(struct trace_dat_data *data, void *bytes, size_t size, uint64_t at,
			size_t *ret, struct fault *why)
{
	size_t done = 0;

	do {
		const struct data_piece *p = find(data, at + done);
		size_t n = size - done;
		int r = p ? read_piece(data, p, (uint8_t *)bytes + done, n, at + done, &n, why)
			  : fault_at(why, -EBADMSG, data->path, at + done, "nothing is here");

		if (r < 0 && done == 0)
			*ret = n;
		if (r < 0)
			return done == 0 ? r : (*ret = done, 0);
		done += n;
	} while (done < size);
	*ret = done;
	return 0;
}

struct data_place trace_dat_data_place(struct trace_dat_data *data, uint64_t at)
{
	const struct data_piece *p = find(data, at);
	struct packed packed;

	if (!p && data->n > 0) /* where the next piece would be, or its end */
		p = find(data, at - 1);
	if (!p)
		return (struct data_place){.offset = at};
	if (p->kind == DATA_MADE)
		return (struct data_place){.offset = p->place};
	if (p->kind == DATA_COPIED || p->kind == DATA_PLAIN)
		return (struct data_place){.offset = p->place + (at - p->at)};
	if (find_packed(data, p, MIN(at, p->at + p->size - 1), &packed, NULL) < 0)
		return (struct data_place){.offset = p->place};
	return (struct data_place){packed.head, true, at - packed.at};
}
