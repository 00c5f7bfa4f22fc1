/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A wall clock that test-clock.sh sets, for flyrecd alone (LD_PRELOAD): CLOCK_REALTIME is off by as
 * many nanoseconds as the file $CLOCK_SHIM.ns says, and the timer that the kernel would cancel when
 * the clock is set is the fifo $CLOCK_SHIM.fifo.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static int fifo = -1;

static int shim_open(const char *suffix, int flags)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s%s", getenv("CLOCK_SHIM"), suffix);
	return open(path, flags | O_CLOEXEC);
}

int timerfd_create(int clock, int flags)
{
	if (clock != CLOCK_REALTIME || fifo >= 0)
		return (int)syscall(SYS_timerfd_create, clock, flags);
	fifo = shim_open(".fifo", O_RDWR | O_NONBLOCK);
	return fifo;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	return fd == fifo ? 0 : (int)syscall(SYS_timerfd_settime, fd, flags, new, old);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, clock, ret), fd;
	char text[32] = "";
	long long nsec;

	if (r < 0 || clock != CLOCK_REALTIME)
		return r;
	fd = shim_open(".ns", O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		abort();
	close(fd);
	nsec = ret->tv_sec * 1000000000LL + ret->tv_nsec + atoll(text);
	*ret = (struct timespec){.tv_sec = nsec / 1000000000, .tv_nsec = nsec % 1000000000};
	return r;
}
