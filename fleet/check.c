/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <unistd.h>

#include "basic/escape.h"
#include "basic/log.h"
#include "basic/strv.h"
#include "fleet/check.h"
#include "fleet/recorder.h"

#define USER		       "flyrec-fleet"
#define ERROR_MAX_USEC	       10000 /* of the clock, beyond which moments of hosts are apart */
#define RECORDER_PATIENCE_USEC (10 * USEC_PER_SEC)

static void say(const char *verdict, const char *what, const char *format, va_list ap)
	_printf_(3, 0);
static void say(const char *verdict, const char *what, const char *format, va_list ap)
{
	_cleanup_free_ char *text = vstrf(format, ap), *shown = NULL;

	shown = text ? escape_text(text, false) : NULL;
	printf("%-4s  %-11s  %s\n", verdict, what, shown ? shown : "?");
	(void)fflush(stdout);
}

void check_ok(struct check *check, const char *what, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say("ok", what, format, ap);
	va_end(ap);
}

void check_warn(struct check *check, const char *what, const char *format, ...)
{
	va_list ap;

	check->n_warnings++;
	va_start(ap, format);
	say("WARN", what, format, ap);
	va_end(ap);
}

void check_fail(struct check *check, const char *what, const char *format, ...)
{
	va_list ap;

	check->n_failed++;
	va_start(ap, format);
	say("FAIL", what, format, ap);
	va_end(ap);
}

/* --- flyrecd */

struct listing {
	sd_event *event;
	enum recorder_result result;
	char **sessions;
	char *why;
};

static void on_listed(void *userdata, enum recorder_result result, char **sessions, const char *why)
{
	struct listing *l = userdata;

	l->result = result;
	l->sessions = sessions;
	l->why = strdup(why);
	(void)sd_event_exit(l->event, 0);
}

static int ask_recorder(const char *runtime_dir, struct listing *l)
{
	struct recorder *recorder = NULL;
	int r = sd_event_new(&l->event);

	l->result = RECORDER_AWAY;
	if (r >= 0)
		r = recorder_new(l->event, runtime_dir, &recorder);
	if (r >= 0)
		r = sd_event_add_time_relative(l->event, NULL, CLOCK_MONOTONIC,
					       RECORDER_PATIENCE_USEC, 0, NULL,
					       (void *)(intptr_t)-ETIMEDOUT);
	if (r >= 0)
		r = recorder_list(recorder, on_listed, l);
	if (r >= 0)
		r = sd_event_loop(l->event);
	recorder_free(recorder);
	l->event = sd_event_unref(l->event);
	return r;
}

static char *join(char *const *words)
{
	_cleanup_free_ char *text = strdup("");

	STRV_FOREACH (w, words) {
		char *more = text ? strf("%s%s%s", text, *text ? ", " : "", *w) : NULL;

		free(text);
		text = more;
	}
	return TAKE_PTR(text);
}

static void check_sessions(struct check *check, const struct listing *l)
{
	_cleanup_free_ char *names = join(l->sessions);

	if (!l->sessions)
		check_fail(check, "sessions",
			   "none records and takes snapshots for other hosts (PeerMaxSec=)");
	else
		check_ok(check, "sessions", "%s take snapshots for other hosts",
			 names ? names : "?");
	STRV_FOREACH (s, check->fleet->config->follow.sessions)
		if (!strv_contains(l->sessions, *s))
			check_fail(check, "sessions",
				   "Sessions=%s in [Follow]: it does not record, or has "
				   "PeerMaxSec=0",
				   *s);
}

/* Who listens is told; the socket can be there without */
static void check_notices(struct check *check)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/trigger",
			 check->fleet->runtime_dir);

	if (fd < 0 || n < 0 || (size_t)n >= sizeof(address.sun_path))
		check_fail(check, "notices", "%s is too long", check->fleet->runtime_dir);
	else if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ||
		 errno == EACCES || errno == EPERM)
		check_ok(check, "notices", "%s is there", address.sun_path);
	else
		check_fail(check, "notices",
			   "nobody listens on %s: systemctl enable --now flyrec-announce.socket",
			   address.sun_path);
}

void check_recorder(struct check *check)
{
	struct listing l = {};
	int r = ask_recorder(check->fleet->runtime_dir, &l);
	const char *why = l.why && *l.why ? l.why : strerror(-r);

	if (r == -EACCES || r == -EPERM)
		check_fail(check, "flyrecd",
			   "%s/control: %s: user " USER " must be in the group flyrec",
			   check->fleet->runtime_dir, why);
	else if (r < 0 || l.result == RECORDER_AWAY)
		check_fail(check, "flyrecd", "%s/control: %s: systemctl start flyrecd",
			   check->fleet->runtime_dir, why);
	else if (l.result != RECORDER_DONE)
		check_fail(check, "flyrecd", "%s", why);
	else
		check_ok(check, "flyrecd", "answers");
	if (r >= 0 && l.result == RECORDER_DONE)
		check_sessions(check, &l);
	check_notices(check);
	strv_free(l.sessions);
	free(l.why);
}

/* --- the store */

/* A line "ok", "warn" or "fail", a tab, and what it is */
static void say_of_store(struct check *check, char *line)
{
	const char *tab = strchr(line, '\t');
	size_t n = tab ? (size_t)(tab - line) : 0;

	line[strcspn(line, "\n")] = '\0';
	if (n == strlen("ok") && strncmp(line, "ok", n) == 0)
		check_ok(check, "store", "%s", tab + 1);
	else if (n == strlen("warn") && strncmp(line, "warn", n) == 0)
		check_warn(check, "store", "%s", tab + 1);
	else
		check_fail(check, "store", "%s", tab ? tab + 1 : line);
}

void check_store(struct check *check)
{
	_cleanup_free_ char *path = fleet_program_path(check->fleet, "check-store"), *line = NULL;
	size_t size = 0;
	FILE *f;
	int status;

	if (!path || access(path, X_OK) < 0)
		return;
	f = popen(path, "re"); /* a path of ours, without anything for a shell */
	if (!f) {
		check_fail(check, "store", "%s: %s", path, strerror(errno));
		return;
	}
	while (getline(&line, &size, f) > 0)
		say_of_store(check, line);
	status = pclose(f);
	if (status != 0)
		check_fail(check, "store", "%s ended with status %d", path, status);
}

/* --- the clock */

void check_clock(struct check *check)
{
	struct timex t = {};
	int state = adjtimex(&t);

	if (state < 0)
		check_warn(check, "clock", "cannot be asked: %s", strerror(errno));
	else if (state == TIME_ERROR || t.status & STA_UNSYNC)
		check_warn(check, "clock",
			   "is not synchronized: other hosts keep another moment than is meant");
	else if (t.maxerror > ERROR_MAX_USEC)
		check_warn(check, "clock", "is right to %.1f ms only", (double)t.maxerror / 1000);
	else
		check_ok(check, "clock", "is right to %.3f ms", (double)t.maxerror / 1000);
}

/* --- all of it */

/* As the services: what root may read they may not. Where there is no such user root does. */
static int become_user(void)
{
	const struct passwd *user;

	if (geteuid() != 0)
		return 0;
	errno = 0;
	user = getpwnam(USER);
	if (!user)
		return 0;
	if (initgroups(USER, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 ||
	    setuid(user->pw_uid) < 0)
		return log_error_errno(-errno, "Cannot become user " USER ": %m");
	return 0;
}

int verb_check(struct fleet *fleet, int argc, char *argv[])
{
	static void (*const checks[])(struct check *) = {
		check_certificates, check_broker, check_recorder, check_clock, check_store,
	};
	struct check check = {.fleet = fleet};
	int r = become_user();

	if (r >= 0)
		r = fleet_load(fleet);
	if (r < 0)
		return r;
	check_ok(&check, "config", "%s: host %s of group %s", fleet->config_path,
		 fleet->config->host, fleet->config->group);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		checks[i](&check);
	return check.n_failed > 0 ? -EIO : 0;
}
