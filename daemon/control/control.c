/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "basic/log.h"
#include "basic/owner.h"
#include "basic/strv.h"
#include "daemon/control/control-internal.h"
#include "daemon/plumbing/guard.h"
#include "daemon/plumbing/timer.h"

#define ACCEPT_MAX 16  /* connections at once, of those that are let in */
#define REFUSE_MAX 256 /* of the others, which cost little */
/*
 * As in flyrecd.socket. Whoever comes waits for all in the queue before him, so it is short:
 * clients wait in line for a place in it (connect(2)), or try again.
 */
#define BACKLOG	    256
#define SEND_BUFFER (256 * 1024) /* bytes in the kernel for a peer that does not read */
#define PAUSE_USEC  (USEC_PER_SEC / 2)
#define FILES_MAX   16384

/* --- peers */

static void on_cut(void *userdata, int error)
{
	struct peer *p = userdata;

	log_debug("control: process %d sends %s, hanging up", p->who.pid,
		  error == -EMSGSIZE ? "too long a message"
		  : error == -EPERM  ? "descriptors"
				     : "no D-Bus");
	peer_end(p);
}

static bool is_idle(void *userdata)
{
	struct peer *p = userdata;
	uint64_t unread = 0, unanswered = 0;

	if (p->end_source || sd_bus_get_n_queued_write(p->bus, &unread) < 0 ||
	    sd_bus_get_n_queued_read(p->bus, &unanswered) < 0 || unread > 0 || unanswered > 0)
		return false;
	if (p->hang_up)
		peer_end(p);
	else
		control_start_works(p->control);
	return !p->hang_up;
}

static int on_patience_over(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct peer *p = userdata;

	p->patience_source = sd_event_source_disable_unref(p->patience_source);
	if (relay_greeted(p->relay) && !control_is_stranger(p->control, &p->who))
		return 0;
	log_debug("control: process %d says nothing that it may say, hanging up", p->who.pid);
	peer_end(p);
	return 0;
}

/* Is there a place for him? Return: 0 or negative errno. */
static int admit(const struct control *c, const struct access_peer *who)
{
	const bool admin = access_allowed(who, &c->groups, ACCESS_CHANGE);
	const bool stranger = control_is_stranger(c, who);
	unsigned own = 0, strangers = 0;

	if (who->uid != 0 && guard_count(c->env->guard, &who->uid) > 0)
		return -EPERM; /* he passed descriptors, and those are not closed yet */
	for (const struct peer *p = c->peers; p; p = p->next) {
		own += !p->system && p->who.uid == who->uid;
		strangers += !p->system && control_is_stranger(c, &p->who);
	}
	if (c->n_peers >= CONTROL_PEERS_MAX - (admin ? 0 : CONTROL_PEERS_RESERVED) ||
	    (who->uid != 0 && own >= CONTROL_PEERS_PER_UID) ||
	    (stranger && strangers >= CONTROL_STRANGERS_MAX))
		return -EUSERS;
	return 0;
}

static int add_objects(struct control *c, sd_bus *bus)
{
	int r = sd_bus_add_object_vtable(bus, NULL, CONTROL_PATH, CONTROL_MANAGER,
					 control_manager_vtable, c);

	if (r >= 0)
		r = sd_bus_add_fallback_vtable(bus, NULL, CONTROL_SESSION_PATH, CONTROL_SESSION,
					       control_session_vtable, control_find_session, c);
	if (r >= 0)
		r = sd_bus_add_node_enumerator(bus, NULL, CONTROL_SESSION_PATH,
					       control_list_sessions, c);
	if (r >= 0)
		r = sd_bus_add_object_manager(bus, NULL, CONTROL_PATH);
	return r;
}

/* What hundreds of others ask for takes its time: root does not wait for that */
static int priority_of(const struct peer *p)
{
	return p->who.uid == 0 ? PRIORITY_ROOT : PRIORITY_CONTROL;
}

/* @in_fd, @out_fd: the bus' from its start on */
static int start_bus(struct peer *p, int in_fd, int out_fd)
{
	const int size = SEND_BUFFER;
	struct control *c = p->control;
	int r;

	r = sd_bus_set_fd(p->bus, in_fd, out_fd);
	if (r >= 0)
		r = sd_bus_set_server(p->bus, 1, c->id);
	/* Who it is the kernel has told: what it says itself does not matter */
	if (r >= 0)
		r = sd_bus_set_anonymous(p->bus, 1);
	if (r >= 0)
		r = sd_bus_set_trusted(p->bus, 1); /* control_bus_filter() looks at each call */
	if (r >= 0)
		r = sd_bus_negotiate_fds(p->bus, 1);
	if (r >= 0)
		r = sd_bus_add_filter(p->bus, NULL, control_bus_filter, p);
	if (r >= 0)
		r = add_objects(c, p->bus);
	if (r >= 0)
		r = sd_bus_start(p->bus);
	if (r >= 0)
		r = sd_bus_attach_event(p->bus, c->env->event, priority_of(p));
	(void)setsockopt(out_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	return r;
}

/* @fd: the peer's; sd-bus gets a duplicate, which it closes when it likes */
static int serve(struct peer *p, int fd)
{
	static const struct relay_owner owner = {.on_cut = on_cut, .is_idle = is_idle};
	struct control *c = p->control;
	int in_fd = -EBADF, out_fd, r;

	r = relay_new(c->env->event, priority_of(p), fd, &owner, p, &p->relay, &in_fd);
	if (r < 0)
		return r;
	out_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	r = out_fd < 0 ? -errno : sd_bus_new(&p->bus);
	if (r < 0) {
		close_p(&in_fd);
		close_p(&out_fd);
		return r;
	}
	r = start_bus(p, in_fd, out_fd);
	if (r >= 0)
		r = timer_arm(c->env->event, &p->patience_source, CONTROL_PATIENCE_USEC,
			      on_patience_over, p);
	return r;
}

/* Who connects and closes, again and again, is not to cost more than that */
static bool has_gone(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int unread = 0;

	return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP) && ioctl(fd, FIONREAD, &unread) >= 0 &&
	       unread == 0;
}

int control_add_peer(struct control *c, int fd)
{
	const bool refuses = guard_refuses(fd);
	struct access_peer who = {.uid = (uid_t)-1};
	struct peer *p = NULL;
	int r;

	guard_refuse(fd);
	r = access_read_peer(fd, &who);
	if (r >= 0 && has_gone(fd))
		r = -ECONNRESET;
	if (r >= 0)
		r = admit(c, &who);
	if (r >= 0 && !(p = peer_new(c)))
		r = -ENOMEM;
	if (r < 0) {
		guard_close(c->env->guard, fd, refuses, who.uid);
		return r;
	}
	p->who = who;
	p->fd = fd;
	p->refuses = refuses;
	r = serve(p, fd);
	if (r < 0)
		peer_free(p);
	return r;
}

/* --- listening */

static int on_pause_over(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct control *c = userdata;

	(void)sd_event_source_set_enabled(c->listen_source, SD_EVENT_ON);
	return 0;
}

/* Out of descriptors: the connection stays readable, so look again later, not at once */
static void pause_listening(struct control *c)
{
	(void)sd_event_source_set_enabled(c->listen_source, SD_EVENT_OFF);
	if (timer_arm(c->env->event, &c->pause_source, PAUSE_USEC, on_pause_over, c) < 0)
		(void)sd_event_source_set_enabled(c->listen_source, SD_EVENT_ON);
}

static int on_connection(sd_event_source *source, int listen_fd, uint32_t revents, void *userdata)
{
	struct control *c = userdata;

	for (unsigned in = 0, refused = 0; in < ACCEPT_MAX && refused < REFUSE_MAX;) {
		int fd, r;

		if (guard_count(c->env->guard, NULL) >= GUARD_LEFT_MAX) {
			pause_listening(c); /* the next one might be like those */
			return 0;
		}
		fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			    errno == ENOBUFS)
				pause_listening(c);
			return 0;
		}
		r = control_add_peer(c, fd);
		in += r >= 0;
		refused += r < 0;
		if (r < 0)
			log_debug("control: a connection was refused: %s", strerror(-r));
	}
	return 0;
}

/* The socket that the service manager listens on for us */
static int passed_socket(void)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(false, &names), found = -ENOENT;

	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if ((strcmp(names[i], CONTROL_SOCKET) == 0 ||
		     strcmp(names[i], "flyrecd.socket") == 0) &&
		    found < 0 && sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) > 0) {
			(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
			(void)fcntl(fd, F_SETFL, O_NONBLOCK);
			guard_refuse(fd);
			found = fd;
		}
		free(names[i]);
	}
	free(names);
	return found;
}

/*
 * Group flyrec may connect. With an AdminGroup= of its own everybody may: one socket has one
 * group, and each call is checked all the same. So too for a socket that was passed to us.
 */
static void set_rights(struct control *c)
{
	bool everybody = c->groups.admin != (gid_t)-1 && c->groups.admin != c->groups.flyrec;
	struct sockaddr_un address = {};
	socklen_t size = sizeof(address);
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (getsockname(c->listen_fd, (struct sockaddr *)&address, &size) < 0 ||
	    address.sun_path[0] == '\0')
		return;
	path = strndup(address.sun_path, sizeof(address.sun_path));
	if (!path)
		return;
	/* As a service it is already made so, and chown(2) is not allowed */
	if (owner_uid() == 0 && c->groups.flyrec != (gid_t)-1 && stat(path, &st) >= 0 &&
	    st.st_gid != c->groups.flyrec && chown(path, 0, c->groups.flyrec) < 0)
		log_warning_errno(-errno, "cannot give %s to group flyrec: %m, ignoring", path);
	if (chmod(path, everybody ? 0666 : 0660) < 0)
		log_warning_errno(-errno, "cannot set the mode of %s: %m, ignoring", path);
}

static int bind_socket(struct control *c, const char *dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	c->path = strf("%s/" CONTROL_SOCKET, dir);
	if (!c->path)
		return -ENOMEM;
	if (strlen(c->path) >= sizeof(address.sun_path))
		return log_error_errno(-ENAMETOOLONG, "cannot listen on %s: %m", c->path);
	(void)strcpy(address.sun_path, c->path);
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return log_error_errno(-errno, "cannot make runtime directory %s: %m", dir);
	/* Of an earlier process: two daemons have two runtime directories */
	if (unlink(c->path) < 0 && errno != ENOENT)
		return log_error_errno(-errno, "cannot remove the old %s: %m", c->path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	c->listen_fd = fd;
	guard_refuse(fd);
	/* Nobody but root until set_rights(): the umask is 0027 */
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return log_error_errno(-errno, "cannot listen on %s: %m", c->path);
	return 0;
}

/* Each connection takes a few descriptors; the soft limit is for programs that use select(2) */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FILES_MAX)
		return;
	limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)FILES_MAX);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* --- signals */

static void tell_object(struct control *c, const char *session,
			int (*emit)(sd_bus *bus, const char *path))
{
	_cleanup_free_ char *path = NULL;

	control_session_path(session, &path);
	for (struct peer *p = c->peers; path && p; p = p->next)
		if (p->subscribed) {
			(void)emit(p->bus, path);
			peer_check_queue(p);
		}
}

static int emit_changed(sd_bus *bus, const char *path)
{
	return sd_bus_emit_properties_changed(bus, path, CONTROL_SESSION, "State", "Failure",
					      "RuntimeChanges", "Events", "Instance", NULL);
}

static void on_session_changed(void *userdata, const char *name)
{
	tell_object(userdata, name, emit_changed);
}

static void on_session_added(void *userdata, const char *name)
{
	tell_object(userdata, name, sd_bus_emit_object_added);
}

/* Not by sd_bus_emit_object_removed(): that leaves out what it no longer finds */
static int emit_removed(sd_bus *bus, const char *path)
{
	return sd_bus_emit_interfaces_removed(
		bus, path, "org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable",
		"org.freedesktop.DBus.Properties", CONTROL_SESSION, NULL);
}

static void on_session_removed(void *userdata, const char *name)
{
	tell_object(userdata, name, emit_removed);
}

/* @finding, @id: of a snapshot; or NULL */
static void tell_finished(struct control *c, const char *signal, const char *name, const char *path,
			  const char *finding, const char *id)
{
	for (struct peer *p = c->peers; p; p = p->next) {
		if (!p->subscribed)
			continue;
		(void)sd_bus_emit_signal(p->bus, CONTROL_PATH, CONTROL_MANAGER, signal,
					 finding ? "ssss" : "ss", name, path, finding, id);
		peer_check_queue(p);
	}
}

static void on_segment_finished(void *userdata, const char *name, const char *path)
{
	tell_finished(userdata, "SegmentFinished", name, path, NULL, NULL);
}

static void on_snapshot_finished(void *userdata, const char *name, const char *path,
				 const char *finding, const char *id)
{
	tell_finished(userdata, "SnapshotFinished", name, path, finding, id);
}

/* AdminGroup= may have changed */
static void on_configured(void *userdata)
{
	struct control *c = userdata;

	if (access_find_groups(manager_config(c->manager)->admin_group, &c->groups) < 0)
		log_warning(
			"AdminGroup=%s: groups of the machine have changed since the start; it takes a restart",
			manager_config(c->manager)->admin_group);
	set_rights(c);
}

static const struct manager_listener listener = {
	.configured = on_configured,
	.reloaded = control_reloaded,
	.session_added = on_session_added,
	.session_removed = on_session_removed,
	.session_changed = on_session_changed,
	.segment_finished = on_segment_finished,
	.snapshot_finished = on_snapshot_finished,
};

/* --- the whole */

int control_new_unbound(struct manager *m, struct control **ret)
{
	struct control *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->manager = m;
	c->env = manager_environment(m);
	c->listen_fd = -EBADF;
	r = sd_id128_randomize(&c->id);
	if (r < 0) {
		free(c);
		return r;
	}
	c->groups = (struct access_groups){.flyrec = (gid_t)-1, .admin = (gid_t)-1};
	(void)access_find_groups(manager_config(m)->admin_group, &c->groups);
	manager_listen(m, &listener, c);
	*ret = c;
	return 0;
}

int control_new(struct manager *m, struct control **ret)
{
	_cleanup_(control_freep) struct control *c = NULL;
	int r;

	r = control_new_unbound(m, &c);
	if (r < 0)
		return log_error_errno(r, "cannot make a control socket: %m");
	raise_file_limit();
	c->listen_fd = passed_socket();
	if (c->listen_fd < 0) {
		r = bind_socket(c, c->env->runtime_dir);
		if (r < 0)
			return r;
	}
	r = sd_event_add_io(c->env->event, &c->listen_source, c->listen_fd, EPOLLIN, on_connection,
			    c);
	if (r >= 0)
		r = sd_event_source_set_priority(c->listen_source, PRIORITY_CONTROL);
	if (r < 0)
		return log_error_errno(r, "cannot watch the control socket: %m");
	set_rights(c);
	r = system_bus_new(c, add_objects, &c->system);
	if (r < 0)
		log_debug("not on the system bus: %s", strerror(-r));
	*ret = TAKE_PTR(c);
	return 0;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	manager_listen(c->manager, NULL, NULL);
	while (c->reloads) {
		struct control_request *request = c->reloads;

		c->reloads = request->next_reload;
		control_request_done(request, -ECANCELED, "flyrecd ends");
	}
	while (c->peers)
		peer_free(c->peers);
	system_bus_free(c->system);
	sd_event_source_disable_unref(c->listen_source);
	sd_event_source_disable_unref(c->pause_source);
	/* What nobody accepted goes with it; if that may hold descriptors, when the process ends,
	 * which waits for none of them */
	if (c->listen_fd >= 0 && guard_refuses(c->listen_fd))
		close_p(&c->listen_fd);
	if (c->path)
		(void)unlink(c->path);
	free(c->path);
	free(c);
}
