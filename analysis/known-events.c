/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "analysis/known-events.h"

#define NEEDS_ALL UINT8_MAX

static const struct row {
	const char *system, *name; /* a name that ends in _: all that begin with it */
	enum known_event event;
	uint8_t needs; /* so many of the fields */
	const char *fields[KNOWN_FIELDS];
} rows[] = {
	{"sched",
	 "sched_switch",
	 KNOWN_SWITCH,
	 3,
	 {"prev_pid", "prev_state", "next_pid", "prev_comm", "next_comm", "next_prio",
	  "prev_prio"}},
	{"sched", "sched_waking", KNOWN_WAKING, 1, {"pid", "target_cpu", "comm"}},
	{"sched", "sched_wakeup", KNOWN_WAKEUP, 1, {"pid", "target_cpu", "comm"}},
	{"sched", "sched_wakeup_new", KNOWN_WAKEUP_NEW, 1, {"pid", "target_cpu", "comm"}},
	{"sched", "sched_migrate_task", KNOWN_MIGRATE, 2, {"pid", "dest_cpu"}},
	{"ftrace", "kernel_stack", KNOWN_STACK, 1, {"caller"}},
	{"irq", "irq_handler_entry", KNOWN_IRQ_ENTRY, 1, {"irq", "name"}},
	{"irq", "irq_handler_exit", KNOWN_IRQ_EXIT, 1, {"irq"}},
	{"irq", "softirq_entry", KNOWN_SOFTIRQ_ENTRY, 1, {"vec"}},
	{"irq", "softirq_exit", KNOWN_SOFTIRQ_EXIT, 1, {"vec"}},
	{"block",
	 "block_rq_issue",
	 KNOWN_BLOCK_ISSUE,
	 NEEDS_ALL,
	 {"dev", "sector", "nr_sector", "rwbs"}},
	{"block", "block_rq_complete", KNOWN_BLOCK_COMPLETE, 2, {"dev", "sector"}},
	{"raw_syscalls", "sys_enter", KNOWN_RAW_ENTER, 1, {"id"}},
	{"raw_syscalls", "sys_exit", KNOWN_RAW_EXIT, 1, {"id"}},
	{"syscalls", "sys_enter_", KNOWN_CALL_ENTER, 1, {"__syscall_nr"}},
	{"syscalls", "sys_exit_", KNOWN_CALL_EXIT, 1, {"__syscall_nr"}},
	{"oom", "mark_victim", KNOWN_OOM, 1, {"pid", "comm"}},
};

static const struct row *find_row(const char *system, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n = strlen(rows[i].name);

		if (strcmp(rows[i].system, system) == 0 && strncmp(rows[i].name, name, n) == 0 &&
		    (name[n] == '\0' || rows[i].name[n - 1] == '_'))
			return &rows[i];
	}
	return NULL;
}

enum known_event known_events_named(const char *event)
{
	_cleanup_free_ char *system = strdup(event);
	char *colon = system ? strchr(system, ':') : NULL;
	const struct row *row;

	if (!colon)
		return KNOWN_NOT;
	*colon = '\0';
	row = find_row(system, colon + 1);
	return row ? row->event : KNOWN_NOT;
}

static bool find_fields(const struct decoder *decoder, size_t format, const struct row *row,
			struct field fields[KNOWN_FIELDS])
{
	for (unsigned i = 0; i < KNOWN_FIELDS && row->fields[i]; i++) {
		const struct field *field = decoder_field(decoder, format, row->fields[i]);

		if (field)
			fields[i] = *field;
		else if (i < row->needs)
			return false;
	}
	return true;
}

void known_events_find(struct known_events *known, const struct decoder *decoder)
{
	const struct trace_dat *dat = decoder_dat(decoder);

	*known = (struct known_events){.decoder = decoder};
	for (size_t i = 0; i < dat->n_formats; i++) {
		const struct row *row =
			find_row(dat->systems[dat->formats[i].system], decoder_name(decoder, i));
		uint32_t id = decoder_format_id(decoder, i);
		struct field fields[KNOWN_FIELDS] = {};

		/* of two with one id the first one counts */
		if (!row || decoder_find(decoder, id) != (int32_t)i ||
		    !find_fields(decoder, i, row, fields))
			continue;
		known->event[id] = (uint8_t)row->event;
		memcpy(known->fields[row->event], fields, sizeof(fields));
	}
}

const char *known_events_name(enum known_event event)
{
	static const char *const names[_KNOWN_MAX] = {
		[KNOWN_SWITCH] = "sched:sched_switch",
		[KNOWN_WAKING] = "sched:sched_waking",
		[KNOWN_WAKEUP] = "sched:sched_wakeup",
		[KNOWN_WAKEUP_NEW] = "sched:sched_wakeup_new",
		[KNOWN_MIGRATE] = "sched:sched_migrate_task",
		[KNOWN_STACK] = "ftrace:kernel_stack",
		[KNOWN_IRQ_ENTRY] = "irq:irq_handler_entry",
		[KNOWN_IRQ_EXIT] = "irq:irq_handler_exit",
		[KNOWN_SOFTIRQ_ENTRY] = "irq:softirq_entry",
		[KNOWN_SOFTIRQ_EXIT] = "irq:softirq_exit",
		[KNOWN_BLOCK_ISSUE] = "block:block_rq_issue",
		[KNOWN_BLOCK_COMPLETE] = "block:block_rq_complete",
		[KNOWN_RAW_ENTER] = "raw_syscalls:sys_enter",
		[KNOWN_RAW_EXIT] = "raw_syscalls:sys_exit",
		[KNOWN_CALL_ENTER] = "syscalls",
		[KNOWN_CALL_EXIT] = "syscalls",
		[KNOWN_OOM] = "oom:mark_victim",
	};

	return names[event] ? names[event] : "";
}
