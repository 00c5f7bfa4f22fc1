/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events → what lasted from when to when: waits, runs, handlers, requests, system calls. One pass
 * over the events in order of time; what is kept is the state of each task, CPU and open request,
 * some bytes each, and never a list of what has passed. One thread.
 *
 *	running ──switched out, runnable──▶ preempted ──switched in──▶ running
 *	   ├──────switched out, D─────────▶ blocked ──┐
 *	   └──────switched out, else──────▶ asleep ───┴─woken──▶ woken ──switched in──▶ running
 *
 * sched_waking wakes where it is recorded, else sched_wakeup. A task that is woken a second time
 * while it waits to run must have run in between, whether or not that is in the recording: the wait
 * begins anew. One that was preempted may have been on its way to sleep, so that waking it proves
 * nothing; one that was switched out as runnable of its own accord had no such state.
 *
 * Nothing is guessed. What a task did before it is first seen is unknown; so is what it does from
 * when events were lost on its CPU until it is seen again, or on any CPU while it sleeps, is in a
 *system call or a request is under way. A span that began there is not given out but counted. Of a
 *file with several ring buffers each kind of event is taken from the first buffer that has it: two
 *of them may have recorded the same.
 */
#pragma once

#include "analysis/latency-config.h"
#include "analysis/thin.h"
#include "decode/event-stream.h"

#define PRIO_UNKNOWN INT32_MAX /* less urgent than any */

#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define SPANS_TASKS_MAX	 (UINT32_C(1) << 18) /* others are counted, see struct spans_totals */
#define SPANS_LABELS_MAX (UINT32_C(1) << 14) /* likewise */
#else
#define SPANS_TASKS_MAX	 (UINT32_C(1) << 5) /* within a fuzzer's reach */
#define SPANS_LABELS_MAX (UINT32_C(1) << 5)
#endif

enum span_kind {
	SPAN_RUNQUEUE, /* from runnable to switched in */
	SPAN_BLOCKED,  /* from switched out in D state to woken */
	SPAN_ASLEEP,   /* likewise, in another state */
	SPAN_RUN,      /* from switched in to switched out; of a CPU's idle task, too */
	SPAN_IRQ,
	SPAN_SOFTIRQ,
	SPAN_BLOCK, /* from issued to complete */
	SPAN_SYSCALL,
	SPAN_OOM,  /* of no length: this task was chosen to be killed */
	SPAN_PAIR, /* from one event to another one: spans_config.pairs */
	SPAN_LOSS, /* from the last event of a CPU to the next one that was not lost */
	_SPAN_MAX,
};

#define SPAN_BIT(kind) (1U << (kind))

struct span_task {
	int32_t pid;
	uint32_t index; /* numbered as they are first seen */
	char comm[16];	/* NUL-terminated; "": not known */
};

/* What spans are about but for tasks: an interrupt, a device and what is done, a stack */
struct span_label {
	enum span_kind kind;
	uint32_t index;	 /* numbered as they are first seen */
	uint64_t number; /* of the interrupt, vector or system call; of the device, as dev_t has it
			  */
	char *text;	 /* its name; of a stack its functions, the outermost first; NULL: none */
};

enum span_waker {
	SPAN_WAKER_UNKNOWN,
	SPAN_WAKER_TASK,
	SPAN_WAKER_IDLE,
	SPAN_WAKER_IRQ,
	SPAN_WAKER_SOFTIRQ,
};

struct span {
	enum span_kind kind;
	uint32_t cpu; /* where it ended */
	uint64_t from, to;
	const struct span_task *task;	    /* NULL: the idle task, or none */
	const struct span_label *label;	    /* NULL: none, or unknown */
	bool preempted;			    /* of the two kinds of SPAN_RUNQUEUE this one */
	bool open;			    /* it goes on when the recording ends: spans_end() */
	enum span_waker waker;		    /* of the other, and of SPAN_BLOCKED and _ASLEEP */
	const struct span_task *waker_task; /* SPAN_OOM: who needed memory */
	/* SPAN_BLOCKED, _ASLEEP: the system call it is in; NULL: unknown */
	const struct span_label *call;
	uint32_t pair; /* SPAN_PAIR: by which of spans_config.pairs; task: of the first event */
	int32_t prio;  /* SPAN_RUN, and SPAN_RUNQUEUE when it ends: as the kernel counts it, -1 of
			  deadline tasks, 0 to 98 of real-time ones; or PRIO_UNKNOWN */
	uint64_t irq, softirq; /* SPAN_RUN: nanoseconds of it that handlers took, if recorded */
	uint64_t bytes;	       /* SPAN_BLOCK; SPAN_LOSS: events, 0: unknown how many */
};

struct spans_config {
	unsigned kinds; /* SPAN_BIT() of those wanted */
	/* SPAN_PAIR: those of LATENCY_PAIR; borrowed */
	const struct latency_config *pairs;
	size_t n_pairs;
	/* Tasks have the names that the file has for them before an event tells: on_span() looks
	 * at names */
	bool names;
	uint64_t shortest; /* of waits and SPAN_SYSCALL: shorter ones need not be given out;
			      nanoseconds */
	bool stacks;	   /* SPAN_BLOCKED with the kernel stack, if that was recorded */
	/* Less than 0 ends the analysis; what @span points to, but for tasks and labels, is good
	 * during the call */
	int (*on_span)(void *userdata, const struct span *span);
	void *userdata;
};

struct spans_totals {
	uint64_t from, to;     /* of the first and the last event; as decoder_time() */
	uint64_t events, lost; /* lost: as far as it is known */
	uint64_t gaps;	       /* how often some were lost */
	uint64_t ended;	       /* waits and the like that a loss has cut short */
	uint64_t unknown;      /* ends of waits whose beginning is not in the recording */
	uint64_t hidden;       /* waits that began anew, the run before not being recorded */
	uint64_t left_out;     /* events of more tasks, labels, requests than there is room for */
	bool seen[_KNOWN_MAX]; /* such events there were */
};

/**
 * spans_totals_saw() - were there such events, or others that may stand in for them?
 */
static inline bool spans_totals_saw(const struct spans_totals *totals, enum known_event event)
{
	const bool *seen = totals->seen;

	return seen[event] || (event == KNOWN_WAKING && seen[KNOWN_WAKEUP]) ||
	       (event == KNOWN_RAW_ENTER && seen[KNOWN_CALL_ENTER]) ||
	       (event == KNOWN_RAW_EXIT && seen[KNOWN_CALL_EXIT]);
}

struct spans;

int spans_new(const struct spans_config *config, struct spans **ret);
struct spans *spans_free(struct spans *spans);
DEFINE_CLEANUP(struct spans *, spans_free)

/* What is looked up once in a file */
struct spans_file;

/**
 * spans_file_from() - the file may lack events of some CPUs up to this time
 * @from: as decoder_time(). What tasks were doing until then is unknown, as before a loss.
 */
void spans_file_from(struct spans_file *file, uint64_t from);

/**
 * spans_file_new() - before the first event of a file
 * @decoder: outlives @ret
 * Return: 0, -ENOMEM, or -EINVAL if an event of a pair lacks a field; with @why.
 */
int spans_file_new(struct spans *spans, const struct decoder *decoder, struct spans_file **ret,
		   struct fault *why);

/**
 * spans_file_pick() - which of its events are looked at
 * @by_number: of system calls only those with the numbers that are in @ret; else all
 */
void spans_file_pick(const struct spans_file *file, bool by_number, struct subbuf_pick *ret);

/**
 * spans_file_thin() - prepare to drop, before spans_run(), switches and wake-ups that are part of
 * no wait of @nsec or longer; where other spans need them nothing is dropped
 */
void spans_file_thin(const struct spans *spans, const struct spans_file *file, uint64_t nsec,
		     struct thin *ret);

/**
 * spans_file_learn() - take the names that the file has for tasks whose events had none
 */
int spans_file_learn(struct spans *spans, const struct spans_file *file, struct fault *why);
struct spans_file *spans_file_free(struct spans_file *file);
DEFINE_CLEANUP(struct spans_file *, spans_file_free)

/**
 * spans_run() - take the next events in order of time, of whichever file
 * Return: 0, what on_span() returned, or -ENOMEM.
 */
int spans_run(struct spans *spans, struct spans_file *file, const struct event_run *run);

/**
 * spans_event() - the same of a single one
 */
int spans_event(struct spans *spans, struct spans_file *file, const struct decode_event *event);

/**
 * spans_not_recorded() - up to now "SYSTEM:NAME" was not recorded for a while
 * What takes that event and was going on is not known any more, as after a loss.
 */
void spans_not_recorded(struct spans *spans, const char *event);

/**
 * spans_end() - give out the runs and waits that go on when the recording ends
 * Return: as spans_event().
 */
int spans_end(struct spans *spans);

/**
 * spans_waiting() - give out the waits, handlers, requests and system calls that go on and began at
 * @before or earlier; they are given out again when they end
 * @now: until when they have gone on, not before the last event
 * Return: as spans_event().
 */
int spans_waiting(struct spans *spans, uint64_t before, uint64_t now);

/**
 * spans_pair_seen() - has a recording had this event, 0 or 1, of that pair?
 */
bool spans_pair_seen(const struct spans *spans, size_t pair, unsigned event);

const struct spans_totals *spans_totals(const struct spans *spans);

/**
 * spans_tasks() - how many tasks there are; spans_task() - one of them by its index
 */
uint32_t spans_tasks(const struct spans *spans);
const struct span_task *spans_task(const struct spans *spans, uint32_t index);
