/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "engine/account.h"

int account_prepare(struct account *a, unsigned n_cpus)
{
	struct cpu_account *cpus;
	struct account_raw *last;

	if (n_cpus <= a->n_cpus)
		return 0;
	cpus = reallocarray(a->cpus, n_cpus, sizeof(*cpus));
	if (!cpus)
		return -ENOMEM;
	a->cpus = cpus;
	last = reallocarray(a->last, n_cpus, sizeof(*last));
	if (!last)
		return -ENOMEM;
	a->last = last;
	memset(cpus + a->n_cpus, 0, (n_cpus - a->n_cpus) * sizeof(*cpus));
	memset(last + a->n_cpus, 0, (n_cpus - a->n_cpus) * sizeof(*last));
	a->n_cpus = n_cpus;
	return 0;
}

void account_done(struct account *a)
{
	free(a->cpus);
	free(a->last);
	*a = (struct account){};
}

void account_begin(struct account *a, unsigned cpu, const struct account_raw *raw)
{
	if (cpu < a->n_cpus)
		a->last[cpu] = *raw;
}

static uint64_t gain(uint64_t last, uint64_t now)
{
	return now >= last ? now - last : now;
}

/* Events of a CPU */
static uint64_t lost(const struct account *a, const struct cpu_account *c)
{
	return (a->overwrites ? 0 : c->overrun) + c->commit_overrun + c->dropped_events;
}

void account_add(struct account *a, unsigned cpu, const struct account_raw *raw, uint64_t now_usec)
{
	struct account_raw *last;
	struct cpu_account *c;
	uint64_t before;

	if (cpu >= a->n_cpus)
		return;
	c = &a->cpus[cpu];
	last = &a->last[cpu];
	before = lost(a, c) + c->not_written;
	c->subbufs += gain(last->subbufs, raw->subbufs);
	c->bytes += gain(last->bytes, raw->bytes);
	c->not_written += gain(last->not_written, raw->not_written);
	c->overrun += gain(last->overrun, raw->overrun);
	c->commit_overrun += gain(last->commit_overrun, raw->commit_overrun);
	c->dropped_events += gain(last->dropped_events, raw->dropped_events);
	/* The kernel writes into a sub-buffer's header how much the overrun has grown since it gave
	 * out the one before: in the end the headers say the same. What is spliced is not read
	 * here.
	 */
	c->lost_events = a->overwrites ? 0 : c->overrun;
	c->torn += gain(last->torn, raw->torn);
	*last = *raw;
	if (lost(a, c) + c->not_written == before)
		return;
	a->last_loss_usec = now_usec;
	if (a->first_loss_usec == 0)
		a->first_loss_usec = now_usec;
}

void account_evict(struct account *a, unsigned cpu, uint64_t subbufs)
{
	if (cpu < a->n_cpus)
		a->cpus[cpu].evicted += subbufs;
}

uint64_t account_lost(const struct account *a)
{
	uint64_t n = 0;

	for (unsigned cpu = 0; cpu < a->n_cpus; cpu++)
		n += lost(a, &a->cpus[cpu]);
	return n;
}

uint64_t account_not_written(const struct account *a)
{
	uint64_t n = 0;

	for (unsigned cpu = 0; cpu < a->n_cpus; cpu++)
		n += a->cpus[cpu].not_written;
	return n;
}
