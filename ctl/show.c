/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "ctl/output.h"
#include "ctl/verbs.h"
#include "ctl/view.h"

#define HISTORY_SHOWN 8U /* CPUs */

/* At most one argument, a session */
static bool one_session(int argc, char **argv, const char **ret)
{
	*ret = argc > 1 ? argv[1] : NULL;
	if (argc <= 2)
		return true;
	(void)fprintf(stderr, "flyrecctl: %s: one session or none, not %d\n", argv[0], argc - 1);
	return false;
}

/* --- status */

static struct json_object *triggers_json(const struct view_session *s)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; array && i < s->n_triggers; i++) {
		const struct view_trigger *t = &s->triggers[i];
		struct json_object *o = json_object_new_object();

		json_add(o, "kind", json_text(t->kind));
		json_add(o, "text", json_text(t->text));
		json_add(o, "state", json_text(t->state));
		json_add(o, "unavailable", json_text(t->unavailable));
		json_add(o, "fired", json_number(t->fired));
		json_add(o, "suppressed", json_number(t->suppressed));
		(void)json_object_array_add(array, o);
	}
	return array;
}

static struct json_object *history_json(const struct view_session *s)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; array && i < s->n_history; i++) {
		struct json_object *o = json_object_new_object();

		json_add(o, "cpu", json_number(s->history[i].cpu));
		json_add(o, "history_usec", json_number(s->history[i].usec));
		(void)json_object_array_add(array, o);
	}
	return array;
}

static struct json_object *field_json(const struct view_field *f, const void *object)
{
	const void *at = (const char *)object + f->offset;

	switch (f->type) {
	case VIEW_TEXT:
		return json_text(*(char *const *)at);
	case VIEW_BOOL:
		return json_object_new_boolean(*(const bool *)at);
	case VIEW_LIST:
		return json_list(*(char **const *)at);
	case VIEW_HISTORY:
		return history_json(object);
	case VIEW_TRIGGERS:
		return triggers_json(object);
	default:
		return json_number(*(const uint64_t *)at);
	}
}

static struct json_object *fields_json(const struct view_field *f, const void *object)
{
	struct json_object *o = json_object_new_object();

	for (; f->property; f++)
		if (f->key)
			json_add(o, f->key, field_json(f, object));
	return o;
}

static enum ctl_status status_json(const struct view_status *status)
{
	struct json_object *o = fields_json(view_daemon_fields, status);
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; array && i < status->n_sessions; i++)
		(void)json_object_array_add(array,
					    fields_json(view_session_fields, &status->sessions[i]));
	json_add(o, "sessions", array);
	return print_json(o);
}

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

		printf("%s%s%s%s: %s; %" PRIu64 " taken", i == 0 ? "  Triggers: " : "            ",
		       t->kind, *t->text ? " " : "", t->text, t->state, t->fired);
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

static int print_status(const struct view_status *status)
{
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

static void print_one(const struct view_session *s)
{
	_cleanup_free_ char *started = format_time(s->started_usec);
	_cleanup_free_ char *buffer = format_bytes(s->buffer_size);

	printf("%s%s%s%s%s\n", style(STYLE_BOLD), s->name, style(STYLE_OFF),
	       *s->description ? " - " : "", s->description);
	printf("     State: %s%s%s (%s)\n", state_style(s), s->state, style(STYLE_OFF),
	       s->enabled ? "enabled" : "not enabled");
	if (s->started_usec > 0)
		printf("     Since: %s\n", started ? started : "?");
	printf("      Mode: %s%s%s\n", s->mode, *s->method ? ", snapshots " : "", s->method);
	if (*s->instance)
		printf("  Instance: %s\n", s->instance);
	if (s->clock && *s->clock)
		printf("     Clock: %s\n", s->clock);
	if (s->buffer_size > 0)
		printf("    Buffer: %s for each CPU\n", buffer ? buffer : "?");
	print_reach(s);
	print_files_of(s);
	printf("      Lost: %" PRIu64 " events", s->lost_events);
	if (s->not_written > 0)
		printf(", %" PRIu64 " sub-buffers not written", s->not_written);
	printf("\n");
	print_tasks(s);
	print_list_of("Events", s->events);
	print_list_of("On events", s->event_triggers);
	print_triggers(s);
	print_remarks(s);
}

enum ctl_status verb_status(const struct ctl *ctl, int argc, char **argv)
{
	_cleanup_bus_ sd_bus *bus = NULL;
	struct view_status status;
	enum ctl_status result;
	const char *only;

	if (!one_session(argc, argv, &only))
		return CTL_USAGE;
	if (bus_connect(ctl, argv[0], &bus) < 0 ||
	    view_read_status(bus, argv[0], only, &status) < 0)
		return CTL_FAILED;
	if (ctl->json) {
		result = status_json(&status);
	} else {
		int r = view_escape(&status);

		output_begin(ctl);
		if (r >= 0 && only)
			print_one(&status.sessions[0]);
		else if (r >= 0)
			r = print_status(&status);
		result = output_end();
		if (r < 0)
			result = CTL_FAILED;
	}
	view_status_done(&status);
	return result;
}

/* --- list */

static enum ctl_status list_json(const struct view_files *files)
{
	struct json_object *o = json_object_new_object(), *array = json_object_new_array();

	for (size_t i = 0; array && i < files->n; i++) {
		const struct view_file *f = &files->files[i];
		struct json_object *file = json_object_new_object();

		json_add(file, "session", json_text(f->session));
		json_add(file, "kind", json_text(f->kind));
		json_add(file, "path", json_text(f->path));
		json_add(file, "bytes", json_number(f->bytes));
		json_add(file, "start_usec", json_number(f->start_usec));
		json_add(file, "end_usec", json_number(f->end_usec));
		json_add(file, "cpus", json_number(f->cpus));
		json_add(file, "pinned", json_object_new_boolean(f->pinned));
		(void)json_object_array_add(array, file);
	}
	json_add(o, "files", array);
	return print_json(o);
}

static int print_files(const struct view_files *files)
{
	struct table t = {
		.headings = {"SESSION", "KIND", "START", "END", "SIZE", "PIN", "PATH"},
		.n_columns = 7,
		.numbers = 1U << 4,
		.tails = 1U << 6,
		.spare = 1U << 5,
	};

	for (size_t i = 0; i < files->n; i++) {
		const struct view_file *f = &files->files[i];

		table_add_text(&t, f->session);
		table_add_text(&t, f->kind);
		table_add_time(&t, f->start_usec);
		table_add(&t, format_time_after(f->end_usec, f->start_usec));
		table_add_bytes(&t, f->bytes);
		table_add_text(&t, f->pinned ? "yes" : "-");
		table_add_text(&t, f->path);
	}
	return table_print(&t);
}

enum ctl_status verb_list(const struct ctl *ctl, int argc, char **argv)
{
	_cleanup_bus_ sd_bus *bus = NULL;
	struct view_files files;
	enum ctl_status result;
	const char *only;

	if (!one_session(argc, argv, &only))
		return CTL_USAGE;
	if (bus_connect(ctl, argv[0], &bus) < 0 || view_read_files(bus, argv[0], only, &files) < 0)
		return CTL_FAILED;
	if (ctl->json) {
		result = list_json(&files);
	} else {
		int r;

		output_begin(ctl);
		r = print_files(&files);
		result = output_end();
		if (r < 0)
			result = CTL_FAILED;
	}
	view_files_done(&files);
	return result;
}

/* --- stats */

static struct json_object *cpu_json(const struct view_cpu *c)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "cpu", json_number(c->cpu));
	for (size_t i = 0; i < VIEW_COUNTERS; i++)
		json_add(o, view_counters[i].key, json_number(c->values[i]));
	return o;
}

static enum ctl_status stats_json(const struct view_stats_list *stats)
{
	struct json_object *o = json_object_new_object(), *array = json_object_new_array();

	for (size_t i = 0; array && i < stats->n; i++) {
		struct json_object *s = json_object_new_object(), *cpus = json_object_new_array();

		json_add(s, "name", json_text(stats->sessions[i].name));
		for (size_t cpu = 0; cpus && cpu < stats->sessions[i].n_cpus; cpu++)
			(void)json_object_array_add(cpus, cpu_json(&stats->sessions[i].cpus[cpu]));
		json_add(s, "cpus", cpus);
		(void)json_object_array_add(array, s);
	}
	json_add(o, "sessions", array);
	return print_json(o);
}

/* What a flight session overwrites is no loss, and no number to look at */
static bool overwrites(const struct view_status *status, const char *name)
{
	for (size_t i = 0; i < status->n_sessions; i++)
		if (strcmp(status->sessions[i].name, name) == 0)
			return is_flight(status->sessions[i].mode);
	return false;
}

static int print_stats(const struct view_stats_list *stats, const struct view_status *status)
{
	struct table t = {
		.headings = {"SESSION", "CPU"},
		.n_columns = 2 + VIEW_COUNTERS,
		.numbers = ~1U,
		.spare = ~7U,
	};

	for (size_t k = 0; k < VIEW_COUNTERS; k++)
		t.headings[2 + k] = view_counters[k].heading;
	for (size_t i = 0; i < stats->n; i++)
		for (size_t cpu = 0; cpu < stats->sessions[i].n_cpus; cpu++) {
			const struct view_cpu *c = &stats->sessions[i].cpus[cpu];

			table_add_text(&t, stats->sessions[i].name);
			table_add_number(&t, c->cpu);
			for (size_t k = 0; k < VIEW_COUNTERS; k++)
				if (k == VIEW_OVERRUN &&
				    overwrites(status, stats->sessions[i].name))
					table_add_text(&t, "-");
				else
					table_add_number(&t, c->values[k]);
		}
	return table_print(&t);
}

enum ctl_status verb_stats(const struct ctl *ctl, int argc, char **argv)
{
	_cleanup_bus_ sd_bus *bus = NULL;
	struct view_stats_list stats = {};
	struct view_status status = {};
	enum ctl_status result;
	const char *only;

	if (!one_session(argc, argv, &only))
		return CTL_USAGE;
	if (bus_connect(ctl, argv[0], &bus) < 0 || view_read_stats(bus, argv[0], only, &stats) < 0)
		return CTL_FAILED;
	if (!ctl->json && view_read_status(bus, argv[0], only, &status) < 0) {
		view_stats_done(&stats);
		return CTL_FAILED;
	}
	if (ctl->json) {
		result = stats_json(&stats);
	} else {
		int r;

		output_begin(ctl);
		r = print_stats(&stats, &status);
		result = output_end();
		if (r < 0)
			result = CTL_FAILED;
	}
	view_stats_done(&stats);
	view_status_done(&status);
	return result;
}

/* --- metrics */

enum ctl_status verb_metrics(const struct ctl *ctl, int argc, char **argv)
{
	_cleanup_bus_ sd_bus *bus = NULL;
	struct view_status status = {};
	struct view_stats_list stats = {};
	enum ctl_status result = CTL_FAILED;

	if (argc > 1) {
		(void)fprintf(stderr, "flyrecctl: metrics: takes no arguments\n");
		return CTL_USAGE;
	}
	if (ctl->json) {
		(void)fprintf(stderr, "flyrecctl: metrics: OpenMetrics text only; the numbers as "
				      "JSON are in status and stats\n");
		return CTL_USAGE;
	}
	if (bus_connect(ctl, argv[0], &bus) >= 0 &&
	    view_read_status(bus, argv[0], NULL, &status) >= 0 &&
	    view_read_stats(bus, argv[0], NULL, &stats) >= 0) {
		metrics_write(stdout, &status, &stats);
		result = output_end();
	}
	view_stats_done(&stats);
	view_status_done(&status);
	return result;
}

/* --- boot-parameters */

enum ctl_status verb_boot_parameters(const struct ctl *ctl, int argc, char **argv)
{
	_cleanup_message_ sd_bus_message *call = NULL, *reply = NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	const char *text;
	int r;

	if (bus_connect(ctl, argv[0], &bus) < 0)
		return CTL_FAILED;
	r = sd_bus_message_new_method_call(bus, &call, NULL, BUS_PATH, BUS_MANAGER,
					   "GetBootParameters");
	if (r >= 0)
		r = sd_bus_message_append_strv(call, argv + 1);
	if (r < 0) {
		(void)fprintf(stderr, "flyrecctl: %s: %s\n", argv[0], strerror(-r));
		return CTL_FAILED;
	}
	if (bus_call_message(bus, argv[0], call, &reply) < 0)
		return CTL_FAILED;
	r = sd_bus_message_read(reply, "s", &text);
	if (r < 0)
		return bus_bad_answer(argv[0], r) < 0 ? CTL_FAILED : CTL_DONE;
	if (ctl->json) {
		struct json_object *o = json_object_new_object();

		json_add(o, "parameters", json_text(text));
		return print_json(o);
	}
	(void)puts(text);
	return CTL_DONE;
}
