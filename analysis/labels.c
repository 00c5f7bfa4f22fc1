/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "analysis/labels.h"

struct entry {
	struct span_label label;
	uint64_t hash;
	size_t size;
	uint8_t key[];
};

struct labels {
	struct entry **slots; /* open-addressed, twice as many as there may be */
	uint32_t n, max;
};

int labels_new(uint32_t max, struct labels **ret)
{
	_cleanup_(labels_freep) struct labels *labels = calloc(1, sizeof(*labels));

	if (!labels)
		return -ENOMEM;
	labels->max = max;
	labels->slots = calloc(2 * (size_t)max, sizeof(struct entry *));
	if (!labels->slots)
		return -ENOMEM;
	*ret = TAKE_PTR(labels);
	return 0;
}

struct labels *labels_free(struct labels *labels)
{
	if (!labels)
		return NULL;
	for (size_t i = 0; labels->slots && i < 2 * (size_t)labels->max; i++) {
		if (!labels->slots[i])
			continue;
		free(labels->slots[i]->label.text);
		free(labels->slots[i]);
	}
	free(labels->slots);
	free(labels);
	return NULL;
}

/* FNV-1a, of words where there are whole ones */
static uint64_t hash_of(enum span_kind kind, const void *key, size_t size)
{
	const uint8_t *p = key;
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ kind, word;

	for (; size >= sizeof(word); size -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x100000001b3);
		hash ^= hash >> 32;
	}
	for (; size > 0; size--, p++)
		hash = (hash ^ *p) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 29;
}

static struct entry **slot_of(const struct labels *labels, enum span_kind kind, const void *key,
			      size_t size, uint64_t hash)
{
	const size_t room = 2 * (size_t)labels->max;
	size_t i = hash % room;
	struct entry *e;

	while ((e = labels->slots[i]) && (e->hash != hash || e->label.kind != kind ||
					  e->size != size || memcmp(e->key, key, size) != 0))
		i = (i + 1) % room;
	return &labels->slots[i];
}

const struct span_label *labels_find(const struct labels *labels, enum span_kind kind,
				     const void *key, size_t size)
{
	const struct entry *e = *slot_of(labels, kind, key, size, hash_of(kind, key, size));

	return e ? &e->label : NULL;
}

int labels_add(struct labels *labels, enum span_kind kind, const void *key, size_t size,
	       uint64_t number, const char *text, const struct span_label **ret)
{
	const uint64_t hash = hash_of(kind, key, size);
	struct entry *e;

	if (labels->n == labels->max)
		return LABELS_E_FULL;
	e = malloc(sizeof(*e) + size);
	if (!e)
		return -ENOMEM;
	*e = (struct entry){
		.label = {.kind = kind, .index = labels->n, .number = number},
		.hash = hash,
		.size = size,
	};
	memcpy(e->key, key, size);
	e->label.text = *text ? strdup(text) : NULL;
	if (*text && !e->label.text) {
		free(e);
		return -ENOMEM;
	}
	*slot_of(labels, kind, key, size, hash) = e;
	labels->n++;
	*ret = &e->label;
	return 0;
}
