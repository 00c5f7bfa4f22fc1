/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "basic/macro.h"
#include "engine/parallel.h"

#define THREADS_MAX 64U

struct parallel {
	int (*work)(void *userdata, unsigned item);
	void *userdata;
	unsigned n;
	_Atomic unsigned next;
	_Atomic int error;
};

static void *run(void *userdata)
{
	struct parallel *p = userdata;
	unsigned item;

	while (atomic_load(&p->error) == 0 && (item = atomic_fetch_add(&p->next, 1)) < p->n) {
		int none = 0, r = p->work(p->userdata, item);

		if (r < 0)
			(void)atomic_compare_exchange_strong(&p->error, &none, r);
	}
	return NULL;
}

int parallel_run(unsigned n, unsigned n_threads, int (*work)(void *userdata, unsigned item),
		 void *userdata)
{
	struct parallel p = {.work = work, .userdata = userdata, .n = n};
	pthread_t threads[THREADS_MAX];
	unsigned started = 0, wanted = MIN(MIN(n, n_threads), THREADS_MAX);

	/* Signals are blocked on the job's thread already. Too few threads: it takes longer */
	while (started + 1 < wanted && pthread_create(&threads[started], NULL, run, &p) == 0)
		started++;
	(void)run(&p);
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	return atomic_load(&p.error);
}
