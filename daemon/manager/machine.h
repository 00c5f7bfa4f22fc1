/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What happens to the machine and concerns every session: something is mounted or unmounted, the
 * wall clock is set, the machine was suspended. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "basic/macro.h"

struct machine;

struct machine_calls {
	/* What is mounted where has changed */
	void (*mounts_changed)(void *userdata);
	/* The wall clock may have been set. A file has one offset from its clock to the wall
	 * clock's, and its name is of that. @slept: the machine was suspended */
	void (*clock_changed)(void *userdata, bool slept);
};

int machine_new(sd_event *event, const struct machine_calls *calls, void *userdata,
		struct machine **ret);
/* NULL is fine, here and below */
void machine_free(struct machine *machine);

/* Be woken by mounts only as long as that matters to anybody; at first it does not */
void machine_mind_mounts(struct machine *machine, bool minded);

DEFINE_CLEANUP(struct machine *, machine_free)
