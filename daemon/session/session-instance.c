/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A session's instance: the one that an earlier process has left, as the state file tells, or a new
 * one. Main thread.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/log.h"
#include "basic/strv.h"
#include "daemon/session/session-internal.h"

/* "flyrec.NAME" -> "flyrec_NAME": names of systems have letters, digits and "_" only */
static char *group_name(const char *instance)
{
	char *group = strdup(instance);

	for (char *c = group; c && *c; c++)
		if (!isalnum((unsigned char)*c))
			*c = '_';
	return group;
}

/* The inode of the instance's directory, 0 if there is none */
static uint64_t instance_inode(const struct environment *env, const char *name)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (asprintf(&path, "instances/%s", name) < 0 ||
	    fstatat(env->tracing_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return st.st_ino;
}

/* The instance's name is InstancePrefix=, which may have been another one, and the session's */
static bool is_state_of(const struct state *state, const char *session)
{
	size_t n = strlen(state->instance), m = strlen(session);

	if (state->session)
		return strcmp(state->session, session) == 0;
	return n >= m && strcmp(state->instance + n - m, session) == 0;
}

bool session_is_in_kernel(const struct session *s, const struct state *state)
{
	uint64_t inode = instance_inode(s->env, state->instance);

	return strcmp(state->boot_id, s->env->boot_id_text) == 0 && inode != 0 &&
	       (state->inode == 0 || state->inode == inode);
}

/* What an earlier process noted while its disk was gone, if it is this disk that is there now */
static int read_notes(struct session *s, struct state **ret, struct fault *why)
{
	int r = session_recall_away(s, ret);

	if (r < 0)
		return r;
	s->was_mounted |= (*ret)->mounted;
	if (session_check_place(s, why) >= 0)
		return 0;
	s->left = TAKE_PTR(*ret);
	return why->error;
}

/* The state of an earlier process of this boot, if it left anything in the kernel */
int session_read_leftover(struct session *s, struct state **ret, struct fault *why)
{
	_cleanup_(state_freep) struct state *state = NULL;
	int r = 0;

	/* We may know better than the file, or an earlier process whose disk was gone */
	if (s->left)
		state = TAKE_PTR(s->left);
	else
		r = read_notes(s, &state, why);
	if (r == -ESTALE)
		return r;
	if (!state)
		r = state_read(s->dir_fd, &state);
	if (r == -EBADMSG) {
		(void)log_full(LOG_WARNING, s->name, MESSAGE_RECOVERED, r,
			       "the state file makes no sense, ignoring it");
		return 0;
	}
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return fault_errno(why, r, "cannot read %s/%s/state", s->env->state_dir, s->name);
	if (!is_state_of(state, s->name)) {
		(void)log_full(LOG_WARNING, s->name, MESSAGE_RECOVERED, 0,
			       "the state file is of instance %s, another session's (a copied "
			       "directory?): ignoring it",
			       state->instance);
		return 0;
	}
	if (!session_is_in_kernel(s, state)) {
		if (state->watched && strcmp(state->boot_id, s->env->boot_id_text) == 0)
			triggers_remove_stray(s->name, state->instance);
		return 0; /* of another boot, or somebody has removed it */
	}
	*ret = TAKE_PTR(state);
	return 0;
}

/* What it takes to drain and undo an instance whose configuration is no longer ours */
int session_leftover_config(struct session *s, const struct state *left,
			    struct session_config **ret)
{
	_cleanup_(session_config_freep) struct session_config *c = NULL;
	struct storage_config storage = {
		.format = 6,
		.max_use = STORAGE_DEFAULT,
		.keep_free = STORAGE_DEFAULT,
		.max_file_size = STORAGE_DEFAULT,
		.sync_interval_usec = 30 * USEC_PER_SEC,
		.flush_usec = 5 * USEC_PER_SEC,
	};

	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->storage = s->config ? s->config->storage : storage;
	c->mode = SESSION_RECORD;
	c->name = strdup(s->name);
	c->trace.clock = strdup("mono"); /* the instance knows better; this is for attaching only */
	c->text = strdup("");
	c->trace_text = strdup("");
	if (!c->name || !c->trace.clock || !c->text || !c->trace_text ||
	    strv_copy(left->synthetic, &c->trace.synthetic_events) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(c);
	return 0;
}

/* Is what an earlier process set up what we want now? */
bool session_fits(const struct session *s, const struct state *left)
{
	return s->config && left->inode != 0 && left->flight == session_is_flight(s) &&
	       strcmp(left->trace_text, s->config->trace_text) == 0;
}

int session_attach(struct session *s, struct state *left, struct fault *why)
{
	int r;

	s->salvage = !session_fits(s, left);
	if (s->salvage) {
		struct session_config *c;

		r = session_leftover_config(s, left, &c);
		if (r < 0)
			return fault_errno(why, r, "cannot take up instance %s", left->instance);
		s->pending = s->config;
		s->config = c;
		s->wants |= WANT_STOP;
		(void)log_full(LOG_INFO, s->name, MESSAGE_RECOVERED, 0,
			       "instance %s of an earlier run is %s: draining it to a last segment",
			       left->instance,
			       s->pending ? "set up differently" : "no longer wanted");
	}
	r = instance_attach(left->instance, left->group, &s->config->trace, &s->instance, why);
	if (r < 0)
		return r;
	s->files.adopt = true;
	return 0;
}

int session_instance_names(const struct session *s, char **ret_name, char **ret_group)
{
	char *name = NULL, *group;

	if (asprintf(&name, "%s%s", s->env->instance_prefix, s->name) < 0)
		return -ENOMEM;
	group = group_name(name);
	if (!group) {
		free(name);
		return -ENOMEM;
	}
	*ret_name = name;
	*ret_group = group;
	return 0;
}

static bool made_at_boot(const struct environment *env, const char *name)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -EBADF;
	struct tracedir dir;

	if (asprintf(&path, "instances/%s", name) < 0) {
		path = NULL;
		return false;
	}
	fd = openat(env->tracing_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir.fd = fd;
	return fd >= 0 && last_boot_is_kept(&dir);
}

/* May this instance become ours? */
static int check_name(struct session *s, const char *name, struct fault *why)
{
	bool persistent = s->config->trace.persistent;

	if (instance_inode(s->env, name) == 0) {
		/* Evidence of now is better than none */
		if (persistent)
			(void)log_full(
				LOG_WARNING, s->name, NULL, 0,
				"Persistent=yes, but the kernel has made no instance %s at boot: going on in ordinary memory, and should this kernel die its trace is lost. What the kernel has to be started with is printed by: flyrecctl boot-parameters %s",
				name, s->name);
		return 0;
	}
	if (!made_at_boot(s->env, name))
		return fault_set(
			why, -EEXIST,
			"instance %s exists and is not ours: remove it with rmdir, or set InstancePrefix=",
			name);
	return persistent
		       ? 0
		       : fault_set(
				 why, -EEXIST,
				 "instance %s was made by the kernel at boot: set Persistent=yes, or take it off the kernel command line",
				 name);
}

int session_write_state(struct session *s, struct fault *why)
{
	int r = state_write(s->dir_fd, s->kernel);

	if (r < 0 && session_make_room(s, r))
		r = state_write(s->dir_fd, s->kernel);
	return r < 0 ? fault_errno(why, r, "cannot write %s/%s/state", s->env->state_dir, s->name)
		     : 0;
}

int session_create_instance(struct session *s, struct fault *why)
{
	struct state *k = s->kernel;
	const char *name;
	int r;

	k->flight = session_is_flight(s);
	if (strv_copy(s->config->trace.synthetic_events, &k->synthetic) < 0 ||
	    session_instance_names(s, &k->instance, &k->group) < 0 ||
	    strv_set(&k->session, s->name) < 0 || strv_set(&k->boot_id, s->env->boot_id_text) < 0 ||
	    strv_set(&k->trace_text, s->config->trace_text) < 0)
		return fault_errno(why, -ENOMEM, "cannot make the instance");
	name = k->instance;
	r = check_name(s, name, why);
	if (r < 0)
		return r;
	/* First the note, then the deed: a kill in between leaves nothing unknown behind */
	r = session_write_state(s, why);
	if (r < 0)
		return r;
	r = instance_create(name, k->group, &s->config->trace, &s->instance, why);
	if (r < 0) {
		(void)state_remove(s->dir_fd);
		return r;
	}
	k->inode = instance_inode(s->env, name);
	return session_write_state(s, why);
}

int session_destroy_left(struct session *s, const struct state *left, struct fault *why)
{
	struct instance *instance = NULL;
	_cleanup_(session_config_freep) struct session_config *config = NULL;
	int r = session_leftover_config(s, left, &config);

	if (left->watched)
		triggers_remove_stray(s->name, left->instance);
	if (r < 0)
		return fault_errno(why, r, "cannot take up instance %s", left->instance);
	r = instance_attach(left->instance, left->group, &config->trace, &instance, why);
	return r < 0 ? r : instance_destroy(instance, why);
}
