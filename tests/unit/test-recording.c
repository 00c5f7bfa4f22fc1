/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * engine/drain and engine/recording together, without a kernel: pipes stand in for the ring
 * buffers, of which only that of CPU 0 has data. With a kernel: tests/integration/test-engine.sh.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/io.h"
#include "engine/drain.h"
#include "engine/recording.h"
#include "formats/subbuf-write.h"
#include "tests/unit/fake-instance.h"

#define SUBBUF	    4096U
#define DEADLINE_MS 20000

struct bench {
	struct tmp tmp;
	struct trace_config config;
	struct instance *instance;
	unsigned n_cpus; /* of this machine, as of any instance */
	int *rings, notify_fd;
	struct drain *drain;
	struct recording *recording;
	struct recording_input in;
	struct recording_report report;
	struct symbols *symbols;
	struct fault why;
};

static int put_ring(struct bench *b, unsigned cpu)
{
	char name[80], path[200];
	int fd;

	(void)snprintf(name, sizeof(name), FAKE_INSTANCE "per_cpu/cpu%u/stats", cpu);
	tmp_write(&b->tmp, name, "entries: 0\noverrun: 0\n");
	(void)snprintf(path, sizeof(path), "%s/" FAKE_INSTANCE "per_cpu/cpu%u/trace_pipe_raw",
		       b->tmp.path, cpu);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void begin(struct bench *b)
{
	_cleanup_free_ char *header = NULL;

	*b = (struct bench){.config = {.clock = (char[]){"local"}}};
	tmp_init(&b->tmp);
	fake_instance_put(&b->tmp, NULL);
	b->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(b->notify_fd >= 0);
	assert_int_equal(instance_attach(FAKE_INSTANCE_NAME, "flyrec_oom", &b->config, &b->instance,
					 &b->why),
			 0);
	b->n_cpus = instance_n_cpus(b->instance);
	b->rings = calloc(b->n_cpus, sizeof(*b->rings));
	assert_non_null(b->rings);
	for (unsigned cpu = 0; cpu < b->n_cpus; cpu++)
		b->rings[cpu] = put_ring(b, cpu);
	assert_int_equal(mkdirat(b->tmp.fd, "record", 0755), 0);
	b->in.plan.params = fake_instance_params(&b->tmp);
	assert_int_equal(
		io_read_file_at(b->tmp.fd, FAKE_INSTANCE "events/header_page", &header, NULL), 0);
	tmp_write(&b->tmp, "events/header_page", header);
	b->symbols = symbols_new_of(strdup("ffffffff81000000 T _text\n"));
	assert_non_null(b->symbols);
	b->in.plan.params.symbols = b->symbols;
	b->in.plan.params.n_cpus = b->n_cpus;
	b->in.plan.params.date_usec = (int64_t)(1700000000 * USEC_PER_SEC);
	b->in.plan.params.max_file_size = MIB;
	b->in.plan.params.slack = MIB;
	b->in.plan.params.names_room = 4096;
	b->in.plan.names = task_names_new(100);
	tmp_write(&b->tmp, "saved_cmdlines", "1 init\n");
	b->in.dir_fd = openat(b->tmp.fd, "record", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	b->in.limits.max_use = UINT64_MAX;
	assert_int_equal(recording_report_init(&b->report, b->n_cpus), 0);
	assert_int_equal(recording_new(&b->recording), 0);
	assert_int_equal(drain_new(&b->drain), 0);
}

static void end(struct bench *b)
{
	recording_free(b->recording);
	drain_free(b->drain);
	recording_report_done(&b->report);
	file_plan_done(&b->in.plan);
	symbols_free(b->symbols);
	instance_free(b->instance);
	close(b->in.dir_fd);
	for (unsigned cpu = 0; cpu < b->n_cpus; cpu++)
		close(b->rings[cpu]);
	free(b->rings);
	close(b->notify_fd);
	fake_instance_drop(&b->tmp);
}

/* @n sub-buffers with an event each */
static void put_into(int fd, unsigned n)
{
	static uint64_t timestamp = 1000;

	for (unsigned i = 0; i < n; i++) {
		uint64_t bytes[SUBBUF / sizeof(uint64_t)];
		struct subbuf_write subbuf;
		uint16_t *event;

		subbuf_write_begin(&subbuf, bytes, sizeof(bytes));
		timestamp += NSEC_PER_SEC / 1000; /* the order of files is one of microseconds */
		assert_int_equal(subbuf_write_event(&subbuf, timestamp, 8, (void **)&event), 0);
		*event = 314;
		subbuf_write_end(&subbuf);
		assert_int_equal(io_write_all(fd, (const char *)bytes, sizeof(bytes)), 0);
	}
}

static void put(struct bench *b, unsigned n)
{
	put_into(b->rings[0], n);
}

static void wait_for(struct bench *b, bool (*done)(const struct drain *drain))
{
	struct pollfd poll_fd = {.fd = b->notify_fd, .events = POLLIN};
	uint64_t n;

	while (!done(b->drain)) {
		assert_int_equal(poll(&poll_fd, 1, DEADLINE_MS), 1);
		(void)!read(b->notify_fd, &n, sizeof(n));
	}
}

static void start_workers(struct bench *b, struct drain_fds *fds, unsigned n_workers)
{
	assert_non_null(fds);
	assert_int_equal(drain_open(b->drain, b->instance, fds, n_workers, &b->why), 0);
	drain_hand(b->drain, &b->in.hand);
	assert_int_equal(recording_open(b->recording, &b->in, &b->report, &b->why), 0);
	assert_int_equal(drain_run(b->drain, recording_file(b->recording), MIB, 64 * KIB,
				   b->notify_fd, &b->why),
			 0);
}

static void start(struct bench *b, struct drain_fds *fds)
{
	start_workers(b, fds, 1);
}

static void request(struct bench *b, enum worker_request what)
{
	assert_int_equal(drain_post(b->drain, what), 0);
	wait_for(b, drain_idle);
}

static void rotate(struct bench *b)
{
	assert_int_equal(recording_begin_next(b->recording, &b->in, &b->report, &b->why), 0);
	assert_int_equal(drain_retarget(b->drain, recording_file(b->recording), MIB), 0);
	wait_for(b, drain_idle);
	drain_retargeted(b->drain);
	assert_int_equal(recording_finish_old(b->recording, &b->in, &b->report, &b->why), 0);
}

static void finish(struct bench *b)
{
	request(b, WORKER_FINISH);
	drain_close(b->drain, NULL);
	recording_close_current(b->recording);
	assert_int_equal(recording_finish_old(b->recording, &b->in, &b->report, &b->why), 0);
	assert_null(recording_file(b->recording));
	assert_null(recording_old(b->recording));
}

/* A finished file that holds so many sub-buffers */
static void assert_segment(struct bench *b, const char *name, unsigned n)
{
	struct trace_file *file;
	uint64_t size;

	assert_int_equal(trace_file_open(b->in.dir_fd, name, STORAGE_DIRECT_NO, &file, &b->why), 0);
	assert_int_equal(trace_file_phase(file), LIVE_DENSE);
	assert_int_equal(trace_file_read_size(file, 0, &size), 0);
	assert_int_equal(size, n * SUBBUF);
	trace_file_free(file);
}

static void test_record(void **state)
{
	struct drain_counts counts;
	struct bench b;

	begin(&b);
	assert_int_equal(drain_n_cpus(b.drain), 0);
	assert_int_equal(drain_file_fd(b.drain), -EBADF);
	start(&b, drain_fds_new(b.n_cpus));
	put(&b, 10);
	request(&b, WORKER_FLUSH);
	drain_cpu(b.drain, 0, &counts);
	assert_int_equal(counts.published, 10 * SUBBUF);
	assert_int_equal(counts.subbufs, 10);
	assert_int_equal(counts.dropped_bytes, 0);
	assert_int_equal(drain_bytes_left(b.drain), MIB - 10 * SUBBUF);
	assert_int_equal(recording_sync(b.recording, &b.in, &b.report, &b.why), 0);
	assert_null(b.report.finished);
	rotate(&b);
	drain_cpu(b.drain, 0, &counts);
	assert_int_equal(counts.published, 0);
	assert_int_equal(counts.total_bytes, 10 * SUBBUF);
	put(&b, 3);
	finish(&b);
	assert_int_equal(b.report.notes.n, 0);
	assert_non_null(b.report.finished[1]);
	assert_null(b.report.finished[2]);
	assert_string_equal(b.report.archive, b.report.finished[1]);
	assert_segment(&b, b.report.finished[0], 10);
	assert_segment(&b, b.report.finished[1], 3);
	assert_true(b.report.counted);
	assert_int_equal(b.report.kept_files, 2);
	end(&b);
}

/* Nothing came: there is nothing to be kept */
static void test_record_nothing(void **state)
{
	struct bench b;

	begin(&b);
	start(&b, drain_fds_new(b.n_cpus));
	finish(&b);
	assert_null(b.report.finished);
	assert_string_equal(b.report.archive, "");
	assert_int_equal(b.report.kept_files, 0);
	end(&b);
}

static void test_evicted(void **state)
{
	struct bench b;

	begin(&b);
	b.in.limits.max_files = 2; /* the live one is one of them */
	start(&b, drain_fds_new(b.n_cpus));
	put(&b, 5);
	request(&b, WORKER_FLUSH);
	rotate(&b);
	put(&b, 6);
	request(&b, WORKER_FLUSH);
	rotate(&b);
	assert_int_equal(b.report.evicted[0], 5);
	assert_int_equal(b.report.kept_files, 1);
	recording_report_clear(&b.report);
	assert_int_equal(b.report.evicted[0], 0);
	finish(&b);
	end(&b);
}

/* They came from an earlier process */
static void say_old(struct drain_fds *fds)
{
	fds->slots.old = fds->notes.old = true;
	for (unsigned cpu = 0; cpu < fds->n_cpus; cpu++)
		fds->traces[cpu].old = true;
	for (size_t i = 0; i < fds->n_pipes; i++)
		fds->pipes[i].end.old = true;
}

/* A drain's hands go over to the next one, which goes on in the same file */
static void test_hand_over(void **state)
{
	struct drain_fds *fds = NULL;
	struct bench b;

	begin(&b);
	start(&b, drain_fds_new(b.n_cpus));
	put(&b, 4);
	request(&b, WORKER_LEAVE);
	drain_close(b.drain, &fds);
	assert_non_null(fds);
	assert_true(fds->slots.fd >= 0 && fds->notes.fd >= 0 && fds->traces[0].fd >= 0);
	assert_int_equal(fds->n_pipes, 1);
	assert_false(fds->unused);
	recording_close(b.recording);

	b.in.adopt = true;
	say_old(fds);
	start(&b, fds);
	assert_ptr_equal(drain_fds(b.drain), fds);
	assert_true(fds->notes.old && fds->slots.old);
	assert_int_equal(fds->n_pipes, 1);
	assert_true(fds->pipes[0].end.old);
	assert_int_equal(drain_pending(b.drain), 0);
	assert_int_equal(b.report.notes.n, 1);
	assert_string_equal(b.report.notes.items[0].fault.text, "continuing record/current.dat");
	put(&b, 2);
	finish(&b);
	assert_segment(&b, b.report.finished[0], 6);
	assert_null(b.report.finished[1]);
	end(&b);
}

static void say_clock(struct bench *b, enum own_clock_at at, uint64_t nsec)
{
	b->in.clocks[b->in.n_clocks++] = (struct own_clock){.boot = nsec, .trace = nsec, .at = at};
}

/* Of the first of the finished files: "begin 1, end 2" */
static void assert_clocks(struct bench *b, const char *want)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	const struct own_clock *list[OWN_CLOCKS_MAX];
	_cleanup_close_ int fd = openat(b->in.dir_fd, b->report.finished[0], O_RDONLY | O_CLOEXEC);
	struct own_clocks clocks;
	char text[100] = "";
	size_t n, at = 0;

	assert_true(fd >= 0);
	assert_int_equal(trace_dat_open_fd(fd, "f", &dat, &b->why), 0);
	assert_int_equal(own_content_clocks(dat, &clocks, NULL, &b->why), 0);
	n = own_clocks_list(&clocks, list);
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %u", i ? ", " : "",
				       own_clock_at_name(list[i]->at), (unsigned)list[i]->trace);
	assert_string_equal(text, want);
}

/* Readings of the clocks go where the step is at work, and stay when another process goes on */
static void test_clocks(void **state)
{
	const struct own_clock first = {.trace = 1, .boot = 1, .at = OWN_CLOCK_BEGIN},
			       second = {.trace = 4, .boot = 4, .at = OWN_CLOCK_BEGIN};
	struct drain_fds *fds = NULL;
	struct bench b;

	begin(&b);
	own_clocks_init(&b.in.plan.clocks, "mono", b.in.plan.params.boot_id);
	(void)own_clocks_add(&b.in.plan.clocks, &first);
	b.in.plan.params.own.clocks = &b.in.plan.clocks;
	start(&b, drain_fds_new(b.n_cpus));
	put(&b, 4);
	say_clock(&b, OWN_CLOCK_STEP, 2);
	say_clock(&b, OWN_CLOCK_STEP, 3);
	assert_int_equal(recording_sync(b.recording, &b.in, &b.report, &b.why), 0);
	request(&b, WORKER_LEAVE);
	drain_close(b.drain, &fds);
	recording_close(b.recording);

	b.in.adopt = true;
	b.in.n_clocks = 0;
	say_old(fds);
	own_clocks_init(&b.in.plan.clocks, "mono", b.in.plan.params.boot_id);
	(void)own_clocks_add(&b.in.plan.clocks, &second);
	start(&b, fds);
	say_clock(&b, OWN_CLOCK_END, 5);
	finish(&b);
	assert_clocks(&b, "begin 1, step 2, step 3, begin 4, end 5");
	end(&b);
}

/* What an earlier process has left, and nobody goes on with, is finished */
static void test_leftover(void **state)
{
	struct bench b;

	begin(&b);
	start(&b, drain_fds_new(b.n_cpus));
	put(&b, 4);
	request(&b, WORKER_FLUSH);
	drain_close(b.drain, NULL);
	recording_close(b.recording);
	start(&b, drain_fds_new(b.n_cpus));
	assert_int_not_equal(b.report.archived_id, 0);
	assert_non_null(b.report.finished[0]);
	assert_segment(&b, b.report.finished[0], 4);
	assert_string_equal(b.report.notes.items[0].fault.text,
			    "finished the segment of an earlier run");
	finish(&b);
	end(&b);
}

static void test_slots_of_another_size(void **state)
{
	struct drain_fds *fds;
	struct stat st;
	struct bench b;

	begin(&b);
	fds = drain_fds_new(b.n_cpus);
	assert_non_null(fds);
	fds->slots = (struct drain_fd){memfd_create("slots", MFD_CLOEXEC), true};
	assert_true(fds->slots.fd >= 0);
	assert_int_equal(ftruncate(fds->slots.fd, (off_t)(b.n_cpus + 1) * SUBBUF), 0);
	assert_int_equal(drain_open(b.drain, b.instance, fds, 1, &b.why), 0);
	assert_false(fds->slots.old);
	assert_int_equal(fstat(fds->slots.fd, &st), 0);
	assert_int_equal(st.st_size, (off_t)b.n_cpus * SUBBUF);
	drain_close(b.drain, NULL);
	end(&b);
}

/* Then the fds are still the caller's, and the drain can be opened another time */
static void test_open_fails(void **state)
{
	struct drain_pipe pipe = {.end.old = true};
	struct drain_fds *fds;
	struct bench b;

	begin(&b);
	fds = drain_fds_new(b.n_cpus);
	assert_non_null(fds);
	/* What is kept for the pipe is none */
	pipe.end.fd = openat(b.tmp.fd, "saved_cmdlines", O_RDONLY | O_CLOEXEC);
	assert_int_equal(drain_fds_add_pipe(fds, &pipe), 0);
	assert_true(drain_open(b.drain, b.instance, fds, 1, &b.why) < 0);
	assert_non_null(strstr(b.why.text, "cannot make pipes"));
	assert_true(fcntl(pipe.end.fd, F_GETFD) >= 0);
	assert_int_equal(drain_n_cpus(b.drain), 0);
	drain_fds_free(fds);
	start(&b, drain_fds_new(b.n_cpus));
	finish(&b);
	end(&b);
}

/* --- what a killed process had in its pipes */

/* The fds of a process with so many workers, killed while nothing was in its hands */
static struct drain_fds *killed(struct bench *b, unsigned n_workers)
{
	struct drain_fds *fds = NULL;

	start_workers(b, drain_fds_new(b->n_cpus), n_workers);
	drain_close(b->drain, &fds);
	recording_close(b->recording);
	assert_non_null(fds);
	assert_int_equal(fds->n_pipes, n_workers);
	say_old(fds);
	b->in.adopt = true;
	return fds;
}

/* What is in no file yet of that process; @cpu: whose it says it is */
static void put_in_pipe(const struct drain_fds *fds, size_t i, unsigned cpu, unsigned n)
{
	const struct drain_pipe *pipe = &fds->pipes[i];
	/* after magic and padding, see struct notes */
	const off_t at = 16 + (off_t)(pipe->number * sizeof(struct staging_note) +
				      offsetof(struct staging_note, cpu));
	_cleanup_close_ int fd = -EBADF;
	uint32_t word = cpu + 1;
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", pipe->end.fd);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	put_into(fd, n);
	if (!pipe->of_cpu)
		assert_int_equal(io_pwrite_all(fds->notes.fd, &word, sizeof(word), (uint64_t)at),
				 0);
}

static void assert_written(struct bench *b, unsigned cpu, unsigned n)
{
	struct drain_counts counts;

	drain_cpu(b->drain, cpu, &counts);
	assert_int_equal(counts.published, n * SUBBUF);
	assert_int_equal(counts.dropped_bytes, 0);
}

static void assert_no_pipe_left(struct bench *b)
{
	struct drain_pipe pipe;

	assert_false(drain_pop_pipe(b->drain, &pipe));
}

/* As many workers as before: each pipe is a worker's again, whatever CPU's data is in it */
static void test_pipes_of_a_killed_process(void **state)
{
	struct drain_fds *fds;
	struct bench b;

	begin(&b);
	if (b.n_cpus < 2)
		skip();
	fds = killed(&b, 2);
	put_in_pipe(fds, 0, 1, 3);
	put_in_pipe(fds, 1, 0, 2);
	start_workers(&b, fds, 2);
	assert_false(drain_lost(b.drain, 0) || drain_lost(b.drain, 1));
	put(&b, 1);
	request(&b, WORKER_FINISH);
	assert_written(&b, 0, 3);
	assert_written(&b, 1, 3);
	assert_int_equal(drain_fds(b.drain)->n_pipes, 2);
	assert_no_pipe_left(&b);
	finish(&b);
	end(&b);
}

/* Fewer workers than before: a pipe too many is emptied, and then of no use */
static void test_pipes_of_other_workers(void **state)
{
	struct drain_pipe pipe;
	struct drain_fds *fds;
	struct bench b;

	begin(&b);
	if (b.n_cpus < 2)
		skip();
	fds = killed(&b, 2);
	put_in_pipe(fds, 0, 0, 4);
	put_in_pipe(fds, 1, 1, 5);
	start(&b, fds);
	put_into(b.rings[1], 1);
	put(&b, 2);
	request(&b, WORKER_FINISH);
	assert_written(&b, 0, 6);
	assert_written(&b, 1, 6);
	assert_true(drain_pop_pipe(b.drain, &pipe));
	assert_true(!pipe.of_cpu && pipe.number == 1 && pipe.end.old);
	assert_no_pipe_left(&b);
	assert_int_equal(drain_fds(b.drain)->n_pipes, 1);
	drain_close(b.drain, &fds);
	recording_close(b.recording);
	say_old(fds);

	start_workers(&b, fds, 2); /* and more */
	assert_false(drain_lost(b.drain, 0) || drain_lost(b.drain, 1));
	assert_int_equal(drain_fds(b.drain)->n_pipes, 2);
	put(&b, 1);
	finish(&b);
	end(&b);
}

/* The disk does not take what is in the pipe too many: it is kept for the next one */
static void test_pipes_are_kept_until_empty(void **state)
{
	struct drain_fds *fds;
	struct bench b;

	begin(&b);
	if (b.n_cpus < 2)
		skip();
	fds = killed(&b, 2);
	put_in_pipe(fds, 0, 0, 4);
	put_in_pipe(fds, 1, 1, 5);
	assert_int_equal(drain_open(b.drain, b.instance, fds, 1, &b.why), 0);
	assert_int_equal(drain_pending(b.drain), 9 * SUBBUF);
	assert_no_pipe_left(&b);
	drain_close(b.drain, &fds);
	assert_int_equal(fds->n_pipes, 2);
	assert_true(fds->unused);
	start_workers(&b, fds, 2);
	request(&b, WORKER_FINISH);
	assert_written(&b, 0, 4);
	assert_written(&b, 1, 5);
	finish(&b);
	end(&b);
}

/* What it had read, and not written; @cpu: whose it is */
static void put_in_memory(struct bench *b, const struct drain_fds *fds, size_t i, unsigned cpu,
			  unsigned n)
{
	const uint64_t at = 64 * KIB + fds->pipes[i].number * STAGING_MEMORY; /* see NOTES_SIZE */
	_cleanup_free_ char *bytes = malloc((size_t)n * SUBBUF);
	int ends[2];

	assert_non_null(bytes);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	put_into(ends[1], n);
	assert_int_equal(read(ends[0], bytes, (size_t)n * SUBBUF), n * SUBBUF);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(io_pwrite_all(fds->notes.fd, bytes, (size_t)n * SUBBUF, at), 0);
	put_in_pipe(fds, i, cpu, 0);
}

/* It goes on in the memory of as many workers, or beside that of fewer; with its pipe or without */
static void test_memory_of_a_killed_process(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned n_workers = 1 + i % 2;
		struct drain_fds *fds;
		struct bench b;

		begin(&b);
		if (b.n_cpus < 2) {
			end(&b);
			skip();
		}
		fds = killed(&b, 2);
		put_in_memory(&b, fds, 0, 1, 6);
		put_in_memory(&b, fds, 1, 0, 3);
		if (i / 2) { /* there was no room for it in the store */
			close(fds->pipes[1].end.fd);
			fds->n_pipes = 1;
		}
		start_workers(&b, fds, n_workers);
		assert_false(drain_lost(b.drain, 0) || drain_lost(b.drain, 1));
		put(&b, 1);
		request(&b, WORKER_FINISH);
		assert_written(&b, 0, 4);
		assert_written(&b, 1, 6);
		if (n_workers == 1) {
			struct drain_pipe pipe;

			assert_true(drain_pop_pipe(b.drain, &pipe));
		}
		assert_no_pipe_left(&b);
		drain_close(b.drain, &fds);
		recording_close(b.recording);
		say_old(fds);
		start_workers(&b, fds, 2);
		request(&b, WORKER_FINISH);
		assert_written(&b, 0, 4); /* not twice */
		assert_written(&b, 1, 6);
		finish(&b);
		end(&b);
	}
}

/* It was in the file by then, but the file did not say so */
static void test_memory_that_was_written(void **state)
{
	struct trace_file_region region;
	struct drain_fds *fds;
	char bytes[5 * SUBBUF];
	struct bench b;

	begin(&b);
	fds = killed(&b, 1);
	put_in_memory(&b, fds, 0, 0, 5);
	assert_int_equal(io_pread_all(fds->notes.fd, bytes, sizeof(bytes), 64 * KIB), 0);
	assert_int_equal(drain_open(b.drain, b.instance, fds, 1, &b.why), 0);
	drain_hand(b.drain, &b.in.hand);
	assert_int_equal(b.in.hand.n_batches, 1);
	assert_int_equal(recording_open(b.recording, &b.in, &b.report, &b.why), 0);
	trace_file_region(recording_file(b.recording), 0, &region);
	assert_int_equal(io_pwrite_all(region.buffered_fd, bytes, 4 * SUBBUF, region.offset), 0);
	drain_close(b.drain, &fds);
	recording_close(b.recording);
	say_old(fds);
	start(&b, fds);
	request(&b, WORKER_FINISH);
	assert_written(&b, 0, 5);
	finish(&b);
	end(&b);
}

static void test_reads(void **state)
{
	struct bench b;

	begin(&b);
	start(&b, drain_fds_new(b.n_cpus));
	assert_false(drain_reads(b.drain));
	drain_read(b.drain, 3);
	assert_true(drain_reads(b.drain));
	put(&b, 10);
	request(&b, WORKER_FLUSH);
	assert_written(&b, 0, 10);
	rotate(&b);
	put(&b, 4);
	finish(&b);
	assert_segment(&b, b.report.finished[0], 10);
	assert_segment(&b, b.report.finished[1], 4);
	end(&b);
}

/* An earlier version had a pipe for each CPU and no notes */
static void test_pipes_of_an_earlier_version(void **state)
{
	struct drain_pipe pipe;
	struct drain_fds *fds;
	struct bench b;

	begin(&b);
	fds = killed(&b, 1);
	close(fds->pipes[0].end.fd);
	fds->n_pipes = 0;
	close(fds->notes.fd);
	fds->notes = (struct drain_fd){-EBADF, false};
	for (unsigned cpu = 0; cpu < b.n_cpus; cpu++) {
		int ends[2];

		assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
		pipe = (struct drain_pipe){{ends[0], true}, .of_cpu = true, .number = cpu};
		put_into(ends[1], cpu + 1 < b.n_cpus ? cpu : b.n_cpus);
		close(ends[1]);
		assert_int_equal(drain_fds_add_pipe(fds, &pipe), 0);
	}
	start(&b, fds);
	request(&b, WORKER_FINISH);
	for (unsigned cpu = 0; cpu < b.n_cpus; cpu++) {
		assert_false(drain_lost(b.drain, cpu));
		assert_written(&b, cpu, cpu + 1 < b.n_cpus ? cpu : b.n_cpus);
		assert_true(drain_pop_pipe(b.drain, &pipe));
		assert_true(pipe.of_cpu && pipe.end.old);
	}
	assert_no_pipe_left(&b);
	assert_int_equal(drain_fds(b.drain)->n_pipes, 1);
	finish(&b);
	end(&b);
}

/* What is known of pipes that were not kept, until it has been told */
static void test_pipes_lost(void **state)
{
	struct drain_pipe other;
	struct drain_fds *fds;
	struct bench b;
	int ends[2];

	begin(&b);
	if (b.n_cpus < 2)
		skip();
	assert_int_equal(drain_open(b.drain, b.instance, drain_fds_new(b.n_cpus), 1, &b.why), 0);
	assert_true(drain_lost(b.drain, 0) && drain_lost(b.drain, 1));
	drain_close(b.drain, NULL);

	fds = killed(&b, 2);
	put_in_pipe(fds, 1, 1, 2);
	/* Another one of the same name: nobody knows whose data is in there */
	close(fds->pipes[1].end.fd);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	put_into(ends[1], 7);
	close(ends[1]);
	fds->pipes[1].end.fd = ends[0];
	for (unsigned i = 0; i < 2; i++) { /* the first start failed */
		assert_int_equal(drain_open(b.drain, b.instance, fds, 2, &b.why), 0);
		assert_false(drain_lost(b.drain, 0));
		assert_true(drain_lost(b.drain, 1));
		assert_int_equal(drain_pending(b.drain), 0);
		drain_close(b.drain, &fds);
		say_old(fds);
	}
	start_workers(&b, fds, 2);
	request(&b, WORKER_FINISH);
	assert_written(&b, 1, 0);
	assert_true(drain_pop_pipe(b.drain, &other));
	assert_int_equal(other.number, 1);
	drain_close(b.drain, &fds);
	recording_close(b.recording);
	say_old(fds);
	start_workers(&b, fds, 2);
	assert_false(drain_lost(b.drain, 0) || drain_lost(b.drain, 1));
	finish(&b);
	end(&b);
}

/* Many tasks come: the next file is asked for before names are left out, and has more room for them
 */
static void test_names_fill(void **state)
{
	char *text = calloc(60000, 16), *at = text;
	size_t first, next;
	struct bench b;

	assert_non_null(text);
	begin(&b);
	b.in.plan.params.names_room = 4 * MIB;
	task_names_free(b.in.plan.names);
	b.in.plan.names = task_names_new(100000);
	start(&b, drain_fds_new(b.n_cpus));
	first = trace_file_names_room(recording_file(b.recording));
	put(&b, 1);
	request(&b, WORKER_FLUSH);
	assert_int_equal(recording_sync(b.recording, &b.in, &b.report, &b.why), 0);
	assert_false(b.report.names_fill);
	for (unsigned pid = 10000; pid < 62000; pid++)
		at += sprintf(at, "%u a task\n", pid);
	assert_true((size_t)(at - text) < first);
	assert_true((size_t)(at - text) > first - 128 * KIB);
	tmp_write(&b.tmp, "saved_cmdlines", text);
	assert_int_equal(recording_sync(b.recording, &b.in, &b.report, &b.why), 0);
	assert_true(b.report.names_fill);
	recording_report_clear(&b.report);
	assert_false(b.report.names_fill);
	rotate(&b);
	next = trace_file_names_room(recording_file(b.recording));
	assert_true(next > 4 * first && next < 4 * MIB);
	assert_int_equal(recording_sync(b.recording, &b.in, &b.report, &b.why), 0);
	assert_false(b.report.names_fill);
	finish(&b);
	end(&b);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_record_nothing),
		cmocka_unit_test(test_evicted),
		cmocka_unit_test(test_hand_over),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_leftover),
		cmocka_unit_test(test_slots_of_another_size),
		cmocka_unit_test(test_open_fails),
		cmocka_unit_test(test_pipes_of_a_killed_process),
		cmocka_unit_test(test_pipes_of_other_workers),
		cmocka_unit_test(test_pipes_are_kept_until_empty),
		cmocka_unit_test(test_memory_of_a_killed_process),
		cmocka_unit_test(test_memory_that_was_written),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_pipes_of_an_earlier_version),
		cmocka_unit_test(test_pipes_lost),
		cmocka_unit_test(test_names_fill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
