/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "basic/io.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "config/config-trace.h"
#include "config/latency-kernel.h"
#include "config/latency.h"
#include "daemon/latency/latency-event.h"
#include "daemon/latency/latency-text.h"
#include "daemon/plumbing/timer.h"
#include "daemon/trigger/kernel-latency.h"
#include "recorder/dynamic.h"
#include "recorder/instance.h"

#define SUFFIX ".latency"

/*
 * A histogram has an entry for each key that it has ever seen, and is full one day: all begin anew
 * when one is half full. How fast they fill tells when to look again. Their size goes by the number
 * of tasks: an entry takes some 400 bytes.
 */
#define HALF	  500U /* of 1000 */
#define TASKS_MIN 4096U
#define TASKS_MAX 65536U
#define LOOK_MIN  USEC_PER_SEC
#define LOOK_MAX  (60 * USEC_PER_SEC)

struct kernel_latency {
	struct latency_config *conditions;
	size_t n;
	struct trace_trigger *triggers;
	size_t n_triggers;
	char **events, **names; /* with filters and system, and without */
	char *name;		/* of the instance */
	struct event_watch *watch;
	uint64_t since_usec; /* monotonic, when the histograms were empty */
	sd_event *event;
	int64_t priority;
	sd_event_source *timer;
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

static void forget_triggers(struct kernel_latency *k)
{
	while (k->n_triggers > 0)
		trigger_done(&k->triggers[--k->n_triggers]);
}

int kernel_latency_free(struct kernel_latency *k, struct fault *why)
{
	int r;

	if (!k)
		return 0;
	(void)sd_event_source_disable_unref(k->timer);
	r = event_watch_free(k->watch, false, why);
	free(k->name);
	for (size_t i = 0; i < k->n; i++)
		latency_done(&k->conditions[i]);
	forget_triggers(k);
	strv_free(k->events);
	strv_free(k->names);
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
	return r < 0 ? r : strv_append(&k->names, name);
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

/* "0.20 0.18 0.12 1/80 11206": 80 tasks there are */
static unsigned size_for_tasks(void)
{
	_cleanup_free_ char *text = NULL;
	unsigned tasks = 0, size = TASKS_MIN;
	const char *slash;

	if (io_read_file_at(AT_FDCWD, "/proc/loadavg", &text, NULL) >= 0) {
		slash = strchr(text, '/');
		tasks = slash ? (unsigned)strtoul(slash + 1, NULL, 10) : 0;
	}
	while (size < TASKS_MAX && size / 8 < tasks)
		size *= 2;
	return size;
}

static int make_triggers(struct kernel_latency *k)
{
	const unsigned tasks = size_for_tasks();

	forget_triggers(k);
	for (size_t i = 0; i < k->n; i++) {
		const struct latency_kernel kernel = {k->names[i], (unsigned)i + 1, tasks};
		int r = latency_kernel_triggers(&k->conditions[i], &kernel,
						&k->triggers[k->n_triggers]);

		if (r < 0)
			return r;
		k->n_triggers += (size_t)r;
	}
	return 0;
}

static int open_watch(struct kernel_latency *k, struct fault *why)
{
	if (make_triggers(k) < 0)
		return fault_errno(why, -ENOMEM, "instance %s", k->name);
	k->since_usec = now_usec(CLOCK_MONOTONIC);
	return event_watch_new(&(struct event_watch_setup){.name = k->name,
							   .events = k->events,
							   .triggers = k->triggers,
							   .n_triggers = k->n_triggers},
			       &k->watch, why);
}

int kernel_latency_new(const char *instance, char *const *conditions, struct kernel_latency **ret,
		       struct fault *why)
{
	struct kernel_latency *k = calloc(1, sizeof(*k));
	int r = k ? dynamic_has_latencies(why) : fault_errno(why, -ENOMEM, "instance %s", instance);

	if (r >= 0)
		r = name_instance(instance, &k->name, why);
	if (r >= 0)
		r = instance_remove(k->name, why);
	if (r >= 0)
		r = add_conditions(k, instance, conditions, why);
	if (r >= 0)
		r = open_watch(k, why);
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

static int listen_to(struct kernel_latency *k, struct fault *why)
{
	const struct event_watch_calls own = {
		.on_event = on_event,
		.describe = on_describe,
		.pause = on_pause,
		.userdata = k,
	};

	return event_watch_start(k->watch, k->event, k->priority, &own, why);
}

/* --- room in the histograms */

/* How full the fullest histogram of an event is, of 1000; 1000 if one had no room */
static uint64_t count_entries(const char *text)
{
	static const char entries[] = "    Entries: ", dropped[] = "    Dropped: ";
	uint64_t most = 0, size = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *at;

		line += *line == '\n';
		if (strncmp(line, "# trigger info: ", 16) == 0) {
			at = strstr(line, ":size=");
			size = at ? strtoull(at + strlen(":size="), NULL, 10) : 0;
		}
		if (strncmp(line, entries, strlen(entries)) == 0 && size > 0)
			most = MAX(most, strtoull(line + strlen(entries), NULL, 10) * 1000 / size);
		if (strncmp(line, dropped, strlen(dropped)) == 0 &&
		    strtoull(line + strlen(dropped), NULL, 10) > 0)
			most = 1000;
	}
	return most;
}

static uint64_t find_fullest(const struct kernel_latency *k)
{
	uint64_t most = 0;

	for (size_t i = 0; i < k->n_triggers; i++) {
		const struct trace_trigger *t = &k->triggers[i];
		_cleanup_free_ char *path = NULL, *text = NULL;

		/* one file has all of an event */
		if (i > 0 && strcmp(t->name, t[-1].name) == 0 &&
		    strcmp(t->system, t[-1].system) == 0)
			continue;
		path = strf("events/%s/%s/hist", t->system, t->name);
		if (path && io_read_file_at(event_watch_dir_fd(k->watch), path, &text, NULL) >= 0)
			most = MAX(most, count_entries(text));
	}
	return most;
}

/* With a new instance: the kernel can clear a histogram, but not one that others refer to */
static int begin_anew(struct kernel_latency *k, struct fault *why)
{
	int r;

	event_watch_flush(k->watch);
	r = event_watch_free(TAKE_PTR(k->watch), false, why);
	if (r >= 0)
		r = open_watch(k, why);
	return r < 0 ? r : listen_to(k, why);
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct kernel_latency *k = userdata;
	const uint64_t full = find_fullest(k);
	uint64_t age = now_usec(CLOCK_MONOTONIC) - k->since_usec, wait = LOOK_MIN;
	struct fault why;

	if (full >= HALF) {
		if (begin_anew(k, &why) < 0) {
			k->calls.on_failure(k->calls.userdata, &why);
			return 0;
		}
	} else {
		wait = age * (HALF - full) / MAX(full, 1U) / 2;
	}
	(void)timer_rearm(k->timer, MIN(MAX(wait, LOOK_MIN), LOOK_MAX));
	return 0;
}

int kernel_latency_start(struct kernel_latency *k, sd_event *event, int64_t priority,
			 const struct kernel_latency_calls *calls, struct fault *why)
{
	int r;

	k->calls = *calls;
	k->event = event;
	k->priority = priority;
	r = timer_arm(event, &k->timer, LOOK_MIN, on_look, k);
	return r < 0 ? fault_errno(why, r, "cannot watch %s", k->name) : listen_to(k, why);
}

int kernel_latency_check(struct kernel_latency *k, struct fault *why)
{
	return event_watch_check(k->watch, why);
}
