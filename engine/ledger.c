/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "engine/ledger.h"
#include "recorder/kernel-text.h"

struct ledger_source {
	struct cpu_stats stats, ended;
	bool known, ended_known;
	struct ledger_moved moved;
	uint64_t events;       /* that the instance has traced, as far as they are counted */
	uint64_t dropped_told; /* bytes, in the files before this one */
};

static uint64_t traced(const struct cpu_stats *stats)
{
	return stats->entries + stats->overrun + stats->read_events;
}

int ledger_begin(struct ledger *l, const struct instance *instance, bool overwrites, bool foreign)
{
	unsigned n_cpus = instance_n_cpus(instance);
	struct ledger_source *sources;
	struct ledger_cpu *cpus;

	if (n_cpus > l->n_cpus) {
		cpus = reallocarray(l->cpus, n_cpus, sizeof(*cpus));
		if (!cpus)
			return -ENOMEM;
		l->cpus = cpus;
		sources = reallocarray(l->sources, n_cpus, sizeof(*sources));
		if (!sources)
			return -ENOMEM;
		l->sources = sources;
		memset(cpus + l->n_cpus, 0, (n_cpus - l->n_cpus) * sizeof(*cpus));
		l->n_cpus = n_cpus;
	}
	memset(l->sources, 0, l->n_cpus * sizeof(*l->sources));
	for (unsigned cpu = 0; cpu < n_cpus; cpu++) {
		struct ledger_source *source = &l->sources[cpu];

		source->known = instance_read_stats(instance, cpu, &source->stats) >= 0;
		source->events = traced(&source->stats);
	}
	l->overwrites = overwrites;
	l->foreign = foreign;
	l->untold = 0;
	return 0;
}

void ledger_done(struct ledger *l)
{
	free(l->cpus);
	free(l->sources);
	*l = (struct ledger){};
}

void ledger_count_from(struct ledger *l, unsigned cpu, const struct ledger_base *base)
{
	struct cpu_stats *stats = &l->sources[cpu].stats;

	stats->overrun = base->overrun;
	stats->commit_overrun = base->commit_overrun;
	stats->dropped_events = base->dropped_events;
}

static uint64_t gain(uint64_t last, uint64_t now)
{
	return now >= last ? now - last : now;
}

/* Events of a CPU */
static uint64_t lost(const struct ledger *l, const struct ledger_cpu *c)
{
	return (l->overwrites ? 0 : c->overrun) + c->commit_overrun + c->dropped_events;
}

/*
 * The kernel does not read its three counters at the same time: what is taken out meanwhile counts
 * twice, once. Such a sum is not added up, but compared with the highest one.
 */
static void count_events(struct ledger *l, struct ledger_source *source,
			 const struct cpu_stats *last)
{
	uint64_t events = traced(&source->stats);

	if (source->stats.read_events < last->read_events || source->stats.overrun < last->overrun)
		source->events = 0;
	if (events > source->events) {
		l->events += events - source->events;
		source->events = events;
	}
}

static void note_loss(struct ledger *l, uint64_t events, uint64_t not_written, uint64_t now_usec)
{
	l->lost += events;
	l->not_written += not_written;
	if (events + not_written == 0)
		return;
	l->last_loss_usec = now_usec;
	if (l->first_loss_usec == 0)
		l->first_loss_usec = now_usec;
}

const struct cpu_stats *ledger_read(struct ledger *l, const struct instance *instance, unsigned cpu,
				    const struct ledger_moved *moved, uint64_t now_usec)
{
	struct ledger_source *source = &l->sources[cpu];
	struct cpu_stats last = source->stats, *now = &source->stats;
	struct ledger_cpu foreign = {}, *c = l->foreign ? &foreign : &l->cpus[cpu], before = *c;

	source->known = instance_read_stats(instance, cpu, now) >= 0;
	c->subbufs += gain(source->moved.subbufs, moved->subbufs);
	c->bytes += gain(source->moved.bytes, moved->bytes);
	c->not_written += gain(source->moved.not_written, moved->not_written);
	c->torn += gain(source->moved.torn, moved->torn);
	c->overrun += gain(last.overrun, now->overrun);
	c->commit_overrun += gain(last.commit_overrun, now->commit_overrun);
	c->dropped_events += gain(last.dropped_events, now->dropped_events);
	/* The kernel writes into a sub-buffer's header how much the overrun has grown since it gave
	 * out the one before: in the end the headers say the same. What is spliced is not read
	 * here.
	 */
	c->lost_events = l->overwrites ? 0 : c->overrun;
	source->moved = *moved;
	l->untold += lost(l, c) - lost(l, &before);
	if (!l->foreign) {
		l->bytes += c->bytes - before.bytes;
		if (source->known)
			count_events(l, source, &last);
		note_loss(l, lost(l, c) - lost(l, &before), c->not_written - before.not_written,
			  now_usec);
	}
	return source->known ? now : NULL;
}

void ledger_end_file(struct ledger *l, unsigned cpu, const char *stats)
{
	struct ledger_source *source = &l->sources[cpu];

	source->ended_known = kernel_text_stats(stats, &source->ended) >= 0;
}

/* NULL: not known */
static const struct cpu_stats *stats_of(const struct ledger *l, unsigned cpu, bool boundary)
{
	const struct ledger_source *source = &l->sources[cpu];

	if (boundary)
		return source->ended_known ? &source->ended : NULL;
	return source->known ? &source->stats : NULL;
}

struct ledger_base ledger_base(const struct ledger *l, unsigned cpu, bool boundary)
{
	const struct cpu_stats *stats = stats_of(l, cpu, boundary);

	return stats ? (struct ledger_base){stats->overrun, stats->commit_overrun,
					    stats->dropped_events, stats->read_events, 0}
		     : (struct ledger_base){};
}

char *ledger_text(struct ledger *l, unsigned cpu, const struct ledger_base *base,
		  const struct ledger_file *file)
{
	const struct cpu_stats *stats = stats_of(l, cpu, file->ends);
	struct ledger_source *source = &l->sources[cpu];
	_cleanup_free_ char *counted = NULL, *left = NULL;
	uint64_t dropped = file->dropped_bytes - source->dropped_told;
	struct cpu_stats since;

	if (!stats)
		return NULL;
	since = *stats;
	if (base) {
		since.overrun -= base->overrun;
		since.commit_overrun -= base->commit_overrun;
		since.dropped_events -= base->dropped_events;
		since.read_events -= base->read_events;
	}
	counted = kernel_text_of_stats(cpu, &since);
	if (file->undrained)
		left = strf("flyrec left in the ring buffer events: %" PRIu64 "\n", stats->entries);
	if (!counted || (file->undrained && !left))
		return NULL;
	if (file->ends)
		source->dropped_told = file->dropped_bytes;
	return strf("%sflyrec subbufs: %" PRIu64 "\nflyrec bytes: %" PRIu64
		    "\nflyrec not written bytes: %" PRIu64
		    "\nflyrec maybe lost in a kill bytes: %" PRIu64 "\n%s%s%s",
		    counted, file->bytes / file->subbuf_size, file->bytes, dropped,
		    base ? base->in_flight : 0, file->more, left ? left : "",
		    file->ends ? "flyrec final: yes\n" : "");
}

void ledger_evict(struct ledger *l, unsigned cpu, uint64_t subbufs)
{
	if (cpu < l->n_cpus)
		l->cpus[cpu].evicted += subbufs;
}

void ledger_told(struct ledger *l)
{
	l->untold = 0;
}
