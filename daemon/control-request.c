/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that are answered later, when what was asked for is done. Main thread.
 */
#include <errno.h>
#include <string.h>

#include "daemon/control-internal.h"
#include "daemon/job.h"

int control_request_new(struct control *c, sd_bus_message *call, sd_bus_error *error,
			struct control_request **ret)
{
	struct peer *p = control_find_peer(c, sd_bus_message_get_bus(call));
	struct control_request *request;

	if (!p)
		return -ENOTCONN;
	if (p->n_requests >= CONTROL_CALLS_MAX && !p->system)
		return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
					 "%u calls of yours are not answered yet", p->n_requests);
	request = calloc(1, sizeof(*request));
	if (!request)
		return -ENOMEM;
	*request = (struct control_request){
		.next = p->requests,
		.peer = p,
		.control = c,
		.call = sd_bus_message_ref(call),
	};
	p->requests = request;
	p->n_requests++;
	*ret = request;
	return 0;
}

static void request_free(struct control_request *request)
{
	struct peer *p = request->peer;

	for (struct control_request **q = p ? &p->requests : NULL; q && *q; q = &(*q)->next)
		if (*q == request) {
			*q = request->next;
			p->n_requests--;
			break;
		}
	sd_bus_message_unref(request->call);
	free(request->complaints);
	free(request);
}

void control_forget_requests(struct peer *p)
{
	for (struct control_request *r = p->requests, *next; r; r = next) {
		next = r->next;
		r->peer = NULL;
		r->next = NULL;
	}
	p->requests = NULL;
	p->n_requests = 0;
}

void control_request_reply(struct control_request *request, sd_bus_message *reply)
{
	if (request->peer)
		(void)sd_bus_send(NULL, reply, NULL);
	request_free(request);
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
							   : CONTROL_ERROR_REFUSED,
				     text && *text ? text : strerror(-result));
		return;
	}
	if (request->peer)
		(void)sd_bus_reply_method_return(request->call, NULL);
	request_free(request);
}

void control_answer_path(struct control_request *request, int result, const char *path,
			 const char *why)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

	if (result >= 0)
		result = sd_bus_message_new_method_return(request->call, &reply);
	if (result >= 0)
		result = sd_bus_message_append(reply, "s", path);
	if (result >= 0)
		control_request_reply(request, reply);
	else
		control_request_done(request, result, why);
}

struct work {
	struct control_request *request;
	int (*work)(void *data);
	void (*answer)(struct control_request *request, void *data, int result);
	void *data;
};

static int run_work(void *userdata)
{
	struct work *w = userdata;

	return w->work(w->data);
}

static void on_work_done(void *userdata, int result)
{
	struct work *w = userdata;

	w->answer(w->request, w->data, result);
	free(w);
}

int control_work(struct control_request *request, int (*work)(void *data),
		 void (*answer)(struct control_request *request, void *data, int result),
		 void *data)
{
	struct work *w = calloc(1, sizeof(*w));
	int r = -ENOMEM;

	if (w) {
		*w = (struct work){request, work, answer, data};
		r = job_start(request->control->daemon->event, run_work, on_work_done, w);
	}
	if (r < 0) {
		free(w);
		answer(request, data, r);
	}
	return 1;
}
