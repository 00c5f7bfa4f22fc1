/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A tail at work: the segments from the one that is being printed to the one that is being
 * recorded, and what is complete of them. Memory is bounded: of the live files there are two at
 * most, of those that were finished before two are open at a time. Main thread.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "ctl/bus.h"
#include "ctl/command.h"
#include "ctl/output.h"
#include "ctl/tail-segment.h"
#include "ctl/view.h"
#include "formats/tail-message.h"

#define WRITE_SIZE     (64 * KIB)
#define EVENTS_AT_ONCE 4096U /* before the daemon is listened to again */
#define LINES_DEFAULT  10

#define ROUNDS_FIRST	 2 /* after so many all that was there at the beginning is known */
#define FIRST_WAIT_USEC	 (10 * USEC_PER_SEC) /* for these */
#define RETRY_MSEC	 100
#define DAEMON_WAIT_USEC (10 * USEC_PER_SEC) /* for a daemon that restarts */
#define START_WAIT_USEC	 (3 * USEC_PER_SEC)  /* for a session that restarts */

enum {
	TAIL_E_PIPE = OUT_FILE_E_PIPE, /* whoever read the output has gone */
	TAIL_E_DONE,		       /* --until= is over */
};

struct tail {
	struct ctl *ctl;
	const char *session;
	int stream; /* -EBADF: none */
	struct event_filter filter;

	struct tail_segment *first, *last;
	bool live;		/* last is being recorded */
	uint64_t bound;		/* key up to which all events are in the files */
	uint64_t newest;	/* key of the newest event in the files, as of the last message */
	unsigned rounds;	/* told of */
	bool ended;		/* nothing more comes over the stream */
	bool stopped;		/* because the session was stopped */
	uint64_t printed;	/* events */
	uint64_t skip;		/* events to be left out at the beginning */
	struct event_days days; /* of what was printed */
	struct text text;	/* to be written */
};

static void tail_done(struct tail *t)
{
	while (t->first) {
		struct tail_segment *s = t->first;

		t->first = s->next;
		tail_segment_free(s);
	}
	close_p(&t->stream);
	text_done(&t->text);
	event_filter_done(&t->filter);
}

static void say_skipped(uint64_t segments, uint64_t bytes, const char *reason)
{
	_cleanup_free_ char *text = format_bytes(bytes);

	if (segments > 0)
		log_error("tail: skipped %llu segments, %s: %s", (unsigned long long)segments,
			  text ? text : "?", reason);
	else
		log_error("tail: skipped %s: %s", text ? text : "?", reason);
}

/* --- what the daemon tells, see formats/tail-message.h */

static int take_fd(struct msghdr *message)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -EBADF;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/*
 * The next message
 * @ret_fd: what came with it, -EBADF: nothing
 * Return: 1, 0 none now, -ECONNRESET the daemon has hung up, or negative errno.
 */
static int next_message(int fd, struct tail_message **ret, int *ret_fd)
{
	const size_t room = sizeof(struct tail_message) + TAIL_CPUS_MAX * sizeof(uint64_t);
	_cleanup_free_ struct tail_message *message = malloc(room);
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = message, .iov_len = room};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.bytes),
	};
	_cleanup_close_ int passed = -EBADF;
	ssize_t n;

	if (!message)
		return -ENOMEM;
	n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -ECONNRESET;
	passed = take_fd(&m);
	if ((size_t)n < sizeof(*message) || message->n_cpus > TAIL_CPUS_MAX ||
	    (size_t)n != sizeof(*message) + message->n_cpus * sizeof(uint64_t) ||
	    (message->type == TAIL_SEGMENT) != (passed >= 0))
		return -EBADMSG;
	*ret = TAKE_PTR(message);
	*ret_fd = TAKE_FD(passed);
	return 1;
}

static void append(struct tail *t, struct tail_segment *s)
{
	if (t->last)
		t->last->next = s;
	else
		t->first = s;
	t->last = s;
	t->live = true;
}

/* Nothing is added to the last segment any more */
static int complete_last(struct tail *t, struct fault *why)
{
	int r;

	if (!t->live || t->last->complete)
		return 0;
	r = tail_segment_grow(t->last, NULL, why);
	if (r < 0)
		return r;
	t->last->complete = true;
	t->newest = MAX(t->newest, tail_segment_newest(t->last));
	return 0;
}

static bool same_file(const struct tail_segment *s, int fd)
{
	struct stat st;

	return fstat(fd, &st) >= 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

/* The daemon may tell of the segment after this one */
static void arrive(struct tail *t)
{
	t->last->arrived = true;
	(void)send(t->stream, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int on_segment(struct tail *t, const struct tail_message *m, int fd, struct fault *why)
{
	_cleanup_(tail_segment_freep) struct tail_segment *s = NULL;
	_cleanup_free_ char *path = NULL;
	int r;

	if (m->skipped_segments > 0)
		say_skipped(m->skipped_segments, m->skipped_bytes, "reading was too slow");
	if (t->live && same_file(t->last, fd)) { /* the next daemon goes on with it */
		close(fd);
		t->last->number = m->segment;
		t->last->complete = false;
		arrive(t);
		return 0;
	}
	path = strf("%s/record/current.dat", t->session);
	s = path ? tail_segment_new(path) : NULL;
	if (!s) {
		close(fd);
		return fault_errno(why, -ENOMEM, "cannot go on");
	}
	r = tail_segment_open(s, fd, &t->filter, t->live ? t->last : NULL, t->ctl, why);
	if (r < 0)
		return r;
	s->number = m->segment;
	r = complete_last(t, why);
	if (r < 0)
		return r;
	if (t->live)
		tail_segment_inherit_names(s, t->last);
	/* Of the next ones no more is expected than of this one */
	t->filter.lenient = true;
	append(t, TAKE_PTR(s));
	if (t->first == t->last)
		arrive(t);
	return 0;
}

/* formats/tail-message.h says why */
static int on_round(struct tail *t, const struct tail_message *m, struct fault *why)
{
	struct tail_segment *s = t->live ? t->last : NULL;
	uint64_t bound = t->newest;
	int r;

	if (!s || m->segment < s->number)
		return 0;
	if (m->segment == s->number) {
		if (m->n_cpus != s->dat->n_cpus)
			return fault_set(why, -EBADMSG, "flyrecd tells of %u CPUs, %s has %u",
					 m->n_cpus, s->path, s->dat->n_cpus);
		r = tail_segment_grow(s, m->sizes, why);
		/* Of such a CPU what is not in the file is later than what is, and no more */
		for (uint32_t cpu = 0; cpu < m->n_cpus && r >= 0; cpu++)
			if (m->sizes[cpu] & TAIL_BEHIND)
				bound = MIN(bound, s->last[cpu]);
		t->newest = MAX(t->newest, tail_segment_newest(s));
	} else {
		r = complete_last(t, why);
	}
	t->bound = MAX(t->bound, bound);
	t->rounds++;
	return r;
}

static int on_end(struct tail *t, const struct tail_message *m, struct fault *why)
{
	int r = 0;

	t->ended = true;
	t->stopped = m->segment == TAIL_END_STOPPED;
	if (t->stopped) {
		r = complete_last(t, why);
		t->bound = UINT64_MAX;
	}
	return r;
}

/* Take in what the daemon has told */
static int receive(struct tail *t, struct fault *why)
{
	int r = 0;

	while (!t->ended && t->stream >= 0 && r >= 0) {
		_cleanup_free_ struct tail_message *m = NULL;
		int fd = -EBADF;

		r = next_message(t->stream, &m, &fd);
		if (r == 0)
			return 0;
		if (r == -ECONNRESET || r == -EPIPE) {
			t->ended = true;
			return 0;
		}
		if (r < 0)
			return fault_errno(why, r, "cannot make sense of flyrecd");
		if (m->type == TAIL_SEGMENT)
			r = on_segment(t, m, fd, why);
		else if (m->type == TAIL_ROUND)
			r = on_round(t, m, why);
		else if (m->type == TAIL_END)
			r = on_end(t, m, why);
	}
	return r;
}

/* --- printing */

/*
 * A segment that was finished before the tail began
 * Return: 1, 0 it is gone or is one of the live ones, or negative errno with the story in @why.
 */
static int open_finished(struct tail *t, struct tail_segment *s, const struct tail_segment *before,
			 struct fault *why)
{
	struct event_filter filter = t->filter;
	int fd = bus_call_fd(t->ctl, why, NULL, "OpenFile", "ss", t->session, s->path), r;

	if (fd < 0)
		return fd == BUS_E_NOT_FOUND ? 0 : fd;
	for (const struct tail_segment *other = t->first; other; other = other->next)
		if (other->number > 0 && same_file(other, fd)) {
			close(fd);
			return 0;
		}
	filter.lenient |= t->live;
	r = tail_segment_open(s, fd, &filter, t->live ? t->last : before, t->ctl, why);
	if (r >= 0)
		r = tail_segment_grow(s, NULL, why);
	if (r < 0)
		return r;
	s->filter.from = MAX(s->filter.from, s->from);
	s->complete = true;
	return 1;
}

static void drop_first(struct tail *t)
{
	struct tail_segment *s = t->first;

	t->first = s->next;
	if (!t->first)
		t->last = NULL;
	tail_segment_free(s);
	if (t->live && t->first == t->last && !t->last->arrived)
		arrive(t);
}

/* Open a finished one at its turn; what has been removed meanwhile is left out */
static int open_at_turn(struct tail *t, const struct tail_segment *before, struct tail_segment **p,
			struct fault *why)
{
	struct tail_segment *s;

	while ((s = *p) && s->fd < 0) {
		int r = open_finished(t, s, before, why);

		if (r != 0)
			return r < 0 ? r : 0;
		*p = s->next;
		if (t->last == s)
			t->last = NULL;
		tail_segment_free(s);
	}
	return 0;
}

static int peek(struct tail *t, struct tail_segment *s, uint64_t *ret, struct fault *why)
{
	return tail_segment_peek(s, s->number > 0 ? t->bound : UINT64_MAX, ret, why);
}

/*
 * The segment with the next event. CPUs change over to a new segment one after the other, so that
 * two may overlap: 1, 0 none now, or negative errno.
 */
static int choose(struct tail *t, struct tail_segment **ret, uint64_t *ret_key, struct fault *why)
{
	for (;;) {
		uint64_t key, other;
		int r = open_at_turn(t, NULL, &t->first, why), q = 0;
		struct tail_segment *s = t->first;

		if (r < 0 || !s)
			return r;
		r = peek(t, s, &key, why);
		if (r == 0 && s->complete && s->next &&
		    tail_segment_peek(s, UINT64_MAX, &other, why) == 0) {
			drop_first(t);
			continue;
		}
		if (r >= 0 && s->complete)
			q = open_at_turn(t, s, &s->next, why);
		if (r >= 0 && q >= 0 && s->complete && s->next)
			q = peek(t, s->next, &other, why);
		if (r < 0 || q < 0 || (r == 0 && q == 0))
			return MIN(r, q);
		*ret = r > 0 && (q == 0 || key <= other) ? s : s->next;
		*ret_key = *ret == s ? key : other;
		return 1;
	}
}

static int write_out(struct tail *t, struct fault *why)
{
	size_t size = t->text.size;

	if (t->text.no_memory)
		return fault_errno(why, -ENOMEM, "cannot print");
	t->text.size = 0;
	return size > 0 ? out_file_write(STDOUT_FILENO, t->text.bytes, size, why) : 0;
}

/* A file that has been removed takes room on the disk as long as we have it open */
static void leave_removed(struct tail *t)
{
	struct stat st;

	while (t->first && t->first->next && t->first->fd >= 0 && t->first->complete &&
	       fstat(t->first->fd, &st) >= 0 && st.st_nlink == 0) {
		if (tail_segment_left(t->first) > 0)
			say_skipped(0, tail_segment_left(t->first),
				    "the segment was removed before it was read");
		drop_first(t);
	}
}

/*
 * What is complete
 * Return: 0, TAIL_E_PIPE, TAIL_E_DONE, or negative errno with the story in @why.
 */
static int print(struct tail *t, struct fault *why)
{
	struct tail_segment *s = NULL;
	uint64_t key = 0;
	size_t before;
	int r;

	for (unsigned n = 1; (r = choose(t, &s, &key, why)) > 0; n++) {
		if (tail_segment_past(s, key)) {
			r = write_out(t, why);
			return r == 0 ? TAIL_E_DONE : r;
		}
		before = t->text.size;
		r = tail_segment_print(s, &t->skip, &t->days, &t->text, why);
		t->printed += t->text.size > before;
		if (r >= 0 && t->text.size >= WRITE_SIZE)
			r = write_out(t, why);
		if (r == 0 && n % EVENTS_AT_ONCE == 0 && t->ctl->follow) {
			r = receive(t, why);
			leave_removed(t);
		}
		if (r != 0)
			return r;
	}
	return r < 0 ? r : write_out(t, why);
}

/* --- where to begin: the last N events, or those since a time */

/* In front of the others; opened when it is its turn */
static int prepend(struct tail *t, const char *path, uint64_t from, struct fault *why)
{
	struct tail_segment *s = tail_segment_new(path);

	if (!s)
		return fault_errno(why, -ENOMEM, "cannot begin");
	s->from = from;
	s->next = t->first;
	t->first = s;
	if (!t->last)
		t->last = s;
	return 0;
}

/* Count in a finished one: Return: 1, 0 it is not to be read, or negative errno */
static int count_finished(struct tail *t, const char *path, uint64_t enough, uint64_t *ret_count,
			  uint64_t *ret_from, struct fault *why)
{
	_cleanup_(tail_segment_freep) struct tail_segment *s = tail_segment_new(path);
	int r;

	if (!s)
		return fault_errno(why, -ENOMEM, "cannot begin");
	r = open_finished(t, s, NULL, why);
	if (r > 0)
		r = tail_segment_count(s, UINT64_MAX, enough, ret_count, ret_from, why);
	return r < 0 ? r : s->fd >= 0;
}

static bool is_wanted(const struct tail *t, const struct view_file *file)
{
	const struct event_filter_time *since = &t->filter.since;
	const char *name = strrchr(file->path, '/');

	return strcmp(file->kind, "segment") == 0 && name && strcmp(name, "/current.dat") != 0 &&
	       (!since->set || !since->realtime || file->end_usec >= since->value);
}

/* Back through what was finished before, until there are enough events */
static int go_back(struct tail *t, uint64_t lines, struct fault *why)
{
	struct view_files files = {};
	int r = view_read_files(t->ctl, t->session, &files);

	if (r < 0)
		return fault_set(why, r, "cannot list what was recorded before");
	for (size_t i = files.n; i-- > 0 && r >= 0 && lines > 0;) {
		uint64_t count = 0, from = 0;

		if (!is_wanted(t, &files.files[i]))
			continue;
		r = 1;
		if (lines != UINT64_MAX)
			r = count_finished(t, files.files[i].path, lines, &count, &from, why);
		if (r <= 0)
			continue;
		r = prepend(t, files.files[i].path, from, why);
		if (lines == UINT64_MAX)
			continue;
		t->skip = count > lines ? count - lines : 0;
		lines -= MIN(count, lines);
	}
	view_done(view_files_fields, &files);
	return r < 0 ? r : 0;
}

/*
 * Choose the first event, before print()
 * @lines: so many of the last events; UINT64_MAX: all
 */
static int start(struct tail *t, uint64_t lines, struct fault *why)
{
	struct tail_segment *s = t->last;
	uint64_t count = 0, from = 0;
	int r;

	if (s && lines == 0) {
		s->filter.from = MAX(s->filter.from, t->bound + 1);
		return 0;
	}
	if (s && lines != UINT64_MAX) {
		r = tail_segment_count(s, t->bound, lines, &count, &from, why);
		if (r < 0)
			return r;
		s->filter.from = MAX(s->filter.from, from);
		t->skip = count > lines ? count - lines : 0;
		lines -= MIN(count, lines);
	}
	return lines > 0 ? go_back(t, lines, why) : 0;
}

/* --- following */

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

static int open_stream(struct tail *t, struct fault *why)
{
	t->stream = bus_call_fd(t->ctl, why, t->session, "OpenTail", NULL);
	return MIN(t->stream, 0);
}

static bool is_restarting(int error)
{
	return error == BUS_E_NOT_RECORDING || error == BUS_E_NO_SUCH_SESSION || error == -ENOENT ||
	       error == -ECONNREFUSED || error == -ECONNRESET || error == -ENOTCONN ||
	       error == -EPIPE;
}

/* It has hung up: another daemon may take its place, or the session is started again */
static int reconnect(struct tail *t, struct fault *why)
{
	uint64_t begin = now_usec(CLOCK_MONOTONIC), refused = 0;

	close_p(&t->stream);
	for (;;) {
		uint64_t now;
		bool gone;
		int r;

		bus_close(t->ctl);
		r = open_stream(t, why);
		if (r >= 0)
			break;
		now = now_usec(CLOCK_MONOTONIC);
		if (!t->ctl->bus)
			(void)fault_errno(why, r, "flyrecd has gone");
		else if (refused == 0)
			refused = now;
		if (!is_restarting(r) || now - begin > DAEMON_WAIT_USEC ||
		    (refused > 0 && now - refused > START_WAIT_USEC))
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
		r = receive(t, why);
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
		int r = print(t, why);

		if (r != 0)
			return r;
		if (t->ended)
			r = reconnect(t, why);
		else
			wait_for_news(t, -1, &gone);
		if (gone)
			return TAIL_E_PIPE;
		if (r == 0)
			r = receive(t, why);
		if (r != 0)
			return r;
	}
}

/* Silence would read as "nothing is traced" */
static void say_nothing(const struct tail *t)
{
	const struct ctl *ctl = t->ctl;

	if (t->printed == 0 && (ctl->events || ctl->pids || ctl->cpus || ctl->since || ctl->until))
		log_error("tail: session %s: none of its events is one that was asked for",
			  t->session);
	else if (t->printed == 0)
		log_error("tail: session %s: no events yet", t->session);
}

/* What it has, without the live file, which the daemon does not give for the reason @why */
static int run_stopped(struct tail *t, uint64_t lines, struct fault *why)
{
	const struct fault reason = *why;
	int r = start(t, lines, why);

	if (r < 0)
		return r;
	if (!t->first) {
		*why = reason;
		return reason.error;
	}
	log_error("tail: %s; these are the last events in its files", reason.text);
	r = print(t, why);
	if (r >= 0 && lines > 0)
		say_nothing(t);
	return r;
}

static int run(struct tail *t, uint64_t lines, struct fault *why)
{
	int r = open_stream(t, why);

	/* What was recorded before can be looked at all the same */
	if (r == BUS_E_NOT_RECORDING && !t->ctl->follow)
		return run_stopped(t, lines, why);
	if (r >= 0)
		r = wait_for_beginning(t, why);
	if (r != 0)
		return r;
	r = start(t, lines, why);
	if (r >= 0)
		r = t->ctl->follow ? follow(t, why) : print(t, why);
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
	log_error("tail: --lines=: not understood: \"%s\"", ctl->lines);
	return false;
}

static enum ctl_status check_time(const struct ctl *ctl)
{
	enum event_time_mode mode;

	if (ctl->time && ctl->json)
		return ctl_complain(ctl, "--time= is for text, with --json times are nanoseconds");
	if (ctl->time && !event_time_parse(ctl->time, &mode))
		return ctl_complain(ctl, "--time=: \"%s\" is none of epoch, local, utc, trace",
				    ctl->time);
	if (ctl->time && mode == EVENT_TIME_TRIGGER)
		return ctl_complain(ctl, "--time=trigger is for snapshots: flyrecctl export "
					 "--format=text --time=trigger FILE");
	return CTL_DONE;
}

enum ctl_status verb_tail(struct ctl *ctl, int argc, char **argv)
{
	struct tail t = {.ctl = ctl, .stream = -EBADF};
	enum ctl_status status = CTL_USAGE;
	struct fault why = {};
	uint64_t lines;
	int r;

	if (argc != 2)
		return ctl_complain(ctl, "one SESSION is wanted");
	if (check_time(ctl) != CTL_DONE)
		return CTL_USAGE;
	t.session = argv[1];
	if (parse_lines(ctl, &lines) && command_filter(ctl, &t.filter)) {
		(void)signal(SIGPIPE, SIG_IGN);
		r = run(&t, lines, &why);
		if (r < 0)
			log_error("tail: %s", why.text);
		/* also done where they have seen enough */
		status = r < 0 ? CTL_FAILED : CTL_DONE;
	}
	tail_done(&t);
	return status;
}
