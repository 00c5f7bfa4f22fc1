/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/strv.h"
#include "ctl/view.h"

/* --- properties into fields, by a table; what is not in it is skipped */

#define S(member) offsetof(struct view_session, member)
#define D(member) offsetof(struct view_status, member)

const struct view_field view_session_fields[] = {
	{"Name", VIEW_TEXT, S(name), "name"},
	{"Mode", VIEW_TEXT, S(mode), "mode"},
	{"Method", VIEW_TEXT, S(method), "method"},
	{"State", VIEW_TEXT, S(state), "state"},
	{"Instance", VIEW_TEXT, S(instance), "instance"},
	{"Segments", VIEW_NUMBER, S(segments), "segments"},
	{"BytesOnDisk", VIEW_NUMBER, S(bytes_on_disk), "bytes_on_disk"},
	{"Description", VIEW_TEXT, S(description), "description"},
	{"Enabled", VIEW_BOOL, S(enabled), "enabled"},
	{"Failure", VIEW_TEXT, S(failure), "failure"},
	{"BytesRecorded", VIEW_NUMBER, S(bytes_recorded), "bytes_recorded"},
	{"SegmentUSec", VIEW_NUMBER, S(segment_usec), "segment_start_usec"},
	{"LostEvents", VIEW_NUMBER, S(lost_events), "lost_events"},
	{"NotWritten", VIEW_NUMBER, S(not_written), "not_written"},
	{"FirstLossUSec", VIEW_NUMBER, S(first_loss_usec), "first_loss_usec"},
	{"LastLossUSec", VIEW_NUMBER, S(last_loss_usec), "last_loss_usec"},
	{"Events", VIEW_LIST, S(events), "events"},
	{"RuntimeChanges", VIEW_LIST, S(changes), "runtime_changes"},
	{"Triggers", VIEW_TRIGGERS, S(triggers), "triggers"}, /* and n_triggers */
	{"Snapshots", VIEW_NUMBER, S(snapshots), "snapshots"},
	{"SnapshotBytes", VIEW_NUMBER, S(snapshot_bytes), "snapshot_bytes"},
	{"StartedUSec", VIEW_NUMBER, S(started_usec), "started_usec"},
	{"HistoryUSec", VIEW_NUMBER, S(history_usec), "history_usec"},
	{"HistoryPerCPU", VIEW_HISTORY, S(history), "history_per_cpu"}, /* and n_history */
	{"MaxUse", VIEW_NUMBER, S(max_use), "max_use"},
	{"BudgetUSec", VIEW_NUMBER, S(budget_usec), "budget_usec"},
	{"Units", VIEW_LIST, S(units), "units"},
	{"Tasks", VIEW_NUMBER, S(tasks), "tasks"},
	{"Processes", VIEW_NUMBER, S(processes), "processes"},
	{"EventTriggers", VIEW_LIST, S(event_triggers), "event_triggers"},
	{"Clock", VIEW_TEXT, S(clock), "clock"},
	{"BufferSize", VIEW_NUMBER, S(buffer_size), "buffer_size"},
	{},
};

const struct view_field view_daemon_fields[] = {
	{"Version", VIEW_TEXT, D(version), "version"},
	{"ProcessId", VIEW_SMALL, D(pid), "pid"},
	{"UptimeUSec", VIEW_NUMBER, D(uptime_usec), "uptime_usec"},
	{"State", VIEW_TEXT, D(state), "state"},
	{"StateDirectory", VIEW_TEXT, D(state_dir)},
	{},
};

const struct view_counter view_counters[VIEW_COUNTERS] = {
	{"subbufs", "SUBBUFS", "flyrec_subbufs", "Sub-buffers recorded"},
	{"bytes", "BYTES", "flyrec_recorded_bytes", "Bytes recorded", "bytes"},
	{"overrun", "OVERRUN", "flyrec_overrun_events",
	 "Events of recording sessions overwritten before they could be taken"},
	{"commit_overrun", "COMMIT OVERRUN", "flyrec_commit_overrun_events",
	 "Events lost to unfinished writes"},
	{"dropped_events", "DROPPED", "flyrec_dropped_events",
	 "Events not taken, with overwriting off"},
	{"lost_events", "LOST", "flyrec_lost_events", "Events that the data says are missing"},
	{"torn", "TORN", "flyrec_torn_subbufs",
	 "Sub-buffers overwritten while a snapshot copied them"},
	{"evicted", "EVICTED", "flyrec_evicted_subbufs", "Sub-buffers removed by retention"},
	{"not_written", "NOT WRITTEN", "flyrec_not_written_subbufs",
	 "Sub-buffers that the disk did not take"},
};

/* Room for one more in a list of such a size; it is all zero */
static void *grow(void *list, size_t *n, size_t size)
{
	char *more;

	memcpy(&more, list, sizeof(more)); /* a pointer of any type */
	more = reallocarray(more, *n + 1, size);
	if (!more)
		return NULL;
	memcpy(list, &more, sizeof(more));
	return memset(more + size * (*n)++, 0, size);
}

/* v of a(sssstt) */
static int read_triggers(sd_bus_message *m, struct view_session *s)
{
	const char *kind, *text, *state, *unavailable;
	uint64_t fired, suppressed;
	int r = sd_bus_message_enter_container(m, 'v', "a(sssstt)");

	if (r >= 0)
		r = sd_bus_message_enter_container(m, 'a', "(sssstt)");
	while (r >= 0 && (r = sd_bus_message_read(m, "(sssstt)", &kind, &text, &state, &unavailable,
						  &fired, &suppressed)) > 0) {
		struct view_trigger *t = grow(&s->triggers, &s->n_triggers, sizeof(*t));

		if (!t)
			return -ENOMEM;
		*t = (struct view_trigger){
			.kind = strdup(kind),
			.text = strdup(text),
			.state = strdup(state),
			.unavailable = strdup(unavailable),
			.fired = fired,
			.suppressed = suppressed,
		};
	}
	if (r >= 0)
		r = sd_bus_message_exit_container(m);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* v of a(ut) */
static int read_history(sd_bus_message *m, struct view_session *s)
{
	uint32_t cpu;
	uint64_t usec;
	int r = sd_bus_message_enter_container(m, 'v', "a(ut)");

	if (r >= 0)
		r = sd_bus_message_enter_container(m, 'a', "(ut)");
	while (r >= 0 && (r = sd_bus_message_read(m, "(ut)", &cpu, &usec)) > 0) {
		struct view_history *h = grow(&s->history, &s->n_history, sizeof(*h));

		if (!h)
			return -ENOMEM;
		*h = (struct view_history){.cpu = cpu, .usec = usec};
	}
	if (r >= 0)
		r = sd_bus_message_exit_container(m);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_value(sd_bus_message *m, const struct view_field *f, void *object)
{
	void *at = (char *)object + f->offset;
	const char *text;
	uint32_t number;
	int r, yes;

	switch (f->type) {
	case VIEW_TEXT:
		r = sd_bus_message_read(m, "v", "s", &text);
		if (r >= 0 && !*(char **)at)
			*(char **)at = strdup(text);
		return r;
	case VIEW_SMALL:
		r = sd_bus_message_read(m, "v", "u", &number);
		if (r >= 0)
			*(uint64_t *)at = number;
		return r;
	case VIEW_BOOL:
		r = sd_bus_message_read(m, "v", "b", &yes);
		if (r >= 0)
			*(bool *)at = yes;
		return r;
	case VIEW_NUMBER:
		return sd_bus_message_read(m, "v", "t", at);
	case VIEW_HISTORY:
		return read_history(m, object);
	case VIEW_TRIGGERS:
		return read_triggers(m, object);
	default:
		r = sd_bus_message_enter_container(m, 'v', "as");
		if (r >= 0)
			r = sd_bus_message_read_strv(m, at);
		return r < 0 ? r : sd_bus_message_exit_container(m);
	}
}

/* a{sv} */
static int read_properties(sd_bus_message *m, const struct view_field *fields, void *object)
{
	int r = sd_bus_message_enter_container(m, 'a', "{sv}");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		const struct view_field *f = fields;
		const char *property;

		r = sd_bus_message_read(m, "s", &property);
		while (r >= 0 && f->property && strcmp(f->property, property) != 0)
			f++;
		if (r >= 0)
			r = f->property ? read_value(m, f, object) : sd_bus_message_skip(m, "v");
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* --- status */

static void free_fields(const struct view_field *f, void *object)
{
	for (; f->property; f++) {
		void *at = (char *)object + f->offset;

		if (f->type == VIEW_TEXT)
			free(*(char **)at);
		else if (f->type == VIEW_LIST)
			strv_free(*(char ***)at);
	}
}

static void session_done(struct view_session *s)
{
	free_fields(view_session_fields, s);
	free(s->history);
	for (size_t i = 0; i < s->n_triggers; i++) {
		free(s->triggers[i].kind);
		free(s->triggers[i].text);
		free(s->triggers[i].state);
		free(s->triggers[i].unavailable);
	}
	free(s->triggers);
}

void view_status_done(struct view_status *status)
{
	for (size_t i = 0; i < status->n_sessions; i++)
		session_done(&status->sessions[i]);
	free(status->sessions);
	free_fields(view_daemon_fields, status);
	*status = (struct view_status){};
}

static int add_session(sd_bus_message *m, struct view_status *status)
{
	struct view_session *s = grow(&status->sessions, &status->n_sessions, sizeof(*s));

	return s ? read_properties(m, view_session_fields, s) : -ENOMEM;
}

/* a{sa{sv}}: the interfaces of one object */
static int read_object(sd_bus_message *m, struct view_status *status)
{
	int r = sd_bus_message_enter_container(m, 'a', "{sa{sv}}");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sa{sv}")) > 0) {
		const char *interface;

		r = sd_bus_message_read(m, "s", &interface);
		if (r >= 0)
			r = strcmp(interface, BUS_SESSION) == 0 ? add_session(m, status)
								: sd_bus_message_skip(m, "a{sv}");
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int by_name(const void *a, const void *b)
{
	const struct view_session *x = a, *y = b;

	return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

static int read_objects(sd_bus_message *m, struct view_status *status)
{
	int r = sd_bus_message_enter_container(m, 'a', "{oa{sa{sv}}}");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "oa{sa{sv}}")) > 0) {
		r = sd_bus_message_skip(m, "o");
		if (r >= 0)
			r = read_object(m, status);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	if (r >= 0 && status->n_sessions > 0)
		qsort(status->sessions, status->n_sessions, sizeof(*status->sessions), by_name);
	return r;
}

static int read_sessions(sd_bus *bus, const char *verb, const char *only,
			 struct view_status *status)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	_cleanup_free_ char *path = NULL;
	int r;

	if (!only) {
		r = bus_call(bus, verb, BUS_PATH, "org.freedesktop.DBus.ObjectManager",
			     "GetManagedObjects", &reply, NULL);
		if (r < 0)
			return r;
		r = read_objects(reply, status);
		return r < 0 ? bus_bad_answer(verb, r) : 0;
	}
	r = bus_find_session(bus, verb, only, &path);
	if (r >= 0)
		r = bus_call(bus, verb, path, "org.freedesktop.DBus.Properties", "GetAll", &reply,
			     "s", BUS_SESSION);
	if (r < 0)
		return r;
	r = add_session(reply, status);
	return r < 0 ? bus_bad_answer(verb, r) : 0;
}

int view_read_status(sd_bus *bus, const char *verb, const char *only, struct view_status *ret)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	struct view_status status = {};
	int r;

	r = bus_call(bus, verb, BUS_PATH, "org.freedesktop.DBus.Properties", "GetAll", &reply, "s",
		     BUS_MANAGER);
	if (r >= 0) {
		r = read_properties(reply, view_daemon_fields, &status);
		r = r < 0 ? bus_bad_answer(verb, r) : read_sessions(bus, verb, only, &status);
	}
	if (r < 0) {
		view_status_done(&status);
		return r;
	}
	*ret = status;
	return 0;
}

static int escape_fields(const struct view_field *f, void *object)
{
	int r = 0;

	for (; f->property && r >= 0; f++) {
		void *at = (char *)object + f->offset;

		if (f->type == VIEW_TEXT)
			r = escape_replace((char **)at);
		else if (f->type == VIEW_LIST)
			for (char **s = *(char ***)at; s && *s && r >= 0; s++)
				r = escape_replace(s);
	}
	return r;
}

int view_escape(struct view_status *status)
{
	int r = escape_fields(view_daemon_fields, status);

	for (size_t i = 0; i < status->n_sessions && r >= 0; i++) {
		struct view_session *s = &status->sessions[i];

		r = escape_fields(view_session_fields, s);
		for (size_t k = 0; k < s->n_triggers && r >= 0; k++) {
			struct view_trigger *t = &s->triggers[k];
			char **texts[] = {&t->kind, &t->text, &t->state, &t->unavailable};

			for (size_t n = 0; n < ARRAY_SIZE(texts) && r >= 0; n++)
				r = escape_replace(texts[n]);
		}
	}
	return r;
}

/* --- statistics */

void view_stats_done(struct view_stats_list *stats)
{
	for (size_t i = 0; i < stats->n; i++) {
		free(stats->sessions[i].name);
		free(stats->sessions[i].cpus);
	}
	free(stats->sessions);
	*stats = (struct view_stats_list){};
}

static int read_cpus(sd_bus_message *m, struct view_stats *s)
{
	int r = sd_bus_message_enter_container(m, 'a', "(uttttttttt)");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "uttttttttt")) > 0) {
		struct view_cpu *c = grow(&s->cpus, &s->n_cpus, sizeof(*c));

		if (!c)
			return -ENOMEM;
		r = sd_bus_message_read(m, "u", &c->cpu);
		for (size_t i = 0; i < VIEW_COUNTERS && r >= 0; i++)
			r = sd_bus_message_read(m, "t", &c->values[i]);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_stats(sd_bus_message *m, struct view_stats_list *list)
{
	int r = sd_bus_message_enter_container(m, 'a', "(sa(uttttttttt))");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "sa(uttttttttt)")) > 0) {
		struct view_stats *s = grow(&list->sessions, &list->n, sizeof(*s));
		const char *name;

		if (!s)
			return -ENOMEM;
		r = sd_bus_message_read(m, "s", &name);
		if (r >= 0) {
			s->name = strdup(name);
			r = read_cpus(m, s);
		}
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r;
}

int view_read_stats(sd_bus *bus, const char *verb, const char *only, struct view_stats_list *ret)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	struct view_stats_list list = {};
	int r;

	r = bus_call(bus, verb, BUS_PATH, BUS_MANAGER, "GetStatistics", &reply, "s",
		     only ? only : "");
	if (r < 0)
		return r;
	r = read_stats(reply, &list);
	if (r < 0) {
		view_stats_done(&list);
		return bus_bad_answer(verb, r);
	}
	*ret = list;
	return 0;
}

/* --- files */

void view_files_done(struct view_files *files)
{
	for (size_t i = 0; i < files->n; i++) {
		free(files->files[i].session);
		free(files->files[i].kind);
		free(files->files[i].path);
	}
	free(files->files);
	*files = (struct view_files){};
}

static int read_files(sd_bus_message *m, struct view_files *files)
{
	const char *session, *kind, *path;
	uint64_t bytes, start, end;
	uint32_t cpus;
	int pinned, r = sd_bus_message_enter_container(m, 'a', "(ssstttub)");

	while (r >= 0 && (r = sd_bus_message_read(m, "(ssstttub)", &session, &kind, &path, &bytes,
						  &start, &end, &cpus, &pinned)) > 0) {
		struct view_file *f = grow(&files->files, &files->n, sizeof(*f));

		if (!f)
			return -ENOMEM;
		*f = (struct view_file){
			.session = strdup(session),
			.kind = strdup(kind),
			.path = strdup(path),
			.bytes = bytes,
			.start_usec = start,
			.end_usec = end,
			.cpus = cpus,
			.pinned = pinned,
		};
	}
	return r;
}

int view_read_files(sd_bus *bus, const char *verb, const char *only, struct view_files *ret)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	struct view_files files = {};
	int r = 0;

	/* Whose files? That also says which session was meant. */
	if (only)
		r = bus_find_session(bus, verb, only, NULL);
	if (r >= 0)
		r = bus_call(bus, verb, BUS_PATH, BUS_MANAGER, "ListFiles", &reply, "s",
			     only ? only : "");
	if (r < 0)
		return r;
	r = read_files(reply, &files);
	if (r < 0) {
		view_files_done(&files);
		return bus_bad_answer(verb, r);
	}
	*ret = files;
	return 0;
}
