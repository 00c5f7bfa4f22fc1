/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "analysis/latency.h"
#include "analysis/words.h"
#include "basic/confine.h"
#include "basic/io.h"
#include "daemon/latency/latency-process.h"
#include "decode/event-stream.h"
#include "formats/tail-message.h"
#include "formats/trace-dat-read.h"

#define WAIT_MSEC 200	    /* for flyrecd, once in a round */
#define LOOK_MSEC 1000	    /* at a flight session's ring buffer: one wake-up a second */
#define MEMORY	  (4 * MIB) /* for reading a file, all CPUs */
/* Since the last round: who traces more shall have the disk and the CPUs for that */
#define BEHIND_MAX  (64 * MIB)
#define TASKS_MAX   (SPANS_TASKS_MAX / 2)
#define LATE_NSEC   (NSEC_PER_SEC / 1000) /* an interrupt may hold up whoever writes an event */
#define CLOCK_NSEC  INT64_C(5000000)	  /* between two files: somebody has set the clock */
#define ALIGNMENT   4096U		  /* as for event_stream_config.aligned */
#define MESSAGE_MAX (sizeof(struct tail_message) + TAIL_CPUS_MAX * sizeof(uint64_t))

enum {
	BEGIN_ANEW = 1, /* what was going on is not known any more: another process goes on */
};

/* One file of a record session, or that without data by which a ring buffer's events are read */
struct segment {
	int fd;
	struct trace_dat *dat;
	struct decoder *decoder;
	struct subbuf_pick *pick;
	struct thin *thin;
	struct event_stream *stream; /* NULL: not before it is known from when on it is wanted */
	struct spans_file *spans;
	uint64_t *sizes; /* [dat->n_cpus] */
	uint64_t *given; /* likewise: so much was given back */
	bool direct;	 /* it can be read with O_DIRECT */
	bool complete;	 /* it does not grow any more */
};

struct process {
	const struct latency_feed *feed;
	const struct latency_config *conditions;
	size_t n;
	int output;
	struct latency *latency;
	struct sources_facts facts;
	struct segment old, now; /* old: while the rest of it is read */
	struct latency_ring *ring;
	struct tail_message *message;
	uint64_t number;	    /* of now, as the daemon counts segments */
	struct event_filter filter; /* nothing but the time of the first event wanted */
	uint32_t *left_out;	    /* by condition: hits that flyrecd had no time for */
	bool late;		    /* it has had none in this round */
};

/* --- what it says */

/* Return: 0, -EAGAIN: flyrecd has had no time for it; without a peer we end soon: another */
static int say(struct process *p, const struct latency_message *message)
{
	struct pollfd fd = {.fd = p->output, .events = POLLOUT};

	if (write(p->output, message, sizeof(*message)) >= 0)
		return 0;
	if (errno != EAGAIN || p->late)
		return -errno;
	p->late = poll(&fd, 1, WAIT_MSEC) <= 0;
	if (p->late)
		return -EAGAIN;
	return write(p->output, message, sizeof(*message)) < 0 ? -errno : 0;
}

/* At the end of a round: hits that there was no time for are counted at least */
static int say_left_out(struct process *p)
{
	int r = 0;

	p->late = false;
	for (size_t i = 0; i < p->n && r >= 0; i++) {
		const struct latency_message message = {
			.type = LATENCY_LEFT_OUT,
			.condition = (uint32_t)i,
			.left_out = p->left_out[i],
		};

		if (message.left_out == 0)
			continue;
		r = say(p, &message);
		if (r >= 0)
			p->left_out[i] = 0;
	}
	return r == -EAGAIN ? 0 : r;
}

static _Noreturn void fail(struct process *p, const struct fault *why)
{
	struct latency_message message = {.type = LATENCY_FAILED};

	(void)snprintf(message.text, sizeof(message.text), "%.255s", why->text);
	(void)say(p, &message);
	_exit(1);
}

static int on_hit(void *userdata, size_t condition, const struct span *span)
{
	struct process *p = userdata;
	struct latency_message message = {
		.type = LATENCY_HIT,
		.condition = (uint32_t)condition,
		.cpu = span->cpu,
		.open = span->open,
		.preempted = span->preempted,
		.waker = span->waker,
		.nsec = span->to - span->from,
		.at_usec = analysis_usec(&p->facts, span->to),
	};
	int r;

	if (span->task) {
		message.pid = span->task->pid;
		memcpy(message.comm, span->task->comm, sizeof(message.comm));
	}
	if (span->waker_task) {
		message.waker_pid = span->waker_task->pid;
		memcpy(message.waker_comm, span->waker_task->comm, sizeof(message.waker_comm));
	}
	if (span->label && span->kind != SPAN_BLOCKED) {
		_cleanup_free_ char *label = analysis_label(&p->facts, span->label);
		_cleanup_free_ char *device =
			span->kind == SPAN_BLOCK ? analysis_device(span->label->number) : NULL;

		(void)snprintf(message.text, sizeof(message.text), "%s%s%s", label ? label : "",
			       device ? " " : "", device ? device : "");
	}
	r = say(p, &message);
	if (r == -EAGAIN)
		p->left_out[condition]++;
	return r == -EAGAIN ? 0 : r;
}

/* --- files */

static void segment_close(struct segment *s)
{
	spans_file_free(s->spans);
	event_stream_free(s->stream);
	free(s->pick);
	free(s->thin);
	decoder_free(s->decoder);
	trace_dat_free(s->dat);
	free(s->sizes);
	free(s->given);
	close_p(&s->fd);
	*s = (struct segment){.fd = -EBADF};
}

/*
 * What was just written past the page cache is not in there. To read a GB takes 0.57 s of CPU time
 * through it, 0.12 s past it (bench/latency-source). tee(2) of the worker's pipe would take 0.05 s,
 * 0.04 % of a core less at 100,000 events a second; but a pipe holds a quarter of what a
 * wake-up brings with 16 MiB a CPU, so that for the rest the file would have to be read all the
 * same, and the worker would have more to do in a storm.
 */
static void set_direct(const struct segment *s, bool on)
{
	if (s->direct)
		(void)fcntl(s->fd, F_SETFL, on ? O_DIRECT : 0);
}

static bool try_direct(struct segment *s)
{
	_cleanup_free_ void *page = aligned_alloc(ALIGNMENT, ALIGNMENT);
	bool works;

	s->direct = true;
	set_direct(s, true);
	works = page && pread(s->fd, page, ALIGNMENT, 0) == ALIGNMENT;
	set_direct(s, false);
	return works;
}

static int segment_open(struct process *p, int fd, struct segment *ret, struct fault *why)
{
	struct segment s = {.fd = fd};
	int r = trace_dat_open_fd(fd, "file", &s.dat, why);

	if (r >= 0)
		r = decoder_new(s.dat, &s.decoder, why);
	if (r >= 0)
		r = spans_file_new(latency_spans(p->latency), s.decoder, &s.spans, why);
	if (r >= 0) {
		s.sizes = calloc(s.dat->n_cpus, sizeof(*s.sizes));
		s.given = calloc(s.dat->n_cpus, sizeof(*s.given));
		s.pick = malloc(sizeof(*s.pick));
		s.thin = malloc(sizeof(*s.thin));
		r = s.sizes && s.given && s.pick && s.thin ? 0 : -ENOMEM;
		(void)(r < 0 && fault_errno(why, r, "cannot read a file"));
	}
	if (r < 0) {
		segment_close(&s);
		return r;
	}
	latency_pick(p->latency, s.spans, s.pick);
	latency_thin(p->latency, s.spans, s.thin);
	s.direct = p->feed->direct && try_direct(&s);
	p->facts.in_usecs = decoder_facts(s.decoder)->in_usecs;
	p->facts.has_date = decoder_facts(s.decoder)->has_date;
	*ret = s;
	return 0;
}

/* A ring buffer's events in place of a file's */
static ssize_t read_ring(void *userdata, uint32_t cpu, uint8_t *bytes, size_t size,
			 struct fault *why)
{
	const struct process *p = userdata;
	const unsigned subbuf_size = p->feed->ring.subbuf_size;
	int n;

	if (cpu >= p->feed->ring.n_cpus)
		return 0;
	n = latency_ring_read(p->ring, cpu, (char *)bytes, (unsigned)(size / subbuf_size));
	return n < 0 ? fault_errno(why, n, "cannot look at the ring buffer")
		     : (ssize_t)n * subbuf_size;
}

static int segment_grow(struct process *p, struct segment *s, struct fault *why)
{
	const struct event_stream_config config = {
		.filter = &p->filter,
		.pick = s->pick,
		.thin = thin_events,
		.thin_userdata = s->thin,
		.no_tasks = true,
		.sizes = p->ring ? NULL : s->sizes,
		.read = p->ring ? read_ring : NULL,
		.userdata = p,
		.memory = MEMORY,
		.aligned = !p->ring,
	};

	if (s->stream) {
		event_stream_grow(s->stream, config.sizes);
		return 0;
	}
	return event_stream_new(s->decoder, &config, &s->stream, why);
}

/* As its own table says: the last ones */
static int segment_complete(struct process *p, struct segment *s, struct fault *why)
{
	for (uint32_t cpu = 0; cpu < s->dat->n_cpus; cpu++) {
		uint64_t at = s->dat->buffers[0].regions[cpu].entry + 8;
		uint8_t bytes[8];
		int r = io_pread_all(s->fd, bytes, sizeof(bytes), at);

		if (r < 0)
			return fault_errno(why, r, "cannot read a file's sizes");
		s->sizes[cpu] = MAX(s->sizes[cpu], trace_dat_u64(s->dat, bytes));
	}
	s->complete = true;
	return segment_grow(p, s, why);
}

/* --- their events */

/* Of which of the two the next event is, and until when no other one comes first */
static int choose(struct process *p, uint64_t until, struct segment **ret, uint64_t *ret_until,
		  struct fault *why)
{
	struct segment *both[] = {&p->old, &p->now};
	uint64_t first = UINT64_MAX;

	*ret = NULL;
	*ret_until = until;
	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		uint64_t ts;
		int r;

		if (!both[i]->stream)
			continue;
		event_stream_until(both[i]->stream, UINT64_MAX);
		r = event_peek(both[i]->stream, &ts, why);
		if (r < 0)
			return r;
		if (r == 0 && both[i]->complete)
			segment_close(both[i]);
		if (r == 0 || ts > until)
			continue;
		if (*ret)
			*ret_until = MIN(*ret_until, MAX(first, ts));
		if (!*ret || ts < first) {
			*ret = both[i];
			first = ts;
		}
	}
	return 0;
}

static int take_spans(struct process *p, uint64_t until, struct fault *why)
{
	struct spans *spans = latency_spans(p->latency);
	struct event_run run;
	int r = 0;

	for (;;) {
		struct segment *from;
		uint64_t to;

		r = choose(p, until, &from, &to, why);
		if (r < 0 || !from)
			break;
		event_stream_until(from->stream, to);
		while ((r = event_stream_run(from->stream, &run, why)) > 0) {
			r = spans_run(spans, from->spans, &run);
			if (r < 0)
				return fault_errno(why, r, "cannot look for latencies");
		}
		if (r < 0)
			break;
	}
	return r;
}

/* All events up to @until, then what still goes on then */
static int take_events(struct process *p, uint64_t until, struct fault *why)
{
	int r;

	set_direct(&p->old, true);
	set_direct(&p->now, true);
	r = take_spans(p, until, why);
	set_direct(&p->old, false);
	set_direct(&p->now, false);
	if (r >= 0 && latency_tick(p->latency, until) < 0)
		r = fault_errno(why, -ENOMEM, "cannot look for latencies");
	if (r >= 0 && say_left_out(p) < 0)
		return BEGIN_ANEW; /* nobody listens */
	/* of those that have ended none is forgotten, and all are looked at */
	return r >= 0 && spans_tasks(latency_spans(p->latency)) > TASKS_MAX ? BEGIN_ANEW : r;
}

static bool is_behind(const struct process *p)
{
	return p->now.stream && event_stream_left(p->now.stream) > BEHIND_MAX;
}

/* What was read is not needed again in the page cache */
static void give_back(struct segment *s)
{
	if (event_stream_left(s->stream) > 0)
		return;
	for (uint32_t cpu = 0; cpu < s->dat->n_cpus; cpu++) {
		const off_t at = (off_t)(s->dat->buffers[0].regions[cpu].offset + s->given[cpu]);
		const off_t size = (off_t)(s->sizes[cpu] - s->given[cpu]);

		if (size > 0)
			(void)posix_fadvise(s->fd, at, size, POSIX_FADV_DONTNEED);
		s->given[cpu] = s->sizes[cpu];
	}
}

/* --- a record session */

static int receive(const struct process *p, size_t *ret_size, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct iovec iov = {.iov_base = p->message, .iov_len = MESSAGE_MAX};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	const struct cmsghdr *c;
	ssize_t n =
		TEMP_FAILURE_RETRY(recvmsg(p->feed->tail_fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));

	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	c = CMSG_FIRSTHDR(&m);
	*ret_fd = -EBADF;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	*ret_size = (size_t)n;
	return 0;
}

/* Has somebody set the clock between the two, so that their times do not compare? */
static bool compare(const struct segment *a, const struct segment *b)
{
	int64_t difference =
		(int64_t)(decoder_facts(a->decoder)->offset - decoder_facts(b->decoder)->offset);

	return difference < CLOCK_NSEC && difference > -CLOCK_NSEC;
}

static int on_segment(struct process *p, int fd, struct fault *why)
{
	struct segment next;
	int r;

	if (fd < 0)
		return fault_set(why, -EPROTO, "a message without its file");
	r = segment_open(p, fd, &next, why);
	if (r < 0)
		return r;
	if (write(p->feed->tail_fd, "", 1) < 0) /* arrived; a failure shows with the next read */
		errno = 0;
	if (p->message->skipped_segments > 0 || (p->now.dat && !compare(&p->now, &next)) ||
	    p->old.dat) {
		segment_close(&next);
		return BEGIN_ANEW;
	}
	if (p->now.stream) {
		p->old = p->now;
		r = segment_complete(p, &p->old, why);
	} else if (p->now.dat) { /* nothing of it was wanted yet */
		segment_close(&p->now);
	}
	p->now = next;
	p->number = p->message->segment;
	return r;
}

/* From now on it is known what goes on */
static int begin_at(struct process *p, uint64_t from)
{
	const struct latency_message watching = {.type = LATENCY_WATCHING};

	p->filter.from = from;
	return say(p, &watching);
}

/* What a CPU had more to give is not there: up to its last event in the file all is known */
static int last_time(const struct segment *s, uint32_t cpu, uint64_t *ret, struct fault *why)
{
	const uint32_t size = s->dat->page_size;
	_cleanup_free_ uint8_t *subbuf = malloc(size);
	struct subbuf_info info = {};
	int r = 0;

	if (!subbuf)
		return fault_errno(why, -ENOMEM, "cannot read a file");
	if (s->sizes[cpu] >= size)
		r = trace_dat_read(s->dat, subbuf, size,
				   s->dat->buffers[0].regions[cpu].offset + s->sizes[cpu] - size,
				   why);
	if (r >= 0 && s->sizes[cpu] >= size)
		(void)subbuf_check(&s->dat->layout, subbuf, NULL, &info, NULL);
	*ret = info.last_ts ? decoder_time(s->decoder, info.last_ts) : 0;
	return MIN(r, 0);
}

static int on_round(struct process *p, struct fault *why)
{
	const struct tail_message *m = p->message;
	struct segment *s = &p->now;
	uint64_t until;
	int r;

	if (!s->dat || m->n_cpus != s->dat->n_cpus)
		return fault_set(why, -EPROTO, "a round without a file");
	until = decoder_time(s->decoder, m->skipped_bytes - MIN(m->skipped_bytes, LATE_NSEC));
	if (p->filter.from == 0 && begin_at(p, until) < 0)
		return BEGIN_ANEW;
	for (uint32_t cpu = 0; cpu < m->n_cpus; cpu++) {
		uint64_t last = 0;

		s->sizes[cpu] = MAX(s->sizes[cpu], m->sizes[cpu] & ~(uint64_t)TAIL_BEHIND);
		if (!(m->sizes[cpu] & TAIL_BEHIND))
			continue;
		r = last_time(s, cpu, &last, why);
		if (r < 0)
			return r;
		until = MIN(until, last);
	}
	r = segment_grow(p, s, why);
	if (r < 0)
		return r;
	if (is_behind(p))
		return fault_set(why, -EOVERFLOW, "more is traced than can be looked at");
	r = take_events(p, until, why);
	if (r >= 0)
		give_back(s);
	return r;
}

static int on_message(struct process *p, struct fault *why)
{
	size_t size = 0;
	int fd = -EBADF, r = receive(p, &size, &fd);

	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return r == -EPIPE ? BEGIN_ANEW : fault_errno(why, r, "cannot read a message");
	if (size < sizeof(*p->message) ||
	    size < sizeof(*p->message) + p->message->n_cpus * sizeof(uint64_t))
		return fault_set(why, -EPROTO, "a message too short");
	switch (p->message->type) {
	case TAIL_SEGMENT:
		return on_segment(p, fd, why);
	case TAIL_ROUND:
		/* else what it counts is in a file that we are told of next */
		return p->message->segment == p->number ? on_round(p, why) : 0;
	default:
		return BEGIN_ANEW;
	}
}

/* --- a flight session */

static int look(struct process *p, struct fault *why)
{
	uint64_t now, until;
	int r = latency_ring_now(p->ring, &now);

	if (r < 0)
		return fault_errno(why, r, "cannot look at the ring buffer");
	until = decoder_time(p->now.decoder, now - MIN(now, LATE_NSEC));
	latency_ring_look(p->ring);
	r = segment_grow(p, &p->now, why);
	if (r >= 0)
		r = take_events(p, until, why);
	latency_ring_leave(p->ring);
	return r;
}

/* --- both */

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int close_others(const struct latency_feed *feed, int file, int output)
{
	const size_t n = 3 + 2 * (size_t)feed->ring.n_cpus;
	_cleanup_free_ int *keep = calloc(n, sizeof(*keep));
	int next = STDERR_FILENO + 1;
	size_t k = 0;

	if (!keep)
		return -ENOMEM;
	keep[k++] = feed->tail_fd;
	keep[k++] = file;
	keep[k++] = output;
	for (unsigned cpu = 0; cpu < feed->ring.n_cpus; cpu++) {
		keep[k++] = feed->ring.trace_fds[cpu];
		keep[k++] = feed->ring.stats_fds[cpu];
	}
	qsort(keep, n, sizeof(*keep), by_number);
	for (size_t i = 0; i < n; i++) {
		if (keep[i] > next)
			(void)syscall(SYS_close_range, next, keep[i] - 1, 0);
		next = MAX(next, keep[i] + 1);
	}
	(void)syscall(SYS_close_range, next, ~0U, 0);
	return 0;
}

static int give_up_rights(const struct latency_feed *feed, int file, int output, pid_t parent)
{
	int r = close_others(feed, file, output);

	return r < 0 ? r : confine_child(parent);
}

static int begin(struct process *p, int file, struct fault *why)
{
	struct latency_config *conditions = calloc(p->n, sizeof(*conditions));
	const struct latency_setup setup = {
		.conditions = conditions,
		.n = p->n,
		.facts = &p->facts,
		.on_hit = on_hit,
		.userdata = p,
	};
	uint64_t now = 0;
	int r;

#if defined(__x86_64__)
	p->facts.machine = MACHINE_X86_64;
#elif defined(__aarch64__)
	p->facts.machine = MACHINE_ARM64;
#endif
	p->message = malloc(MESSAGE_MAX);
	p->left_out = calloc(p->n, sizeof(*p->left_out));
	r = p->message && p->left_out && conditions ? 0 : -ENOMEM;
	/* who a task is /proc tells flyrecd */
	for (size_t i = 0; i < p->n && r >= 0; i++) {
		conditions[i] = p->conditions[i];
		conditions[i].unit = NULL;
	}
	if (r >= 0)
		r = latency_new(&setup, &p->latency);
	if (r >= 0 && file >= 0)
		r = latency_ring_new(&p->feed->ring, &p->ring);
	if (r >= 0 && p->ring)
		r = latency_ring_now(p->ring, &now);
	if (r < 0)
		return fault_errno(why, r, "cannot look for latencies");
	if (!p->ring)
		return 0;
	r = segment_open(p, file, &p->now, why);
	return r < 0 ? r : begin_at(p, decoder_time(p->now.decoder, now));
}

static int run(struct process *p, struct fault *why)
{
	struct pollfd fds[] = {{.fd = p->output}, {.fd = p->feed->tail_fd, .events = POLLIN}};
	const int timeout = p->ring ? LOOK_MSEC : -1;
	int r = 0;

	while (r == 0) {
		int n = poll(fds, ARRAY_SIZE(fds), timeout);

		if (n < 0 && errno != EINTR)
			return fault_errno(why, -errno, "cannot wait");
		if (fds[0].revents)
			return BEGIN_ANEW; /* nobody listens */
		r = p->ring ? look(p, why) : n > 0 ? on_message(p, why) : 0;
	}
	return r;
}

_Noreturn void latency_process(const struct latency_feed *feed,
			       const struct latency_config *conditions, size_t n, int output,
			       pid_t parent)
{
	struct process p = {
		.feed = feed,
		.conditions = conditions,
		.n = n,
		.output = output,
		.old = {.fd = -EBADF},
		.now = {.fd = -EBADF},
		.filter = {.to = UINT64_MAX},
	};
	struct fault why = {};
	sigset_t none;
	int file = -EBADF, r = 0;

	/* of the whole control group, at a stop: it ends with its peer */
	(void)signal(SIGTERM, SIG_IGN);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_NAME, "flyrec-latency");
	/* blocks of a file that come and go shall not be made of new pages each time */
	(void)mallopt(M_MMAP_THRESHOLD, (int)MEMORY);
	(void)mallopt(M_TRIM_THRESHOLD, 2 * (int)MEMORY);
	if (feed->tail_fd < 0)
		r = file = feed->make_file(feed->userdata, &why);
	if (r >= 0) {
		r = give_up_rights(feed, file, output, parent);
		if (r < 0)
			(void)fault_errno(&why, r, "cannot give up rights");
	}
	if (r >= 0)
		r = begin(&p, file, &why);
	if (r >= 0)
		r = run(&p, &why);
	if (r < 0)
		fail(&p, &why);
	_exit(0);
}
