/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A little tracefs of plain files, with one instance. Fails the test when something does not work.
 */
#pragma once

#include "tests/unit/tmp.h"
#include "writer/trace-file.h"

#define FAKE_INSTANCE_NAME "flyrec.oom"
#define FAKE_INSTANCE	   "instances/" FAKE_INSTANCE_NAME "/"

/* @info: its last_boot_info; NULL: it is not one that the kernel made at boot */
void fake_instance_put(struct tmp *tmp, const char *info);
void fake_instance_drop(struct tmp *tmp);

/* What files of a sched session in @tmp, as the root of tracefs and as an instance, begin with */
struct trace_file_params fake_instance_params(struct tmp *tmp);
