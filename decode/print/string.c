/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "decode/print/string-internal.h"

/* One string through the conversion; it ends at @size or a NUL byte before */
static void put(const struct string_spec *spec, int star, const void *string, size_t size,
		struct text *out)
{
	int width = spec->width, precision = spec->precision;
	bool left = spec->left;
	const char *end = memchr(string, '\0', size);
	size_t n = end ? (size_t)(end - (const char *)string) : size, fill;

	if (spec->plain) {
		text_data(out, string, n);
		return;
	}
	if (spec->star && spec->star_width)
		width = star;
	else if (spec->star)
		precision = star;
	if (precision >= 0)
		n = MIN(n, (size_t)precision);
	fill = width > 0 && (size_t)width > n ? (size_t)width - n : 0;
	if (!left)
		text_fill(out, ' ', fill);
	text_data(out, string, n);
	if (left)
		text_fill(out, ' ', fill);
}

static void put_text(const struct string_spec *spec, int star, const char *text, struct text *out)
{
	put(spec, star, text, strlen(text), out);
}

static void print_flags(const struct string_arg *arg, uint64_t value,
			const struct string_spec *spec, int star, struct text *out)
{
	bool any = false;

	for (size_t i = 0; i < arg->n_flags; i++) {
		int64_t flag = arg->flags[i].value;

		if (!value && flag < 0) {
			put_text(spec, star, arg->flags[i].text, out);
			break;
		}
		if (flag <= 0 || (value & (uint64_t)flag) != (uint64_t)flag)
			continue;
		if (any && arg->text)
			text_string(out, arg->text);
		put_text(spec, star, arg->flags[i].text, out);
		any = true;
		value &= ~(uint64_t)flag;
	}
	if (value) {
		if (any && arg->text)
			text_string(out, arg->text);
		text_string(out, "0x");
		text_hex(out, value);
	}
}

static void print_symbol(const struct string_arg *arg, uint64_t value,
			 const struct string_spec *spec, int star, struct text *out)
{
	for (size_t i = 0; i < arg->n_flags; i++) {
		if (arg->flags[i].value == (int64_t)value) {
			put_text(spec, star, arg->flags[i].text, out);
			return;
		}
	}
	text_string(out, "0x");
	text_hex(out, value);
}

/* Where an array is and how much of the record is there at most */
static const uint8_t *array(const struct string_arg *arg, const struct decode_record *record,
			    uint32_t *ret_left)
{
	uint32_t offset = MIN(arg->place.offset, record->size), size;
	const uint8_t *p = record->data + offset;

	if (arg->dynamic)
		p = decode_dynamic(record, &arg->place, &size);
	*ret_left = (uint32_t)(record->data + record->size - p);
	return p;
}

static void print_hex(const struct string_arg *arg, const struct decode_record *record,
		      struct text *out)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t size = (uint32_t)expr_eval(arg->size, record), left;
	const uint8_t *p = array(arg, record, &left);

	size = MIN(size, left);
	for (uint32_t i = 0; i < size; i++) {
		if (i && arg->kind == STRING_HEX)
			text_char(out, ' ');
		text_char(out, digits[p[i] >> 4]);
		text_char(out, digits[p[i] & 15]);
	}
}

/* Elements are taken in this machine's byte order, as libtraceevent does */
static uint64_t element(const uint8_t *p, unsigned size)
{
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;

	switch (size) {
	case 2:
		memcpy(&u16, p, 2);
		return u16;
	case 4:
		memcpy(&u32, p, 4);
		return u32;
	case 8:
		memcpy(&u64, p, 8);
		return u64;
	default:
		return *p;
	}
}

static void print_int_array(const struct string_arg *arg, const struct decode_record *record,
			    struct text *out)
{
	uint32_t count = (uint32_t)expr_eval(arg->size, record), left;
	int size = (int)expr_eval(arg->element, record), step = size;
	const uint8_t *p = array(arg, record, &left);

	if (size != 1 && size != 2 && size != 4 && size != 8)
		step = 1;
	text_char(out, '{');
	for (uint32_t i = 0; i < count && left >= (uint32_t)step; i++) {
		if (i)
			text_char(out, ',');
		if (step != size) {
			text_printf(out, "BAD SIZE:%d ", size);
			size = 1;
		}
		text_string(out, "0x");
		text_hex(out, element(p, (unsigned)step));
		p += step;
		left -= (uint32_t)step;
	}
	text_char(out, '}');
}

static bool mask_bit(const struct decode_record *record, const uint8_t *mask, uint32_t size,
		     uint32_t bit)
{
	uint32_t byte = record->big_endian ? size - 1 - bit / 8 : bit / 8;

	return mask[byte] & (1U << bit % 8);
}

/* "00000000,0000000f" */
static void put_bitmask(const struct decode_record *record, const uint8_t *mask, uint32_t size,
			struct text *out)
{
	static const char digits[] = "0123456789abcdef";

	for (uint32_t i = size; i-- > 0;) {
		uint8_t byte = mask[record->big_endian ? size - 1 - i : i];

		text_char(out, digits[byte >> 4]);
		text_char(out, digits[byte & 15]);
		if (i && i % 4 == 0)
			text_char(out, ',');
	}
}

/* "0-3,8" */
static void put_cpumask(const struct decode_record *record, const uint8_t *mask, uint32_t size,
			struct text *out)
{
	bool first = true;

	for (uint32_t i = 0; i < 8 * size; i++) {
		uint32_t from = i;

		if (!mask_bit(record, mask, size, i))
			continue;
		while (i + 1 < 8 * size && mask_bit(record, mask, size, i + 1))
			i++;
		if (!first)
			text_char(out, ',');
		first = false;
		text_u64(out, from);
		if (i > from) {
			text_char(out, '-');
			text_u64(out, i);
		}
	}
}

static void print_mask(const struct string_arg *arg, const struct decode_record *record,
		       struct decode_tools *tools, const struct string_spec *spec, int star,
		       struct text *out)
{
	uint32_t size;
	const uint8_t *mask = decode_dynamic(record, &arg->place, &size);
	struct text *list = &tools->scratch;

	list->size = 0;
	if (arg->kind == STRING_BITMASK)
		put_bitmask(record, mask, size, list);
	else
		put_cpumask(record, mask, size, list);
	if (list->no_memory)
		out->no_memory = true;
	put(spec, star, list->size ? list->bytes : "", list->size, out);
}

static void print_pointer(const struct string_arg *arg, const struct decode_record *record,
			  struct decode_tools *tools, struct text *out)
{
	uint64_t address = 0;
	const char *string;

	/* in this machine's byte order, as libtraceevent takes it */
	if (arg->place.offset <= record->size &&
	    arg->place.size <= MIN(record->size - arg->place.offset, (uint32_t)sizeof(address)))
		address = element(record->data + arg->place.offset, arg->place.size);
	string = printk_formats_find(tools->printk, address);
	if (string)
		text_string(out, string);
	else
		text_hex(out, address);
}

static void print_bytes(const struct string_arg *arg, const struct decode_record *record,
			const struct string_spec *spec, int star, struct text *out)
{
	uint32_t offset = MIN(arg->place.offset, record->size), size;
	const uint8_t *p = record->data + offset;

	if (arg->kind == STRING_DYNAMIC) {
		p = decode_dynamic(record, &arg->place, &size);
		if (size == 0)
			return;
		/* it ends with its NUL byte, whatever its size is said to be */
		size = (uint32_t)(record->data + record->size - p);
	} else {
		size = record->size - offset;
		if (arg->place.size) /* else: all the rest */
			size = MIN(size, arg->place.size);
	}
	put(spec, star, p, size, out);
}

void string_arg_print(const struct string_arg *arg, const struct decode_record *record,
		      struct decode_tools *tools, const struct string_spec *spec, int star,
		      struct text *out)
{
	switch (arg->kind) {
	case STRING_NOTHING:
		break;
	case STRING_CONSTANT:
		put_text(spec, star, arg->text, out);
		break;
	case STRING_FIELD:
	case STRING_DYNAMIC:
		print_bytes(arg, record, spec, star, out);
		break;
	case STRING_POINTER:
		print_pointer(arg, record, tools, out);
		break;
	case STRING_FLAGS:
		print_flags(arg, expr_eval(arg->value, record), spec, star, out);
		break;
	case STRING_SYMBOL:
		print_symbol(arg, expr_eval(arg->value, record), spec, star, out);
		break;
	case STRING_HEX:
	case STRING_HEX_TIGHT:
		print_hex(arg, record, out);
		break;
	case STRING_INT_ARRAY:
		print_int_array(arg, record, out);
		break;
	case STRING_BITMASK:
	case STRING_CPUMASK:
		print_mask(arg, record, tools, spec, star, out);
		break;
	case STRING_CONDITION:
		string_arg_print(expr_eval(arg->value, record) ? arg->yes : arg->no, record, tools,
				 spec, star, out);
		break;
	}
}
