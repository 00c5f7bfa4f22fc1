/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/strv.h"
#include "ctl/bus.h"
#include "ctl/output.h"
#include "ctl/view.h"

/* --- the tables; a property that is not in them is skipped */

#define S(member)  offsetof(struct view_session, member)
#define T(member)  offsetof(struct view_trigger, member)
#define H(member)  offsetof(struct view_history, member)
#define B(member)  offsetof(struct view_buffered, member)
#define D(member)  offsetof(struct view_status, member)
#define C(counter) (offsetof(struct view_cpu, values) + (counter) * sizeof(uint64_t))
#define F(member)  offsetof(struct view_file, member)
#define M(member)  offsetof(struct view_minute, member)

/* clang-format off */
const struct view_field view_trigger_fields[] = {
	{"s", T(kind), "kind"},
	{"s", T(text), "text"},
	{"s", T(state), "state"},
	{"s", T(unavailable), "unavailable"},
	{"t", T(fired), "fired",
	 .metric = "flyrec_triggers_fired", .help = "Snapshots that a trigger asked for"},
	{"t", T(suppressed), "suppressed",
	 .metric = "flyrec_triggers_suppressed", .help = "Times a trigger got no snapshot of its own"},
	{"s", T(way), "way"},
	{},
};

static const struct view_field history_fields[] = {
	{"u", H(cpu), "cpu"},
	{"t", H(usec), "history_usec"},
	{},
};

static const struct view_field buffered_fields[] = {
	{"u", B(cpu), "cpu"},
	{"t", B(events), "events"},
	{"t", B(bytes), "bytes"},
	{},
};

const struct view_field view_session_fields[] = {
	{"s", S(name), "name", "Name"},
	{"s", S(mode), "mode", "Mode"},
	{"s", S(method), "method", "Method"},
	{"s", S(state), "state", "State"},
	{"s", S(instance), "instance", "Instance"},
	{"t", S(segments), "segments", "Segments",
	 .metric = "flyrec_segments", .help = "Segments of the session"},
	{"t", S(bytes_on_disk), "bytes_on_disk", "BytesOnDisk",
	 .metric = "flyrec_disk_bytes", .unit = "bytes",
	 .help = "Bytes on the disk: segments, or snapshots of flight sessions"},
	{"s", S(description), "description", "Description"},
	{"b", S(enabled), "enabled", "Enabled"},
	{"s", S(failure), "failure", "Failure"},
	{"t", S(bytes_recorded), "bytes_recorded", "BytesRecorded"},
	{"t", S(segment_usec), "segment_start_usec", "SegmentUSec"},
	{"t", S(lost_events), "lost_events", "LostEvents"},
	{"t", S(not_written), "not_written", "NotWritten"},
	{"t", S(first_loss_usec), "first_loss_usec", "FirstLossUSec"},
	{"t", S(last_loss_usec), "last_loss_usec", "LastLossUSec"},
	{"as", S(events), "events", "Events"},
	{"as", S(changes), "runtime_changes", "RuntimeChanges"},
	{"a(sssstts)", S(triggers), "triggers", "Triggers",
	 view_trigger_fields, sizeof(struct view_trigger)},
	{"t", S(snapshots), "snapshots", "Snapshots",
	 .metric = "flyrec_snapshots", .help = "Snapshots of the session"},
	{"t", S(snapshot_bytes), "snapshot_bytes", "SnapshotBytes",
	 .metric = "flyrec_snapshot_bytes", .unit = "bytes", .help = "Bytes of snapshots on the disk"},
	{"t", S(started_usec), "started_usec", "StartedUSec"},
	{"t", S(history_usec), "history_usec", "HistoryUSec",
	 .metric = "flyrec_history_seconds", .unit = "seconds",
	 .help = "How far back from now the data reaches"},
	{"a(ut)", S(history), "history_per_cpu", "HistoryPerCPU",
	 history_fields, sizeof(struct view_history)},
	{"t", S(max_use), "max_use", "MaxUse"},
	{"t", S(budget_usec), "budget_usec", "BudgetUSec",
	 .metric = "flyrec_budget_seconds", .unit = "seconds", .mode = VIEW_OF_RECORD,
	 .help = "How long MaxUse= lasts at the rate of the last day; 0: unknown"},
	{"as", S(units), "units", "Units"},
	{"t", S(tasks), "tasks", "Tasks"},
	{"t", S(processes), "processes", "Processes"},
	{"as", S(event_triggers), "event_triggers", "EventTriggers"},
	{"s", S(clock), "clock", "Clock"},
	{"t", S(buffer_size), "buffer_size", "BufferSize"},
	{"t", S(subbuf_size), "subbuf_size", "SubBufferSize"},
	{"s", S(compress), "compress", "Compress"},
	{"t", S(packed_segments), "compressed_segments", "CompressedSegments",
	 .metric = "flyrec_compressed_segments", .mode = VIEW_OF_RECORD,
	 .help = "Segments that are compressed"},
	{"t", S(packed_bytes), "compressed_bytes", "CompressedBytes",
	 .metric = "flyrec_compressed_bytes", .unit = "bytes", .mode = VIEW_OF_RECORD,
	 .help = "Bytes of compressed segments on the disk"},
	{"t", S(raw_bytes), "uncompressed_bytes", "UncompressedBytes",
	 .metric = "flyrec_uncompressed_bytes", .unit = "bytes", .mode = VIEW_OF_RECORD,
	 .help = "What compressed segments took on the disk before"},
	{"t", S(packing_waits), "compress_backlog", "CompressBacklog",
	 .metric = "flyrec_compress_backlog", .mode = VIEW_OF_RECORD,
	 .help = "Segments that are to be compressed"},
	{"s", S(packing_failure), "compress_failure", "CompressFailure"},
	{"s", S(drain), "drain", "Drain"},
	{"s", S(trace_marker), "trace_marker", "TraceMarker"},
	{"a(utt)", S(buffered), "buffered_per_cpu", "BufferedPerCPU",
	 buffered_fields, sizeof(struct view_buffered)},
	{"t", S(events_traced), "events_traced", "EventsTraced"},
	{"t", S(cpu_usec), "cpu_usec", "CPUUSec"},
	{"as", S(shed), "shed", "Shed"},
	{},
};

const struct view_field view_status_fields[] = {
	{"s", D(version), "version", "Version"},
	{"u", D(pid), "pid", "ProcessId"},
	{"t", D(uptime_usec), "uptime_usec", "UptimeUSec",
	 .metric = "flyrec_uptime_seconds", .unit = "seconds", .help = "Time since flyrecd was started"},
	{"t", D(cpu_usec), "cpu_usec", "CPUUSec"},
	{"s", D(state), "state", "State"},
	{"s", D(state_dir), NULL, "StateDirectory"},
	{"a", D(sessions), "sessions", NULL, view_session_fields, sizeof(struct view_session)},
	{},
};

const struct view_field view_cpu_fields[] = {
	{"u", offsetof(struct view_cpu, cpu), "cpu"},
	{"t", C(0), "subbufs", .heading = "SUBBUFS",
	 .metric = "flyrec_subbufs", .help = "Sub-buffers recorded"},
	{"t", C(1), "bytes", .heading = "BYTES",
	 .metric = "flyrec_recorded_bytes", .unit = "bytes", .help = "Bytes recorded"},
	{"t", C(VIEW_OVERRUN), "overrun", .heading = "OVERRUN",
	 .metric = "flyrec_overrun_events", .mode = VIEW_OF_RECORD,
	 .help = "Events of recording sessions overwritten before they could be taken"},
	{"t", C(3), "commit_overrun", .heading = "COMMIT OVERRUN",
	 .metric = "flyrec_commit_overrun_events", .help = "Events lost to unfinished writes"},
	{"t", C(4), "dropped_events", .heading = "DROPPED",
	 .metric = "flyrec_dropped_events", .help = "Events not taken, with overwriting off"},
	{"t", C(5), "lost_events", .heading = "LOST",
	 .metric = "flyrec_lost_events", .help = "Events that the data says are missing"},
	{"t", C(6), "torn", .heading = "TORN",
	 .metric = "flyrec_torn_subbufs", .help = "Sub-buffers overwritten while a snapshot copied them"},
	{"t", C(7), "evicted", .heading = "EVICTED",
	 .metric = "flyrec_evicted_subbufs", .help = "Sub-buffers removed by retention"},
	{"t", C(8), "not_written", .heading = "NOT WRITTEN",
	 .metric = "flyrec_not_written_subbufs", .help = "Sub-buffers that the disk did not take"},
	{},
};

static const struct view_field stats_session_fields[] = {
	{"s", offsetof(struct view_stats, name), "name"},
	{"a(uttttttttt)", offsetof(struct view_stats, cpus), "cpus", NULL,
	 view_cpu_fields, sizeof(struct view_cpu)},
	{},
};

const struct view_field view_stats_fields[] = {
	{"a(sa(uttttttttt))", offsetof(struct view_stats_list, sessions), "sessions", NULL,
	 stats_session_fields, sizeof(struct view_stats)},
	{},
};

static const struct view_field minute_fields[] = {
	{"t", M(end_usec), "end_usec"},
	{"t", M(usec), "usec"},
	{"t", M(events), "events"},
	{"t", M(lost), "lost_events"},
	{},
};

const struct view_field view_hour_fields[] = {
	{"s", offsetof(struct view_hour, name)},
	{"a(tttt)", offsetof(struct view_hour, minutes), "last_hour", NULL,
	 minute_fields, sizeof(struct view_minute)},
	{},
};

const struct view_field view_hours_fields[] = {
	{"a(sa(tttt))", offsetof(struct view_hours, sessions), NULL, NULL,
	 view_hour_fields, sizeof(struct view_hour)},
	{},
};

static const struct view_field file_fields[] = {
	{"s", F(session), "session"},
	{"s", F(kind), "kind"},
	{"s", F(path), "path"},
	{"t", F(bytes), "bytes"},
	{"t", F(start_usec), "start_usec"},
	{"t", F(end_usec), "end_usec"},
	{"u", F(cpus), "cpus"},
	{"b", F(pinned), "pinned"},
	{"t", F(raw_bytes), "raw_bytes"},
	{"s", F(finding), "finding"},
	{"as", F(ids), "ids"},
	{},
};

const struct view_field view_files_fields[] = {
	{"a(ssstttubtsas)", offsetof(struct view_files, files), "files", NULL,
	 file_fields, sizeof(struct view_file)},
	{},
};
/* clang-format on */

/* --- arrays of structures of any type: a pointer, and behind it their number */

struct rows {
	char *first;
	size_t n;
};

static struct rows rows_of(const struct view_field *f, const void *object)
{
	struct rows rows;

	memcpy(&rows, (const char *)object + f->offset, sizeof(rows));
	return rows;
}

/* Room for one more, all zero */
static void *grow(const struct view_field *f, void *object)
{
	struct rows rows = rows_of(f, object);
	char *more = reallocarray(rows.first, rows.n + 1, f->row_size);

	if (!more)
		return NULL;
	rows = (struct rows){.first = more, .n = rows.n + 1};
	memcpy((char *)object + f->offset, &rows, sizeof(rows));
	return memset(more + (rows.n - 1) * f->row_size, 0, f->row_size);
}

/* --- reading */

typedef int read_function(sd_bus_message *m, const struct view_field *f, void *object);

/* Each element of an array; @type: of these: 'r', 'e' */
static int read_each(sd_bus_message *m, char type, read_function *read, const struct view_field *f,
		     void *object)
{
	int r = sd_bus_message_enter_container(m, 'a', NULL);

	while (r >= 0 && (r = sd_bus_message_at_end(m, false)) == 0) {
		r = sd_bus_message_enter_container(m, type, NULL);
		if (r >= 0)
			r = read(m, f, object);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static read_function read_row;

static int read_value(sd_bus_message *m, const struct view_field *f, void *object)
{
	void *at = (char *)object + f->offset;
	const char *text;
	uint32_t number;
	int r, yes;

	if (f->rows)
		return read_each(m, 'r', read_row, f, object);
	switch (*f->types) {
	case 's':
		r = sd_bus_message_read(m, "s", &text);
		return r < 0 ? r : strv_set(at, text);
	case 'u':
		r = sd_bus_message_read(m, "u", &number);
		if (r >= 0)
			*(uint64_t *)at = number;
		return r;
	case 'b':
		r = sd_bus_message_read(m, "b", &yes);
		if (r >= 0)
			*(bool *)at = yes;
		return r;
	case 't':
		return sd_bus_message_read(m, "t", at);
	default:
		return sd_bus_message_read_strv(m, at);
	}
}

static int read_row(sd_bus_message *m, const struct view_field *f, void *object)
{
	void *row = grow(f, object);
	int r = row ? 0 : -ENOMEM;

	for (f = f->rows; f->types && r >= 0; f++)
		r = read_value(m, f, row);
	return r;
}

/* {sv} */
static int read_property(sd_bus_message *m, const struct view_field *f, void *object)
{
	const char *name;
	int r = sd_bus_message_read(m, "s", &name);

	while (r >= 0 && f->types && !(f->property && strcmp(f->property, name) == 0))
		f++;
	if (r < 0 || !f->types)
		return r < 0 ? r : sd_bus_message_skip(m, "v");
	r = sd_bus_message_enter_container(m, 'v', f->types);
	if (r >= 0)
		r = read_value(m, f, object);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

/* a{sv} of one more */
static int read_session(sd_bus_message *m, const struct view_field *f, void *object)
{
	void *session = grow(f, object);

	return session ? read_each(m, 'e', read_property, f->rows, session) : -ENOMEM;
}

/* {sa{sv}}: one interface of an object */
static int read_interface(sd_bus_message *m, const struct view_field *f, void *object)
{
	const char *interface;
	int r = sd_bus_message_read(m, "s", &interface);

	if (r < 0)
		return r;
	return strcmp(interface, BUS_SESSION) == 0 ? read_session(m, f, object)
						   : sd_bus_message_skip(m, "a{sv}");
}

/* {oa{sa{sv}}} */
static int read_object(sd_bus_message *m, const struct view_field *f, void *object)
{
	int r = sd_bus_message_skip(m, "o");

	return r < 0 ? r : read_each(m, 'e', read_interface, f, object);
}

static int by_name(const void *a, const void *b)
{
	const struct view_session *x = a, *y = b;

	return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

static int read_sessions(struct ctl *ctl, const char *only, struct view_status *status)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	const struct view_field *f = view_status_fields;
	int r = only ? bus_get_properties(ctl, only, &reply) : bus_get_objects(ctl, &reply);

	if (r < 0)
		return r;
	while (f->rows != view_session_fields)
		f++;
	r = only ? read_session(reply, f, status) : read_each(reply, 'e', read_object, f, status);
	if (status->n_sessions > 0)
		qsort(status->sessions, status->n_sessions, sizeof(*status->sessions), by_name);
	return r < 0 ? bus_bad_answer(ctl, r) : 0;
}

int view_read_status(struct ctl *ctl, const char *only, struct view_status *ret)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	struct view_status status = {};
	int r = bus_get_properties(ctl, NULL, &reply);

	if (r >= 0) {
		r = read_each(reply, 'e', read_property, view_status_fields, &status);
		r = r < 0 ? bus_bad_answer(ctl, r) : read_sessions(ctl, only, &status);
	}
	if (r < 0) {
		view_done(view_status_fields, &status);
		return r;
	}
	*ret = status;
	return 0;
}

static bool has_trigger(const struct view_session *s, const char *kind)
{
	for (size_t i = 0; i < s->n_triggers; i++)
		if (strcmp(s->triggers[i].kind, kind) == 0)
			return true;
	return false;
}

int view_recording(struct ctl *ctl, bool flight, const char *trigger, char ***ret)
{
	_cleanup_(strv_freep) char **names = NULL;
	struct view_status status;
	int r = view_read_status(ctl, NULL, &status);

	if (r < 0)
		return r;
	for (size_t i = 0; i < status.n_sessions && r >= 0; i++) {
		const struct view_session *s = &status.sessions[i];

		if ((strcmp(s->state, "recording") == 0 || strcmp(s->state, "paused") == 0) &&
		    (flight || strcmp(s->mode, "flight") != 0) &&
		    (!trigger || has_trigger(s, trigger)))
			r = strv_append(&names, s->name);
	}
	view_done(view_status_fields, &status);
	if (r < 0)
		return bus_bad_answer(ctl, r);
	*ret = TAKE_PTR(names);
	return 0;
}

/* What a call with a session, "" for all, answers */
static int read_list(struct ctl *ctl, const char *member, const char *only,
		     const struct view_field *f, void *object)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int r = bus_call(ctl, NULL, member, &reply, "s", only ? only : "");

	if (r < 0)
		return r;
	r = read_value(reply, f, object);
	if (r < 0)
		view_done(f, object);
	return r < 0 ? bus_bad_answer(ctl, r) : 0;
}

int view_read_stats(struct ctl *ctl, const char *only, struct view_stats_list *ret)
{
	*ret = (struct view_stats_list){};
	return read_list(ctl, "GetStatistics", only, view_stats_fields, ret);
}

int view_read_hours(struct ctl *ctl, const char *only, struct view_hours *ret)
{
	*ret = (struct view_hours){};
	return read_list(ctl, "GetLastHour", only, view_hours_fields, ret);
}

int view_read_files(struct ctl *ctl, const char *only, struct view_files *ret)
{
	/* Whose files? That also says which session was meant. */
	int r = only ? bus_find_session(ctl, only, NULL) : 0;

	*ret = (struct view_files){};
	return r < 0 ? r : read_list(ctl, "ListFiles", only, view_files_fields, ret);
}

/* --- all fields of an object */

void view_done(const struct view_field *f, void *object)
{
	for (; f->types; f++) {
		void *at = (char *)object + f->offset;
		struct rows rows;

		if (f->rows) {
			rows = rows_of(f, object);
			for (size_t i = 0; i < rows.n; i++)
				view_done(f->rows, rows.first + i * f->row_size);
			free(rows.first);
			memset(at, 0, sizeof(rows));
		} else if (*f->types == 's') {
			free(*(char **)at);
			*(char **)at = NULL;
		} else if (*f->types == 'a') {
			strv_free(*(char ***)at);
			*(char ***)at = NULL;
		}
	}
}

int view_escape(const struct view_field *f, void *object)
{
	int r = 0;

	for (; f->types && r >= 0; f++) {
		void *at = (char *)object + f->offset;
		struct rows rows;

		if (f->rows) {
			rows = rows_of(f, object);
			for (size_t i = 0; i < rows.n && r >= 0; i++)
				r = view_escape(f->rows, rows.first + i * f->row_size);
		} else if (*f->types == 's') {
			r = escape_replace((char **)at);
		} else if (*f->types == 'a') {
			for (char **s = *(char ***)at; s && *s && r >= 0; s++)
				r = escape_replace(s);
		}
	}
	return r;
}

static struct json_object *rows_json(const struct view_field *f, struct rows rows)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < rows.n; i++)
		json_append(array, view_json(f->rows, rows.first + i * f->row_size));
	return array;
}

static struct json_object *field_json(const struct view_field *f, const void *object)
{
	const void *at = (const char *)object + f->offset;

	if (f->rows)
		return rows_json(f, rows_of(f, object));
	switch (*f->types) {
	case 's':
		return json_text(*(char *const *)at);
	case 'b':
		return json_object_new_boolean(*(const bool *)at);
	case 'a':
		return json_list(*(char **const *)at);
	default:
		return json_number(*(const uint64_t *)at);
	}
}

struct json_object *view_json(const struct view_field *f, const void *object)
{
	struct json_object *o = json_object_new_object();

	for (; f->types; f++)
		if (f->key)
			json_add(o, f->key, field_json(f, object));
	return o;
}
