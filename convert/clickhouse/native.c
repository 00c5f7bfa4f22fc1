/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "convert/clickhouse/native.h"

#define WORDS_VERSION 1U     /* of the form of dictionaries */
#define WORDS_FLAGS   0x600U /* HasAdditionalKeys, NeedUpdateDictionary */
#define SLOTS_LEAST   16U

void native_varint(struct text *out, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		text_char(out, (char)(value | 0x80));
	text_char(out, (char)value);
}

void native_string(struct text *out, const void *bytes, size_t size)
{
	native_varint(out, size);
	text_bytes(out, bytes, size);
}

void native_begin(struct native_block *block, struct text *out, size_t rows)
{
	*block = (struct native_block){.out = out, .at = out->size, .rows = rows};
	text_char(out, 0);
	native_varint(out, rows);
}

void native_column(struct native_block *block, const char *name, const char *type)
{
	if (!block->out->no_memory)
		block->out->bytes[block->at] = (char)++block->columns;
	native_string(block->out, name, strlen(name));
	native_string(block->out, type, strlen(type));
}

/* --- words */

void native_words_done(struct native_words *words)
{
	text_done(&words->keys);
	free(words->indexes);
	free(words->slots);
}

void native_words_begin(struct native_words *words, size_t rows)
{
	size_t slots = SLOTS_LEAST;

	while (slots < 2 * rows)
		slots *= 2;
	if (rows > words->room || !words->slots) {
		free(words->indexes);
		free(words->slots);
		words->room = slots / 2;
		words->indexes = malloc(words->room * sizeof(*words->indexes));
		words->slots = malloc(slots * sizeof(*words->slots));
	}
	words->no_memory = !words->indexes || !words->slots;
	if (words->no_memory) {
		words->room = 0;
		return;
	}
	memset(words->slots, 0, slots * sizeof(*words->slots));
	words->mask = slots - 1;
	words->keys.size = 0;
	words->n_keys = 0;
	words->n = 0;
}

static size_t hash(const uint8_t *bytes, size_t size)
{
	uint64_t h = size, word;

	for (; size >= sizeof(word); bytes += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, bytes, size);
	h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(h ^ h >> 32);
}

void native_words_add(struct native_words *words, const void *bytes, size_t size)
{
	struct slot *slot;

	if (words->no_memory)
		return;
	for (size_t i = hash(bytes, size);; i++) {
		slot = &words->slots[i & words->mask];
		if (slot->key == 0)
			break;
		if (slot->size == size && memcmp(words->keys.bytes + slot->at, bytes, size) == 0) {
			words->indexes[words->n++] = slot->key - 1;
			return;
		}
	}
	native_string(&words->keys, bytes, size);
	words->no_memory = words->keys.no_memory;
	*slot = (struct slot){
		.key = ++words->n_keys, .size = (uint32_t)size, .at = words->keys.size - size};
	words->indexes[words->n++] = slot->key - 1;
}

void native_words_again(struct native_words *words)
{
	if (words->no_memory)
		return;
	if (words->n == 0) {
		native_words_add(words, "", 0);
		return;
	}
	words->indexes[words->n] = words->indexes[words->n - 1];
	words->n++;
}

static void put_head(struct text *out, unsigned width, uint32_t n_keys)
{
	native_number(out, WORDS_VERSION, 8);
	native_number(out, width | WORDS_FLAGS, 8);
	native_number(out, n_keys, 8);
}

void native_words_put(struct native_words *words, struct native_block *block, const char *name)
{
	const unsigned width = words->n_keys <= 1U << 8 ? 0 : words->n_keys <= 1U << 16 ? 1 : 2;
	struct text *out = block->out;
	char *to;

	if (words->no_memory) {
		out->no_memory = true;
		return;
	}
	if (words->n_keys == 1 && words->keys.size == 1)
		return;
	native_column(block, name, NATIVE_WORD);
	put_head(out, width, words->n_keys);
	text_bytes(out, words->keys.bytes, words->keys.size);
	native_number(out, words->n, 8);
	to = text_reserve(out, words->n << width);
	if (!to)
		return;
	for (size_t i = 0; i < words->n; i++) {
		const uint32_t index = htole32(words->indexes[i]);

		memcpy(to + (i << width), &index, (size_t)1 << width);
	}
	out->size += words->n << width;
}

void native_word(struct native_block *block, const char *name, const char *word)
{
	if (!*word)
		return;
	native_column(block, name, NATIVE_WORD);
	put_head(block->out, 0, 1);
	native_string(block->out, word, strlen(word));
	native_number(block->out, block->rows, 8);
	text_fill(block->out, 0, block->rows);
}
