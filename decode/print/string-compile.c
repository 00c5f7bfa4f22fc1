/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <string.h>

#include "decode/print/string-internal.h"

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
	size_t n = 0;

	for (const struct tep_print_flag_sym *f = list; f; f = f->next)
		n++;
	s->flags = calloc(n + 1, sizeof(*s->flags));
	if (!s->flags)
		return false;
	for (const struct tep_print_flag_sym *f = list; f; f = f->next)
		if (f->value && f->str)
			s->flags[s->n_flags++] = (struct flag){flag_value(f->value), f->str};
	return true;
}

static bool compile_place(struct string_arg *s, const struct tep_print_arg *arg,
			  struct tep_event *event)
{
	const struct tep_format_field *field = NULL;

	if (arg->type == TEP_PRINT_DYNAMIC_ARRAY) {
		s->dynamic = true;
		field = arg->dynarray.field;
	} else if (arg->type == TEP_PRINT_FIELD) {
		field = arg->field.field ? arg->field.field
					 : tep_find_any_field(event, arg->field.name);
	}
	return field && decode_place(field, &s->place);
}

static bool compile_named(struct string_arg *s, struct tep_format_field *field, const char *name,
			  struct tep_event *event)
{
	if (!field)
		field = tep_find_any_field(event, name);
	return field && decode_place(field, &s->place);
}

static bool compile_field(struct string_arg *s, const struct tep_print_arg *arg,
			  struct tep_event *event)
{
	const struct tep_format_field *field = arg->field.field;

	if (!compile_place(s, arg, event))
		return false;
	if (!field)
		field = tep_find_any_field(event, arg->field.name);
	s->kind =
		!(field->flags & TEP_FIELD_IS_ARRAY) && field->size == tep_get_long_size(event->tep)
			? STRING_POINTER
			: STRING_FIELD;
	return true;
}

static bool compile_arrays(struct string_arg *s, const struct tep_print_arg *arg,
			   struct tep_event *event, const struct kallsyms *symbols)
{
	if (arg->type == TEP_PRINT_INT_ARRAY) {
		s->kind = STRING_INT_ARRAY;
		s->size = expr_compile(arg->int_array.count, event, symbols);
		s->element = expr_compile(arg->int_array.el_size, event, symbols);
		return s->size && s->element && compile_place(s, arg->int_array.field, event);
	}
	s->kind = arg->type == TEP_PRINT_HEX ? STRING_HEX : STRING_HEX_TIGHT;
	s->size = expr_compile(arg->hex.size, event, symbols);
	return s->size && compile_place(s, arg->hex.field, event);
}

static bool compile_condition(struct string_arg *s, const struct tep_print_arg *arg,
			      struct tep_event *event, const struct kallsyms *symbols)
{
	const struct tep_print_arg *choice = arg->op.right;

	if (arg->op.op[0] != '?')
		return true; /* prints nothing */
	if (!choice || choice->type != TEP_PRINT_OP || !choice->op.left || !choice->op.right)
		return false;
	s->kind = STRING_CONDITION;
	s->value = expr_compile(arg->op.left, event, symbols);
	s->yes = string_arg_compile(choice->op.left, event, symbols);
	s->no = string_arg_compile(choice->op.right, event, symbols);
	return s->value && s->yes && s->no;
}

static bool compile(struct string_arg *s, const struct tep_print_arg *arg, struct tep_event *event,
		    const struct kallsyms *symbols)
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
		return compile_field(s, arg, event);
	case TEP_PRINT_FLAGS:
		s->kind = STRING_FLAGS;
		s->text = arg->flags.delim;
		s->value = expr_compile(arg->flags.field, event, symbols);
		return s->value && compile_flags(s, arg->flags.flags);
	case TEP_PRINT_SYMBOL:
		s->kind = STRING_SYMBOL;
		s->value = expr_compile(arg->symbol.field, event, symbols);
		return s->value && compile_flags(s, arg->symbol.symbols);
	case TEP_PRINT_HEX:
	case TEP_PRINT_HEX_STR:
	case TEP_PRINT_INT_ARRAY:
		return compile_arrays(s, arg, event, symbols);
	case TEP_PRINT_STRING:
		s->kind = STRING_DYNAMIC;
		return compile_named(s, arg->string.field, arg->string.string, event);
	case TEP_PRINT_BITMASK:
	case TEP_PRINT_CPUMASK:
		s->kind = arg->type == TEP_PRINT_BITMASK ? STRING_BITMASK : STRING_CPUMASK;
		return compile_named(s, arg->bitmask.field, arg->bitmask.bitmask, event);
	case TEP_PRINT_OP:
		return compile_condition(s, arg, event, symbols);
	default:
		return false;
	}
}

struct string_arg *string_arg_compile(const struct tep_print_arg *arg, struct tep_event *event,
				      const struct kallsyms *symbols)
{
	struct string_arg *s;

	if (!arg)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	if (!compile(s, arg, event, symbols))
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
