/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What one event costs the tasks that are traced, measured once when somebody first asks: by a job,
 * as the machine takes some hundredths of a second for it. One for all sessions. Main thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

struct environment;

/* @result: 0 and nanoseconds; or negative errno and why */
typedef void (*calibration_done_t)(void *userdata, int result, double nsec,
				   const struct fault *why);

/* The instance in which events are counted, behind InstancePrefix=: no session has a dot in its
 * name
 */
#define CALIBRATION_RATES "event.rates"

struct calibration_waiter;

struct calibration {
	void (*over)(void *userdata); /* it is not busy any more */
	void *userdata;
	uint64_t cpu_usec; /* CPU time that it has taken */
	bool counting;	   /* overhead.c only: of some session the rates of its events */

	/* calibration.c only */
	bool busy;
	double nsec;	      /* 0: not measured yet */
	struct fault failure; /* of the last try */
	uint64_t failed_usec; /* monotonic; 0: it has not */
	struct calibration_waiter *waiters;
};

/**
 * calibration_ask() - how many nanoseconds does an event take?
 * @done: called once, maybe before this returns. A measurement that failed is not tried again
 * for a minute.
 * Return: 0 or -ENOMEM, and @done is not called.
 */
int calibration_ask(const struct environment *env, calibration_done_t done, void *userdata);

/* What an earlier process may have left, having been killed while it measured */
void calibration_clean_up(const struct environment *env);
