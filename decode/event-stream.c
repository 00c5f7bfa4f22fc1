/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file is read in blocks of whole sub-buffers. A cursor for each CPU of each ring buffer holds
 * the block that it is in; a heap has the cursors by their next event. Events point into blocks,
 * which live as long as a cursor or a struct event_keep has them.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "decode/event-stream.h"

#define BLOCK_SIZE   (256 * KIB)
#define BLOCKS_TOTAL (128 * MIB)
#define AHEAD	     64U /* events */
#define ALIGNMENT    4096U
#define CACHE_LINE   64U
/* Beside what formats/trace-dat-data.h keeps unpacked, where smaller blocks cost little */
#define UNPACKED_TOTAL (8 * MIB)

struct event_block {
	unsigned refs;
	uint64_t kept;	 /* serial of the struct event_keep that has it last */
	uint64_t offset; /* in the file */
	size_t size;
	void *memory; /* that the block is in */
	uint8_t bytes[];
};

struct cursor {
	uint32_t cpu, buffer;
	uint64_t begin, pos, end; /* of the region; pos: what is read next */
	struct event_block *block;
	size_t next; /* sub-buffer in the block */
	struct subbuf_iter iter;
	bool in_subbuf;
	bool aside;			  /* its events are not wanted, but tell who tasks are */
	struct subbuf_event ahead[AHEAD]; /* read already, their times as they are shown */
	unsigned at, n;			  /* at: behind the next event */
	uint64_t key;			  /* of that one */
	struct decode_event event;	  /* that one, by event_of() */
	bool known;			  /* it is there */
};

struct event_stream {
	const struct decoder *decoder;
	const struct trace_dat *dat;
	struct event_stream_config config;
	struct tasks *tasks;
	struct who_file who;
	bool (*key)(void *userdata, const struct decode_event *event, uint64_t *ret);
	void *userdata;
	uint64_t until;
	bool past;   /* what comes is later than the filter wants */
	bool in_run; /* the event on top was given out by event_stream_run() */
	size_t block_size, n_faults;
	uint64_t serial; /* of the last struct event_keep that was begun */
	struct event_keep keep;

	struct cursor *cursors;
	size_t n;
	size_t *heap; /* of cursors that have an event, the first to be given out on top */
	size_t n_heap;
	size_t *dry; /* those that had nothing and were not asked since */
	size_t n_dry;
	size_t *ask; /* to be asked before the next event is given out */
	size_t n_ask;
};

static void unref(struct event_block *block)
{
	if (block && --block->refs == 0)
		free(block->memory);
}

/* Its bytes begin where O_DIRECT takes them, if that is wanted */
static struct event_block *new_block(const struct event_stream *s, size_t size)
{
	const size_t before = s->config.aligned ? ALIGNMENT - sizeof(struct event_block) : 0;
	char *memory = s->config.aligned
			       ? aligned_alloc(ALIGNMENT, ALIGNMENT + round_up(size, ALIGNMENT))
			       : malloc(sizeof(struct event_block) + size);
	struct event_block *block = (void *)(memory ? memory + before : NULL);

	if (block)
		*block = (struct event_block){.memory = memory};
	return block;
}

void event_keep_clear(struct event_keep *keep)
{
	for (size_t i = 0; i < keep->n; i++)
		unref(keep->blocks[i]);
	keep->n = 0;
	keep->serial = 0;
}

void event_keep_done(struct event_keep *keep)
{
	event_keep_clear(keep);
	free(keep->blocks);
	*keep = (struct event_keep){};
}

/* Takes over a reference */
static int keep_block(struct event_stream *s, struct event_keep *keep, struct event_block *block)
{
	if (keep->serial == 0)
		keep->serial = ++s->serial;
	if (block->kept == keep->serial) {
		unref(block);
		return 0;
	}
	if (keep->n == keep->room) {
		size_t room = MAX(2 * keep->room, (size_t)16);
		struct event_block **p =
			reallocarray(keep->blocks, room, sizeof(struct event_block *));

		if (!p) {
			unref(block);
			return -ENOMEM;
		}
		keep->blocks = p;
		keep->room = room;
	}
	block->kept = keep->serial;
	keep->blocks[keep->n++] = block;
	return 0;
}

/* --- one CPU */

/* One that was never written comes last, a damaged one with the next */
static bool begins_before(const void *stream, uint64_t timestamp)
{
	const struct event_stream *s = stream;

	return timestamp && timestamp != UINT64_MAX &&
	       decoder_time(s->decoder, timestamp) < s->config.filter->from;
}

/* Skip the sub-buffers that end before the filter's time, by their timestamps */
static int seek(const struct event_stream *s, struct cursor *c, struct fault *why)
{
	const struct trace_dat_extent region = {c->begin, c->end - c->begin};
	uint64_t n = 0;
	int r = trace_dat_search(s->dat, &region, begins_before, s, &n, why);

	/* those are before the first that begins in time; the last of them may reach so far */
	if (r >= 0 && n > 0)
		c->pos += (n - 1) * s->dat->page_size;
	return r;
}

static void tell_line(struct event_stream *s, const char *line)
{
	s->n_faults++;
	if (s->config.on_fault)
		s->config.on_fault(line);
}

/* From c->pos on, which goes behind what is damaged: 1, 0 nothing follows, negative errno */
static int read_block(struct event_stream *s, struct cursor *c, uint8_t *bytes, size_t *size,
		      struct fault *why)
{
	if (s->config.read) {
		ssize_t n = s->config.read(s->config.userdata, c->cpu, bytes, *size, why);

		*size = (size_t)MAX(n, 0);
		return n < 0 ? (int)n : n > 0;
	}
	while (c->pos < c->end) {
		size_t n = 0;
		int r = trace_dat_read_some(s->dat, bytes, MIN(c->end - c->pos, (uint64_t)*size),
					    c->pos, &n, why);

		if (r >= 0)
			*size = n;
		if (r != -EBADMSG)
			return r < 0 ? r : 1;
		tell_line(s, why->text);
		c->pos += n;
	}
	return 0;
}

/*
 * What a disk has written to memory is in no cache. Whoever goes from event to event waits for each
 * line, which takes longer than all else; these loads wait for each other no longer.
 */
static void touch(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i += CACHE_LINE)
		(void)*(const volatile uint8_t *)&bytes[i];
}

/* 1, 0 nothing (now), negative errno */
static int next_block(struct event_stream *s, struct cursor *c, struct fault *why)
{
	size_t size =
		s->config.read ? s->block_size : MIN(c->end - c->pos, (uint64_t)s->block_size);
	struct event_block *block;
	int r;

	unref(c->block);
	c->block = NULL;
	c->next = 0;
	if (size == 0)
		return 0;
	block = new_block(s, size);
	if (!block)
		return fault_errno(why, -ENOMEM, "%s: cannot read", s->dat->path);
	r = read_block(s, c, block->bytes, &size, why);
	if (r <= 0) {
		free(block->memory);
		return r;
	}
	if (s->config.aligned)
		touch(block->bytes, size);
	block->refs = 1;
	block->offset = c->pos;
	block->size = size;
	c->pos += size;
	c->end = MAX(c->end, c->pos);
	c->block = block;
	return 1;
}

static void tell_subbuf(struct event_stream *s, const struct cursor *c,
			const struct subbuf_fault *fault)
{
	uint64_t at = c->block->offset + c->next - s->dat->page_size + fault->offset;
	char text[160], line[512];

	(void)snprintf(line, sizeof(line), "%.200s: offset %s: cpu %" PRIu32 ": %s", s->dat->path,
		       trace_dat_at(s->dat, at).text, c->cpu,
		       subbuf_fault_text(fault, text, sizeof(text)));
	tell_line(s, line);
}

/* Go to the next sub-buffer that holds something: 1, 0 nothing (now), negative errno */
static int next_subbuf(struct event_stream *s, struct cursor *c, struct fault *why)
{
	struct subbuf_fault fault;
	int r;

	for (;;) {
		if (!c->block || c->next + s->dat->page_size > c->block->size) {
			r = next_block(s, c, why);
			if (r <= 0)
				return r;
			continue;
		}
		r = subbuf_iter_init(&s->dat->layout, c->block->bytes + c->next, &c->iter, &fault);
		c->next += s->dat->page_size;
		if (r < 0)
			tell_subbuf(s, c, &fault);
		if (r == 0) {
			c->in_subbuf = true;
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

	if (!header->missed || event->offset != c->iter.layout->data_offset)
		return 0;
	if (!header->missed_stored)
		return -1;
	return (int64_t)header->missed_events;
}

static bool wants(const struct event_stream *s, const struct decode_event *event)
{
	return s->config.all || !s->config.filter || event_filter_wants(s->config.filter, event);
}

/* Read some events: 1, 0 nothing (now), negative errno */
static int read_ahead(struct event_stream *s, struct cursor *c, struct fault *why)
{
	const struct decoder_facts *facts = decoder_facts(s->decoder);
	struct subbuf_fault fault;
	int r;

	for (;;) {
		if (!c->in_subbuf) {
			r = next_subbuf(s, c, why);
			if (r <= 0)
				return r;
		}
		r = s->config.pick
			    ? subbuf_iter_pick(&c->iter, s->config.pick, c->ahead, AHEAD, &fault)
			    : subbuf_iter_some(&c->iter, c->ahead, AHEAD, &fault);
		if (r > 0)
			break;
		if (r < 0)
			tell_subbuf(s, c, &fault);
		c->in_subbuf = false;
	}
	c->at = 0;
	c->n = (unsigned)r;
	for (unsigned i = 0; i < c->n; i++)
		c->ahead[i].ts = decoder_facts_time(facts, c->ahead[i].ts);
	if (s->config.thin)
		c->n = s->config.thin(s->config.thin_userdata, c->ahead, c->n);
	return 1;
}

/* The cursor's next event, all of it */
static const struct decode_event *event_of(const struct event_stream *s, struct cursor *c)
{
	const struct subbuf_event *event = &c->ahead[c->at - 1];

	if (c->known)
		return &c->event;
	/* One by one: as a whole it would be made on the stack first, and copied */
	c->event.ts = event->ts;
	c->event.data = event->data;
	c->event.size = event->size;
	c->event.leaf = NULL;
	c->event.leaf_size = 0;
	c->event.task = NULL;
	c->event.who = NULL;
	c->event.offset = c->block->offset + (uint64_t)(event->data - c->block->bytes);
	c->event.missed = missed_before(c, event);
	c->event.cpu = c->cpu;
	c->event.buffer = c->buffer;
	c->event.new_day = false;
	decoder_identify(s->decoder, &c->event);
	c->known = true;
	return &c->event;
}

/* Go to the cursor's next event: 1, 0 nothing (now), negative errno */
static int advance(struct event_stream *s, struct cursor *c, struct fault *why)
{
	for (;;) {
		if (c->at == c->n) {
			int r = read_ahead(s, c, why);

			if (r <= 0)
				return r;
		}
		c->key = c->ahead[c->at++].ts;
		c->known = false;
		if (!s->key ||
		    (wants(s, event_of(s, c)) && s->key(s->userdata, &c->event, &c->key)))
			return 1;
	}
}

/* --- all of them */

static bool before(const struct event_stream *s, size_t a, size_t b)
{
	uint64_t x = s->cursors[a].key, y = s->cursors[b].key;

	return x != y ? x < y : a < b;
}

static void sift_down(struct event_stream *s, size_t i)
{
	size_t cursor = s->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= s->n_heap)
			break;
		if (child + 1 < s->n_heap && before(s, s->heap[child + 1], s->heap[child]))
			child++;
		if (!before(s, s->heap[child], cursor))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = cursor;
}

static void push(struct event_stream *s, size_t cursor)
{
	size_t i = s->n_heap++;

	while (i > 0 && before(s, cursor, s->heap[(i - 1) / 2])) {
		s->heap[i] = s->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->heap[i] = cursor;
}

/* Go on behind the event on top of the heap */
static int pass(struct event_stream *s, struct fault *why)
{
	int r = advance(s, &s->cursors[s->heap[0]], why);

	if (r < 0)
		return r;
	if (r == 0) {
		s->dry[s->n_dry++] = s->heap[0];
		s->heap[0] = s->heap[--s->n_heap];
	}
	if (s->n_heap > 0)
		sift_down(s, 0);
	return 0;
}

/* Whose event comes next, if it may be given out: 1, 0 none (now), negative errno */
static int look(struct event_stream *s, struct cursor **ret, struct fault *why)
{
	if (s->in_run) {
		int r = pass(s, why);

		if (r < 0)
			return r;
		s->in_run = false;
	}
	while (s->n_ask > 0) {
		size_t cursor = s->ask[s->n_ask - 1];
		int r = advance(s, &s->cursors[cursor], why);

		if (r < 0)
			return r;
		s->n_ask--;
		if (r > 0)
			push(s, cursor);
		else
			s->dry[s->n_dry++] = cursor;
	}
	if (s->n_heap == 0)
		return 0;
	*ret = &s->cursors[s->heap[0]];
	return (*ret)->ahead[(*ret)->at - 1].ts <= s->until;
}

/* Take that event, with a reference to its block, and go on behind it */
static int take(struct event_stream *s, struct decode_event *ret, struct event_block **ret_block,
		struct fault *why)
{
	struct cursor *c = &s->cursors[s->heap[0]];
	struct event_block *block = c->block;
	int r;

	block->refs++;
	*ret = *event_of(s, c);
	r = pass(s, why);
	if (r < 0) {
		unref(block);
		return r;
	}
	*ret_block = block;
	return 0;
}

static int no_memory(const struct event_stream *s, struct fault *why)
{
	return fault_errno(why, -ENOMEM, "%s: cannot go on", s->dat->path);
}

/* The end of the function that @event enters, if that is all that happens in it */
static int take_leaf(struct event_stream *s, struct event_keep *keep, bool wanted,
		     struct decode_event *event, struct fault *why)
{
	struct event_block *block;
	struct decode_event leaf;
	struct cursor *next;
	int r = look(s, &next, why);

	if (r <= 0 || !decoder_is_leaf(s->decoder, event, event_of(s, next)))
		return r;
	r = take(s, &leaf, &block, why);
	if (r < 0)
		return r;
	event->leaf = leaf.data;
	event->leaf_size = leaf.size;
	if (!wanted)
		unref(block);
	else if (keep_block(s, keep, block) < 0)
		return no_memory(s, why);
	return 0;
}

/* Return: 1 taken, 0 there was none, negative errno */
static int take_next(struct event_stream *s, struct event_keep *keep, struct decode_event *ret,
		     bool *ret_wanted, struct fault *why)
{
	const struct event_filter *filter = s->config.filter;
	struct event_block *block;
	struct cursor *next;
	bool aside;
	int r;

	r = look(s, &next, why);
	if (r <= 0)
		return r;
	/* all that follows are later, too */
	s->past = filter && !s->config.all && !s->key && next->key > filter->to;
	if (s->past)
		return 0;
	aside = s->cursors[s->heap[0]].aside;
	r = take(s, ret, &block, why);
	if (r < 0)
		return r;
	if (s->config.who && who_event(s->config.who, &s->who, ret) < 0) {
		unref(block);
		return no_memory(s, why);
	}
	if (s->config.who)
		ret->who = who_find(s->config.who, ret->pid, ret->ts);
	*ret_wanted = !aside && (s->key || wants(s, ret));
	if (s->tasks && decoder_task(s->decoder, s->tasks, ret) < 0) {
		unref(block);
		return no_memory(s, why);
	}
	if (s->config.pair_leaves && !s->key)
		r = take_leaf(s, keep, *ret_wanted, ret, why);
	if (!*ret_wanted)
		unref(block);
	else if (keep_block(s, keep, block) < 0)
		return no_memory(s, why);
	return r < 0 ? r : 1;
}

int event_next_keep(struct event_stream *stream, struct event_keep *keep, struct decode_event *ret,
		    struct fault *why)
{
	bool wanted = false;
	int r = 1;

	while (r > 0 && !wanted)
		r = stream->past ? 0 : take_next(stream, keep, ret, &wanted, why);
	return r;
}

int event_next(struct event_stream *stream, struct decode_event *ret, struct fault *why)
{
	event_keep_clear(&stream->keep);
	return event_next_keep(stream, &stream->keep, ret, why);
}

/* pass(), where it cannot fail: what most runs end with */
static void pass_quickly(struct event_stream *s)
{
	struct cursor *c = &s->cursors[s->heap[0]];

	if (c->at == c->n)
		return;
	c->key = c->ahead[c->at++].ts;
	c->known = false;
	sift_down(s, 0);
	s->in_run = false;
}

/* Up to when events of the CPU on top come before those of all others, and are wanted */
static uint64_t run_limit(const struct event_stream *s)
{
	const struct event_filter *filter = s->config.filter;
	uint64_t limit = s->until;

	if (filter && !s->config.all)
		limit = MIN(limit, filter->to);
	for (size_t child = 1; child <= 2 && child < s->n_heap; child++) {
		uint64_t other = s->cursors[s->heap[child]].key;

		/* of equal times the lower one is first: if this is not on top, its time is later
		 */
		limit = MIN(limit, s->heap[0] < s->heap[child] ? other : other - 1);
	}
	return limit;
}

int event_stream_run(struct event_stream *stream, struct event_run *ret, struct fault *why)
{
	struct event_stream *s = stream;
	const struct event_filter *filter = s->config.all ? NULL : s->config.filter;
	const bool each = filter && (filter->ids || filter->has_pids);
	struct cursor *c;
	int r = 0;

	if (s->in_run)
		pass_quickly(s);
	while (!s->past && (r = look(s, &c, why)) > 0) {
		const struct subbuf_event *first = &c->ahead[c->at - 1];
		const uint64_t limit = run_limit(s);

		s->past = filter && c->key > filter->to;
		if (s->past)
			break;
		s->in_run = true;
		if (filter && (each ? !wants(s, event_of(s, c)) : c->key < filter->from))
			continue;
		*ret = (struct event_run){
			.events = first,
			.n = 1,
			.cpu = c->cpu,
			.buffer = c->buffer,
			.offset = c->block->offset + (uint64_t)(first->data - c->block->bytes),
			.missed = missed_before(c, first),
			.big_endian = s->dat->big_endian,
		};
		while (!each && c->at < c->n && c->ahead[c->at].ts <= limit)
			c->at++;
		ret->n = (size_t)(&c->ahead[c->at] - first);
		return 1;
	}
	return MIN(r, 0);
}

int event_peek(struct event_stream *stream, uint64_t *ret, struct fault *why)
{
	struct cursor *next;
	int r = look(stream, &next, why);

	if (r > 0)
		*ret = next->ahead[next->at - 1].ts;
	return r;
}

void event_stream_until(struct event_stream *stream, uint64_t until)
{
	stream->until = until;
}

void event_stream_grow(struct event_stream *stream, const uint64_t *sizes)
{
	for (size_t i = 0; sizes && i < stream->n; i++) {
		struct cursor *c = &stream->cursors[i];

		c->end = MAX(c->end, c->begin + round_down(sizes[c->cpu], stream->dat->page_size));
	}
	for (size_t i = 0; i < stream->n_dry; i++)
		stream->ask[stream->n_ask++] = stream->dry[i];
	stream->n_dry = 0;
}

uint64_t event_stream_left(const struct event_stream *stream)
{
	uint64_t left = 0;

	for (size_t i = 0; i < stream->n; i++)
		left += stream->cursors[i].end - stream->cursors[i].pos;
	return left;
}

int event_stream_rename(struct event_stream *stream, int32_t pid, const char *name)
{
	return tasks_learn(stream->tasks, pid, name, strlen(name), true);
}

int event_stream_task(struct event_stream *stream, struct decode_event *event)
{
	return decoder_task(stream->decoder, stream->tasks, event);
}

size_t event_stream_faults(const struct event_stream *stream)
{
	return stream->n_faults;
}

size_t event_stream_keep_most(const struct event_stream *stream, size_t bytes)
{
	return MAX(bytes / stream->block_size, stream->n + 1);
}

/* --- its beginning */

static int add_cursor(struct event_stream *s, uint32_t buffer, uint32_t cpu, struct fault *why)
{
	const struct trace_dat_region *region = &s->dat->buffers[buffer].regions[cpu];
	const struct event_filter *filter = s->config.filter;
	const bool grows = s->config.sizes || s->config.read;
	struct cursor *c = &s->cursors[s->n];
	struct fault broken;

	const bool aside = filter && filter->has_cpus && !cpu_list_has(&filter->cpus, cpu);

	if (aside && !(s->config.who && event_filter_has_places(filter)))
		return 0;
	if (!grows && region->size == 0)
		return 0;
	if (!grows && trace_dat_check_region(s->dat, &s->dat->buffers[buffer], cpu, &broken) < 0) {
		tell_line(s, broken.text);
		return 0;
	}
	*c = (struct cursor){.cpu = cpu, .buffer = buffer, .aside = aside};
	c->begin = c->pos = region->offset;
	c->end = c->begin;
	if (!s->config.read)
		c->end += s->config.sizes ? round_down(s->config.sizes[cpu], s->dat->page_size)
					  : region->size;
	s->ask[s->n_ask++] = s->n++;
	return filter && filter->from > 0 && !s->config.read ? seek(s, c, why) : 0;
}

static int add_cursors(struct event_stream *s, struct fault *why)
{
	const uint32_t n_buffers =
		s->config.sizes || s->config.read ? 1 : (uint32_t)s->dat->n_buffers;
	size_t most = MAX(n_buffers * (size_t)s->dat->n_cpus, (size_t)1), total;
	int r = 0;

	total = s->config.memory ? s->config.memory : BLOCKS_TOTAL;
	if (s->dat->data)
		total = MIN(total, UNPACKED_TOTAL);
	s->block_size = MAX(MIN(BLOCK_SIZE, total / most), (size_t)s->dat->page_size);
	s->block_size -= s->block_size % s->dat->page_size;
	s->cursors = calloc(most, sizeof(*s->cursors));
	s->heap = calloc(3 * most, sizeof(size_t));
	if (!s->cursors || !s->heap)
		return fault_errno(why, -ENOMEM, "%s: cannot read", s->dat->path);
	s->dry = s->heap + most;
	s->ask = s->dry + most;
	/* of a file that grows, whoever opened it tells */
	STRV_FOREACH (line, s->config.sizes ? NULL : s->dat->damages.lines)
		tell_line(s, *line);
	for (uint32_t b = 0; b < n_buffers && r >= 0; b++)
		for (uint32_t cpu = 0; cpu < s->dat->n_cpus && r >= 0; cpu++)
			r = add_cursor(s, b, cpu, why);
	return r;
}

/* A file that has this damaged may still be read, but not by what it would have said */
static int add_who(struct event_stream *s, struct fault *why)
{
	struct fault damage;
	int r = who_add_file(s->config.who, s->decoder, &s->who, &damage, why);

	if (r < 0)
		return r;
	if (damage.text[0])
		tell_line(s, damage.text);
	if (s->who.says || !s->config.filter || !event_filter_has_places(s->config.filter) ||
	    s->config.filter->lenient)
		return 0;
	return fault_set(why, -EINVAL, "%s: does not say which units its tasks belong to",
			 s->dat->path);
}

int event_stream_new(const struct decoder *decoder, const struct event_stream_config *config,
		     struct event_stream **ret, struct fault *why)
{
	_cleanup_(event_stream_freep) struct event_stream *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return fault_errno(why, -ENOMEM, "cannot read events");
	s->decoder = decoder;
	s->dat = decoder_dat(decoder);
	s->config = *config;
	s->until = UINT64_MAX;
	r = config->no_tasks ? 0 : decoder_new_tasks(decoder, &s->tasks, why);
	if (r >= 0 && config->who)
		r = add_who(s, why);
	if (r >= 0)
		r = add_cursors(s, why);
	if (r < 0)
		return r;
	s->config.sizes = NULL; /* borrowed for the call */
	*ret = TAKE_PTR(s);
	return 0;
}

void event_stream_order(struct event_stream *stream,
			bool (*key)(void *userdata, const struct decode_event *event,
				    uint64_t *ret),
			void *userdata)
{
	stream->key = key;
	stream->userdata = userdata;
	tasks_free(stream->tasks);
	stream->tasks = NULL;
}

struct event_stream *event_stream_free(struct event_stream *stream)
{
	if (!stream)
		return NULL;
	event_keep_done(&stream->keep);
	for (size_t i = 0; i < stream->n; i++)
		unref(stream->cursors[i].block);
	free(stream->cursors);
	free(stream->heap);
	tasks_free(stream->tasks);
	who_file_done(&stream->who);
	free(stream);
	return NULL;
}
