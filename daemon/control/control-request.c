/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that are answered later, when what was asked for is done. Main thread.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "basic/strv.h"
#include "daemon/control/control-internal.h"
#include "daemon/plumbing/job.h"

/* On the system bus, of this user; of root, who may be many programs, of this connection */
static unsigned count_open(const struct peer *p, sd_bus_message *call, uid_t uid)
{
	const char *sender = sd_bus_message_get_sender(call);
	unsigned n = 0;

	if (!p->system)
		return p->n_requests;
	for (const struct control_request *r = p->requests; r; r = r->next) {
		const char *other = sd_bus_message_get_sender(r->call);

		n += r->uid == uid && (uid != 0 || (sender && other && strcmp(sender, other) == 0));
	}
	return n;
}

int control_request_new(struct control *c, sd_bus_message *call, sd_bus_error *error,
			struct control_request **ret)
{
	struct peer *p = control_find_peer(c, sd_bus_message_get_bus(call));
	uid_t uid = control_caller_uid(c, call);
	struct control_request *request;
	unsigned open;

	if (!p)
		return -ENOTCONN;
	open = count_open(p, call, uid);
	if (open >= CONTROL_CALLS_MAX)
		return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
					 "%u calls of yours are not answered yet", open);
	request = calloc(1, sizeof(*request));
	if (!request)
		return -ENOMEM;
	*request = (struct control_request){
		.next = p->requests,
		.peer = p,
		.control = c,
		.call = sd_bus_message_ref(call),
		.uid = uid,
	};
	p->requests = request;
	p->n_requests++;
	*ret = request;
	return 0;
}

static void request_free(struct control_request *request)
{
	struct peer *p = request->peer;

	if (p) {
		LIST_REMOVE(p->requests, request);
		p->n_requests--;
	}
	sd_bus_slot_unref(request->owner_slot);
	sd_bus_slot_unref(request->look_slot);
	sd_bus_message_unref(request->call);
	free(request->complaints);
	free(request);
}

static void gone(struct control_request *request)
{
	void (*on_gone)(void *) = request->on_gone;

	request->on_gone = NULL;
	if (on_gone)
		on_gone(request->gone_userdata);
}

void control_forget_requests(struct peer *p)
{
	while (p->requests) {
		struct control_request *r = p->requests;

		p->requests = r->next;
		r->peer = NULL;
		r->next = NULL;
		/* They are the connection's */
		r->owner_slot = sd_bus_slot_unref(r->owner_slot);
		r->look_slot = sd_bus_slot_unref(r->look_slot);
		gone(r);
	}
	p->n_requests = 0;
}

static int on_owner(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const char *name, *before, *now;

	if (sd_bus_message_read(m, "sss", &name, &before, &now) >= 0 && !*now)
		gone(userdata);
	return 0;
}

static int on_look(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	if (sd_bus_message_is_method_error(m, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
		gone(userdata);
	return 0;
}

/* To be told when it goes; then, whether it has gone by now. Without waiting for the bus' answers.
 */
static void watch_sender(struct control_request *request)
{
	const char *sender = sd_bus_message_get_sender(request->call);
	sd_bus *bus = request->peer->bus;
	_cleanup_free_ char *match = NULL;

	if (!sender)
		return;
	match = strf("type='signal',sender='org.freedesktop.DBus',"
		     "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='%s'",
		     sender);
	if (match &&
	    sd_bus_add_match_async(bus, &request->owner_slot, match, on_owner, NULL, request) >= 0)
		(void)sd_bus_call_method_async(bus, &request->look_slot, "org.freedesktop.DBus",
					       "/org/freedesktop/DBus", "org.freedesktop.DBus",
					       "GetNameOwner", on_look, request, "s", sender);
}

void control_request_on_gone(struct control_request *request, void (*on_gone)(void *userdata),
			     void *userdata)
{
	request->on_gone = on_gone;
	request->gone_userdata = userdata;
	if (request->peer && request->peer->system)
		watch_sender(request);
}

void control_request_fail(struct control_request *request, const char *name, const char *text)
{
	if (request->peer)
		(void)sd_bus_reply_method_errorf(request->call, name, "%s", text);
	request_free(request);
}

void control_request_done(struct control_request *request, int result, const char *text)
{
	if (result < 0) {
		control_request_fail(request,
				     result == -EBUSY	   ? CONTROL_ERROR("Busy")
				     : result == -ENOENT   ? CONTROL_ERROR("NotFound")
				     : result == -ENOTCONN ? CONTROL_ERROR("NotRecording")
				     : result == -ENODATA  ? CONTROL_ERROR("NothingRecorded")
				     : result == -EUSERS   ? SD_BUS_ERROR_LIMITS_EXCEEDED
							   : CONTROL_ERROR_REFUSED,
				     text && *text ? text : strerror(-result));
		return;
	}
	if (request->peer)
		(void)sd_bus_reply_method_return(request->call, NULL);
	request_free(request);
}

void control_request_reply(struct control_request *request, int result, sd_bus_message *reply,
			   const char *why)
{
	if (result < 0) {
		control_request_done(request, result, why);
		return;
	}
	if (request->peer)
		(void)sd_bus_send(NULL, reply, NULL);
	request_free(request);
}

void control_request_answer(struct control_request *request, int result, const char *why,
			    const char *types, ...)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	va_list ap;

	if (result >= 0)
		result = sd_bus_message_new_method_return(request->call, &reply);
	va_start(ap, types);
	if (result >= 0)
		result = sd_bus_message_appendv(reply, types, ap);
	va_end(ap);
	control_request_reply(request, result, reply, why);
}

struct control_shown control_shown(const char *name)
{
	struct control_shown shown;
	size_t n = strlen(name);

	if (n < sizeof(shown.text)) {
		(void)strcpy(shown.text, name);
		return shown;
	}
	/* Not within a character: libraries take no text that isn't UTF-8 */
	n = sizeof(shown.text) - sizeof("...");
	while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
		n--;
	memcpy(shown.text, name, n);
	(void)strcpy(shown.text + n, "...");
	return shown;
}

/*
 * --- Calls that a disk may keep waiting, each on a thread of its own. On a disk that hangs they
 * all stay, so there are so many threads and no more; the other calls wait for their turn, and each
 * user has a share. A peer has one at work, and the next when it has read the answer.
 */

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
	LIST_REMOVE(w->request->control->works, w);
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
