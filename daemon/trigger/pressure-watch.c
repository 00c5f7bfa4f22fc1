/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "daemon/trigger/pressure-watch.h"

#define PERIOD_USEC (2 * USEC_PER_SEC) /* PSI_FREQ: averages are taken this often anyway */

/*
 * Before Linux 6.5 only CAP_SYS_RESOURCE may write at all; since then anybody may whose window is a
 * multiple of the period in which the kernel looks anyway (EINVAL otherwise). The capability is
 * never asked for: it is either there or not.
 */
static int explain(const struct pressure *p, const char *path, int error, struct fault *why)
{
	if (error == -ENOENT || error == -EOPNOTSUPP)
		return fault_errno(why, error,
				   "%s: this kernel does not watch pressure (CONFIG_PSI, psi=1)",
				   path);
	if (error == -EINVAL && p->window_usec % PERIOD_USEC != 0)
		return fault_set(why, error,
				 "%s: a window that is no multiple of 2s needs CAP_SYS_RESOURCE, "
				 "see OnPressure= in flyrec.session(5)",
				 path);
	if (error == -EPERM || error == -EACCES)
		return fault_errno(why, error,
				   "%s: kernels before 6.5 ask for CAP_SYS_RESOURCE, see "
				   "OnPressure= in flyrec.session(5)",
				   path);
	return fault_errno(why, error, "cannot watch %s", path);
}

int pressure_watch_open(const struct pressure *p, int *ret_fd, struct fault *why)
{
	_cleanup_close_ int fd = -EBADF;
	char path[32], text[80];
	int n;

	(void)snprintf(path, sizeof(path), "/proc/pressure/%s", p->resource);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return explain(p, path, -errno, why);
	n = snprintf(text, sizeof(text), "%s %" PRIu64 " %" PRIu64, p->full ? "full" : "some",
		     p->stall_usec, p->window_usec);
	/* The kernel takes the last byte for the end of the line, whatever it is */
	if (write(fd, text, (size_t)n + 1) < 0)
		return explain(p, path, -errno, why);
	*ret_fd = TAKE_FD(fd);
	return 0;
}
