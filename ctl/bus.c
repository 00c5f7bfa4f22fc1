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
#include "ctl/bus.h"
#include "ctl/remote.h"

#define DEFAULT_RUNTIME_DIR  "/run/flyrec"
#define HUNG_UP		     "flyrecd has hung up: too many connections, or it ended"
#define RECONNECTS	     20	     /* when flyrecd hangs up */
#define CONNECT_PATIENCE_SEC 10	     /* while its queue of connections is full */
#define HOST_PREFIX	     "host " /* description of a connection through ssh */
#define ERROR_NO_DATA	     "org.flyrec.Recorder1.Error.NothingRecorded"

/* Values in addresses: everything but these as %XX */
static void append_escaped(FILE *f, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-/.\\";

	for (; *text; text++)
		if (strchr(plain, *text))
			(void)fputc(*text, f);
		else
			(void)fprintf(f, "%%%02x", (unsigned char)*text);
}

char *bus_ssh_address(const char *host, const char *runtime_dir)
{
	_cleanup_free_ char *quoted = NULL;
	char *address = NULL;
	size_t size;
	FILE *f = open_memstream(&address, &size);

	if (!f)
		return NULL;
	(void)fputs("unixexec:path=ssh,argv1=-xT,argv2=--,argv3=", f);
	append_escaped(f, host);
	(void)fputs(",argv4=flyrecctl,argv5=stdio-bridge", f);
	if (runtime_dir && strcmp(runtime_dir, DEFAULT_RUNTIME_DIR) != 0) {
		quoted = remote_quoted(runtime_dir);
		(void)fputs(",argv6=--runtime-dir,argv7=", f);
		append_escaped(f, quoted ? quoted : runtime_dir);
	}
	return fclose(f) == 0 ? address : NULL;
}

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

/* For messages, much later */
static int describe(sd_bus *bus, const char *host)
{
	_cleanup_free_ char *text = NULL;

	if (asprintf(&text, HOST_PREFIX "%s", host) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return sd_bus_set_description(bus, text);
}

static int set_ssh(sd_bus *bus, const struct ctl *ctl)
{
	_cleanup_free_ char *address = bus_ssh_address(ctl->host, ctl->runtime_dir);
	int r = address ? sd_bus_set_address(bus, address) : -ENOMEM;

	return r < 0 ? r : describe(bus, ctl->host);
}

static bool is_cut_off(int error)
{
	return error == -ECONNRESET || error == -ENOTCONN || error == -EPIPE;
}

static void explain_connect(const struct ctl *ctl, const char *verb, int error)
{
	if (ctl->host)
		(void)fprintf(stderr, "flyrecctl: %s: cannot reach flyrecd on %s: %s\n", verb,
			      ctl->host, strerror(-error));
	else if (error == -ENOENT || error == -ECONNREFUSED)
		(void)fprintf(stderr, "flyrecctl: %s: no flyrecd listens on %s/control: %s\n", verb,
			      ctl->runtime_dir, strerror(-error));
	else if (error == -EACCES || error == -EPERM)
		(void)fprintf(stderr,
			      "flyrecctl: %s: %s/control: %s: it is for root and group flyrec\n",
			      verb, ctl->runtime_dir, strerror(-error));
	else if (error == -EAGAIN)
		(void)fprintf(stderr,
			      "flyrecctl: %s: no place in the queue of %s/control for %d s: others "
			      "connect without end\n",
			      verb, ctl->runtime_dir, CONNECT_PATIENCE_SEC);
	else if (is_cut_off(error))
		(void)fprintf(stderr, "flyrecctl: %s: " HUNG_UP "\n", verb);
	else
		(void)fprintf(stderr, "flyrecctl: %s: cannot connect to %s/control: %s\n", verb,
			      ctl->runtime_dir, strerror(-error));
}

int bus_open(const struct ctl *ctl, sd_bus **ret)
{
	_cleanup_bus_ sd_bus *bus = NULL;
	int r = sd_bus_new(&bus);

	if (r >= 0)
		r = sd_bus_negotiate_fds(bus, !ctl->host); /* none go through ssh */
	if (r >= 0)
		r = ctl->host ? set_ssh(bus, ctl) : set_local(bus, ctl->runtime_dir);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(bus);
	return 0;
}

/* Does somebody answer? Not only a process that is about to end, with the next one on its way */
static int greet(sd_bus *bus)
{
	int r = sd_bus_call_method(bus, NULL, "/", "org.freedesktop.DBus.Peer", "Ping", NULL, NULL,
				   NULL);

	return is_cut_off(r) ? r : 0; /* what else there is to say the call itself is told */
}

int bus_connect(const struct ctl *ctl, const char *verb, sd_bus **ret)
{
	unsigned cut_off = 0;
	int r;

	for (;;) {
		const struct timespec pause = {.tv_nsec = (long)(NSEC_PER_SEC / 10)};

		r = bus_open(ctl, ret);
		if (r >= 0 && !ctl->host)
			r = greet(*ret);
		if (!is_cut_off(r) || cut_off++ == RECONNECTS)
			break;
		*ret = sd_bus_flush_close_unref(*ret);
		(void)nanosleep(&pause, NULL);
	}
	if (r < 0)
		explain_connect(ctl, verb, r);
	return r;
}

/* One that was cut off while connecting says so only now */
static char *why_it_failed(sd_bus *bus, const sd_bus_error *error, int r)
{
	const char *host = NULL;
	char *text;

	if (is_cut_off(r) && sd_bus_get_description(bus, &host) >= 0 && host &&
	    strncmp(host, HOST_PREFIX, strlen(HOST_PREFIX)) == 0) {
		if (asprintf(&text, "no connection to %s: ssh, or flyrecctl there, has ended",
			     host + strlen(HOST_PREFIX)) < 0)
			return NULL;
		return text;
	}
	/* reload tells all faults, a line each */
	return escape_text(is_cut_off(r)    ? HUNG_UP
			   : error->message ? error->message
					    : strerror(-r),
			   true);
}

/* @quiet: ERROR_NO_DATA is the caller's */
static int call_message(sd_bus *bus, const char *verb, sd_bus_message *call, bool quiet,
			sd_bus_message **ret)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_free_ char *why = NULL, *session = NULL;
	int r = sd_bus_call(bus, call, UINT64_MAX, &error, ret);

	if (r >= 0)
		return 0;
	if (quiet && sd_bus_error_has_name(&error, ERROR_NO_DATA))
		return -ENODATA;
	why = why_it_failed(bus, &error, r);
	if (sd_bus_path_decode(sd_bus_message_get_path(call), BUS_SESSION_PATH, &session) < 0)
		session = NULL;
	if (session && why && !strstr(why, session))
		(void)fprintf(stderr, "flyrecctl: %s: %s: %s\n", verb, session, why);
	else
		(void)fprintf(stderr, "flyrecctl: %s: %s\n", verb, why ? why : "?");
	return r;
}

int bus_call_message(sd_bus *bus, const char *verb, sd_bus_message *call, sd_bus_message **ret)
{
	return call_message(bus, verb, call, false, ret);
}

int bus_call_snapshot(sd_bus *bus, const char *verb, sd_bus_message *call, sd_bus_message **ret)
{
	return call_message(bus, verb, call, true, ret);
}

int bus_bad_answer(const char *verb, int error)
{
	(void)fprintf(stderr,
		      "flyrecctl: %s: cannot make sense of flyrecd's answer (other version?): %s\n",
		      verb, strerror(-error));
	return error;
}

int bus_call(sd_bus *bus, const char *verb, const char *path, const char *interface,
	     const char *member, sd_bus_message **ret, const char *types, ...)
{
	_cleanup_message_ sd_bus_message *call = NULL, *reply = NULL;
	va_list ap;
	int r;

	r = sd_bus_message_new_method_call(bus, &call, NULL, path, interface, member);
	if (r >= 0 && types) {
		va_start(ap, types);
		r = sd_bus_message_appendv(call, types, ap);
		va_end(ap);
	}
	if (r < 0) {
		(void)fprintf(stderr, "flyrecctl: %s: %s\n", verb, strerror(-r));
		return r;
	}
	r = bus_call_message(bus, verb, call, &reply);
	if (r >= 0 && ret)
		*ret = TAKE_PTR(reply);
	return r;
}

int bus_find_session(sd_bus *bus, const char *verb, const char *name, char **ret)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	const char *path;
	int r = bus_call(bus, verb, BUS_PATH, BUS_MANAGER, "GetSession", &reply, "s", name);

	if (r < 0 || !ret)
		return r;
	r = sd_bus_message_read(reply, "o", &path);
	if (r < 0)
		return bus_bad_answer(verb, r);
	*ret = strdup(path);
	return *ret ? 0 : -ENOMEM;
}

int bus_open_file(sd_bus *bus, const char *verb, const char *session, const char *path)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int fd, r;

	r = bus_call(bus, verb, BUS_PATH, BUS_MANAGER, "OpenFile", &reply, "ss", session, path);
	if (r < 0)
		return r;
	r = sd_bus_message_read(reply, "h", &fd);
	if (r < 0)
		return bus_bad_answer(verb, r);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* the message has its own, and closes it */
	return fd < 0 ? bus_bad_answer(verb, -errno) : fd;
}
