/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The events that trace-cmd and the plugins of libtraceevent print in their own way and that come
 * often: tasks switched and woken, stacks, memory allocated, functions entered and left. They are
 * printed so where the plugins are not installed, too: trace-cmd's package always brings them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "decode/plugins.h"
#include "decode/print/print-internal.h"

#define PLACES 7

typedef void native_put(const struct native *native, const struct decode_event *event,
			struct symbols_cache *symbols, struct text *out);

struct native {
	native_put *put;
	struct field places[PLACES];
	unsigned present; /* bits of the optional ones that the format has */
	unsigned long_size;
	char letters[33];     /* of sched_switch: those of task states, by bit */
	struct field leaf[2]; /* of funcgraph_entry: its exit's calltime and rettime; size 0 */
};

static bool has(const struct native *n, unsigned i)
{
	return n->present & (1U << i);
}

static uint64_t number(const struct native *n, const struct decode_event *event, unsigned i)
{
	return field_number(&n->places[i], event);
}

/* "NAME:PID [PRIO]": pid @i, and the name behind it if the format has it */
static void put_task(const struct native *n, const struct decode_event *event, unsigned i,
		     int64_t prio, struct text *out)
{
	uint32_t offset = MIN(n->places[i + 1].offset, event->size);
	uint32_t size = MIN(n->places[i + 1].size, event->size - offset);

	if (has(n, i + 1)) {
		text_data(out, event->data + offset,
			  strnlen((const char *)event->data + offset, size));
		text_char(out, ':');
	}
	text_i64(out, (int64_t)number(n, event, i));
	text_string(out, " [");
	text_i64(out, prio);
	text_char(out, ']');
}

/*
 * The letters of task states, by bit. From libtraceevent 1.8 on they are those of the
 * __print_flags() in the event's format; before, they were always those of Linux 2.6.
 */
static bool states_from_format(void)
{
	return dlsym(RTLD_DEFAULT, "kbuffer_subbuffer"); /* new in 1.8, as that is */
}

static bool mentions(const struct tep_print_arg *arg, const char *field)
{
	if (!arg)
		return false;
	if (arg->type == TEP_PRINT_FIELD)
		return strcmp(arg->field.name, field) == 0;
	return arg->type == TEP_PRINT_OP &&
	       (mentions(arg->op.left, field) || mentions(arg->op.right, field));
}

static const struct tep_print_flag_sym *find_flags(const struct tep_print_arg *arg,
						   const char *field)
{
	const struct tep_print_flag_sym *flags;

	if (!arg)
		return NULL;
	if (arg->type == TEP_PRINT_FLAGS)
		return mentions(arg->flags.field, field) ? arg->flags.flags : NULL;
	if (arg->type != TEP_PRINT_OP)
		return NULL;
	flags = find_flags(arg->op.left, field);
	return flags ? flags : find_flags(arg->op.right, field);
}

static void take_letters(struct native *n, const struct tep_event *event)
{
	const struct tep_print_flag_sym *flags = NULL;
	const struct tep_print_arg *arg;

	(void)strcpy(n->letters, "SDTtZXxW");
	if (!states_from_format())
		return;
	(void)strcpy(n->letters, "SDTtXZPI");
	for (arg = event->print_fmt.args; arg && !flags; arg = arg->next)
		flags = find_flags(arg, "prev_state");
	if (flags)
		memset(n->letters, 0, sizeof(n->letters));
	for (; flags; flags = flags->next) {
		unsigned long bits = strtoul(flags->value, NULL, 0);
		int bit = __builtin_ffsl((long)bits) - 1;

		if (bit >= 0 && (size_t)bit < sizeof(n->letters) - 1)
			n->letters[bit] = flags->str[0];
	}
}

static void put_state(const struct native *n, uint32_t state, struct text *out)
{
	bool any = false;

	for (unsigned i = 0; n->letters[i]; i++) {
		if (!(state & (1U << i)))
			continue;
		if (any)
			text_char(out, '|');
		any = true;
		text_char(out, n->letters[i]);
	}
	if (!any)
		text_char(out, 'R');
}

/* A name stands behind its pid */
enum { PREV_PID, PREV_COMM, PREV_PRIO, PREV_STATE, NEXT_PID, NEXT_COMM, NEXT_PRIO };

static void print_switch(const struct native *n, const struct decode_event *event,
			 struct symbols_cache *symbols, struct text *out)
{
	(void)symbols;
	put_task(n, event, PREV_PID, (int32_t)number(n, event, PREV_PRIO), out);
	text_char(out, ' ');
	put_state(n, (uint32_t)number(n, event, PREV_STATE), out);
	text_string(out, " ==> ");
	put_task(n, event, NEXT_PID, (int32_t)number(n, event, NEXT_PRIO), out);
}

enum { WAKEUP_PID, WAKEUP_COMM, WAKEUP_PRIO, WAKEUP_SUCCESS, WAKEUP_CPU };

static void print_wakeup(const struct native *n, const struct decode_event *event,
			 struct symbols_cache *symbols, struct text *out)
{
	(void)symbols;
	put_task(n, event, WAKEUP_PID, (int64_t)number(n, event, WAKEUP_PRIO), out);
	if (has(n, WAKEUP_SUCCESS)) {
		text_string(out, " success=");
		text_i64(out, (int64_t)number(n, event, WAKEUP_SUCCESS));
	}
	text_string(out, " CPU:");
	text_u64_wide(out, number(n, event, WAKEUP_CPU), 3, '0');
}

static void print_stack(const struct native *n, const struct decode_event *event,
			struct symbols_cache *symbols, struct text *out)
{
	unsigned size = n->long_size;

	text_string(out, "<stack trace >\n");
	for (uint32_t at = n->places[0].offset; at < event->size; at += size) {
		uint64_t start, address = decode_number(event, at, size);
		const char *name;

		if ((size == 8 && address == UINT64_MAX) || (int32_t)address == -1)
			break;
		text_string(out, "=> ");
		name = symbols_find(symbols, address, &start);
		if (name) {
			text_string(out, name);
			text_string(out, " (");
		}
		text_hex(out, address);
		text_string(out, name ? ")\n" : "\n");
	}
}

/* "(FUNCTION+0xOFFSET) " before the usual text */
static void print_call_site(const struct native *n, const struct decode_event *event,
			    struct symbols_cache *symbols, struct text *out)
{
	uint64_t start, address = number(n, event, 0);
	const char *name = symbols_find(symbols, address, &start);

	if (!name)
		return;
	text_char(out, '(');
	text_string(out, name);
	text_string(out, "+0x");
	text_hex(out, (uint32_t)(address - start));
	text_string(out, ") ");
}

enum { GRAPH_FUNC, GRAPH_DEPTH, GRAPH_CALLTIME, GRAPH_RETTIME };

static void put_duration(uint64_t duration, struct text *out)
{
	static const struct {
		uint64_t above;
		const char *sign;
	} signs[] = {
		{1000000000, "$ "}, {1000000, "# "}, {100000, "! "}, {10000, "+ "}, {0, "  "},
	};
	size_t before, n;
	unsigned i = 0;

	while (i < ARRAY_SIZE(signs) - 1 && duration <= signs[i].above)
		i++;
	text_string(out, duration == UINT64_MAX ? "  " : signs[i].sign);
	before = out->size;
	text_u64(out, duration / 1000);
	if (out->size - before < 7) {
		text_char(out, '.');
		text_u64_wide(out, duration % 1000, 3, '0');
	}
	n = out->size - before;
	text_string(out, " us ");
	text_fill(out, ' ', n < 7 ? 7 - n : 0);
	text_string(out, "|  ");
}

static void put_indent(uint64_t depth, struct text *out)
{
	int32_t n = (int32_t)(depth * 2);

	/* a depth out of all reason comes from bad bytes */
	if (n > 0)
		text_fill(out, ' ', (size_t)MIN(n, 65536));
}

static void print_graph_entry(const struct native *n, const struct decode_event *event,
			      struct symbols_cache *symbols, struct text *out)
{
	uint64_t start, address = number(n, event, GRAPH_FUNC);
	const char *name = symbols_find(symbols, address, &start);

	if (event->leaf && n->leaf[0].size) {
		const struct decode_event leaf = {
			.data = event->leaf,
			.size = event->leaf_size,
			.big_endian = event->big_endian,
		};

		put_duration(field_number(&n->leaf[1], &leaf) - field_number(&n->leaf[0], &leaf),
			     out);
	} else {
		text_string(out, "             |  ");
	}
	put_indent(number(n, event, GRAPH_DEPTH), out);
	if (name)
		text_string(out, name);
	else
		text_hex(out, address);
	text_string(out, event->leaf ? "();" : "() {");
}

static void print_graph_exit(const struct native *n, const struct decode_event *event,
			     struct symbols_cache *symbols, struct text *out)
{
	(void)symbols;
	put_duration(number(n, event, GRAPH_RETTIME) - number(n, event, GRAPH_CALLTIME), out);
	put_indent(number(n, event, GRAPH_DEPTH), out);
	text_char(out, '}');
}

#define FUNCTION_PLUGIN "plugin_function.so"
#define KMEM_PLUGIN	"plugin_kmem.so"
#define SCHED_PLUGIN	"plugin_sched_switch.so"

/* A place of the names for each that the printer uses; what begins with '?' a format may lack */
static const struct native_kind {
	const char *system, *name, *plugin; /* plugin: NULL: trace-cmd itself prints it */
	native_put *put;
	int how;
	const char *places[PLACES + 1];
} kinds[] = {
	/* clang-format off */
	{"sched", "sched_switch", SCHED_PLUGIN, print_switch, NATIVE_ALL,
	 {"prev_pid", "?prev_comm", "prev_prio", "prev_state", "next_pid", "?next_comm", "next_prio"}},
	{"sched", "sched_wakeup", SCHED_PLUGIN, print_wakeup, NATIVE_ALL,
	 {"pid", "?comm", "prio", "?success", "target_cpu"}},
	{"sched", "sched_wakeup_new", SCHED_PLUGIN, print_wakeup, NATIVE_ALL,
	 {"pid", "?comm", "prio", "?success", "target_cpu"}},
	{"ftrace", "kernel_stack", FUNCTION_PLUGIN, print_stack, NATIVE_ALL, {"caller"}},
	{"ftrace", "funcgraph_entry", NULL, print_graph_entry, NATIVE_ALL, {"func", "depth"}},
	{"ftrace", "funcgraph_exit", NULL, print_graph_exit, NATIVE_ALL,
	 {"func", "depth", "calltime", "rettime"}},
	{"kmem", "kfree", KMEM_PLUGIN, print_call_site, NATIVE_BEFORE, {"call_site"}},
	{"kmem", "kmalloc", KMEM_PLUGIN, print_call_site, NATIVE_BEFORE, {"call_site"}},
	{"kmem", "kmalloc_node", KMEM_PLUGIN, print_call_site, NATIVE_BEFORE, {"call_site"}},
	{"kmem", "kmem_cache_alloc", KMEM_PLUGIN, print_call_site, NATIVE_BEFORE, {"call_site"}},
	{"kmem", "kmem_cache_free", KMEM_PLUGIN, print_call_site, NATIVE_BEFORE, {"call_site"}},
	{"kmem", "kmem_cache_alloc_node", KMEM_PLUGIN, print_call_site, NATIVE_BEFORE, {"call_site"}},
	/* clang-format on */
};

static bool take_places(struct native *n, const struct native_kind *kind, struct tep_event *event)
{
	for (unsigned i = 0; kind->places[i]; i++) {
		bool optional = kind->places[i][0] == '?';
		const struct tep_format_field *field =
			tep_find_any_field(event, kind->places[i] + optional);

		if (field && field_place(field, &n->places[i]))
			n->present |= 1U << i;
		else if (!optional)
			return false;
	}
	return true;
}

/* What the end of a function tells, for one line of both */
static void take_leaf(struct native *n, const struct decoder *d)
{
	const size_t exit = (size_t)decoder_facts(d)->graph_exit;
	const struct field *call = decoder_field(d, exit, "calltime");
	const struct field *ret = decoder_field(d, exit, "rettime");

	if (!call || !ret || !decoder_field(d, exit, "depth"))
		return;
	n->leaf[0] = *call;
	n->leaf[1] = *ret;
}

static const struct native_kind *find_kind(const struct tep_event *event, const struct decoder *d,
					   bool plugins)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct native_kind *kind = &kinds[i];

		if (strcmp(event->system, kind->system) != 0 ||
		    strcmp(event->name, kind->name) != 0)
			continue;
		if (!kind->plugin)
			return decoder_facts(d)->graph_exit >= 0 ? kind : NULL;
		/* not what somebody's own plugin prints */
		return plugins && (!event->handler || plugins_is(event, kind->plugin)) ? kind
										       : NULL;
	}
	return NULL;
}

int native_compile(struct tep_event *event, const struct decoder *decoder, bool plugins,
		   struct native **ret)
{
	const struct native_kind *kind = find_kind(event, decoder, plugins);
	struct native *n;

	if (!kind)
		return 0;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	if (!take_places(n, kind, event)) {
		free(n);
		return 0;
	}
	n->put = kind->put;
	n->long_size = decoder_dat(decoder)->long_size;
	if (n->put == print_switch)
		take_letters(n, event);
	if (n->put == print_graph_entry)
		take_leaf(n, decoder);
	*ret = n;
	return kind->how;
}

struct native *native_free(struct native *native)
{
	free(native);
	return NULL;
}

void native_print(const struct native *native, const struct decode_event *event,
		  struct symbols_cache *symbols, struct text *out)
{
	native->put(native, event, symbols, out);
}
