/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table "events", and one for each kind of event, whose fields are columns. One thread.
 */
#pragma once

#include "query/table.h"

extern const struct query_table events_table;

/* Of a table whose kind is a struct event_kind; its columns are found by events_columns() */
extern const struct query_table_type events_type;

/**
 * events_columns() - those of a kind of event, of all files together
 */
int events_columns(struct query *query, struct query_table *table, struct fault *why);
