/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "formats/trace-dat-chunks.h"
#include "formats/trace-dat-data.h"
#include "formats/trace-dat-index.h"

#define MAX_RESYNCS	   10000U
#define RESYNC_WINDOW	   (64 * KIB)
#define RESYNC_CHUNK_LEAST 16 /* a chunk is no shorter, its head included */
#define COUNT_SIZE	   4  /* in front of the chunks: how many of them */

static uint32_t get_u32(const struct chunk_source *s, const uint8_t *bytes)
{
	return (uint32_t)trace_dat_data_number(s->data, bytes, 4);
}

struct chunk {
	uint64_t place; /* of its head */
	uint32_t length, size;
	bool magic;
};

/* Can there be a chunk at @place: 1, 0 no, or negative errno */
static int look_at_chunk(const struct chunk_source *s, uint64_t place, uint64_t end,
			 struct chunk *ret)
{
	uint8_t bytes[DATA_CHUNK_HEAD + 4];
	int r;

	if (place > end || end - place < sizeof(bytes))
		return 0;
	r = trace_dat_data_file(s->data, bytes, sizeof(bytes), place, NULL);
	if (r < 0)
		return r == -ENODATA ? 0 : r;
	*ret = (struct chunk){
		.place = place,
		.length = get_u32(s, bytes),
		.size = get_u32(s, bytes + 4),
		.magic = trace_dat_data_is_packed(bytes + DATA_CHUNK_HEAD),
	};
	return ret->length >= 4 && ret->length <= end - place - DATA_CHUNK_HEAD && ret->size > 0 &&
	       ret->size <= DATA_CHUNK_MAX && ret->size % s->page_size == 0;
}

/* Is it one, and is what comes behind it one, or the end? Then it is no accident. */
static int is_chunk(const struct chunk_source *s, uint64_t place, uint64_t end, struct chunk *ret)
{
	struct chunk next;
	uint64_t behind;
	int r = look_at_chunk(s, place, end, ret);

	if (r <= 0 || !ret->magic)
		return r < 0 ? r : 0;
	behind = place + DATA_CHUNK_HEAD + ret->length;
	if (end - behind < RESYNC_CHUNK_LEAST)
		return 1;
	r = look_at_chunk(s, behind, end, &next);
	return r <= 0 ? r : next.magic;
}

/* The next chunk whose head is at @from or behind: 1, 0 there is none, or negative errno */
static int find_next_chunk(const struct chunk_source *s, uint64_t from, uint64_t end,
			   struct chunk *ret)
{
	_cleanup_free_ uint8_t *window = malloc(RESYNC_WINDOW);
	const size_t least = DATA_CHUNK_HEAD + 4;
	int r;

	if (!window)
		return -ENOMEM;
	while (end > from && end - from >= least) {
		off_t data = lseek(s->fd, (off_t)from, SEEK_DATA);
		size_t n;

		if (data < 0 && errno == ENXIO) /* the rest is a hole */
			return 0;
		from = MAX(from, (uint64_t)MAX(data, (off_t)0));
		if (from >= end)
			return 0;
		n = MIN(end - from, RESYNC_WINDOW);
		r = trace_dat_data_file(s->data, window, n, from, NULL);
		if (r < 0)
			return r == -ENODATA ? 0 : r;
		for (size_t i = 0; i + least <= n; i++) {
			if (!trace_dat_data_is_packed(window + i + DATA_CHUNK_HEAD))
				continue;
			r = is_chunk(s, from + i, end, ret);
			if (r != 0)
				return r;
		}
		from += n - least + 1;
	}
	return 0;
}

/* @moved: its length was wrong, and is not what its head says */
static int put_chunk(struct chunk_source *s, const struct chunk *chunk, bool moved)
{
	const struct data_piece piece = {
		.kind = moved ? DATA_BLOCK : DATA_CHUNKS,
		.n_chunks = 1,
		.place = moved ? chunk->place + DATA_CHUNK_HEAD : chunk->place,
		.length = chunk->length + (moved ? 0 : (uint64_t)DATA_CHUNK_HEAD),
		.size = chunk->size,
	};

	return trace_dat_data_add(s->data, &piece, NULL);
}

struct walk {
	uint32_t cpu;
	uint64_t pos, end;
	uint32_t left;	   /* chunks */
	struct chunk last; /* not put yet: its length is known when the next one is found */
	struct chunk cut;  /* by the end of the file; size 0: none is */
};

/* What is at @w->pos; a wrong magic alone is told when it is read, if the chain goes on behind */
static int next_chunk(const struct chunk_source *s, const struct walk *w, struct chunk *ret)
{
	struct chunk behind;
	int r = look_at_chunk(s, w->pos, w->end, ret);

	if (r <= 0 || ret->magic || w->left == 1)
		return r;
	r = look_at_chunk(s, w->pos + DATA_CHUNK_HEAD + ret->length, w->end, &behind);
	return r > 0 ? behind.magic : r;
}

/* Nothing is wrong with it but that the file ends before it does */
static bool is_cut(const struct chunk_source *s, const struct chunk *c)
{
	return c->magic && c->size > 0 && c->size <= DATA_CHUNK_MAX &&
	       c->size % s->page_size == 0 && c->length > s->size - c->place - DATA_CHUNK_HEAD &&
	       c->length < 2 * DATA_CHUNK_MAX;
}

/* What of it can be unpacked */
static int put_cut(struct chunk_source *s, const struct walk *w)
{
	struct data_piece piece = {.kind = DATA_CUT, .place = w->cut.place + DATA_CHUNK_HEAD};
	_cleanup_free_ void *bytes = malloc(w->cut.size);
	struct fault why;
	size_t n = 0;
	int r;

	if (!bytes)
		return -ENOMEM;
	piece.length = s->size - piece.place;
	r = trace_dat_data_unpack_cut(s->data, piece.place, piece.length, bytes, w->cut.size, &n,
				      &why);
	if (r < 0)
		return damage_add_fault(s->damages, r, &why);
	piece.size = round_down(n, s->page_size);
	r = trace_dat_data_add(s->data, &piece, NULL);
	return r < 0 ? r
		     : damage_add(
			       s->damages, w->cut.place,
			       "cpu %u: the file ends inside a chunk of %u bytes: of %u unpacked ones "
			       "%" PRIu64 " are left",
			       w->cpu, w->cut.length, w->cut.size, piece.size);
}

/*
 * There is no chunk where one should be: find the next one. If the length of the one before is
 * wrong, it lies in there. Return: 1, 0 there is none, or negative errno.
 */
static int resync(struct chunk_source *s, struct walk *w, struct chunk *ret)
{
	uint64_t bad = w->pos, from = w->last.size ? w->last.place + DATA_CHUNK_HEAD + 4 : bad;
	struct chunk head = {};
	int r = look_at_chunk(s, bad, w->end, &head), found;

	found = r < 0 || s->n_resyncs++ >= MAX_RESYNCS ? MIN(r, 0)
						       : find_next_chunk(s, from, w->end, ret);
	if (found < 0)
		return found;
	if (found > 0 && ret->place < bad) {
		r = damage_add(s->damages, w->last.place,
			       "cpu %u: a chunk of %u bytes, but the next one is at 0x%" PRIx64,
			       w->cpu, w->last.length, ret->place);
		w->last.length = (uint32_t)(ret->place - w->last.place - DATA_CHUNK_HEAD);
		return r < 0 || put_chunk(s, &w->last, true) < 0 ? -ENOMEM : (w->last.size = 0, 1);
	}
	if (found == 0 && is_cut(s, &head)) {
		w->cut = head;
		return 0;
	}
	if (found > 0)
		r = damage_add(
			s->damages, bad,
			"cpu %u: a chunk of %u bytes, %u unpacked, which cannot be; the next "
			"one is at 0x%" PRIx64,
			w->cpu, head.length, head.size, ret->place);
	else
		r = damage_add(
			s->damages, bad,
			"cpu %u: a chunk of %u bytes, %u unpacked, which cannot be, where %" PRIu64
			" bytes are left, and no other one follows",
			w->cpu, head.length, head.size, w->end - bad);
	return r < 0 ? r : found;
}

static int walk_chunks(struct chunk_source *s, struct walk *w)
{
	int r = 1;

	while (w->left > 0 && w->pos < w->end && r > 0) {
		struct chunk chunk;
		uint64_t pos = w->pos;

		r = next_chunk(s, w, &chunk);
		if (r == 0) {
			r = resync(s, w, &chunk);
			w->pos = r > 0 ? chunk.place : w->end;
			w->left -= w->pos > pos && w->left > 1; /* the one that is lost */
		}
		if (r >= 0 && w->last.size && put_chunk(s, &w->last, false) < 0)
			r = -ENOMEM;
		w->last.size = 0;
		if (r > 0) {
			w->last = chunk;
			w->pos += DATA_CHUNK_HEAD + chunk.length;
			w->left--;
		}
	}
	if (r >= 0 && w->last.size)
		r = put_chunk(s, &w->last, false);
	return r >= 0 && w->cut.size ? put_cut(s, w) : r;
}

/* --- by the index */

static bool has_head(const struct chunk_source *s, const struct index_chunk *chunk, uint64_t end)
{
	struct chunk head;

	return look_at_chunk(s, chunk->place, end, &head) > 0 && head.length == chunk->packed &&
	       head.size == chunk->unpacked;
}

/* Do the chunks form a chain from @place to @end, and are first and last where they should be? */
static bool agrees(const struct chunk_source *s, const struct index_cpu *cpu, uint64_t place,
		   uint64_t end)
{
	struct index_chunk first = trace_dat_index_chunk(s->data, cpu, 0), chunk = first;
	uint8_t bytes[COUNT_SIZE];

	if (end > s->size || trace_dat_data_file(s->data, bytes, sizeof(bytes), place, NULL) < 0 ||
	    get_u32(s, bytes) != cpu->n)
		return false;
	place += COUNT_SIZE;
	for (uint32_t i = 0; i < cpu->n; i++) {
		chunk = trace_dat_index_chunk(s->data, cpu, i);
		if (chunk.place != place || chunk.unpacked == 0 ||
		    chunk.unpacked > DATA_CHUNK_MAX || chunk.unpacked % s->page_size)
			return false;
		place += DATA_CHUNK_HEAD + (uint64_t)chunk.packed;
	}
	return place == end && has_head(s, &first, end) && has_head(s, &chunk, end);
}

/* 1, 0 the index does not tell, or negative errno */
static int put_indexed(struct chunk_source *s, uint32_t cpu, uint64_t place, uint64_t size)
{
	const struct index_cpu *known =
		s->index ? trace_dat_index_find(s->index, cpu, place + COUNT_SIZE) : NULL;
	int r = 0;

	if (!s->index)
		return 0;
	if (!known || size > s->size || !agrees(s, known, place, place + size))
		return damage_add(s->damages, s->index_place,
				  "cpu %u: the index does not agree with the chunks at 0x%" PRIx64
				  " and is not used",
				  cpu, place);
	for (uint32_t i = 0; i < known->n && r >= 0; i++) {
		const struct index_chunk chunk = trace_dat_index_chunk(s->data, known, i);
		const struct data_piece piece = {
			.kind = DATA_CHUNKS,
			.n_chunks = 1,
			.place = chunk.place,
			.length = DATA_CHUNK_HEAD + (uint64_t)chunk.packed,
			.size = chunk.unpacked,
			.first_ts = chunk.time,
		};

		r = trace_dat_data_add(s->data, &piece, NULL);
	}
	return r < 0 ? r : 1;
}

int chunks_put(struct chunk_source *source, uint32_t cpu, uint64_t place, uint64_t size,
	       uint64_t *ret_end)
{
	struct chunk_source *s = source;
	struct walk w = {.cpu = cpu};
	uint8_t bytes[COUNT_SIZE];
	struct fault why;
	uint32_t n;
	int r = put_indexed(s, cpu, place, size);

	*ret_end = place + size;
	if (r != 0)
		return MIN(r, 0);
	*ret_end = place;
	r = trace_dat_data_file(s->data, bytes, sizeof(bytes), place, &why);
	if (r < 0)
		return damage_add_fault(s->damages, r, &why);
	w.left = n = get_u32(s, bytes);
	w.pos = place + COUNT_SIZE;
	/* trace-cmd before 3.2 leaves the number out of the size */
	w.end = size < s->size - place ? MIN(place + size + COUNT_SIZE, s->size) : s->size;
	r = walk_chunks(s, &w);
	*ret_end = MIN(w.pos, w.end);
	if (r >= 0 && w.left > 0 && w.end < s->size)
		r = damage_add(s->damages, place, "cpu %u: %u chunks, but only %u are in its data",
			       cpu, n, n - w.left);
	else if (r >= 0 && w.left > 0)
		r = damage_add(s->damages, s->size, "cpu %u: the file ends before %u of %u chunks",
			       cpu, w.left, n);
	else if (r >= 0 && w.end - w.pos > (uint64_t)2 * COUNT_SIZE)
		r = damage_add(s->damages, w.pos, "cpu %u: %" PRIu64 " bytes behind its %u chunks",
			       cpu, w.end - w.pos, n);
	return r;
}

/* Can a CPU's data be at @place: 1, 0 no, or negative errno */
static int is_begin(const struct chunk_source *s, uint64_t place, uint64_t end)
{
	struct chunk chunk;

	return place + COUNT_SIZE < end ? look_at_chunk(s, place + COUNT_SIZE, end, &chunk) : 0;
}

/* All of what follows, if the chain is broken: it is looked through for more when it is put */
static int find_end(const struct chunk_source *s, uint64_t place, uint64_t end, uint64_t *ret)
{
	uint8_t bytes[COUNT_SIZE];
	uint32_t left;
	int r = trace_dat_data_file(s->data, bytes, sizeof(bytes), place, NULL);

	if (r < 0)
		return r;
	place += COUNT_SIZE;
	for (left = get_u32(s, bytes); left > 0; left--) {
		struct chunk chunk;

		r = look_at_chunk(s, place, end, &chunk);
		if (r <= 0)
			break;
		place += DATA_CHUNK_HEAD + chunk.length;
	}
	*ret = left > 0 ? end : place;
	return MIN(r, 0);
}

int chunks_find(const struct chunk_source *source, uint64_t end, uint64_t *place,
		uint64_t *ret_size)
{
	const uint64_t aligned = round_up(*place, source->page_size);
	uint64_t found = *place, behind;
	int r = is_begin(source, found, end);

	if (r == 0) {
		found = aligned;
		r = is_begin(source, found, end);
	}
	if (r <= 0)
		return r;
	r = find_end(source, found, end, &behind);
	if (r < 0)
		return r;
	*place = found;
	*ret_size = behind - found;
	return 1;
}
