/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl export --format=qemu4v: the events that import --format=qemu4v made become the lines
 * they were made of, in the order of the lines. mmiotrace_rw events of a kernel become memory
 * accesses. Main thread; memory is bounded by the number of CPUs.
 */
#pragma once

#include "ctl/export.h"

/**
 * export_qemu4v() - options: --tarmac, and those that say which events
 */
enum ctl_status export_qemu4v(const struct export *export);
