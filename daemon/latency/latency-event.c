/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/spans.h"
#include "basic/io.h"
#include "daemon/latency/latency-event.h"

/* enum trace_flag_type */
#define FLAG_HARDIRQ 0x08U
#define FLAG_SOFTIRQ 0x10U

/* Handlers of an interrupt by name, as the kernel shows them; else its number */
static void name_interrupt(uint64_t irq, char *ret, size_t size)
{
	_cleanup_free_ char *name = NULL;
	char path[64];

	(void)snprintf(path, sizeof(path), "/sys/kernel/irq/%" PRIu64 "/actions", irq);
	if (io_read_file_at(AT_FDCWD, path, &name, NULL) >= 0)
		name[strcspn(name, "\n")] = '\0';
	(void)snprintf(ret, size, "%s%s%" PRIu64, name && *name ? name : "",
		       name && *name ? " " : "", irq);
}

static void name_softirq(uint64_t vec, char *ret, size_t size)
{
	static const char *const vectors[] = {"HI",	  "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
					      "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};

	if (vec < ARRAY_SIZE(vectors))
		(void)snprintf(ret, size, "%s", vectors[vec]);
	else
		(void)snprintf(ret, size, "%" PRIu64, vec);
}

static enum span_waker waker_of(uint64_t flags, uint64_t pid)
{
	if (flags & FLAG_HARDIRQ)
		return SPAN_WAKER_IRQ;
	if (flags & FLAG_SOFTIRQ)
		return SPAN_WAKER_SOFTIRQ;
	return pid > 0 ? SPAN_WAKER_TASK : SPAN_WAKER_IDLE;
}

struct reading {
	struct event_text *text;
	const struct subbuf_event *event;
};

static uint64_t number(const struct reading *r, const char *field)
{
	uint64_t value;

	return event_text_number(r->text, r->event->data, r->event->size, field, &value) ? value
											 : 0;
}

static void take_waker(const struct reading *r, struct latency_message *m)
{
	const uint64_t waker = number(r, "waker");

	event_text_string(r->text, r->event->data, r->event->size, "comm", m->comm,
			  sizeof(m->comm));
	m->preempted = (int32_t)waker == m->pid;
	m->waker = waker_of(number(r, "flags"), waker);
	m->waker_pid = m->waker == SPAN_WAKER_TASK ? (int32_t)waker : 0;
}

void latency_event_read(const struct latency_config *c, struct event_text *text, unsigned cpu,
			const struct subbuf_event *event, struct latency_message *ret)
{
	const struct reading r = {text, event};
	const bool of_task = c->kind == LATENCY_RUNQUEUE || c->kind == LATENCY_BLOCKED;
	const uint64_t device = number(&r, "dev");

	*ret = (struct latency_message){
		.type = LATENCY_HIT, .cpu = cpu, .nsec = number(&r, "nsec")};
	/* a request completes in whatever task is there */
	if (c->kind != LATENCY_BLOCK)
		ret->pid = (int32_t)number(&r, of_task ? "pid" : "common_pid");
	if (of_task)
		take_waker(&r, ret);
	else if (c->kind == LATENCY_IRQ)
		name_interrupt(number(&r, "irq"), ret->text, sizeof(ret->text));
	else if (c->kind == LATENCY_SOFTIRQ)
		name_softirq(number(&r, "vec"), ret->text, sizeof(ret->text));
	else if (c->kind == LATENCY_BLOCK)
		(void)snprintf(ret->text, sizeof(ret->text), "request of %" PRIu64 ":%" PRIu64,
			       device >> 20, device & 0xfffff);
}
