/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <string.h>

#include "decode/print/print-internal.h"

#define MAX_DEPTH 64U /* of a tree; the kernel's have a handful */

/* What an operator makes of two numbers, or of the right one */
/* clang-format off */
#define OPERATORS(X) \
	X(NOT, "!", !right) \
	X(NOT_EQUAL, "!=", left != right) \
	X(COMPLEMENT, "~", ~right) \
	X(BIT_OR, "|", left | right) \
	X(OR, "||", left || right) \
	X(BIT_AND, "&", left & right) \
	X(AND, "&&", left && right) \
	X(LESS, "<", left < right) \
	X(SHIFT_LEFT, "<<", left << (right & 63)) \
	X(LESS_EQUAL, "<=", left <= right) \
	X(GREATER, ">", left > right) \
	X(SHIFT_RIGHT, ">>", left >> (right & 63)) \
	X(GREATER_EQUAL, ">=", left >= right) \
	X(EQUAL, "==", left == right) \
	X(MINUS, "-", left - right) \
	X(PLUS, "+", left + right) \
	X(DIVIDE, "/", right ? left / right : 0) \
	X(MODULO, "%", right ? left % right : 0) \
	X(MULTIPLY, "*", left * right)
/* clang-format on */

enum expr_kind {
	EXPR_CONSTANT,
	EXPR_FIELD,
	EXPR_MASK,	    /* a type cast: right & value */
	EXPR_ELEMENT,	    /* left: index; value: size of an element */
	EXPR_DYNAMIC_BYTES, /* left: byte offset; value: size of an element */
	EXPR_DYNAMIC_SIZE,
	EXPR_CONDITION, /* left ? right : other */
#define KIND(name, text, value) EXPR_##name,
	OPERATORS(KIND)
};

struct expr {
	enum expr_kind kind;
	struct field place;
	uint64_t value;
	struct expr *left, *right, *other;
};

static struct expr *make(enum expr_kind kind)
{
	struct expr *e = calloc(1, sizeof(*e));

	if (e)
		e->kind = kind;
	return e;
}

static struct expr *make_constant(uint64_t value)
{
	struct expr *e = make(EXPR_CONSTANT);

	if (e)
		e->value = value;
	return e;
}

static struct expr *make_at(enum expr_kind kind, const struct tep_format_field *field)
{
	struct expr *e = make(kind);

	if (e && !field_place(field, &e->place))
		return expr_free(e);
	return e;
}

static struct expr *compile_atom(struct compiling *c, const char *atom)
{
	uint64_t value = strtoull(atom, NULL, 0);

	if (value == 0 && !isdigit((unsigned char)atom[0]) && c->symbols)
		(void)symbols_address(c->symbols, atom, &value);
	return make_constant(value);
}

const struct tep_format_field *expr_field(const struct compiling *with,
					  const struct tep_format_field *field, const char *name)
{
	return field ? field : tep_find_any_field(with->event, name);
}

static struct expr *compile_field(struct compiling *c, const struct tep_print_arg *arg)
{
	const struct tep_format_field *field = expr_field(c, arg->field.field, arg->field.name);

	return field ? make_at(EXPR_FIELD, field) : NULL;
}

/* What a cast leaves of a number; signed types are cut to their width just the same */
static uint64_t type_mask(const char *type)
{
	static const struct {
		const char *type;
		uint64_t mask;
	} masks[] = {
		{"u8", UINT8_MAX},   {"s8", UINT8_MAX},	  {"char", UINT8_MAX},
		{"u16", UINT16_MAX}, {"s16", UINT16_MAX}, {"short", UINT16_MAX},
		{"u32", UINT32_MAX}, {"s32", UINT32_MAX}, {"int", UINT32_MAX},
	};
	size_t length = strlen(type);

	if (length == 0 || type[length - 1] == '*' || strncmp(type, "struct", 6) == 0)
		return UINT64_MAX;
	if (strncmp(type, "unsigned ", 9) == 0)
		type += 9;
	for (size_t i = 0; i < ARRAY_SIZE(masks); i++)
		if (strcmp(type, masks[i].type) == 0)
			return masks[i].mask;
	return UINT64_MAX;
}

static struct expr *make_mask(struct expr *inner, uint64_t mask)
{
	struct expr *e;

	if (!inner || mask == UINT64_MAX)
		return inner;
	e = make(EXPR_MASK);
	if (!e)
		return expr_free(inner);
	e->value = mask;
	e->right = inner;
	return e;
}

/* array[index], with casts of the array to pointers in between */
static struct expr *compile_element(struct compiling *c, const struct tep_print_arg *arg)
{
	const struct tep_print_arg *array = arg->op.left, *cast = NULL;
	const struct tep_format_field *field;
	struct expr *e = NULL;
	uint64_t mask = UINT64_MAX;
	char type[64];

	for (; array->type == TEP_PRINT_TYPE; array = array->typecast.item)
		cast = cast ? cast : array;
	if (cast) {
		size_t n = strlen(cast->typecast.type);

		/* "TYPE *" */
		if (n < 2 || n >= sizeof(type) || cast->typecast.type[n - 1] != '*')
			return NULL;
		(void)snprintf(type, sizeof(type), "%.*s", (int)n - 2, cast->typecast.type);
		mask = type_mask(type);
	}
	if (array->type == TEP_PRINT_DYNAMIC_ARRAY && array->dynarray.field) {
		field = array->dynarray.field;
		e = make_at(EXPR_DYNAMIC_BYTES, field);
		if (e)
			e->value = field->elementsize ? field->elementsize
						      : (uint64_t)tep_get_long_size(c->event->tep);
	} else if (array->type == TEP_PRINT_FIELD) {
		field = expr_field(c, array->field.field, array->field.name);
		e = field ? make_at(EXPR_ELEMENT, field) : NULL;
		if (e)
			e->value = field->elementsize;
	}
	if (!e)
		return NULL;
	e->left = expr_compile(c, arg->op.right);
	return e->left ? make_mask(e, mask) : expr_free(e);
}

static bool find_operator(const char *op, enum expr_kind *ret)
{
#define FIND(name, text, value)      \
	if (strcmp(op, text) == 0) { \
		*ret = EXPR_##name;  \
		return true;         \
	}
	OPERATORS(FIND)
	return false;
}

static struct expr *compile_op(struct compiling *c, const struct tep_print_arg *arg)
{
	const struct tep_print_arg *left = arg->op.left, *right = arg->op.right, *other = NULL;
	enum expr_kind kind;
	struct expr *e;

	if (!left || !right)
		return NULL;
	if (strcmp(arg->op.op, "[") == 0)
		return compile_element(c, arg);
	if (strcmp(arg->op.op, "?") == 0) {
		if (right->type != TEP_PRINT_OP || strcmp(right->op.op, ":") != 0)
			return NULL;
		kind = EXPR_CONDITION;
		other = right->op.right;
		right = right->op.left;
	} else if (!find_operator(arg->op.op, &kind)) {
		return NULL;
	}
	e = make(kind);
	if (!e)
		return NULL;
	e->left = expr_compile(c, left);
	e->right = expr_compile(c, right);
	if (other)
		e->other = expr_compile(c, other);
	if (!e->left || !e->right || (kind == EXPR_CONDITION && !e->other))
		return expr_free(e);
	return e;
}

static struct expr *compile_kind(struct compiling *c, const struct tep_print_arg *arg)
{
	switch (arg->type) {
	case TEP_PRINT_ATOM:
		return compile_atom(c, arg->atom.atom);
	case TEP_PRINT_FIELD:
		return compile_field(c, arg);
	case TEP_PRINT_TYPE:
		return make_mask(expr_compile(c, arg->typecast.item),
				 type_mask(arg->typecast.type));
	case TEP_PRINT_OP:
		return compile_op(c, arg);
	case TEP_PRINT_DYNAMIC_ARRAY_LEN:
		return arg->dynarray.field ? make_at(EXPR_DYNAMIC_SIZE, arg->dynarray.field) : NULL;
	case TEP_PRINT_NULL:
	case TEP_PRINT_FLAGS:
	case TEP_PRINT_SYMBOL:
	case TEP_PRINT_INT_ARRAY:
	case TEP_PRINT_HEX:
	case TEP_PRINT_HEX_STR:
	case TEP_PRINT_STRING:
	case TEP_PRINT_BITMASK:
	case TEP_PRINT_CPUMASK:
		return make_constant(0); /* libtraceevent's value of what is no number */
	default:
		return NULL;
	}
}

struct expr *expr_compile(struct compiling *with, const struct tep_print_arg *arg)
{
	struct expr *e;

	if (!arg || with->depth >= MAX_DEPTH)
		return NULL;
	with->depth++;
	e = compile_kind(with, arg);
	with->depth--;
	return e;
}

struct expr *expr_free(struct expr *expr)
{
	if (!expr)
		return NULL;
	expr_free(expr->left);
	expr_free(expr->right);
	expr_free(expr->other);
	free(expr);
	return NULL;
}

static uint64_t eval_binary(const struct expr *e, const struct decode_event *event)
{
	uint64_t left = expr_eval(e->left, event), right = expr_eval(e->right, event);

	switch (e->kind) {
#define CASE(name, text, value) \
	case EXPR_##name:       \
		return value;
		OPERATORS(CASE)
	default:
		return 0;
	}
}

static uint64_t eval_element(const struct expr *e, const struct decode_event *event)
{
	uint64_t index = expr_eval(e->left, event);
	const uint8_t *p;
	uint32_t size;

	if (index > event->size)
		return 0;
	if (e->kind == EXPR_ELEMENT)
		return decode_number(event, e->place.offset + index * e->value, (uint32_t)e->value);
	p = decode_dynamic(event, &e->place, &size);
	return decode_number(event, (uint64_t)(p - event->data) + index, (uint32_t)e->value);
}

uint64_t expr_eval(const struct expr *e, const struct decode_event *event)
{
	uint32_t size;

	switch (e->kind) {
	case EXPR_CONSTANT:
		return e->value;
	case EXPR_FIELD:
		return field_number(&e->place, event);
	case EXPR_MASK:
		return expr_eval(e->right, event) & e->value;
	case EXPR_ELEMENT:
	case EXPR_DYNAMIC_BYTES:
		return eval_element(e, event);
	case EXPR_DYNAMIC_SIZE:
		(void)decode_dynamic(event, &e->place, &size);
		return size;
	case EXPR_CONDITION:
		return expr_eval(expr_eval(e->left, event) ? e->right : e->other, event);
	default:
		return eval_binary(e, event);
	}
}

static bool in_record(const struct decode_event *event, uint64_t offset, uint64_t size)
{
	return offset <= event->size && size <= event->size - offset;
}

bool expr_dynamic_holds(const struct field *field, const struct decode_event *event,
			uint64_t *ret_begin)
{
	uint64_t word = field_number(field, event), begin = word & 0xffff;
	uint64_t size = field->size == 2 ? 0 : word >> 16 & 0xffff;

	/* libtraceevent looks at the offset before it makes it absolute */
	if (!in_record(event, field->offset, field->size) || !in_record(event, begin, size))
		return false;
	if (field->is_relative)
		begin += field->offset + field->size;
	*ret_begin = begin;
	return in_record(event, begin, size);
}

static bool element_holds(const struct expr *e, const struct decode_event *event)
{
	uint64_t index = expr_eval(e->left, event), begin = e->place.offset;

	if (!expr_holds(e->left, event) || index > event->size)
		return false;
	if (e->kind == EXPR_ELEMENT)
		return in_record(event, begin + index * e->value, e->value);
	return expr_dynamic_holds(&e->place, event, &begin) &&
	       in_record(event, begin + index, e->value);
}

static bool binary_holds(const struct expr *e, const struct decode_event *event)
{
	uint64_t right = expr_eval(e->right, event);

	if ((e->kind == EXPR_DIVIDE || e->kind == EXPR_MODULO) && right == 0)
		return false;
	if ((e->kind == EXPR_SHIFT_LEFT || e->kind == EXPR_SHIFT_RIGHT) && right > 63)
		return false;
	return expr_holds(e->left, event) && expr_holds(e->right, event);
}

bool expr_holds(const struct expr *e, const struct decode_event *event)
{
	uint64_t begin;

	switch (e->kind) {
	case EXPR_CONSTANT:
		return true;
	case EXPR_FIELD:
		return in_record(event, e->place.offset, e->place.size);
	case EXPR_MASK:
		return expr_holds(e->right, event);
	case EXPR_ELEMENT:
	case EXPR_DYNAMIC_BYTES:
		return element_holds(e, event);
	case EXPR_DYNAMIC_SIZE: /* of a relative one, libtraceevent writes the offset to NULL */
		return !e->place.is_relative && expr_dynamic_holds(&e->place, event, &begin);
	case EXPR_CONDITION:
		return expr_holds(e->left, event) &&
		       expr_holds(expr_eval(e->left, event) ? e->right : e->other, event);
	default:
		return binary_holds(e, event);
	}
}
