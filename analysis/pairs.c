/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pairs.h"
#include "basic/strv.h"

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define OPEN_PAIRS (UINT32_C(1) << 14)
#else
#define OPEN_PAIRS (UINT32_C(1) << 5)
#endif
#define PROBES 16U

struct pairs {
	const struct latency_config *conditions;
	size_t n;
	bool (*seen)[2];
	struct pair *open; /* open-addressed, OPEN_PAIRS of them */
	uint64_t n_open;
};

/* The first or the second event of a condition, in one file */
struct pairs_side {
	uint32_t id;	 /* UINT32_MAX: the file has none */
	uint32_t buffer; /* from which it is taken; UINT32_MAX: none yet */
	const struct field *keys[LATENCY_KEYS];
};

int pairs_new(const struct latency_config *conditions, size_t n, struct pairs **ret)
{
	_cleanup_(pairs_freep) struct pairs *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->conditions = conditions;
	p->n = n;
	p->seen = calloc(n, sizeof(*p->seen));
	p->open = calloc(OPEN_PAIRS, sizeof(*p->open));
	if (!p->seen || !p->open)
		return -ENOMEM;
	*ret = TAKE_PTR(p);
	return 0;
}

struct pairs *pairs_free(struct pairs *pairs)
{
	if (!pairs)
		return NULL;
	free(pairs->seen);
	free(pairs->open);
	free(pairs);
	return NULL;
}

bool pairs_seen(const struct pairs *pairs, size_t condition, unsigned event)
{
	return pairs->seen[condition][event];
}

uint64_t pairs_forget(struct pairs *pairs)
{
	const uint64_t n = pairs->n_open;

	if (n > 0)
		memset(pairs->open, 0, OPEN_PAIRS * sizeof(*pairs->open));
	pairs->n_open = 0;
	return n;
}

/* --- files */

static int32_t find_event(const struct decoder *decoder, const char *name)
{
	const struct trace_dat *dat = decoder_dat(decoder);
	const char *colon = strchr(name, ':');

	for (size_t i = 0; i < dat->n_formats; i++) {
		const char *system = dat->systems[dat->formats[i].system];

		if (strlen(system) == (size_t)(colon - name) &&
		    memcmp(system, name, (size_t)(colon - name)) == 0 &&
		    strcmp(decoder_name(decoder, i), colon + 1) == 0)
			return (int32_t)i;
	}
	return -1;
}

static int no_field(const struct decoder *decoder, size_t format, const char *event,
		    const char *key, struct fault *why)
{
	_cleanup_free_ char *list = NULL;
	const struct field *fields;
	size_t n;

	fields = decoder_fields(decoder, format, &n);
	for (size_t i = 0; fields && i < n; i++) {
		char *more = strf("%s%s%s", list ? list : "", list ? ", " : "", fields[i].name);

		free(list);
		list = more;
	}
	return fault_set(why, -EINVAL, "%s has no field \"%s\", it has %s", event, key,
			 list ? list : "none");
}

/* "common_pid": all events have whose they are */
static const struct field *find_key(const struct decoder *decoder, size_t format, const char *key)
{
	const struct field *pid = &decoder_facts(decoder)->pid;

	if (strcmp(key, "common_pid") == 0)
		return pid->size > 0 ? pid : NULL;
	return decoder_field(decoder, format, key);
}

static int find_side(const struct latency_config *condition, const char *event,
		     const struct decoder *decoder, struct pairs_side *ret, struct fault *why)
{
	int32_t format = find_event(decoder, event);

	*ret = (struct pairs_side){.id = UINT32_MAX, .buffer = UINT32_MAX};
	if (format < 0)
		return 0;
	for (size_t i = 0; condition->keys[i]; i++) {
		ret->keys[i] = find_key(decoder, (size_t)format, condition->keys[i]);
		if (!ret->keys[i])
			return no_field(decoder, (size_t)format, event, condition->keys[i], why);
	}
	ret->id = decoder_format_id(decoder, (size_t)format);
	return 0;
}

int pairs_file_open(struct pairs *pairs, const struct decoder *decoder, struct pairs_file *ret,
		    struct fault *why)
{
	struct pairs_file file = {
		.wanted = calloc(SUBBUF_EVENT_IDS, 1),
		.sides = calloc(2 * pairs->n, sizeof(*file.sides)),
	};
	int r = file.wanted && file.sides ? 0 : fault_errno(why, -ENOMEM, "cannot analyze");

	for (size_t i = 0; i < 2 * pairs->n && r >= 0; i++) {
		const struct latency_config *condition = &pairs->conditions[i / 2];
		struct pairs_side *side = &file.sides[i];

		side->id = UINT32_MAX;
		if (condition->kind == LATENCY_PAIR)
			r = find_side(condition, condition->events[i % 2], decoder, side, why);
		if (r >= 0 && side->id < SUBBUF_EVENT_IDS)
			file.wanted[side->id] = 1;
	}
	if (r < 0)
		pairs_file_done(&file);
	else
		*ret = file;
	return r;
}

void pairs_file_done(struct pairs_file *file)
{
	free(file->wanted);
	free(file->sides);
	*file = (struct pairs_file){};
}

/* --- events */

/* Texts and arrays by a hash of theirs */
static uint64_t key_of(const struct field *field, const struct decode_event *event)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	const uint8_t *bytes;
	uint32_t size;

	if (!field->is_array && !field->is_dynamic && !field->is_string)
		return (uint64_t)field_signed(field, event);
	bytes = field_bytes(field, event, &size);
	for (uint32_t i = 0; i < size && (!field->is_string || bytes[i]); i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static bool same(const struct pair *a, const struct pair *b)
{
	return a->used && a->number == b->number && memcmp(a->keys, b->keys, sizeof(a->keys)) == 0;
}

/* Where the pair is, or may be kept: as find_request() of spans.c */
static struct pair *find_pair(struct pairs *p, const struct pair *like)
{
	uint64_t hash = like->number;
	struct pair *best = NULL;

	for (size_t i = 0; i < LATENCY_KEYS; i++)
		hash = (hash ^ like->keys[i]) * UINT64_C(0x9e3779b97f4a7c15);
	for (unsigned i = 0; i < PROBES; i++) {
		struct pair *pair = &p->open[((hash >> 32) + i) % OPEN_PAIRS];

		if (same(pair, like))
			return pair;
		if (!best || (best->used && (!pair->used || pair->from < best->from)))
			best = pair;
	}
	return best;
}

/* Return: whether another one had to go */
static bool begin_pair(struct pairs *p, const struct pair *pair)
{
	struct pair *at = find_pair(p, pair);

	const bool left_out = at->used && !same(at, pair);

	p->n_open += !at->used;
	*at = *pair;
	return left_out;
}

static bool end_pair(struct pairs *p, const struct pair *like, struct pair *ret)
{
	struct pair *at = find_pair(p, like);

	if (!same(at, like))
		return false;
	*ret = *at;
	ret->used = false;
	*at = (struct pair){};
	p->n_open--;
	return true;
}

/* Of a file with several ring buffers the first one that has such events counts */
static bool is_side(struct pairs_side *side, const struct decode_event *event)
{
	if (side->id != event->id)
		return false;
	if (side->buffer == UINT32_MAX)
		side->buffer = event->buffer;
	return side->buffer == event->buffer;
}

static struct pair pair_of(const struct pairs_side *side, size_t condition,
			   const struct decode_event *event)
{
	struct pair pair = {
		.number = (uint32_t)condition,
		.pid = event->pid,
		.cpu = event->cpu,
		.from = event->ts,
		.used = true,
	};

	for (size_t i = 0; i < LATENCY_KEYS && side->keys[i]; i++)
		pair.keys[i] = key_of(side->keys[i], event);
	return pair;
}

int pairs_event(struct pairs *pairs, struct pairs_file *file, const struct decode_event *event,
		int (*on_pair)(void *userdata, const struct pair *pair, uint64_t to),
		void *userdata, uint64_t *left_out)
{
	int r = 0;

	for (size_t i = 0; i < pairs->n && r >= 0; i++) {
		struct pairs_side *sides = &file->sides[2 * i];
		struct pair pair, ended;

		/* the end of one may be the beginning of the next one */
		if (is_side(&sides[1], event)) {
			pairs->seen[i][1] = true;
			pair = pair_of(&sides[1], i, event);
			if (end_pair(pairs, &pair, &ended))
				r = on_pair(userdata, &ended, event->ts);
		}
		if (is_side(&sides[0], event)) {
			pairs->seen[i][0] = true;
			pair = pair_of(&sides[0], i, event);
			*left_out += begin_pair(pairs, &pair);
		}
	}
	return MIN(r, 0);
}

int pairs_waiting(struct pairs *pairs, uint64_t before, uint64_t now,
		  int (*on_pair)(void *userdata, const struct pair *pair, uint64_t to),
		  void *userdata)
{
	int r = 0;

	for (uint32_t i = 0; i < OPEN_PAIRS && pairs->n_open > 0 && r >= 0; i++)
		if (pairs->open[i].used && pairs->open[i].from <= before)
			r = on_pair(userdata, &pairs->open[i], now);
	return MIN(r, 0);
}
