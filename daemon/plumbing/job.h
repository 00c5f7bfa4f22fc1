/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Work that may wait for a disk, done on a thread of its own so that the event loop never does.
 * Owner: the session; main thread.
 */
#pragma once

#include <systemd/sd-event.h>

struct job;

/**
 * job_start() - run @work on a new thread, then @done on the main thread
 * @work: touches only what its owner leaves alone meanwhile; its return value goes to @done
 * @done: the job object is freed after it
 * Return: 0 or negative errno (then neither is called).
 */
int job_start(sd_event *event, int (*work)(void *userdata),
	      void (*done)(void *userdata, int result), void *userdata);
