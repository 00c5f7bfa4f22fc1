/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/strv.h"
#include "ctl/output.h"
#include "ctl/tail-segment.h"
#include "writer/proc-task.h"

#define MEMORY (16 * MIB) /* for reading a file, all CPUs */

/*
 * From one file to the next the distance of the clock on the wall is measured anew, with an error
 * of microseconds. More than this was somebody who set it; less than the 20 ms between two rounds
 * (formats/tail-message.h) does not matter to what is complete.
 */
#define SET_CLOCK_NSEC INT64_C(5000000)

struct tail_segment *tail_segment_new(const char *path)
{
	struct tail_segment *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->fd = -EBADF;
	s->path = strdup(path);
	if (!s->path) {
		free(s);
		return NULL;
	}
	return s;
}

struct tail_segment *tail_segment_free(struct tail_segment *s)
{
	if (!s)
		return NULL;
	event_stream_free(s->stream);
	who_free(s->who);
	printer_free(s->printer);
	if (s->decoder)
		decoder_free(s->decoder);
	free(s->filter.ids);
	free(s->sizes);
	free(s->last);
	trace_dat_free(s->dat);
	close_p(&s->fd);
	free(s->path);
	free(s);
	return NULL;
}

static uint64_t key_of(const struct tail_segment *s, uint64_t ts)
{
	return ts + (uint64_t)s->adjust;
}

/* The time up to which events have keys up to @key */
static uint64_t time_of(const struct tail_segment *s, uint64_t key)
{
	if (key == UINT64_MAX || (s->adjust > 0 && key < (uint64_t)s->adjust))
		return key == UINT64_MAX ? key : 0;
	return key - (uint64_t)s->adjust;
}

/* Shown times of two files that differ only by the measuring of their distance stay as they are */
static void set_adjust(struct tail_segment *s, const struct tail_segment *beside)
{
	const uint64_t any = NSEC_PER_SEC;
	int64_t difference;

	if (!beside || !decoder_facts(s->decoder)->in_usecs ||
	    !decoder_facts(beside->decoder)->in_usecs)
		return;
	difference = (int64_t)(key_of(beside, decoder_time(beside->decoder, any)) -
			       decoder_time(s->decoder, any));
	if (difference < -SET_CLOCK_NSEC || difference > SET_CLOCK_NSEC)
		s->adjust = difference;
}

static void on_fault(const char *text)
{
	log_error("%s", text);
}

int tail_segment_open(struct tail_segment *s, int fd, const struct event_filter *filter,
		      const struct tail_segment *beside, const struct ctl *ctl, struct fault *why)
{
	struct printer_config config = {.form = ctl->json ? PRINTER_JSON : PRINTER_TEXT};
	struct stat st;
	int r;

	s->fd = fd;
	s->json = ctl->json;
	s->filter = *filter;
	s->filter.ids = NULL;
	if (fstat(fd, &st) < 0)
		return fault_errno(why, -errno, "%s: cannot stat", s->path);
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	r = trace_dat_open_fd(fd, s->path, &s->dat, why);
	if (r >= 0)
		r = decoder_new(s->dat, &s->decoder, why);
	if (r >= 0)
		r = event_filter_prepare(&s->filter, s->decoder, why);
	if (r < 0)
		return r;
	output_warnings(s->decoder);
	STRV_FOREACH (line, s->dat->damages.lines)
		on_fault(*line);
	r = event_time_choose(&config.time, ctl->time, EVENT_TIME_LOCAL, s->decoder, why);
	if (r < 0)
		return r;
	s->time = config.time.mode;
	config.escape = output_escape(ctl, STDOUT_FILENO);
	s->sizes = calloc(MAX(s->dat->n_cpus, 1U), sizeof(*s->sizes));
	s->last = calloc(MAX(s->dat->n_cpus, 1U), sizeof(*s->last));
	r = s->sizes && s->last ? printer_new(s->decoder, &config, &s->printer) : -ENOMEM;
	if (r >= 0 && (s->json || event_filter_has_places(&s->filter)))
		r = who_new(s->filter.units, s->filter.containers, false, &s->who);
	if (r < 0)
		return fault_errno(why, r, "%s: cannot read", s->path);
	set_adjust(s, beside);
	return 0;
}

static bool wants_cpu(const struct tail_segment *s, uint32_t cpu)
{
	return !s->filter.has_cpus || cpu_list_has(&s->filter.cpus, cpu);
}

/* --- how large it is */

static int read_table(const struct tail_segment *s, uint64_t *sizes, struct fault *why)
{
	for (uint32_t cpu = 0; cpu < s->dat->n_cpus; cpu++) {
		uint64_t at = s->dat->buffers[0].regions[cpu].entry + 8;
		uint8_t bytes[8];
		int r;

		if (s->dat->version != 6) { /* it does not grow */
			sizes[cpu] = s->dat->buffers[0].regions[cpu].size;
			continue;
		}
		r = io_pread_all(s->fd, bytes, sizeof(bytes), at);
		if (r < 0)
			return fault_errno(why, r, "%s: cannot read its sizes", s->path);
		sizes[cpu] = trace_dat_u64(s->dat, bytes);
	}
	return 0;
}

/* A sub-buffer that makes no sense tells nothing: then the last one that did counts */
static int look_at_last(struct tail_segment *s, uint32_t cpu, uint8_t *subbuf, struct fault *why)
{
	uint64_t at = s->dat->buffers[0].regions[cpu].offset + s->sizes[cpu] - s->dat->page_size;
	struct subbuf_fault fault;
	struct subbuf_info info;
	int r = trace_dat_read(s->dat, subbuf, s->dat->page_size, at, why);

	if (r == -EBADMSG)
		return 0;
	if (r < 0)
		return r;
	if (subbuf_check(&s->dat->layout, subbuf, NULL, &info, &fault) == 0 && info.events > 0)
		s->last[cpu] = MAX(s->last[cpu], key_of(s, decoder_time(s->decoder, info.last_ts)));
	return 0;
}

int tail_segment_grow(struct tail_segment *s, const uint64_t *sizes, struct fault *why)
{
	_cleanup_free_ uint64_t *table = NULL;
	_cleanup_free_ uint8_t *subbuf = malloc(s->dat->page_size);
	int r = 0;

	if (!sizes) {
		table = calloc(MAX(s->dat->n_cpus, 1U), sizeof(*table));
		r = table ? read_table(s, table, why) : 0;
		sizes = table;
	}
	if (!sizes || !subbuf)
		return fault_errno(why, -ENOMEM, "%s: cannot read", s->path);
	for (uint32_t cpu = 0; cpu < s->dat->n_cpus && r >= 0; cpu++) {
		uint64_t size = round_down(sizes[cpu], s->dat->page_size);

		/* A restarted daemon may take back what a killed one left half-written */
		if (size <= s->sizes[cpu])
			continue;
		s->sizes[cpu] = size;
		r = look_at_last(s, cpu, subbuf, why);
	}
	if (s->stream)
		event_stream_grow(s->stream, s->sizes);
	return r;
}

uint64_t tail_segment_newest(const struct tail_segment *s)
{
	uint64_t newest = 0;

	for (uint32_t cpu = 0; cpu < s->dat->n_cpus; cpu++)
		newest = MAX(newest, s->last[cpu]);
	return newest;
}

uint64_t tail_segment_left(const struct tail_segment *s)
{
	uint64_t left = 0;

	if (s->stream)
		return event_stream_left(s->stream);
	for (uint32_t cpu = 0; s->dat && cpu < s->dat->n_cpus; cpu++)
		if (wants_cpu(s, cpu))
			left += s->sizes[cpu];
	return left;
}

/* --- its events */

/* From @filter->from on, as far as the sizes go now; all of its CPUs' */
static int begin(const struct tail_segment *s, const struct event_filter *filter, bool counting,
		 struct event_stream **ret, struct fault *why)
{
	const struct event_stream_config config = {
		.filter = filter,
		.all = !counting,
		.no_tasks = counting,
		.pair_leaves = !s->json,
		.who = s->who,
		.sizes = s->sizes,
		.memory = MEMORY,
		.on_fault = on_fault,
	};

	return event_stream_new(s->decoder, &config, ret, why);
}

/* When the last @n sub-buffers of each CPU begin; 0: that is all there is */
static int look_back(struct tail_segment *s, uint64_t n, uint64_t *ret, struct fault *why)
{
	uint64_t from = 0;

	for (uint32_t cpu = 0; cpu < s->dat->n_cpus; cpu++) {
		uint64_t back = n * s->dat->page_size;
		uint8_t bytes[8];
		int r;

		if (!wants_cpu(s, cpu) || s->sizes[cpu] <= back)
			continue;
		r = trace_dat_read(s->dat, bytes, sizeof(bytes),
				   s->dat->buffers[0].regions[cpu].offset + s->sizes[cpu] - back,
				   why);
		if (r == -EBADMSG)
			continue;
		if (r < 0)
			return r;
		from = MAX(from, decoder_time(s->decoder, trace_dat_u64(s->dat, bytes)));
	}
	*ret = from;
	return 0;
}

static int count_from(struct tail_segment *s, uint64_t until, uint64_t from, uint64_t *ret,
		      struct fault *why)
{
	_cleanup_(event_stream_freep) struct event_stream *stream = NULL;
	struct event_filter filter = s->filter;
	struct decode_event event;
	uint64_t count = 0;
	int r;

	filter.from = from;
	r = begin(s, &filter, true, &stream, why);
	if (r < 0)
		return r;
	event_stream_until(stream, time_of(s, until));
	while ((r = event_next(stream, &event, why)) > 0)
		count++;
	*ret = count;
	return r;
}

int tail_segment_count(struct tail_segment *s, uint64_t until, uint64_t enough, uint64_t *ret_count,
		       uint64_t *ret_from, struct fault *why)
{
	uint64_t least = s->filter.from, from = 0, count = 0;

	for (uint64_t n = 2;; n *= 4) {
		int r = look_back(s, n, &from, why);

		if (r < 0)
			return r;
		from = MAX(from, least);
		r = count_from(s, until, from, &count, why);
		if (r < 0)
			return r;
		if (count >= enough || from == least)
			break;
	}
	*ret_count = count;
	*ret_from = from;
	return 0;
}

static int use_names(struct tail_segment *s)
{
	int r = 0;

	for (size_t i = 0; i < TAIL_ASKED && r >= 0; i++)
		if (s->asked[i].name[0])
			r = event_stream_rename(s->stream, s->asked[i].pid, s->asked[i].name);
	return r;
}

int tail_segment_peek(struct tail_segment *s, uint64_t until, uint64_t *ret, struct fault *why)
{
	uint64_t ts;
	int r;

	if (!s->stream) {
		r = begin(s, &s->filter, false, &s->stream, why);
		if (r >= 0)
			r = use_names(s);
		if (r < 0)
			return r == -ENOMEM ? fault_errno(why, r, "%s: cannot read", s->path) : r;
	}
	event_stream_until(s->stream, time_of(s, until));
	r = event_peek(s->stream, &ts, why);
	if (r > 0)
		*ret = key_of(s, ts);
	return r;
}

bool tail_segment_past(const struct tail_segment *s, uint64_t key)
{
	return time_of(s, key) > s->filter.to;
}

/* The task may have come since the file was told of tasks last */
static int ask_who(struct tail_segment *s, struct decode_event *event)
{
	char path[48], cgroup[PROC_TASK_CGROUP_MAX];
	struct proc_task found;
	struct own_task task;
	uint32_t hierarchy;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", event->pid);
	r = proc_task_stat(AT_FDCWD, path, &found);
	(void)snprintf(path, sizeof(path), "/proc/%d/status", event->pid);
	if (r >= 0)
		r = proc_task_tgid(AT_FDCWD, path, &found.tgid);
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", event->pid);
	if (r >= 0)
		r = proc_task_cgroup(AT_FDCWD, path, cgroup, &hierarchy);
	if (r < 0) /* it has ended */
		return 0;
	found.comm[MIN(found.comm_size, sizeof(found.comm) - 1)] = '\0';
	task = (struct own_task){found.pid, found.tgid, found.start, found.comm, cgroup};
	r = who_tell(s->who, &task, event->ts);
	event->who = who_find(s->who, event->pid, event->ts);
	return r;
}

/*
 * The names in the file are as old as the file, or as its last sync: who is alive and known by
 * another name now, or by none, is asked for once a second at most.
 */
static int ask_kernel(struct tail_segment *s, struct decode_event *event)
{
	int32_t pid = event->pid;
	struct tail_asked *asked = &s->asked[(uint32_t)pid % TAIL_ASKED];
	_cleanup_free_ char *name = NULL;
	struct timespec now;
	char path[48];
	size_t size;
	int r;

	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (pid <= 0 || (asked->pid == pid && asked->when == now.tv_sec))
		return 0;
	if (asked->pid != pid)
		*asked = (struct tail_asked){.pid = pid};
	asked->when = now.tv_sec;
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	r = io_read_file_at(AT_FDCWD, path, &name, &size);
	if (r < 0 || size == 0) /* it has ended */
		return r == -ENOMEM ? r : 0;
	if (name[size - 1] == '\n')
		name[size - 1] = '\0';
	(void)snprintf(asked->name, sizeof(asked->name), "%s", name);
	r = event_stream_rename(s->stream, pid, asked->name);
	if (r >= 0)
		r = event_stream_task(s->stream, event);
	return r < 0 || !s->who || (event->who && event->who->place) ? r : ask_who(s, event);
}

void tail_segment_inherit_names(struct tail_segment *s, const struct tail_segment *before)
{
	memcpy(s->asked, before->asked, sizeof(s->asked));
}

static int print(struct tail_segment *s, struct decode_event *event, uint64_t *skip,
		 struct event_days *days, struct text *out)
{
	int r;

	if (s->number > 0 && s->who && !event->who) {
		r = ask_kernel(s, event);
		if (r < 0)
			return r;
	}
	if (!event_filter_wants(&s->filter, event))
		return 0;
	if (*skip > 0) {
		(*skip)--;
		return 0;
	}
	if (days->mode != s->time) /* its first segment, or one with another clock */
		event_days_init(days, s->time, true);
	event->new_day = event_days_changed(days, event->ts);
	if (s->number > 0) {
		r = ask_kernel(s, event);
		if (r < 0)
			return r;
	}
	return printer_put(s->printer, event, true, out);
}

int tail_segment_print(struct tail_segment *s, uint64_t *skip, struct event_days *days,
		       struct text *out, struct fault *why)
{
	struct decode_event event;
	int r = event_next(s->stream, &event, why);

	if (r <= 0)
		return r;
	r = print(s, &event, skip, days, out);
	return r < 0 ? fault_errno(why, r, "%s: cannot go on", s->path) : 0;
}
