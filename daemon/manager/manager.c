/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-id128.h>
#include <tracefs/tracefs.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "daemon/explain/explain.h"
#include "daemon/manager/machine.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/memory-check.h"
#include "daemon/manager/privileges.h"
#include "daemon/plumbing/fdstore.h"
#include "daemon/plumbing/guard.h"
#include "daemon/plumbing/priority.h"
#include "daemon/plumbing/ship.h"
#include "daemon/plumbing/state-root.h"
#include "daemon/plumbing/timer.h"
#include "daemon/session/calibration.h"
#include "daemon/session/cmdlines.h"
#include "daemon/trigger/journal-watch.h"
#include "daemon/trigger/unit-watch.h"
#include "recorder/instance.h"
#include "recorder/tracefs.h"
#include "writer/metadata.h"

#define PATIENCE_USEC (30 * USEC_PER_SEC)

enum phase {
	PHASE_STARTING,
	PHASE_RUNNING,
	PHASE_RELOADING,
	PHASE_STOPPING,
	PHASE_HANDING_OVER,
};

struct manager {
	const struct manager_options *options;
	struct environment env; /* what sessions see of all this */
	struct session_events events;
	struct daemon_config *config;
	enum phase phase;
	bool reload_wanted;		  /* once all sessions have got somewhere */
	sd_event_source *patience_source; /* while it starts or reloads: patience with sessions */
	bool compressing;		  /* a session compresses a segment */
	size_t compress_turn;		  /* of the session after that */
	bool store_mixed;		  /* the FD store may have what no session will take */
	struct cmdlines cmdlines;
	struct calibration calibration;
	struct session **sessions;
	size_t n_sessions;
	struct machine *machine;
	struct explainer *explainer;
	struct unit_watch *units;      /* NULL: no session wants it */
	struct journal_watch *journal; /* NULL: no session has wanted it */
	char **journal_texts;	       /* that sessions want of it */
	uint64_t started_usec;	       /* monotonic */
	/* CPU time of starting, of flyrecd and of its sessions: that is not what recording costs */
	uint64_t starts_cpu_usec, start_begin_usec;
	bool starting;
	uint64_t status_bytes, status_usec;	 /* for the rate in STATUS= */
	const struct manager_listener *listener; /* NULL: nobody can ask anything */
	void *userdata;				 /* the listener's */
};

/* Tell who listens, if anybody does */
#define TELL(m, what, ...)                                                 \
	do {                                                               \
		if ((m)->listener)                                         \
			(m)->listener->what((m)->userdata, ##__VA_ARGS__); \
	} while (0)

/* What config_load() had to say */
struct complaints {
	bool bad;
	FILE *text; /* or NULL */
};

static void on_complaint(enum config_severity severity, const char *file, unsigned line,
			 const char *text, void *userdata)
{
	struct complaints *complaints = userdata;
	char number[16] = "";

	complaints->bad |= severity == CONFIG_ERROR;
	if (line > 0)
		(void)snprintf(number, sizeof(number), ":%u", line);
	if (complaints->text)
		(void)fprintf(complaints->text, "%s%s: %s\n", file, number, text);
	(void)log_full(severity == CONFIG_ERROR ? LOG_ERR : LOG_WARNING, NULL, MESSAGE_CONFIG, 0,
		       "%s%s: %s", file, number, text);
}

static int load(struct manager *m, struct daemon_config **ret, struct complaints *complaints)
{
	return config_load(m->env.config_dir, VENDOR_DIR, on_complaint, complaints, ret, NULL);
}

/* Of a configuration that has come into force */
static void take_values(struct manager *m)
{
	m->env.instance_prefix = m->config->instance_prefix;
	m->env.workers = m->config->workers;
	log_set_level(m->config->log_level);
}

static int read_config(struct manager *m)
{
	struct complaints complaints = {};
	int r = load(m, &m->config, &complaints);

	if (r < 0)
		return log_error_errno(r, "cannot read the configuration in %s: %m",
				       m->env.config_dir);
	take_values(m);
	return 0;
}

/* --- sessions */

struct session *manager_find(const struct manager *m, const char *name)
{
	for (size_t i = 0; i < m->n_sessions; i++)
		if (strcmp(session_name(m->sessions[i]), name) == 0)
			return m->sessions[i];
	return NULL;
}

static void show_status(struct manager *m)
{
	unsigned recording = 0, failed = 0;
	uint64_t bytes = 0, now = 0;
	double rate = 0;

	(void)sd_event_now(m->env.event, CLOCK_MONOTONIC, &now);
	for (size_t i = 0; i < m->n_sessions; i++) {
		recording += session_state(m->sessions[i]) == SESSION_RECORDING;
		failed += session_state(m->sessions[i]) == SESSION_FAILED;
		bytes += session_total_bytes(m->sessions[i]);
	}
	if (now < m->status_usec + USEC_PER_SEC && m->status_usec > 0)
		return;
	if (bytes > m->status_bytes && m->status_usec > 0)
		rate = (double)(bytes - m->status_bytes) / ((double)(now - m->status_usec) / 1e6);
	m->status_bytes = bytes;
	m->status_usec = now;
	(void)sd_notifyf(0, "STATUS=%u recording, %u failed; %.1f KiB/s", recording, failed,
			 rate / 1024);
}

/* Nobody wants it, and nothing is to come of it: one that waits for its disk was started by hand */
static bool is_over(const struct manager *m, const struct session *s)
{
	return session_settled(s) && !session_waits_for_disk(s) &&
	       !manager_wants(m, session_name(s));
}

/* One that is still configured goes on being an object, stopped */
static void forget_sessions(struct manager *m)
{
	for (size_t i = 0; i < m->n_sessions;) {
		struct session *s = m->sessions[i];

		if (!is_over(m, s)) {
			i++;
			continue;
		}
		memmove(&m->sessions[i], &m->sessions[i + 1],
			(--m->n_sessions - i) * sizeof(*m->sessions));
		if (!config_find(m->config, session_name(s)))
			TELL(m, session_removed, session_name(s));
		session_free(s);
	}
}

struct session *manager_session(const struct manager *m, size_t i)
{
	return i < m->n_sessions ? m->sessions[i] : NULL;
}

static int add_session(struct manager *m, const char *name, struct session **ret)
{
	struct session **more = reallocarray(m->sessions, m->n_sessions + 1, sizeof(*more));
	int r;

	if (!more)
		return -ENOMEM;
	m->sessions = more;
	r = session_new(&m->env, &m->events, name, &more[m->n_sessions]);
	if (r < 0)
		return r;
	*ret = more[m->n_sessions++];
	/* What is configured has been announced already */
	if (!config_find(m->config, name))
		TELL(m, session_added, name);
	return 0;
}

static void begin_start(struct manager *m)
{
	if (!m->starting)
		m->start_begin_usec = now_usec(CLOCK_PROCESS_CPUTIME_ID);
	m->starting = true;
}

static void end_start(struct manager *m)
{
	if (m->starting)
		m->starts_cpu_usec += now_usec(CLOCK_PROCESS_CPUTIME_ID) - m->start_begin_usec;
	m->starting = false;
}

static void configure_session(struct manager *m, const char *name,
			      const struct session_config *config)
{
	struct session *s = manager_find(m, name);
	int r = 0;

	begin_start(m);
	if (!s)
		r = add_session(m, name, &s);
	if (r >= 0)
		r = session_configure(s, config);
	if (r < 0)
		(void)log_full(LOG_ERR, name, MESSAGE_SESSION_FAILED, r, "cannot start: %m");
}

bool manager_wants(const struct manager *m, const char *name)
{
	const struct session_config *config = config_find(m->config, name);

	return config && config->enabled;
}

static void take_up_orphans(struct manager *m)
{
	_cleanup_(strv_freep) char **names = NULL;

	(void)io_list_at(state_root_fd(m->env.root), ".", NULL, &names);
	STRV_FOREACH (name, names) {
		char path[300];

		(void)snprintf(path, sizeof(path), "%s/state", *name);
		if (**name != '.' && !manager_wants(m, *name) && !manager_find(m, *name) &&
		    faccessat(state_root_fd(m->env.root), path, F_OK,
			      AT_EACCESS | AT_SYMLINK_NOFOLLOW) >= 0)
			configure_session(m, *name, NULL);
	}
}

static void apply_config(struct manager *m)
{
	for (size_t i = 0; i < m->n_sessions; i++)
		if (!manager_wants(m, session_name(m->sessions[i])))
			session_stop(m->sessions[i], false);
	for (size_t i = 0; i < m->config->n_sessions; i++)
		if (m->config->sessions[i]->enabled)
			configure_session(m, m->config->sessions[i]->name, m->config->sessions[i]);
	take_up_orphans(m);
	memory_check(m->config, state_root_fd(m->env.root));
}

/* --- Compress=: one segment at a time, the sessions in turn */

static void on_session_settled(void *userdata);
static void compress_next(struct manager *m);

static void on_compressed(void *userdata)
{
	struct manager *m = userdata;

	m->compressing = false;
	if (m->phase == PHASE_STOPPING || m->phase == PHASE_HANDING_OVER)
		on_session_settled(m);
	else
		compress_next(m);
}

static void compress_next(struct manager *m)
{
	for (size_t i = 0; i < m->n_sessions && m->phase == PHASE_RUNNING && !m->compressing; i++) {
		size_t turn = (m->compress_turn + i) % m->n_sessions;
		int r = session_compress(m->sessions[turn], on_compressed, m);

		if (r < 0)
			(void)log_full(LOG_WARNING, session_name(m->sessions[turn]), NULL, r,
				       "cannot compress a segment, trying again: %m");
		if (r > 0) {
			m->compressing = true;
			m->compress_turn = turn + 1;
		}
	}
}

/* --- the start or a reload, and its end */

static void reload_asked(struct manager *m);

static bool any_waits(const struct manager *m)
{
	for (size_t i = 0; i < m->n_sessions; i++)
		if (session_waits_for_disk(m->sessions[i]))
			return true;
	return false;
}

/* What an earlier process had in its hands is of use as long as its instance may be taken up */
static bool may_take_stored(void *userdata, const char *name)
{
	const struct manager *m = userdata;
	const struct session *s = manager_find(m, name);

	/* One that we do not see may be on a disk that is not there */
	return s ? session_state(s) == SESSION_FAILED : any_waits(m);
}

static bool on_its_way(const struct session *s)
{
	return !session_settled(s) && !session_steady(s);
}

/* The start or the reload is over: tell the service manager, and who waits for it */
static void is_up(struct manager *m)
{
	m->phase = PHASE_RUNNING;
	m->patience_source = sd_event_source_disable_unref(m->patience_source);
	if (m->reload_wanted) {
		reload_asked(m);
		return;
	}
	(void)sd_notify(0, "READY=1");
	m->status_usec = 0;
	show_status(m);
	TELL(m, reloaded);
	compress_next(m);
}

/* All sessions have got somewhere: forget those that nobody wants */
static void check_settled(struct manager *m)
{
	bool stopping = m->phase == PHASE_STOPPING || m->phase == PHASE_HANDING_OVER;

	for (size_t i = 0; i < m->n_sessions; i++) {
		const struct session *s = m->sessions[i];

		if (stopping ? !session_settled(s) : on_its_way(s))
			return;
	}
	end_start(m);
	/* They end in a moment; what they have begun is removed by them */
	if (stopping && (m->compressing || m->calibration.busy || m->calibration.counting))
		return;
	/* Before any is forgotten: the next reload may take up what that one has left */
	if (m->store_mixed && !stopping)
		fdstore_drop_rest(m->env.fdstore, may_take_stored, m);
	m->store_mixed = false;
	forget_sessions(m);
	if (stopping) {
		(void)sd_event_exit(m->env.event, 0);
		return;
	}
	if (state_root_is_new(m->env.root))
		take_up_orphans(m);
	if (m->phase != PHASE_RUNNING)
		is_up(m);
}

/* One that hangs, on its disk for example, must not cost the others: nobody could start, stop or
 * reload them, and the service manager would end us after TimeoutStartSec= */
static int on_patience_ends(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct manager *m = userdata;

	if (m->phase != PHASE_STARTING && m->phase != PHASE_RELOADING)
		return 0;
	for (size_t i = 0; i < m->n_sessions; i++)
		if (on_its_way(m->sessions[i]))
			(void)log_full(LOG_WARNING, session_name(m->sessions[i]), NULL, 0,
				       "still %s after %u s, not waiting any longer",
				       session_state_name(session_state(m->sessions[i])),
				       (unsigned)(PATIENCE_USEC / USEC_PER_SEC));
	is_up(m);
	return 0;
}

static void await_sessions(struct manager *m)
{
	m->store_mixed = true;
	m->patience_source = sd_event_source_disable_unref(m->patience_source);
	if (timer_arm(m->env.event, &m->patience_source, PATIENCE_USEC, on_patience_ends, m) < 0)
		log_warning("cannot set a timer: waiting for every session, however long it takes");
	on_session_settled(m);
}

static int on_settled(sd_event_source *source, void *userdata)
{
	(void)sd_event_source_disable_unref(source); /* else it stays as long as the loop */
	check_settled(userdata);
	return 0;
}

static void on_session_settled(void *userdata)
{
	struct manager *m = userdata;

	/* Later: we may be in the middle of looking at the sessions */
	if (sd_event_add_defer(m->env.event, NULL, on_settled, m) < 0)
		check_settled(m);
}

static void end(struct manager *m, enum phase phase)
{
	if (m->phase == PHASE_STOPPING || m->phase == PHASE_HANDING_OVER)
		return;
	m->phase = phase;
	m->env.stopping = true;
	m->env.handing_over = phase == PHASE_HANDING_OVER;
	(void)sd_notifyf(0, "STOPPING=1\nSTATUS=%s",
			 phase == PHASE_STOPPING ? "finishing segments" : "handing over");
	for (size_t i = 0; i < m->n_sessions; i++)
		session_stop(m->sessions[i], phase == PHASE_HANDING_OVER);
	if (phase == PHASE_STOPPING)
		state_root_forget_mount(m->env.root);
	on_session_settled(m);
}

/* --- reload */

/* Sessions that exist because they are configured, and for no other reason */
static void announce_changes(struct manager *m, const struct daemon_config *before)
{
	const struct daemon_config *now = m->config;

	for (size_t i = 0; i < before->n_sessions; i++) {
		const char *name = before->sessions[i]->name;

		if (!config_find(now, name) && !manager_find(m, name))
			TELL(m, session_removed, name);
	}
	for (size_t i = 0; i < now->n_sessions; i++) {
		const char *name = now->sessions[i]->name;

		if (!config_find(before, name) && !manager_find(m, name))
			TELL(m, session_added, name);
	}
}

static void take_config(struct manager *m, struct daemon_config *config)
{
	if (strcmp(config->instance_prefix, m->config->instance_prefix) != 0)
		log_warning("InstancePrefix= takes effect at the next start of each session");
	SWAP(m->config, config);
	take_values(m);
	announce_changes(m, config);
	config_free(config);
	state_root_accept(m->env.root); /* who reloads may want it elsewhere */
	TELL(m, configured);
	apply_config(m);
	log_info("configuration reloaded");
}

int manager_reload(struct manager *m, char **ret_complaints)
{
	struct daemon_config *config = NULL;
	struct complaints complaints = {};
	uint64_t now = 0;
	size_t size;
	int r;

	if (m->phase != PHASE_RUNNING)
		return -EBUSY;
	*ret_complaints = NULL;
	complaints.text = open_memstream(ret_complaints, &size);
	if (!complaints.text)
		return -ENOMEM;
	(void)sd_event_now(m->env.event, CLOCK_MONOTONIC, &now);
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now);
	m->phase = PHASE_RELOADING;
	r = load(m, &config, &complaints);
	(void)fclose(complaints.text);
	if (r < 0 || complaints.bad) {
		config_free(config);
		(void)log_full(LOG_ERR, NULL, MESSAGE_CONFIG, 0,
			       "the configuration has errors: going on with the old one");
		r = -EINVAL;
	} else {
		take_config(m, config);
	}
	await_sessions(m);
	return r;
}

static void reload_asked(struct manager *m)
{
	_cleanup_free_ char *complaints = NULL;

	/* Sessions are on their way: what is read now must not be the last word */
	m->reload_wanted = m->phase == PHASE_STARTING || m->phase == PHASE_RELOADING;
	if (m->phase == PHASE_RUNNING)
		(void)manager_reload(m, &complaints);
}

int manager_start_session(struct manager *m, const char *name, struct fault *why)
{
	const struct session_config *config = config_find(m->config, name);
	struct session *s = manager_find(m, name);

	if (m->phase != PHASE_RUNNING)
		return fault_set(why, -EBUSY, "flyrecd is %s",
				 m->phase >= PHASE_STOPPING ? "stopping" : "starting");
	if (!config)
		return fault_set(why, -ENOENT, "no session %s is configured", name);
	if (s && session_state(s) == SESSION_RECORDING)
		return 0;
	configure_session(m, name, config);
	return manager_find(m, name) ? 0 : fault_errno(why, -ENOMEM, "session %s", name);
}

int manager_refresh_config(struct manager *m, const char *name, struct fault *why)
{
	_cleanup_(config_freep) struct daemon_config *config = NULL;
	struct complaints complaints = {};

	if (load(m, &config, &complaints) < 0 || complaints.bad)
		return fault_set(why, -EINVAL,
				 "saved, but the configuration has errors; see the log");
	for (size_t i = 0; i < config->n_sessions; i++)
		for (size_t j = 0; j < m->config->n_sessions; j++)
			if (strcmp(config->sessions[i]->name, name) == 0 &&
			    strcmp(m->config->sessions[j]->name, name) == 0) {
				struct session_config *old = m->config->sessions[j];

				m->config->sessions[j] = config->sessions[i];
				config->sessions[i] = old;
				return 0;
			}
	return fault_set(why, -ENOENT, "saved, but session %s is not configured any more", name);
}

/* --- told by sessions and triggers */

void manager_session_changed(struct manager *m, struct session *session)
{
	bool minded = false;

	TELL(m, session_changed, session_name(session));
	for (size_t i = 0; i < m->n_sessions; i++)
		minded |= session_minds_mounts(m->sessions[i]);
	machine_mind_mounts(m->machine, minded);
}

static void on_session_changed(void *userdata, struct session *session)
{
	manager_session_changed(userdata, session);
}

/* Also one that has failed, or had no room, is tried again by and by */
static void on_session_ticked(void *userdata)
{
	show_status(userdata);
	compress_next(userdata);
}

static void on_segment_finished(void *userdata, struct session *session, const char *path)
{
	struct manager *m = userdata;

	TELL(m, segment_finished, session_name(session), path);
}

static uint64_t on_keep_free(void *userdata, dev_t device)
{
	const struct manager *m = userdata;
	uint64_t most = 0;

	for (size_t i = 0; i < m->n_sessions; i++)
		most = MAX(most, session_keep_free(m->sessions[i], device));
	return most;
}

/* Clients are told, and whoever ships files */
static void announce_snapshot(struct manager *m, const char *session, const char *path,
			      const char *finding, const char *id)
{
	int r;

	TELL(m, snapshot_finished, session, path, finding, id);
	r = ship(m->env.runtime_dir, path, finding, id);
	if (r < 0 && r != -ENOENT)
		(void)log_full(LOG_WARNING, session, MESSAGE_SNAPSHOT, r,
			       "cannot have %s shipped: %m", path);
}

static void log_finding(const struct explained *explained)
{
	const struct own_finding *worst = explained->worst;
	_cleanup_(strv_freep) char **fields = NULL;

	if (strv_appendf(&fields, "FLYREC_FILE=%s", explained->path) < 0 ||
	    strv_appendf(&fields, "FLYREC_FINDING=%s", worst->text) < 0 ||
	    strv_appendf(&fields, "FLYREC_RULE=%s", worst->rule) < 0 ||
	    strv_appendf(&fields, "FLYREC_SCORE_NSEC=%" PRIu64, worst->score) < 0 ||
	    strv_appendf(&fields, "FLYREC_START_USEC=%" PRIu64, worst->start_usec) < 0 ||
	    strv_appendf(&fields, "FLYREC_DURATION_NSEC=%" PRIu64, worst->duration_nsec) < 0 ||
	    strv_appendf(&fields, "FLYREC_TASK=%s", worst->task) < 0 ||
	    strv_appendf(&fields, "FLYREC_UNIT=%s", worst->unit) < 0)
		return;
	log_fields(LOG_NOTICE, explained->session, MESSAGE_FINDING, fields, "%s: %s",
		   strrchr(explained->path, '/') + 1, worst->text);
}

static void log_explained(const struct explained *explained)
{
	if (explained->journal_why)
		(void)log_full(LOG_NOTICE, explained->session, NULL, explained->journal_why->error,
			       "%s has no lines of the journal: %s", explained->path,
			       explained->journal_why->text);
	if (!explained->analyzed)
		return;
	if (explained->result == -ECANCELED)
		(void)log_full(LOG_INFO, explained->session, NULL, 0, "%s is not analyzed: %s",
			       explained->path, explained->why->text);
	else if (explained->result < 0)
		(void)log_full(LOG_NOTICE, explained->session, NULL, explained->result,
			       "cannot analyze %s: %s, ignoring", explained->path,
			       explained->why->text);
	else if (explained->worst)
		log_finding(explained);
	else
		(void)log_full(LOG_INFO, explained->session, NULL, 0, "%s: nothing stands out",
			       strrchr(explained->path, '/') + 1);
}

static void on_explained(void *userdata, const struct explained *explained)
{
	if (explained->result != EXPLAINED_LATER)
		log_explained(explained);
	if (!explained->was_late)
		announce_snapshot(userdata, explained->session, explained->path,
				  explained->worst ? explained->worst->text : "", explained->id);
}

/* It is on the disk, whatever becomes of its analysis */
static void on_snapshot_finished(void *userdata, struct session *session, const char *path,
				 const char *id)
{
	struct manager *m = userdata;
	const struct session_config *config = session_config_in_force(session);
	const char *name = path + strlen(m->env.state_dir) + 1;
	int r;

	if (config->snapshot.analyze || config->snapshot.journal) {
		const struct explain_wish wish = {
			.findings = config->snapshot.analyze,
			.journal = config->snapshot.journal,
		};

		r = explainer_add(m->explainer, &wish, state_root_fd(m->env.root), name,
				  session_name(session), path, id, on_explained, m);
		if (r >= 0)
			return;
		if (r == -EBUSY)
			(void)log_full(LOG_INFO, session_name(session), NULL, 0,
				       "%s is not analyzed: too many snapshots are waiting for it",
				       path);
		else
			(void)log_full(LOG_NOTICE, session_name(session), NULL, r,
				       "cannot analyze %s: %m, ignoring", path);
	}
	announce_snapshot(m, session_name(session), path, "", id);
}

static void on_unit_failed(void *userdata, const char *unit, uint64_t usec)
{
	struct manager *m = userdata;

	for (size_t i = 0; i < m->n_sessions; i++)
		triggers_on_unit(session_triggers(m->sessions[i]), unit, usec);
}

static void on_journal(void *userdata, const char *text, const char *lines, uint64_t usec)
{
	struct manager *m = userdata;

	for (size_t i = 0; i < m->n_sessions; i++)
		triggers_on_journal(session_triggers(m->sessions[i]), text, lines, usec);
}

static int watch_journal(struct manager *m)
{
	_cleanup_(strv_freep) char **texts = NULL;
	int r = 0;

	for (size_t i = 0; i < m->n_sessions && r >= 0; i++)
		if (m->sessions[i])
			r = triggers_want_journal(session_triggers(m->sessions[i]), &texts);
	if (r < 0 || strv_equal(texts, m->journal_texts))
		return r;
	if (!m->journal)
		r = journal_watch_new(m->env.event, PRIORITY_TRIGGER, on_journal, m, &m->journal);
	if (r < 0)
		return r;
	SWAP(m->journal_texts, texts);
	return journal_watch_set(m->journal, m->journal_texts);
}

static void on_watch_wanted(void *userdata)
{
	struct manager *m = userdata;
	bool wanted = false;

	for (size_t i = 0; i < m->n_sessions; i++)
		wanted |= m->sessions[i] && triggers_want_units(session_triggers(m->sessions[i]));
	if (wanted && !m->units &&
	    unit_watch_new(m->env.event, PRIORITY_TRIGGER, on_unit_failed, m, &m->units) < 0)
		log_error_errno(-ENOMEM, "cannot watch units: %m");
	else if (!wanted)
		unit_watch_free(TAKE_PTR(m->units));
	if (watch_journal(m) < 0)
		log_error_errno(-ENOMEM, "cannot watch the journal: %m");
}

static void snapshot_all(struct manager *m)
{
	for (size_t i = 0; i < m->n_sessions; i++)
		triggers_on_signal(session_triggers(m->sessions[i]));
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	struct manager *m = userdata;
	int signal = (int)si->ssi_signo;

	if (signal == SIGTERM || signal == SIGINT)
		end(m, PHASE_STOPPING);
	else if (signal == SIGRTMIN + 1)
		end(m, PHASE_HANDING_OVER);
	else if (signal == SIGHUP)
		reload_asked(m);
	else if (signal == SIGUSR1)
		snapshot_all(m);
	else if (signal == SIGUSR2)
		for (size_t i = 0; i < m->n_sessions; i++)
			session_rotate(m->sessions[i]);
	return 0;
}

static int watch_signals(struct manager *m)
{
	const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGRTMIN + 1};

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		sd_event_source *source;
		int r = sd_event_add_signal(m->env.event, &source, signals[i], on_signal, m);

		if (r >= 0)
			r = sd_event_source_set_priority(source, PRIORITY_SIGNAL);
		if (r >= 0)
			r = sd_event_source_set_floating(source, true);
		if (r < 0)
			return r;
		(void)sd_event_source_unref(source);
	}
	return 0;
}

static void on_mounts_changed(void *userdata)
{
	struct manager *m = userdata;

	for (size_t i = 0; i < m->n_sessions; i++)
		session_mounts_changed(m->sessions[i]);
}

static void on_clock_changed(void *userdata, bool slept)
{
	struct manager *m = userdata;

	for (size_t i = 0; i < m->n_sessions; i++) {
		session_clock_set(m->sessions[i]);
		if (slept)
			session_slept(m->sessions[i]);
	}
}

/* --- all of it */

static void on_calibrated(void *userdata)
{
	struct manager *m = userdata;

	if (m->env.stopping)
		on_session_settled(m);
}

static int open_state_dir(struct manager *m)
{
	struct fault why;
	int r;

	(void)umask(0027);
	if (state_root_new(m->env.state_dir, m->env.runtime_dir, m->env.boot_id_text,
			   &m->env.root) < 0)
		return log_error_errno(-ENOMEM, "cannot start: %m");
	r = state_root_find(m->env.root, &why);
	if (r < 0 && !session_disk_may_return(r))
		return log_error_errno(r, "%s", why.text);
	/* It may be mounted, or writable, in a moment */
	if (r < 0)
		log_warning("%s; sessions are tried again until that has changed", why.text);
	(void)state_root_is_new(m->env.root);
	return 0;
}

static int set_up(struct manager *m)
{
	static const struct machine_calls machine_calls = {
		.mounts_changed = on_mounts_changed,
		.clock_changed = on_clock_changed,
	};
	struct fault why = {};
	sd_id128_t boot_id;
	int r;

	r = read_config(m);
	if (r < 0)
		return r;
	r = tracefs_usable(&why);
	if (r < 0)
		return log_error_errno(r, "%s", why.text);
	r = privileges_drop(m->options, m->config);
	if (r < 0)
		return r;
	if (faccessat(AT_FDCWD, symbols_path(), R_OK, AT_EACCESS) < 0)
		log_notice("cannot read /proc/kallsyms: traces will have no kernel symbols");
	else if (kptr_restricted())
		log_notice("kernel.kptr_restrict is 2: traces will have no kernel symbols");
	m->env.tracing_fd = open(tracefs_tracing_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->env.tracing_fd < 0)
		return log_error_errno(-errno, "cannot open %s: %m", tracefs_tracing_dir());
	r = sd_id128_get_boot(&boot_id);
	if (r < 0)
		return log_error_errno(r, "cannot read the boot id: %m");
	memcpy(m->env.boot_id, boot_id.bytes, sizeof(m->env.boot_id));
	(void)sd_id128_to_string(boot_id, m->env.boot_id_text);
	r = open_state_dir(m);
	if (r < 0)
		return r;
	m->env.symbols = symbols_new();
	if (!m->env.symbols || fdstore_new(&m->env.fdstore) < 0 || guard_new(&m->env.guard) < 0)
		return log_error_errno(-ENOMEM, "cannot start: %m");
	r = sd_event_default(&m->env.event);
	if (r >= 0)
		r = explainer_new(m->env.event, &m->explainer);
	if (r >= 0)
		r = watch_signals(m);
	if (r >= 0)
		r = machine_new(m->env.event, &machine_calls, m, &m->machine);
	if (r >= 0)
		r = sd_event_set_watchdog(m->env.event, true);
	(void)sd_event_now(m->env.event, CLOCK_MONOTONIC, &m->started_usec);
	return r < 0 ? log_error_errno(r, "cannot start the event loop: %m") : 0;
}

static void block_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGUSR1);
	(void)sigaddset(&set, SIGUSR2);
	(void)sigaddset(&set, SIGRTMIN + 1);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGIO, SIG_IGN); /* a lease of ours is wanted: it is given back in a moment */
	(void)signal(SIGXFSZ, SIG_IGN); /* a file-size limit shows as EFBIG */
}

static struct manager *manager_alloc(const struct manager_options *options)
{
	struct manager *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->options = options;
	m->env = (struct environment){
		.config_dir = options->config_dir,
		.state_dir = options->state_dir,
		.runtime_dir = options->runtime_dir,
		.tracing_fd = -EBADF,
		.cmdlines = &m->cmdlines,
		.calibration = &m->calibration,
	};
	m->starting = true; /* from the beginning of the process on */
	m->calibration.over = on_calibrated;
	m->calibration.userdata = m;
	m->events = (struct session_events){
		.changed = on_session_changed,
		.settled = on_session_settled,
		.ticked = on_session_ticked,
		.segment_finished = on_segment_finished,
		.snapshot_finished = on_snapshot_finished,
		.watch_wanted = on_watch_wanted,
		.keep_free = on_keep_free,
		.userdata = m,
	};
	return m;
}

int manager_new(const struct manager_options *options, struct manager **ret)
{
	_cleanup_(manager_freep) struct manager *m = manager_alloc(options);
	int r;

	if (!m)
		return log_error_errno(-ENOMEM, "cannot start: %m");
	block_signals();
	r = set_up(m);
	if (r >= 0)
		*ret = TAKE_PTR(m);
	return r;
}

int manager_new_idle(const struct manager_options *options, struct daemon_config *config,
		     struct manager **ret)
{
	_cleanup_(manager_freep) struct manager *m = manager_alloc(options);
	struct session *s;
	struct fault why;
	int r;

	if (!m)
		return -ENOMEM;
	m->config = config;
	r = state_root_new(m->env.state_dir, m->env.runtime_dir, m->env.boot_id_text, &m->env.root);
	if (r >= 0)
		r = state_root_find(m->env.root, &why);
	if (r >= 0)
		r = fdstore_new(&m->env.fdstore);
	if (r >= 0)
		r = guard_new(&m->env.guard);
	if (r >= 0)
		r = sd_event_new(&m->env.event);
	if (r >= 0)
		r = explainer_new(m->env.event, &m->explainer);
	if (r >= 0)
		r = add_session(m, config->sessions[0]->name, &s);
	if (r >= 0)
		*ret = TAKE_PTR(m);
	else
		m->config = NULL;
	return r;
}

/* Who waits for one is told */
static void end_sessions(struct manager *m)
{
	for (size_t i = 0; i < m->n_sessions; i++)
		session_free(TAKE_PTR(m->sessions[i]));
	free(TAKE_PTR(m->sessions));
	m->n_sessions = 0;
}

void manager_free(struct manager *m)
{
	if (!m)
		return;
	end_sessions(m);
	explainer_free(m->explainer);
	unit_watch_free(m->units);
	journal_watch_free(m->journal);
	strv_free(m->journal_texts);
	machine_free(m->machine);
	guard_free(m->env.guard);
	fdstore_free(m->env.fdstore);
	symbols_free(m->env.symbols);
	config_free(m->config);
	sd_event_source_disable_unref(m->patience_source);
	sd_event_unref(m->env.event);
	close_p(&m->env.tracing_fd);
	state_root_free(m->env.root);
	free(m);
}

void manager_listen(struct manager *m, const struct manager_listener *listener, void *userdata)
{
	m->listener = listener;
	m->userdata = userdata;
}

int manager_run(struct manager *m)
{
	int r;

	cmdlines_resume(&m->env);
	calibration_clean_up(&m->env);
	(void)log_full(LOG_INFO, NULL, MESSAGE_STARTED, 0, PACKAGE_STRING " started");
	apply_config(m);
	await_sessions(m);
	r = sd_event_loop(m->env.event);
	if (m->phase != PHASE_HANDING_OVER)
		cmdlines_restore(&m->env);
	(void)log_full(LOG_INFO, NULL, MESSAGE_STOPPED, 0,
		       m->phase == PHASE_HANDING_OVER ? "handed over" : "stopped");
	end_sessions(m);
	return r;
}

/* --- for those who ask */

const struct environment *manager_environment(const struct manager *m)
{
	return &m->env;
}

const struct daemon_config *manager_config(const struct manager *m)
{
	return m->config;
}

const char *manager_phase_name(const struct manager *m)
{
	static const char *const names[] = {
		[PHASE_STARTING] = "starting",	       [PHASE_RUNNING] = "running",
		[PHASE_RELOADING] = "reloading",       [PHASE_STOPPING] = "stopping",
		[PHASE_HANDING_OVER] = "handing-over",
	};

	return names[m->phase];
}

bool manager_is_running(const struct manager *m)
{
	return m->phase == PHASE_RUNNING;
}

uint64_t manager_started_usec(const struct manager *m)
{
	return m->started_usec;
}

uint64_t manager_cpu_usec(const struct manager *m)
{
	uint64_t now = m->starting ? m->start_begin_usec : now_usec(CLOCK_PROCESS_CPUTIME_ID);

	return now - MIN(m->starts_cpu_usec + m->calibration.cpu_usec, now);
}

const char *manager_unit_trouble(const struct manager *m)
{
	return m->units ? unit_watch_trouble(m->units) : NULL;
}

const char *manager_journal_trouble(const struct manager *m)
{
	return m->journal ? journal_watch_trouble(m->journal) : NULL;
}
