/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "basic/fault-point.h"
#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "daemon/plumbing/job.h"
#include "daemon/session/calibration.h"
#include "daemon/session/environment.h"
#include "recorder/event-cost.h"
#include "recorder/event-rates.h"
#include "recorder/instance.h"

#define AGAIN_USEC (60 * USEC_PER_SEC)

#define INSTANCE "event.cost" /* behind InstancePrefix=: no session's name has a dot in it */

struct calibration_waiter {
	struct calibration_waiter *next;
	calibration_done_t done;
	void *userdata;
};

/* What the job works on */
struct measurement {
	struct calibration *calibration;
	struct event_cost *cost;
	double nsec;
	uint64_t cpu_usec;
};

static void answer(struct calibration *c, int result, const struct fault *why)
{
	c->busy = false;
	c->failure = (struct fault){};
	if (result < 0) {
		c->failure = *why;
		c->failure.error = result;
		c->failed_usec = now_usec(CLOCK_MONOTONIC);
	}
	while (c->waiters) {
		struct calibration_waiter *w = c->waiters;

		c->waiters = w->next;
		w->done(w->userdata, result, c->nsec, why);
		free(w);
	}
	c->over(c->userdata);
}

static int measure(void *userdata, struct fault *why)
{
	struct measurement *m = userdata;
	int r;

	fault_point("event-cost");
	r = event_cost_measure(m->cost, &m->nsec, why);

	m->cpu_usec = now_usec(CLOCK_THREAD_CPUTIME_ID);
	return r;
}

static void on_measured(void *userdata, int result, const struct fault *why)
{
	struct measurement *m = userdata;
	struct calibration *c = m->calibration;
	struct fault left = {};

	if (event_cost_free(m->cost, &left) < 0)
		log_warning("%s, ignoring", left.text);
	c->cpu_usec += m->cpu_usec;
	if (result >= 0) {
		c->nsec = m->nsec;
		log_info("measured what an event costs: %.0f ns", c->nsec);
	}
	free(m);
	answer(c, result, why);
}

static int begin(const struct environment *env, struct fault *why)
{
	_cleanup_free_ char *name = strf("%s" INSTANCE, env->instance_prefix);
	struct measurement *m = calloc(1, sizeof(*m));
	int r = name && m ? 0 : fault_errno(why, -ENOMEM, "cannot measure what an event costs");

	if (r >= 0)
		r = event_cost_new(name, &m->cost, why);
	if (r >= 0) {
		m->calibration = env->calibration;
		r = job_start(env->event, measure, on_measured, m);
		if (r >= 0)
			return 0;
		(void)event_cost_free(m->cost, NULL);
		(void)fault_errno(why, r, "cannot measure what an event costs");
	}
	free(m);
	return r;
}

int calibration_ask(const struct environment *env, calibration_done_t done, void *userdata)
{
	struct calibration *c = env->calibration;
	struct calibration_waiter *w;
	struct fault why = {};
	int r;

	if (c->nsec > 0 ||
	    (c->failed_usec > 0 && now_usec(CLOCK_MONOTONIC) < c->failed_usec + AGAIN_USEC)) {
		done(userdata, c->failure.error, c->nsec, &c->failure);
		return 0;
	}
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (struct calibration_waiter){.next = c->waiters, .done = done, .userdata = userdata};
	c->waiters = w;
	if (c->busy)
		return 0;
	c->busy = true;
	r = env->stopping || env->tracing_fd < 0
		    ? fault_set(&why, -ECANCELED, "flyrecd does not trace")
		    : begin(env, &why);
	if (r < 0)
		answer(c, r, &why);
	return 0;
}

void calibration_clean_up(const struct environment *env)
{
	_cleanup_free_ char *name = strf("%s" INSTANCE, env->instance_prefix);
	_cleanup_free_ char *rates = strf("%s" CALIBRATION_RATES, env->instance_prefix);
	struct fault why;

	if (name && instance_remove(name, &why) < 0)
		log_warning("%s, ignoring", why.text);
	if (rates && env->tracing_fd >= 0 && event_rates_remove(env->tracing_fd, rates, &why) < 0)
		log_warning("%s, ignoring", why.text);
}
