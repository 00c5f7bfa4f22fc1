/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/strv.h"
#include "config/config-trace.h"
#include "config/latency-kernel.h"
#include "config/latency.h"
#include "daemon/latency/latency-event.h"
#include "daemon/latency/latency-text.h"
#include "daemon/trigger/kernel-latency.h"
#include "recorder/dynamic.h"
#include "recorder/instance.h"

#define SUFFIX ".latency"

struct kernel_latency {
	struct latency_config *conditions;
	size_t n;
	struct trace_trigger *triggers;
	size_t n_triggers;
	char **events;
	struct event_watch *watch;
	struct kernel_latency_calls calls;
};

/* --- making and freeing */

static int name_instance(const char *instance, char **ret, struct fault *why)
{
	*ret = strf("%s" SUFFIX, instance);
	return *ret ? 0 : fault_errno(why, -ENOMEM, "instance %s" SUFFIX, instance);
}

int kernel_latency_remove_stray(const char *instance, struct fault *why)
{
	_cleanup_free_ char *name = NULL;
	int r = name_instance(instance, &name, why);

	return r < 0 ? r : instance_remove(name, why);
}

int kernel_latency_free(struct kernel_latency *k, struct fault *why)
{
	int r;

	if (!k)
		return 0;
	r = event_watch_free(k->watch, false, why);
	for (size_t i = 0; i < k->n; i++)
		latency_done(&k->conditions[i]);
	for (size_t i = 0; i < k->n_triggers; i++)
		trigger_done(&k->triggers[i]);
	strv_free(k->events);
	free(k->conditions);
	free(k->triggers);
	free(k);
	return r;
}

static int add_condition(struct kernel_latency *k, const char *text, const char *group,
			 struct fault *why)
{
	struct latency_config *c = &k->conditions[k->n];
	_cleanup_free_ char *name = NULL, *filter = NULL, *event = NULL;
	int r = latency_parse(text, true, c, why);

	if (r < 0)
		return r;
	k->n++;
	name = strf("%s_" DYNAMIC_OWN_NAME "%zu", group, k->n);
	filter = latency_kernel_filter(c);
	if (name && filter)
		event = strf(DYNAMIC_SYNTHETIC ":%s if %s", name, filter);
	r = event ? strv_append(&k->events, event) : -ENOMEM;
	if (r >= 0)
		r = latency_kernel_triggers(c, name, (unsigned)k->n, &k->triggers[k->n_triggers]);
	if (r < 0)
		return r;
	k->n_triggers += (size_t)r;
	return 0;
}

static int add_conditions(struct kernel_latency *k, const char *instance, char *const *conditions,
			  struct fault *why)
{
	_cleanup_free_ char *group = dynamic_group(instance);
	const size_t n = strv_length(conditions);
	int r = 0;

	k->conditions = calloc(n, sizeof(*k->conditions));
	k->triggers = calloc(n, LATENCY_KERNEL_TRIGGERS * sizeof(*k->triggers));
	if (!group || !k->conditions || !k->triggers)
		r = -ENOMEM;
	for (size_t i = 0; i < n && r >= 0; i++)
		r = add_condition(k, conditions[i], group, why);
	return r == -ENOMEM ? fault_errno(why, r, "instance %s" SUFFIX, instance) : r;
}

int kernel_latency_new(const char *instance, char *const *conditions, struct kernel_latency **ret,
		       struct fault *why)
{
	struct kernel_latency *k = calloc(1, sizeof(*k));
	_cleanup_free_ char *name = NULL;
	int r = k ? dynamic_has_latencies(why) : fault_errno(why, -ENOMEM, "instance %s", instance);

	if (r >= 0)
		r = name_instance(instance, &name, why);
	if (r >= 0)
		r = instance_remove(name, why);
	if (r >= 0)
		r = add_conditions(k, instance, conditions, why);
	if (r >= 0)
		r = event_watch_new(&(struct event_watch_setup){.name = name,
								.events = k->events,
								.triggers = k->triggers,
								.n_triggers = k->n_triggers},
				    &k->watch, why);
	if (r < 0) {
		(void)kernel_latency_free(k, NULL);
		return r;
	}
	*ret = k;
	return 0;
}

/* --- hits */

static char *on_describe(void *userdata, size_t index, struct event_text *text, unsigned cpu,
			 const struct subbuf_event *event)
{
	const struct kernel_latency *k = userdata;
	const struct latency_config *c = &k->conditions[index];
	struct latency_message m;
	char *lines = NULL;

	latency_event_read(c, text, cpu, event, &m);
	return latency_hit_lines(c, &m, &lines) >= 0 ? lines : NULL;
}

static void on_event(void *userdata, size_t index, const struct event_hit *first, uint64_t more)
{
	const struct kernel_latency *k = userdata;

	k->calls.on_event(k->calls.userdata, index, first, more);
}

static struct event_pause on_pause(void *userdata)
{
	const struct kernel_latency *k = userdata;

	return k->calls.pause(k->calls.userdata);
}

int kernel_latency_start(struct kernel_latency *k, sd_event *event, int64_t priority,
			 const struct kernel_latency_calls *calls, struct fault *why)
{
	const struct event_watch_calls own = {
		.on_event = on_event,
		.describe = on_describe,
		.pause = on_pause,
		.userdata = k,
	};

	k->calls = *calls;
	return event_watch_start(k->watch, event, priority, &own, why);
}

int kernel_latency_check(struct kernel_latency *k, struct fault *why)
{
	return event_watch_check(k->watch, why);
}
