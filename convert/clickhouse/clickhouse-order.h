/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks of events in the order of their table, name before time: of so many rows each, those of
 * one name after those of another. ClickHouse makes a part of as many rows and sorts it first,
 * unless it is sorted already. Memory is that of these rows. One thread at a time.
 */
#pragma once

#include "basic/fault.h"
#include "decode/decoder.h"
#include "decode/text.h"

#define CLICKHOUSE_ORDER_ROWS  (UINT32_C(1) << 20) /* as in flyrec-fleet-load */
#define CLICKHOUSE_ORDER_BYTES (256 * MIB)	   /* if they have that many before */

struct clickhouse_order;

/**
 * clickhouse_order_new() - for the kinds of events of a file
 * @decoder: outlives @ret
 * @fd: stays the caller's
 */
int clickhouse_order_new(const struct decoder *decoder, int fd, struct clickhouse_order **ret);
struct clickhouse_order *clickhouse_order_free(struct clickhouse_order *order);

/**
 * clickhouse_order_add() - one more block, later than others of its kind
 * @kind: index of its format and 1; 0: of no format
 */
int clickhouse_order_add(struct clickhouse_order *order, uint32_t kind, const char *bytes,
			 size_t size, size_t rows);

/**
 * clickhouse_order_flush() - write what is there, if it is enough
 * @all: even if it is not
 * Return: 0, or -EPIPE when it cannot be written: clickhouse_order_written() says why.
 */
int clickhouse_order_flush(struct clickhouse_order *order, bool all);

/**
 * clickhouse_order_written() - Return: 0, OUT_FILE_E_PIPE, or negative errno with @why.
 */
int clickhouse_order_written(const struct clickhouse_order *order, struct fault *why);
