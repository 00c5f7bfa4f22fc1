/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a session has of its own in the kernel and in STATE/NAME: the instance, new or left by an
 * earlier process, and what the next process must know of it: the state file, and notes in memory
 * that lasts as long as the machine runs, RUNTIME/KIND/NAME/state. KIND "away": what is left in the
 * kernel of a session whose disk is gone. "synced": how much of current.dat the disk has confirmed;
 * a disk that forgets what it has taken takes the file back to an earlier state, and the file
 * cannot tell. The only writer of struct session_claim. Main thread, unless it says otherwise.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "daemon/plumbing/state-root.h"
#include "daemon/plumbing/timer.h"
#include "daemon/session/session-internal.h"
#include "engine/boot-note.h"
#include "recorder/dynamic.h"
#include "writer/store.h"

/* --- the place */

/* The path leads elsewhere by now */
static bool is_elsewhere(const struct session *s)
{
	_cleanup_free_ char *path = strf("%s/%s", s->env->state_dir, s->name);
	struct stat ours, now;

	return path && s->claim.dir_fd >= 0 && fstat(s->claim.dir_fd, &ours) >= 0 &&
	       (stat(path, &now) < 0 || now.st_dev != ours.st_dev || now.st_ino != ours.st_ino);
}

void session_forget_place(struct session *s)
{
	/* While its disk is away, a reload for another reason must not send it below the mount
	 * point */
	if (!s->disk.away)
		s->claim.was_mounted = false; /* whoever asks for it may want it elsewhere */
}

/* dir_fd is where it was, and not what lies below a mount that is gone */
static int check_place(struct session *s, struct fault *why)
{
	_cleanup_free_ char *path = strf("%s/%s", s->env->state_dir, s->name);
	int r = state_root_check_mount(s->claim.dir_fd, path ? path : s->name,
				       &s->claim.was_mounted, why);

	if (r == -ESTALE) {
		close_p(&s->claim.dir_fd);
		s->claim.dir_fd = -EBADF;
	}
	return r;
}

int session_open_dir(struct session *s, const char *name, int *ret, struct fault *why)
{
	int r = 0;

	if (s->claim.dir_fd < 0) {
		r = state_root_find(s->env->root, why);
		if (r < 0)
			return r;
		r = store_open_dir(state_root_fd(s->env->root), s->name, &s->claim.dir_fd, why);
		if (r >= 0)
			r = check_place(s, why);
	}
	if (r >= 0 && name)
		r = store_open_dir(s->claim.dir_fd, name, ret, why);
	if (r < 0 && r != -ESTALE) {
		struct fault inner = *why;

		(void)fault_set(why, r, "%s/%s: %s", s->env->state_dir, s->name, inner.text);
	}
	return r;
}

/* --- the state file */

/* A program may be another one when the next process makes a file of what is probed now */
static int note_build_ids(struct session *s)
{
	if (!s->claim.instance)
		return 0;
	strv_free(TAKE_PTR(s->claim.state->build_ids));
	return strv_copy(instance_build_ids(s->claim.instance), &s->claim.state->build_ids);
}

/* Where there is no room for it retention makes some, if it can */
static int write_state(struct session *s, struct fault *why)
{
	int r = note_build_ids(s);

	if (r >= 0)
		r = state_write(s->claim.dir_fd, s->claim.state);
	if (r < 0 && session_make_room(s, r))
		r = state_write(s->claim.dir_fd, s->claim.state);
	return r < 0 ? fault_errno(why, r, "cannot write %s/%s/state", s->env->state_dir, s->name)
		     : 0;
}

int session_note_base(struct session *s, bool boundary)
{
	unsigned n_cpus = instance_n_cpus(s->claim.instance);
	struct state *k = s->claim.state;

	free(k->base);
	k->n_cpus = 0;
	k->base = calloc(n_cpus, sizeof(*k->base));
	if (!k->base)
		return -ENOMEM;
	k->n_cpus = n_cpus;
	for (unsigned cpu = 0; cpu < n_cpus; cpu++)
		k->base[cpu] = ledger_base(&s->counts.ledger, cpu, boundary);
	return 0;
}

int session_note_start(struct session *s, struct fault *why)
{
	struct state *k = s->claim.state;
	int r = session_begin_counting(s);

	if (r < 0)
		return fault_errno(why, r, "cannot count what session %s records", s->name);
	k->handed_over = false;
	if (s->claim.adopted &&
	    (s->mode->salvage || k->n_cpus == instance_n_cpus(s->claim.instance))) {
		session_count_from(s, k->base, k->n_cpus);
		if (!s->mode->drains)
			return write_state(s, why);
		(void)state_write(s->claim.dir_fd, k); /* draining goes on without room, too */
		return 0;
	}
	r = session_note_base(s, false);
	return r < 0 ? fault_errno(why, r, "cannot note the counters of session %s", s->name)
		     : write_state(s, why);
}

void session_note_in_flight(struct session *s, unsigned cpu, uint64_t bytes)
{
	if (cpu < s->claim.state->n_cpus)
		s->claim.state->base[cpu].in_flight += bytes;
}

void session_note_handed_over(struct session *s, bool in_order)
{
	s->claim.state->handed_over = in_order;
	if (state_write(s->claim.dir_fd, s->claim.state) < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, 0,
			       "cannot write the state file, ignoring");
}

void session_note_trace(struct session *s, const char *trace_text)
{
	(void)strv_set(&s->claim.state->trace_text, trace_text);
}

/* Between steps only: jobs write the state file, too, and use the segment, which is short of room
 * maybe */
int session_note_watched(struct session *s, char *const *events, struct fault *why)
{
	char **copy = NULL;
	int r = strv_copy(events, &copy);

	if (r < 0)
		return fault_errno(why, r, "cannot note the events of session %s", s->name);
	strv_free(s->claim.state->watched);
	s->claim.state->watched = copy;
	return write_state(s, why);
}

void session_prepare_notes(struct session *s)
{
	free(TAKE_PTR(s->claim.notes));
	(void)state_format(s->claim.state, &s->claim.notes);
}

int session_write_notes(void *userdata, struct fault *why)
{
	struct session *s = userdata;
	_cleanup_free_ char *text = TAKE_PTR(s->claim.notes);
	int r = text ? state_write_text(s->claim.dir_fd, text) : -ENOMEM;

	if (r < 0)
		return fault_errno(why, r, "cannot write the state file");
	if (!session_is_kept(s))
		return 0;
	return boot_note_write(s->claim.dir_fd, &s->rec.files.plan.params, s->env->boot_id_text,
			       why);
}

int session_pause(struct session *s, bool pause, struct fault *why)
{
	int r;

	if (!session_records(s))
		return fault_set(why, -ENOTCONN, "session %s does not record, it is %s", s->name,
				 session_state_name(s->state));
	if (s->claim.paused == pause)
		return 0;
	r = instance_trace(s->claim.instance, !pause, why);
	if (r < 0)
		return r;
	s->claim.paused = s->claim.state->paused = pause;
	triggers_tracing_changed(s->triggers);
	session_want(s, WANT_NOTE); /* for the next process */
	(void)log_full(LOG_NOTICE, s->name, NULL, 0, pause ? "paused" : "resumed");
	s->events->changed(s->events->userdata, s);
	return 0;
}

bool session_paused(const struct session *s)
{
	return s->claim.paused && s->state == SESSION_RECORDING;
}

/* --- notes in RUNTIME */

static int open_notes(const struct session *s, const char *kind, bool make)
{
	const char *parts[] = {s->env->runtime_dir, kind, s->name};
	_cleanup_close_ int dir = -EBADF;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		int at = i == 0 ? AT_FDCWD : dir, fd;

		if (make && mkdirat(at, parts[i], 0755) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(at, parts[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		close_p(&dir);
		dir = fd;
	}
	return TAKE_FD(dir);
}

static void forget(const struct session *s, const char *kind)
{
	_cleanup_close_ int dir = open_notes(s, kind, false);

	if (dir >= 0)
		(void)state_remove(dir);
}

static void note(struct session *s, const char *kind, const struct state *state)
{
	_cleanup_close_ int dir = open_notes(s, kind, true);
	int r = dir < 0 ? dir : state_write(dir, state);

	if (r < 0 && !s->claim.note_failed)
		(void)log_full(LOG_WARNING, s->name, NULL, r, "cannot write %s/%s/%s: %m, ignoring",
			       s->env->runtime_dir, kind, s->name);
	s->claim.note_failed = r < 0;
}

static int recall(const struct session *s, const char *kind, struct state **ret)
{
	_cleanup_close_ int dir = open_notes(s, kind, false);

	return dir < 0 ? dir : state_read(dir, ret);
}

static void forget_sizes(struct state *k)
{
	free(TAKE_PTR(k->published));
	k->n_published = 0;
}

/* @sizes: NULL: as far as we know */
static void add_sizes(struct session *s, const uint64_t *sizes)
{
	struct state *k = s->claim.state;

	forget_sizes(k);
	k->published = recording_file(s->rec.recording)
			       ? calloc(drain_n_cpus(s->rec.drain), sizeof(*k->published))
			       : NULL;
	if (!k->published)
		return;
	k->n_published = drain_n_cpus(s->rec.drain);
	k->file_id = trace_file_trace_id(recording_file(s->rec.recording));
	/* What was written and could not be told any more counts, too */
	for (unsigned cpu = 0; cpu < k->n_published; cpu++)
		k->published[cpu] = sizes ? sizes[cpu] : drain_written(s->rec.drain, cpu);
}

void session_note_synced(struct session *s)
{
	add_sizes(s, trace_file_live_block(recording_file(s->rec.recording))->synced);
	note(s, "synced", s->claim.state);
	forget_sizes(s->claim.state);
}

void session_forget_synced(const struct session *s)
{
	forget(s, "synced");
}

void session_forget_file(struct session *s, uint64_t file_id)
{
	_cleanup_(state_freep) struct state *synced = NULL;

	if (file_id == 0)
		return;
	if (s->claim.state && s->claim.state->file_id == file_id)
		forget_sizes(s->claim.state);
	if (recall(s, "synced", &synced) >= 0 && synced->file_id == file_id)
		session_forget_synced(s);
}

/* Of another file nothing is there: before one gets another name its note is removed */
static uint64_t missing(const struct session *s, const struct state *noted, unsigned cpu)
{
	struct trace_file_region region = {};

	if (noted->file_id == trace_file_trace_id(recording_file(s->rec.recording)))
		trace_file_region(recording_file(s->rec.recording), cpu, &region);
	return noted->published[cpu] - MIN(noted->published[cpu], region.size);
}

void session_count_missing(struct session *s)
{
	_cleanup_(state_freep) struct state *synced = NULL;
	const struct state *noted = s->claim.state;
	uint64_t bytes = 0;

	if (noted->n_published == 0 && recall(s, "synced", &synced) >= 0)
		noted = synced;
	for (unsigned cpu = 0; cpu < MIN(noted->n_published, drain_n_cpus(s->rec.drain)); cpu++) {
		uint64_t n = missing(s, noted, cpu);

		drain_add_dropped(s->rec.drain, cpu, n);
		bytes += n;
	}
	if (bytes > 0)
		(void)log_full(LOG_ERR, s->name, MESSAGE_EVENTS_LOST, 0,
			       "%" PRIu64
			       " bytes of record/current.dat were synced but are missing now",
			       bytes);
	forget_sizes(s->claim.state);
	s->claim.state->mounted = false;
	session_forget_synced(s); /* once is enough */
}

void session_note_away(struct session *s)
{
	add_sizes(s, NULL);
	s->claim.state->mounted = s->claim.was_mounted;
	note(s, "away", s->claim.state);
}

void session_forget_away(const struct session *s)
{
	forget(s, "away");
}

/* --- the instance */

int session_instance_names(const struct session *s, char **ret_name, char **ret_group)
{
	char *name = strf("%s%s", s->env->instance_prefix, s->name);
	char *group = name ? dynamic_group(name) : NULL;

	if (!group) {
		free(name);
		return -ENOMEM;
	}
	*ret_name = name;
	*ret_group = group;
	return 0;
}

/* The inode of the instance's directory, 0 if there is none */
static uint64_t instance_inode(const struct environment *env, const char *name)
{
	_cleanup_free_ char *path = strf("instances/%s", name);
	struct stat st;

	if (!path || fstatat(env->tracing_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return st.st_ino;
}

/* Is the instance of this state still that one? */
static bool is_in_kernel(const struct session *s, const struct state *state)
{
	uint64_t inode = instance_inode(s->env, state->instance);

	return strcmp(state->boot_id, s->env->boot_id_text) == 0 && inode != 0 &&
	       (state->inode == 0 || state->inode == inode);
}

/* Of an earlier process; of what is no longer there it is removed */
static int recall_away(const struct session *s, struct state **ret)
{
	int r = recall(s, "away", ret);

	if (r < 0 || is_in_kernel(s, *ret))
		return r;
	state_free(TAKE_PTR(*ret));
	session_forget_away(s);
	return -ENOENT;
}

/* The instance's name is InstancePrefix=, which may have been another one, and the session's */
static bool is_state_of(const struct state *state, const char *session)
{
	size_t n = strlen(state->instance), m = strlen(session);

	if (state->session)
		return strcmp(state->session, session) == 0;
	return n >= m && strcmp(state->instance + n - m, session) == 0;
}

/* What an earlier process noted while its disk was gone, if it is this disk that is there now */
static int read_notes(struct session *s, struct state **ret, struct fault *why)
{
	int r = recall_away(s, ret);

	if (r < 0)
		return r;
	s->claim.was_mounted |= (*ret)->mounted;
	if (check_place(s, why) >= 0)
		return 0;
	s->claim.left = TAKE_PTR(*ret);
	return why->error;
}

/* The state of an earlier process of this boot, if it left anything in the kernel */
static int read_leftover(struct session *s, struct state **ret, struct fault *why)
{
	_cleanup_(state_freep) struct state *state = NULL;
	int r = 0;

	/* We may know better than the file, or an earlier process whose disk was gone */
	if (s->claim.left)
		state = TAKE_PTR(s->claim.left);
	else
		r = read_notes(s, &state, why);
	if (r == -ESTALE)
		return r;
	if (!state)
		r = state_read(s->claim.dir_fd, &state);
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
	if (!is_in_kernel(s, state)) {
		if (state->watched && strcmp(state->boot_id, s->env->boot_id_text) == 0)
			triggers_remove_stray(s->name, state->instance);
		return 0; /* of another boot, or somebody has removed it */
	}
	*ret = TAKE_PTR(state);
	return 0;
}

/* What it takes to drain and undo an instance whose configuration is no longer ours */
static int leftover_config(const struct session *s, const struct state *left,
			   struct session_config **ret)
{
	_cleanup_(session_config_freep) struct session_config *c = NULL;
	struct storage_config storage = {
		.max_use = STORAGE_DEFAULT,
		.keep_free = STORAGE_DEFAULT,
		.max_file_size = STORAGE_DEFAULT,
		.sync_interval_usec = 30 * USEC_PER_SEC,
		.flush_usec = 5 * USEC_PER_SEC,
	};

	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->storage = s->spec.config ? s->spec.config->storage : storage;
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
static bool fits(const struct session *s, const struct state *left)
{
	return s->spec.config && left->inode != 0 && left->flight == !s->mode->drains &&
	       strcmp(left->trace_text, s->spec.config->trace_text) == 0;
}

int session_attach(struct session *s, struct state *left, struct fault *why)
{
	struct session_config *c;
	int r = 0;

	s->claim.state = left;
	if (!fits(s, left)) {
		r = leftover_config(s, left, &c);
		if (r < 0)
			return fault_errno(why, r, "cannot take up instance %s", left->instance);
		session_set_mode(s, &mode_salvage);
		session_set_aside(s, c);
		session_want(s, WANT_STOP);
		(void)log_full(LOG_INFO, s->name, MESSAGE_RECOVERED, 0,
			       "instance %s of an earlier run is %s: draining it to a last segment",
			       left->instance,
			       s->spec.pending ? "set up differently" : "no longer wanted");
	}
	r = instance_attach(left->instance, left->group, &s->spec.config->trace, &s->claim.instance,
			    why);
	s->claim.adopted = r >= 0;
	if (r >= 0 && instance_set_build_ids(s->claim.instance, left->build_ids) < 0)
		r = fault_errno(why, -ENOMEM, "cannot take up instance %s", left->instance);
	return r < 0 ? r : 0;
}

static bool made_at_boot(const struct environment *env, const char *name)
{
	_cleanup_free_ char *path = strf("instances/%s", name);
	_cleanup_close_ int fd = -EBADF;
	struct tracedir dir;

	if (path)
		fd = io_open_at(env->tracing_fd, path, O_DIRECTORY | O_NOFOLLOW);
	dir.fd = fd;
	return fd >= 0 && last_boot_is_kept(&dir);
}

/* May this instance become ours? */
static int check_name(struct session *s, const char *name, struct fault *why)
{
	bool persistent = s->spec.config->trace.persistent;

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

static void report_subbuf_size(const struct session *s)
{
	const struct trace_config *trace = &s->spec.config->trace;
	unsigned size = instance_subbuf_size(s->claim.instance);

	if (trace->subbuf_size == SUBBUF_SIZE_AUTO && trace->auto_subbuf_size > 0 &&
	    trace->auto_subbuf_size != size)
		(void)log_full(LOG_INFO, s->name, NULL, 0,
			       "the kernel did not allow sub-buffers of %" PRIu64
			       " KiB, going on with %u KiB",
			       trace->auto_subbuf_size / KIB, size / 1024);
}

int session_create_instance(struct session *s, struct fault *why)
{
	struct state *k = calloc(1, sizeof(*k));
	const char *name;
	int r;

	if (!k)
		return fault_errno(why, -ENOMEM, "cannot start");
	s->claim.state = k;
	k->flight = !s->mode->drains;
	if (strv_copy(s->spec.config->trace.synthetic_events, &k->synthetic) < 0 ||
	    session_instance_names(s, &k->instance, &k->group) < 0 ||
	    strv_set(&k->session, s->name) < 0 || strv_set(&k->boot_id, s->env->boot_id_text) < 0 ||
	    strv_set(&k->trace_text, s->spec.config->trace_text) < 0)
		return fault_errno(why, -ENOMEM, "cannot make the instance");
	name = k->instance;
	r = check_name(s, name, why);
	if (r < 0)
		return r;
	/* First the note, then the deed: a kill in between leaves nothing unknown behind */
	r = write_state(s, why);
	if (r < 0)
		return r;
	session_choose_subbuf_size(s);
	r = instance_create(name, k->group, &s->spec.config->trace, &s->claim.instance, why);
	if (r < 0) {
		(void)state_remove(s->claim.dir_fd);
		return r;
	}
	report_subbuf_size(s);
	k->inode = instance_inode(s->env, name);
	return write_state(s, why);
}

int session_trace(struct session *s, struct fault *why)
{
	s->claim.paused = s->claim.state->paused;
	if (s->claim.paused)
		(void)log_full(LOG_NOTICE, s->name, NULL, 0, "still paused");
	return instance_trace(s->claim.instance, !s->claim.paused, why);
}

void session_refresh_units(struct session *s)
{
	struct fault missing = {};

	if (s->mode->salvage)
		return;
	(void)instance_refresh_pids(s->claim.instance, &missing);
	if (strcmp(missing.text, s->claim.missing.text) == 0)
		return;
	(void)log_full(missing.text[0] ? LOG_WARNING : LOG_NOTICE, s->name, NULL, missing.error,
		       "%s", missing.text[0] ? missing.text : "processes of each Unit= are traced");
	s->claim.missing = missing;
	if (s->state == SESSION_RECORDING)
		s->events->changed(s->events->userdata, s);
}

const char *session_instance_name(const struct session *s)
{
	return s->claim.instance ? instance_name(s->claim.instance) : "";
}

char *session_marker(const struct session *s)
{
	return s->claim.instance ? instance_marker(s->claim.instance) : strdup("");
}

unsigned session_subbuf_size(const struct session *s)
{
	return s->claim.instance ? instance_subbuf_size(s->claim.instance) : 0;
}

/* --- what an earlier process left, or we leave */

static int destroy_left(const struct session *s, const struct state *left, struct fault *why)
{
	struct instance *instance = NULL;
	_cleanup_(session_config_freep) struct session_config *config = NULL;
	int r = leftover_config(s, left, &config);

	if (left->watched)
		triggers_remove_stray(s->name, left->instance);
	if (r < 0)
		return fault_errno(why, r, "cannot take up instance %s", left->instance);
	r = instance_attach(left->instance, left->group, &config->trace, &instance, why);
	return r < 0 ? r : instance_destroy(instance, why);
}

/* What an earlier process traced in flight mode, and nobody wants as it is: no loss, it was only
 * for snapshots */
static int discard_flight(struct session *s, const struct state *left, struct fault *why)
{
	int r;

	(void)log_full(LOG_INFO, s->name, MESSAGE_RECOVERED, 0,
		       "instance %s of an earlier run is %s: removing it", left->instance,
		       s->spec.config ? "set up differently" : "no longer wanted");
	r = destroy_left(s, left, why);
	if (r >= 0)
		r = state_remove(s->claim.dir_fd);
	if (r >= 0)
		r = boot_note_remove(s->claim.dir_fd);
	return r;
}

int session_find_left(struct session *s, struct state **ret, struct fault *why)
{
	_cleanup_(state_freep) struct state *left = NULL;
	int r = session_open_dir(s, NULL, NULL, why);

	if (r >= 0)
		r = read_leftover(s, &left, why);
	if (r >= 0 && left && left->flight && !fits(s, left)) {
		r = discard_flight(s, left, why);
		state_free(TAKE_PTR(left));
	}
	if (r >= 0)
		*ret = TAKE_PTR(left);
	return r;
}

/* Nobody shall find it any more: undo it, and say what is lost */
static void discard_left(struct session *s)
{
	_cleanup_(state_freep) struct state *left = TAKE_PTR(s->claim.left);
	struct fault why;

	if (!left && recall_away(s, &left) < 0)
		return;
	fdstore_drop_session(s->env->fdstore, s->name);
	fdstore_flush(s->env->fdstore);
	(void)log_full(LOG_ERR, s->name, MESSAGE_EVENTS_LOST, 0,
		       "the disk has not come back; data left in the ring buffer was discarded");
	if (destroy_left(s, left, &why) < 0)
		(void)log_full(LOG_ERR, s->name, NULL, why.error, "%s", why.text);
	session_forget_away(s);
}

void session_leave_claim(struct session *s)
{
	state_free(s->claim.left);
	s->claim.left = TAKE_PTR(s->claim.state);
}

void session_drop_claim(struct session *s, bool keep)
{
	struct session_claim *c = &s->claim;
	struct fault why = {};

	if (keep) {
		instance_free(c->instance);
	} else if (c->instance) {
		if (instance_destroy(c->instance, &why) < 0)
			(void)log_full(LOG_ERR, s->name, NULL, why.error, "%s", why.text);
		else if (state_remove(c->dir_fd) < 0)
			(void)log_full(LOG_WARNING, s->name, NULL, -errno,
				       "cannot remove the state file: %m");
		else
			(void)boot_note_remove(c->dir_fd);
		session_forget_synced(s);
	}
	state_free(c->state);
	free(c->notes);
	close_p(&c->dir_fd);
	*c = (struct session_claim){
		.dir_fd = -EBADF,
		.left = c->left,
		.was_mounted = c->was_mounted,
		.note_failed = c->note_failed,
	};
}

/* --- the disk: trouble with it is told once, and when it lasts the disk counts as gone: shut down
 * after an error, read-only, unmounted, or not mounted yet. Nothing there can be repaired from
 * here, and a file system that we hold open can neither be unmounted nor mounted afresh. So we let
 * go of it; the instance goes on tracing, what was in hand stays in the pipes; and the session is
 * started again and again until that works. */

bool session_disk_full(const struct session *s)
{
	return disk_watch_is_full(drain_trouble(s->rec.drain));
}

/* CPU by CPU, and try by try, one disk gives different errors: each kind is told once */
static unsigned trouble_kind(int trouble)
{
	if (disk_watch_is_full(trouble))
		return 1U << 0;
	return trouble == -ETIMEDOUT ? 1U << 1 : 1U << 2;
}

static void tell_trouble(struct session *s, int trouble)
{
	unsigned kind = trouble < 0 ? trouble_kind(trouble) : 0;
	int level = trouble == 0 ? LOG_NOTICE : s->disk.told & kind ? LOG_DEBUG : LOG_ERR;
	struct fault failure = {};

	s->disk.told = trouble < 0 ? s->disk.told | kind : 0;
	if (trouble < 0)
		(void)fault_set(
			&failure, trouble,
			"cannot write to %s/%s/record/current.dat: %s; the ring buffer keeps the newest events, trying again",
			s->env->state_dir, s->name,
			trouble == -ETIMEDOUT ? "the disk does not answer" : strerror(-trouble));
	session_set_failure(s, &failure);
	(void)log_full(level, s->name, MESSAGE_DISK_TROUBLE, trouble, "%s",
		       trouble < 0 ? failure.text : "writing again");
	s->events->changed(s->events->userdata, s);
}

void session_report_trouble(struct session *s)
{
	int trouble = disk_watch_look(&s->disk.watch, drain_trouble(s->rec.drain),
				      drain_flushed(s->rec.drain), drain_total_bytes(s->rec.drain),
				      now_usec(CLOCK_MONOTONIC));

	if (trouble == s->disk.trouble)
		return;
	tell_trouble(s, trouble);
	s->disk.trouble = trouble;
	/* Room may be made by retention, which is part of a sync */
	if (session_disk_full(s))
		session_want(s, WANT_SYNC);
}

void session_watch_disk(struct session *s)
{
	s->disk.trouble = 0;
	s->disk.told = 0;
	disk_watch_begin(&s->disk.watch, now_usec(CLOCK_MONOTONIC));
}

void session_disk_is_back(struct session *s)
{
	if (s->disk.away)
		(void)log_full(LOG_NOTICE, s->name, MESSAGE_DISK_TROUBLE, 0, "writing again");
	s->disk.away = false;
}

/* --- when it is gone */

bool session_is_error_of(int error, const int *errors, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (error == -errors[i])
			return true;
	return false;
}

bool session_disk_may_return(int error)
{
	static const int errors[] = {EIO,    EROFS,  ENOSPC,	EDQUOT,
				     ESTALE, ENODEV, ESHUTDOWN, EUCLEAN};

	return session_is_error_of(error, errors, ARRAY_SIZE(errors));
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct session *s = userdata;

	session_want(s, WANT_START);
	return 0;
}

void session_try_again(struct session *s, uint64_t usec)
{
	int r = timer_arm(s->env->event, &s->disk.again_source, usec, on_again, s);

	s->disk.away = true;
	if (r < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, r, "cannot try again later: %m");
}

bool session_failed_for_disk(struct session *s, int error)
{
	if (!session_disk_may_return(error) || session_ends(s))
		return false;
	if (s->claim.adopted && s->claim.state)
		session_leave_claim(s);
	state_root_leave(s->env->root);
	session_try_again(s, SESSION_AGAIN_USEC);
	return true;
}

void session_end_away(struct session *s, bool hand_over)
{
	if (!s->disk.away)
		return;
	s->disk.away = false;
	recording_forget_errors(s->rec.recording);
	s->disk.again_source = sd_event_source_disable_unref(s->disk.again_source);
	s->events->settled(s->events->userdata); /* it may be forgotten now */
	if (!hand_over)
		discard_left(s);
}

bool session_minds_mounts(const struct session *s)
{
	return s->disk.away || (s->state == SESSION_RECORDING && s->mode->drains);
}

void session_mounts_changed(struct session *s)
{
	if (s->disk.away && s->state == SESSION_FAILED) {
		session_try_again(s, 0);
	} else if (s->state == SESSION_RECORDING && is_elsewhere(s)) {
		session_want(s, WANT_LEAVE);
	}
}

bool session_waits_for_disk(const struct session *s)
{
	return s->disk.away;
}
