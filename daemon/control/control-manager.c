/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * org.flyrec.Recorder1.Manager: the daemon as a whole, files, statistics. Main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/io.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "daemon/control/control-internal.h"
#include "daemon/manager/boot-parameters.h"
#include "daemon/session/calibration.h"
#include "recorder/tracefs.h"
#include "writer/store.h"

/* --- properties */

static int get_text(sd_bus *bus, const char *path, const char *interface, const char *property,
		    sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	const struct control *c = userdata;
	const char *text = PACKAGE_VERSION; /* Version */

	if (strcmp(property, "State") == 0)
		text = manager_phase_name(c->manager);
	else if (strcmp(property, "StateDirectory") == 0)
		text = c->env->state_dir;
	else if (strcmp(property, "ConfigDirectory") == 0)
		text = c->env->config_dir;
	return sd_bus_message_append(reply, "s", text);
}

static int get_pid(sd_bus *bus, const char *path, const char *interface, const char *property,
		   sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	return sd_bus_message_append(reply, "u", (uint32_t)getpid());
}

static int get_uptime(sd_bus *bus, const char *path, const char *interface, const char *property,
		      sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	const struct control *c = userdata;

	return sd_bus_message_append(reply, "t",
				     now_usec(CLOCK_MONOTONIC) - manager_started_usec(c->manager));
}

static int get_cpu_time(sd_bus *bus, const char *path, const char *interface, const char *property,
			sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	const struct control *c = userdata;

	return sd_bus_message_append(reply, "t", manager_cpu_usec(c->manager));
}

/* --- sessions */

/* Those that run or have run, and those that are only configured: the names of both, once */
int control_list_sessions(sd_bus *bus, const char *prefix, void *userdata, char ***ret,
			  sd_bus_error *error)
{
	struct control *c = userdata;
	const struct daemon_config *config = manager_config(c->manager);
	const struct session *s;
	char **paths;
	size_t n = 0;

	while (manager_session(c->manager, n))
		n++;
	paths = calloc(n + config->n_sessions + 1, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	for (n = 0; (s = manager_session(c->manager, n)); n++)
		control_session_path(session_name(s), &paths[n]);
	for (size_t i = 0; i < config->n_sessions; i++)
		if (!manager_find(c->manager, config->sessions[i]->name))
			control_session_path(config->sessions[i]->name, &paths[n++]);
	*ret = paths;
	return 0;
}

static bool is_known(const struct control *c, const char *name)
{
	return manager_find(c->manager, name) || config_find(manager_config(c->manager), name);
}

static int append_session(struct control *c, sd_bus_message *reply, const char *name)
{
	const struct session *s = manager_find(c->manager, name);
	_cleanup_free_ char *path = NULL;

	control_session_path(name, &path);
	if (!path)
		return -ENOMEM;
	return sd_bus_message_append(reply, "(sso)", name,
				     session_state_name(s ? session_state(s) : SESSION_STOPPED),
				     path);
}

static int list_sessions(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct control *c = userdata;
	const struct daemon_config *config = manager_config(c->manager);
	const struct session *s;
	int r = sd_bus_message_new_method_return(m, &reply);

	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(sso)");
	for (size_t i = 0; r >= 0 && (s = manager_session(c->manager, i)); i++)
		r = append_session(c, reply, session_name(s));
	for (size_t i = 0; r >= 0 && i < config->n_sessions; i++)
		if (!manager_find(c->manager, config->sessions[i]->name))
			r = append_session(c, reply, config->sessions[i]->name);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int get_session(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct control *c = userdata;
	_cleanup_free_ char *path = NULL;
	const char *name;
	int r = sd_bus_message_read(m, "s", &name);

	if (r < 0)
		return r;
	if (!is_known(c, name))
		return control_no_session(c, name, error);
	control_session_path(name, &path);
	return path ? sd_bus_reply_method_return(m, "o", path) : -ENOMEM;
}

/* --- events */

/* "as"; @text is cut */
static int append_lines(sd_bus_message *reply, char *text)
{
	int r = sd_bus_message_open_container(reply, 'a', "s");
	char *state = NULL;

	for (char *line = strtok_r(text, "\n", &state); r >= 0 && line;
	     line = strtok_r(NULL, "\n", &state))
		r = sd_bus_message_append(reply, "s", line);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int list_events(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct control *c = userdata;
	_cleanup_free_ char *text = NULL;
	int r = io_read_file_at(c->env->tracing_fd, "available_events", &text, NULL);

	if (r < 0)
		return sd_bus_error_set_errnof(error, r, "cannot read available_events: %s",
					       strerror(-r));
	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = append_lines(reply, text);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static void on_calibrated(void *userdata, int result, double nsec, const struct fault *why)
{
	control_request_answer(userdata, result, why->text, "d", nsec);
}

static int get_event_cost(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct control *c = userdata;
	struct control_request *request;
	int r = control_request_new(c, m, error, &request);

	if (r < 0)
		return r;
	r = calibration_ask(c->env, on_calibrated, request);
	if (r < 0)
		control_request_done(request, r, NULL);
	return 1;
}

/* --- the kernel's command line */

static int get_boot_parameters(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct control *c = userdata;
	_cleanup_(strv_freep) char **names = NULL;
	_cleanup_free_ char *text = NULL;
	struct fault why = {};
	unsigned n_cpus;
	int r = sd_bus_message_read_strv(m, &names);

	if (r < 0)
		return r;
	r = possible_cpus(&n_cpus, &why);
	if (r >= 0)
		r = boot_parameters_format(manager_config(c->manager), names, n_cpus,
					   (unsigned)sysconf(_SC_PAGESIZE), &text, &why);
	return r < 0 ? sd_bus_error_set_errnof(error, r, "%s", why.text)
		     : sd_bus_reply_method_return(m, "s", text);
}

/* --- statistics */

static int append_cpu(sd_bus_message *reply, unsigned cpu, const struct ledger_cpu *a)
{
	return sd_bus_message_append(reply, "(uttttttttt)", cpu, a->subbufs, a->bytes, a->overrun,
				     a->commit_overrun, a->dropped_events, a->lost_events, a->torn,
				     a->evicted, a->not_written);
}

static int append_statistics(sd_bus_message *reply, struct session *s)
{
	const struct ledger *ledger = session_count(s);
	int r = sd_bus_message_open_container(reply, 'r', "sa(uttttttttt)");

	if (r >= 0)
		r = sd_bus_message_append(reply, "s", session_name(s));
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(uttttttttt)");
	for (unsigned cpu = 0; r >= 0 && cpu < ledger->n_cpus; cpu++)
		r = append_cpu(reply, cpu, &ledger->cpus[cpu]);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_last_hour(sd_bus_message *reply, struct session *s)
{
	struct last_hour_row rows[LAST_HOUR_ROWS + 1];
	unsigned n = session_last_hour(s, rows);
	int r = sd_bus_message_open_container(reply, 'r', "sa(tttt)");

	if (r >= 0)
		r = sd_bus_message_append(reply, "s", session_name(s));
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', "(tttt)");
	for (unsigned i = 0; r >= 0 && i < n; i++)
		r = sd_bus_message_append(reply, "(tttt)", rows[i].end_usec, rows[i].usec,
					  rows[i].events, rows[i].lost);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* Of one session, or all; @types: of what @append adds for each */
static int answer_for_each(sd_bus_message *m, struct control *c, const char *types,
			   int (*append)(sd_bus_message *reply, struct session *s),
			   sd_bus_error *error)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *name;
	struct session *s;
	int r = sd_bus_message_read(m, "s", &name);

	if (r < 0)
		return r;
	if (*name && !is_known(c, name))
		return control_no_session(c, name, error);
	r = sd_bus_message_new_method_return(m, &reply);
	if (r >= 0)
		r = sd_bus_message_open_container(reply, 'a', types);
	for (size_t i = 0; r >= 0 && (s = manager_session(c->manager, i)); i++)
		if (!*name || strcmp(session_name(s), name) == 0)
			r = append(reply, s);
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int get_statistics(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return answer_for_each(m, userdata, "(sa(uttttttttt))", append_statistics, error);
}

static int get_last_hour(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	return answer_for_each(m, userdata, "(sa(tttt))", append_last_hour, error);
}

/* --- reload */

static int reload(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct control *c = userdata;
	_cleanup_free_ char *complaints = NULL;
	struct control_request *request;
	int r;

	r = control_request_new(c, m, error, &request);
	if (r < 0)
		return r;
	r = manager_reload(c->manager, &complaints);
	if (r == -EINVAL) {
		control_request_fail(request, CONTROL_ERROR("Configuration"), complaints);
		return 1;
	}
	if (r < 0) {
		control_request_done(request, r,
				     r == -EBUSY ? "flyrecd is starting, reloading or stopping"
						 : NULL);
		return 1;
	}
	request->complaints = TAKE_PTR(complaints);
	request->next_reload = c->reloads;
	c->reloads = request;
	return 1;
}

/* A line for each session that shall record and has failed; NULL: there is none */
static int list_failed(const struct manager *m, const char *complaints, char **ret)
{
	const struct session *s;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	unsigned failed = 0;

	if (!out)
		return -ENOMEM;
	(void)fputs(complaints, out);
	for (size_t i = 0; (s = manager_session(m, i)); i++) {
		if (session_state(s) != SESSION_FAILED || !manager_wants(m, session_name(s)))
			continue;
		failed++;
		(void)fprintf(out, "session %s has failed: %s\n", session_name(s),
			      session_failure(s));
	}
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	if (failed == 0)
		free(TAKE_PTR(text));
	*ret = text;
	return 0;
}

void control_reloaded(void *userdata)
{
	struct control *c = userdata;

	while (c->reloads) {
		struct control_request *request = c->reloads;
		_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
		_cleanup_free_ char *failed = NULL;
		int r;

		c->reloads = request->next_reload;
		r = list_failed(c->manager, request->complaints, &failed);
		if (failed) {
			failed[strlen(failed) - 1] = '\0';
			control_request_fail(request, CONTROL_ERROR("SessionFailed"), failed);
			continue;
		}
		if (r >= 0)
			r = sd_bus_message_new_method_return(request->call, &reply);
		if (r >= 0)
			r = append_lines(reply, request->complaints);
		control_request_reply(request, r, reply, NULL);
	}
}

/* clang-format off */
#define OPEN SD_BUS_VTABLE_UNPRIVILEGED /* to the bus; control-access.c decides */

const sd_bus_vtable control_manager_vtable[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_PROPERTY("Version", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("ProcessId", "u", get_pid, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("UptimeUSec", "t", get_uptime, 0, 0),
	SD_BUS_PROPERTY("CPUUSec", "t", get_cpu_time, 0, 0),
	SD_BUS_PROPERTY("State", "s", get_text, 0, 0),
	SD_BUS_PROPERTY("StateDirectory", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_PROPERTY("ConfigDirectory", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_METHOD_WITH_ARGS("ListSessions", SD_BUS_NO_ARGS,
		SD_BUS_RESULT("a(sso)", sessions), list_sessions, OPEN),
	SD_BUS_METHOD_WITH_ARGS("GetSession", SD_BUS_ARGS("s", name),
		SD_BUS_RESULT("o", path), get_session, OPEN),
	SD_BUS_METHOD_WITH_ARGS("ListEvents", SD_BUS_NO_ARGS,
		SD_BUS_RESULT("as", events), list_events, OPEN),
	SD_BUS_METHOD_WITH_ARGS("GetEventCost", SD_BUS_NO_ARGS,
		SD_BUS_RESULT("d", nanoseconds), get_event_cost, OPEN),
	SD_BUS_METHOD_WITH_ARGS("GetBootParameters", SD_BUS_ARGS("as", sessions),
		SD_BUS_RESULT("s", parameters), get_boot_parameters, OPEN),
	SD_BUS_METHOD_WITH_ARGS("GetStatistics", SD_BUS_ARGS("s", session),
		SD_BUS_RESULT("a(sa(uttttttttt))", statistics), get_statistics, OPEN),
	SD_BUS_METHOD_WITH_ARGS("GetLastHour", SD_BUS_ARGS("s", session),
		SD_BUS_RESULT("a(sa(tttt))", minutes), get_last_hour, OPEN),
	SD_BUS_METHOD_WITH_ARGS("ListFiles", SD_BUS_ARGS("s", session),
		SD_BUS_RESULT("a(ssstttubtsas)", files), control_list_files, OPEN),
	SD_BUS_METHOD_WITH_ARGS("OpenFile", SD_BUS_ARGS("s", session, "s", file),
		SD_BUS_RESULT("h", fd), control_open_file, OPEN),
	SD_BUS_METHOD_WITH_ARGS("PinFile", SD_BUS_ARGS("s", path, "b", pin),
		SD_BUS_NO_RESULT, control_pin_file, OPEN),
	SD_BUS_METHOD_WITH_ARGS("SnapshotTogether",
		SD_BUS_ARGS("as", sessions, "t", from_usec, "t", to_usec, "s", reason, "b", pin),
		SD_BUS_RESULT("s", path), control_snapshot_together, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Vacuum", SD_BUS_ARGS("s", session, "t", max_use, "t", older_than_usec),
		SD_BUS_RESULT("u", files, "t", bytes), control_vacuum, OPEN),
	SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS,
		SD_BUS_RESULT("as", warnings), reload, OPEN),
	SD_BUS_SIGNAL_WITH_NAMES("SnapshotFinished", "ssss",
		SD_BUS_PARAM(session) SD_BUS_PARAM(path) SD_BUS_PARAM(finding) SD_BUS_PARAM(id), 0),
	SD_BUS_SIGNAL_WITH_NAMES("SegmentFinished", "ss", SD_BUS_PARAM(session) SD_BUS_PARAM(path), 0),
	SD_BUS_VTABLE_END,
};
/* clang-format on */
