/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "analysis/thin.h"

#define EVENTS_MAX 64U /* bits of a set */

/* One call of thin_events() */
struct turn {
	struct thin *thin;
	uint64_t kept;				 /* a bit for each event */
	struct thin_task *tasks[2 * EVENTS_MAX]; /* whose they are */
	unsigned n;
};

static bool is_plain(const struct field *field)
{
	return field->size == 4 && !field->is_dynamic;
}

static uint32_t end_of(const struct field *field)
{
	return field->offset + field->size;
}

void thin_init(struct thin *thin, const struct known_events *known, uint64_t nsec)
{
	const struct field *of_switch = known->fields[KNOWN_SWITCH];
	const struct field *woken = &known->fields[KNOWN_WAKING][WAKE_PID];

	*thin = (struct thin){
		.prev_pid = of_switch[SWITCH_PREV_PID].offset,
		.next_pid = of_switch[SWITCH_NEXT_PID].offset,
		.woken_pid = woken->offset,
		.switch_size = MAX(end_of(&of_switch[SWITCH_PREV_PID]),
				   end_of(&of_switch[SWITCH_NEXT_PID])),
		.waking_size = end_of(woken),
	};
	if (decoder_dat(known->decoder)->big_endian || !is_plain(&of_switch[SWITCH_PREV_PID]) ||
	    !is_plain(&of_switch[SWITCH_NEXT_PID]) || !is_plain(woken))
		return;
	for (uint32_t id = 0; id < SUBBUF_EVENT_IDS; id++) {
		if (known->event[id] == KNOWN_SWITCH)
			thin->on_switch = (uint16_t)id;
		if (known->event[id] == KNOWN_WAKING)
			thin->on_waking = (uint16_t)id;
	}
	if (thin->on_switch && thin->on_waking)
		thin->nsec = nsec;
}

static _always_inline_ uint32_t pid_at(const struct subbuf_event *event, uint32_t offset)
{
	uint32_t pid;

	memcpy(&pid, event->data + offset, sizeof(pid));
	return le32toh(pid);
}

/* Event @i is one of this task's. Return: NULL: of the idle task, or one that there is no place
 * for. */
static _always_inline_ struct thin_task *touch(struct turn *t, uint32_t pid, unsigned i)
{
	struct thin_task *task = &t->thin->tasks[pid % THIN_TASKS];

	if (pid == 0)
		return NULL;
	if (task->turn != t->thin->turn) {
		*task = (struct thin_task){
			.pid = pid, .turn = t->thin->turn, .last_out = (uint8_t)i};
		t->tasks[t->n++] = task;
		t->kept |= UINT64_C(1) << i;
	} else if (task->pid != pid) {
		t->kept |= UINT64_C(1) << i;
		return NULL;
	}
	task->last = (uint8_t)i;
	return task;
}

static _always_inline_ void take(struct turn *t, const struct subbuf_event *event, unsigned i)
{
	const struct thin *thin = t->thin;
	struct thin_task *task;
	uint16_t id = 0;

	if (event->size >= sizeof(id))
		memcpy(&id, event->data, sizeof(id));
	id = le16toh(id);
	if (id == thin->on_switch && event->size >= thin->switch_size) {
		task = touch(t, pid_at(event, thin->prev_pid), i);
		if (task)
			task->last_out = (uint8_t)i;
		task = touch(t, pid_at(event, thin->next_pid), i);
		if (task && !task->in) {
			task->in = true;
			t->kept |= UINT64_C(1) << i;
		}
	} else if (id == thin->on_waking && event->size >= thin->waking_size) {
		(void)touch(t, pid_at(event, thin->woken_pid), i);
	} else {
		t->kept |= UINT64_C(1) << i;
	}
}

unsigned thin_events(void *thin, struct subbuf_event *events, unsigned n)
{
	struct turn t = {.thin = thin, .kept = 1};
	unsigned left = 0;

	if (n == 0 || n > EVENTS_MAX || events[n - 1].ts - events[0].ts >= t.thin->nsec)
		return n;
	if (++t.thin->turn == 0) { /* wrapped around: old entries must not look current */
		memset(t.thin->tasks, 0, sizeof(t.thin->tasks));
		t.thin->turn = 1;
	}
	for (unsigned i = 0; i < n; i++)
		take(&t, &events[i], i);
	for (unsigned i = 0; i < t.n; i++)
		t.kept |= UINT64_C(1) << t.tasks[i]->last | UINT64_C(1) << t.tasks[i]->last_out;
	for (; t.kept; t.kept &= t.kept - 1)
		events[left++] = events[__builtin_ctzll(t.kept)];
	return left;
}
