/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A drain's fds on their way into the service manager's FD store and out of it: what a kill would
 * lose. Main thread.
 */
#include <errno.h>

#include "daemon/plumbing/fdstore.h"
#include "daemon/session/session-internal.h"

static const char *name_of(char name[static 32], unsigned cpu, const char *what)
{
	(void)snprintf(name, 32, "cpu%u.%s", cpu, what);
	return name;
}

static struct drain_fds *take_fds(struct session *s)
{
	struct drain_fds *fds = drain_fds_new(instance_n_cpus(s->instance));
	struct fdstore *store = s->env->fdstore;
	char name[32];

	if (!fds)
		return NULL;
	fds->slots = fdstore_take(store, s->name, "slots");
	fds->old_slots = fds->slots >= 0;
	for (unsigned cpu = 0; cpu < fds->n_cpus; cpu++) {
		struct drain_cpu_fds *c = &fds->cpus[cpu];

		c->trace = fdstore_take(store, s->name, name_of(name, cpu, "trace"));
		c->old_trace = c->trace >= 0;
		c->pipe = fdstore_take(store, s->name, name_of(name, cpu, "pipe"));
		c->old_pipe = c->pipe >= 0;
	}
	return fds;
}

/* Those that were not there yet */
static void store_fds(struct session *s, bool had_slots)
{
	const struct drain_fds *fds = drain_fds(s->drain);
	struct fdstore *store = s->env->fdstore;
	char name[32];

	if (had_slots && !fds->old_slots)
		fdstore_drop(store, s->name, "slots");
	if (!fds->old_slots)
		fdstore_put(store, s->name, "slots", fds->slots);
	for (unsigned cpu = 0; cpu < fds->n_cpus; cpu++) {
		const struct drain_cpu_fds *c = &fds->cpus[cpu];

		if (!c->old_trace)
			fdstore_put(store, s->name, name_of(name, cpu, "trace"), c->trace);
		if (!c->old_pipe)
			fdstore_put(store, s->name, name_of(name, cpu, "pipe"), c->pipe);
	}
}

static void keep_fd(struct session *s, const char *what, int *fd, bool stored, bool keep)
{
	if (*fd < 0 || !stored)
		return;
	if (keep)
		fdstore_keep(s->env->fdstore, s->name, what, TAKE_FD(*fd));
	else
		fdstore_drop(s->env->fdstore, s->name, what);
}

/*
 * For the next start, in this process or another. Pipes that nobody has used yet are not kept: with
 * them the next one would not know that others were lost.
 * @stored: the new ones have been put into the store, too
 */
static void put_back(struct session *s, struct drain_fds *fds, bool stored, bool keep)
{
	char name[32];

	for (unsigned cpu = 0; cpu < fds->n_cpus; cpu++) {
		struct drain_cpu_fds *c = &fds->cpus[cpu];

		keep_fd(s, name_of(name, cpu, "pipe"), &c->pipe, stored || c->old_pipe,
			keep && (c->old_pipe || !c->empty));
		keep_fd(s, name_of(name, cpu, "trace"), &c->trace, stored || c->old_trace, keep);
	}
	keep_fd(s, "slots", &fds->slots, stored || fds->old_slots, keep);
	drain_fds_free(fds);
}

int session_open_drain(struct session *s, struct fault *why)
{
	struct drain_fds *fds = take_fds(s);
	bool had_slots = fds && fds->old_slots;
	int r;

	if (!fds)
		return fault_errno(why, -ENOMEM, "cannot start draining");
	r = drain_open(s->drain, s->instance, fds, why);
	if (r >= 0)
		store_fds(s, had_slots);
	else
		put_back(s, fds, false, true);
	return r;
}

void session_close_drain(struct session *s, bool keep)
{
	struct drain_fds *fds = NULL;

	drain_close(s->drain, &fds);
	/* Without, the start did not get so far: what is in the store is the next one's */
	if (fds)
		put_back(s, fds, true, keep);
	fdstore_flush(s->env->fdstore);
}
