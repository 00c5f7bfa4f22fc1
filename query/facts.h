/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What files say of themselves as tables: their tasks, readings of clocks, the files. All rows are
 * made when a scan begins: there are thousands, not millions. One thread.
 */
#pragma once

#include "query/table.h"

extern const struct query_table tasks_table, clocks_table, files_table;
