/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * org.flyrec.Recorder1.Session: one object for each session that runs, has run, or is configured.
 * Main thread.
 */
#include <errno.h>
#include <string.h>

#include "basic/near.h"
#include "basic/strv.h"
#include "daemon/control/control-internal.h"
#include "daemon/manager/runtime-changes.h"
#include "daemon/trigger/trigger.h"

/* Whom a path is about */
struct target {
	struct control *control;
	char *name;
	struct session *session;		 /* NULL: it never ran */
	const struct session_config *configured; /* NULL: only left over */
	const struct session_config *config;	 /* what it is now, else what it would be */
};

static void target_done(struct target *t)
{
	free(t->name);
}

/* Return: 0, or negative errno: there is none. */
static int look(struct control *c, const char *path, struct target *ret)
{
	int r = sd_bus_path_decode(path, CONTROL_SESSION_PATH, &ret->name);

	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	ret->control = c;
	ret->session = manager_find(c->manager, ret->name);
	ret->configured = config_find(manager_config(c->manager), ret->name);
	ret->config = ret->session ? session_config_in_force(ret->session) : NULL;
	if (!ret->config)
		ret->config = ret->configured;
	return ret->session || ret->configured ? 0 : -ENOENT;
}

/* --- by the names and the paths that callers give */

void control_session_path(const char *name, char **ret)
{
	if (sd_bus_path_encode(CONTROL_SESSION_PATH, name, ret) < 0)
		*ret = NULL;
}

int control_no_session(struct control *c, const char *name, sd_bus_error *error)
{
	const struct daemon_config *config = manager_config(c->manager);
	const struct session *s;
	const char *near = NULL;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < config->n_sessions; i++)
		if (near_better(name, config->sessions[i]->name, &best))
			near = config->sessions[i]->name;
	for (size_t i = 0; (s = manager_session(c->manager, i)); i++)
		if (near_better(name, session_name(s), &best))
			near = session_name(s);
	if (near)
		return sd_bus_error_setf(error, CONTROL_ERROR("NoSuchSession"),
					 "there is no session %s, did you mean %s?",
					 control_shown(name).text, near);
	return sd_bus_error_setf(error, CONTROL_ERROR("NoSuchSession"), "there is no session %s",
				 control_shown(name).text);
}

struct session *control_session_of(sd_bus_message *m, struct control *c, sd_bus_error *error)
{
	_cleanup_(target_done) struct target t = {};

	if (look(c, sd_bus_message_get_path(m), &t) >= 0 && t.session)
		return t.session;
	(void)sd_bus_error_setf(error, CONTROL_ERROR("NotRecording"),
				"session %s does not record, it is stopped",
				control_shown(t.name ? t.name : "?").text);
	return NULL;
}

int control_find_session(sd_bus *bus, const char *path, const char *interface, void *userdata,
			 void **ret, sd_bus_error *error)
{
	_cleanup_(target_done) struct target t = {};

	if (look(userdata, path, &t) < 0)
		return 0;
	*ret = userdata;
	return 1;
}

/* --- properties: all of them by one function, by the name that is asked for */

static int append_state(sd_bus_message *reply, const struct target *t)
{
	if (t->session && session_paused(t->session))
		return sd_bus_message_append(reply, "s", "paused");
	return sd_bus_message_append(
		reply, "s",
		session_state_name(t->session ? session_state(t->session) : SESSION_STOPPED));
}

static int append_marker(sd_bus_message *reply, const struct target *t)
{
	_cleanup_free_ char *path = t->session ? session_marker(t->session) : strdup("");

	return path ? sd_bus_message_append(reply, "s", path) : -ENOMEM;
}

static int append_enabled(sd_bus_message *reply, const struct target *t)
{
	return sd_bus_message_append(reply, "b", t->configured && t->configured->enabled);
}

static int append_events(sd_bus_message *reply, const struct target *t)
{
	_cleanup_(strv_freep) char **events = NULL;
	int r = t->config ? runtime_events(t->config, &events) : 0;

	return r < 0 ? r : sd_bus_message_append_strv(reply, events);
}

static int append_changes(sd_bus_message *reply, const struct target *t)
{
	_cleanup_(strv_freep) char **changes = NULL;
	struct runtime_state now = {};
	int r;

	if (t->session) {
		now.in_force = session_config_in_force(t->session);
		now.running = session_state(t->session) != SESSION_STOPPED;
		now.paused = session_paused(t->session);
	}
	r = runtime_changes(t->configured, &now, &changes);
	return r < 0 ? r : sd_bus_message_append_strv(reply, changes);
}

static int append_units(sd_bus_message *reply, const struct target *t)
{
	return sd_bus_message_append_strv(reply, t->config ? t->config->trace.units : NULL);
}

static int append_shed(sd_bus_message *reply, const struct target *t)
{
	return sd_bus_message_append_strv(reply,
					  t->session ? (char **)session_shed(t->session) : NULL);
}

static int append_event_triggers(sd_bus_message *reply, const struct target *t)
{
	int r = sd_bus_message_open_container(reply, 'a', "s");

	for (size_t i = 0; t->config && r >= 0 && i < t->config->trace.n_triggers; i++) {
		const struct trace_trigger *trigger = &t->config->trace.triggers[i];
		_cleanup_free_ char *text =
			strf("%s:%s %s", trigger->system, trigger->name, trigger->trigger);

		r = text ? sd_bus_message_append(reply, "s", text) : -ENOMEM;
	}
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_trigger(sd_bus_message *reply, const struct session *s, const struct trigger *t)
{
	const char *state = !triggers_armed(session_triggers(s)) ? "off"
			    : t->unavailable			 ? "unavailable"
								 : "armed";

	return sd_bus_message_append(reply, "(sssstts)", trigger_kind_name(t->kind), t->text, state,
				     t->unavailable ? t->unavailable : "", t->fired, t->suppressed,
				     t->way);
}

static int append_triggers(sd_bus_message *reply, const struct target *t)
{
	const struct trigger *triggers = NULL;
	size_t n = 0;
	int r = sd_bus_message_open_container(reply, 'a', "(sssstts)");

	if (t->session)
		triggers = triggers_list(session_triggers(t->session),
					 manager_unit_trouble(t->control->manager),
					 manager_journal_trouble(t->control->manager), &n);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = append_trigger(reply, t->session, &triggers[i]);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_reach(sd_bus_message *reply, const struct target *t)
{
	const struct reach *reach = NULL;
	unsigned n = 0;
	int r = sd_bus_message_open_container(reply, 'a', "(ut)");

	if (t->session)
		(void)session_reach(t->session, &reach, &n);
	for (unsigned cpu = 0; r >= 0 && cpu < n; cpu++)
		if (reach[cpu].usec > 0)
			r = sd_bus_message_append(reply, "(ut)", cpu, reach[cpu].usec);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_buffered(sd_bus_message *reply, const struct target *t)
{
	const struct reach *reach = NULL;
	unsigned n = 0;
	int r = sd_bus_message_open_container(reply, 'a', "(utt)");

	if (t->session)
		(void)session_reach(t->session, &reach, &n);
	for (unsigned cpu = 0; r >= 0 && cpu < n; cpu++)
		if (reach[cpu].events > 0)
			r = sd_bus_message_append(reply, "(utt)", cpu, reach[cpu].events,
						  reach[cpu].bytes);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* NULL: it is no text */
static const char *text_of(const struct target *t, const char *property)
{
	const struct session_config *config = t->config;

	if (strcmp(property, "Name") == 0)
		return t->name;
	if (strcmp(property, "Description") == 0)
		return config && config->description ? config->description : "";
	if (strcmp(property, "Mode") == 0)
		return config && config->mode == SESSION_FLIGHT ? "flight" : "record";
	if (strcmp(property, "Clock") == 0)
		return config ? config->trace.clock : "";
	if (strcmp(property, "Method") == 0)
		return t->session ? session_method(t->session) : "";
	if (strcmp(property, "Drain") == 0)
		return t->session ? session_drain(t->session) : "";
	if (strcmp(property, "Failure") == 0)
		return t->session ? session_failure(t->session) : "";
	if (strcmp(property, "Compress") == 0)
		return config && config->storage.compress == STORAGE_COMPRESS_ZSTD ? "zstd" : "no";
	if (strcmp(property, "CompressFailure") == 0)
		return t->session ? session_compress_failure(t->session) : "";
	if (strcmp(property, "Instance") == 0)
		return t->session ? session_instance_name(t->session) : "";
	return NULL;
}

/* What is counted where it is asked for */
static uint64_t look_up(const struct target *t, const char *property)
{
	uint64_t tasks = 0, processes = 0;
	const struct reach *reach;
	unsigned n;

	if (strcmp(property, "BufferSize") == 0)
		return t->config ? t->config->trace.buffer_size : 0;
	if (!t->session)
		return 0;
	if (strcmp(property, "SubBufferSize") == 0)
		return session_subbuf_size(t->session);
	if (strcmp(property, "HistoryUSec") == 0)
		return session_reach(t->session, &reach, &n);
	if (strcmp(property, "EventsTraced") == 0)
		return session_events(t->session);
	if (strcmp(property, "CPUUSec") == 0)
		return session_cpu_usec(t->session);
	session_count_tasks(t->session, &tasks, &processes);
	return strcmp(property, "Tasks") == 0 ? tasks : processes;
}

static uint64_t number_of(const struct target *t, const char *property)
{
	struct session_usage usage = {};
	struct ledger ledger = {};
	const struct {
		const char *property;
		const uint64_t *value;
	} counted[] = {
		{"Segments", &usage.files},
		{"BytesOnDisk", &usage.bytes},
		{"Snapshots", &usage.snapshots},
		{"SnapshotBytes", &usage.snapshot_bytes},
		{"StartedUSec", &usage.started_usec},
		{"MaxUse", &usage.max_use},
		{"BudgetUSec", &usage.lasts_usec},
		{"SegmentUSec", &usage.segment_usec},
		{"CompressedSegments", &usage.packed_files},
		{"CompressedBytes", &usage.packed_bytes},
		{"UncompressedBytes", &usage.raw_bytes},
		{"CompressBacklog", &usage.packing_waits},
		{"BytesRecorded", &ledger.bytes},
		{"LostEvents", &ledger.lost},
		{"NotWritten", &ledger.not_written},
		{"FirstLossUSec", &ledger.first_loss_usec},
		{"LastLossUSec", &ledger.last_loss_usec},
	};

	for (size_t i = 0; i < ARRAY_SIZE(counted); i++) {
		if (strcmp(counted[i].property, property) != 0)
			continue;
		if (t->session) {
			ledger = *session_count(t->session);
			session_usage(t->session, &usage);
		}
		return *counted[i].value;
	}
	return look_up(t, property);
}

static int append(sd_bus_message *reply, const struct target *t, const char *property)
{
	static const struct {
		const char *property;
		int (*append)(sd_bus_message *reply, const struct target *t);
	} others[] = {
		{"State", append_state},
		{"Enabled", append_enabled},
		{"Events", append_events},
		{"RuntimeChanges", append_changes},
		{"Units", append_units},
		{"EventTriggers", append_event_triggers},
		{"Triggers", append_triggers},
		{"HistoryPerCPU", append_reach},
		{"BufferedPerCPU", append_buffered},
		{"TraceMarker", append_marker},
		{"Shed", append_shed},
	};
	const char *text = text_of(t, property);

	if (text)
		return sd_bus_message_append(reply, "s", text);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (strcmp(others[i].property, property) == 0)
			return others[i].append(reply, t);
	return sd_bus_message_append(reply, "t", number_of(t, property));
}

static int get(sd_bus *bus, const char *path, const char *interface, const char *property,
	       sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	_cleanup_(target_done) struct target t = {};
	int r = look(userdata, path, &t);

	return r < 0 ? r : append(reply, &t, property);
}

/* --- methods */

static int pause_or_resume(sd_bus_message *m, struct control *c, bool pause, sd_bus_error *error)
{
	struct session *s = control_session_of(m, c, error);
	struct fault why;
	int r;

	if (!s)
		return -ENOTCONN;
	r = session_pause(s, pause, &why);
	if (r < 0)
		return sd_bus_error_setf(error,
					 r == -ENOTCONN ? CONTROL_ERROR("NotRecording")
							: CONTROL_ERROR_REFUSED,
					 "%s", why.text);
	return sd_bus_reply_method_return(m, NULL);
}

static int pause_session(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return pause_or_resume(m, userdata, true, error);
}

static int resume_session(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return pause_or_resume(m, userdata, false, error);
}

static void on_rotated(void *userdata, int result, const char *text)
{
	control_request_answer(userdata, result, text, "s", text);
}

static int rotate(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct session *s = control_session_of(m, userdata, error);
	struct control_request *request;
	int r;

	if (!s)
		return -ENOTCONN;
	r = control_request_new(userdata, m, error, &request);
	if (r < 0)
		return r;
	r = session_wait(s, WAIT_ROTATED, on_rotated, request);
	if (r < 0)
		control_request_done(request, r, NULL);
	return 1;
}

static int open_tail(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct control *c = userdata;
	struct session *s = control_session_of(m, c, error), *other;
	uid_t uid = control_caller_uid(c, m);
	_cleanup_close_ int fd = -EBADF;
	unsigned all = 0, own = 0;
	struct fault why;
	int r;

	if (!s)
		return -ENOTCONN;
	for (size_t i = 0; (other = manager_session(c->manager, i)); i++) {
		all += session_count_tails(other, NULL);
		own += session_count_tails(other, &uid);
	}
	if (all >= CONTROL_TAILS_MAX -
			    (control_caller_is_admin(c, m) ? 0 : CONTROL_TAILS_RESERVED) ||
	    (uid != 0 && own >= CONTROL_TAILS_PER_UID))
		return sd_bus_error_setf(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
					 "%u tails are open, %u of them yours", all, own);
	r = session_open_tail(s, uid, &fd, &why);
	if (r < 0)
		return sd_bus_error_setf(error,
					 r == -ENOTCONN ? CONTROL_ERROR("NotRecording")
							: CONTROL_ERROR_REFUSED,
					 "%s", why.text);
	return sd_bus_reply_method_return(m, "h", fd); /* duplicates it */
}

/* clang-format off */
#define TEXT(name, flags) SD_BUS_PROPERTY(name, "s", get, 0, flags)
#define NUMBER(name) SD_BUS_PROPERTY(name, "t", get, 0, 0)
#define OPEN SD_BUS_VTABLE_UNPRIVILEGED /* to the bus; control-access.c decides */

const sd_bus_vtable control_session_vtable[] = {
	SD_BUS_VTABLE_START(0),
	TEXT("Name", SD_BUS_VTABLE_PROPERTY_CONST),
	TEXT("Description", 0),
	TEXT("Mode", 0),
	TEXT("Method", 0),
	TEXT("State", SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	TEXT("Failure", SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	TEXT("Instance", SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Enabled", "b", get, 0, 0),
	SD_BUS_PROPERTY("Events", "as", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("RuntimeChanges", "as", get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Triggers", "a(sssstts)", get, 0, 0),
	NUMBER("Segments"),
	NUMBER("BytesOnDisk"),
	NUMBER("BytesRecorded"),
	NUMBER("SegmentUSec"),
	NUMBER("LostEvents"),
	NUMBER("NotWritten"),
	NUMBER("FirstLossUSec"),
	NUMBER("LastLossUSec"),
	NUMBER("Snapshots"),
	NUMBER("SnapshotBytes"),
	NUMBER("StartedUSec"),
	NUMBER("HistoryUSec"),
	SD_BUS_PROPERTY("HistoryPerCPU", "a(ut)", get, 0, 0),
	NUMBER("MaxUse"),
	NUMBER("BudgetUSec"),
	SD_BUS_PROPERTY("Units", "as", get, 0, 0),
	SD_BUS_PROPERTY("EventTriggers", "as", get, 0, 0),
	SD_BUS_PROPERTY("Tasks", "t", get, 0, 0),
	SD_BUS_PROPERTY("Processes", "t", get, 0, 0),
	TEXT("Clock", 0),
	NUMBER("BufferSize"),
	NUMBER("SubBufferSize"),
	TEXT("Compress", 0),
	NUMBER("CompressedSegments"),
	NUMBER("CompressedBytes"),
	NUMBER("UncompressedBytes"),
	NUMBER("CompressBacklog"),
	TEXT("CompressFailure", 0),
	TEXT("Drain", 0),
	TEXT("TraceMarker", 0),
	SD_BUS_PROPERTY("BufferedPerCPU", "a(utt)", get, 0, 0),
	NUMBER("EventsTraced"),
	NUMBER("CPUUSec"),
	SD_BUS_PROPERTY("Shed", "as", get, 0, 0),
	SD_BUS_METHOD_WITH_ARGS("Start", SD_BUS_ARGS("b", persist),
		SD_BUS_NO_RESULT, control_start, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Stop", SD_BUS_ARGS("b", persist),
		SD_BUS_NO_RESULT, control_stop, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_NO_ARGS,
		SD_BUS_NO_RESULT, pause_session, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_NO_ARGS,
		SD_BUS_NO_RESULT, resume_session, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Rotate", SD_BUS_NO_ARGS,
		SD_BUS_RESULT("s", path), rotate, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Snapshot",
		SD_BUS_ARGS("t", from_usec, "t", to_usec, "s", reason, "b", pin),
		SD_BUS_RESULT("s", path), control_snapshot, OPEN),
	SD_BUS_METHOD_WITH_ARGS("SnapshotCoresight",
		SD_BUS_ARGS("t", from_usec, "t", to_usec, "s", reason, "b", pin),
		SD_BUS_RESULT("s", path, "s", directory, "s", why), control_snapshot_coresight, OPEN),
	SD_BUS_METHOD_WITH_ARGS("SnapshotLimited",
		SD_BUS_ARGS("t", from_usec, "t", to_usec, "s", reason, "s", id),
		SD_BUS_RESULT("s", path, "b", had), control_snapshot_limited, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Trigger", SD_BUS_ARGS("s", text),
		SD_BUS_NO_RESULT, control_trigger, OPEN),
	SD_BUS_METHOD_WITH_ARGS("OpenTail", SD_BUS_NO_ARGS,
		SD_BUS_RESULT("h", socket), open_tail, OPEN),
	SD_BUS_METHOD_WITH_ARGS("EnableEvents", SD_BUS_ARGS("as", events, "b", persist),
		SD_BUS_NO_RESULT, control_enable_events, OPEN),
	SD_BUS_METHOD_WITH_ARGS("DisableEvents", SD_BUS_ARGS("as", events, "b", persist),
		SD_BUS_NO_RESULT, control_disable_events, OPEN),
	SD_BUS_METHOD_WITH_ARGS("SetFilter", SD_BUS_ARGS("s", event, "s", filter, "b", persist),
		SD_BUS_NO_RESULT, control_set_filter, OPEN),
	SD_BUS_VTABLE_END,
};
/* clang-format on */
