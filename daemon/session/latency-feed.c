/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the process of OnLatency= looks at (daemon/latency/latency-process.h): of a record session
 * its files, as those who follow it have them, of a flight session the ring buffer, and a file to
 * copy it to. Main thread, but for what that process calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "basic/strv.h"
#include "daemon/session/session-internal.h"
#include "recorder/ring-map.h"
#include "writer/store.h"

static int open_cpu(const struct session *s, unsigned cpu, struct latency_ring_feed *ring,
		    struct fault *why)
{
	int r = instance_open_cpu(s->claim.instance, cpu, &ring->trace_fds[cpu], why);

	if (r < 0)
		return r;
	r = ring_map_probe(ring->trace_fds[cpu]);
	if (r == -EINVAL) { /* it has never been there */
		close_p(&ring->trace_fds[cpu]);
		ring->trace_fds[cpu] = -EBADF;
		return 0;
	}
	if (r < 0)
		return fault_errno(why, r,
				   "of a flight session it takes a ring buffer that can be mapped "
				   "(Linux 6.10)");
	ring->stats_fds[cpu] = instance_open_stats(s->claim.instance, cpu);
	return ring->stats_fds[cpu] < 0
		       ? fault_errno(why, ring->stats_fds[cpu], "cannot open a CPU's stats")
		       : 0;
}

/* What the file has before its first region, in memory */
static int copy_to_memory(const struct trace_file *file, struct fault *why)
{
	_cleanup_close_ int fd = memfd_create("latency", MFD_CLOEXEC);
	struct trace_file_region region;
	struct stat st;
	off_t at = 0;

	trace_file_region(file, 0, &region);
	if (fd < 0 || fstat(region.buffered_fd, &st) < 0 || ftruncate(fd, st.st_size) < 0)
		return fault_errno(why, -errno, "cannot make a file in memory");
	while ((uint64_t)at < region.offset) {
		ssize_t n = sendfile(fd, region.buffered_fd, &at, region.offset - (uint64_t)at);

		if (n <= 0)
			return fault_errno(why, n < 0 ? -errno : -EIO, "cannot copy a file");
	}
	return TAKE_FD(fd);
}

/* The process's: a file of the session's events, which becomes memory of it */
static int make_file(void *userdata, struct fault *why)
{
	const struct session *s = userdata;
	struct trace_file_params params = s->rec.files.plan.params;
	_cleanup_(trace_file_freep) struct trace_file *file = NULL;
	_cleanup_free_ char *none = strdup(""), *name = strf("latency-%s", s->name);
	_cleanup_close_ int dir_fd = open(s->env->runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (!none || !name || dir_fd < 0)
		return fault_errno(why, !none || !name ? -ENOMEM : -errno, "cannot open %s",
				   s->env->runtime_dir);
	/* What other threads of flyrecd may have locked is locked for ever */
	params.symbols = symbols_new_of(TAKE_PTR(none));
	params.own = (struct own_content){};
	params.names_room = 0;
	params.max_file_size = TIB; /* of holes */
	params.slack = MIB;
	memcpy(params.boot_id, s->env->boot_id, sizeof(params.boot_id));
	params.direct = STORAGE_DIRECT_NO;
	r = trace_file_create(dir_fd, name, &params, &file, why);
	symbols_free(params.symbols);
	if (r < 0)
		return r;
	store_drop_new(dir_fd, name);
	return copy_to_memory(file, why);
}

static int open_ring(struct session *s, struct latency_feed *ret, struct fault *why)
{
	struct latency_ring_feed *ring = &ret->ring;
	const unsigned n_cpus = instance_n_cpus(s->claim.instance);
	int r;

	/* a job may be reading the plan, and new events are about to be in it */
	if (s->step != STEP_NONE || s->spec.change)
		return -EAGAIN;
	r = file_plan_describe(&s->rec.files.plan, s->claim.instance, s->env->tracing_fd, NULL,
			       why);
	if (r < 0)
		return r;
	ring->subbuf_size = instance_subbuf_size(s->claim.instance);
	ring->trace_fds = calloc(n_cpus, sizeof(int));
	ring->stats_fds = calloc(n_cpus, sizeof(int));
	if (!ring->trace_fds || !ring->stats_fds)
		return fault_errno(why, -ENOMEM, "cannot look for latencies");
	for (; ring->n_cpus < n_cpus; ring->n_cpus++)
		ring->trace_fds[ring->n_cpus] = ring->stats_fds[ring->n_cpus] = -EBADF;
	for (unsigned cpu = 0; cpu < n_cpus && r >= 0; cpu++)
		r = open_cpu(s, cpu, ring, why);
	ret->make_file = make_file;
	ret->userdata = s;
	return r;
}

int session_open_latency(void *userdata, struct latency_feed *ret, struct fault *why)
{
	struct session *s = userdata;

	/* what waits while nothing is traced would seem to go on */
	if (s->state != SESSION_RECORDING || s->claim.paused)
		return -EAGAIN;
	ret->direct = s->mode->drains && s->spec.config->storage.direct != STORAGE_DIRECT_NO;
	return s->mode->drains ? session_open_watch(s, &ret->tail_fd, why) : open_ring(s, ret, why);
}
