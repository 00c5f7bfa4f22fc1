/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/timerfd.h>

#include "basic/log.h"
#include "basic/now.h"
#include "daemon/manager/machine.h"
#include "engine/clock.h"
#include "writer/file-age.h"

#define CLOCK_TELL_USEC (USEC_PER_SEC / 1000) /* less is not worth a line in the log */
#define SLEPT_USEC	USEC_PER_SEC

struct machine {
	const struct machine_calls *calls;
	void *userdata;
	int mounts_fd;
	sd_event_source *mounts_source; /* off unless a session minds */
	int clock_fd;			/* timerfd that tells when the wall clock is set */
	sd_event_source *clock_source;
	int64_t clock_usec; /* what it is ahead of the time since boot */
	int64_t slept_usec; /* clock_slept_usec(), last time it was looked at */
};

static int on_mounts(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct machine *m = userdata;

	m->calls->mounts_changed(m->userdata);
	return 0;
}

void machine_mind_mounts(struct machine *m, bool minded)
{
	if (m)
		(void)sd_event_source_set_enabled(m->mounts_source,
						  minded ? SD_EVENT_ON : SD_EVENT_OFF);
}

static int watch_mounts(struct machine *m, sd_event *event)
{
	int r;

	m->mounts_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (m->mounts_fd < 0)
		return -errno;
	/* proc_pid_mountinfo(5): a change is an exceptional condition, told once */
	r = sd_event_add_io(event, &m->mounts_source, m->mounts_fd, EPOLLPRI, on_mounts, m);
	return r < 0 ? r : sd_event_source_set_enabled(m->mounts_source, SD_EVENT_OFF);
}

/* Ends when the clock is set or the machine was suspended, and never else */
static int arm_clock(const struct machine *m)
{
	const struct itimerspec never = {.it_value.tv_sec = INT64_MAX / (int64_t)NSEC_PER_SEC};

	return timerfd_settime(m->clock_fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never,
			       NULL) < 0
		       ? -errno
		       : 0;
}

static void tell_of_step(struct machine *m)
{
	int64_t now = file_age_offset_usec(), by = now - m->clock_usec;

	if (llabs(by) < (int64_t)CLOCK_TELL_USEC)
		return;
	m->clock_usec = now;
	log_notice("the clock was set %s by %lld.%03lld s: beginning new segments",
		   by > 0 ? "forward" : "back", llabs(by) / (long long)USEC_PER_SEC,
		   llabs(by) % (long long)USEC_PER_SEC / 1000);
}

static bool has_slept(struct machine *m)
{
	int64_t now = clock_slept_usec(), slept = now - m->slept_usec;

	if (slept < (int64_t)SLEPT_USEC)
		return false;
	m->slept_usec = now;
	log_notice("the machine was suspended for %lld s: beginning new segments, but for clocks "
		   "that went on",
		   (long long)slept / (long long)USEC_PER_SEC);
	return true;
}

static int on_clock(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct machine *m = userdata;
	uint64_t n;

	(void)!read(fd, &n, sizeof(n));
	(void)arm_clock(m);
	tell_of_step(m);
	m->calls->clock_changed(m->userdata, has_slept(m));
	return 0;
}

static int watch_clock(struct machine *m, sd_event *event)
{
	int r;

	m->clock_usec = file_age_offset_usec();
	m->slept_usec = clock_slept_usec();
	m->clock_fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	r = m->clock_fd < 0 ? -errno : arm_clock(m);
	return r < 0 ? r
		     : sd_event_add_io(event, &m->clock_source, m->clock_fd, EPOLLIN, on_clock, m);
}

int machine_new(sd_event *event, const struct machine_calls *calls, void *userdata,
		struct machine **ret)
{
	_cleanup_(machine_freep) struct machine *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	*m = (struct machine){
		.calls = calls, .userdata = userdata, .mounts_fd = -EBADF, .clock_fd = -EBADF};
	r = watch_mounts(m, event);
	if (r >= 0)
		r = watch_clock(m, event);
	if (r >= 0)
		*ret = TAKE_PTR(m);
	return r;
}

void machine_free(struct machine *m)
{
	if (!m)
		return;
	sd_event_source_disable_unref(m->mounts_source);
	sd_event_source_disable_unref(m->clock_source);
	close_p(&m->mounts_fd);
	close_p(&m->clock_fd);
	free(m);
}
