/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/strv.h"
#include "ctl/view.h"

/* --- properties into fields, by a table; what is not in it is skipped */

struct field {
	const char *property;
	char type;
	size_t offset;
};

#define S(member) offsetof(struct view_session, member)
#define D(member) offsetof(struct view_status, member)

static const struct field session_fields[] = {
	{"Name", 's', S(name)},
	{"Description", 's', S(description)},
	{"Mode", 's', S(mode)},
	{"Method", 's', S(method)},
	{"State", 's', S(state)},
	{"Failure", 's', S(failure)},
	{"Instance", 's', S(instance)},
	{"Enabled", 'b', S(enabled)},
	{"Segments", 't', S(segments)},
	{"BytesOnDisk", 't', S(bytes_on_disk)},
	{"BytesRecorded", 't', S(bytes_recorded)},
	{"Snapshots", 't', S(snapshots)},
	{"SegmentUSec", 't', S(segment_usec)},
	{"SnapshotBytes", 't', S(snapshot_bytes)},
	{"StartedUSec", 't', S(started_usec)},
	{"HistoryUSec", 't', S(history_usec)},
	{"HistoryPerCPU", 'h', S(history)}, /* and n_history */
	{"MaxUse", 't', S(max_use)},
	{"BudgetUSec", 't', S(budget_usec)},
	{"Units", 'a', S(units)},
	{"EventTriggers", 'a', S(event_triggers)},
	{"Tasks", 't', S(tasks)},
	{"Processes", 't', S(processes)},
	{"Clock", 's', S(clock)},
	{"BufferSize", 't', S(buffer_size)},
	{"LostEvents", 't', S(lost_events)},
	{"NotWritten", 't', S(not_written)},
	{"FirstLossUSec", 't', S(first_loss_usec)},
	{"LastLossUSec", 't', S(last_loss_usec)},
	{"Events", 'a', S(events)},
	{"RuntimeChanges", 'a', S(changes)},
	{"Triggers", '(', S(triggers)}, /* and n_triggers */
	{},
};

static const struct field daemon_fields[] = {
	{"Version", 's', D(version)},	       {"State", 's', D(state)},
	{"StateDirectory", 's', D(state_dir)}, {"ProcessId", 'u', D(pid)},
	{"UptimeUSec", 't', D(uptime_usec)},   {},
};

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
		struct view_trigger *more =
			reallocarray(s->triggers, s->n_triggers + 1, sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->triggers = more;
		more[s->n_triggers++] = (struct view_trigger){
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
		struct view_history *more =
			reallocarray(s->history, s->n_history + 1, sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->history = more;
		more[s->n_history++] = (struct view_history){.cpu = cpu, .usec = usec};
	}
	if (r >= 0)
		r = sd_bus_message_exit_container(m);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_value(sd_bus_message *m, const struct field *f, void *object)
{
	void *at = (char *)object + f->offset;
	const char *text;
	uint32_t number;
	int r, yes;

	switch (f->type) {
	case 's':
		r = sd_bus_message_read(m, "v", "s", &text);
		if (r >= 0 && !*(char **)at)
			*(char **)at = strdup(text);
		return r;
	case 'u':
		r = sd_bus_message_read(m, "v", "u", &number);
		if (r >= 0)
			*(uint64_t *)at = number;
		return r;
	case 'b':
		r = sd_bus_message_read(m, "v", "b", &yes);
		if (r >= 0)
			*(bool *)at = yes;
		return r;
	case 't':
		return sd_bus_message_read(m, "v", "t", at);
	case 'h':
		return read_history(m, object);
	case '(':
		return read_triggers(m, object);
	default:
		r = sd_bus_message_enter_container(m, 'v', "as");
		if (r >= 0)
			r = sd_bus_message_read_strv(m, at);
		return r < 0 ? r : sd_bus_message_exit_container(m);
	}
}

/* a{sv} */
static int read_properties(sd_bus_message *m, const struct field *fields, void *object)
{
	int r = sd_bus_message_enter_container(m, 'a', "{sv}");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		const struct field *f = fields;
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

static void session_done(struct view_session *s)
{
	free(s->name);
	free(s->description);
	free(s->mode);
	free(s->method);
	free(s->state);
	free(s->failure);
	free(s->instance);
	free(s->clock);
	free(s->history);
	strv_free(s->events);
	strv_free(s->changes);
	strv_free(s->units);
	strv_free(s->event_triggers);
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
	free(status->version);
	free(status->state);
	free(status->state_dir);
	*status = (struct view_status){};
}

static int add_session(sd_bus_message *m, struct view_status *status)
{
	struct view_session *more =
		reallocarray(status->sessions, status->n_sessions + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	status->sessions = more;
	more[status->n_sessions] = (struct view_session){};
	return read_properties(m, session_fields, &more[status->n_sessions++]);
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
	_cleanup_message_ sd_bus_message *reply = NULL, *where = NULL;
	const char *path;
	int r;

	if (!only) {
		r = bus_call(bus, verb, BUS_PATH, "org.freedesktop.DBus.ObjectManager",
			     "GetManagedObjects", &reply, NULL);
		if (r < 0)
			return r;
		r = read_objects(reply, status);
		return r < 0 ? bus_bad_answer(verb, r) : 0;
	}
	r = bus_call(bus, verb, BUS_PATH, BUS_MANAGER, "GetSession", &where, "s", only);
	if (r < 0)
		return r;
	r = sd_bus_message_read(where, "o", &path);
	if (r < 0)
		return bus_bad_answer(verb, r);
	r = bus_call(bus, verb, path, "org.freedesktop.DBus.Properties", "GetAll", &reply, "s",
		     BUS_SESSION);
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
		r = read_properties(reply, daemon_fields, &status);
		r = r < 0 ? bus_bad_answer(verb, r) : read_sessions(bus, verb, only, &status);
	}
	if (r < 0) {
		view_status_done(&status);
		return r;
	}
	*ret = status;
	return 0;
}

static int escape_fields(const struct field *f, void *object)
{
	int r = 0;

	for (; f->property && r >= 0; f++) {
		char *at = (char *)object + f->offset;

		if (f->type == 's')
			r = escape_replace((char **)at);
		else if (f->type == 'a')
			for (char **s = *(char ***)at; s && *s && r >= 0; s++)
				r = escape_replace(s);
	}
	return r;
}

int view_escape(struct view_status *status)
{
	int r = escape_fields(daemon_fields, status);

	for (size_t i = 0; i < status->n_sessions && r >= 0; i++) {
		struct view_session *s = &status->sessions[i];

		r = escape_fields(session_fields, s);
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
	struct view_cpu c;
	uint32_t cpu;
	int r = sd_bus_message_enter_container(m, 'a', "(uttttttttt)");

	while (r >= 0 &&
	       (r = sd_bus_message_read(m, "(uttttttttt)", &cpu, &c.subbufs, &c.bytes, &c.overrun,
					&c.commit_overrun, &c.dropped_events, &c.lost_events,
					&c.torn, &c.evicted, &c.not_written)) > 0) {
		struct view_cpu *more = reallocarray(s->cpus, s->n_cpus + 1, sizeof(*more));

		if (!more)
			return -ENOMEM;
		c.cpu = cpu;
		s->cpus = more;
		more[s->n_cpus++] = c;
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_stats(sd_bus_message *m, struct view_stats_list *list)
{
	int r = sd_bus_message_enter_container(m, 'a', "(sa(uttttttttt))");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'r', "sa(uttttttttt)")) > 0) {
		struct view_stats *more = reallocarray(list->sessions, list->n + 1, sizeof(*more));
		const char *name;

		if (!more)
			return -ENOMEM;
		list->sessions = more;
		more[list->n] = (struct view_stats){};
		r = sd_bus_message_read(m, "s", &name);
		if (r >= 0) {
			more[list->n].name = strdup(name);
			r = read_cpus(m, &more[list->n++]);
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
		struct view_file *more = reallocarray(files->files, files->n + 1, sizeof(*more));

		if (!more)
			return -ENOMEM;
		files->files = more;
		more[files->n++] = (struct view_file){
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
	_cleanup_message_ sd_bus_message *reply = NULL, *where = NULL;
	struct view_files files = {};
	int r = 0;

	/* Whose files? That also says which session was meant. */
	if (only)
		r = bus_call(bus, verb, BUS_PATH, BUS_MANAGER, "GetSession", &where, "s", only);
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
