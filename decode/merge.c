/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "decode/merge.h"

struct cursor {
	struct merge_source source;
	struct merge_block *block;
	size_t pos; /* of the next sub-buffer in it */
	struct subbuf_iter iter;
	bool in_subbuf, first; /* first: no event of this sub-buffer was taken yet */
	struct decode_event event;
};

struct merge {
	const struct decoder *decoder;
	struct subbuf_layout layout;
	bool pair_leaves;
	uint64_t until;
	void (*on_fault)(void *userdata, const char *text);
	void *userdata;

	struct cursor *cursors;
	size_t n;
	size_t *heap; /* of cursors that have an event, the earliest first */
	size_t n_heap;
	size_t *dry; /* those whose source had nothing and that were not asked since */
	size_t n_dry;
	size_t *ask; /* to be asked before the next event is given out */
	size_t n_ask;
};

struct merge_block *merge_block_new(size_t size)
{
	struct merge_block *block = malloc(sizeof(*block) + size);

	if (!block)
		return NULL;
	*block = (struct merge_block){.size = size};
	atomic_init(&block->refs, 1);
	return block;
}

void merge_block_unref(struct merge_block *block)
{
	if (block && atomic_fetch_sub(&block->refs, 1) == 1)
		free(block);
}

void merge_keep_clear(struct merge_keep *keep)
{
	for (size_t i = 0; i < keep->n; i++)
		merge_block_unref(keep->blocks[i]);
	keep->n = 0;
}

void merge_keep_done(struct merge_keep *keep)
{
	merge_keep_clear(keep);
	free(keep->blocks);
	*keep = (struct merge_keep){};
}

static int keep_block(struct merge_keep *keep, struct merge_block *block)
{
	if (block->kept == keep->serial)
		return 0;
	if (keep->n == keep->room) {
		size_t room = MAX(2 * keep->room, (size_t)16);
		struct merge_block **p =
			reallocarray(keep->blocks, room, sizeof(struct merge_block *));

		if (!p)
			return -ENOMEM;
		keep->blocks = p;
		keep->room = room;
	}
	atomic_fetch_add(&block->refs, 1);
	block->kept = keep->serial;
	keep->blocks[keep->n++] = block;
	return 0;
}

int merge_new(const struct decoder *decoder, const struct subbuf_layout *layout, bool pair_leaves,
	      void (*on_fault)(void *userdata, const char *text), void *userdata,
	      struct merge **ret)
{
	struct merge *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->decoder = decoder;
	m->layout = *layout;
	m->pair_leaves = pair_leaves;
	m->until = UINT64_MAX;
	m->on_fault = on_fault;
	m->userdata = userdata;
	*ret = m;
	return 0;
}

struct merge *merge_free(struct merge *merge)
{
	if (!merge)
		return NULL;
	for (size_t i = 0; i < merge->n; i++)
		merge_block_unref(merge->cursors[i].block);
	free(merge->cursors);
	free(merge->heap);
	free(merge->dry);
	free(merge->ask);
	free(merge);
	return NULL;
}

static int grow(void *array_p, size_t n, size_t item)
{
	void **array = array_p, *p = reallocarray(*array, n, item);

	if (!p)
		return -ENOMEM;
	*array = p;
	return 0;
}

int merge_add(struct merge *merge, const struct merge_source *source)
{
	size_t n = merge->n + 1;

	if (grow(&merge->cursors, n, sizeof(*merge->cursors)) < 0 ||
	    grow(&merge->heap, n, sizeof(size_t)) < 0 || grow(&merge->dry, n, sizeof(size_t)) < 0 ||
	    grow(&merge->ask, n, sizeof(size_t)) < 0)
		return -ENOMEM;
	merge->cursors[merge->n] = (struct cursor){.source = *source};
	merge->ask[merge->n_ask++] = merge->n;
	merge->n = n;
	return 0;
}

void merge_retry(struct merge *merge)
{
	for (size_t i = 0; i < merge->n_dry; i++)
		merge->ask[merge->n_ask++] = merge->dry[i];
	merge->n_dry = 0;
}

static void report(struct merge *m, const struct cursor *c, const struct subbuf_fault *fault)
{
	char text[160], line[256];

	if (!m->on_fault)
		return;
	(void)snprintf(line, sizeof(line), "offset 0x%" PRIx64 ": cpu %" PRIu32 ": %s",
		       c->block->offset + c->pos - m->layout.size + fault->offset, c->source.cpu,
		       subbuf_fault_text(fault, text, sizeof(text)));
	m->on_fault(m->userdata, line);
}

/* Go to the next sub-buffer that holds something: 1, 0 nothing (now), negative errno */
static int next_subbuf(struct merge *m, struct cursor *c, struct fault *why)
{
	struct subbuf_fault fault;

	for (;;) {
		int r;

		if (!c->block || c->pos + m->layout.size > c->block->size) {
			merge_block_unref(c->block);
			c->block = NULL;
			c->pos = 0;
			r = c->source.read(c->source.userdata, &c->block, why);
			if (r <= 0)
				return r;
			continue;
		}
		r = subbuf_iter_init(&m->layout, c->block->bytes + c->pos, &c->iter, &fault);
		c->pos += m->layout.size;
		if (r < 0)
			report(m, c, &fault);
		if (r == 0) {
			c->in_subbuf = c->first = true;
			return 1;
		}
	}
}

/*
 * A loss is told with the first event of the sub-buffer, but not by trace-cmd if a time event comes
 * first
 */
static int64_t missed_before(const struct cursor *c, const struct subbuf_event *event)
{
	const struct subbuf_header *header = &c->iter.header;

	if (!c->first || !header->missed || event->offset != c->iter.layout->data_offset)
		return 0;
	if (!header->missed_stored)
		return -1;
	return (int64_t)header->missed_events;
}

/* The cursor's next event: 1, 0 nothing (now), negative errno */
static int advance(struct merge *m, struct cursor *c, struct fault *why)
{
	struct subbuf_fault fault;
	struct subbuf_event event;
	int r;

	for (;;) {
		if (!c->in_subbuf) {
			r = next_subbuf(m, c, why);
			if (r <= 0)
				return r;
		}
		r = subbuf_iter_next(&c->iter, &event, &fault);
		if (r > 0)
			break;
		if (r < 0)
			report(m, c, &fault);
		c->in_subbuf = false;
	}
	c->event = (struct decode_event){
		.ts = decoder_time(m->decoder, event.ts),
		.data = event.data,
		.size = event.size,
		.missed = missed_before(c, &event),
		.cpu = c->source.cpu,
		.buffer = c->source.buffer,
	};
	c->first = false;
	return 1;
}

static bool before(const struct merge *m, size_t a, size_t b)
{
	uint64_t x = m->cursors[a].event.ts, y = m->cursors[b].event.ts;

	return x != y ? x < y : a < b;
}

static void sift_down(struct merge *m, size_t i)
{
	size_t cursor = m->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= m->n_heap)
			break;
		if (child + 1 < m->n_heap && before(m, m->heap[child + 1], m->heap[child]))
			child++;
		if (!before(m, m->heap[child], cursor))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = cursor;
}

static void push(struct merge *m, size_t cursor)
{
	size_t i = m->n_heap++;

	while (i > 0 && before(m, cursor, m->heap[(i - 1) / 2])) {
		m->heap[i] = m->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	m->heap[i] = cursor;
}

static int ask(struct merge *m, struct fault *why)
{
	while (m->n_ask > 0) {
		size_t cursor = m->ask[m->n_ask - 1];
		int r = advance(m, &m->cursors[cursor], why);

		if (r < 0)
			return r;
		m->n_ask--;
		if (r > 0)
			push(m, cursor);
		else
			m->dry[m->n_dry++] = cursor;
	}
	return 0;
}

/* Give out the first event of the heap, which stays in its block, and go on behind it */
static int take(struct merge *m, struct merge_keep *keep, struct decode_event *ret,
		struct fault *why)
{
	struct cursor *c = &m->cursors[m->heap[0]];
	int r;

	r = keep_block(keep, c->block);
	if (r < 0)
		return fault_errno(why, r, "cannot go on");
	*ret = c->event;
	r = advance(m, c, why);
	if (r < 0)
		return r;
	if (r == 0) {
		m->dry[m->n_dry++] = m->heap[0];
		m->heap[0] = m->heap[--m->n_heap];
	}
	if (m->n_heap > 0)
		sift_down(m, 0);
	return 0;
}

void merge_set_until(struct merge *merge, uint64_t until)
{
	merge->until = until;
}

/* The earliest event that may be given out, NULL: none (now) */
static const struct decode_event *first(const struct merge *m)
{
	const struct decode_event *event = m->n_heap > 0 ? &m->cursors[m->heap[0]].event : NULL;

	return event && event->ts <= m->until ? event : NULL;
}

int merge_peek(struct merge *merge, uint64_t *ret, struct fault *why)
{
	int r = ask(merge, why);

	if (r < 0)
		return r;
	if (!first(merge))
		return 0;
	*ret = first(merge)->ts;
	return 1;
}

int merge_next(struct merge *merge, struct merge_keep *keep, struct decode_event *ret,
	       struct fault *why)
{
	struct decode_event leaf;
	int r;

	r = ask(merge, why);
	if (r < 0)
		return r;
	if (!first(merge))
		return 0;
	r = take(merge, keep, ret, why);
	if (r < 0)
		return r;
	if (merge->pair_leaves && first(merge) &&
	    decoder_is_leaf(merge->decoder, ret, first(merge))) {
		r = take(merge, keep, &leaf, why);
		if (r < 0)
			return r;
		ret->leaf = leaf.data;
		ret->leaf_size = leaf.size;
	}
	return 1;
}
