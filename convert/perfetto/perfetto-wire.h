/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Protobuf's wire format, as far as writing it takes: whole numbers, bytes, and messages in
 * messages (https://protobuf.dev/programming-guides/encoding). A field is its number and kind, then
 * a number of 7 bits a byte, the lowest first, or a length and so many bytes.
 *
 * By hand, and not by protobuf-c or nanopb, for three reasons. The messages of most events are not
 * known when this is compiled: they are made of the formats in each file, and their descriptors go
 * into the trace; generated code has nothing to say there. Both build a message as a structure,
 * with an allocation for each string and repeated field or a callback for it, and walk it once more
 * to find its size: several times what writing it takes, for millions of them. And all that is
 * needed is this file, beside a generator, its .proto files and a library to be kept in step with.
 * What is written here is read back with protoc (test-perfetto.sh).
 *
 * Without memory a text stays as it is and says so, see decode/text.h. Any thread.
 */
#pragma once

#include "decode/text.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

#define WIRE_VARINT_MAX 10U /* bytes of a number, at most */

/**
 * wire_varint() - put a number at @p; Return: behind it
 */
static inline char *wire_varint(char *p, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*p++ = (char)(value | 0x80);
	*p++ = (char)value;
	return p;
}

/**
 * wire_raw() - a number without a field's head, as packed fields have them
 */
static inline void wire_raw(struct text *out, uint64_t value)
{
	char *p = text_reserve(out, WIRE_VARINT_MAX);

	if (p)
		out->size = (size_t)(wire_varint(p, value) - out->bytes);
}

/**
 * wire_number() - a field of type uint32, uint64 or bool, of int32 or int64 with the sign extended
 */
static inline void wire_number(struct text *out, uint32_t field, uint64_t value)
{
	char *p = text_reserve(out, 2 * WIRE_VARINT_MAX);

	if (!p)
		return;
	p = wire_varint(p, (uint64_t)field << 3 | WIRE_VARINT);
	out->size = (size_t)(wire_varint(p, value) - out->bytes);
}

/**
 * wire_bytes() - a field of type bytes, or a message or packed numbers that are complete
 */
static inline void wire_bytes(struct text *out, uint32_t field, const void *bytes, size_t size)
{
	char *p = text_reserve(out, 2 * WIRE_VARINT_MAX + size);

	if (!p)
		return;
	p = wire_varint(p, (uint64_t)field << 3 | WIRE_BYTES);
	p = wire_varint(p, size);
	if (size)
		memcpy(p, bytes, size);
	out->size = (size_t)(p - out->bytes) + size;
}

/**
 * wire_text() - a field of type string: up to its NUL byte or @size bytes
 * That has to be UTF-8: bytes that are not become "\xNN".
 */
void wire_text(struct text *out, uint32_t field, const void *text, size_t size);

static inline void wire_string(struct text *out, uint32_t field, const char *string)
{
	wire_text(out, field, string, strlen(string));
}

/**
 * wire_begin() - a message
 * Return: for wire_end().
 */
static inline size_t wire_begin(struct text *out, uint32_t field)
{
	char *p = text_reserve(out, WIRE_VARINT_MAX + 1);

	if (!p)
		return 0;
	p = wire_varint(p, (uint64_t)field << 3 | WIRE_BYTES);
	*p++ = 0; /* its size: most are short */
	out->size = (size_t)(p - out->bytes);
	return out->size;
}

void wire_end_long(struct text *out, size_t begin);

/**
 * wire_end() - of a message, with all that was appended since
 */
static inline void wire_end(struct text *out, size_t begin)
{
	if (out->no_memory)
		return;
	if (out->size - begin < 0x80)
		out->bytes[begin - 1] = (char)(out->size - begin);
	else
		wire_end_long(out, begin);
}
