/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "tests/unit/analysis-fixture.h"

#define WAKE                                                       \
	"\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n" \
	"\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"     \
	"\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n"      \
	"\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n"

#define NUMBERS(a, b, c)                                                \
	"\tfield:unsigned int " a ";\toffset:8;\tsize:4;\tsigned:0;\n"  \
	"\tfield:unsigned int " b ";\toffset:12;\tsize:4;\tsigned:0;\n" \
	"\tfield:unsigned int " c ";\toffset:16;\tsize:4;\tsigned:0;\n"

#define REQUEST                                                             \
	"\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n"               \
	"\tfield:unsigned int sector;\toffset:12;\tsize:4;\tsigned:0;\n"    \
	"\tfield:unsigned int nr_sector;\toffset:16;\tsize:4;\tsigned:0;\n" \
	"\tfield:char rwbs[4];\toffset:20;\tsize:4;\tsigned:0;\n"

#define PRINT "\nprint fmt: \"%d\", REC->common_pid\n"

const struct craft_format fixture_formats[FIXTURE_FORMATS] = {
	{"ftrace", "name: kernel_stack\nID: 5\n" CRAFT_COMMON_FIELDS
		   "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
		   "\tfield:unsigned long caller[];\toffset:16;\tsize:0;\tsigned:0;\n" PRINT},
	{"sched", "name: sched_switch\nID: 10\n" CRAFT_COMMON_FIELDS
		  "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		  "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		  "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
		  "\tfield:u64 prev_state;\toffset:32;\tsize:8;\tsigned:0;\n"
		  "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
		  "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
		  "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n" PRINT},
	{"sched", "name: sched_waking\nID: 11\n" CRAFT_COMMON_FIELDS WAKE PRINT},
	{"sched", "name: sched_wakeup\nID: 12\n" CRAFT_COMMON_FIELDS WAKE PRINT},
	{"sched", "name: sched_wakeup_new\nID: 13\n" CRAFT_COMMON_FIELDS WAKE PRINT},
	{"sched", "name: sched_migrate_task\nID: 14\n" CRAFT_COMMON_FIELDS NUMBERS(
			  "pid", "orig_cpu", "dest_cpu") PRINT},
	{"irq", "name: irq_handler_entry\nID: 20\n" CRAFT_COMMON_FIELDS
		"\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n" PRINT},
	{"irq",
	 "name: irq_handler_exit\nID: 21\n" CRAFT_COMMON_FIELDS NUMBERS("irq", "ret", "x") PRINT},
	{"irq", "name: softirq_entry\nID: 22\n" CRAFT_COMMON_FIELDS NUMBERS("vec", "x", "y") PRINT},
	{"irq", "name: softirq_exit\nID: 23\n" CRAFT_COMMON_FIELDS NUMBERS("vec", "x", "y") PRINT},
	{"block", "name: block_rq_issue\nID: 30\n" CRAFT_COMMON_FIELDS REQUEST PRINT},
	{"block", "name: block_rq_complete\nID: 31\n" CRAFT_COMMON_FIELDS REQUEST PRINT},
	{"raw_syscalls",
	 "name: sys_enter\nID: 40\n" CRAFT_COMMON_FIELDS NUMBERS("id", "x", "y") PRINT},
	{"raw_syscalls",
	 "name: sys_exit\nID: 41\n" CRAFT_COMMON_FIELDS NUMBERS("id", "x", "y") PRINT},
	{"syscalls", "name: sys_enter_read\nID: 42\n" CRAFT_COMMON_FIELDS NUMBERS("__syscall_nr",
										  "x", "y") PRINT},
	{"syscalls", "name: sys_exit_read\nID: 43\n" CRAFT_COMMON_FIELDS NUMBERS("__syscall_nr",
										 "x", "y") PRINT},
	{"oom", "name: mark_victim\nID: 50\n" CRAFT_COMMON_FIELDS NUMBERS("pid", "x", "y") PRINT},
};

static void head(struct craft *c, unsigned id, int by)
{
	craft_number(c, 2, id);
	craft_number(c, 2, 0);
	craft_number(c, 4, (uint32_t)by);
}

static void name(struct craft *c, int pid)
{
	char text[16] = "";

	(void)snprintf(text, sizeof(text), "t%d", pid);
	craft_bytes(c, text, sizeof(text));
}

void fixture_switch(struct craft *c, int prev, uint64_t state, int next)
{
	head(c, ID_SWITCH, prev);
	name(c, prev);
	craft_number(c, 4, (uint32_t)prev);
	craft_number(c, 4, 120);
	craft_number(c, 8, state);
	name(c, next);
	craft_number(c, 4, (uint32_t)next);
	craft_number(c, 4, 120);
}

void fixture_wake(struct craft *c, unsigned id, int by, int pid, int cpu)
{
	head(c, id, by);
	name(c, pid);
	craft_number(c, 4, (uint32_t)pid);
	craft_number(c, 4, 120);
	craft_number(c, 4, (uint32_t)cpu);
}

void fixture_flags(struct craft *c, size_t event, uint8_t flags)
{
	craft_set(c, event + 2, 1, flags);
}

void fixture_numbers(struct craft *c, unsigned id, int by, const uint32_t *numbers, size_t n)
{
	head(c, id, by);
	for (size_t i = 0; i < n; i++)
		craft_number(c, 4, numbers[i]);
}

void fixture_put(struct craft *page, uint32_t delta, const struct craft *event)
{
	craft_head(page, (unsigned)(event->size / 4), delta);
	craft_bytes(page, event->bytes, event->size);
}
