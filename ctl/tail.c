/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "basic/now.h"
#include "basic/strv.h"
#include "ctl/command.h"
#include "ctl/events.h"
#include "ctl/output.h"
#include "ctl/remote.h"
#include "ctl/tail-run.h"
#include "ctl/tail-stream.h"
#include "ctl/verbs.h"

#define LINES_DEFAULT 10

#define ROUNDS_FIRST	 2 /* after so many all that was there at the beginning is known */
#define FIRST_WAIT_USEC	 (10 * USEC_PER_SEC) /* for these */
#define RETRY_MSEC	 100
#define DAEMON_WAIT_USEC (10 * USEC_PER_SEC) /* for a daemon that restarts */
#define START_WAIT_USEC	 (3 * USEC_PER_SEC)  /* for a session that restarts */

/*
 * Until the daemon has something to tell, or the time is over
 * @ret_gone: nobody reads the output any more
 */
static void wait_for_news(const struct tail *t, int timeout, bool *ret_gone)
{
	struct pollfd fds[] = {{.fd = t->stream, .events = POLLIN}, {.fd = STDOUT_FILENO}};
	int n = poll(fds, 2, timeout);

	*ret_gone = n > 0 && (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* --- the daemon, and the one after it */

static bool is_restarting(int error, const char *name)
{
	return (name && strcmp(name, "org.flyrec.Recorder1.Error.NotRecording") == 0) ||
	       (name && strcmp(name, "org.flyrec.Recorder1.Error.NoSuchSession") == 0) ||
	       error == -ENOENT || error == -ECONNREFUSED || error == -ECONNRESET ||
	       error == -ENOTCONN || error == -EPIPE;
}

static int connect_again(struct tail *t, bool *ret_answers, bool *ret_retry, struct fault *why)
{
	_cleanup_free_ char *name = NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	int r = bus_open(t->ctl, &bus);

	if (r < 0)
		(void)fault_errno(why, r, "flyrecd has gone");
	else
		r = tail_stream_open(bus, t->session, &t->stream, &name, why);
	*ret_answers = name;
	*ret_retry = is_restarting(r, name);
	if (r >= 0 && !t->bus)
		t->bus = TAKE_PTR(bus);
	return r;
}

/* It has hung up: another daemon may take its place, or the session is started again */
static int reconnect(struct tail *t, struct fault *why)
{
	uint64_t begin = now_usec(CLOCK_MONOTONIC), refused = 0;

	close_p(&t->stream);
	t->stream = -EBADF;
	sd_bus_close_unref(TAKE_PTR(t->bus));
	for (;;) {
		bool answers, retry, gone;
		int r = connect_again(t, &answers, &retry, why);

		if (r >= 0)
			break;
		if (answers && refused == 0)
			refused = now_usec(CLOCK_MONOTONIC);
		if (!retry || now_usec(CLOCK_MONOTONIC) - begin > DAEMON_WAIT_USEC ||
		    (refused > 0 && now_usec(CLOCK_MONOTONIC) - refused > START_WAIT_USEC))
			return r;
		wait_for_news(t, RETRY_MSEC, &gone);
		if (gone)
			return TAIL_E_PIPE;
	}
	if (t->stopped) /* it may have another clock now */
		t->bound = t->newest = 0;
	t->ended = t->stopped = false;
	return 0;
}

/* The first look: all that was there when we came is in the files, and known */
static int wait_for_beginning(struct tail *t, struct fault *why)
{
	uint64_t end = now_usec(CLOCK_MONOTONIC) + FIRST_WAIT_USEC;
	bool gone;

	while (t->rounds < ROUNDS_FIRST && !t->ended) {
		uint64_t now = now_usec(CLOCK_MONOTONIC);
		int r;

		if (now >= end)
			return fault_set(why, -ETIMEDOUT,
					 "flyrecd does not get events onto the disk for %d s",
					 (int)(FIRST_WAIT_USEC / USEC_PER_SEC));
		wait_for_news(t, (int)((end - now + 999) / 1000), &gone);
		r = tail_receive(t, why);
		if (r < 0)
			return r;
		if (gone)
			return TAIL_E_PIPE;
	}
	return 0;
}

static int follow(struct tail *t, struct fault *why)
{
	for (;;) {
		bool gone = false;
		int r = tail_print(t, why);

		if (r != 0)
			return r;
		if (t->ended)
			r = reconnect(t, why);
		else
			wait_for_news(t, -1, &gone);
		if (gone)
			return TAIL_E_PIPE;
		if (r == 0)
			r = tail_receive(t, why);
		if (r != 0)
			return r;
	}
}

/* Silence would read as "nothing is traced" */
static void say_nothing(const struct tail *t)
{
	const struct ctl *ctl = t->ctl;

	if (t->printed == 0 && (ctl->events || ctl->pids || ctl->cpus || ctl->since || ctl->until))
		tail_complain("session %s: none of its events is one that was asked for",
			      t->session);
	else if (t->printed == 0)
		tail_complain("session %s: no events yet", t->session);
}

/* What it has, without the live file, which the daemon does not give for the reason @why */
static int run_stopped(struct tail *t, uint64_t lines, struct fault *why)
{
	const struct fault reason = *why;
	int r = tail_start(t, lines, why);

	if (r < 0)
		return r;
	if (!t->first) {
		*why = reason;
		return reason.error;
	}
	tail_complain("%s; these are the last events in its files", reason.text);
	r = tail_print(t, why);
	if (r >= 0 && lines > 0)
		say_nothing(t);
	return r;
}

static int run(struct tail *t, uint64_t lines, struct fault *why)
{
	_cleanup_free_ char *name = NULL;
	int r = tail_stream_open(t->bus, t->session, &t->stream, &name, why);

	/* What was recorded before can be looked at all the same */
	if (r < 0 && !t->ctl->follow && name &&
	    strcmp(name, "org.flyrec.Recorder1.Error.NotRecording") == 0)
		return run_stopped(t, lines, why);
	if (r >= 0)
		r = wait_for_beginning(t, why);
	if (r != 0)
		return r;
	r = tail_start(t, lines, why);
	if (r >= 0)
		r = t->ctl->follow ? follow(t, why) : tail_print(t, why);
	if (r == 0 && lines > 0)
		say_nothing(t);
	return r;
}

/* --- options */

static bool parse_lines(const struct ctl *ctl, uint64_t *ret)
{
	char *end;

	*ret = ctl->since ? UINT64_MAX : LINES_DEFAULT;
	if (!ctl->lines)
		return true;
	if (strcmp(ctl->lines, "all") == 0) {
		*ret = UINT64_MAX;
		return true;
	}
	errno = 0;
	*ret = strtoull(ctl->lines, &end, 10);
	if (*ctl->lines >= '0' && *ctl->lines <= '9' && *end == '\0' && errno == 0)
		return true;
	tail_complain("--lines=: not understood: \"%s\"", ctl->lines);
	return false;
}

static bool check_time(const struct ctl *ctl)
{
	enum event_time_mode mode;

	if (ctl->time && ctl->json)
		tail_complain("--time= is for text, with --json times are nanoseconds");
	else if (ctl->time && !event_time_parse(ctl->time, &mode))
		tail_complain("--time=: \"%s\" is none of epoch, local, utc, trace", ctl->time);
	else if (ctl->time && mode == EVENT_TIME_TRIGGER)
		tail_complain("--time=trigger is for snapshots: flyrecctl export "
			      "--format=text --time=trigger FILE");
	else
		return true;
	return false;
}

/* Over there it looks at that machine's clock, for --since=-5min as well */
static enum ctl_status run_remote(const struct ctl *ctl, const char *session)
{
	const enum text_escape escape = output_escape(ctl, STDOUT_FILENO);
	_cleanup_(strv_freep) char **words = NULL;
	int r = strv_append(&words, "tail");

	if (r >= 0 && ctl->json)
		r = strv_append(&words, "--json");
	if (r >= 0 && escape != TEXT_LINES) /* what is a pipe over there is our terminal */
		r = strv_append(&words, escape == TEXT_RAW ? "--raw=yes" : "--raw=no");
	if (r >= 0)
		r = command_words(ctl, &words);
	if (r >= 0)
		r = strv_append(&words, "--");
	if (r >= 0)
		r = strv_append(&words, session);
	if (r < 0) {
		tail_complain("out of memory");
		return CTL_FAILED;
	}
	return remote_run(ctl, (const char *const *)words, STDOUT_FILENO);
}

enum ctl_status verb_tail(const struct ctl *ctl, int argc, char **argv)
{
	struct tail t = {.ctl = ctl, .stream = -EBADF};
	enum ctl_status status = CTL_USAGE;
	struct fault why = {};
	uint64_t lines;
	int r;

	if (argc != 2) {
		tail_complain("one SESSION is wanted");
		return CTL_USAGE;
	}
	if (!check_time(ctl))
		return CTL_USAGE;
	t.session = argv[1];
	if (parse_lines(ctl, &lines) && events_filter(&t.filter, ctl, "tail")) {
		status = CTL_FAILED;
		if (ctl->host) {
			status = run_remote(ctl, t.session);
		} else if (bus_connect(ctl, "tail", &t.bus) >= 0) {
			(void)signal(SIGPIPE, SIG_IGN);
			r = run(&t, lines, &why);
			if (r < 0)
				tail_complain("%s", why.text);
			else /* also where they have seen enough */
				status = CTL_DONE;
		}
	}
	tail_done(&t);
	return status;
}
