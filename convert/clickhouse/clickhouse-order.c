/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "basic/out-file.h"
#include "convert/clickhouse/clickhouse-order.h"

struct clickhouse_order {
	struct kind {
		const char *name;
		struct text blocks;
	} * kinds;	    /* by format and 1 */
	struct kind **list; /* sorted by name */
	size_t n;
	size_t rows, bytes; /* of all */
	int fd;
	int written;
	struct fault fault;
};

static int by_name(const void *a, const void *b)
{
	const struct kind *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

int clickhouse_order_new(const struct decoder *decoder, int fd, struct clickhouse_order **ret)
{
	struct clickhouse_order *order = calloc(1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	order->n = decoder_dat(decoder)->n_formats + 1;
	order->fd = fd;
	order->kinds = calloc(order->n, sizeof(*order->kinds));
	order->list = calloc(order->n, sizeof(struct kind *));
	if (!order->kinds || !order->list) {
		clickhouse_order_free(order);
		return -ENOMEM;
	}
	for (size_t i = 0; i < order->n; i++) {
		order->kinds[i].name = i > 0 ? decoder_name(decoder, i - 1) : "";
		order->list[i] = &order->kinds[i];
	}
	qsort(order->list, order->n, sizeof(order->list[0]), by_name);
	*ret = order;
	return 0;
}

struct clickhouse_order *clickhouse_order_free(struct clickhouse_order *order)
{
	if (!order)
		return NULL;
	for (size_t i = 0; order->kinds && i < order->n; i++)
		text_done(&order->kinds[i].blocks);
	free(order->kinds);
	free(order->list);
	free(order);
	return NULL;
}

int clickhouse_order_add(struct clickhouse_order *order, uint32_t kind, const char *bytes,
			 size_t size, size_t rows)
{
	struct text *blocks = &order->kinds[kind].blocks;

	text_bytes(blocks, bytes, size);
	order->rows += rows;
	order->bytes += size;
	return blocks->no_memory ? -ENOMEM : 0;
}

int clickhouse_order_flush(struct clickhouse_order *order, bool all)
{
	size_t room = 0;

	if (!all && order->rows < CLICKHOUSE_ORDER_ROWS && order->bytes < CLICKHOUSE_ORDER_BYTES)
		return 0;
	for (size_t i = 0; i < order->n; i++) {
		struct text *blocks = &order->list[i]->blocks;

		if (order->written == 0 && blocks->size > 0)
			order->written = out_file_write(order->fd, blocks->bytes, blocks->size,
							&order->fault);
		blocks->size = 0;
		room += blocks->room;
	}
	/* which kinds there are most of has changed again and again */
	for (size_t i = 0; i < order->n && room > CLICKHOUSE_ORDER_BYTES; i++) {
		text_done(&order->kinds[i].blocks);
		order->kinds[i].blocks = (struct text){};
	}
	order->rows = order->bytes = 0;
	return order->written == 0 ? 0 : -EPIPE;
}

int clickhouse_order_written(const struct clickhouse_order *order, struct fault *why)
{
	if (order->written < 0)
		*why = order->fault;
	return order->written;
}
