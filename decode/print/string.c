/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <endian.h>
#include <string.h>

#include "decode/print/print-internal.h"

enum string_kind {
	STRING_NOTHING,
	STRING_CONSTANT,
	STRING_FIELD,	/* bytes of the record */
	STRING_POINTER, /* address of a string that printk_formats may know */
	STRING_DYNAMIC,
	STRING_FLAGS,
	STRING_SYMBOL,
	STRING_HEX, /* "0a ff" */
	STRING_HEX_TIGHT,
	STRING_INT_ARRAY,
	STRING_BITMASK,
	STRING_CPUMASK,
	STRING_CONDITION,
};

struct flag {
	int64_t value;
	const char *text; /* of the struct tep_event */
};

struct string_arg {
	enum string_kind kind;
	struct field place;
	struct expr *value, *size, *element;
	struct flag *flags;
	size_t n_flags;
	const char *text; /* constant, or what goes between flags */
	struct string_arg *yes, *no;
};

/* --- compiling */

/* Names in format files that the kernel left as they are; libtraceevent knows these values */
static int64_t flag_value(const char *text)
{
	static const struct {
		const char *name;
		int64_t value;
	} names[] = {
		{"HI_SOFTIRQ", 0},	{"TIMER_SOFTIRQ", 1},	  {"NET_TX_SOFTIRQ", 2},
		{"NET_RX_SOFTIRQ", 3},	{"BLOCK_SOFTIRQ", 4},	  {"IRQ_POLL_SOFTIRQ", 5},
		{"TASKLET_SOFTIRQ", 6}, {"SCHED_SOFTIRQ", 7},	  {"HRTIMER_SOFTIRQ", 8},
		{"RCU_SOFTIRQ", 9},	{"HRTIMER_NORESTART", 0}, {"HRTIMER_RESTART", 1},
	};

	if (isdigit((unsigned char)text[0]))
		return (int64_t)strtoull(text, NULL, 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i].name, text) == 0)
			return names[i].value;
	return -1;
}

static bool compile_flags(struct string_arg *s, const struct tep_print_flag_sym *list)
{
	for (const struct tep_print_flag_sym *f = list; f; f = f->next) {
		if (!f->value || !f->str)
			continue;
		if (array_grow(&s->flags, s->n_flags, sizeof(*s->flags)) < 0)
			return false;
		s->flags[s->n_flags++] = (struct flag){flag_value(f->value), f->str};
	}
	return true;
}

static bool take_place(struct string_arg *s, const struct compiling *c,
		       const struct tep_format_field *field, const char *name)
{
	field = expr_field(c, field, name);
	return field && field_place(field, &s->place);
}

static bool compile_place(struct string_arg *s, const struct compiling *c,
			  const struct tep_print_arg *arg)
{
	bool dynamic = arg->type == TEP_PRINT_DYNAMIC_ARRAY;

	if (!dynamic && arg->type != TEP_PRINT_FIELD)
		return false;
	if (dynamic ? !arg->dynarray.field || !field_place(arg->dynarray.field, &s->place)
		    : !take_place(s, c, arg->field.field, arg->field.name))
		return false;
	s->place.is_dynamic = dynamic;
	return true;
}

static bool compile_field(struct string_arg *s, const struct compiling *c,
			  const struct tep_print_arg *arg)
{
	if (!take_place(s, c, arg->field.field, arg->field.name))
		return false;
	s->kind = !s->place.is_array && (int)s->place.size == tep_get_long_size(c->event->tep)
			  ? STRING_POINTER
			  : STRING_FIELD;
	s->place.is_dynamic = false;
	return true;
}

static bool compile_arrays(struct string_arg *s, struct compiling *c,
			   const struct tep_print_arg *arg)
{
	if (arg->type == TEP_PRINT_INT_ARRAY) {
		s->kind = STRING_INT_ARRAY;
		s->size = expr_compile(c, arg->int_array.count);
		s->element = expr_compile(c, arg->int_array.el_size);
		return s->size && s->element && compile_place(s, c, arg->int_array.field);
	}
	s->kind = arg->type == TEP_PRINT_HEX ? STRING_HEX : STRING_HEX_TIGHT;
	s->size = expr_compile(c, arg->hex.size);
	return s->size && compile_place(s, c, arg->hex.field);
}

static bool compile_condition(struct string_arg *s, struct compiling *c,
			      const struct tep_print_arg *arg)
{
	const struct tep_print_arg *choice = arg->op.right;

	if (arg->op.op[0] != '?')
		return true; /* prints nothing */
	if (!choice || choice->type != TEP_PRINT_OP || !choice->op.left || !choice->op.right)
		return false;
	s->kind = STRING_CONDITION;
	s->value = expr_compile(c, arg->op.left);
	s->yes = string_arg_compile(c, choice->op.left);
	s->no = string_arg_compile(c, choice->op.right);
	return s->value && s->yes && s->no;
}

static bool compile(struct string_arg *s, struct compiling *c, const struct tep_print_arg *arg)
{
	switch (arg->type) {
	case TEP_PRINT_NULL:
	case TEP_PRINT_TYPE: /* of a string with a cast libtraceevent prints nothing */
		return true;
	case TEP_PRINT_ATOM:
		s->kind = STRING_CONSTANT;
		s->text = arg->atom.atom;
		return s->text;
	case TEP_PRINT_FIELD:
		return compile_field(s, c, arg);
	case TEP_PRINT_FLAGS:
		s->kind = STRING_FLAGS;
		s->text = arg->flags.delim;
		s->value = expr_compile(c, arg->flags.field);
		return s->value && compile_flags(s, arg->flags.flags);
	case TEP_PRINT_SYMBOL:
		s->kind = STRING_SYMBOL;
		s->value = expr_compile(c, arg->symbol.field);
		return s->value && compile_flags(s, arg->symbol.symbols);
	case TEP_PRINT_HEX:
	case TEP_PRINT_HEX_STR:
	case TEP_PRINT_INT_ARRAY:
		return compile_arrays(s, c, arg);
	case TEP_PRINT_STRING:
		s->kind = STRING_DYNAMIC;
		return take_place(s, c, arg->string.field, arg->string.string);
	case TEP_PRINT_BITMASK:
	case TEP_PRINT_CPUMASK:
		s->kind = arg->type == TEP_PRINT_BITMASK ? STRING_BITMASK : STRING_CPUMASK;
		return take_place(s, c, arg->bitmask.field, arg->bitmask.bitmask);
	case TEP_PRINT_OP:
		return compile_condition(s, c, arg);
	default:
		return false;
	}
}

struct string_arg *string_arg_compile(struct compiling *with, const struct tep_print_arg *arg)
{
	struct string_arg *s;

	if (!arg)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	if (!compile(s, with, arg))
		return string_arg_free(s);
	return s;
}

struct string_arg *string_arg_free(struct string_arg *arg)
{
	if (!arg)
		return NULL;
	expr_free(arg->value);
	expr_free(arg->size);
	expr_free(arg->element);
	string_arg_free(arg->yes);
	string_arg_free(arg->no);
	free(arg->flags);
	free(arg);
	return NULL;
}

/* --- printing */

/* One string through the conversion; it ends at @size or a NUL byte before */
static void put(const struct string_spec *spec, const void *string, size_t size, struct text *out)
{
	const char *end = memchr(string, '\0', size);
	size_t n = end ? (size_t)(end - (const char *)string) : size, fill;

	if (spec->precision >= 0)
		n = MIN(n, (size_t)spec->precision);
	fill = spec->width > 0 && (size_t)spec->width > n ? (size_t)spec->width - n : 0;
	if (fill && !spec->left)
		text_fill(out, ' ', fill);
	text_data(out, string, n);
	if (fill && spec->left)
		text_fill(out, ' ', fill);
}

static void put_text(const struct string_spec *spec, const char *text, struct text *out)
{
	put(spec, text, strlen(text), out);
}

static void print_flags(const struct string_arg *arg, uint64_t value,
			const struct string_spec *spec, struct text *out)
{
	bool any = false;

	for (size_t i = 0; i < arg->n_flags; i++) {
		int64_t flag = arg->flags[i].value;

		if (!value && flag < 0) {
			put_text(spec, arg->flags[i].text, out);
			break;
		}
		if (flag <= 0 || (value & (uint64_t)flag) != (uint64_t)flag)
			continue;
		if (any && arg->text)
			text_string(out, arg->text);
		put_text(spec, arg->flags[i].text, out);
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
			 const struct string_spec *spec, struct text *out)
{
	for (size_t i = 0; i < arg->n_flags; i++) {
		if (arg->flags[i].value == (int64_t)value) {
			put_text(spec, arg->flags[i].text, out);
			return;
		}
	}
	text_string(out, "0x");
	text_hex(out, value);
}

/* Where an array is and how much of the record is there at most */
static const uint8_t *array(const struct string_arg *arg, const struct decode_event *event,
			    uint32_t *ret_left)
{
	uint32_t offset = MIN(arg->place.offset, event->size), size;
	const uint8_t *p = event->data + offset;

	if (arg->place.is_dynamic)
		p = decode_dynamic(event, &arg->place, &size);
	*ret_left = (uint32_t)(event->data + event->size - p);
	return p;
}

static void put_byte(uint8_t byte, struct text *out)
{
	static const char digits[] = "0123456789abcdef";

	text_char(out, digits[byte >> 4]);
	text_char(out, digits[byte & 15]);
}

static void print_hex(const struct string_arg *arg, const struct decode_event *event,
		      struct text *out)
{
	uint32_t size = (uint32_t)expr_eval(arg->size, event), left;
	const uint8_t *p = array(arg, event, &left);

	size = MIN(size, left);
	for (uint32_t i = 0; i < size; i++) {
		if (i && arg->kind == STRING_HEX)
			text_char(out, ' ');
		put_byte(p[i], out);
	}
}

/* Elements are taken in this machine's byte order, as libtraceevent does */
static uint64_t element(const uint8_t *p, uint32_t size)
{
	const struct decode_event one = {
		.data = p, .size = size, .big_endian = __BYTE_ORDER == __BIG_ENDIAN};

	return decode_number(&one, 0, size);
}

static void print_int_array(const struct string_arg *arg, const struct decode_event *event,
			    struct text *out)
{
	uint32_t count = (uint32_t)expr_eval(arg->size, event), left;
	int size = (int)expr_eval(arg->element, event), step = size;
	const uint8_t *p = array(arg, event, &left);

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

/* "00000000,0000000f" */
static void put_bitmask(const struct decode_event *event, const uint8_t *mask, uint32_t size,
			struct text *out)
{
	for (uint32_t i = size; i-- > 0;) {
		put_byte(mask[event->big_endian ? size - 1 - i : i], out);
		if (i && i % 4 == 0)
			text_char(out, ',');
	}
}

static void print_mask(const struct string_arg *arg, const struct decode_event *event,
		       const struct string_spec *spec, struct text *out)
{
	_cleanup_(text_done) struct text list = {};
	uint32_t size;
	const uint8_t *mask = decode_dynamic(event, &arg->place, &size);

	if (arg->kind == STRING_BITMASK)
		put_bitmask(event, mask, size, &list);
	else
		text_cpus(&list, mask, size, event->big_endian);
	out->no_memory |= list.no_memory;
	put(spec, list.size ? list.bytes : "", list.size, out);
}

static void print_pointer(const struct string_arg *arg, const struct decode_event *event,
			  struct symbols_cache *symbols, struct text *out)
{
	uint64_t address = 0;
	const char *string;

	/* in this machine's byte order, as libtraceevent takes it */
	if (arg->place.offset <= event->size &&
	    arg->place.size <= MIN(event->size - arg->place.offset, (uint32_t)sizeof(address)))
		address = element(event->data + arg->place.offset, arg->place.size);
	string = symbols_string(symbols->symbols, address);
	if (string)
		text_string(out, string);
	else
		text_hex(out, address);
}

static void print_bytes(const struct string_arg *arg, const struct decode_event *event,
			const struct string_spec *spec, struct text *out)
{
	uint32_t offset = MIN(arg->place.offset, event->size), size;
	const uint8_t *p = event->data + offset;

	if (arg->kind == STRING_DYNAMIC) {
		p = decode_dynamic(event, &arg->place, &size);
		if (size == 0)
			return;
		/* it ends with its NUL byte, whatever its size is said to be */
		size = (uint32_t)(event->data + event->size - p);
	} else {
		size = event->size - offset;
		if (arg->place.size) /* else: all the rest */
			size = MIN(size, arg->place.size);
	}
	put(spec, p, size, out);
}

void string_arg_print(const struct string_arg *arg, const struct decode_event *event,
		      struct symbols_cache *symbols, const struct string_spec *spec,
		      struct text *out)
{
	switch (arg->kind) {
	case STRING_NOTHING:
		break;
	case STRING_CONSTANT:
		put_text(spec, arg->text, out);
		break;
	case STRING_FIELD:
	case STRING_DYNAMIC:
		print_bytes(arg, event, spec, out);
		break;
	case STRING_POINTER:
		print_pointer(arg, event, symbols, out);
		break;
	case STRING_FLAGS:
		print_flags(arg, expr_eval(arg->value, event), spec, out);
		break;
	case STRING_SYMBOL:
		print_symbol(arg, expr_eval(arg->value, event), spec, out);
		break;
	case STRING_HEX:
	case STRING_HEX_TIGHT:
		print_hex(arg, event, out);
		break;
	case STRING_INT_ARRAY:
		print_int_array(arg, event, out);
		break;
	case STRING_BITMASK:
	case STRING_CPUMASK:
		print_mask(arg, event, spec, out);
		break;
	case STRING_CONDITION:
		string_arg_print(expr_eval(arg->value, event) ? arg->yes : arg->no, event, symbols,
				 spec, out);
		break;
	}
}
