/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "ctl/bus.h"
#include "ctl/graph.h"
#include "ctl/output.h"
#include "ctl/view.h"

#define HISTORY_SHOWN 8U /* CPUs */

/* At most one argument, a session */
static bool one_session(const struct ctl *ctl, int argc, char **argv, const char **ret)
{
	*ret = argc > 1 ? argv[1] : NULL;
	if (argc > 2)
		(void)ctl_complain(ctl, "one session or none, not %d", argc - 1);
	return argc <= 2;
}

/* As JSON, or by @print; frees it */
static enum ctl_status show(const struct ctl *ctl, const struct view_field *fields, void *object,
			    int (*print)(const void *object))
{
	enum ctl_status result;
	int r = 0;

	if (ctl->json) {
		result = print_json(view_json(fields, object));
	} else {
		output_begin(ctl);
		r = print(object);
		result = output_end();
	}
	view_done(fields, object);
	return r < 0 ? CTL_FAILED : result;
}

/* --- status */

static const char *state_style(const struct view_session *s)
{
	if (strcmp(s->state, "failed") == 0)
		return style(STYLE_RED STYLE_BOLD);
	return strcmp(s->state, "recording") == 0 ? "" : style(STYLE_YELLOW);
}

static void print_lost(const struct view_session *s)
{
	_cleanup_free_ char *first = format_time(s->first_loss_usec);
	_cleanup_free_ char *last = format_time(s->last_loss_usec);

	if (s->first_loss_usec == 0 || !first || !last)
		return;
	printf("%s%s: %" PRIu64 " events lost", style(STYLE_YELLOW), s->name, s->lost_events);
	if (s->not_written > 0)
		printf(", %" PRIu64 " sub-buffers not written", s->not_written);
	printf(", first %s, last %s%s\n", first, last, style(STYLE_OFF));
}

/* Of these people must know without asking */
static void print_unavailable(const struct view_session *s)
{
	for (size_t i = 0; i < s->n_triggers; i++)
		if (strcmp(s->triggers[i].state, "unavailable") == 0 && *s->triggers[i].text != '-')
			printf("%s%s: no snapshot on %s %s: %s%s\n", style(STYLE_YELLOW), s->name,
			       s->triggers[i].kind, s->triggers[i].text, s->triggers[i].unavailable,
			       style(STYLE_OFF));
}

static void print_triggers(const struct view_session *s)
{
	for (size_t i = 0; i < s->n_triggers; i++) {
		const struct view_trigger *t = &s->triggers[i];

		printf("%s%s%s%s: %s%s; %" PRIu64 " taken",
		       i == 0 ? "  Triggers: " : "            ", t->kind, *t->text ? " " : "",
		       t->text, t->state,
		       strcmp(t->way, "kernel") == 0 ? " in the kernel, when the wait ends" : "",
		       t->fired);
		if (t->suppressed > 0)
			printf(", %" PRIu64 " suppressed", t->suppressed);
		printf("\n");
	}
}

/* What the table has no room for */
static void print_remarks(const struct view_session *s)
{
	if (*s->failure)
		printf("%s%s: %s: %s%s\n", style(STYLE_RED), s->name,
		       strcmp(s->state, "failed") == 0 ? "failed" : "trouble", s->failure,
		       style(STYLE_OFF));
	print_lost(s);
	print_unavailable(s);
	if (s->changes && s->changes[0])
		printf("%s: not as configured:", s->name);
	STRV_FOREACH (change, s->changes)
		printf("%s %s", change == s->changes ? "" : ",", *change);
	if (s->changes && s->changes[0])
		printf("\n");
}

static bool is_flight(const char *mode)
{
	return strcmp(mode, "flight") == 0;
}

static void add_reach(struct table *t, uint64_t usec)
{
	if (usec > 0)
		table_add(t, format_timespan(usec));
	else
		table_add_text(t, "-");
}

static int print_status(const void *object)
{
	const struct view_status *status = object;
	struct table t = {
		.headings = {"SESSION", "MODE", "STATE", "SEGMENTS", "SNAPSHOTS", "DISK", "REACHES",
			     "LOST", "DESCRIPTION"},
		.n_columns = 9,
		.numbers = 1U << 3 | 1U << 4 | 1U << 5 | 1U << 6 | 1U << 7,
		.shorten = 1U << 8,
		.spare = 1U << 3 | 1U << 4 | 1U << 7,
	};
	_cleanup_free_ char *uptime = format_timespan(status->uptime_usec);
	int r;

	printf("flyrecd %s, pid %" PRIu64 ", %s, up %s\n", status->version, status->pid,
	       status->state, uptime ? uptime : "?");
	for (size_t i = 0; i < status->n_sessions; i++) {
		const struct view_session *s = &status->sessions[i];
		bool flight = is_flight(s->mode);

		table_add_text(&t, s->name);
		table_add_text(&t, s->mode);
		table_add_text(&t, s->state);
		if (flight)
			table_add_text(&t, "-");
		else
			table_add_number(&t, s->segments);
		table_add_number(&t, s->snapshots);
		table_add_bytes(&t, s->bytes_on_disk + (flight ? 0 : s->snapshot_bytes));
		add_reach(&t, s->history_usec);
		table_add_number(&t, s->lost_events);
		table_add_text(&t, s->description);
	}
	r = table_print(&t);
	for (size_t i = 0; i < status->n_sessions && r >= 0; i++)
		print_remarks(&status->sessions[i]);
	return r;
}

/* "4.3s back (cpu0 4.3s, cpu1 6.1s)" */
static void print_reach(const struct view_session *s)
{
	_cleanup_free_ char *all = format_timespan(s->history_usec);

	if (s->history_usec == 0)
		return;
	printf("   Reaches: %s back", all ? all : "?");
	for (size_t i = 0; i < MIN(s->n_history, (size_t)HISTORY_SHOWN); i++) {
		_cleanup_free_ char *one = format_timespan(s->history[i].usec);

		printf("%scpu%" PRIu64 " %s", i == 0 ? " (" : ", ", s->history[i].cpu,
		       one ? one : "?");
	}
	if (s->n_history > HISTORY_SHOWN)
		printf(", %zu more", s->n_history - HISTORY_SHOWN);
	printf("%s\n", s->n_history > 0 ? ")" : "");
}

static void print_files_of(const struct view_session *s)
{
	_cleanup_free_ char *disk = format_bytes(s->bytes_on_disk);
	_cleanup_free_ char *snapshots = format_bytes(s->snapshot_bytes);
	_cleanup_free_ char *recorded = format_bytes(s->bytes_recorded);
	_cleanup_free_ char *since = format_time(s->segment_usec);
	_cleanup_free_ char *max = format_bytes(s->max_use);
	_cleanup_free_ char *lasts = format_timespan(s->budget_usec);

	if (!is_flight(s->mode))
		printf("  Segments: %" PRIu64 ", %s\n", s->segments, disk ? disk : "?");
	if (s->segment_usec > 0)
		printf("   Segment: since %s\n", since ? since : "?");
	printf(" Snapshots: %" PRIu64 ", %s\n", s->snapshots, snapshots ? snapshots : "?");
	printf("  Recorded: %s since flyrecd was started\n", recorded ? recorded : "?");
	if (s->budget_usec > 0)
		printf("    Budget: MaxUse=%s lasts %s at the rate of the last day\n",
		       max ? max : "?", lasts ? lasts : "?");
}

/* "12 segments, 1.1G instead of 9.8G (1/8.9), 1 waits" */
static void print_compression(const struct view_session *s)
{
	_cleanup_free_ char *packed = format_bytes(s->packed_bytes);
	_cleanup_free_ char *raw = format_bytes(s->raw_bytes);

	if (!s->compress || (strcmp(s->compress, "no") == 0 && s->packed_segments == 0))
		return;
	printf("Compressed: %" PRIu64 " segments", s->packed_segments);
	if (s->packed_bytes > 0)
		printf(", %s instead of %s (1/%.1f)", packed ? packed : "?", raw ? raw : "?",
		       (double)s->raw_bytes / (double)s->packed_bytes);
	if (s->packing_waits > 0)
		printf(", %" PRIu64 " waiting", s->packing_waits);
	printf("\n");
	if (s->packing_failure && *s->packing_failure)
		printf("            %slast failure: %s%s\n", style(STYLE_YELLOW),
		       s->packing_failure, style(STYLE_OFF));
}

static void print_list_of(const char *title, char *const *list)
{
	for (char *const *text = list; text && *text; text++)
		printf("%*s%s%s\n", text == list ? 10 : 12, text == list ? title : "",
		       text == list ? ": " : "", *text);
}

static void print_tasks(const struct view_session *s)
{
	if (s->units && s->units[0])
		print_list_of("Unit", s->units);
	if (s->tasks > 0)
		printf(" Processes: %" PRIu64 ", %" PRIu64 " threads\n", s->processes, s->tasks);
	else if (s->units && s->units[0] && strcmp(s->state, "recording") == 0)
		printf(" Processes: %snone: is %s running?%s\n", style(STYLE_YELLOW), s->units[0],
		       style(STYLE_OFF));
}

static int print_one(const void *object)
{
	const struct view_session *s = ((const struct view_status *)object)->sessions;
	_cleanup_free_ char *started = format_time(s->started_usec);
	_cleanup_free_ char *buffer = format_bytes(s->buffer_size);
	_cleanup_free_ char *subbuf = format_bytes(s->subbuf_size);

	printf("%s%s%s%s%s\n", style(STYLE_BOLD), s->name, style(STYLE_OFF),
	       *s->description ? " - " : "", s->description);
	printf("     State: %s%s%s (%s)\n", state_style(s), s->state, style(STYLE_OFF),
	       s->enabled ? "enabled" : "not enabled");
	if (s->started_usec > 0)
		printf("     Since: %s\n", started ? started : "?");
	printf("      Mode: %s%s%s\n", s->mode, *s->method ? ", snapshots " : "", s->method);
	if (*s->instance)
		printf("  Instance: %s\n", s->instance);
	if (s->trace_marker && *s->trace_marker)
		printf("    Marker: %s\n", s->trace_marker);
	if (s->clock && *s->clock)
		printf("     Clock: %s\n", s->clock);
	if (s->buffer_size > 0)
		printf("    Buffer: %s for each CPU%s%s%s%s\n", buffer ? buffer : "?",
		       s->subbuf_size > 0 ? ", in sub-buffers of " : "",
		       s->subbuf_size > 0 && subbuf ? subbuf : "",
		       s->drain && *s->drain ? ", drained by " : "", s->drain ? s->drain : "");
	print_reach(s);
	print_files_of(s);
	print_compression(s);
	printf("      Lost: %" PRIu64 " events", s->lost_events);
	if (s->not_written > 0)
		printf(", %" PRIu64 " sub-buffers not written", s->not_written);
	printf("\n");
	print_tasks(s);
	print_list_of("Events", s->events);
	print_list_of("Shed", s->shed);
	print_list_of("On events", s->event_triggers);
	print_triggers(s);
	print_remarks(s);
	return 0;
}

struct shown_status {
	struct view_status status;
	struct view_hours hours; /* of --graph */
	bool one;
};

/* Sessions that nobody has started yet have none */
static struct json_object *json_hour(const struct view_hours *hours, const char *name)
{
	const struct view_hour none = {}, *hour = &none;
	struct json_object *o, *rows = NULL;

	for (size_t i = 0; i < hours->n; i++)
		if (strcmp(hours->sessions[i].name, name) == 0)
			hour = &hours->sessions[i];
	o = view_json(view_hour_fields, hour);
	if (json_object_object_get_ex(o, "last_hour", &rows))
		(void)json_object_get(rows);
	(void)json_object_put(o);
	return rows;
}

static struct json_object *json_status(const struct shown_status *shown, bool graph)
{
	struct json_object *o = view_json(view_status_fields, &shown->status), *sessions;

	if (!graph || !json_object_object_get_ex(o, "sessions", &sessions))
		return o;
	for (size_t i = 0; i < shown->status.n_sessions; i++)
		json_add(json_object_array_get_idx(sessions, i), "last_hour",
			 json_hour(&shown->hours, shown->status.sessions[i].name));
	return o;
}

static enum ctl_status show_status(const struct ctl *ctl, struct shown_status *shown)
{
	enum ctl_status result;
	int r;

	if (ctl->json)
		return print_json(json_status(shown, ctl->graph));
	if (view_escape(view_status_fields, &shown->status) < 0 ||
	    view_escape(view_hours_fields, &shown->hours) < 0)
		return CTL_FAILED;
	output_begin(ctl);
	r = shown->one ? print_one(&shown->status) : print_status(&shown->status);
	if (r >= 0 && ctl->graph)
		r = graph_print(&shown->hours);
	result = output_end();
	return r < 0 ? CTL_FAILED : result;
}

enum ctl_status verb_status(struct ctl *ctl, int argc, char **argv)
{
	struct shown_status shown = {};
	enum ctl_status result = CTL_FAILED;
	const char *only;

	if (!one_session(ctl, argc, argv, &only))
		return CTL_USAGE;
	shown.one = only;
	if (view_read_status(ctl, only, &shown.status) >= 0 &&
	    (!ctl->graph || view_read_hours(ctl, only, &shown.hours) >= 0))
		result = show_status(ctl, &shown);
	view_done(view_hours_fields, &shown.hours);
	view_done(view_status_fields, &shown.status);
	return result;
}

/* --- list */

static int print_files(const void *object)
{
	const struct view_files *files = object;
	struct table t = {
		.headings = {"SESSION", "KIND", "START", "END", "SIZE", "BEFORE", "PIN", "PATH",
			     "FINDING", "ID"},
		.n_columns = 10,
		.numbers = 1U << 4 | 1U << 5,
		.shorten = 1U << 8,
		.tails = 1U << 7,
		.spare = 1U << 5 | 1U << 6 | 1U << 8 | 1U << 9,
	};

	for (size_t i = 0; i < files->n; i++) {
		const struct view_file *f = &files->files[i];

		table_add_text(&t, f->session);
		table_add_text(&t, f->kind);
		table_add_time(&t, f->start_usec);
		table_add(&t, format_time_after(f->end_usec, f->start_usec));
		table_add_bytes(&t, f->bytes);
		if (f->raw_bytes > f->bytes)
			table_add_bytes(&t, f->raw_bytes);
		else
			table_add_text(&t, "-");
		table_add_text(&t, f->pinned ? "yes" : "-");
		table_add_text(&t, f->path);
		table_add_text(&t, f->finding && *f->finding ? f->finding : "-");
		table_add_text(&t, f->ids && f->ids[0] ? f->ids[0] : "-");
	}
	return table_print(&t);
}

enum ctl_status verb_list(struct ctl *ctl, int argc, char **argv)
{
	struct view_files files;
	const char *only;

	if (!one_session(ctl, argc, argv, &only))
		return CTL_USAGE;
	if (view_read_files(ctl, only, &files) < 0)
		return CTL_FAILED;
	return show(ctl, view_files_fields, &files, print_files);
}

/* --- stats */

struct shown_stats {
	struct view_stats_list stats;
	const struct view_status *status;
};

/* What a flight session overwrites is no loss, and no number to look at */
static bool overwrites(const struct view_status *status, const char *name)
{
	for (size_t i = 0; i < status->n_sessions; i++)
		if (strcmp(status->sessions[i].name, name) == 0)
			return is_flight(status->sessions[i].mode);
	return false;
}

static int print_stats(const void *object)
{
	const struct shown_stats *shown = object;
	const struct view_stats_list *stats = &shown->stats;
	struct table t = {
		.headings = {"SESSION", "CPU"},
		.n_columns = 2 + VIEW_COUNTERS,
		.numbers = ~1U,
		.spare = ~7U,
	};

	for (size_t k = 0; k < VIEW_COUNTERS; k++)
		t.headings[2 + k] = view_cpu_fields[1 + k].heading;
	for (size_t i = 0; i < stats->n; i++)
		for (size_t cpu = 0; cpu < stats->sessions[i].n_cpus; cpu++) {
			const struct view_cpu *c = &stats->sessions[i].cpus[cpu];

			table_add_text(&t, stats->sessions[i].name);
			table_add_number(&t, c->cpu);
			for (size_t k = 0; k < VIEW_COUNTERS; k++)
				if (k == VIEW_OVERRUN &&
				    overwrites(shown->status, stats->sessions[i].name))
					table_add_text(&t, "-");
				else
					table_add_number(&t, c->values[k]);
		}
	return table_print(&t);
}

enum ctl_status verb_stats(struct ctl *ctl, int argc, char **argv)
{
	struct view_status status = {};
	struct shown_stats shown = {.status = &status};
	enum ctl_status result = CTL_FAILED;
	const char *only;

	if (!one_session(ctl, argc, argv, &only))
		return CTL_USAGE;
	if (view_read_stats(ctl, only, &shown.stats) < 0)
		return CTL_FAILED;
	if (ctl->json || view_read_status(ctl, only, &status) >= 0)
		result = show(ctl, view_stats_fields, &shown, print_stats);
	else
		view_done(view_stats_fields, &shown);
	view_done(view_status_fields, &status);
	return result;
}

/* --- metrics */

enum ctl_status verb_metrics(struct ctl *ctl, int argc, char **argv)
{
	struct view_status status = {};
	struct view_stats_list stats = {};
	enum ctl_status result = CTL_FAILED;

	if (argc > 1)
		return ctl_complain(ctl, "takes no arguments");
	if (ctl->json)
		return ctl_complain(ctl, "OpenMetrics text only; the numbers as JSON are in status "
					 "and stats");
	if (view_read_status(ctl, NULL, &status) >= 0 && view_read_stats(ctl, NULL, &stats) >= 0) {
		metrics_write(stdout, &status, &stats);
		result = output_end();
	}
	view_done(view_stats_fields, &stats);
	view_done(view_status_fields, &status);
	return result;
}

/* --- boot-parameters */

enum ctl_status verb_boot_parameters(struct ctl *ctl, int argc, char **argv)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	const char *text;

	if (bus_call(ctl, NULL, "GetBootParameters", &reply, "as", argv + 1) < 0 ||
	    bus_read(ctl, reply, "s", &text) < 0)
		return CTL_FAILED;
	if (ctl->json)
		return print_json_member("parameters", json_text(text));
	(void)puts(text);
	return CTL_DONE;
}

/* --- words for the shell's completion, one a line; what cannot be had is nothing */

static enum ctl_status complete_files(struct ctl *ctl, const char *session)
{
	struct view_files files;

	if (view_read_files(ctl, session, &files) < 0)
		return CTL_FAILED;
	for (size_t i = 0; i < files.n; i++)
		printf("%s\n",
		       session ? strrchr(files.files[i].path, '/') + 1 : files.files[i].path);
	view_done(view_files_fields, &files);
	return CTL_DONE;
}

static enum ctl_status complete_sessions(struct ctl *ctl, const char *events_of)
{
	struct view_status status;

	if (view_read_status(ctl, events_of, &status) < 0)
		return CTL_FAILED;
	for (size_t i = 0; i < status.n_sessions; i++) {
		if (!events_of)
			printf("%s\n", status.sessions[i].name);
		STRV_FOREACH (event, events_of ? status.sessions[i].events : NULL)
			printf("%.*s\n", (int)strcspn(*event, " "), *event + (**event == '-'));
	}
	view_done(view_status_fields, &status);
	return CTL_DONE;
}

static enum ctl_status complete_events(struct ctl *ctl)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	_cleanup_(strv_freep) char **events = NULL;

	if (bus_call(ctl, NULL, "ListEvents", &reply, NULL) < 0 ||
	    sd_bus_message_read_strv(reply, &events) < 0)
		return CTL_FAILED;
	STRV_FOREACH (event, events)
		printf("%s\n", *event);
	return CTL_DONE;
}

enum ctl_status verb_complete(struct ctl *ctl, int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *session = argc > 2 ? argv[2] : NULL;

	if (strcmp(what, "sessions") == 0)
		return complete_sessions(ctl, NULL);
	if (strcmp(what, "files") == 0)
		return complete_files(ctl, session);
	if (strcmp(what, "events") == 0)
		return session ? complete_sessions(ctl, session) : complete_events(ctl);
	return CTL_USAGE;
}
