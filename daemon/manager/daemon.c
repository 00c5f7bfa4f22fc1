/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-id128.h>
#include <tracefs/tracefs.h>

#include "basic/io.h"
#include "basic/log.h"
#include "daemon/control/control.h"
#include "daemon/control/guard.h"
#include "daemon/manager/daemon-config.h"
#include "daemon/manager/daemon-state.h"
#include "daemon/plumbing/ship.h"
#include "daemon/privileges.h"
#include "daemon/session/session.h"
#include "daemon/trigger/trigger.h"
#include "daemon/trigger/unit-watch.h"
#include "recorder/instance.h"
#include "recorder/saved-cmdlines.h"
#include "recorder/tracefs.h"
#include "writer/store.h"

#define PATIENCE_USEC (30 * USEC_PER_SEC)

struct session *daemon_find_session(const struct daemon *d, const char *name)
{
	for (size_t i = 0; i < d->n_sessions; i++)
		if (strcmp(session_name(d->sessions[i]), name) == 0)
			return d->sessions[i];
	return NULL;
}

void daemon_show_status(struct daemon *d)
{
	unsigned recording = 0, failed = 0;
	uint64_t bytes = 0, now = 0;
	double rate = 0;

	(void)sd_event_now(d->event, CLOCK_MONOTONIC, &now);
	for (size_t i = 0; i < d->n_sessions; i++) {
		recording += session_state(d->sessions[i]) == SESSION_RECORDING;
		failed += session_state(d->sessions[i]) == SESSION_FAILED;
		bytes += session_total_bytes(d->sessions[i]);
	}
	if (now < d->status_usec + USEC_PER_SEC && d->status_usec > 0)
		return;
	if (bytes > d->status_bytes && d->status_usec > 0)
		rate = (double)(bytes - d->status_bytes) / ((double)(now - d->status_usec) / 1e6);
	d->status_bytes = bytes;
	d->status_usec = now;
	(void)sd_notifyf(0, "STATUS=%u recording, %u failed; %.1f KiB/s", recording, failed,
			 rate / 1024);
}

/* Nobody wants it, and nothing is to come of it: one that waits for its disk was started by hand */
static bool is_over(const struct daemon *d, const struct session *s)
{
	return session_settled(s) && !session_waits_for_disk(s) &&
	       !daemon_wants(d, session_name(s));
}

/* One that is still configured goes on being an object, stopped */
static void forget_sessions(struct daemon *d)
{
	for (size_t i = 0; i < d->n_sessions;) {
		struct session *s = d->sessions[i];

		if (!is_over(d, s)) {
			i++;
			continue;
		}
		memmove(&d->sessions[i], &d->sessions[i + 1],
			(--d->n_sessions - i) * sizeof(*d->sessions));
		if (!config_find(d->config, session_name(s)))
			control_session_removed(d->control, session_name(s));
		session_free(s);
	}
}

static bool any_waits(const struct daemon *d)
{
	for (size_t i = 0; i < d->n_sessions; i++)
		if (session_waits_for_disk(d->sessions[i]))
			return true;
	return false;
}

/* What an earlier process had in its hands is of use as long as its instance may be taken up */
static bool may_take_stored(void *userdata, const char *name)
{
	const struct daemon *d = userdata;
	const struct session *s = daemon_find_session(d, name);

	/* One that we do not see may be on a disk that is not there */
	return s ? session_state(s) == SESSION_FAILED : any_waits(d);
}

static bool on_its_way(const struct session *s)
{
	return !session_settled(s) && !session_steady(s);
}

/* The start or the reload is over: tell the service manager, and who waits for it */
static void is_up(struct daemon *d)
{
	d->phase = DAEMON_RUNNING;
	d->patience_source = sd_event_source_disable_unref(d->patience_source);
	if (d->reload_wanted) {
		daemon_reload_asked(d);
		return;
	}
	(void)sd_notify(0, "READY=1");
	d->status_usec = 0;
	daemon_show_status(d);
	control_reloaded(d->control);
}

/* All sessions have got somewhere: forget those that nobody wants */
static void check_settled(struct daemon *d)
{
	bool stopping = d->phase == DAEMON_STOPPING || d->phase == DAEMON_HANDING_OVER;

	for (size_t i = 0; i < d->n_sessions; i++) {
		const struct session *s = d->sessions[i];

		if (stopping ? !session_settled(s) : on_its_way(s))
			return;
	}
	/* Before any is forgotten: the next reload may take up what that one has left */
	if (d->store_mixed && !stopping)
		fdstore_drop_rest(d->fdstore, may_take_stored, d);
	d->store_mixed = false;
	forget_sessions(d);
	if (stopping) {
		(void)sd_event_exit(d->event, 0);
		return;
	}
	if (d->state_new)
		daemon_take_up_orphans(d);
	d->state_new = false;
	if (d->phase != DAEMON_RUNNING)
		is_up(d);
}

/* One that hangs, on its disk for example, must not cost the others: nobody could start, stop or
 * reload them, and the service manager would end us after TimeoutStartSec= */
static int on_patience_ends(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct daemon *d = userdata;

	if (d->phase != DAEMON_STARTING && d->phase != DAEMON_RELOADING)
		return 0;
	for (size_t i = 0; i < d->n_sessions; i++)
		if (on_its_way(d->sessions[i]))
			(void)log_full(LOG_WARNING, session_name(d->sessions[i]), NULL, 0,
				       "still %s after %u s, not waiting any longer",
				       session_state_name(session_state(d->sessions[i])),
				       (unsigned)(PATIENCE_USEC / USEC_PER_SEC));
	is_up(d);
	return 0;
}

void daemon_await_sessions(struct daemon *d)
{
	d->store_mixed = true;
	d->patience_source = sd_event_source_disable_unref(d->patience_source);
	if (sd_event_add_time_relative(d->event, &d->patience_source, CLOCK_MONOTONIC,
				       PATIENCE_USEC, 0, on_patience_ends, d) < 0)
		log_warning("cannot set a timer: waiting for every session, however long it takes");
	daemon_session_settled(d);
}

static int on_settled(sd_event_source *source, void *userdata)
{
	(void)sd_event_source_disable_unref(source); /* else it stays as long as the loop */
	check_settled(userdata);
	return 0;
}

void daemon_session_settled(struct daemon *d)
{
	/* Later: we may be in the middle of looking at the sessions */
	if (sd_event_add_defer(d->event, NULL, on_settled, d) < 0)
		check_settled(d);
}

static void end(struct daemon *d, enum daemon_phase phase)
{
	if (d->phase == DAEMON_STOPPING || d->phase == DAEMON_HANDING_OVER)
		return;
	d->phase = phase;
	(void)sd_notifyf(0, "STOPPING=1\nSTATUS=%s",
			 phase == DAEMON_STOPPING ? "finishing segments" : "handing over");
	for (size_t i = 0; i < d->n_sessions; i++)
		session_stop(d->sessions[i], phase == DAEMON_HANDING_OVER);
	if (phase == DAEMON_STOPPING)
		daemon_forget_mount(d);
	daemon_session_settled(d);
}

/* --- asked for by clients */

void daemon_session_changed(struct daemon *d, struct session *session)
{
	control_session_changed(d->control, session_name(session));
	daemon_mind_mounts(d);
}

void daemon_segment_finished(struct daemon *d, struct session *session, const char *path)
{
	control_segment_finished(d->control, session_name(session), path);
}

void daemon_snapshot_finished(struct daemon *d, const char *session, const char *path)
{
	int r;

	control_snapshot_finished(d->control, session, path);
	r = ship(d->options.runtime_dir, path);
	if (r < 0 && r != -ENOENT)
		(void)log_full(LOG_WARNING, session, MESSAGE_SNAPSHOT, r,
			       "cannot have %s shipped: %m", path);
}

static void on_unit_failed(void *userdata, const char *unit, uint64_t usec)
{
	struct daemon *d = userdata;

	for (size_t i = 0; i < d->n_sessions; i++)
		triggers_on_unit(d->sessions[i], unit, usec);
}

void daemon_watch_units(struct daemon *d)
{
	bool wanted = false;

	for (size_t i = 0; i < d->n_sessions; i++)
		wanted |= d->sessions[i] && triggers_want_units(d->sessions[i]);
	if (wanted && !d->units &&
	    unit_watch_new(d->event, PRIORITY_TRIGGER, on_unit_failed, d, &d->units) < 0)
		log_error_errno(-ENOMEM, "cannot watch units: %m");
	else if (!wanted)
		unit_watch_free(TAKE_PTR(d->units));
}

static void snapshot_all(struct daemon *d)
{
	for (size_t i = 0; i < d->n_sessions; i++)
		triggers_on_signal(d->sessions[i]);
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	struct daemon *d = userdata;
	int signal = (int)si->ssi_signo;

	if (signal == SIGTERM || signal == SIGINT)
		end(d, DAEMON_STOPPING);
	else if (signal == SIGRTMIN + 1)
		end(d, DAEMON_HANDING_OVER);
	else if (signal == SIGHUP)
		daemon_reload_asked(d);
	else if (signal == SIGUSR1)
		snapshot_all(d);
	else if (signal == SIGUSR2)
		for (size_t i = 0; i < d->n_sessions; i++)
			session_rotate(d->sessions[i]);
	return 0;
}

static int watch_signals(struct daemon *d)
{
	const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGRTMIN + 1};

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		sd_event_source *source;
		int r = sd_event_add_signal(d->event, &source, signals[i], on_signal, d);

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

static int set_up(struct daemon *d)
{
	struct fault why = {};
	sd_id128_t boot_id;
	int r;

	r = daemon_read_config(d);
	if (r < 0)
		return r;
	r = tracefs_usable(&why);
	if (r < 0)
		return log_error_errno(r, "%s", why.text);
	r = privileges_drop(&d->options);
	if (r < 0)
		return r;
	if (faccessat(AT_FDCWD, symbols_path(), R_OK, AT_EACCESS) < 0)
		log_notice("cannot read /proc/kallsyms: traces will have no kernel symbols");
	else if (kptr_restricted())
		log_notice("kernel.kptr_restrict is 2: traces will have no kernel symbols");
	d->tracing_fd = open(tracefs_tracing_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->tracing_fd < 0)
		return log_error_errno(-errno, "cannot open %s: %m", tracefs_tracing_dir());
	r = sd_id128_get_boot(&boot_id);
	if (r < 0)
		return log_error_errno(r, "cannot read the boot id: %m");
	memcpy(d->boot_id, boot_id.bytes, sizeof(d->boot_id));
	(void)sd_id128_to_string(boot_id, d->boot_id_text);
	r = daemon_open_state_dir(d);
	if (r < 0)
		return r;
	d->symbols = symbols_new();
	if (!d->symbols || fdstore_new(&d->fdstore) < 0 || guard_new(&d->guard) < 0)
		return log_error_errno(-ENOMEM, "cannot start: %m");
	r = sd_event_default(&d->event);
	if (r >= 0)
		r = watch_signals(d);
	if (r >= 0)
		r = daemon_watch_mounts(d);
	if (r >= 0)
		r = daemon_watch_clock(d);
	if (r >= 0)
		r = sd_event_set_watchdog(d->event, true);
	(void)sd_event_now(d->event, CLOCK_MONOTONIC, &d->started_usec);
	/* Without it nobody can ask, but what is recorded is recorded */
	if (r >= 0 && control_new(d, &d->control) < 0)
		log_warning("going on without a control socket");
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

static void tear_down(struct daemon *d)
{
	/* First the sessions: who waits for one is told */
	for (size_t i = 0; i < d->n_sessions; i++)
		session_free(TAKE_PTR(d->sessions[i]));
	free(d->sessions);
	d->n_sessions = 0;
	unit_watch_free(TAKE_PTR(d->units));
	control_free(TAKE_PTR(d->control));
	guard_free(TAKE_PTR(d->guard));
	fdstore_free(d->fdstore);
	symbols_free(d->symbols);
	config_free(d->config);
	d->patience_source = sd_event_source_disable_unref(d->patience_source);
	d->event = sd_event_unref(d->event);
	close_p(&d->tracing_fd);
	d->mounts_source = sd_event_source_disable_unref(d->mounts_source);
	close_p(&d->mounts_fd);
	close_p(&d->clock_fd);
	daemon_close_state_dir(d);
}

int daemon_run(const struct daemon_options *options)
{
	struct daemon d = {.options = *options,
			   .state_fd = -EBADF,
			   .lock_fd = -EBADF,
			   .mounts_fd = -EBADF,
			   .clock_fd = -EBADF,
			   .tracing_fd = -EBADF};
	int r;

	block_signals();
	r = set_up(&d);
	if (r >= 0) {
		daemon_resume_cmdlines(&d);
		(void)log_full(LOG_INFO, NULL, MESSAGE_STARTED, 0, PACKAGE_STRING " started");
		daemon_apply_config(&d);
		daemon_await_sessions(&d);
		r = sd_event_loop(d.event);
		daemon_restore_cmdlines(&d);
		(void)log_full(LOG_INFO, NULL, MESSAGE_STOPPED, 0,
			       d.phase == DAEMON_HANDING_OVER ? "handed over" : "stopped");
	}
	tear_down(&d);
	return r;
}
