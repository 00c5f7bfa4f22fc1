/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Work that may wait for a disk, done on a thread of its own so that the event loop never does.
 * Owner: the session; main thread.
 */
#pragma once

#include <systemd/sd-event.h>

#include "basic/fault.h"

/* On the job's thread; @why may be set when it returns negative errno, is empty before */
typedef int (*job_work_t)(void *userdata, struct fault *why);
/* On the main thread; @why as the work has left it */
typedef void (*job_done_t)(void *userdata, int result, const struct fault *why);

/**
 * job_start() - run @work on a new thread, then @done on the main thread
 * @work: touches only what its owner leaves alone meanwhile; its return value goes to @done
 * @done: the job object is freed after it
 * Return: 0 or negative errno (then neither is called).
 */
int job_start(sd_event *event, job_work_t work, job_done_t done, void *userdata);
