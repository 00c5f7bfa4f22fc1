/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `query` without SQL: lines from the terminal, or from a pipe. Two processes: one reads lines and
 * has the terminal, the other one reads the recordings and has no rights. Main thread.
 */
#pragma once

#include "ctl/query-run.h"

/**
 * query_shell() - until the end of the input
 * @run: not begun yet
 */
enum ctl_status query_shell(struct query_run *run);
