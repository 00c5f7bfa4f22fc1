/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that a disk may keep waiting, each on a thread of its own. On a disk that hangs they all
 * stay, so there are so many threads and no more; the other calls wait for their turn, and each
 * user has a share. A peer has one at work, and the next when it has read the answer. Main thread.
 */
#include <errno.h>

#include "daemon/control/control-internal.h"
#include "daemon/plumbing/job.h"

struct work {
	struct work *next;
	struct control_request *request;
	int (*work)(void *data);
	void (*answer)(struct control_request *request, void *data, int result);
	void *data;
	uid_t uid;
	bool admin, at_work;
};

static void end(struct work *w, int result)
{
	for (struct work **p = &w->request->control->works; *p; p = &(*p)->next)
		if (*p == w) {
			*p = w->next;
			break;
		}
	w->answer(w->request, w->data, result);
	free(w);
}

static int run_work(void *userdata, struct fault *why)
{
	struct work *w = userdata;

	return w->work(w->data);
}

static void on_work_done(void *userdata, int result, const struct fault *why)
{
	struct work *w = userdata;
	struct control *c = w->request->control;

	end(w, result);
	control_start_works(c);
}

static bool may_start(const struct work *w)
{
	const struct peer *p = w->request->peer;
	unsigned all = 0, own = 0;
	uint64_t unread = 0;

	for (const struct work *other = w->request->control->works; other; other = other->next) {
		if (!other->at_work)
			continue;
		if (!p->system && other->request->peer == p)
			return false;
		all++;
		own += other->uid == w->uid;
	}
	if (all >= CONTROL_WORKS_MAX - (w->admin ? 0 : CONTROL_WORKS_RESERVED) ||
	    (w->uid != 0 && own >= CONTROL_WORKS_PER_UID))
		return false;
	return p->system || sd_bus_get_n_queued_write(p->bus, &unread) < 0 || unread == 0;
}

void control_start_works(struct control *c)
{
	for (struct work *w = c->works, *next; w; w = next) {
		int r = 0;

		next = w->next;
		if (w->at_work)
			continue;
		if (!w->request->peer)
			r = -ECANCELED; /* nobody waits for it any more */
		else if (may_start(w))
			r = job_start(c->env->event, run_work, on_work_done, w);
		else
			continue;
		if (r < 0)
			end(w, r);
		else
			w->at_work = true;
	}
}

int control_work(struct control_request *request, int (*work)(void *data),
		 void (*answer)(struct control_request *request, void *data, int result),
		 void *data)
{
	struct control *c = request->control;
	struct work *w = calloc(1, sizeof(*w)), **last = &c->works;

	if (!w) {
		answer(request, data, -ENOMEM);
		return 1;
	}
	*w = (struct work){
		.request = request,
		.work = work,
		.answer = answer,
		.data = data,
		.uid = control_caller_uid(c, request->call),
		.admin = control_caller_is_admin(c, request->call),
	};
	while (*last)
		last = &(*last)->next;
	*last = w;
	control_start_works(c);
	return 1;
}
