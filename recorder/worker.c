/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "basic/now.h"
#include "recorder/worker.h"

#define STACK_SIZE (128 * KIB)

/* Pipe-fulls moved for one CPU before the others get their turn */
#define BUDGET 8

/* More than any ring buffer holds: the bound of the final drain */
#define DRAIN_ROUNDS (1U << 20)

/* Pipe-fulls that still go to the old file at a rotation, of what is in the ring buffer by then */
#define RETARGET_BUDGET 64

#define WAKE UINT64_MAX /* epoll user data of the eventfd; pumps have their index */

struct worker {
	pthread_t thread;
	struct pump **pumps;
	const struct pump_target *next;
	size_t n_pumps;
	int epoll_fd, wake_fd, notify_fd;
	_Atomic int64_t *bytes_left;
	_Atomic int request; /* 0: none; an enum worker_request until it is done */
	_Atomic bool flush;
	_Atomic unsigned flush_asked, flush_done; /* counts; done: up to that one */
	_Atomic bool tell_flushes;		  /* notify when a flush is done */
	_Atomic bool held; /* take nothing until it is flushed or has new targets */
	_Atomic bool tell; /* notify when something comes by itself, without a flush */
	_Atomic bool quit; /* of its own: a request that ends must not wipe it out */
	bool parked;	   /* left the ring buffers to the next process */
};

/* Of notify_fd, which the main thread polls, or wake_fd, which the worker does */
static void wake(int event_fd)
{
	uint64_t one = 1;

	(void)!write(event_fd, &one, sizeof(one));
}

/* ONESHOT: armed again only after the ring buffer said it is empty */
static void arm(struct worker *w, size_t i)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = i};

	(void)epoll_ctl(w->epoll_fd, EPOLL_CTL_MOD, w->pumps[i]->trace_fd, &event);
}

/* Run a pump, account for what it moved, tell the main thread what it must know */
static int run_one(struct worker *w, struct pump *p, bool flush, unsigned budget)
{
	int trouble = atomic_load_explicit(&p->trouble, memory_order_relaxed);
	uint64_t before = atomic_load_explicit(&p->total_bytes, memory_order_relaxed);
	int64_t moved, left;
	int r;

	r = pump_run(p, flush, budget);
	moved = (int64_t)(atomic_load_explicit(&p->total_bytes, memory_order_relaxed) - before);
	left = atomic_fetch_sub(w->bytes_left, moved);
	if ((left > 0 && left - moved <= 0) || r == PUMP_E_FULL ||
	    trouble != atomic_load_explicit(&p->trouble, memory_order_relaxed) ||
	    (!flush && moved > 0 && atomic_exchange(&w->tell, false)))
		wake(w->notify_fd);
	return r;
}

/* What the disk did not take from another CPU is in the pipe still, and goes first */
static int run(struct worker *w, struct pump *p, bool flush, unsigned budget)
{
	struct pump *holder = p->staging->holder;

	if (holder && holder != p)
		(void)run_one(w, holder, false, 0);
	return run_one(w, p, flush, budget);
}

static void on_readable(struct worker *w, size_t i)
{
	struct pump *p = w->pumps[i];
	uint64_t before = atomic_load_explicit(&p->total_bytes, memory_order_relaxed);
	int r;

	if (w->parked || atomic_load(&w->held))
		return;
	r = run(w, p, false, BUDGET);
	/*
	 * Level-triggered, so MORE comes back at once, after the other CPUs. Readable with nothing
	 * to take would come back at once too, for ever: wait for the flush timer. So does trouble.
	 */
	if (r == PUMP_E_MORE ||
	    (r == PUMP_E_EMPTY &&
	     atomic_load_explicit(&p->total_bytes, memory_order_relaxed) != before))
		arm(w, i);
}

static void flush_all(struct worker *w)
{
	for (size_t i = 0; i < w->n_pumps; i++) {
		int r = run(w, w->pumps[i], true, BUDGET);

		atomic_store(&w->pumps[i]->behind, r != PUMP_E_EMPTY);
		if (r == PUMP_E_EMPTY || r == PUMP_E_MORE)
			arm(w, i);
	}
}

/* What was asked for while it runs may have come too late for it, and gets another one */
static void serve_flush(struct worker *w)
{
	unsigned asked = atomic_load(&w->flush_asked);

	flush_all(w);
	atomic_store(&w->flush_done, asked);
	if (atomic_load(&w->tell_flushes))
		wake(w->notify_fd);
}

static void drain_all(struct worker *w)
{
	for (size_t i = 0; i < w->n_pumps; i++) {
		struct pump *p = w->pumps[i];

		for (unsigned n = 0; n < DRAIN_ROUNDS && !atomic_load(&w->quit); n++) {
			uint64_t before = atomic_load(&p->total_bytes);
			int r = run(w, p, true, BUDGET);

			/* EMPTY after a partial sub-buffer is "for now": ask once more */
			if (r < 0 || r == PUMP_E_FULL || r == PUMP_E_HELD ||
			    (r == PUMP_E_EMPTY && atomic_load(&p->total_bytes) == before))
				break;
		}
		pump_note_stats(p);
	}
}

static void serve(struct worker *w)
{
	int request = atomic_load(&w->request);

	switch (request) {
	case WORKER_RETARGET:
		/*
		 * Partial sub-buffers too: what comes later begins later, on every CPU. Not what is
		 * held: that is the next file's.
		 */
		if (w->pumps[0]->staging->holder)
			(void)pump_run(w->pumps[0]->staging->holder, false, 0);
		for (size_t i = 0; i < w->n_pumps; i++) {
			if (!atomic_load(&w->held))
				(void)pump_run(w->pumps[i], true, RETARGET_BUDGET);
			pump_retarget(w->pumps[i], &w->next[i]);
		}
		atomic_store(&w->held, false);
		atomic_store(&w->flush, true); /* what had found its region full goes on */
		break;
	case WORKER_FLUSH:
		flush_all(w);
		break;
	case WORKER_FINISH:
		drain_all(w);
		break;
	case WORKER_LEAVE:
		w->parked = true;
		for (size_t i = 0; i < w->n_pumps; i++)
			(void)run(w, w->pumps[i], false, 0);
		break;
	}
	if (request != 0) {
		atomic_store(&w->request, 0);
		wake(w->notify_fd);
	}
}

static void *worker_main(void *userdata)
{
	struct worker *w = userdata;
	struct epoll_event events[32];
	uint64_t drop;

	(void)pthread_setname_np(pthread_self(), "flyrec-drain");
	for (;;) {
		int n = epoll_wait(w->epoll_fd, events, ARRAY_SIZE(events), -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.u64 != WAKE) {
				on_readable(w, events[i].data.u64);
				continue;
			}
			(void)!read(w->wake_fd, &drop, sizeof(drop));
			serve(w);
			if (atomic_load(&w->quit))
				return NULL;
			if (atomic_exchange(&w->flush, false) && !w->parked)
				serve_flush(w);
		}
	}
}

static int start_thread(struct worker *w)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int r;

	r = -pthread_attr_init(&attr);
	if (r < 0)
		return r;
	(void)pthread_attr_setstacksize(&attr, STACK_SIZE);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = -pthread_create(&w->thread, &attr, worker_main, w);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	(void)pthread_attr_destroy(&attr);
	return r;
}

static void worker_release(struct worker *w)
{
	close_p(&w->epoll_fd);
	close_p(&w->wake_fd);
	free(w);
}

int worker_new(struct pump **pumps, const struct pump_target *next, size_t n_pumps, int notify_fd,
	       _Atomic int64_t *bytes_left, struct worker **ret)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = WAKE};
	struct worker *w = calloc(1, sizeof(*w));
	int r = 0;

	if (!w)
		return -ENOMEM;
	w->pumps = pumps;
	w->next = next;
	w->n_pumps = n_pumps;
	w->notify_fd = notify_fd;
	w->bytes_left = bytes_left;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epoll_fd < 0 || w->wake_fd < 0 ||
	    epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->wake_fd, &event) < 0)
		r = -errno;
	for (size_t i = 0; i < n_pumps && r >= 0; i++) {
		event = (struct epoll_event){.events = EPOLLIN | EPOLLONESHOT, .data.u64 = i};
		if (epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, pumps[i]->trace_fd, &event) < 0)
			r = -errno;
	}
	if (r >= 0)
		r = start_thread(w);
	if (r < 0) {
		worker_release(w);
		return r;
	}
	*ret = w;
	return 0;
}

int worker_post(struct worker *w, enum worker_request request)
{
	int none = 0;

	if (!atomic_compare_exchange_strong(&w->request, &none, (int)request))
		return -EBUSY;
	wake(w->wake_fd);
	return 0;
}

void worker_tell(struct worker *w)
{
	atomic_store(&w->tell, true);
}

void worker_hold(struct worker *w)
{
	atomic_store(&w->held, true);
}

void worker_flush(struct worker *w)
{
	atomic_store(&w->held, false);
	atomic_fetch_add(&w->flush_asked, 1);
	atomic_store(&w->flush, true);
	wake(w->wake_fd);
}

void worker_tell_flushes(struct worker *w, bool on)
{
	atomic_store(&w->tell_flushes, on);
}

bool worker_flushed(const struct worker *w)
{
	return atomic_load(&w->flush_done) == atomic_load(&w->flush_asked);
}

bool worker_done(const struct worker *w)
{
	return atomic_load(&w->request) == 0;
}

uint64_t worker_cpu_nsec(const struct worker *w)
{
	clockid_t clock;

	return pthread_getcpuclockid(w->thread, &clock) == 0 ? now_nsec(clock) : 0;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	atomic_store(&w->quit, true);
	wake(w->wake_fd);
	(void)pthread_join(w->thread, NULL);
	worker_release(w);
}
