/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>

#include "basic/escape.h"
#include "decode/text.h"

#define MAX_DIGITS 24 /* 64 bits in octal, with room */

static const char digit_pairs[] = "00010203040506070809"
				  "10111213141516171819"
				  "20212223242526272829"
				  "30313233343536373839"
				  "40414243444546474849"
				  "50515253545556575859"
				  "60616263646566676869"
				  "70717273747576777879"
				  "80818283848586878889"
				  "90919293949596979899";

void text_done(struct text *text)
{
	free(text->bytes);
	*text = (struct text){};
}

char *text_grow(struct text *text, size_t more)
{
	size_t room = MAX(text->room, (size_t)256);
	char *p;

	if (text->no_memory)
		return NULL;
	while (room - text->size < more)
		room *= 2;
	p = realloc(text->bytes, room);
	if (!p) {
		text->no_memory = true;
		return NULL;
	}
	text->bytes = p;
	text->room = room;
	return p + text->size;
}

void text_data_lines(struct text *text, const char *bytes, size_t size)
{
	const char *end = bytes + size, *line;

	for (; (line = memchr(bytes, '\n', (size_t)(end - bytes))); bytes = line + 1) {
		text_bytes(text, bytes, (size_t)(line - bytes));
		text_bytes(text, "\\n", 2);
		text->newline = text->size;
	}
	text_bytes(text, bytes, (size_t)(end - bytes));
}

static void escape_from(struct text *text, size_t begin)
{
	size_t size = text->size - begin;
	char *copy;

	if (text->no_memory || escape_plain(text->bytes + begin, size, true) == size)
		return;
	copy = malloc(size);
	if (!copy || !text_reserve(text, ESCAPE_ROOM * size)) {
		text->no_memory = true;
	} else {
		memcpy(copy, text->bytes + begin, size);
		text->size = begin + escape_bytes(text->bytes + begin, copy, size, true);
	}
	free(copy);
}

void text_end(struct text *text, size_t begin)
{
	/* trace-cmd prints it as a string without its last newline */
	if (text->size > begin && text->bytes[text->size - 1] == '\n')
		text->size--;
	else if (text->size > begin && text->newline == text->size)
		text->size -= 2;
	text->newline = 0;
	if (text->size > begin) {
		char *nul = memchr(text->bytes + begin, '\0', text->size - begin);

		if (nul)
			text->size = (size_t)(nul - text->bytes);
	}
	if (text->escape == TEXT_ALL)
		escape_from(text, begin);
}

void text_fill(struct text *text, char c, size_t n)
{
	char *p = text_reserve(text, n);

	if (p && n) {
		memset(p, c, n);
		text->size += n;
	}
}

void text_printf(struct text *text, const char *format, ...)
{
	va_list args, again;
	size_t left;
	int n;

	if (!text_reserve(text, 64))
		return;
	left = text->room - text->size;
	va_start(args, format);
	va_copy(again, args);
	n = vsnprintf(text->bytes + text->size, left, format, args);
	if (n >= 0 && (size_t)n >= left && text_reserve(text, (size_t)n + 1))
		n = vsnprintf(text->bytes + text->size, (size_t)n + 1, format, again);
	if (n > 0 && !text->no_memory)
		text->size += (size_t)n;
	va_end(again);
	va_end(args);
}

/* Digits end before @end; returns where they begin */
static char *put_decimal(char *end, uint64_t value)
{
	while (value >= 100) {
		end -= 2;
		memcpy(end, digit_pairs + 2 * (value % 100), 2);
		value /= 100;
	}
	if (value >= 10) {
		end -= 2;
		memcpy(end, digit_pairs + 2 * value, 2);
		return end;
	}
	*--end = (char)('0' + value);
	return end;
}

static char *put_power(char *end, uint64_t value, unsigned bits, const char *digits)
{
	do {
		*--end = digits[value & ((1U << bits) - 1)];
		value >>= bits;
	} while (value);
	return end;
}

static char *put_hex(char *end, uint64_t value)
{
	return put_power(end, value, 4, "0123456789abcdef");
}

void text_u64(struct text *text, uint64_t value)
{
	char digits[MAX_DIGITS], *end = digits + sizeof(digits), *p = put_decimal(end, value);

	text_bytes(text, p, (size_t)(end - p));
}

void text_i64(struct text *text, int64_t value)
{
	if (value < 0)
		text_char(text, '-');
	text_u64(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void text_hex(struct text *text, uint64_t value)
{
	char digits[MAX_DIGITS], *end = digits + sizeof(digits), *p = put_hex(end, value);

	text_bytes(text, p, (size_t)(end - p));
}

void text_u64_wide(struct text *text, uint64_t value, unsigned width, char fill)
{
	char digits[MAX_DIGITS], *end = digits + sizeof(digits), *p = put_decimal(end, value);
	size_t n = (size_t)(end - p);

	if (n < width)
		text_fill(text, fill, width - n);
	text_bytes(text, p, n);
}

void text_number(struct text *text, const struct text_spec *spec, uint64_t value)
{
	char digits[MAX_DIGITS], *end = digits + sizeof(digits), *p;
	const char *sign = "";
	size_t n, signs, zeros, fill;

	switch (spec->conversion) {
	case 'd':
	case 'i':
		sign = (int64_t)value < 0 ? "-" : "";
		p = put_decimal(end, (int64_t)value < 0 ? 0 - value : value);
		break;
	case 'x':
		sign = spec->alternate && value ? "0x" : "";
		p = put_hex(end, value);
		break;
	case 'X':
		sign = spec->alternate && value ? "0X" : "";
		p = put_power(end, value, 4, "0123456789ABCDEF");
		break;
	case 'o':
		sign = spec->alternate && value ? "0" : "";
		p = put_power(end, value, 3, "01234567");
		break;
	default:
		p = put_decimal(end, value);
	}
	n = (size_t)(end - p);
	signs = strlen(sign);
	zeros = n < spec->digits ? spec->digits - n : 0;
	fill = n + signs + zeros < spec->width ? spec->width - n - signs - zeros : 0;
	if (fill && !spec->left && !spec->zero)
		text_fill(text, ' ', fill);
	text_bytes(text, sign, signs);
	if (!spec->left && spec->zero)
		zeros += fill;
	if (zeros)
		text_fill(text, '0', zeros);
	text_bytes(text, p, n);
	if (fill && spec->left)
		text_fill(text, ' ', fill);
}

void text_cpus(struct text *text, const uint8_t *mask, uint32_t size, bool big_endian)
{
	bool first = true;

	for (uint32_t i = 0, from; i < 8 * size; i++) {
		for (from = i; i < 8 * size; i++)
			if (!(mask[big_endian ? size - 1 - i / 8 : i / 8] & (1U << i % 8)))
				break;
		if (i == from)
			continue;
		if (!first)
			text_char(text, ',');
		first = false;
		text_u64(text, from);
		if (i - 1 > from) {
			text_char(text, '-');
			text_u64(text, i - 1);
		}
	}
}

/* --- JSON */

static void put_escape(struct text *out, uint8_t c)
{
	if (c == '"' || c == '\\' || c == '\n' || c == '\t') {
		text_char(out, '\\');
		text_char(out, c == '\n' ? 'n' : c == '\t' ? 't' : (char)c);
		return;
	}
	/* a byte that is no UTF-8: U+DC80 to U+DCFF, as Python's surrogateescape */
	text_printf(out, c < 0x80 ? "\\u%04x" : "\\udc%02x", c);
}

void text_json_inner(struct text *out, const void *string, size_t size)
{
	const uint8_t *p = string, *end = p + size, *run = p;
	const uint8_t *nul = size ? memchr(p, '\0', size) : NULL;

	if (nul)
		end = nul;
	while (p < end) {
		size_t n = *p >= 0x80 ? utf8_length((const char *)p, (size_t)(end - p)) : 1;

		if (n && *p >= 0x20 && *p != '"' && *p != '\\' && *p != 0x7f &&
		    (n != 2 || *p != 0xc2 || p[1] >= 0xa0)) {
			p += n;
			continue;
		}
		text_bytes(out, run, (size_t)(p - run));
		if (n == 2)
			text_printf(out, "\\u%04x", p[1]); /* U+0080 to U+009F */
		else
			put_escape(out, *p);
		p += MAX(n, (size_t)1);
		run = p;
	}
	text_bytes(out, run, (size_t)(end - run));
}

void text_json(struct text *out, const void *string, size_t size)
{
	text_char(out, '"');
	text_json_inner(out, string, size);
	text_char(out, '"');
}
