/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The size of the kernel's table of task names, which is one for all sessions: raised by the first
 * that starts, restored at the end. What it was is noted in the state directory, in case that
 * flyrecd is killed. Failure is only logged. Main thread.
 */
#pragma once

#include <stdbool.h>

struct environment;

struct cmdlines {
	bool raised;
	unsigned old; /* as we found it; 0: not changed */
};

/* Once; later calls do nothing */
void cmdlines_raise(const struct environment *env);

/* If an earlier process has done that and had no time to undo it */
void cmdlines_resume(const struct environment *env);

/* Back to what it was */
void cmdlines_restore(const struct environment *env);
