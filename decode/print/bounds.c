/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "decode/print/print-internal.h"

/* What libtraceevent does with one argument of a conversion */
enum bound_kind {
	BOUND_VALUE,  /* evaluates it */
	BOUND_LENGTH, /* takes it for a precision: below 0 it passes it over, and printf reads on */
	BOUND_REST,   /* copies from the field to the end of the record */
	BOUND_SPAN,   /* reads so many elements from the field on */
	BOUND_CONDITION, /* prints one of two */
};

struct bound {
	enum bound_kind kind;
	struct field place;
	struct expr *value;	       /* evaluated first */
	struct expr *size;	       /* BOUND_SPAN: of an element; NULL: 1 */
	struct print_bounds *yes, *no; /* BOUND_CONDITION */
};

struct print_bounds {
	struct bound *list;
	size_t n;
};

static bool bound_arg(struct compiling *c, const struct tep_print_arg *arg,
		      struct print_bounds *bounds);

struct print_bounds *print_bounds_free(struct print_bounds *bounds)
{
	if (!bounds)
		return NULL;
	for (size_t i = 0; i < bounds->n; i++) {
		struct bound *bound = &bounds->list[i];

		expr_free(bound->value);
		expr_free(bound->size);
		print_bounds_free(bound->yes);
		print_bounds_free(bound->no);
	}
	free(bounds->list);
	free(bounds);
	return NULL;
}

static struct bound *add_bound(struct print_bounds *bounds, enum bound_kind kind)
{
	if (array_grow(&bounds->list, bounds->n, sizeof(*bounds->list)) < 0)
		return NULL;
	bounds->list[bounds->n] = (struct bound){.kind = kind};
	return &bounds->list[bounds->n++];
}

/* --- compiling; false: libtraceevent must not get any record of it, or there is no memory */

static bool add_value(struct compiling *c, enum bound_kind kind, const struct tep_print_arg *arg,
		      struct print_bounds *bounds)
{
	struct bound *bound = add_bound(bounds, kind);

	if (bound)
		bound->value = expr_compile(c, arg);
	return bound && bound->value;
}

static bool is_nonzero(const struct tep_print_arg *arg)
{
	return arg && arg->type == TEP_PRINT_ATOM && strtoull(arg->atom.atom, NULL, 0) != 0;
}

/* Only one of the two is evaluated, so that only that one has to hold */
static bool bound_condition(struct compiling *c, const struct tep_print_arg *arg,
			    struct print_bounds *bounds)
{
	const struct tep_print_arg *both = arg->op.right;
	struct bound *bound;

	if (!both || both->type != TEP_PRINT_OP || strcmp(both->op.op, ":") != 0 ||
	    !bound_arg(c, arg->op.left, bounds))
		return false;
	bound = add_bound(bounds, BOUND_CONDITION);
	if (!bound)
		return false;
	bound->yes = calloc(1, sizeof(*bound->yes));
	bound->no = calloc(1, sizeof(*bound->no));
	if (!bound->yes || !bound->no || !bound_arg(c, both->op.left, bound->yes) ||
	    !bound_arg(c, both->op.right, bound->no))
		return false;
	if (bound->yes->n == 0 && bound->no->n == 0)
		return true;
	bound->value = expr_compile(c, arg->op.left);
	return bound->value;
}

static bool bound_op(struct compiling *c, const struct tep_print_arg *arg,
		     struct print_bounds *bounds)
{
	switch (arg->op.op[0]) {
	case '?':
		return bound_condition(c, arg, bounds);
	case '/':
	case '%':
		if (!is_nonzero(arg->op.right))
			return add_value(c, BOUND_VALUE, arg, bounds);
		break;
	case '[':
		return add_value(c, BOUND_VALUE, arg, bounds);
	}
	return (!arg->op.left || bound_arg(c, arg->op.left, bounds)) &&
	       (!arg->op.right || bound_arg(c, arg->op.right, bounds));
}

/* @size: NULL for bytes. libtraceevent takes what is no dynamic array for a field, unseen */
static bool bound_span(struct compiling *c, const struct tep_print_arg *from,
		       const struct tep_print_arg *count, const struct tep_print_arg *size,
		       struct print_bounds *bounds)
{
	const struct tep_format_field *field = NULL;
	struct bound *bound = add_bound(bounds, BOUND_SPAN);
	const bool dynamic = from->type == TEP_PRINT_DYNAMIC_ARRAY;

	if (dynamic)
		field = from->dynarray.field;
	else if (from->type == TEP_PRINT_FIELD)
		field = expr_field(c, from->field.field, from->field.name);
	if (!bound || !field || !field_place(field, &bound->place))
		return false;
	bound->place.is_dynamic = dynamic;
	bound->value = expr_compile(c, count);
	bound->size = size ? expr_compile(c, size) : NULL;
	return bound->value && (bound->size || !size);
}

/* A string of no size goes up to the record's end */
static bool bound_field(struct compiling *c, const struct tep_print_arg *arg,
			struct print_bounds *bounds)
{
	const struct tep_format_field *field = expr_field(c, arg->field.field, arg->field.name);
	struct bound *bound;

	if (!field || field->size > 0)
		return true;
	bound = add_bound(bounds, BOUND_REST);
	return bound && field_place(field, &bound->place);
}

/* Its functions are known by name only: each of their arguments may be a number or a string */
static bool bound_function(struct compiling *c, const struct tep_print_arg *arg,
			   struct print_bounds *bounds)
{
	for (const struct tep_print_arg *a = arg->func.args; a; a = a->next)
		if (!bound_arg(c, a, bounds))
			return false;
	return true;
}

/* A word of 16 bits is made to fit (printer.c) only where it is declared as one */
static bool is_word(const struct tep_format_field *field)
{
	return field && (field->size != 2 || field->flags & TEP_FIELD_IS_DYNAMIC);
}

/* As a number or as a string, whichever the conversion makes of it */
static bool bound_arg(struct compiling *c, const struct tep_print_arg *arg,
		      struct print_bounds *bounds)
{
	switch (arg->type) {
	case TEP_PRINT_FIELD:
		return bound_field(c, arg, bounds);
	case TEP_PRINT_TYPE:
		return bound_arg(c, arg->typecast.item, bounds);
	case TEP_PRINT_FLAGS:
		return bound_arg(c, arg->flags.field, bounds);
	case TEP_PRINT_SYMBOL:
		return bound_arg(c, arg->symbol.field, bounds);
	case TEP_PRINT_HEX:
	case TEP_PRINT_HEX_STR:
		return bound_span(c, arg->hex.field, arg->hex.size, NULL, bounds);
	case TEP_PRINT_INT_ARRAY:
		return bound_span(c, arg->int_array.field, arg->int_array.count,
				  arg->int_array.el_size, bounds);
	case TEP_PRINT_OP:
		return bound_op(c, arg, bounds);
	case TEP_PRINT_FUNC:
		return bound_function(c, arg, bounds);
	case TEP_PRINT_STRING:
		return is_word(expr_field(c, arg->string.field, arg->string.string));
	case TEP_PRINT_BITMASK:
	case TEP_PRINT_CPUMASK: /* writes to the field that it has not found */
		return is_word(expr_field(c, arg->bitmask.field, arg->bitmask.bitmask));
	case TEP_PRINT_DYNAMIC_ARRAY:
		return is_word(arg->dynarray.field);
	case TEP_PRINT_DYNAMIC_ARRAY_LEN: /* of a relative one it writes the offset to NULL */
		return is_word(arg->dynarray.field) &&
		       !(arg->dynarray.field->flags & TEP_FIELD_IS_RELATIVE);
	default:
		return true;
	}
}

/*
 * "%*d": libtraceevent would fill up to any width that a record tells, which takes hours for a big
 * one, and so with the precision of a number. Of a string that is an end, with 'p' it counts bytes.
 */
static bool is_width(const char *star, char letter)
{
	return letter != 'p' && (star[-1] != '.' || letter != 's');
}

/* A conversion, from behind the '%', with the flags that libtraceevent knows; returns its letter */
static const char *bound_conversion(struct compiling *c, const char *f,
				    const struct tep_print_arg **args, struct print_bounds *bounds)
{
	const char *letter = f + strspn(f, "#hlLzZ.0123456789-+*");
	bool wide = false;

	for (; f < letter; f++) {
		wide |= strchr("lLzZ", *f) != NULL;
		if (*f != '*' || !*args)
			continue;
		if (is_width(f, *letter) ||
		    !add_value(c, *letter == 's' ? BOUND_LENGTH : BOUND_VALUE, *args, bounds))
			return NULL;
		*args = (*args)->next;
	}
	/* printf takes the bytes of a "%ls" for wchar_t */
	if (!*letter || !strchr("pcduixXos", *letter) || !*args)
		return letter;
	if ((*letter == 's' && wide) || !bound_arg(c, *args, bounds))
		return NULL;
	*args = (*args)->next;
	return letter;
}

int print_bounds_new(struct tep_event *event, const struct file_symbols *symbols,
		     struct print_bounds **ret)
{
	_cleanup_(print_bounds_freep) struct print_bounds *bounds = calloc(1, sizeof(*bounds));
	const struct tep_print_arg *args = event->print_fmt.args;
	struct compiling c = {event, symbols};

	if (!bounds)
		return -ENOMEM;
	for (const char *f = event->print_fmt.format; f && (f = strchr(f, '%'));) {
		f = f[1] == '%' ? f + 1 : bound_conversion(&c, f + 1, &args, bounds);
		if (!f)
			return PRINT_E_UNSAFE;
		f += *f != '\0';
	}
	*ret = bounds->n > 0 ? TAKE_PTR(bounds) : NULL;
	return 0;
}

/* --- a record */

static bool span_holds(const struct bound *b, const struct decode_event *event)
{
	uint64_t count = expr_eval(b->value, event), begin = b->place.offset;
	int size = b->size ? (int)expr_eval(b->size, event) : 1;

	if (!expr_holds(b->value, event) || (b->size && !expr_holds(b->size, event)))
		return false;
	if (b->place.is_dynamic && !expr_dynamic_holds(&b->place, event, &begin))
		return false;
	/* it takes bytes then */
	if (size != 2 && size != 4 && size != 8)
		size = 1;
	return begin <= event->size && count <= (event->size - begin) / (unsigned)size;
}

static bool bound_holds(const struct bound *b, const struct decode_event *event)
{
	switch (b->kind) {
	case BOUND_VALUE:
		return expr_holds(b->value, event);
	case BOUND_LENGTH:
		return expr_holds(b->value, event) && (int)expr_eval(b->value, event) >= 0;
	case BOUND_REST:
		return b->place.offset <= event->size;
	case BOUND_SPAN:
		return span_holds(b, event);
	case BOUND_CONDITION:
		return !b->value ||
		       (expr_holds(b->value, event) &&
			print_bounds_hold(expr_eval(b->value, event) ? b->yes : b->no, event));
	}
	return false;
}

bool print_bounds_hold(const struct print_bounds *bounds, const struct decode_event *event)
{
	for (size_t i = 0; i < bounds->n; i++)
		if (!bound_holds(&bounds->list[i], event))
			return false;
	return true;
}
