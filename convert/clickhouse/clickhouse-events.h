/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events as rows of the table "events": of a batch a block for each kind of event, with the columns
 * that this kind has. A row is what `flyrecctl query` has for it, and which host and file it is of.
 */
#pragma once

#include "convert/clickhouse/native-rows.h"
#include "decode/decoder.h"

struct clickhouse_events;

/**
 * clickhouse_events_new() - what one thread makes rows with
 */
int clickhouse_events_new(const struct decoder *decoder, const struct clickhouse_labels *labels,
			  struct clickhouse_events **ret);
struct clickhouse_events *clickhouse_events_free(struct clickhouse_events *events);

struct clickhouse_order;
struct event_turn;

/**
 * clickhouse_events_put() - make blocks with the rows of @n events
 * @turn: of this thread; from when it comes @order is used
 * Return: 0, -ENOMEM, or as clickhouse_order_flush().
 */
int clickhouse_events_put(struct clickhouse_events *events, const struct decode_event *list,
			  size_t n, const struct event_turn *turn, struct clickhouse_order *order);
