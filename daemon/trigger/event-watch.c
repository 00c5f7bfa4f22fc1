/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/now.h"
#include "basic/strv.h"
#include "config/config-trace.h"
#include "daemon/plumbing/timer.h"
#include "daemon/trigger/event-watch.h"
#include "decode/event-text.h"
#include "formats/subbuf.h"
#include "recorder/instance.h"

#define BUFFER_SIZE (32 * KIB) /* a CPU: what triggers is rare, or it is a storm */
/* Of several events one may be a storm, which shall not overwrite the others between two looks */
#define BUFFER_SIZE_SHARED (256 * KIB)
#define DEAF_USEC	   100000 /* at least, after a wake-up, also for what is not ours */
#define READS_MAX	   160	  /* sub-buffers of a CPU at once: more than the buffer has */

/* An event that is watched, and what of it was found in one go */
struct watched {
	uint32_t id; /* UINT32_MAX: this kernel lacks it */
	uint64_t count;
	uint64_t ts; /* of the first */
	char *lines; /* likewise */
};

struct event_watch {
	struct trace_config config;
	struct instance *instance;
	struct event_text *text;
	struct subbuf_layout layout;
	struct watched *watched; /* [config.n_events] */
	uint8_t *buffer;
	unsigned n_cpus;
	int *fds;
	sd_event_source **sources; /* [n_cpus] */
	uint64_t *overrun;	   /* [n_cpus]: as last seen */
	sd_event_source *pause_source;
	struct event_watch_calls calls;
	bool deaf, storm;
};

/* --- making and freeing */

static int take_config(struct event_watch *w, const struct event_watch_setup *setup,
		       struct fault *why)
{
	char *const *events = setup->events;
	struct trace_config *c = &w->config;

	c->events = calloc(MAX(strv_length(events), 1U), sizeof(*c->events));
	c->clock = strdup("mono");
	c->buffer_size = strv_length(events) > 1 ? BUFFER_SIZE_SHARED : BUFFER_SIZE;
	c->buffer_percent = 0;				       /* wake up for each event */
	c->triggers = (struct trace_trigger *)setup->triggers; /* read only */
	c->n_triggers = setup->n_triggers;
	w->watched = calloc(MAX(strv_length(events), 1U), sizeof(*w->watched));
	if (!c->events || !c->clock || !w->watched)
		return -ENOMEM;
	STRV_FOREACH (e, events) {
		int r = event_parse(*e, &c->events[c->n_events++], why);

		if (r < 0)
			return r;
	}
	return 0;
}

static void done(struct event_watch *w)
{
	for (unsigned cpu = 0; w->fds && cpu < w->n_cpus; cpu++) {
		sd_event_source_disable_unref(w->sources[cpu]);
		close_p(&w->fds[cpu]);
	}
	sd_event_source_disable_unref(w->pause_source);
	free(w->sources);
	free(w->fds);
	free(w->overrun);
	free(w->buffer);
	event_text_free(w->text);
	for (size_t i = 0; i < w->config.n_events; i++) {
		event_done(&w->config.events[i]);
		if (w->watched)
			free(w->watched[i].lines);
	}
	free(w->config.events);
	free(w->config.clock);
	free(w->watched);
	free(w);
}

int event_watch_free(struct event_watch *w, bool keep, struct fault *why)
{
	struct instance *instance;
	int r = 0;

	if (!w)
		return 0;
	instance = TAKE_PTR(w->instance);
	/* The instance cannot go while its files are open, and its configuration is ours */
	for (unsigned cpu = 0; w->fds && cpu < w->n_cpus; cpu++) {
		w->sources[cpu] = sd_event_source_disable_unref(w->sources[cpu]);
		close_p(&w->fds[cpu]);
		w->fds[cpu] = -EBADF;
	}
	if (keep)
		instance_free(instance);
	else
		r = instance_destroy(instance, why);
	done(w);
	return r;
}

/* To an instance it is Event= */
static int name_key(int error, struct fault *why)
{
	struct fault inner = *why;

	return fault_set(why, error, "%s%s",
			 strncmp(inner.text, "Event=", 6) == 0 ? "On" : "OnEvent=: ", inner.text);
}

/*
 * The group of an instance names its probes, and whatever else is in that group is removed. This
 * one has none: a name with a dot in it is never a group's.
 */
static int make_instance(struct event_watch *w, const char *name, bool adopt, struct fault *why)
{
	int r = adopt ? instance_attach(name, name, &w->config, &w->instance, why) : -ENOENT;

	if (r == -ENOENT)
		r = instance_create(name, name, &w->config, &w->instance, why);
	return r < 0 ? name_key(r, why) : 0;
}

static int open_cpus(struct event_watch *w, struct fault *why)
{
	int r = 0;

	w->n_cpus = instance_n_cpus(w->instance);
	w->layout = subbuf_layout_native(instance_subbuf_size(w->instance));
	w->fds = calloc(w->n_cpus, sizeof(*w->fds));
	w->sources = calloc(w->n_cpus, sizeof(*w->sources));
	w->overrun = calloc(w->n_cpus, sizeof(*w->overrun));
	w->buffer = malloc(w->layout.size);
	if (!w->fds || !w->sources || !w->overrun || !w->buffer) {
		free(w->fds);
		w->fds = NULL;
		return fault_errno(why, -ENOMEM, "instance %s", instance_name(w->instance));
	}
	for (unsigned cpu = 0; cpu < w->n_cpus; cpu++)
		w->fds[cpu] = -EBADF;
	for (unsigned cpu = 0; cpu < w->n_cpus && r >= 0; cpu++) {
		struct cpu_stats stats;

		r = instance_open_cpu(w->instance, cpu, &w->fds[cpu], why);
		if (r >= 0 && instance_read_stats(w->instance, cpu, &stats) >= 0)
			w->overrun[cpu] = stats.overrun;
	}
	return r;
}

static int read_formats(struct event_watch *w, struct fault *why)
{
	int r = event_text_new(instance_dir_fd(w->instance), &w->text, why);

	for (size_t i = 0; r >= 0 && i < w->config.n_events; i++) {
		const struct trace_event *e = &w->config.events[i];

		w->watched[i].id = UINT32_MAX;
		r = event_text_add(w->text, e->system, e->name, &w->watched[i].id, why);
		if (r == -ENOENT && e->optional)
			r = 0;
	}
	return r;
}

int event_watch_new(const struct event_watch_setup *setup, struct event_watch **ret,
		    struct fault *why)
{
	const char *name = setup->name;
	struct event_watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return fault_errno(why, -ENOMEM, "instance %s", name);
	r = take_config(w, setup, why);
	if (r == -ENOMEM)
		(void)fault_errno(why, r, "instance %s", name);
	if (r >= 0)
		r = make_instance(w, name, setup->adopt, why);
	if (r >= 0)
		r = open_cpus(w, why);
	if (r >= 0)
		r = read_formats(w, why);
	if (r < 0) {
		(void)event_watch_free(w, false, NULL);
		return r;
	}
	*ret = w;
	return 0;
}

bool event_watch_has(const struct event_watch *w, size_t index)
{
	return w->watched[index].id != UINT32_MAX;
}

/* --- reading */

/* By the instance's clock, "mono" */
static uint64_t realtime_usec(uint64_t ts)
{
	return (now_nsec(CLOCK_REALTIME) - now_nsec(CLOCK_MONOTONIC) + ts) / NSEC_PER_USEC;
}

static void note(struct event_watch *w, unsigned cpu, const struct subbuf_event *event)
{
	uint32_t id = event_text_id(event->data, event->size);

	for (size_t i = 0; i < w->config.n_events; i++) {
		struct watched *e = &w->watched[i];
		char *lines;

		if (e->id != id || id == UINT32_MAX)
			continue;
		if (e->count > 0 && event->ts >= e->ts && !w->calls.describe) {
			e->count++;
			continue;
		}
		lines = w->calls.describe
				? w->calls.describe(w->calls.userdata, i, w->text, cpu, event)
				: event_text_describe(w->text, cpu, event->data, event->size);
		if (!lines && w->calls.describe)
			continue;
		if (e->count++ > 0 && event->ts >= e->ts) {
			free(lines);
			continue;
		}
		e->ts = event->ts;
		free(e->lines);
		e->lines = lines;
	}
}

/* Returns whether events were overwritten before this */
static bool note_all(struct event_watch *w, unsigned cpu)
{
	struct subbuf_event event;
	struct subbuf_fault fault;
	struct subbuf_iter iter;

	if (subbuf_iter_init(&w->layout, w->buffer, &iter, &fault) != 0)
		return false;
	while (subbuf_iter_next(&iter, &event, &fault) > 0)
		note(w, cpu, &event);
	return iter.header.missed;
}

/* How many were overwritten since the last look */
static uint64_t count_overrun(struct event_watch *w, unsigned cpu)
{
	struct cpu_stats stats;
	uint64_t more;

	if (instance_read_stats(w->instance, cpu, &stats) < 0 || stats.overrun < w->overrun[cpu])
		return 0;
	more = stats.overrun - w->overrun[cpu];
	w->overrun[cpu] = stats.overrun;
	return more;
}

/* All there is, of all CPUs; the number of those that were overwritten */
static uint64_t read_all(struct event_watch *w)
{
	uint64_t lost = 0;

	for (unsigned cpu = 0; cpu < w->n_cpus; cpu++) {
		bool missed = false;

		/* 0 and EAGAIN both mean: nothing now */
		for (int i = 0; i < READS_MAX; i++) {
			if (read(w->fds[cpu], w->buffer, w->layout.size) <= 0)
				break;
			missed |= note_all(w, cpu);
		}
		if (missed)
			lost += count_overrun(w, cpu);
	}
	return lost;
}

/* Those that were overwritten can be any: they are counted where most were */
static size_t most_frequent(const struct event_watch *w)
{
	size_t most = 0;

	for (size_t i = 1; i < w->config.n_events; i++)
		if (w->watched[i].count > w->watched[most].count)
			most = i;
	return most;
}

/* Tell of the first of each; returns whether there was any */
static bool collect(struct event_watch *w)
{
	uint64_t lost = read_all(w);
	size_t most = most_frequent(w);
	bool any = false;

	for (size_t i = 0; i < w->config.n_events; i++) {
		struct watched *e = &w->watched[i];
		uint64_t more = e->count + (i == most ? lost : 0);
		_cleanup_free_ char *lines = TAKE_PTR(e->lines);
		struct event_hit hit = {.time_usec = realtime_usec(e->ts), .lines = lines};
		bool tell = e->count > 0;

		e->count = 0;
		any |= more > 0;
		if (more > 0)
			w->calls.on_event(w->calls.userdata, i, tell ? &hit : NULL,
					  more - (tell ? 1 : 0));
	}
	return any;
}

/* --- listening */

static void listen_to(struct event_watch *w, bool on)
{
	for (unsigned cpu = 0; cpu < w->n_cpus; cpu++)
		(void)sd_event_source_set_enabled(w->sources[cpu], on ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void go_deaf(struct event_watch *w, uint64_t usec, bool storm)
{
	w->deaf = usec > 0;
	w->storm = w->deaf && storm;
	listen_to(w, !w->deaf);
	if (!w->deaf)
		return;
	(void)timer_rearm(w->pause_source, usec);
}

static int on_pause_over(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct event_watch *w = userdata;
	bool over = w->storm && !collect(w);
	struct event_pause pause = w->calls.pause(w->calls.userdata);

	go_deaf(w, over && pause.storm ? 0 : pause.usec, pause.storm);
	return 0;
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct event_watch *w = userdata;
	struct event_pause pause = {};

	if (w->deaf) /* another CPU's turn has taken this one's events */
		return 0;
	if (collect(w))
		pause = w->calls.pause(w->calls.userdata);
	go_deaf(w, MAX(pause.usec, DEAF_USEC), pause.storm);
	return 0;
}

int event_watch_start(struct event_watch *w, sd_event *event, int64_t priority,
		      const struct event_watch_calls *calls, struct fault *why)
{
	int r = instance_trace(w->instance, true, why);

	if (r < 0)
		return r;
	w->calls = *calls;
	r = sd_event_add_time_relative(event, &w->pause_source, CLOCK_MONOTONIC, 0, 0,
				       on_pause_over, w);
	if (r >= 0)
		r = sd_event_source_set_enabled(w->pause_source, SD_EVENT_OFF);
	for (unsigned cpu = 0; cpu < w->n_cpus && r >= 0; cpu++) {
		r = sd_event_add_io(event, &w->sources[cpu], w->fds[cpu], EPOLLIN, on_readable, w);
		if (r >= 0)
			r = sd_event_source_set_priority(w->sources[cpu], priority);
	}
	return r < 0 ? fault_errno(why, r, "cannot watch %s", instance_name(w->instance)) : 0;
}

void event_watch_count(struct event_watch *w)
{
	if (w->storm)
		(void)collect(w);
}

void event_watch_flush(struct event_watch *w)
{
	(void)collect(w);
}

int event_watch_dir_fd(const struct event_watch *w)
{
	return instance_dir_fd(w->instance);
}

int event_watch_check(struct event_watch *w, struct fault *why)
{
	return instance_check(w->instance, why);
}
