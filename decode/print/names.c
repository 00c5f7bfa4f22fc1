/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "decode/field-names.h"
#include "decode/print/print-internal.h"

#define DEPTH_MAX 8U /* of conditions and expressions; no kernel's are as deep */

struct named {
	const char *field; /* of the struct tep_event */
	struct string_arg *text;
};

struct field_names {
	struct tep_handle *tep; /* has what the texts point to */
	struct named *list;
	size_t n;
};

/* Of the first field in an expression, or NULL */
static const char *find_field(const struct tep_print_arg *arg, unsigned depth)
{
	const char *name;

	if (!arg || depth == DEPTH_MAX)
		return NULL;
	switch (arg->type) {
	case TEP_PRINT_FIELD:
		return arg->field.name;
	case TEP_PRINT_TYPE:
		return find_field(arg->typecast.item, depth + 1);
	case TEP_PRINT_OP:
		name = find_field(arg->op.left, depth + 1);
		return name ? name : find_field(arg->op.right, depth + 1);
	default:
		return NULL;
	}
}

/* The field that an argument shows by name, or NULL; nothing but such and constants may be in it */
static bool find_named(const struct tep_print_arg *arg, unsigned depth, const char **field)
{
	if (!arg || depth == DEPTH_MAX)
		return false;
	switch (arg->type) {
	case TEP_PRINT_ATOM:
		return true;
	case TEP_PRINT_FLAGS:
	case TEP_PRINT_SYMBOL:
		if (!*field)
			*field = find_field(arg->type == TEP_PRINT_FLAGS ? arg->flags.field
									 : arg->symbol.field,
					    0);
		return *field;
	case TEP_PRINT_OP: /* a condition and, as another one, what it chooses from */
		if (!arg->op.op || arg->op.op[0] != '?' || !arg->op.right ||
		    arg->op.right->type != TEP_PRINT_OP)
			return false;
		return find_named(arg->op.right->op.left, depth + 1, field) &&
		       find_named(arg->op.right->op.right, depth + 1, field);
	default:
		return false;
	}
}

static bool has_name(const struct field_names *names, const char *field)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->list[i].field, field) == 0)
			return true;
	return false;
}

static int add_argument(struct field_names *names, struct tep_event *event,
			const struct tep_print_arg *arg)
{
	struct compiling with = {.event = event};
	const char *field = NULL;
	struct string_arg *text;

	if (!find_named(arg, 0, &field) || !field || has_name(names, field))
		return 0;
	text = string_arg_compile(&with, arg);
	if (!text)
		return 0;
	if (array_grow(&names->list, names->n, sizeof(*names->list)) < 0) {
		string_arg_free(text);
		return -ENOMEM;
	}
	names->list[names->n++] = (struct named){field, text};
	return 0;
}

int field_names_new(const struct decoder *decoder, size_t format, struct field_names **ret)
{
	_cleanup_(field_names_freep) struct field_names *names = calloc(1, sizeof(*names));
	struct tep_event *event;
	int r = 0;

	if (!names)
		return -ENOMEM;
	names->tep = decoder_handle(decoder);
	if (!names->tep)
		return -ENOMEM;
	event = decoder_parse(decoder, names->tep, format);
	if (event && !(event->flags & (int)TEP_EVENT_FL_FAILED))
		for (const struct tep_print_arg *arg = event->print_fmt.args; arg && r >= 0;
		     arg = arg->next)
			r = add_argument(names, event, arg);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(names);
	return 0;
}

struct field_names *field_names_free(struct field_names *names)
{
	if (!names)
		return NULL;
	for (size_t i = 0; i < names->n; i++)
		string_arg_free(names->list[i].text);
	free(names->list);
	tep_free(names->tep);
	free(names);
	return NULL;
}

size_t field_names_count(const struct field_names *names)
{
	return names->n;
}

const char *field_names_field(const struct field_names *names, size_t i)
{
	return names->list[i].field;
}

/* No symbol is looked up: there are only names in it */
void field_names_put(const struct field_names *names, size_t i, const struct decode_event *event,
		     struct text *out)
{
	const struct string_spec spec = {.width = -1, .precision = -1};

	string_arg_print(names->list[i].text, event, NULL, &spec, out);
}
