/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "analysis/labels.h"
#include "analysis/pairs.h"
#include "analysis/spans.h"
#include "decode/symbols.h"

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define PIDS_MAX (UINT32_C(1) << 22) /* the kernel's PID_MAX_LIMIT */
#define REQUESTS (UINT32_C(1) << 14)
#else /* the time of a fuzzer goes by in cleared memory else */
#define PIDS_MAX (UINT32_C(1) << 15)
#define REQUESTS (UINT32_C(1) << 5)
#endif
#define PROBES	     16U
#define STACK_FRAMES 64U
#define FRAME_NAME   128U

/* prev_state: include/linux/sched.h of all kernels since 4.14, and of those before as far as told
 * apart here */
#define STATE_MASK	0xffU
#define STATE_DISK	0x02U  /* TASK_UNINTERRUPTIBLE */
#define STATE_NOLOAD	0x400U /* before 4.14: idle threads, which show as D, too */
#define STATE_PREEMPTED (~UINT64_C(0xff) & ~(uint64_t)STATE_NOLOAD) /* "R+" */

/* common_flags: enum trace_flag_type */
#define FLAG_HARDIRQ 0x08U
#define FLAG_SOFTIRQ 0x10U

enum state {
	STATE_UNKNOWN,
	STATE_RUNNING,
	STATE_WOKEN,
	STATE_OUT_RUNNABLE, /* preempted, or so that waking it would prove that it ran: YIELDED */
	STATE_YIELDED,
	STATE_BLOCKED,
	STATE_ASLEEP,
};

/* Since when, and on which CPU: void once events were lost there or, with ANYWHERE, on any CPU, as
 * any of them may have had the event that ended it */
struct since {
	uint64_t ts;
	uint32_t cpu, epoch;
};

#define ANYWHERE 0x80000000U /* a bit of epoch */

struct task {
	struct span_task shown;
	struct since since; /* of the state */
	uint8_t state;
	uint8_t waker; /* enum span_waker */
	bool waking;   /* woken by sched_waking, whose sched_wakeup may follow */
	uint32_t waker_index;
	const struct span_label *stack;
	struct since call; /* epoch 0: in no system call */
	uint32_t call_number;
};

/* A handler that runs on a CPU */
struct handler {
	bool open;
	uint64_t ts;
	uint64_t nested; /* of a softirq: what interrupts took of it */
	const struct span_label *label;
	uint32_t number;
};

struct cpu {
	uint32_t epoch; /* from 1 on; grows when events were lost */
	uint64_t last;	/* when its last event was */
	int32_t pid;	/* whose that was, and the first one of this task in a row */
	uint64_t pid_since;
	bool known;	      /* what runs there is: */
	struct task *current; /* NULL: the idle task */
	uint64_t since;
	int32_t prio;
	struct handler irq, softirq;
	uint64_t in_irq, in_softirq; /* nanoseconds since then */
	const struct task *out;	     /* was switched out last, its stack may follow */
};

struct request {
	uint32_t device;
	uint64_t sector;
	struct since since; /* epoch 0: none */
	uint64_t bytes;
	const struct span_label *label;
};

struct spans_file {
	const struct decoder *decoder;
	const struct decoder_facts *facts;
	struct known_events known;
	struct tasks *names;	       /* spans_config.names */
	struct pairs_file pairs;       /* nothing in it without pairs */
	uint32_t buffers[_KNOWN_MAX];  /* from which such events are taken; UINT32_MAX: none yet */
	struct symbols_cache *symbols; /* made with the first stack */
	uint64_t from;		       /* up to then some CPUs may lack events; 0: none does */
};

struct spans {
	struct spans_config config;
	struct spans_totals totals;
	struct spans_file *file; /* of the event that is being taken */
	bool lacks;		 /* before its from */

	struct cpu *cpus;
	uint32_t n_cpus;
	uint32_t *by_pid; /* index of a task + 1 */
	struct task *tasks;
	uint32_t n_tasks;
	uint32_t epoch; /* as that of a CPU, of all of them */
	struct labels *labels;
	struct pairs *pairs;	  /* NULL: there are none */
	struct request *requests; /* open-addressed, REQUESTS of them */
};

int spans_new(const struct spans_config *config, struct spans **ret)
{
	_cleanup_(spans_freep) struct spans *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->config = *config;
	/* only those pages of them are taken that are in use */
	s->by_pid = calloc(PIDS_MAX, sizeof(*s->by_pid));
	s->tasks = calloc(SPANS_TASKS_MAX, sizeof(*s->tasks));
	s->requests = calloc(REQUESTS, sizeof(*s->requests));
	if (!s->by_pid || !s->tasks || !s->requests || labels_new(SPANS_LABELS_MAX, &s->labels) < 0)
		return -ENOMEM;
	if (config->n_pairs > 0 && pairs_new(config->pairs, config->n_pairs, &s->pairs) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(s);
	return 0;
}

struct spans *spans_free(struct spans *spans)
{
	if (!spans)
		return NULL;
	pairs_free(spans->pairs);
	labels_free(spans->labels);
	free(spans->requests);
	free(spans->by_pid);
	free(spans->tasks);
	free(spans->cpus);
	free(spans);
	return NULL;
}

bool spans_pair_seen(const struct spans *spans, size_t pair, unsigned event)
{
	return spans->pairs && pairs_seen(spans->pairs, pair, event);
}

const struct spans_totals *spans_totals(const struct spans *spans)
{
	return &spans->totals;
}

uint32_t spans_tasks(const struct spans *spans)
{
	return spans->n_tasks;
}

const struct span_task *spans_task(const struct spans *spans, uint32_t index)
{
	return &spans->tasks[index].shown;
}

/* --- files */

/* Which events it takes to find a kind of span */
static unsigned kinds_of(enum known_event event)
{
	const unsigned waits =
		SPAN_BIT(SPAN_RUNQUEUE) | SPAN_BIT(SPAN_BLOCKED) | SPAN_BIT(SPAN_ASLEEP);

	switch (event) {
	case KNOWN_SWITCH:
		return waits | SPAN_BIT(SPAN_RUN);
	case KNOWN_WAKING:
	case KNOWN_WAKEUP:
	case KNOWN_WAKEUP_NEW:
	case KNOWN_MIGRATE:
		return waits;
	case KNOWN_STACK:
		return SPAN_BIT(SPAN_BLOCKED);
	case KNOWN_IRQ_ENTRY:
	case KNOWN_IRQ_EXIT:
		return SPAN_BIT(SPAN_IRQ);
	case KNOWN_SOFTIRQ_ENTRY:
	case KNOWN_SOFTIRQ_EXIT:
		return SPAN_BIT(SPAN_SOFTIRQ);
	case KNOWN_BLOCK_ISSUE:
	case KNOWN_BLOCK_COMPLETE:
		return SPAN_BIT(SPAN_BLOCK);
	case KNOWN_RAW_ENTER:
	case KNOWN_RAW_EXIT:
	case KNOWN_CALL_ENTER:
	case KNOWN_CALL_EXIT:
		return SPAN_BIT(SPAN_SYSCALL);
	case KNOWN_OOM:
		return SPAN_BIT(SPAN_OOM);
	case KNOWN_NOT:
	case _KNOWN_MAX:
		break;
	}
	return 0;
}

static int add_cpus(struct spans *s, uint32_t n)
{
	struct cpu *cpus;

	if (n <= s->n_cpus)
		return 0;
	cpus = reallocarray(s->cpus, n, sizeof(*cpus));
	if (!cpus)
		return -ENOMEM;
	s->cpus = cpus;
	while (s->n_cpus < n)
		cpus[s->n_cpus++] = (struct cpu){.epoch = 1};
	return 0;
}

int spans_file_new(struct spans *spans, const struct decoder *decoder, struct spans_file **ret,
		   struct fault *why)
{
	_cleanup_(spans_file_freep) struct spans_file *file = calloc(1, sizeof(*file));
	int r;

	if (!file || add_cpus(spans, decoder_dat(decoder)->n_cpus) < 0)
		return fault_errno(why, -ENOMEM, "cannot analyze");
	r = spans->pairs ? pairs_file_open(spans->pairs, decoder, &file->pairs, why) : 0;
	if (r >= 0 && spans->config.names)
		r = decoder_new_tasks(decoder, &file->names, why);
	if (r < 0)
		return r;
	file->decoder = decoder;
	file->facts = decoder_facts(decoder);
	known_events_find(&file->known, decoder);
	for (uint32_t id = 0; id < SUBBUF_EVENT_IDS; id++) {
		uint8_t *event = &file->known.event[id];

		if (!(kinds_of(*event) & spans->config.kinds) ||
		    (*event == KNOWN_STACK && !spans->config.stacks))
			*event = KNOWN_NOT;
	}
	memset(file->buffers, 0xff, sizeof(file->buffers));
	*ret = TAKE_PTR(file);
	return 0;
}

void spans_file_from(struct spans_file *file, uint64_t from)
{
	file->from = from;
}

void spans_file_pick(const struct spans_file *file, bool by_number, struct subbuf_pick *ret)
{
	const struct field *enter = &file->known.fields[KNOWN_RAW_ENTER][SYSCALL_NUMBER];
	const struct field *leave = &file->known.fields[KNOWN_RAW_EXIT][SYSCALL_NUMBER];
	const uint32_t low = decoder_dat(file->decoder)->big_endian ? enter->size - 4 : 0;

	ret->number_at = enter->offset + low;
	by_number = by_number && enter->size >= 4 && enter->offset == leave->offset &&
		    enter->size == leave->size;
	for (uint32_t id = 0; id < SUBBUF_EVENT_IDS; id++) {
		const enum known_event event = file->known.event[id];
		const bool call = event == KNOWN_RAW_ENTER || event == KNOWN_RAW_EXIT;

		if (file->pairs.wanted && file->pairs.wanted[id])
			ret->ids[id] = SUBBUF_PICK_ALL;
		else if (event != KNOWN_NOT)
			ret->ids[id] = call && by_number ? SUBBUF_PICK_BY_NUMBER : SUBBUF_PICK_ALL;
	}
}

void spans_file_thin(const struct spans *spans, const struct spans_file *file, uint64_t nsec,
		     struct thin *ret)
{
	/* whose spans tell what runs on the CPU then */
	const unsigned run = SPAN_BIT(SPAN_RUN) | SPAN_BIT(SPAN_IRQ) | SPAN_BIT(SPAN_SOFTIRQ);
	const uint8_t *paired = file->pairs.wanted;

	thin_init(ret, &file->known, nsec);
	if ((spans->config.kinds & run) || spans->config.stacks ||
	    (paired && (paired[ret->on_switch] || paired[ret->on_waking])))
		ret->nsec = 0;
}

struct spans_file *spans_file_free(struct spans_file *file)
{
	if (!file)
		return NULL;
	pairs_file_done(&file->pairs);
	tasks_free(file->names);
	free(file->symbols);
	free(file);
	return NULL;
}

/* Return: false without memory */
static bool name_task(struct task *task, struct tasks *names)
{
	const struct task_name *name = tasks_find(names, task->shown.pid);

	if (name && name->known)
		(void)snprintf(task->shown.comm, sizeof(task->shown.comm), "%s", name->text);
	return name;
}

int spans_file_learn(struct spans *spans, const struct spans_file *file, struct fault *why)
{
	_cleanup_(tasks_freep) struct tasks *tasks = NULL;

	for (uint32_t i = 0; i < spans->n_tasks; i++) {
		int r;

		if (spans->tasks[i].shown.comm[0] != '\0')
			continue;
		r = tasks ? 0 : decoder_new_tasks(file->decoder, &tasks, why);
		if (r < 0)
			return r;
		if (!name_task(&spans->tasks[i], tasks))
			return fault_errno(why, -ENOMEM, "cannot analyze");
	}
	return 0;
}

/* --- tasks */

/* NULL if there are too many */
static struct task *add_task(struct spans *s, uint32_t pid)
{
	struct task *task;

	if (s->n_tasks == SPANS_TASKS_MAX) {
		s->totals.left_out++;
		return NULL;
	}
	task = &s->tasks[s->n_tasks];
	task->shown = (struct span_task){.pid = (int32_t)pid, .index = s->n_tasks};
	s->by_pid[pid] = ++s->n_tasks;
	if (s->file->names)
		(void)name_task(task, s->file->names);
	return task;
}

/* NULL for pid 0 and for one too many */
static inline struct task *get_task(struct spans *s, uint64_t number)
{
	const uint32_t pid = (uint32_t)number;

	if (pid == 0 || pid >= PIDS_MAX)
		return NULL;
	return s->by_pid[pid] ? &s->tasks[s->by_pid[pid] - 1] : add_task(s, pid);
}

/* The same of a task that most likely runs on this CPU */
static inline struct task *get_running(struct spans *s, uint32_t cpu, uint64_t pid)
{
	struct task *current = s->cpus[cpu].current;

	return current && (uint32_t)current->shown.pid == (uint32_t)pid ? current
									: get_task(s, pid);
}

static void take_some_name(struct task *task, const struct field *field,
			   const struct decode_event *event)
{
	const uint8_t *text;
	uint32_t size;

	if (field->size == 0)
		return;
	text = field_bytes(field, event, &size);
	size = MIN(size, (uint32_t)sizeof(task->shown.comm) - 1);
	memcpy(task->shown.comm, text, size);
	task->shown.comm[size] = '\0';
}

/* All kernels of today have it as an array of this size */
static inline void take_name(struct task *task, const struct field *field,
			     const struct decode_event *event)
{
	if (field->size == sizeof(task->shown.comm) && !field->is_dynamic &&
	    event->size >= field->offset + sizeof(task->shown.comm)) {
		memcpy(task->shown.comm, event->data + field->offset, sizeof(task->shown.comm));
		task->shown.comm[sizeof(task->shown.comm) - 1] = '\0';
	} else {
		take_some_name(task, field, event);
	}
}

static struct since now_on(const struct spans *s, uint32_t cpu, uint64_t ts)
{
	return (struct since){.ts = ts, .cpu = cpu, .epoch = s->cpus[cpu].epoch};
}

static struct since now_anywhere(const struct spans *s, uint32_t cpu, uint64_t ts)
{
	return (struct since){.ts = ts, .cpu = cpu, .epoch = s->epoch | ANYWHERE};
}

static void move_to(const struct spans *s, struct since *since, uint32_t cpu)
{
	since->cpu = cpu;
	if (!(since->epoch & ANYWHERE))
		since->epoch = s->cpus[cpu].epoch;
}

static bool is_void(const struct spans *s, const struct since *since)
{
	return since->epoch !=
	       (since->epoch & ANYWHERE ? s->epoch | ANYWHERE : s->cpus[since->cpu].epoch);
}

/* The task's state, as far as it still is known */
static enum state state_of(struct spans *s, struct task *task)
{
	if (task->state != STATE_UNKNOWN && is_void(s, &task->since)) {
		s->totals.ended += task->state != STATE_RUNNING && task->state != STATE_ASLEEP;
		task->state = STATE_UNKNOWN;
	}
	return task->state;
}

static int give(const struct spans *s, const struct span *span)
{
	if (!(s->config.kinds & SPAN_BIT(span->kind)) || span->to < span->from)
		return 0;
	return s->config.on_span(s->config.userdata, span);
}

/* That of a number; @text: its name, if it is a new one */
static int number_label(struct spans *s, enum span_kind kind, uint64_t key, uint64_t number,
			const char *text, const struct span_label **ret)
{
	int r;

	*ret = labels_find(s->labels, kind, &key, sizeof(key));
	if (*ret)
		return 0;
	r = labels_add(s->labels, kind, &key, sizeof(key), number, text, ret);
	s->totals.left_out += r == LABELS_E_FULL;
	return MIN(r, 0);
}

/* What ends when the task is woken or switched in */
static inline int give_wait(struct spans *s, enum span_kind kind, const struct task *task,
			    uint32_t cpu, uint64_t to, bool open)
{
	struct span span;
	int r = 0;

	if (!(s->config.kinds & SPAN_BIT(kind)) ||
	    to - MIN(to, task->since.ts) < s->config.shortest)
		return 0;
	if (s->lacks) {
		s->totals.ended++;
		return 0;
	}
	span = (struct span){
		.kind = kind,
		.open = open,
		.cpu = cpu,
		.from = task->since.ts,
		.to = to,
		.task = &task->shown,
		.label = kind == SPAN_BLOCKED ? task->stack : NULL,
		.preempted = task->state == STATE_OUT_RUNNABLE || task->state == STATE_YIELDED,
		.waker = task->waker,
		.waker_task =
			task->waker == SPAN_WAKER_TASK ? &s->tasks[task->waker_index].shown : NULL,
		.prio = kind == SPAN_RUNQUEUE && !open ? s->cpus[cpu].prio : PRIO_UNKNOWN,
	};
	if (kind != SPAN_RUNQUEUE && task->call.epoch)
		r = number_label(s, SPAN_SYSCALL, task->call_number, task->call_number, "",
				 &span.call);
	return r < 0 ? r : give(s, &span);
}

/* --- sched */

static void set_state(struct spans *s, struct task *task, enum state state, uint32_t cpu,
		      uint64_t ts)
{
	task->state = (uint8_t)state;
	task->since = state == STATE_BLOCKED || state == STATE_ASLEEP ? now_anywhere(s, cpu, ts)
								      : now_on(s, cpu, ts);
	task->waker = SPAN_WAKER_UNKNOWN;
	task->waking = false;
	task->stack = NULL;
}

/* Who wants runs wants priorities */
static inline int32_t prio_of(const struct spans *s, const struct field *field,
			      const struct decode_event *event)
{
	return (s->config.kinds & SPAN_BIT(SPAN_RUN)) && field->size > 0
		       ? (int32_t)known_number(field, event)
		       : PRIO_UNKNOWN;
}

/* @task leaves the CPU; NULL: its idle task does */
static int switch_out(struct spans *s, const struct decode_event *event, struct task *task)
{
	struct cpu *cpu = &s->cpus[event->cpu];
	const struct field *fields = s->file->known.fields[KNOWN_SWITCH];
	uint64_t bits = known_number(&fields[SWITCH_PREV_STATE], event);
	const bool known = cpu->known && cpu->current == task;
	const uint64_t since = known ? cpu->since : cpu->pid_since;
	enum state state = STATE_ASLEEP;
	int r = 0;

	/* a task renames itself while it runs */
	if (task)
		take_name(task, &fields[SWITCH_PREV_COMM], event);
	/* where its switch-in is missing, its events tell that it ran */
	if ((s->config.kinds & SPAN_BIT(SPAN_RUN)) &&
	    (known || (task && cpu->pid == task->shown.pid && since < event->ts)))
		r = give(s, &(struct span){
				    .kind = SPAN_RUN,
				    .cpu = event->cpu,
				    .from = since,
				    .to = event->ts,
				    .prio = known ? cpu->prio
						  : prio_of(s, &fields[SWITCH_PREV_PRIO], event),
				    .irq = cpu->in_irq,
				    .softirq = cpu->in_softirq,
				    .task = task ? &task->shown : NULL});
	if (!known && cpu->known && cpu->current && cpu->current->state == STATE_RUNNING)
		cpu->current->state = STATE_UNKNOWN; /* it left at some time or other */
	if (!task || r < 0)
		return r;
	/* it was switched in, but that is not in the recording */
	s->totals.unknown += state_of(s, task) >= STATE_WOKEN;
	if (!(bits & STATE_MASK))
		state = bits & STATE_PREEMPTED ? STATE_OUT_RUNNABLE : STATE_YIELDED;
	else if ((bits & STATE_DISK) && !(bits & STATE_NOLOAD))
		state = STATE_BLOCKED;
	set_state(s, task, state, event->cpu, event->ts);
	return 0;
}

static int switch_in(struct spans *s, const struct decode_event *event, struct task *task)
{
	const struct field *fields = s->file->known.fields[KNOWN_SWITCH];
	struct cpu *cpu = &s->cpus[event->cpu];
	int r = 0;

	cpu->known = true;
	cpu->current = task;
	cpu->since = event->ts;
	cpu->in_irq = cpu->in_softirq = 0;
	cpu->prio = prio_of(s, &fields[SWITCH_NEXT_PRIO], event);
	if (!task)
		return 0;
	switch (state_of(s, task)) {
	case STATE_WOKEN:
	case STATE_OUT_RUNNABLE:
	case STATE_YIELDED:
		r = give_wait(s, SPAN_RUNQUEUE, task, event->cpu, event->ts, false);
		break;
	case STATE_UNKNOWN:
	case STATE_RUNNING:
	case STATE_BLOCKED:
	case STATE_ASLEEP:
		s->totals.unknown++;
		break;
	}
	set_state(s, task, STATE_RUNNING, event->cpu, event->ts);
	if (task->shown.comm[0] == '\0')
		take_name(task, &fields[SWITCH_NEXT_COMM], event);
	return r;
}

static int on_switch(struct spans *s, const struct decode_event *event)
{
	const struct field *fields = s->file->known.fields[KNOWN_SWITCH];
	struct task *prev =
		get_running(s, event->cpu, known_number(&fields[SWITCH_PREV_PID], event));
	struct task *next = get_task(s, known_number(&fields[SWITCH_NEXT_PID], event));
	int r = switch_out(s, event, prev);

	if (r >= 0)
		r = switch_in(s, event, next);
	s->cpus[event->cpu].out = prev;
	s->cpus[event->cpu].pid = -1; /* the next event tells who runs, and that from then on */
	return r;
}

/* By whom the task is woken: what runs on the event's CPU */
static inline void set_waker(struct spans *s, const struct decode_event *event, struct task *task)
{
	uint64_t flags = known_number(&s->file->facts->flags, event);
	const struct task *waker = get_running(s, event->cpu, (uint32_t)event->pid);

	if (flags & FLAG_HARDIRQ)
		task->waker = SPAN_WAKER_IRQ;
	else if (flags & FLAG_SOFTIRQ)
		task->waker = SPAN_WAKER_SOFTIRQ;
	else if (waker)
		task->waker = SPAN_WAKER_TASK;
	else
		task->waker = event->pid == 0 ? SPAN_WAKER_IDLE : SPAN_WAKER_UNKNOWN;
	task->waker_index = waker ? waker->shown.index : 0;
}

static int on_wake(struct spans *s, const struct decode_event *event, enum known_event kind)
{
	const struct field *fields = s->file->known.fields[kind];
	uint64_t cpu = known_number(&fields[WAKE_CPU], event);
	struct task *task = get_task(s, known_number(&fields[WAKE_PID], event));
	enum state state;
	int r = 0;

	if (!task)
		return 0;
	if (fields[WAKE_CPU].size == 0 || cpu >= s->n_cpus)
		cpu = event->cpu;
	state = kind == KNOWN_WAKEUP_NEW ? STATE_UNKNOWN : state_of(s, task);
	if (kind == KNOWN_WAKEUP_NEW)
		task->call.epoch = 0; /* of the task that had this pid before */
	switch (state) {
	case STATE_RUNNING: /* it has not gone to sleep yet */
	case STATE_OUT_RUNNABLE:
		return 0;
	case STATE_WOKEN:
		if (kind == KNOWN_WAKEUP && task->waking) {
			task->waking = false;
			move_to(s, &task->since, (uint32_t)cpu);
			return 0;
		}
		s->totals.hidden++;
		break;
	case STATE_YIELDED:
		s->totals.hidden++;
		break;
	case STATE_BLOCKED:
	case STATE_ASLEEP:
		set_waker(s, event, task);
		r = give_wait(s, state == STATE_BLOCKED ? SPAN_BLOCKED : SPAN_ASLEEP, task,
			      event->cpu, event->ts, false);
		if (r < 0)
			return r;
		break;
	case STATE_UNKNOWN:
		break;
	}
	take_name(task, &fields[WAKE_COMM], event);
	set_state(s, task, STATE_WOKEN, (uint32_t)cpu, event->ts);
	task->waking = kind == KNOWN_WAKING;
	set_waker(s, event, task);
	return r;
}

static void on_migrate(struct spans *s, const struct decode_event *event)
{
	const struct field *fields = s->file->known.fields[KNOWN_MIGRATE];
	uint64_t cpu = known_number(&fields[MIGRATE_CPU], event);
	struct task *task = get_task(s, known_number(&fields[MIGRATE_PID], event));

	if (!task || cpu >= s->n_cpus || state_of(s, task) == STATE_UNKNOWN)
		return;
	move_to(s, &task->since, (uint32_t)cpu);
}

/* --- the stack of who was switched out just before */

static int symbols_begin(struct spans *s)
{
	struct symbols_cache *cache;

	if (s->file->symbols)
		return 0;
	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return -ENOMEM;
	cache->symbols = decoder_symbols(s->file->decoder);
	if (!cache->symbols) {
		free(cache);
		return -ENOMEM;
	}
	s->file->symbols = cache;
	return 0;
}

/* "outermost;...;innermost" */
static char *stack_text(struct spans *s, const struct decode_event *event, const uint8_t *callers,
			size_t n, unsigned size)
{
	char *text = malloc(n * (FRAME_NAME + 1) + 1), *p = text;

	for (size_t i = n; text && i-- > 0;) {
		uint64_t start, address = decode_number(
					event, (uint64_t)(callers - event->data) + i * size, size);
		const char *name = symbols_find(s->file->symbols, address, &start);
		int length = name ? snprintf(p, FRAME_NAME, "%s", name)
				  : snprintf(p, FRAME_NAME, "0x%llx", (unsigned long long)address);

		p += MIN(length, (int)FRAME_NAME - 1);
		*p++ = ';';
	}
	if (text)
		p[p > text ? -1 : 0] = '\0';
	return text;
}

static int on_stack(struct spans *s, const struct decode_event *event)
{
	const struct field *field = &s->file->known.fields[KNOWN_STACK][STACK_CALLERS];
	const unsigned size = decoder_dat(s->file->decoder)->long_size;
	struct cpu *cpu = &s->cpus[event->cpu];
	const struct task *out = cpu->out;
	uint32_t offset = MIN(field->offset, event->size);
	size_t n = MIN((event->size - offset) / size, STACK_FRAMES);
	const uint8_t *callers = event->data + offset;
	_cleanup_free_ char *text = NULL;
	struct task *task;
	int r;

	cpu->out = NULL;
	if (!out || out->shown.pid != event->pid || out->state != STATE_BLOCKED)
		return 0;
	task = &s->tasks[out->shown.index];
	/* the array ends with ~0 where the event has room for more */
	while (n > 0 &&
	       decode_signed(decode_number(event, offset + (n - 1) * size, size), size) == -1)
		n--;
	task->stack = labels_find(s->labels, SPAN_BLOCKED, callers, n * size);
	if (task->stack || n == 0)
		return 0;
	r = symbols_begin(s);
	text = r < 0 ? NULL : stack_text(s, event, callers, n, size);
	if (!text)
		return -ENOMEM;
	r = labels_add(s->labels, SPAN_BLOCKED, callers, n * size, 0, text, &task->stack);
	s->totals.left_out += r == LABELS_E_FULL;
	return MIN(r, 0);
}

/* --- interrupts, requests, system calls */

static int on_entry(struct spans *s, const struct decode_event *event, enum known_event kind,
		    struct handler *handler)
{
	static const char *const vectors[] = {"HI",	  "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
					      "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
	const struct field *fields = s->file->known.fields[kind];
	uint32_t number = (uint32_t)known_number(&fields[IRQ_NUMBER], event), size;
	char name[48] = "";

	handler->open = true;
	handler->ts = event->ts;
	handler->nested = 0;
	if (handler->number == number && handler->label)
		return 0;
	handler->number = number;
	if (kind == KNOWN_SOFTIRQ_ENTRY) {
		(void)snprintf(name, sizeof(name), "%s",
			       number < ARRAY_SIZE(vectors) ? vectors[number] : "");
		return number_label(s, SPAN_SOFTIRQ, number, number, name, &handler->label);
	}
	if (fields[IRQ_NAME].size > 0) {
		const uint8_t *text = field_bytes(&fields[IRQ_NAME], event, &size);

		(void)snprintf(name, sizeof(name), "%.*s", (int)MIN(size, sizeof(name)), text);
	}
	return number_label(s, SPAN_IRQ, number, number, name, &handler->label);
}

static int on_exit_of(struct spans *s, const struct decode_event *event, enum known_event kind,
		      struct handler *handler)
{
	uint32_t number = (uint32_t)known_number(&s->file->known.fields[kind][IRQ_NUMBER], event);
	struct cpu *cpu = &s->cpus[event->cpu];
	uint64_t nsec = event->ts - MIN(event->ts, handler->ts);

	if (!handler->open || handler->number != number) {
		handler->open = false;
		s->totals.unknown++;
		return 0;
	}
	handler->open = false;
	if (kind == KNOWN_SOFTIRQ_EXIT) {
		cpu->in_softirq += nsec - MIN(nsec, handler->nested);
	} else {
		cpu->in_irq += nsec;
		cpu->softirq.nested += nsec;
	}
	return give(s,
		    &(struct span){.kind = kind == KNOWN_IRQ_EXIT ? SPAN_IRQ : SPAN_SOFTIRQ,
				   .cpu = event->cpu,
				   .from = handler->ts,
				   .to = event->ts,
				   .task = cpu->known && cpu->current ? &cpu->current->shown : NULL,
				   .label = handler->label});
}

/* Where the request is, or may be kept; one of the oldest that are in the way */
static struct request *find_request(const struct spans *s, uint32_t device, uint64_t sector)
{
	uint32_t at = (uint32_t)(((sector ^ device) * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
	struct request *best = NULL;

	for (unsigned i = 0; i < PROBES; i++) {
		struct request *request = &s->requests[(at + i) % REQUESTS];

		if (request->since.epoch && request->device == device && request->sector == sector)
			return request;
		if (!best || (best->since.epoch &&
			      (!request->since.epoch || request->since.ts < best->since.ts)))
			best = request;
	}
	return best;
}

static const char *operation(const struct field *field, const struct decode_event *event)
{
	static const struct {
		char letter;
		const char *name;
	} operations[] = {{'W', "write"}, {'R', "read"}, {'D', "discard"}, {'F', "flush"}};
	uint32_t size;
	const uint8_t *text = field_bytes(field, event, &size);

	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		if (memchr(text, operations[i].letter, strnlen((const char *)text, size)))
			return operations[i].name;
	return "other";
}

static int on_issue(struct spans *s, const struct decode_event *event)
{
	const struct field *fields = s->file->known.fields[KNOWN_BLOCK_ISSUE];
	uint32_t device = (uint32_t)known_number(&fields[BLOCK_DEVICE], event);
	uint64_t sector = known_number(&fields[BLOCK_SECTOR], event);
	const char *name = operation(&fields[BLOCK_KIND], event);
	struct request *request = find_request(s, device, sector);

	/* one that is issued again was put back */
	s->totals.left_out += request->since.epoch && request->sector != sector;
	request->device = device;
	request->sector = sector;
	request->bytes = 512 * known_number(&fields[BLOCK_SECTORS], event);
	request->since = now_anywhere(s, event->cpu, event->ts);
	return number_label(s, SPAN_BLOCK, (uint64_t)name[0] << 32 | device, device, name,
			    &request->label);
}

static int on_complete(struct spans *s, const struct decode_event *event)
{
	const struct field *fields = s->file->known.fields[KNOWN_BLOCK_COMPLETE];
	uint32_t device = (uint32_t)known_number(&fields[BLOCK_DEVICE], event);
	uint64_t sector = known_number(&fields[BLOCK_SECTOR], event);
	struct request *request = find_request(s, device, sector);
	const bool there =
		request->since.epoch && request->device == device && request->sector == sector;
	struct since since = request->since;

	if (!there) {
		s->totals.unknown++;
		return 0;
	}
	request->since.epoch = 0;
	if (is_void(s, &since)) {
		s->totals.ended++;
		return 0;
	}
	return give(s, &(struct span){.kind = SPAN_BLOCK,
				      .cpu = event->cpu,
				      .from = since.ts,
				      .to = event->ts,
				      .label = request->label,
				      .bytes = request->bytes});
}

/* Of a call that has events of its own its name is known: "read" of sys_enter_read */
static int name_call(struct spans *s, const struct decode_event *event, uint32_t number)
{
	int32_t format = decoder_find(s->file->decoder, event->id);
	const struct span_label *label;

	return number_label(s, SPAN_SYSCALL, number, number,
			    decoder_name(s->file->decoder, (size_t)format) + strlen("sys_enter_"),
			    &label);
}

/* Where raw_syscalls are recorded, too, these count */
static int on_call(struct spans *s, const struct decode_event *event, enum known_event kind)
{
	uint32_t number =
		(uint32_t)known_number(&s->file->known.fields[kind][SYSCALL_NUMBER], event);
	const bool enter = kind == KNOWN_RAW_ENTER || kind == KNOWN_CALL_ENTER;
	const bool counts = kind == KNOWN_RAW_ENTER || kind == KNOWN_RAW_EXIT ||
			    !s->totals.seen[KNOWN_RAW_ENTER];
	const struct span_label *label;
	struct task *task = get_running(s, event->cpu, (uint32_t)event->pid);
	struct since since;
	int r = kind == KNOWN_CALL_ENTER ? name_call(s, event, number) : 0;

	if (r < 0 || !task || !counts)
		return r;
	since = task->call;
	if (enter) {
		task->call = now_anywhere(s, event->cpu, event->ts);
		task->call_number = number;
		return 0;
	}
	task->call.epoch = 0;
	if (!since.epoch || task->call_number != number) {
		s->totals.unknown++;
		return 0;
	}
	if (is_void(s, &since)) {
		s->totals.ended++;
		return 0;
	}
	if (event->ts - MIN(event->ts, since.ts) < s->config.shortest)
		return 0;
	r = number_label(s, SPAN_SYSCALL, number, number, "", &label);
	return r < 0 ? r
		     : give(s, &(struct span){.kind = SPAN_SYSCALL,
					      .cpu = event->cpu,
					      .from = since.ts,
					      .to = event->ts,
					      .task = &task->shown,
					      .label = label});
}

/* --- events */

static int on_oom(struct spans *s, const struct decode_event *event)
{
	const struct field *fields = s->file->known.fields[KNOWN_OOM];
	struct task *task = get_task(s, known_number(&fields[OOM_PID], event));
	const struct task *by = get_task(s, (uint32_t)event->pid);

	if (!task)
		return 0;
	take_name(task, &fields[OOM_COMM], event);
	return give(s, &(struct span){.kind = SPAN_OOM,
				      .cpu = event->cpu,
				      .from = event->ts,
				      .to = event->ts,
				      .task = &task->shown,
				      .waker_task = by ? &by->shown : NULL});
}

static int on_pair(void *userdata, const struct pair *pair, uint64_t to)
{
	struct spans *s = userdata;
	const struct task *task = get_task(s, (uint32_t)pair->pid);

	if (s->lacks) {
		s->totals.ended++;
		return 0;
	}
	return give(s, &(struct span){.kind = SPAN_PAIR,
				      .open = pair->used,
				      .cpu = pair->cpu,
				      .from = pair->from,
				      .to = to,
				      .task = task ? &task->shown : NULL,
				      .pair = pair->number});
}

/* What was going on on this CPU is unknown from here on */
static int on_loss(struct spans *s, const struct event_run *run)
{
	struct cpu *cpu = &s->cpus[run->cpu];
	bool used = decoder_dat(s->file->decoder)->n_buffers < 2;

	s->totals.gaps++;
	s->totals.lost += run->missed > 0 ? (uint64_t)run->missed : 0;
	for (unsigned i = 0; i < _KNOWN_MAX; i++)
		used |= s->file->buffers[i] == run->buffer;
	if (!used)
		return 0;
	if (s->pairs)
		s->totals.ended += pairs_forget(s->pairs);
	cpu->epoch++;
	s->epoch++;
	cpu->known = cpu->irq.open = cpu->softirq.open = false;
	cpu->current = NULL;
	cpu->out = NULL;
	return give(s, &(struct span){.kind = SPAN_LOSS,
				      .cpu = run->cpu,
				      .from = cpu->last ? cpu->last : run->events[0].ts,
				      .to = run->events[0].ts,
				      .bytes = run->missed > 0 ? (uint64_t)run->missed : 0});
}

static int on_event(struct spans *s, const struct decode_event *event, enum known_event kind)
{
	struct cpu *cpu = &s->cpus[event->cpu];

	switch (kind) {
	case KNOWN_SWITCH:
		return on_switch(s, event);
	case KNOWN_WAKING:
	case KNOWN_WAKEUP:
	case KNOWN_WAKEUP_NEW:
		return on_wake(s, event, kind);
	case KNOWN_MIGRATE:
		on_migrate(s, event);
		break;
	case KNOWN_STACK:
		return on_stack(s, event);
	case KNOWN_IRQ_ENTRY:
		return on_entry(s, event, kind, &cpu->irq);
	case KNOWN_SOFTIRQ_ENTRY:
		return on_entry(s, event, kind, &cpu->softirq);
	case KNOWN_IRQ_EXIT:
		return on_exit_of(s, event, kind, &cpu->irq);
	case KNOWN_SOFTIRQ_EXIT:
		return on_exit_of(s, event, kind, &cpu->softirq);
	case KNOWN_BLOCK_ISSUE:
		return on_issue(s, event);
	case KNOWN_BLOCK_COMPLETE:
		return on_complete(s, event);
	case KNOWN_RAW_ENTER:
	case KNOWN_RAW_EXIT:
	case KNOWN_CALL_ENTER:
	case KNOWN_CALL_EXIT:
		return on_call(s, event, kind);
	case KNOWN_OOM:
		return on_oom(s, event);
	case KNOWN_NOT:
	case _KNOWN_MAX:
		break;
	}
	return 0;
}

/* All but who runs may have done anything where nothing was recorded */
static void forget_waits(struct spans *s, unsigned kinds)
{
	for (uint32_t i = 0; i < s->n_tasks; i++) {
		struct task *task = &s->tasks[i];

		if (kinds & SPAN_BIT(SPAN_SYSCALL))
			task->call.epoch = 0;
		if (!(kinds & SPAN_BIT(SPAN_BLOCKED)) || task->state == STATE_UNKNOWN ||
		    task->state == STATE_RUNNING)
			continue;
		s->totals.ended += task->state != STATE_ASLEEP;
		task->state = STATE_UNKNOWN;
		task->waker = SPAN_WAKER_UNKNOWN;
	}
	if (s->pairs)
		s->totals.ended += pairs_forget(s->pairs);
}

static void forget_requests(struct spans *s)
{
	for (uint32_t i = 0; i < REQUESTS; i++) {
		s->totals.ended += s->requests[i].since.epoch > 0;
		s->requests[i].since.epoch = 0;
	}
}

static void forget_runs(struct spans *s)
{
	for (uint32_t i = 0; i < s->n_tasks; i++)
		if (s->tasks[i].state == STATE_RUNNING)
			s->tasks[i].state = STATE_UNKNOWN;
	for (uint32_t i = 0; i < s->n_cpus; i++) {
		s->cpus[i].known = false;
		s->cpus[i].current = NULL;
		s->cpus[i].out = NULL;
		s->cpus[i].pid = -1;
	}
}

void spans_not_recorded(struct spans *spans, const char *event)
{
	const unsigned kinds = kinds_of(known_events_named(event));

	forget_waits(spans, kinds);
	if (kinds & SPAN_BIT(SPAN_RUN))
		forget_runs(spans);
	if (kinds & SPAN_BIT(SPAN_BLOCK))
		forget_requests(spans);
	for (uint32_t i = 0; i < spans->n_cpus && (kinds & SPAN_BIT(SPAN_IRQ)); i++)
		spans->cpus[i].irq.open = false;
	for (uint32_t i = 0; i < spans->n_cpus && (kinds & SPAN_BIT(SPAN_SOFTIRQ)); i++)
		spans->cpus[i].softirq.open = false;
}

/* Are events of this kind taken from this ring buffer? */
static bool is_taken(struct spans *s, enum known_event kind, uint32_t buffer)
{
	if (s->file->buffers[kind] == UINT32_MAX) {
		s->file->buffers[kind] = buffer;
		s->totals.seen[kind] = true;
	}
	return s->file->buffers[kind] == buffer;
}

int spans_run(struct spans *spans, struct spans_file *file, const struct event_run *run)
{
	const struct field *pid = &file->facts->pid;
	struct decode_event event = {
		.cpu = run->cpu, .buffer = run->buffer, .big_endian = run->big_endian};
	struct spans *s = spans;
	struct cpu *cpu = &s->cpus[run->cpu];
	const bool follow = s->config.kinds & SPAN_BIT(SPAN_RUN);
	int r = 0;

	s->file = file;
	if (s->totals.events == 0)
		s->totals.from = run->events[0].ts;
	s->totals.events += run->n;
	s->totals.to = run->events[run->n - 1].ts;
	if (file->from > 0 && run->events[0].ts >= file->from) {
		forget_waits(s, SPAN_BIT(SPAN_SYSCALL) | SPAN_BIT(SPAN_BLOCKED));
		file->from = 0;
	}
	s->lacks = file->from > 0;
	if (run->missed)
		r = on_loss(s, run);
	for (size_t i = 0; i < run->n && r >= 0; i++) {
		const struct subbuf_event *from = &run->events[i];
		uint16_t id = event_run_id(run, i);
		enum known_event kind = file->known.event[id];
		const bool paired = file->pairs.wanted && file->pairs.wanted[id];

		if (!follow && kind == KNOWN_NOT && !paired)
			continue;
		event.ts = from->ts;
		event.data = from->data;
		event.size = from->size;
		event.pid = (int32_t)known_number(pid, &event);
		if (event.pid != cpu->pid || (i == 0 && run->missed)) {
			cpu->pid = event.pid;
			cpu->pid_since = event.ts;
		}
		event.id = id;
		if (paired) {
			/* its file may be gone when on_pair() asks */
			(void)get_task(s, (uint32_t)event.pid);
			r = pairs_event(s->pairs, &file->pairs, &event, on_pair, s,
					&s->totals.left_out);
		}
		if (r >= 0 && kind != KNOWN_NOT && is_taken(s, kind, run->buffer))
			r = on_event(s, &event, kind);
	}
	cpu->last = run->events[run->n - 1].ts;
	return r;
}

int spans_event(struct spans *spans, struct spans_file *file, const struct decode_event *event)
{
	const struct subbuf_event one = {.ts = event->ts, .data = event->data, .size = event->size};
	const struct event_run run = {
		.events = &one,
		.n = 1,
		.cpu = event->cpu,
		.buffer = event->buffer,
		.missed = event->missed,
		.big_endian = event->big_endian,
	};

	return spans_run(spans, file, &run);
}

/* A task's wait that goes on, if that is one */
static int give_open_wait(struct spans *s, struct task *task, uint64_t to)
{
	enum state state = state_of(s, task);

	if (state == STATE_UNKNOWN || state == STATE_RUNNING || state == STATE_ASLEEP)
		return 0;
	return give_wait(s, state == STATE_BLOCKED ? SPAN_BLOCKED : SPAN_RUNQUEUE, task,
			 task->since.cpu, to, true);
}

int spans_end(struct spans *spans)
{
	struct spans *s = spans;
	const uint64_t end = s->totals.to;
	int r = 0;

	for (uint32_t i = 0; i < s->n_cpus && r >= 0; i++) {
		const struct cpu *cpu = &s->cpus[i];

		if (cpu->known)
			r = give(s, &(struct span){.kind = SPAN_RUN,
						   .open = true,
						   .cpu = i,
						   .from = cpu->since,
						   .to = end,
						   .prio = cpu->prio,
						   .irq = cpu->in_irq,
						   .softirq = cpu->in_softirq,
						   .task = cpu->current ? &cpu->current->shown
									: NULL});
	}
	for (uint32_t i = 0; i < s->n_tasks && r >= 0; i++)
		r = give_open_wait(s, &s->tasks[i], end);
	return r;
}

/* --- what goes on for long */

static int give_open_handler(struct spans *s, enum span_kind kind, uint32_t i, uint64_t before,
			     uint64_t now)
{
	const struct cpu *cpu = &s->cpus[i];
	const struct handler *handler = kind == SPAN_IRQ ? &cpu->irq : &cpu->softirq;

	if (!handler->open || handler->ts > before)
		return 0;
	return give(s,
		    &(struct span){.kind = kind,
				   .open = true,
				   .cpu = i,
				   .from = handler->ts,
				   .to = now,
				   .task = cpu->known && cpu->current ? &cpu->current->shown : NULL,
				   .label = handler->label});
}

static int give_open_call(struct spans *s, const struct task *task, uint64_t before, uint64_t now)
{
	struct span span = {
		.kind = SPAN_SYSCALL,
		.open = true,
		.cpu = task->call.cpu,
		.from = task->call.ts,
		.to = now,
		.task = &task->shown,
	};
	int r;

	if (!task->call.epoch || task->call.ts > before || is_void(s, &task->call))
		return 0;
	r = number_label(s, SPAN_SYSCALL, task->call_number, task->call_number, "", &span.label);
	return r < 0 ? r : give(s, &span);
}

static int give_open_request(struct spans *s, const struct request *request, uint64_t before,
			     uint64_t now)
{
	if (!request->since.epoch || request->since.ts > before || is_void(s, &request->since))
		return 0;
	return give(s, &(struct span){.kind = SPAN_BLOCK,
				      .open = true,
				      .cpu = request->since.cpu,
				      .from = request->since.ts,
				      .to = now,
				      .label = request->label,
				      .bytes = request->bytes});
}

int spans_waiting(struct spans *spans, uint64_t before, uint64_t now)
{
	struct spans *s = spans;
	int r = 0;

	for (uint32_t i = 0; i < s->n_tasks && r >= 0; i++) {
		struct task *task = &s->tasks[i];

		if (task->since.ts <= before)
			r = give_open_wait(s, task, now);
		if (r >= 0)
			r = give_open_call(s, task, before, now);
	}
	for (uint32_t i = 0; i < s->n_cpus && r >= 0; i++) {
		r = give_open_handler(s, SPAN_IRQ, i, before, now);
		if (r >= 0)
			r = give_open_handler(s, SPAN_SOFTIRQ, i, before, now);
	}
	/* no page of them is touched for nothing */
	for (uint32_t i = 0; i < REQUESTS && r >= 0 && s->config.kinds & SPAN_BIT(SPAN_BLOCK); i++)
		r = give_open_request(s, &s->requests[i], before, now);
	if (r >= 0 && s->pairs)
		r = pairs_waiting(s->pairs, before, now, on_pair, s);
	return r;
}
