/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "basic/macro.h"
#include "basic/scheduling.h"

/* As linux/sched/types.h has it, which some versions of the C library's sched.h are at odds with */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

#define POLICY_IDLE 5U
#define KEEP_POLICY UINT64_C(8)

/* linux/ioprio.h, which C libraries do not have */
#define IOPRIO_OF_PROCESS 1
#define IOPRIO_NONE	  0
#define IOPRIO_IDLE	  (3 << 13)

/*
 * No privilege, and no more of the CPU: only that we need not wait until the others' slices are
 * over. The kernel knows it since 6.12, older ones take no notice.
 */
void scheduling_alert(void)
{
	const struct scheduling s = {
		.size = sizeof(s),
		.flags = KEEP_POLICY,
		.nice = getpriority(PRIO_PROCESS, 0),
		.runtime = 100 * NSEC_PER_USEC,
	};

	(void)syscall(SYS_sched_setattr, 0, &s, 0);
}

void scheduling_idle(void)
{
	const struct scheduling s = {.size = sizeof(s), .policy = POLICY_IDLE};

	(void)syscall(SYS_sched_setattr, 0, &s, 0);
	(void)syscall(SYS_ioprio_set, IOPRIO_OF_PROCESS, 0, IOPRIO_IDLE);
}

void scheduling_normal(pid_t tid)
{
	const struct scheduling s = {.size = sizeof(s), .nice = getpriority(PRIO_PROCESS, 0)};

	(void)syscall(SYS_sched_setattr, tid, &s, 0);
	(void)syscall(SYS_ioprio_set, IOPRIO_OF_PROCESS, tid, IOPRIO_NONE);
}
