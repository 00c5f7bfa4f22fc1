/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A group's key is the values of its columns behind each other: a byte that says which kind, then
 * the number, or a size and a text. A hash by open addressing finds it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "basic/macro.h"
#include "query/groups.h"
#include "query/sqlite.h"

/* Rows of a group; given back as soon as SQLite has had them */
struct chunk {
	struct chunk *next;
	uint32_t n, room;
	int64_t cells[]; /* n * width of them */
};

struct group {
	uint64_t hash, n;	    /* n: rows */
	struct chunk *first, *last; /* NULL: nothing is kept of its rows */
	uint32_t size;
	uint8_t key[];
};

struct groups {
	unsigned columns[2 * GROUPS_COLUMNS_MAX]; /* of keys: first those to sort by */
	bool descending[GROUPS_COLUMNS_MAX];
	unsigned wide[GROUPS_COLUMNS_MAX];
	size_t n_keys, n_columns, n_wide;
	size_t width; /* numbers of a row that are kept; one more says which are NULL */
	bool nulls;   /* if there is that */

	struct group **slots; /* room of them, a power of two; NULL: free */
	size_t n, room;
	struct group *last; /* the row before was in that one; NULL: none */

	uint8_t *key; /* being made */
	size_t key_size, key_room;

	size_t at; /* the group that the next row is in */
	uint64_t row;
	bool begun;
};

#define SLOTS_FIRST 256U
#define CHUNK_FIRST 4U /* rows; of each further one eight times as many, up to */
#define CHUNK_MAX   4096U

struct groups *groups_new(const struct groups_config *config)
{
	struct groups *g = sqlite3_malloc64(sizeof(*g));

	if (!g)
		return NULL;
	*g = (struct groups){
		.n_keys = config->n_keys,
		.n_columns = config->n_keys + config->n_others,
		.n_wide = config->n_wide,
		.width = config->n_wide > 0 ? config->n_wide + config->nulls : 0,
		.nulls = config->nulls,
		.room = SLOTS_FIRST,
	};
	for (size_t i = 0; i < config->n_keys; i++) {
		g->columns[i] = config->keys[i];
		g->descending[i] = config->descending[i];
	}
	for (size_t i = 0; i < config->n_others; i++)
		g->columns[config->n_keys + i] = config->others[i];
	for (size_t i = 0; i < config->n_wide; i++)
		g->wide[i] = config->wide[i];
	g->slots = sqlite3_malloc64(g->room * sizeof(*g->slots));
	if (!g->slots)
		return groups_free(g);
	memset(g->slots, 0, g->room * sizeof(*g->slots));
	return g;
}

static void free_group(struct group *group)
{
	if (!group)
		return;
	for (struct chunk *chunk = group->first, *next; chunk; chunk = next) {
		next = chunk->next;
		sqlite3_free(chunk);
	}
	sqlite3_free(group);
}

struct groups *groups_free(struct groups *groups)
{
	if (!groups)
		return NULL;
	for (size_t i = 0; groups->slots && i < groups->room; i++)
		free_group(groups->slots[i]);
	sqlite3_free(groups->slots);
	sqlite3_free(groups->key);
	sqlite3_free(groups);
	return NULL;
}

/* --- keys */

static int key_append(struct groups *g, const void *bytes, size_t size)
{
	if (g->key_room - g->key_size < size) {
		size_t room = 2 * (g->key_size + size) + 64;
		uint8_t *more = sqlite3_realloc64(g->key, room);

		if (!more)
			return -ENOMEM;
		g->key = more;
		g->key_room = room;
	}
	memcpy(g->key + g->key_size, bytes, size);
	g->key_size += size;
	return 0;
}

static int key_add(struct groups *g, const struct value *value)
{
	const uint8_t kind = (uint8_t)value->kind;
	const uint32_t size = (uint32_t)value->size;
	int r = key_append(g, &kind, 1);

	if (r >= 0 && value->kind == VALUE_INTEGER)
		r = key_append(g, &value->number, sizeof(value->number));
	if (r >= 0 && value->kind == VALUE_TEXT)
		r = key_append(g, &size, sizeof(size));
	if (r >= 0 && value->kind == VALUE_TEXT)
		r = key_append(g, value->text, size);
	return r;
}

/* Return: where the next value is */
static const uint8_t *key_take(const uint8_t *p, struct value *ret)
{
	*ret = (struct value){.kind = (enum value_kind) * p++};
	if (ret->kind == VALUE_INTEGER) {
		memcpy(&ret->number, p, sizeof(ret->number));
		p += sizeof(ret->number);
	} else if (ret->kind == VALUE_TEXT) {
		uint32_t size;

		memcpy(&size, p, sizeof(size));
		p += sizeof(size);
		ret->text = (const char *)p;
		ret->size = size;
		p += size;
	}
	return p;
}

/* As SQLite sorts: NULL, numbers, texts */
static int compare_values(const struct value *a, const struct value *b)
{
	int r;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->kind == VALUE_INTEGER)
		return a->number < b->number ? -1 : a->number > b->number;
	if (a->kind == VALUE_NULL)
		return 0;
	r = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
	return r != 0 ? r : a->size < b->size ? -1 : a->size > b->size;
}

static int compare_groups(const void *a, const void *b, void *userdata)
{
	const struct group *const *x = a, *const *y = b;
	const struct groups *g = userdata;
	const uint8_t *p, *q;

	if (!*x || !*y)
		return *x ? -1 : *y ? 1 : 0;
	p = (*x)->key;
	q = (*y)->key;
	for (size_t i = 0; i < g->n_keys; i++) {
		struct value v, w;
		int r;

		p = key_take(p, &v);
		q = key_take(q, &w);
		r = compare_values(&v, &w);
		if (r != 0)
			return g->descending[i] ? -r : r;
	}
	return 0;
}

static uint64_t hash_of(const uint8_t *bytes, size_t size)
{
	uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) ^ size;

	while (size > 0) {
		uint64_t word = 0;
		size_t n = size < sizeof(word) ? size : sizeof(word);

		memcpy(&word, bytes, n);
		hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
		hash ^= hash >> 32;
		bytes += n;
		size -= n;
	}
	return hash;
}

/* --- rows */

static struct group **find_slot(const struct groups *g, uint64_t hash, const uint8_t *key,
				size_t size)
{
	size_t i = hash & (g->room - 1);

	while (g->slots[i] && (g->slots[i]->hash != hash || g->slots[i]->size != size ||
			       memcmp(g->slots[i]->key, key, size) != 0))
		i = (i + 1) & (g->room - 1);
	return &g->slots[i];
}

static int grow(struct groups *g)
{
	struct group **old = g->slots;
	size_t room = g->room;

	g->slots = sqlite3_malloc64(2 * room * sizeof(*g->slots));
	if (!g->slots) {
		g->slots = old;
		return -ENOMEM;
	}
	g->room = 2 * room;
	memset(g->slots, 0, g->room * sizeof(*g->slots));
	for (size_t i = 0; i < room; i++)
		if (old[i])
			*find_slot(g, old[i]->hash, old[i]->key, old[i]->size) = old[i];
	sqlite3_free(old);
	return 0;
}

/* NULL without memory */
static struct group *get_group(struct groups *g)
{
	uint64_t hash;
	struct group **slot, *group;

	if (g->last && g->last->size == g->key_size &&
	    memcmp(g->last->key, g->key, g->key_size) == 0)
		return g->last;
	hash = hash_of(g->key, g->key_size);
	slot = find_slot(g, hash, g->key, g->key_size);
	if (*slot)
		return *slot;
	if (2 * (g->n + 1) > g->room) {
		if (grow(g) < 0)
			return NULL;
		slot = find_slot(g, hash, g->key, g->key_size);
	}
	group = sqlite3_malloc64(sizeof(*group) + g->key_size);
	if (!group)
		return NULL;
	*group = (struct group){.hash = hash, .size = (uint32_t)g->key_size};
	memcpy(group->key, g->key, g->key_size);
	g->n++;
	*slot = group;
	return group;
}

static int add_chunk(const struct groups *g, struct group *group)
{
	const uint32_t room = group->last ? MIN(8 * group->last->room, CHUNK_MAX) : CHUNK_FIRST;
	struct chunk *chunk = sqlite3_malloc64(sizeof(*chunk) + room * g->width * sizeof(int64_t));

	if (!chunk)
		return -ENOMEM;
	*chunk = (struct chunk){.room = room};
	if (group->last)
		group->last->next = chunk;
	else
		group->first = chunk;
	group->last = chunk;
	return 0;
}

static int add_cells(const struct groups *g, struct group *group,
		     const struct query_table_type *type, struct query_scan *scan)
{
	int64_t *cells;

	if ((!group->last || group->last->n == group->last->room) && add_chunk(g, group) < 0)
		return -ENOMEM;
	cells = group->last->cells + group->last->n * g->width;
	if (g->nulls)
		cells[g->n_wide] = 0;
	for (size_t i = 0; i < g->n_wide; i++) {
		struct value value = {};
		int r = type->column(scan, g->wide[i], &value);

		if (r < 0)
			return r;
		cells[i] = value.number;
		if (g->nulls)
			cells[g->n_wide] |= (int64_t)(value.kind == VALUE_NULL) << i;
	}
	group->last->n++;
	return 0;
}

int groups_add(struct groups *groups, const struct query_table_type *type, struct query_scan *scan)
{
	struct groups *g = groups;
	int r = 0;

	g->key_size = 0;
	for (size_t i = 0; i < g->n_columns && r >= 0; i++) {
		struct value value = {};

		r = type->column(scan, g->columns[i], &value);
		if (r >= 0)
			r = key_add(g, &value);
	}
	g->last = r < 0 ? NULL : get_group(g);
	if (g->last && g->width > 0)
		r = add_cells(g, g->last, type, scan);
	if (!g->last || r < 0)
		return -ENOMEM;
	g->last->n++;
	return 0;
}

void groups_sort(struct groups *groups)
{
	qsort_r(groups->slots, groups->room, sizeof(*groups->slots), compare_groups, groups);
	groups->at = groups->row = 0;
	groups->begun = false;
}

/* Is there a row in this group? */
static bool find_row(struct groups *g, struct group *group)
{
	if (g->width == 0)
		return g->row < group->n;
	while (group->first && g->row >= group->first->n) {
		struct chunk *passed = group->first;

		group->first = passed->next;
		sqlite3_free(passed);
		g->row = 0;
	}
	return group->first;
}

bool groups_next(struct groups *groups)
{
	struct groups *g = groups;

	if (g->begun)
		g->row++;
	g->begun = true;
	while (g->at < g->n && !find_row(g, g->slots[g->at])) {
		g->at++;
		g->row = 0;
	}
	return g->at < g->n;
}

struct value groups_column(const struct groups *groups, unsigned column)
{
	const struct group *group = groups->slots[groups->at];
	const uint8_t *p = group->key;
	struct value value = {};

	for (size_t i = 0; i < groups->n_columns; i++) {
		p = key_take(p, &value);
		if (groups->columns[i] == column)
			return value;
	}
	for (size_t i = 0; i < groups->n_wide; i++) {
		const int64_t *cells = group->first->cells + groups->row * groups->width;

		if (groups->wide[i] == column && !(groups->nulls && cells[groups->n_wide] >> i & 1))
			return value_number(cells[i]);
	}
	return (struct value){};
}
