/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "basic/log.h"
#include "daemon/control/control-internal.h"
#include "daemon/plumbing/guard.h"

struct peer *control_find_peer(struct control *c, sd_bus *bus)
{
	for (struct peer *p = c->peers; p; p = p->next)
		if (p->bus == bus)
			return p;
	return NULL;
}

struct peer *peer_new(struct control *c)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->control = c;
	p->fd = -EBADF;
	p->next = c->peers;
	c->peers = p;
	c->n_peers++;
	return p;
}

void peer_free(struct peer *p)
{
	struct control *c = p->control;

	for (struct peer **q = &c->peers; *q; q = &(*q)->next)
		if (*q == p) {
			*q = p->next;
			c->n_peers--;
			break;
		}
	control_forget_requests(p);
	control_start_works(c);
	sd_event_source_disable_unref(p->end_source);
	sd_event_source_disable_unref(p->patience_source);
	relay_free(p->relay);
	if (p->bus) {
		sd_bus_detach_event(p->bus);
		sd_bus_close_unref(p->bus);
	}
	/* Only now does nobody else have it open */
	guard_close(c->env->guard, p->fd, p->refuses, p->who.uid);
	free(p);
}

static int on_end(sd_event_source *source, void *userdata)
{
	peer_free(userdata);
	return 0;
}

void peer_end(struct peer *p)
{
	if (!p->end_source &&
	    sd_event_add_defer(p->control->env->event, &p->end_source, on_end, p) >= 0)
		(void)sd_event_source_set_priority(p->end_source, PRIORITY_ROOT - 1);
}

void peer_check_queue(struct peer *p)
{
	uint64_t n = 0;

	if (p->end_source || sd_bus_get_n_queued_write(p->bus, &n) < 0 ||
	    n <= (p->system ? CONTROL_BUS_QUEUE_MAX : CONTROL_QUEUE_MAX))
		return;
	if (p->system) {
		system_bus_leave(p->control->system);
		return;
	}
	log_debug("control: process %d does not read, hanging up", p->who.pid);
	peer_end(p);
}
