/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "decode/field-value.h"

/* Is @word in a declaration like "const unsigned char" as a word of its own */
static bool has_word(const char *type, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = type; (p = strstr(p, word)); p += n) {
		bool begins = p == type || p[-1] == ' ' || p[-1] == '_' || p[-1] == '*';

		if (begins && (p[n] == '\0' || strchr(" [*", p[n])))
			return true;
	}
	return false;
}

static bool is_text(const struct field *field)
{
	return has_word(field->type, "char") && !has_word(field->type, "unsigned");
}

static bool is_word_size(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

void field_value_init(struct field_value *value, const char *event, uint32_t long_size,
		      const struct field *field)
{
	struct field *at = &value->at;

	*at = *field;
	/* the array at the end of an event of ftrace's own is as long as it happens to be */
	value->rest = at->is_array && !at->is_dynamic && at->is_last &&
		      (at->size == 0 || strcmp(event, "kernel_stack") == 0);
	if (!at->is_array)
		at->element = at->size;
	if (strstr(at->type, "cpumask"))
		value->kind = VALUE_CPUS;
	else if (at->is_array && is_text(at))
		value->kind = VALUE_STRING;
	else if (at->is_array || !is_word_size(at->size))
		value->kind = VALUE_NUMBERS;
	else
		value->kind = has_word(at->type, "bool") ? VALUE_BOOL : VALUE_NUMBER;
	if (value->rest && at->element == 0)
		at->element = has_word(at->type, "long") ? long_size : 4;
	if (!is_word_size(at->element))
		at->element = 1; /* structures, as bytes */
	value->address = at->element == long_size &&
			 (at->is_pointer || has_word(at->type, "long")) &&
			 !has_word(at->type, "long long") && !at->is_signed;
}

const uint8_t *field_value_bytes(const struct field_value *value, const struct decode_event *event,
				 uint32_t *ret_size)
{
	const uint8_t *p = field_bytes(&value->at, event, ret_size);

	if (value->rest)
		*ret_size = (uint32_t)(event->data + event->size - p);
	return p;
}

bool field_value_next(const struct field_value *value, const struct decode_event *event,
		      uint32_t *at, uint64_t *ret)
{
	uint32_t size;
	const uint8_t *p = field_value_bytes(value, event, &size);

	if (*at + value->at.element > size)
		return false;
	*ret = decode_number(event, (uint64_t)(p - event->data) + *at, value->at.element);
	*at += value->at.element;
	return true;
}

const char *field_value_symbol(struct symbols_cache *symbols, uint64_t address, uint32_t size,
			       uint64_t *ret_offset)
{
	const char *name = symbols_string(symbols->symbols, address);
	uint64_t start;

	if (name) {
		*ret_offset = UINT64_MAX;
		return name;
	}
	/* the kernel is in the upper half */
	if (!(address >> (8 * size - 1)))
		return NULL;
	name = symbols_find(symbols, address, &start);
	if (name)
		*ret_offset = address - start;
	return name;
}
