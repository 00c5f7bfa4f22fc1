/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/log.h"
#include "ctl/output.h"
#include "ctl/tail-run.h"
#include "ctl/tail-stream.h"

#define WRITE_SIZE     (64 * KIB)
#define EVENTS_AT_ONCE 4096U /* before the daemon is listened to again */

void tail_complain(const char *format, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	log_error("tail: %s", text);
}

void tail_done(struct tail *t)
{
	while (t->first) {
		struct tail_segment *s = t->first;

		t->first = s->next;
		tail_segment_free(s);
	}
	close_p(&t->stream);
	sd_bus_close_unref(t->bus);
	text_done(&t->text);
	event_filter_done(&t->filter);
}

static void say_skipped(uint64_t segments, uint64_t bytes, const char *reason)
{
	_cleanup_free_ char *text = format_bytes(bytes);

	if (segments > 0)
		tail_complain("skipped %llu segments, %s: %s", (unsigned long long)segments,
			      text ? text : "?", reason);
	else
		tail_complain("skipped %s: %s", text ? text : "?", reason);
}

/* --- what the daemon tells */

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
	tail_stream_arrived(t->stream);
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
	if (asprintf(&path, "%s/record/current.dat", t->session) < 0)
		path = NULL;
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

int tail_receive(struct tail *t, struct fault *why)
{
	int r = 0;

	while (!t->ended && t->stream >= 0 && r >= 0) {
		_cleanup_free_ struct tail_message *m = NULL;
		int fd = -EBADF;

		r = tail_stream_receive(t->stream, &m, &fd);
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

static int ask_for_file(struct tail *t, const char *path, int *ret, struct fault *why)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_message_ sd_bus_message *reply = NULL;
	int fd, r;

	r = sd_bus_call_method(t->bus, NULL, BUS_PATH, BUS_MANAGER, "OpenFile", &error, &reply,
			       "ss", t->session, path);
	if (r < 0 && error.name && strcmp(error.name, "org.flyrec.Recorder1.Error.NotFound") == 0)
		return -ENOENT;
	if (r >= 0)
		r = sd_bus_message_read(reply, "h", &fd);
	if (r < 0)
		return fault_set(why, r, "%s: %s", path,
				 error.message ? error.message : strerror(-r));
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return fault_errno(why, -errno, "%s", path);
	*ret = fd;
	return 0;
}

int tail_open_finished(struct tail *t, struct tail_segment *s, const struct tail_segment *before,
		       struct fault *why)
{
	struct event_filter filter = t->filter;
	int fd = -EBADF, r;

	r = ask_for_file(t, s->path, &fd, why);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
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
		int r = tail_open_finished(t, s, before, why);

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
	int r;

	if (t->text.no_memory)
		return fault_errno(why, -ENOMEM, "cannot print");
	if (t->text.size == 0)
		return 0;
	r = io_write_all(STDOUT_FILENO, t->text.bytes, t->text.size);
	t->text.size = 0;
	if (r == -EPIPE)
		return TAIL_E_PIPE;
	return r < 0 ? fault_errno(why, r, "cannot write") : 0;
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

int tail_print(struct tail *t, struct fault *why)
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
			r = tail_receive(t, why);
			leave_removed(t);
		}
		if (r != 0)
			return r;
	}
	return r < 0 ? r : write_out(t, why);
}
