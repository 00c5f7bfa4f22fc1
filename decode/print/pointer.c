/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "decode/print/print-internal.h"

enum pointer_kind {
	POINTER_NUMBER,
	POINTER_FUNCTION,
	POINTER_FUNCTION_OFFSET,
	POINTER_UUID,
};

struct pointer_arg {
	enum pointer_kind kind;
	struct expr *value;
	struct field place;
	bool little, upper;
	unsigned long_size;
};

/* The field behind casts */
static bool compile_uuid(struct pointer_arg *p, const struct tep_print_arg *arg, const char *order,
			 struct tep_event *event)
{
	const struct tep_format_field *field;

	p->kind = POINTER_UUID;
	p->little = *order == 'L' || *order == 'l';
	p->upper = *order == 'L' || *order == 'B';
	while (arg->type == TEP_PRINT_TYPE)
		arg = arg->typecast.item;
	if (arg->type != TEP_PRINT_FIELD)
		return false;
	field = arg->field.field ? arg->field.field : tep_find_any_field(event, arg->field.name);
	return field && field->size == 16 && field_place(field, &p->place);
}

size_t pointer_extension(const char *f)
{
	if (*f && strchr("FSfs", *f))
		return 1;
	if (*f != 'U')
		return 0;
	return f[1] && strchr("LlBb", f[1]) ? 2 : 1;
}

static bool compile(struct pointer_arg *p, const struct tep_print_arg *arg, const char *f,
		    struct tep_event *event, const struct file_symbols *symbols)
{
	if (*f == 'U')
		return compile_uuid(p, arg, f + 1, event);
	if (*f == 'F' || *f == 'S')
		p->kind = POINTER_FUNCTION_OFFSET;
	else if (*f == 'f' || *f == 's')
		p->kind = POINTER_FUNCTION;
	if (arg->type == TEP_PRINT_BSTRING)
		return false;
	p->value = expr_compile(arg, event, symbols);
	return p->value;
}

struct pointer_arg *pointer_arg_compile(const struct tep_print_arg *arg, const char *extension,
					struct tep_event *event, const struct file_symbols *symbols)
{
	struct pointer_arg *p;

	if (!arg)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->long_size = (unsigned)tep_get_long_size(event->tep);
	if (!compile(p, arg, extension, event, symbols))
		return pointer_arg_free(p);
	return p;
}

struct pointer_arg *pointer_arg_free(struct pointer_arg *arg)
{
	if (!arg)
		return NULL;
	expr_free(arg->value);
	free(arg);
	return NULL;
}

static void print_function(const struct pointer_arg *arg, uint64_t address,
			   struct symbols_cache *symbols, struct text *out)
{
	uint64_t start;
	const char *name = symbols_find(symbols, address, &start);

	if (!name) {
		text_string(out, "0x");
		text_hex(out, arg->long_size == 4 ? (unsigned long)address : address);
		return;
	}
	text_string(out, name);
	if (arg->kind == POINTER_FUNCTION_OFFSET) {
		text_string(out, "+0x");
		text_hex(out, address - start);
	}
}

static void print_uuid(const struct pointer_arg *arg, const uint8_t *p, struct text *out)
{
	static const uint8_t order[2][16] = {
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15},
	};

	for (unsigned i = 0; i < 16; i++) {
		text_printf(out, arg->upper ? "%02X" : "%02x", p[order[arg->little][i]]);
		if (i == 3 || i == 5 || i == 7 || i == 9)
			text_char(out, '-');
	}
}

void pointer_arg_print(const struct pointer_arg *arg, const struct decode_event *event,
		       struct symbols_cache *symbols, struct text *out)
{
	uint64_t value;

	switch (arg->kind) {
	case POINTER_NUMBER:
		value = expr_eval(arg->value, event);
		text_string(out, value ? "0x" : "(nil)");
		if (value)
			text_hex(out, value);
		break;
	case POINTER_FUNCTION:
	case POINTER_FUNCTION_OFFSET:
		print_function(arg, expr_eval(arg->value, event), symbols, out);
		break;
	case POINTER_UUID:
		if (arg->place.offset <= event->size &&
		    arg->place.size <= event->size - arg->place.offset)
			print_uuid(arg, event->data + arg->place.offset, out);
		break;
	}
}
