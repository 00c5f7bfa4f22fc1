/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "convert/perfetto/perfetto-wire.h"
#include "basic/escape.h"

static bool is_ascii(const char *text, size_t size)
{
	uint64_t bits = 0, word;

	for (; size >= sizeof(word); text += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		bits |= word;
	}
	for (; size > 0; text++, size--)
		bits |= (uint8_t)*text;
	return !(bits & UINT64_C(0x8080808080808080));
}

void wire_text(struct text *out, uint32_t field, const void *text, size_t size)
{
	const char *p = text, *end;
	size_t begin;

	size = strnlen(p, size);
	if (is_ascii(p, size)) {
		wire_bytes(out, field, p, size);
		return;
	}
	begin = wire_begin(out, field);
	for (end = p + size; p < end;) {
		size_t n = utf8_length(p, (size_t)(end - p));

		if (n > 0)
			text_bytes(out, p, n);
		else
			text_printf(out, "\\x%02x", (uint8_t)*p);
		p += MAX(n, (size_t)1);
	}
	wire_end(out, begin);
}

void wire_end_long(struct text *out, size_t begin)
{
	size_t size = out->size - begin;
	char length[WIRE_VARINT_MAX];
	size_t n = (size_t)(wire_varint(length, size) - length);

	if (!text_reserve(out, n - 1))
		return;
	memmove(out->bytes + begin + n - 1, out->bytes + begin, size);
	memcpy(out->bytes + begin - 1, length, n);
	out->size += n - 1;
}
