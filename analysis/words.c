/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <seccomp.h>
#include <string.h>

#include "analysis/spans.h"
#include "analysis/words.h"
#include "basic/strv.h"
#include "decode/event-time.h"

#define PRIO_RT 100 /* MAX_RT_PRIO; a nice value of 0 is 20 above */

char *analysis_nsec(uint64_t nsec)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double value = (double)nsec;
	unsigned unit = 0;

	/* limits are where less is rounded up */
	while (value >= 999.95 && unit < ARRAY_SIZE(units) - 1) {
		value /= 1000;
		unit++;
	}
	if (unit == 0)
		return strf("%" PRIu64 "ns", nsec);
	return strf("%.*f%s", value < 9.9995 ? 3 : value < 99.995 ? 2 : 1, value, units[unit]);
}

char *analysis_at(const struct sources_facts *facts, uint64_t ts)
{
	struct event_time time = {.mode = EVENT_TIME_LOCAL};
	struct text text = {};
	char *copy;

	if (!facts->in_usecs)
		return strf("%" PRIu64, ts);
	if (!facts->has_date)
		return strf("%" PRIu64 ".%06" PRIu64, ts / NSEC_PER_SEC,
			    ts % NSEC_PER_SEC / NSEC_PER_USEC);
	event_time_put(&time, ts, &text);
	copy = text.no_memory ? NULL : strndup((const char *)text.bytes, text.size);
	text_done(&text);
	return copy;
}

uint64_t analysis_usec(const struct sources_facts *facts, uint64_t ts)
{
	return facts->in_usecs ? ts / NSEC_PER_USEC : ts;
}

const char *analysis_task(const struct span_task *task)
{
	if (!task)
		return "<idle>";
	return task->comm[0] ? task->comm : "<...>";
}

const char *analysis_waker_kind(enum span_waker waker)
{
	switch (waker) {
	case SPAN_WAKER_TASK:
		return "task";
	case SPAN_WAKER_IDLE:
		return "idle";
	case SPAN_WAKER_IRQ:
		return "irq";
	case SPAN_WAKER_SOFTIRQ:
		return "softirq";
	case SPAN_WAKER_UNKNOWN:
		break;
	}
	return NULL;
}

const char *analysis_waker(enum span_waker waker, const struct span_task *task)
{
	switch (waker) {
	case SPAN_WAKER_TASK:
		return analysis_task(task);
	case SPAN_WAKER_IRQ:
		return "<irq>";
	case SPAN_WAKER_SOFTIRQ:
		return "<softirq>";
	case SPAN_WAKER_IDLE:
		return "<idle>";
	case SPAN_WAKER_UNKNOWN:
		break;
	}
	return "<...>";
}

static const uint32_t machines[] = {
	[MACHINE_X86_64] = SCMP_ARCH_X86_64,
	[MACHINE_ARM64] = SCMP_ARCH_AARCH64,
};

int analysis_call(const struct sources_facts *facts, const char *name)
{
	return facts->machine != MACHINE_UNKNOWN
		       ? seccomp_syscall_resolve_name_arch(machines[facts->machine], name)
		       : -1;
}

char *analysis_label(const struct sources_facts *facts, const struct span_label *label)
{
	char *name = NULL;

	if (label->text)
		return strdup(label->text);
	if (label->kind == SPAN_SYSCALL && facts->machine != MACHINE_UNKNOWN)
		name = seccomp_syscall_resolve_num_arch(machines[facts->machine],
							(int)label->number);
	return name ? name : strf("%" PRIu64, label->number);
}

char *analysis_device(uint64_t device)
{
	return strf("%" PRIu64 ":%" PRIu64, device >> 20, device & 0xfffff);
}

char *analysis_prio(int32_t prio)
{
	if (prio == PRIO_UNKNOWN)
		return strdup("-");
	if (prio < 0)
		return strdup("deadline");
	return prio < PRIO_RT ? strf("rt %d", PRIO_RT - 1 - prio)
			      : strf("nice %d", prio - PRIO_RT - 20);
}
