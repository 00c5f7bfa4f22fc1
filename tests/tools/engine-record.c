/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * engine-record --instance=NAME --dir=DIR --event=SYSTEM:NAME [--max-bytes=N]
 *
 * Records with engine/ and without the daemon, until SIGTERM: an instance is made, its ring buffers
 * are drained into DIR/current.dat, a new file is begun after every N bytes, and what was is
 * finished as the daemon does it. Prints "recording" once it does. One thread beside the workers.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include "basic/parse.h"
#include "engine/drain.h"
#include "engine/recording.h"

#define FLUSH_MSEC 100
#define WORKERS	   2

struct run {
	struct instance *instance;
	struct recording_input in;
	struct recording_report report;
	struct recording *recording;
	struct drain *drain;
	struct symbols *symbols;
	int notify_fd, signal_fd;
	uint64_t max_bytes;
};

static void check(int r, const struct fault *why)
{
	if (r < 0)
		errx(1, "%s", why->text);
}

static void take_report(struct recording_report *report)
{
	for (size_t i = 0; i < report->notes.n; i++)
		warnx("%s", report->notes.items[i].fault.text);
	for (char **name = report->finished; name && *name; name++)
		(void)printf("%s\n", *name);
	recording_report_clear(report);
}

static void wait_for_workers(struct run *run)
{
	uint64_t n;

	while (!drain_idle(run->drain))
		(void)!read(run->notify_fd, &n, sizeof(n));
}

static void rotate(struct run *run)
{
	struct fault why;

	check(file_plan_describe(&run->in.plan, run->instance,
				 run->in.plan.params.source.tracing_fd, NULL, &why),
	      &why);
	check(recording_begin_next(run->recording, &run->in, &run->report, &why), &why);
	(void)drain_retarget(run->drain, recording_file(run->recording), run->max_bytes);
	wait_for_workers(run);
	drain_retargeted(run->drain);
	check(recording_finish_old(run->recording, &run->in, &run->report, &why), &why);
	take_report(&run->report);
}

static bool must_rotate(const struct run *run)
{
	return drain_full(run->drain) || drain_bytes_left(run->drain) <= 0;
}

static void begin(struct run *run, const struct trace_config *config, const char *name)
{
	int tracing_fd = open("/sys/kernel/tracing", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct drain_fds *fds;
	struct fault why;

	check(tracefs_usable(&why), &why);
	check(instance_create(name, "engine_record", config, &run->instance, &why), &why);
	run->symbols = symbols_new();
	fds = drain_fds_new(instance_n_cpus(run->instance));
	if (!run->symbols || !fds || file_plan_init(&run->in.plan, run->instance) < 0 ||
	    recording_report_init(&run->report, fds->n_cpus) < 0 || drain_new(&run->drain) < 0 ||
	    recording_new(&run->recording) < 0)
		errx(1, "no memory");
	check(file_plan_describe(&run->in.plan, run->instance, tracing_fd, NULL, &why), &why);
	run->in.plan.params.symbols = run->symbols;
	run->in.plan.params.max_file_size = run->max_bytes;
	run->in.plan.params.slack = 2 * config->buffer_size;
	run->in.limits.max_use = UINT64_MAX;
	check(drain_open(run->drain, run->instance, fds, WORKERS, &why), &why);
	check(recording_open(run->recording, &run->in, &run->report, &why), &why);
	check(drain_run(run->drain, recording_file(run->recording), run->max_bytes, MIB,
			run->notify_fd, &why),
	      &why);
	check(instance_trace(run->instance, true, &why), &why);
	(void)printf("recording\n");
	(void)fflush(stdout);
}

static void record(struct run *run)
{
	struct pollfd fds[] = {{.fd = run->signal_fd, .events = POLLIN},
			       {.fd = run->notify_fd, .events = POLLIN}};
	struct fault why;
	uint64_t n;

	for (;;) {
		bool quiet = poll(fds, 2, FLUSH_MSEC) == 0;

		if (fds[0].revents)
			return;
		if (fds[1].revents)
			(void)!read(run->notify_fd, &n, sizeof(n));
		if (drain_trouble(run->drain) < 0)
			errx(1, "cannot write: %s", strerror(-drain_trouble(run->drain)));
		if (must_rotate(run)) {
			rotate(run);
		} else if (quiet) {
			drain_flush(run->drain);
			check(recording_sync(run->recording, &run->in, &run->report, &why), &why);
		}
	}
}

static void end(struct run *run)
{
	struct fault why;

	check(instance_trace(run->instance, false, &why), &why);
	do {
		if (drain_full(run->drain))
			rotate(run);
		(void)drain_post(run->drain, WORKER_FINISH);
		wait_for_workers(run);
	} while (drain_full(run->drain));
	drain_close(run->drain, NULL);
	recording_close_current(run->recording);
	check(recording_finish_old(run->recording, &run->in, &run->report, &why), &why);
	take_report(&run->report);
	recording_free(run->recording);
	drain_free(run->drain);
	recording_report_done(&run->report);
	file_plan_done(&run->in.plan);
	symbols_free(run->symbols);
	check(instance_destroy(run->instance, &why), &why);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"instance", required_argument, NULL, 'i'},
		{"dir", required_argument, NULL, 'd'},
		{"event", required_argument, NULL, 'e'},
		{"max-bytes", required_argument, NULL, 'm'},
		{},
	};
	struct trace_event event = {};
	struct trace_config config = {.events = &event,
				      .n_events = 1,
				      .clock = (char[]){"mono"},
				      .buffer_size = 4 * MIB,
				      .buffer_percent = 25};
	struct run run = {.in.dir_fd = -EBADF, .max_bytes = 64 * MIB};
	const char *name = NULL;
	sigset_t signals;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
		if (c == 'i')
			name = optarg;
		else if (c == 'd')
			run.in.dir_fd = open(optarg, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		else if (c == 'e')
			event.system = strtok_r(optarg, ":", &event.name);
		else if (c != 'm' || parse_size(optarg, &run.max_bytes) < 0)
			return 2;
	if (!name || !event.system || !*event.name || run.in.dir_fd < 0)
		errx(2, "--instance=, --dir= of a folder, and --event=SYSTEM:NAME are needed");
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL); /* of the workers, too */
	run.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
	run.notify_fd = eventfd(0, EFD_CLOEXEC);
	begin(&run, &config, name);
	record(&run);
	end(&run);
	return 0;
}
