/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl cost: how much comes, how long the room for it lasts, and what it takes of the machine.
 * Record sessions are counted in their files, flight sessions by the kernel's counters, and by
 * event in their newest snapshot. All is asked for and opened before the files are read without
 * rights. Main thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "analysis/rates.h"
#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "ctl/bus.h"
#include "ctl/confine.h"
#include "ctl/cost-sums.h"
#include "ctl/output.h"
#include "ctl/source.h"
#include "ctl/view.h"
#include "formats/tail-message.h"

#define SHORT_USEC   (60 * USEC_PER_SEC)
#define LONG_USEC    (3600 * USEC_PER_SEC)
#define READ_MAX     GIB  /* of a session */
#define SETTLE_MSEC  5000 /* a disk may hang */
#define ROUNDS_UNTIL 2	  /* see formats/tail-message.h */
#define HOUR_SEC     3600.0

struct row {
	char *event;
	struct cost_rate rate[_RATES_MAX];
	struct cost saves; /* by the rate of now */
};

struct costed {
	const struct view_session *session;
	uint64_t at_usec;
	struct source_list sources; /* segments, or a flight session's newest snapshot */
	uint64_t snapshot_usec;	    /* when that was taken; 0: there is none */
	struct cost_base base;
	/* results */
	bool uncounted; /* neither files nor counters tell how many come; a note says why */
	uint64_t window_usec[_RATES_MAX];
	struct cost_rate rate[_RATES_MAX];
	struct cost cost[_RATES_MAX];
	struct row *rows;
	size_t n_rows;
	char **notes;
};

struct cost_run {
	struct ctl *ctl;
	struct view_status status;
	double event_nsec; /* 0: not known */
	unsigned cpus;
	char *uncalibrated; /* why */
	struct costed *sessions;
	size_t n;
	bool one; /* that was asked for */
};

static bool is_flight(const struct view_session *s)
{
	return strcmp(s->mode, "flight") == 0;
}

static bool is_tracing(const struct view_session *s)
{
	return strcmp(s->state, "recording") == 0 || strcmp(s->state, "paused") == 0;
}

static int add_note(struct costed *c, char *note)
{
	int r = note ? strv_append(&c->notes, note) : -ENOMEM;

	free(note);
	return r;
}

/* --- with rights: ask flyrecd, open files */

/*
 * Have all that was traced until now written to the files. Who follows a session is told when that
 * is so. Return: 1, 0 if it was not told in time, or < 0 with @why.
 */
static int settle(struct ctl *ctl, const char *session, struct fault *why)
{
	_cleanup_close_ int fd = bus_call_fd(ctl, why, session, "OpenTail", NULL);
	const size_t room = sizeof(struct tail_message) + TAIL_CPUS_MAX * sizeof(uint64_t);
	_cleanup_free_ struct tail_message *message = malloc(room);
	unsigned rounds = 0;
	const uint64_t end = now_usec(CLOCK_MONOTONIC) + SETTLE_MSEC * UINT64_C(1000);

	if (fd < 0)
		return fd;
	if (!message)
		return fault_errno(why, -ENOMEM, "cannot ask flyrecd");
	while (rounds < ROUNDS_UNTIL && now_usec(CLOCK_MONOTONIC) < end) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&p, 1, SETTLE_MSEC) <= 0)
			break;
		/* descriptors that come with it are not taken */
		n = recv(fd, message, room, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			break;
		if (n >= (ssize_t)sizeof(*message))
			rounds += message->type == TAIL_ROUND;
		if (n >= (ssize_t)sizeof(*message) && message->type == TAIL_END)
			break;
	}
	return rounds >= ROUNDS_UNTIL;
}

/* Since when has it been recording without a break, as far as that is known? */
static uint64_t since(const struct view_session *s)
{
	return s->segment_usec > 0 ? MIN(s->started_usec, s->segment_usec) : s->started_usec;
}

static int open_segments(struct cost_run *run, struct costed *c)
{
	char *const words[] = {c->session->name, NULL};
	struct event_filter filter = {.since = {.set = true, .realtime = true}};
	struct fault why;
	int r;

	c->at_usec = now_usec(CLOCK_REALTIME);
	r = settle(run->ctl, c->session->name, &why);
	c->uncounted = r < 0;
	if (r < 0)
		return add_note(c,
				strf("cannot have all of it written to the files: %s", why.text));
	if (r == 0 && add_note(c, strdup("the last seconds may not be in the files yet")) < 0)
		return -ENOMEM;
	c->window_usec[RATES_SHORT] =
		MIN(SHORT_USEC, c->at_usec - MIN(since(c->session), c->at_usec));
	c->window_usec[RATES_LONG] =
		MIN(LONG_USEC, c->at_usec - MIN(since(c->session), c->at_usec));
	filter.since.value = c->at_usec - c->window_usec[RATES_LONG];
	return source_list_open(run->ctl, words, &filter, false, &c->sources);
}

/* What it has of each event, as far as that can be known without stopping to look */
static int open_snapshot(struct cost_run *run, struct costed *c)
{
	const struct view_file *newest = NULL;
	struct view_files files;
	int fd, r = view_read_files(run->ctl, c->session->name, &files);
	struct fault why;

	if (r < 0)
		return r;
	for (size_t i = 0; i < files.n; i++)
		if (strcmp(files.files[i].kind, "snapshot") == 0 &&
		    (!newest || files.files[i].end_usec > newest->end_usec))
			newest = &files.files[i];
	if (newest) {
		fd = bus_call_fd(run->ctl, &why, NULL, "OpenFile", "ss", c->session->name,
				 newest->path);
		if (fd >= 0)
			r = source_list_add(&c->sources, newest->path, fd);
		else if (fd != BUS_E_NOT_FOUND)
			r = add_note(c, strdup(why.text));
		if (c->sources.n > 0)
			c->snapshot_usec = newest->end_usec;
	}
	view_done(view_files_fields, &files);
	return r;
}

static int calibrate(struct cost_run *run)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	struct fault why;

	if (bus_ask(run->ctl, &why, "GetEventCost", &reply) >= 0)
		return bus_read(run->ctl, reply, "d", &run->event_nsec);
	run->uncalibrated = strdup(why.text);
	return run->uncalibrated ? 0 : -ENOMEM;
}

/* What CPU time of the recorder goes with a byte */
static double byte_nsec(const struct cost_run *run, const struct view_session *s)
{
	struct cost_recorder recorder = {.cpu_usec = s->cpu_usec, .bytes = s->bytes_recorded};
	uint64_t own = 0;

	for (size_t i = 0; i < run->status.n_sessions; i++) {
		own += run->status.sessions[i].cpu_usec;
		recorder.other_bytes += run->status.sessions[i].bytes_recorded;
	}
	recorder.other_usec = run->status.cpu_usec - MIN(own, run->status.cpu_usec);
	return is_flight(s) ? 0 : cost_byte_nsec(&recorder);
}

/* Of a flight session the kernel's counters tell all but the kinds of events */
static void count_flight(struct costed *c)
{
	const struct view_session *s = c->session;
	double holds_usec = 0, size;

	/* its clock counts no time */
	c->uncounted = s->n_buffered > 0 && s->n_history == 0;
	for (size_t i = 0; i < s->n_buffered; i++)
		for (size_t k = 0; k < s->n_history; k++) {
			const struct view_buffered *b = &s->buffered[i];
			double usec = (double)s->history[k].usec, lasts;

			if (s->history[k].cpu != b->cpu || b->bytes == 0)
				continue;
			c->rate[RATES_SHORT].events += (double)b->events / usec * USEC_PER_SEC;
			c->rate[RATES_SHORT].bytes += (double)b->bytes / usec * USEC_PER_SEC;
			c->window_usec[RATES_SHORT] =
				MAX(c->window_usec[RATES_SHORT], s->history[k].usec);
			lasts = (double)s->buffer_size / (double)b->bytes * usec;
			if (holds_usec == 0 || lasts < holds_usec)
				holds_usec = lasts;
		}
	c->base.holds_bytes = c->rate[RATES_SHORT].bytes * holds_usec / USEC_PER_SEC;
	if (c->at_usec <= s->started_usec)
		return;
	size = c->rate[RATES_SHORT].events > 0
		       ? c->rate[RATES_SHORT].bytes / c->rate[RATES_SHORT].events
		       : 0;
	c->window_usec[RATES_LONG] = c->at_usec - s->started_usec;
	c->rate[RATES_LONG].events =
		(double)s->events_traced * USEC_PER_SEC / (double)c->window_usec[RATES_LONG];
	c->rate[RATES_LONG].bytes = c->rate[RATES_LONG].events * size;
}

static int prepare(struct cost_run *run, struct costed *c, const struct view_session *s)
{
	*c = (struct costed){
		.session = s,
		.at_usec = now_usec(CLOCK_REALTIME),
		.base =
			{
				.cpus = run->cpus,
				.event_nsec = run->event_nsec,
				.byte_nsec = byte_nsec(run, s),
				.max_use = s->max_use,
			},
	};
	if (strcmp(s->compress, "zstd") == 0) {
		c->base.raw_bytes = s->raw_bytes;
		c->base.packed_bytes = s->packed_bytes;
	}
	if (!is_flight(s))
		return open_segments(run, c);
	count_flight(c);
	return open_snapshot(run, c);
}

static int prepare_all(struct cost_run *run)
{
	int r = calibrate(run);

	run->sessions = calloc(MAX(run->status.n_sessions, (size_t)1), sizeof(*run->sessions));
	if (!run->sessions)
		r = -ENOMEM;
	for (size_t i = 0; i < run->status.n_sessions && r >= 0; i++)
		if (is_tracing(&run->status.sessions[i]))
			r = prepare(run, &run->sessions[run->n++], &run->status.sessions[i]);
	return r;
}

/* --- without rights: count */

static struct cost_rate rate_of(uint64_t events, uint64_t bytes, uint64_t usec)
{
	const double seconds = (double)MAX(usec, UINT64_C(1)) / USEC_PER_SEC;

	return (struct cost_rate){.events = (double)events / seconds,
				  .bytes = (double)bytes / seconds};
}

static int add_row(struct costed *c, const char *event, const struct cost_rate *rate)
{
	struct row row = {.event = strdup(event)};

	if (!row.event || array_grow(&c->rows, c->n_rows, sizeof(*c->rows)) < 0) {
		free(row.event);
		return -ENOMEM;
	}
	memcpy(row.rate, rate, sizeof(row.rate));
	c->rows[c->n_rows++] = row;
	return 0;
}

static int take_segments(struct costed *c, const struct rates *rates)
{
	int r = 0;

	for (unsigned w = 0; w < _RATES_MAX; w++) {
		if (w == RATES_LONG && rates->from_usec[w] > c->at_usec - c->window_usec[w])
			r = add_note(c, strf("more than 1G was recorded in the last hour: only its "
					     "end was read"));
		c->window_usec[w] = c->at_usec - MIN(rates->from_usec[w], c->at_usec);
		c->rate[w] = rate_of(rates->count[w], rates->subbuf_bytes[w], c->window_usec[w]);
	}
	for (size_t i = 0; i < rates->n_events && r >= 0; i++) {
		const struct rates_event *e = &rates->events[i];
		struct cost_rate rate[_RATES_MAX];

		for (unsigned w = 0; w < _RATES_MAX; w++)
			rate[w] = rate_of(e->count[w], e->bytes[w], c->window_usec[w]);
		r = add_row(c, e->name, rate);
	}
	return r;
}

/* Each event's part of the snapshot is taken for its part of what comes */
static int take_snapshot(struct costed *c, const struct rates *rates)
{
	uint64_t bytes = 0;
	int r = 0;

	for (size_t i = 0; i < rates->n_events; i++)
		bytes += rates->events[i].bytes[RATES_LONG];
	for (size_t i = 0; i < rates->n_events && r >= 0; i++) {
		const struct rates_event *e = &rates->events[i];
		struct cost_rate rate[_RATES_MAX];

		for (unsigned w = 0; w < _RATES_MAX; w++)
			rate[w] = (struct cost_rate){
				.events = c->rate[w].events * (double)e->count[RATES_LONG] /
					  (double)rates->count[RATES_LONG],
				.bytes = c->rate[w].bytes * (double)e->bytes[RATES_LONG] /
					 (double)MAX(bytes, UINT64_C(1)),
			};
		r = add_row(c, e->name, rate);
	}
	return r;
}

/* A flight session with one event, and nothing that makes others, needs no snapshot. Or NULL */
static char *only_event(const struct view_session *s)
{
	const char *event = s->events ? s->events[0] : NULL;

	if (!event || s->events[1] || (s->event_triggers && s->event_triggers[0]))
		return NULL;
	event += *event == '-';
	return strchr(event, ':') ? strndup(event, strcspn(event, " ")) : NULL;
}

static int count_events(struct costed *c)
{
	struct rates_config config = {
		.sources = c->sources.sources,
		.n = c->sources.n,
		.to_usec = is_flight(c->session) ? UINT64_MAX : c->at_usec,
		.read_max = READ_MAX,
	};
	struct rates rates;
	struct fault why;
	int r;

	if (!is_flight(c->session))
		for (unsigned w = 0; w < _RATES_MAX; w++)
			config.from_usec[w] = c->at_usec - c->window_usec[w];
	r = rates_read(&config, &rates, &why);
	c->uncounted |= r < 0 && !is_flight(c->session);
	if (r < 0)
		return add_note(c, strdup(why.text));
	r = is_flight(c->session) ? take_snapshot(c, &rates) : take_segments(c, &rates);
	rates_done(&rates);
	return r;
}

static int note_flight(struct costed *c)
{
	_cleanup_free_ char *event = only_event(c->session);
	_cleanup_free_ char *time = format_time(c->snapshot_usec);

	if (c->n_rows > 0)
		return add_note(c, strf("by event as in the snapshot of %s", time ? time : "?"));
	if (event)
		return add_row(c, event, c->rate);
	return add_note(c,
			strf("which events these are is not known; to find out, take a snapshot: "
			     "flyrecctl snapshot %s",
			     c->session->name));
}

static int by_bytes(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	double bytes = y->rate[RATES_SHORT].bytes - x->rate[RATES_SHORT].bytes;

	return bytes > 0 ? 1 : bytes < 0 ? -1 : strcmp(x->event, y->event);
}

static int work_out(struct costed *c)
{
	int r = 0;

	if (c->sources.n > 0)
		r = count_events(c);
	if (r >= 0 && is_flight(c->session))
		r = c->uncounted ? add_note(c, strf("its clock counts no time")) : note_flight(c);
	for (unsigned w = 0; w < _RATES_MAX; w++)
		c->cost[w] = cost_of(&c->base, &c->rate[w]);
	for (size_t i = 0; i < c->n_rows; i++)
		c->rows[i].saves = cost_without(&c->base, &c->rate[RATES_SHORT],
						&c->rows[i].rate[RATES_SHORT]);
	if (c->n_rows > 0)
		qsort(c->rows, c->n_rows, sizeof(*c->rows), by_bytes);
	STRV_FOREACH (event, c->session->shed) {
		if (r >= 0)
			r = add_note(c, strf("%s is not recorded for now: MaxOverhead=", *event));
	}
	return r;
}

/* --- and show */

static char *format_share(double share)
{
	double percent = share * 100;

	return strf("%.*f%%", percent < 1 ? 3 : percent < 10 ? 2 : 1, percent);
}

static char *format_rate(double events)
{
	return strf("%.*f", events > 0 && events < 10 ? 1 : 0, events);
}

static char *format_hourly(double bytes)
{
	return format_bytes((uint64_t)(bytes * HOUR_SEC));
}

static char *format_history(uint64_t usec, const char *sign)
{
	_cleanup_free_ char *text = usec > 0 ? format_timespan(usec) : strdup("-");

	return text ? strf("%s%s", usec > 0 ? sign : "", text) : NULL;
}

static double total(const struct cost *cost)
{
	return cost->tracing + cost->recorder;
}

static void print_notes(const struct cost_run *run)
{
	for (size_t i = 0; i < run->n; i++)
		STRV_FOREACH (note, run->sessions[i].notes)
			printf("%s: %s\n", run->sessions[i].session->name, *note);
	if (run->uncalibrated)
		printf("%sCPU time of the traced tasks is not known: %s%s\n", style(STYLE_YELLOW),
		       run->uncalibrated, style(STYLE_OFF));
}

static int print_all(const struct cost_run *run)
{
	struct table t = {
		.headings = {"SESSION", "MODE", "EVENTS/S", "HOUR", "BYTES/H", "LASTS", "CPU"},
		.n_columns = 7,
		.numbers = ~3U,
	};

	for (size_t i = 0; i < run->n; i++) {
		const struct costed *c = &run->sessions[i];

		table_add_text(&t, c->session->name);
		table_add_text(&t, c->session->mode);
		if (c->uncounted) {
			for (unsigned k = 2; k < t.n_columns; k++)
				table_add_text(&t, "-");
			continue;
		}
		table_add(&t, format_rate(c->rate[RATES_SHORT].events));
		table_add(&t, format_rate(c->rate[RATES_LONG].events));
		table_add(&t, format_hourly(c->rate[RATES_SHORT].bytes));
		table_add(&t, format_history(c->cost[RATES_SHORT].history_usec, ""));
		if (run->event_nsec > 0)
			table_add(&t, format_share(total(&c->cost[RATES_SHORT])));
		else
			table_add_text(&t, "-");
	}
	return table_print(&t);
}

static void print_window(const struct costed *c, const char *title, enum rates_window w)
{
	_cleanup_free_ char *events = format_rate(c->rate[w].events);
	_cleanup_free_ char *bytes = format_hourly(c->rate[w].bytes);
	_cleanup_free_ char *span = format_timespan(c->window_usec[w]);

	printf("%s: %s events a second, %s an hour (over %s)\n", title, events ? events : "?",
	       bytes ? bytes : "?", span ? span : "?");
}

static void print_head(const struct cost_run *run, const struct costed *c)
{
	const struct view_session *s = c->session;
	const struct cost *cost = &c->cost[RATES_SHORT];
	_cleanup_free_ char *all = format_share(total(cost)),
			    *tracing = format_share(cost->tracing);
	_cleanup_free_ char *recorder = format_share(cost->recorder);
	_cleanup_free_ char *lasts = format_history(cost->history_usec, "");
	_cleanup_free_ char *room = format_bytes(is_flight(s) ? s->buffer_size : s->max_use);

	printf("%s%s%s%s%s\n", style(STYLE_BOLD), s->name, style(STYLE_OFF),
	       *s->description ? " - " : "", s->description);
	if (c->uncounted)
		return;
	print_window(c, "     Now", RATES_SHORT);
	print_window(c, is_flight(s) ? " Average" : "    Hour", RATES_LONG);
	if (run->event_nsec > 0)
		printf("     CPU: %s of %u CPUs: %s in traced tasks (%.0f ns an event), %s recorder\n",
		       all ? all : "?", run->cpus, tracing ? tracing : "?", run->event_nsec,
		       recorder ? recorder : "?");
	else
		printf("     CPU: recorder %s of %u CPUs\n", recorder ? recorder : "?", run->cpus);
	if (cost->history_usec > 0)
		printf("   Lasts: %s=%s%s lasts %s at that rate\n",
		       is_flight(s) ? "BufferSize" : "MaxUse", room ? room : "?",
		       is_flight(s) ? " a CPU" : "", lasts ? lasts : "?");
}

static int print_one(const struct cost_run *run, const struct costed *c)
{
	struct table t = {
		.headings = {"EVENT", "EVENTS/S", "HOUR", "BYTES/H", "SHARE", "SAVES", "GAINS"},
		.n_columns = 7,
		.numbers = ~1U,
		.shorten = 1U,
	};
	double bytes = 0;

	print_head(run, c);
	if (c->n_rows == 0)
		return 0;
	for (size_t i = 0; i < c->n_rows; i++)
		bytes += c->rows[i].rate[RATES_SHORT].bytes;
	printf("\n");
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct row *row = &c->rows[i];

		table_add_text(&t, row->event);
		table_add(&t, format_rate(row->rate[RATES_SHORT].events));
		table_add(&t, format_rate(row->rate[RATES_LONG].events));
		table_add(&t, format_hourly(row->rate[RATES_SHORT].bytes));
		table_add(&t, strf("%.1f%%",
				   bytes > 0 ? row->rate[RATES_SHORT].bytes * 100 / bytes : 0));
		if (run->event_nsec > 0)
			table_add(&t, format_share(total(&row->saves)));
		else
			table_add_text(&t, "-");
		table_add(&t, format_history(row->saves.history_usec, "+"));
	}
	return table_print(&t);
}

static struct json_object *json_double(double number)
{
	struct json_object *o = json_object_new_double(number);

	if (o)
		json_object_set_serializer(o, json_object_double_to_json_string, (void *)"%.6f",
					   NULL);
	return o;
}

static struct json_object *json_percent(const struct cost_run *run, double share)
{
	return run->event_nsec > 0 ? json_double(share * 100) : NULL;
}

static struct json_object *json_history(uint64_t usec)
{
	return usec > 0 ? json_double((double)usec / USEC_PER_SEC) : NULL;
}

/* Of a session, or of its last hour */
static void add_window(const struct cost_run *run, struct json_object *o, const struct costed *c,
		       enum rates_window w)
{
	static const char *const keys[] = {"window_sec",      "events_per_sec",	  "bytes_per_hour",
					   "history_sec",     "overhead_percent", "tracing_percent",
					   "recorder_percent"};

	for (size_t i = 0; i < ARRAY_SIZE(keys) && c->uncounted; i++)
		json_add(o, keys[i], NULL);
	if (c->uncounted)
		return;
	json_add(o, "window_sec", json_double((double)c->window_usec[w] / USEC_PER_SEC));
	json_add(o, "events_per_sec", json_double(c->rate[w].events));
	json_add(o, "bytes_per_hour", json_double(c->rate[w].bytes * HOUR_SEC));
	json_add(o, "history_sec", json_history(c->cost[w].history_usec));
	json_add(o, "overhead_percent", json_percent(run, total(&c->cost[w])));
	json_add(o, "tracing_percent", json_percent(run, c->cost[w].tracing));
	json_add(o, "recorder_percent", json_double(c->cost[w].recorder * 100));
}

static struct json_object *row_json(const struct cost_run *run, const struct row *row)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "event", json_text(row->event));
	json_add(o, "events_per_sec", json_double(row->rate[RATES_SHORT].events));
	json_add(o, "bytes_per_hour", json_double(row->rate[RATES_SHORT].bytes * HOUR_SEC));
	json_add(o, "hour_events_per_sec", json_double(row->rate[RATES_LONG].events));
	json_add(o, "hour_bytes_per_hour", json_double(row->rate[RATES_LONG].bytes * HOUR_SEC));
	json_add(o, "saves_percent", json_percent(run, total(&row->saves)));
	json_add(o, "gains_sec", json_history(row->saves.history_usec));
	return o;
}

static struct json_object *session_json(const struct cost_run *run, const struct costed *c)
{
	struct json_object *o = json_object_new_object(), *hour = json_object_new_object();
	struct json_object *rows = json_object_new_array();

	json_add(o, "name", json_text(c->session->name));
	json_add(o, "mode", json_text(c->session->mode));
	add_window(run, o, c, RATES_SHORT);
	add_window(run, hour, c, RATES_LONG);
	json_add(o, "hour", hour);
	for (size_t i = 0; i < c->n_rows; i++)
		json_append(rows, row_json(run, &c->rows[i]));
	json_add(o, "events", rows);
	json_add(o, "shed", json_list(c->session->shed));
	json_add(o, "notes", json_list(c->notes));
	return o;
}

static enum ctl_status show_json(const struct cost_run *run)
{
	struct json_object *o = json_object_new_object(), *sessions = json_object_new_array();

	for (size_t i = 0; i < run->n; i++)
		json_append(sessions, session_json(run, &run->sessions[i]));
	json_add(o, "event_nsec", run->event_nsec > 0 ? json_double(run->event_nsec) : NULL);
	json_add(o, "cpus", json_number(run->cpus));
	json_add(o, "sessions", sessions);
	return print_json(o);
}

static int cost_confined(void *userdata)
{
	struct cost_run *run = userdata;
	int r = 0;

	for (size_t i = 0; i < run->n && r >= 0; i++)
		r = work_out(&run->sessions[i]);
	if (r >= 0 && run->ctl->json)
		return (int)show_json(run);
	if (r >= 0)
		r = run->one ? print_one(run, &run->sessions[0]) : print_all(run);
	if (r < 0) {
		(void)log_error_errno(r, "cost: %m");
		return CTL_FAILED;
	}
	print_notes(run);
	return CTL_DONE;
}

static void run_done(struct cost_run *run)
{
	for (size_t i = 0; i < run->n; i++) {
		struct costed *c = &run->sessions[i];

		source_list_done(&c->sources);
		for (size_t k = 0; k < c->n_rows; k++)
			free(c->rows[k].event);
		free(c->rows);
		strv_free(c->notes);
	}
	free(run->sessions);
	free(run->uncalibrated);
	view_done(view_status_fields, &run->status);
}

enum ctl_status verb_cost(struct ctl *ctl, int argc, char **argv)
{
	struct cost_run run = {.ctl = ctl, .one = argc > 1};
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	enum ctl_status status = CTL_FAILED;
	int r;

	if (argc > 2)
		return ctl_complain(ctl, "one session or none, not %d", argc - 1);
	run.cpus = cpus > 0 ? (unsigned)cpus : 1;
	if (view_read_status(ctl, run.one ? argv[1] : NULL, &run.status) < 0)
		return CTL_FAILED;
	if (run.one && !is_tracing(&run.status.sessions[0])) {
		log_error("cost: session %s does not record, it is %s", argv[1],
			  run.status.sessions[0].state);
		run_done(&run);
		return CTL_FAILED;
	}
	if (prepare_all(&run) >= 0) {
		output_begin(ctl);
		r = ctl_confined("cost", NULL, cost_confined, &run);
		status = output_end();
		status = MAX(status, r < 0 ? CTL_FAILED : (enum ctl_status)r);
	}
	run_done(&run);
	return status;
}
