/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "basic/io.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "formats/subbuf.h"
#include "recorder/event-rates.h"
#include "recorder/kernel-text.h"

#define WINDOW_NSEC (50 * 1000 * 1000L)
#define BUFFER_KIB  "256" /* of each CPU; what is overwritten was like what is left */

struct counting {
	const struct event_rates_order *order;
	int dir_fd;	  /* of the instance */
	uint64_t *counts; /* [SUBBUF_EVENT_IDS], of what was read of a CPU */
	double *rates;	  /* likewise, a second, of all CPUs */
	uint64_t nsec;	  /* that it has traced */
};

int event_rates_remove(int tracing_fd, const char *name, struct fault *why)
{
	_cleanup_free_ char *path = strf("instances/%s", name);

	if (!path)
		return fault_errno(why, -ENOMEM, "cannot remove instance %s", name);
	if (unlinkat(tracing_fd, path, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return fault_errno(why, -errno, "cannot remove instance %s", name);
	return 0;
}

static int make_instance(struct counting *c, struct fault *why)
{
	const struct event_rates_order *order = c->order;
	_cleanup_free_ char *path = strf("instances/%s", order->name);
	int r = event_rates_remove(order->tracing_fd, order->name, why);

	if (r < 0)
		return r;
	if (!path || mkdirat(order->tracing_fd, path, 0750) < 0)
		return fault_errno(why, path ? -errno : -ENOMEM, "cannot make instance %s",
				   order->name);
	c->dir_fd = openat(order->tracing_fd, path, O_DIRECTORY | O_CLOEXEC);
	return c->dir_fd < 0 ? fault_errno(why, -errno, "cannot open instance %s", order->name) : 0;
}

/* A setting as the other instance has it; "none": it has none */
static int take_over(const struct counting *c, const char *path, const char *none)
{
	_cleanup_free_ char *text = NULL;
	int r = io_read_file_at(c->order->instance_fd, path, &text, NULL);

	if (r < 0 || text[strspn(text, " \n")] == '\0' || strncmp(text, none, strlen(none)) == 0)
		return r;
	return io_write_string_at(c->dir_fd, path, text, 0);
}

static int set_up(const struct counting *c, struct fault *why)
{
	int r = io_write_string_at(c->dir_fd, "tracing_on", "0", 0);

	if (r >= 0)
		r = io_write_string_at(c->dir_fd, "buffer_size_kb", BUFFER_KIB, 0);
	if (r >= 0)
		r = take_over(c, "tracing_cpumask", "none");
	if (r >= 0)
		r = take_over(c, "set_event_pid", "none");
	return r < 0 ? fault_errno(why, r, "cannot set up instance %s", c->order->name) : 0;
}

static int add(struct event_rates *rates, const char *name, size_t length)
{
	if (array_grow(&rates->events, rates->n, sizeof(*rates->events)) < 0)
		return -ENOMEM;
	rates->events[rates->n] = (struct event_rate){.name = strndup(name, length)};
	return rates->events[rates->n].name ? (int)!++rates->n : -ENOMEM;
}

/* Lines "SYSTEM:NAME", and ":mod:…", which are requests for modules to come */
static int list_events(const struct counting *c, struct event_rates *rates)
{
	_cleanup_free_ char *text = NULL;
	int r = 0;

	if (c->order->events) {
		STRV_FOREACH (e, c->order->events) {
			if (r >= 0)
				r = add(rates, *e, strlen(*e));
		}
		return r;
	}
	r = io_read_file_at(c->order->instance_fd, "set_event", &text, NULL);
	for (const char *line = text; r >= 0 && *line;) {
		size_t n = strcspn(line, "\n");

		if (n > 0 && *line != ':' && memchr(line, ':', n))
			r = add(rates, line, n);
		line += n + (line[n] == '\n');
	}
	return r;
}

static char *path_of(const struct event_rate *event, const char *file)
{
	int system = (int)strcspn(event->name, ":");

	return strf("events/%.*s/%s/%s", system, event->name, event->name + system + 1, file);
}

/* -ENOENT: it has gone */
static int enable(const struct counting *c, const struct event_rate *event)
{
	_cleanup_free_ char *filter = path_of(event, "filter"), *path = path_of(event, "enable");
	int r = filter && path ? take_over(c, filter, "none") : -ENOMEM;

	return r < 0 ? r : io_write_string_at(c->dir_fd, path, "1", 0);
}

static int trace(struct counting *c, struct fault *why)
{
	const struct timespec window = {.tv_nsec = WINDOW_NSEC};
	uint64_t begin = now_nsec(CLOCK_MONOTONIC);
	int r = io_write_string_at(c->dir_fd, "tracing_on", "1", 0);

	if (r >= 0) {
		(void)nanosleep(&window, NULL);
		r = io_write_string_at(c->dir_fd, "tracing_on", "0", 0);
	}
	c->nsec = MAX(now_nsec(CLOCK_MONOTONIC) - begin, 1U);
	if (r >= 0)
		r = io_write_string_at(c->dir_fd, "events/enable", "0", 0);
	return r < 0 ? fault_errno(why, r, "cannot trace in instance %s", c->order->name) : 0;
}

static void count_subbuf(struct counting *c, const struct subbuf_layout *layout,
			 const uint8_t *bytes)
{
	struct subbuf_iter it;
	struct subbuf_event event;

	if (subbuf_iter_init(layout, bytes, &it, NULL) != 0)
		return;
	while (subbuf_iter_next(&it, &event, NULL) > 0) {
		uint16_t id;

		memcpy(&id, event.data, sizeof(id));
		c->counts[id]++;
	}
}

static int read_total(int dir_fd, const char *path, uint64_t *ret)
{
	_cleanup_free_ char *text = NULL;
	struct cpu_stats stats;
	int r = io_read_file_at(dir_fd, path, &text, NULL);

	if (r >= 0)
		r = kernel_text_stats(text, &stats);
	if (r >= 0)
		*ret = stats.entries + stats.overrun + stats.read_events;
	return r;
}

static int count_cpu(struct counting *c, const char *cpu, uint8_t *bytes, size_t size)
{
	const struct subbuf_layout layout = subbuf_layout_native((uint32_t)size);
	_cleanup_free_ char *stats_path = strf("per_cpu/%s/stats", cpu);
	_cleanup_free_ char *raw_path = strf("per_cpu/%s/trace_pipe_raw", cpu);
	_cleanup_close_ int fd = -EBADF;
	uint64_t read_events = 0, all;
	int r = stats_path && raw_path ? read_total(c->dir_fd, stats_path, &all) : -ENOMEM;

	if (r < 0 || all == 0)
		return r;
	fd = openat(c->dir_fd, raw_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	memset(c->counts, 0, SUBBUF_EVENT_IDS * sizeof(*c->counts));
	while (read(fd, bytes, size) == (ssize_t)size)
		count_subbuf(c, &layout, bytes);
	for (size_t id = 0; id < SUBBUF_EVENT_IDS; id++)
		read_events += c->counts[id];
	for (size_t id = 0; id < SUBBUF_EVENT_IDS && read_events > 0; id++)
		c->rates[id] += (double)c->counts[id] / (double)read_events * (double)all *
				NSEC_PER_SEC / (double)c->nsec;
	return 0;
}

static bool is_cpu(const char *name)
{
	return strncmp(name, "cpu", 3) == 0;
}

static int count_all(struct counting *c, struct fault *why)
{
	_cleanup_(strv_freep) char **cpus = NULL;
	_cleanup_free_ char *size_text = NULL;
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size = 4 * KIB;
	int r = io_list_at(c->dir_fd, "per_cpu", is_cpu, &cpus);

	/* since 6.8 */
	if (io_read_file_at(c->dir_fd, "buffer_subbuf_size_kb", &size_text, NULL) >= 0)
		size = MAX(strtoull(size_text, NULL, 10), 1U) * KIB;
	else
		size = (size_t)sysconf(_SC_PAGESIZE);
	bytes = malloc(size);
	if (!bytes)
		r = -ENOMEM;
	STRV_FOREACH (cpu, cpus) {
		if (r >= 0)
			r = count_cpu(c, *cpu, bytes, size);
	}
	return r < 0 ? fault_errno(why, r, "cannot read instance %s", c->order->name) : 0;
}

static int rate_of(const struct counting *c, struct event_rate *event)
{
	_cleanup_free_ char *path = path_of(event, "id"), *text = NULL;
	int r = path ? io_read_file_at(c->dir_fd, path, &text, NULL) : -ENOMEM;

	if (r < 0)
		return r;
	event->per_sec = c->rates[strtoul(text, NULL, 10) % SUBBUF_EVENT_IDS];
	return 0;
}

/* Of what has gone meanwhile nothing comes */
static int each_event(const struct counting *c, struct event_rates *rates, bool before,
		      struct fault *why)
{
	int r = before ? list_events(c, rates) : 0;

	for (size_t i = 0; i < rates->n && r >= 0; i++) {
		r = before ? enable(c, &rates->events[i]) : rate_of(c, &rates->events[i]);
		if (r == -ENOENT)
			r = 0;
	}
	return r < 0 ? fault_errno(why, r, "cannot count events in instance %s", c->order->name)
		     : 0;
}

int event_rates_measure(const struct event_rates_order *order, struct event_rates *ret,
			struct fault *why)
{
	_cleanup_free_ uint64_t *counts = calloc(SUBBUF_EVENT_IDS, sizeof(*counts));
	_cleanup_free_ double *each = calloc(SUBBUF_EVENT_IDS, sizeof(*each));
	struct counting c = {.order = order, .dir_fd = -EBADF, .counts = counts, .rates = each};
	struct event_rates rates = {};
	struct fault left;
	int r;

	if (!counts || !each)
		return fault_errno(why, -ENOMEM, "cannot count events");
	r = make_instance(&c, why);
	if (r >= 0)
		r = set_up(&c, why);
	if (r >= 0)
		r = each_event(&c, &rates, true, why);
	if (r >= 0)
		r = trace(&c, why);
	if (r >= 0)
		r = count_all(&c, why);
	if (r >= 0)
		r = each_event(&c, &rates, false, why);
	close_p(&c.dir_fd);
	if (event_rates_remove(order->tracing_fd, order->name, &left) < 0 && r >= 0) {
		*why = left;
		r = left.error;
	}
	if (r < 0)
		event_rates_done(&rates);
	else
		*ret = rates;
	return r;
}

int event_rates_total(int instance_fd, unsigned n_cpus, uint64_t *ret)
{
	uint64_t all = 0;

	for (unsigned cpu = 0; cpu < n_cpus; cpu++) {
		uint64_t events = 0;
		char path[64];
		int r;

		(void)snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
		r = read_total(instance_fd, path, &events);
		if (r < 0 && r != -ENOENT) /* a CPU that never was there */
			return r;
		all += events;
	}
	*ret = all;
	return 0;
}

void event_rates_done(struct event_rates *rates)
{
	for (size_t i = 0; i < rates->n; i++)
		free(rates->events[i].name);
	free(rates->events);
	*rates = (struct event_rates){};
}
