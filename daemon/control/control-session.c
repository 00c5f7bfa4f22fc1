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

int control_look(struct control *c, const char *path, struct control_target *ret)
{
	int r = sd_bus_path_decode(path, CONTROL_SESSION_PATH, &ret->name);

	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	ret->session = manager_find(c->manager, ret->name);
	ret->configured = config_find(manager_config(c->manager), ret->name);
	return ret->session || ret->configured ? 0 : -ENOENT;
}

void control_target_free(struct control_target *target)
{
	free(target->name);
}

struct session *control_session_of(sd_bus_message *m, struct control *c, sd_bus_error *error)
{
	_cleanup_(control_target_free) struct control_target t = {};

	if (control_look(c, sd_bus_message_get_path(m), &t) >= 0 && t.session)
		return t.session;
	(void)sd_bus_error_setf(error, CONTROL_ERROR("NotRecording"),
				"session %s does not record, it is stopped",
				control_shown(t.name ? t.name : "?").text);
	return NULL;
}

int control_find_session(sd_bus *bus, const char *path, const char *interface, void *userdata,
			 void **ret, sd_bus_error *error)
{
	_cleanup_(control_target_free) struct control_target t = {};

	if (control_look(userdata, path, &t) < 0)
		return 0;
	*ret = userdata;
	return 1;
}

/* What it is now, else what it would be */
static const struct session_config *config_of(const struct control_target *t)
{
	const struct session_config *c = t->session ? session_config_in_force(t->session) : NULL;

	return c ? c : t->configured;
}

/* --- properties: all of them by this one function, by the name that is asked for */

static int append_state(sd_bus_message *reply, const struct control_target *t)
{
	if (t->session && session_paused(t->session))
		return sd_bus_message_append(reply, "s", "paused");
	return sd_bus_message_append(
		reply, "s",
		session_state_name(t->session ? session_state(t->session) : SESSION_STOPPED));
}

static int get_text(sd_bus *bus, const char *path, const char *interface, const char *property,
		    sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	_cleanup_(control_target_free) struct control_target t = {};
	const struct session_config *config;
	const char *text = "";
	int r = control_look(userdata, path, &t);

	if (r < 0)
		return r;
	config = config_of(&t);
	if (strcmp(property, "State") == 0)
		return append_state(reply, &t);
	if (strcmp(property, "Name") == 0)
		text = t.name;
	else if (strcmp(property, "Description") == 0)
		text = config && config->description ? config->description : "";
	else if (strcmp(property, "Mode") == 0)
		text = config && config->mode == SESSION_FLIGHT ? "flight" : "record";
	else if (strcmp(property, "Clock") == 0)
		text = config ? config->trace.clock : "";
	else if (strcmp(property, "Method") == 0 && t.session)
		text = session_method(t.session);
	else if (strcmp(property, "Failure") == 0 && t.session)
		text = session_failure(t.session);
	else if (strcmp(property, "Instance") == 0 && t.session)
		text = session_instance_name(t.session);
	return sd_bus_message_append(reply, "s", text);
}

static int get_enabled(sd_bus *bus, const char *path, const char *interface, const char *property,
		       sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	_cleanup_(control_target_free) struct control_target t = {};
	int r = control_look(userdata, path, &t);

	return r < 0 ? r : sd_bus_message_append(reply, "b", t.configured && t.configured->enabled);
}

static int get_events(sd_bus *bus, const char *path, const char *interface, const char *property,
		      sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	_cleanup_(control_target_free) struct control_target t = {};
	_cleanup_(strv_freep) char **events = NULL;
	int r = control_look(userdata, path, &t);

	if (r >= 0 && config_of(&t))
		r = runtime_events(config_of(&t), &events);
	return r < 0 ? r : sd_bus_message_append_strv(reply, events);
}

/* What Unit= and EventTrigger= are */
static int get_list(sd_bus *bus, const char *path, const char *interface, const char *property,
		    sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	_cleanup_(control_target_free) struct control_target t = {};
	const struct session_config *config;
	int r = control_look(userdata, path, &t);

	if (r < 0)
		return r;
	config = config_of(&t);
	if (strcmp(property, "Units") == 0)
		return sd_bus_message_append_strv(reply, config ? config->trace.units : NULL);
	r = sd_bus_message_open_container(reply, 'a', "s");
	for (size_t i = 0; config && r >= 0 && i < config->trace.n_triggers; i++) {
		const struct trace_trigger *trigger = &config->trace.triggers[i];
		_cleanup_free_ char *text =
			strf("%s:%s %s", trigger->system, trigger->name, trigger->trigger);

		r = text ? sd_bus_message_append(reply, "s", text) : -ENOMEM;
	}
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int get_reach(sd_bus *bus, const char *path, const char *interface, const char *property,
		     sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	_cleanup_(control_target_free) struct control_target t = {};
	const struct reach *reach = NULL;
	unsigned n = 0;
	int r = control_look(userdata, path, &t);

	if (r >= 0 && t.session)
		(void)session_reach(t.session, &reach, &n);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(ut)");
	for (unsigned cpu = 0; r >= 0 && cpu < n; cpu++)
		if (reach[cpu].usec > 0)
			r = sd_bus_message_append(reply, "(ut)", cpu, reach[cpu].usec);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* Those that are counted by looking, as Unit= has found them */
static int get_tasks(sd_bus *bus, const char *path, const char *interface, const char *property,
		     sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	_cleanup_(control_target_free) struct control_target t = {};
	uint64_t tasks = 0, processes = 0;
	int r = control_look(userdata, path, &t);

	if (r >= 0 && t.session)
		session_count_tasks(t.session, &tasks, &processes);
	return r < 0 ? r
		     : sd_bus_message_append(reply, "t",
					     strcmp(property, "Tasks") == 0 ? tasks : processes);
}

static int get_changes(sd_bus *bus, const char *path, const char *interface, const char *property,
		       sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	_cleanup_(control_target_free) struct control_target t = {};
	_cleanup_(strv_freep) char **changes = NULL;
	struct runtime_state now = {};
	int r = control_look(userdata, path, &t);

	if (r < 0)
		return r;
	if (t.session) {
		now.in_force = session_config_in_force(t.session);
		now.running = session_state(t.session) != SESSION_STOPPED;
		now.paused = session_paused(t.session);
	}
	r = runtime_changes(t.configured, &now, &changes);
	return r < 0 ? r : sd_bus_message_append_strv(reply, changes);
}

static int get_number(sd_bus *bus, const char *path, const char *interface, const char *property,
		      sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	_cleanup_(control_target_free) struct control_target t = {};
	const struct ledger *ledger;
	struct session_usage usage;
	const struct reach *reach;
	unsigned n_reach;
	uint64_t n = 0;
	int r = control_look(userdata, path, &t);

	if (r < 0)
		return r;
	if (strcmp(property, "BufferSize") == 0)
		n = config_of(&t) ? config_of(&t)->trace.buffer_size : 0;
	if (!t.session)
		return sd_bus_message_append(reply, "t", n);
	ledger = session_count(t.session);
	session_usage(t.session, &usage);
	if (strcmp(property, "Segments") == 0)
		n = usage.files;
	else if (strcmp(property, "BytesOnDisk") == 0)
		n = usage.bytes;
	else if (strcmp(property, "Snapshots") == 0)
		n = usage.snapshots;
	else if (strcmp(property, "SnapshotBytes") == 0)
		n = usage.snapshot_bytes;
	else if (strcmp(property, "StartedUSec") == 0)
		n = usage.started_usec;
	else if (strcmp(property, "MaxUse") == 0)
		n = usage.max_use;
	else if (strcmp(property, "BudgetUSec") == 0)
		n = usage.lasts_usec;
	else if (strcmp(property, "HistoryUSec") == 0)
		n = session_reach(t.session, &reach, &n_reach);
	else if (strcmp(property, "SegmentUSec") == 0)
		n = usage.segment_usec;
	else if (strcmp(property, "BytesRecorded") == 0)
		n = ledger->bytes;
	else if (strcmp(property, "LostEvents") == 0)
		n = ledger->lost;
	else if (strcmp(property, "NotWritten") == 0)
		n = ledger->not_written;
	else if (strcmp(property, "FirstLossUSec") == 0)
		n = ledger->first_loss_usec;
	else if (strcmp(property, "LastLossUSec") == 0)
		n = ledger->last_loss_usec;
	return sd_bus_message_append(reply, "t", n);
}

static int append_trigger(sd_bus_message *reply, const struct session *s, const struct trigger *t)
{
	const char *state = !triggers_armed(session_triggers(s)) ? "off"
			    : t->unavailable			 ? "unavailable"
								 : "armed";

	return sd_bus_message_append(reply, "(sssstt)", trigger_kind_name(t->kind), t->text, state,
				     t->unavailable ? t->unavailable : "", t->fired, t->suppressed);
}

static int get_triggers(sd_bus *bus, const char *path, const char *interface, const char *property,
			sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	_cleanup_(control_target_free) struct control_target t = {};
	const struct trigger *triggers = NULL;
	size_t n = 0;
	int r = control_look(userdata, path, &t);

	if (r >= 0 && t.session)
		triggers = triggers_list(
			session_triggers(t.session),
			manager_unit_trouble(((struct control *)userdata)->manager), &n);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(sssstt)");
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = append_trigger(reply, t.session, &triggers[i]);
	return r < 0 ? r : sd_bus_message_close_container(reply);
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
#define TEXT(name, flags) SD_BUS_PROPERTY(name, "s", get_text, 0, flags)
#define NUMBER(name) SD_BUS_PROPERTY(name, "t", get_number, 0, 0)
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
	SD_BUS_PROPERTY("Enabled", "b", get_enabled, 0, 0),
	SD_BUS_PROPERTY("Events", "as", get_events, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("RuntimeChanges", "as", get_changes, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
	SD_BUS_PROPERTY("Triggers", "a(sssstt)", get_triggers, 0, 0),
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
	SD_BUS_PROPERTY("HistoryPerCPU", "a(ut)", get_reach, 0, 0),
	NUMBER("MaxUse"),
	NUMBER("BudgetUSec"),
	SD_BUS_PROPERTY("Units", "as", get_list, 0, 0),
	SD_BUS_PROPERTY("EventTriggers", "as", get_list, 0, 0),
	SD_BUS_PROPERTY("Tasks", "t", get_tasks, 0, 0),
	SD_BUS_PROPERTY("Processes", "t", get_tasks, 0, 0),
	TEXT("Clock", 0),
	NUMBER("BufferSize"),
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
