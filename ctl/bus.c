/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "basic/escape.h"
#include "basic/strv.h"
#include "ctl/bus.h"

#define BUS_PATH	 "/org/flyrec/Recorder1"
#define BUS_SESSION_PATH BUS_PATH "/session"
#define BUS_MANAGER	 "org.flyrec.Recorder1.Manager"
#define BUS_ERROR	 "org.flyrec.Recorder1.Error."
#define BUS_PROPERTIES	 "org.freedesktop.DBus.Properties"
#define BUS_OBJECTS	 "org.freedesktop.DBus.ObjectManager"

#define HUNG_UP		     "flyrecd has hung up: too many connections, or it ended"
#define RECONNECTS	     20 /* when flyrecd hangs up */
#define CONNECT_PATIENCE_SEC 10 /* while its queue of connections is full */

static const sd_bus_error_map errors[] = {
	SD_BUS_ERROR_MAP(BUS_ERROR "NotRecording", -BUS_E_NOT_RECORDING),
	SD_BUS_ERROR_MAP(BUS_ERROR "NoSuchSession", -BUS_E_NO_SUCH_SESSION),
	SD_BUS_ERROR_MAP(BUS_ERROR "NothingRecorded", -BUS_E_NOTHING_RECORDED),
	SD_BUS_ERROR_MAP(BUS_ERROR "NotFound", -BUS_E_NOT_FOUND),
	SD_BUS_ERROR_MAP_END,
};

/* To the caller, who has his own way to tell it, or on stderr. Return: @error. */
static int tell(const struct ctl *ctl, struct fault *why, int error, const char *format, ...)
	_printf_(4, 5);
static int tell(const struct ctl *ctl, struct fault *why, int error, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, format);
	text = vstrf(format, ap);
	va_end(ap);
	if (why)
		return fault_set(why, error, "%s", text ? text : "?");
	(void)ctl_complain(ctl, "%s", text ? text : "?");
	return error;
}

/* --- connecting */

/*
 * Waits in the queue where it is full: sd-bus' own connect(2) would fail at once, and one who tries
 * again and again never gets a place beside those who wait (unix(7), EAGAIN).
 * Return: a descriptor or negative errno.
 */
static int connect_local(const char *runtime_dir)
{
	const struct timeval patience = {.tv_sec = CONNECT_PATIENCE_SEC};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -EBADF;
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", runtime_dir);

	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* @bus takes over the descriptor */
static int set_local(sd_bus *bus, const char *runtime_dir)
{
	int fd = connect_local(runtime_dir), r;

	if (fd < 0)
		return fd;
	r = sd_bus_set_fd(bus, fd, fd);
	if (r < 0)
		(void)close(fd);
	return r;
}

static bool is_cut_off(int error)
{
	return error == -ECONNRESET || error == -ENOTCONN || error == -EPIPE;
}

static int explain_connect(const struct ctl *ctl, struct fault *why, int error)
{
	const char *dir = ctl->runtime_dir;

	if (error == -ENOENT || error == -ECONNREFUSED)
		return tell(ctl, why, error, "no flyrecd listens on %s/control: %s", dir,
			    strerror(-error));
	if (error == -EACCES || error == -EPERM)
		return tell(ctl, why, error, "%s/control: %s: it is for root and group flyrec", dir,
			    strerror(-error));
	if (error == -EAGAIN)
		return tell(ctl, why, error,
			    "no place in the queue of %s/control for %d s: others connect without "
			    "end",
			    dir, CONNECT_PATIENCE_SEC);
	if (is_cut_off(error))
		return tell(ctl, why, error, HUNG_UP);
	return tell(ctl, why, error, "cannot connect to %s/control: %s", dir, strerror(-error));
}

/* Does somebody answer? Not only a process that is about to end, with the next one on its way */
static int greet(sd_bus *bus)
{
	int r = sd_bus_call_method(bus, NULL, "/", "org.freedesktop.DBus.Peer", "Ping", NULL, NULL,
				   NULL);

	return is_cut_off(r) ? r : 0; /* what else there is to say the call itself is told */
}

static int open_bus(struct ctl *ctl)
{
	_cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
	int r = sd_bus_new(&bus);

	if (r >= 0)
		r = sd_bus_error_add_map(errors);
	if (r >= 0)
		r = sd_bus_negotiate_fds(bus, true);
	if (r >= 0)
		r = set_local(bus, ctl->runtime_dir);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r >= 0)
		r = greet(bus);
	if (r >= 0)
		ctl->bus = TAKE_PTR(bus);
	return r;
}

/* Again for a while where a daemon ends meanwhile */
static int connect_bus(struct ctl *ctl, struct fault *why)
{
	const struct timespec pause = {.tv_nsec = (long)(NSEC_PER_SEC / 10)};
	unsigned cut_off = 0;
	int r;

	if (ctl->bus)
		return 0;
	while (is_cut_off(r = open_bus(ctl)) && cut_off++ < RECONNECTS)
		(void)nanosleep(&pause, NULL);
	return r < 0 ? explain_connect(ctl, why, r) : 0;
}

void bus_close(struct ctl *ctl)
{
	ctl->bus = sd_bus_close_unref(ctl->bus);
}

/* --- calls */

/* One that was cut off while connecting says so only now */
static int explain_call(const struct ctl *ctl, struct fault *why, const char *path,
			const sd_bus_error *error, int r)
{
	_cleanup_free_ char *text = NULL, *session = NULL;

	if (sd_bus_path_decode(path, BUS_SESSION_PATH, &session) < 0)
		session = NULL;
	if (session && r == BUS_E_NOTHING_RECORDED)
		return r;
	/* reload tells all faults, a line each */
	text = escape_text(is_cut_off(r)    ? HUNG_UP
			   : error->message ? error->message
					    : strerror(-r),
			   true);
	if (session && !why && text && !strstr(text, session))
		return tell(ctl, why, r, "%s: %s", session, text);
	return tell(ctl, why, r, "%s", text ? text : "?");
}

static int call_once(struct ctl *ctl, const char *path, const char *interface, const char *member,
		     sd_bus_error *error, sd_bus_message **ret, const char *types, va_list ap)
{
	_cleanup_message_ sd_bus_message *call = NULL;
	int r = sd_bus_message_new_method_call(ctl->bus, &call, NULL, path, interface, member);

	if (r >= 0 && types && strncmp(types, "as", 2) == 0) {
		r = sd_bus_message_append_strv(call, va_arg(ap, char **));
		types += 2;
	}
	if (r >= 0 && types && *types)
		r = sd_bus_message_appendv(call, types, ap);
	return r < 0 ? r : sd_bus_call(ctl->bus, call, UINT64_MAX, error, ret);
}

static int call_v(struct ctl *ctl, struct fault *why, const char *path, const char *interface,
		  const char *member, sd_bus_message **ret, const char *types, va_list ap)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	int r = connect_bus(ctl, why);

	if (r < 0)
		return r;
	r = call_once(ctl, path, interface, member, &error, ret, types, ap);
	return r < 0 ? explain_call(ctl, why, path, &error, r) : 0;
}

/* What changes nothing: if flyrecd ends meanwhile, the next one is asked */
static int ask(struct ctl *ctl, struct fault *why, const char *path, const char *interface,
	       const char *member, sd_bus_message **ret, const char *types, ...)
{
	for (bool again = false;; again = true) {
		_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
		va_list ap;
		int r = connect_bus(ctl, why);

		if (r < 0)
			return r;
		va_start(ap, types);
		r = call_once(ctl, path, interface, member, &error, ret, types, ap);
		va_end(ap);
		if (!is_cut_off(r) || again)
			return r < 0 ? explain_call(ctl, why, path, &error, r) : 0;
		bus_close(ctl);
	}
}

static int bad_answer(const struct ctl *ctl, struct fault *why, int error)
{
	return tell(ctl, why, error, "cannot make sense of flyrecd's answer (other version?): %s",
		    strerror(-error));
}

int bus_bad_answer(const struct ctl *ctl, int error)
{
	return bad_answer(ctl, NULL, error);
}

static int find_session(struct ctl *ctl, struct fault *why, const char *name, char **ret)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	const char *path;
	int r = ask(ctl, why, BUS_PATH, BUS_MANAGER, "GetSession", &reply, "s", name);

	if (r < 0 || !ret)
		return r;
	r = sd_bus_message_read(reply, "o", &path);
	if (r < 0)
		return bad_answer(ctl, why, r);
	*ret = strdup(path);
	return *ret ? 0 : -ENOMEM;
}

int bus_find_session(struct ctl *ctl, const char *name, char **ret)
{
	return find_session(ctl, NULL, name, ret);
}

static int call_of(struct ctl *ctl, struct fault *why, const char *session, const char *member,
		   sd_bus_message **ret, const char *types, va_list ap)
{
	_cleanup_free_ char *path = NULL;
	int r = session ? find_session(ctl, why, session, &path) : 0;

	return r < 0 ? r
		     : call_v(ctl, why, path ? path : BUS_PATH, path ? BUS_SESSION : BUS_MANAGER,
			      member, ret, types, ap);
}

int bus_call(struct ctl *ctl, const char *session, const char *member, sd_bus_message **ret,
	     const char *types, ...)
{
	va_list ap;
	int r;

	va_start(ap, types);
	r = call_of(ctl, NULL, session, member, ret, types, ap);
	va_end(ap);
	return r;
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	struct bus_pending *pending = userdata;

	pending->reply = sd_bus_message_ref(reply);
	return 1;
}

int bus_begin(struct ctl *ctl, const char *session, const char *member, struct bus_pending *ret,
	      const char *types, ...)
{
	_cleanup_message_ sd_bus_message *call = NULL;
	va_list ap;
	int r;

	*ret = (struct bus_pending){.ctl = ctl};
	r = find_session(ctl, NULL, session, &ret->path);
	if (r < 0)
		return r;
	r = sd_bus_message_new_method_call(ctl->bus, &call, NULL, ret->path, BUS_SESSION, member);
	va_start(ap, types);
	if (r >= 0)
		r = sd_bus_message_appendv(call, types, ap);
	va_end(ap);
	if (r >= 0)
		r = sd_bus_call_async(ctl->bus, &ret->slot, call, on_answer, ret, UINT64_MAX);
	return r < 0 ? explain_call(ctl, NULL, ret->path, &SD_BUS_ERROR_NULL, r) : 0;
}

int bus_await(struct bus_pending *pending)
{
	const struct ctl *ctl = pending->ctl;
	int r = 0;

	while (!pending->reply && r >= 0) {
		r = sd_bus_process(ctl->bus, NULL);
		if (r == 0)
			r = sd_bus_wait(ctl->bus, UINT64_MAX);
	}
	if (r < 0)
		return explain_call(ctl, NULL, pending->path, &SD_BUS_ERROR_NULL, r);
	r = -sd_bus_message_get_errno(pending->reply);
	return r < 0 ? explain_call(ctl, NULL, pending->path,
				    sd_bus_message_get_error(pending->reply), r)
		     : 0;
}

void bus_pending_done(struct bus_pending *pending)
{
	sd_bus_slot_unref(pending->slot);
	sd_bus_message_unref(pending->reply);
	free(pending->path);
}

int bus_call_fd(struct ctl *ctl, struct fault *why, const char *session, const char *member,
		const char *types, ...)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	va_list ap;
	int fd, r;

	va_start(ap, types);
	r = call_of(ctl, why, session, member, &reply, types, ap);
	va_end(ap);
	if (r < 0)
		return r;
	r = sd_bus_message_read(reply, "h", &fd);
	if (r < 0)
		return bad_answer(ctl, why, r);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* the message has its own, and closes it */
	return fd < 0 ? bad_answer(ctl, why, -errno) : fd;
}

int bus_ask(struct ctl *ctl, struct fault *why, const char *member, sd_bus_message **ret)
{
	return ask(ctl, why, BUS_PATH, BUS_MANAGER, member, ret, NULL);
}

int bus_get_properties(struct ctl *ctl, const char *session, sd_bus_message **ret)
{
	_cleanup_free_ char *path = NULL;
	int r = session ? bus_find_session(ctl, session, &path) : 0;

	return r < 0 ? r
		     : ask(ctl, NULL, path ? path : BUS_PATH, BUS_PROPERTIES, "GetAll", ret, "s",
			   path ? BUS_SESSION : BUS_MANAGER);
}

int bus_get_objects(struct ctl *ctl, sd_bus_message **ret)
{
	return ask(ctl, NULL, BUS_PATH, BUS_OBJECTS, "GetManagedObjects", ret, NULL);
}

int bus_read(const struct ctl *ctl, sd_bus_message *reply, const char *types, ...)
{
	va_list ap;
	int r;

	va_start(ap, types);
	r = sd_bus_message_readv(reply, types, ap);
	va_end(ap);
	return r < 0 ? bus_bad_answer(ctl, r) : 0;
}
