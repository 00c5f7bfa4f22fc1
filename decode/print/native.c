/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The events that trace-cmd and the plugins of libtraceevent print in their own way and that come
 * often: tasks switched and woken, stacks, memory allocated, functions entered and left. They are
 * printed so where the plugins are not installed, too: trace-cmd's package always brings them.
 */
#include <dlfcn.h>
#include <string.h>

#include "decode/decode-internal.h"

static bool take_place(struct event_kind *kind, unsigned i, const char *name)
{
	const struct tep_format_field *field = tep_find_any_field(kind->event, name);

	if (!field || !decode_place(field, &kind->places[i]))
		return false;
	kind->present |= 1U << i;
	return true;
}

static bool has(const struct event_kind *kind, unsigned i)
{
	return kind->present & (1U << i);
}

static uint64_t number(const struct event_kind *kind, const struct decode_record *record,
		       unsigned i)
{
	return decode_number(record, kind->places[i].offset, kind->places[i].size);
}

/* A name in the record and a colon, if the format has it */
static void put_comm(const struct event_kind *kind, const struct decode_record *record, unsigned i,
		     struct text *out)
{
	uint32_t offset = MIN(kind->places[i].offset, record->size);
	uint32_t size = MIN(kind->places[i].size, record->size - offset);

	if (!has(kind, i))
		return;
	text_data(out, record->data + offset, strnlen((const char *)record->data + offset, size));
	text_char(out, ':');
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

static void take_letters(struct event_kind *kind)
{
	const struct tep_print_flag_sym *flags = NULL;
	const struct tep_print_arg *arg;

	(void)strcpy(kind->letters, "SDTtZXxW");
	if (!states_from_format())
		return;
	(void)strcpy(kind->letters, "SDTtXZPI");
	for (arg = kind->event->print_fmt.args; arg && !flags; arg = arg->next)
		flags = find_flags(arg, "prev_state");
	if (flags)
		memset(kind->letters, 0, sizeof(kind->letters));
	for (; flags; flags = flags->next) {
		unsigned long bits = strtoul(flags->value, NULL, 0);
		int bit = __builtin_ffsl((long)bits) - 1;

		if (bit >= 0 && (size_t)bit < sizeof(kind->letters) - 1)
			kind->letters[bit] = flags->str[0];
	}
}

static void put_state(const struct event_kind *kind, uint32_t state, struct text *out)
{
	bool any = false;

	for (unsigned i = 0; kind->letters[i]; i++) {
		if (!(state & (1U << i)))
			continue;
		if (any)
			text_char(out, '|');
		any = true;
		text_char(out, kind->letters[i]);
	}
	if (!any)
		text_char(out, 'R');
}

enum { PREV_PID, PREV_COMM, PREV_PRIO, PREV_STATE, NEXT_PID, NEXT_COMM, NEXT_PRIO };

static void print_switch(struct formatter *f, const struct event_kind *kind,
			 const struct decode_event *event, struct text *out)
{
	const struct decode_record r = decode_record(f->decoder, event);

	put_comm(kind, &r, PREV_COMM, out);
	text_i64(out, (int64_t)number(kind, &r, PREV_PID));
	text_string(out, " [");
	text_i64(out, (int32_t)number(kind, &r, PREV_PRIO));
	text_string(out, "] ");
	put_state(kind, (uint32_t)number(kind, &r, PREV_STATE), out);
	text_string(out, " ==> ");
	put_comm(kind, &r, NEXT_COMM, out);
	text_i64(out, (int64_t)number(kind, &r, NEXT_PID));
	text_string(out, " [");
	text_i64(out, (int32_t)number(kind, &r, NEXT_PRIO));
	text_char(out, ']');
}

static bool take_switch(struct event_kind *kind)
{
	if (!take_place(kind, PREV_PID, "prev_pid") || !take_place(kind, PREV_PRIO, "prev_prio") ||
	    !take_place(kind, PREV_STATE, "prev_state") ||
	    !take_place(kind, NEXT_PID, "next_pid") || !take_place(kind, NEXT_PRIO, "next_prio"))
		return false;
	(void)take_place(kind, PREV_COMM, "prev_comm");
	(void)take_place(kind, NEXT_COMM, "next_comm");
	take_letters(kind);
	kind->native = print_switch;
	return true;
}

enum { WAKEUP_PID, WAKEUP_COMM, WAKEUP_PRIO, WAKEUP_SUCCESS, WAKEUP_CPU };

static void print_wakeup(struct formatter *f, const struct event_kind *kind,
			 const struct decode_event *event, struct text *out)
{
	const struct decode_record r = decode_record(f->decoder, event);

	put_comm(kind, &r, WAKEUP_COMM, out);
	text_i64(out, (int64_t)number(kind, &r, WAKEUP_PID));
	text_string(out, " [");
	text_i64(out, (int64_t)number(kind, &r, WAKEUP_PRIO));
	text_char(out, ']');
	if (has(kind, WAKEUP_SUCCESS)) {
		text_string(out, " success=");
		text_i64(out, (int64_t)number(kind, &r, WAKEUP_SUCCESS));
	}
	text_string(out, " CPU:");
	text_u64_wide(out, number(kind, &r, WAKEUP_CPU), 3, '0');
}

static bool take_wakeup(struct event_kind *kind)
{
	if (!take_place(kind, WAKEUP_PID, "pid") || !take_place(kind, WAKEUP_PRIO, "prio") ||
	    !take_place(kind, WAKEUP_CPU, "target_cpu"))
		return false;
	(void)take_place(kind, WAKEUP_COMM, "comm");
	(void)take_place(kind, WAKEUP_SUCCESS, "success");
	kind->native = print_wakeup;
	return true;
}

static void print_stack(struct formatter *f, const struct event_kind *kind,
			const struct decode_event *event, struct text *out)
{
	const struct decode_record r = decode_record(f->decoder, event);
	unsigned size = f->decoder->dat->long_size;

	text_string(out, "<stack trace >\n");
	for (uint32_t at = kind->places[0].offset; at < r.size; at += size) {
		uint64_t start, address = decode_number(&r, at, size);
		const char *name;

		if ((size == 8 && address == UINT64_MAX) || (int32_t)address == -1)
			break;
		text_string(out, "=> ");
		name = kallsyms_cache_find(&f->tools.symbols, address, &start);
		if (name) {
			text_string(out, name);
			text_string(out, " (");
		}
		text_hex(out, address);
		text_string(out, name ? ")\n" : "\n");
	}
}

/* "(FUNCTION+0xOFFSET) " before the usual text */
static void print_call_site(struct formatter *f, const struct event_kind *kind,
			    const struct decode_event *event, struct text *out)
{
	const struct decode_record r = decode_record(f->decoder, event);
	uint64_t start, address = number(kind, &r, 0);
	const char *name = kallsyms_cache_find(&f->tools.symbols, address, &start);

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

static uint64_t duration(const struct event_kind *exit, const struct decode_record *r)
{
	return number(exit, r, GRAPH_RETTIME) - number(exit, r, GRAPH_CALLTIME);
}

static void print_graph_entry(struct formatter *f, const struct event_kind *kind,
			      const struct decode_event *event, struct text *out)
{
	const struct decode_record r = decode_record(f->decoder, event);
	uint64_t start, address = number(kind, &r, GRAPH_FUNC);
	const char *name = kallsyms_cache_find(&f->tools.symbols, address, &start);
	const struct event_kind *exit;

	exit = event->leaf ? decode_kind(f, (uint32_t)f->decoder->graph_exit) : NULL;
	if (exit && exit->how == EVENT_NATIVE) {
		const struct decode_record leaf = {
			.data = event->leaf,
			.size = event->leaf_size,
			.big_endian = r.big_endian,
		};

		put_duration(duration(exit, &leaf), out);
	} else {
		text_string(out, "             |  ");
	}
	put_indent(number(kind, &r, GRAPH_DEPTH), out);
	if (name)
		text_string(out, name);
	else
		text_hex(out, address);
	text_string(out, event->leaf ? "();" : "() {");
}

static void print_graph_exit(struct formatter *f, const struct event_kind *kind,
			     const struct decode_event *event, struct text *out)
{
	const struct decode_record r = decode_record(f->decoder, event);

	put_duration(duration(kind, &r), out);
	put_indent(number(kind, &r, GRAPH_DEPTH), out);
	text_char(out, '}');
}

static bool take_graph(struct event_kind *kind, bool exit)
{
	if (!take_place(kind, GRAPH_FUNC, "func") || !take_place(kind, GRAPH_DEPTH, "depth"))
		return false;
	kind->native = print_graph_entry;
	if (!exit)
		return true;
	kind->native = print_graph_exit;
	return take_place(kind, GRAPH_CALLTIME, "calltime") &&
	       take_place(kind, GRAPH_RETTIME, "rettime");
}

static bool is_one_of(const struct tep_event *event, const char *system, const char *const *names)
{
	if (strcmp(event->system, system) != 0)
		return false;
	while (*names && strcmp(*names, event->name) != 0)
		names++;
	return *names;
}

bool decode_native(struct formatter *f, struct event_kind *kind)
{
	static const char *const switches[] = {"sched_switch", "sched_wakeup", "sched_wakeup_new",
					       NULL};
	static const char *const stacks[] = {"kernel_stack", NULL};
	static const char *const allocations[] = {"kfree",
						  "kmalloc",
						  "kmalloc_node",
						  "kmem_cache_alloc",
						  "kmem_cache_free",
						  "kmem_cache_alloc_node",
						  NULL};
	const struct tep_event *event = kind->event;

	if (strcmp(event->system, "ftrace") == 0 && strcmp(event->name, "funcgraph_entry") == 0)
		return f->decoder->graph_entry == event->id && take_graph(kind, false);
	if (strcmp(event->system, "ftrace") == 0 && strcmp(event->name, "funcgraph_exit") == 0)
		return f->decoder->graph_exit == event->id && take_graph(kind, true);
	if (is_one_of(event, "sched", switches) &&
	    decode_may_be_native(f, event, "plugin_sched_switch.so"))
		return strcmp(event->name, "sched_switch") == 0 ? take_switch(kind)
								: take_wakeup(kind);
	if (is_one_of(event, "ftrace", stacks) &&
	    decode_may_be_native(f, event, "plugin_function.so")) {
		kind->native = print_stack;
		return take_place(kind, 0, "caller");
	}
	if (is_one_of(event, "kmem", allocations) &&
	    decode_may_be_native(f, event, "plugin_kmem.so") && take_place(kind, 0, "call_site"))
		kind->native = print_call_site;
	return false;
}
