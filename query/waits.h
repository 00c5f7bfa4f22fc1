/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What analysis finds as tables, a row a wait, handler, request or system call, in the order of
 * their ends. Rows are made by a pass over all events that are wanted: what a time in SQL leaves
 * out may have begun before. One thread.
 */
#pragma once

#include "query/table.h"

extern const struct query_table runqueue_table, blocked_table, irqs_table, block_table,
	syscalls_table;
