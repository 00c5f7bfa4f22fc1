/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "basic/log.h"
#include "daemon/control/control.h"
#include "daemon/manager/daemon-config.h"
#include "daemon/manager/memory-check.h"
#include "daemon/session/session.h"

/* What config_load() had to say */
struct complaints {
	bool bad;
	FILE *text; /* or NULL */
};

static void on_complaint(enum config_severity severity, const char *file, unsigned line,
			 const char *text, void *userdata)
{
	struct complaints *complaints = userdata;

	complaints->bad |= severity == CONFIG_ERROR;
	if (complaints->text && line > 0)
		(void)fprintf(complaints->text, "%s:%u: %s\n", file, line, text);
	else if (complaints->text)
		(void)fprintf(complaints->text, "%s: %s\n", file, text);
	if (line > 0)
		(void)log_full(severity == CONFIG_ERROR ? LOG_ERR : LOG_WARNING, NULL,
			       MESSAGE_CONFIG, 0, "%s:%u: %s", file, line, text);
	else
		(void)log_full(severity == CONFIG_ERROR ? LOG_ERR : LOG_WARNING, NULL,
			       MESSAGE_CONFIG, 0, "%s: %s", file, text);
}

static int load(struct daemon *d, struct daemon_config **ret, struct complaints *complaints)
{
	return config_load(d->options.config_dir, VENDOR_DIR, on_complaint, complaints, ret, NULL);
}

int daemon_read_config(struct daemon *d)
{
	struct complaints complaints = {};
	int r = load(d, &d->config, &complaints);

	if (r < 0)
		return log_error_errno(r, "cannot read the configuration in %s: %m",
				       d->options.config_dir);
	log_set_level(d->config->log_level);
	return 0;
}

/* --- what it says is done */

static int add_session(struct daemon *d, const char *name, struct session **ret)
{
	struct session **more = reallocarray(d->sessions, d->n_sessions + 1, sizeof(*more));
	int r;

	if (!more)
		return -ENOMEM;
	d->sessions = more;
	r = session_new(d, name, &more[d->n_sessions]);
	if (r < 0)
		return r;
	*ret = more[d->n_sessions++];
	/* What is configured has been announced already */
	if (!config_find(d->config, name))
		control_session_added(d->control, name);
	return 0;
}

static void configure_session(struct daemon *d, const char *name,
			      const struct session_config *config)
{
	struct session *s = daemon_find_session(d, name);
	int r = 0;

	if (!s)
		r = add_session(d, name, &s);
	if (r >= 0)
		r = session_configure(s, config);
	if (r < 0)
		(void)log_full(LOG_ERR, name, MESSAGE_SESSION_FAILED, r, "cannot start: %m");
}

bool daemon_wants(const struct daemon *d, const char *name)
{
	const struct session_config *config = config_find(d->config, name);

	return config && config->enabled;
}

void daemon_take_up_orphans(struct daemon *d)
{
	struct dirent **entries = NULL;
	int n = scandirat(d->state_fd, ".", &entries, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		char path[300];

		(void)snprintf(path, sizeof(path), "%s/state", name);
		if (name[0] != '.' && !daemon_wants(d, name) && !daemon_find_session(d, name) &&
		    faccessat(d->state_fd, path, F_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) >= 0)
			configure_session(d, name, NULL);
		free(entries[i]);
	}
	free(entries);
}

void daemon_apply_config(struct daemon *d)
{
	for (size_t i = 0; i < d->n_sessions; i++)
		if (!daemon_wants(d, session_name(d->sessions[i])))
			session_stop(d->sessions[i], false);
	for (size_t i = 0; i < d->config->n_sessions; i++)
		if (d->config->sessions[i]->enabled)
			configure_session(d, d->config->sessions[i]->name, d->config->sessions[i]);
	daemon_take_up_orphans(d);
	memory_check(d->config, d->state_fd);
}

/* Sessions that exist because they are configured, and for no other reason */
static void announce_changes(struct daemon *d, const struct daemon_config *before)
{
	const struct daemon_config *now = d->config;

	for (size_t i = 0; i < before->n_sessions; i++) {
		const char *name = before->sessions[i]->name;

		if (!config_find(now, name) && !daemon_find_session(d, name))
			control_session_removed(d->control, name);
	}
	for (size_t i = 0; i < now->n_sessions; i++) {
		const char *name = now->sessions[i]->name;

		if (!config_find(before, name) && !daemon_find_session(d, name))
			control_session_added(d->control, name);
	}
}

static void take_config(struct daemon *d, struct daemon_config *config)
{
	if (strcmp(config->instance_prefix, d->config->instance_prefix) != 0)
		log_warning("InstancePrefix= takes effect at the next start of each session");
	SWAP(d->config, config);
	announce_changes(d, config);
	config_free(config);
	log_set_level(d->config->log_level);
	d->state_mounted = false; /* who reloads may want it elsewhere */
	control_configure(d->control);
	daemon_apply_config(d);
	log_info("configuration reloaded");
}

int daemon_reload(struct daemon *d, char **ret_complaints)
{
	struct daemon_config *config = NULL;
	struct complaints complaints = {};
	uint64_t now = 0;
	size_t size;
	int r;

	if (d->phase != DAEMON_RUNNING)
		return -EBUSY;
	*ret_complaints = NULL;
	complaints.text = open_memstream(ret_complaints, &size);
	if (!complaints.text)
		return -ENOMEM;
	(void)sd_event_now(d->event, CLOCK_MONOTONIC, &now);
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now);
	d->phase = DAEMON_RELOADING;
	r = load(d, &config, &complaints);
	(void)fclose(complaints.text);
	if (r < 0 || complaints.bad) {
		config_free(config);
		(void)log_full(LOG_ERR, NULL, MESSAGE_CONFIG, 0,
			       "the configuration has errors: going on with the old one");
		r = -EINVAL;
	} else {
		take_config(d, config);
	}
	daemon_await_sessions(d);
	return r;
}

void daemon_reload_asked(struct daemon *d)
{
	_cleanup_free_ char *complaints = NULL;

	/* Sessions are on their way: what is read now must not be the last word */
	d->reload_wanted = d->phase == DAEMON_STARTING || d->phase == DAEMON_RELOADING;
	if (d->phase == DAEMON_RUNNING)
		(void)daemon_reload(d, &complaints);
}

int daemon_start_session(struct daemon *d, const char *name, struct fault *why)
{
	const struct session_config *config = config_find(d->config, name);
	struct session *s = daemon_find_session(d, name);

	if (d->phase != DAEMON_RUNNING)
		return fault_set(why, -EBUSY, "flyrecd is %s",
				 d->phase >= DAEMON_STOPPING ? "stopping" : "starting");
	if (!config)
		return fault_set(why, -ENOENT, "no session %s is configured", name);
	if (s && session_state(s) == SESSION_RECORDING)
		return 0;
	configure_session(d, name, config);
	return daemon_find_session(d, name) ? 0 : fault_errno(why, -ENOMEM, "session %s", name);
}

int daemon_refresh_config(struct daemon *d, const char *name, struct fault *why)
{
	_cleanup_(config_freep) struct daemon_config *config = NULL;
	struct complaints complaints = {};

	if (load(d, &config, &complaints) < 0 || complaints.bad)
		return fault_set(why, -EINVAL,
				 "saved, but the configuration has errors; see the log");
	for (size_t i = 0; i < config->n_sessions; i++)
		for (size_t j = 0; j < d->config->n_sessions; j++)
			if (strcmp(config->sessions[i]->name, name) == 0 &&
			    strcmp(d->config->sessions[j]->name, name) == 0) {
				struct session_config *old = d->config->sessions[j];

				d->config->sessions[j] = config->sessions[i];
				config->sessions[i] = old;
				return 0;
			}
	return fault_set(why, -ENOENT, "saved, but session %s is not configured any more", name);
}
