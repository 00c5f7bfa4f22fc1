/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <stdbool.h>

#include "basic/macro.h"
#include "query/percentile.h"

#define FIRST ((sqlite3_uint64)64) /* values */

/* By sqlite3_malloc(): counts as SQLite's memory. Small numbers, as waits are, take half of it */
struct values {
	uint32_t *small;
	double *list; /* in their place, if one was not so */
	sqlite3_uint64 n, room;
	double p; /* from 0 to 1 */
	bool begun;
};

static int widen(struct values *v)
{
	v->list = sqlite3_malloc64(MAX(v->room, FIRST) * sizeof(*v->list));
	if (!v->list)
		return SQLITE_NOMEM;
	v->room = MAX(v->room, FIRST);
	for (sqlite3_uint64 i = 0; i < v->n; i++)
		v->list[i] = v->small[i];
	sqlite3_free(v->small);
	v->small = NULL;
	return SQLITE_OK;
}

static int grow(struct values *v)
{
	const sqlite3_uint64 room = MAX(v->room + v->room / 4, FIRST);
	void *more = v->list ? sqlite3_realloc64(v->list, room * sizeof(*v->list))
			     : sqlite3_realloc64(v->small, room * sizeof(*v->small));

	if (!more)
		return SQLITE_NOMEM;
	if (v->list)
		v->list = more;
	else
		v->small = more;
	v->room = room;
	return SQLITE_OK;
}

static int add_value(struct values *v, sqlite3_value *value, int type)
{
	const sqlite3_int64 number = sqlite3_value_int64(value);
	int r = SQLITE_OK;

	if (!v->list && (type != SQLITE_INTEGER || number < 0 || number > UINT32_MAX))
		r = widen(v);
	if (r == SQLITE_OK && v->n == v->room)
		r = grow(v);
	if (r != SQLITE_OK)
		return r;
	if (v->list)
		v->list[v->n++] = sqlite3_value_double(value);
	else
		v->small[v->n++] = (uint32_t)number;
	return SQLITE_OK;
}

/* The share that was asked for, from 0 to 1; the same in all rows */
static bool take_share(sqlite3_context *context, struct values *v, int argc, sqlite3_value **argv)
{
	double p = 0.5;

	if (argc > 1) {
		int type = sqlite3_value_numeric_type(argv[1]);

		p = sqlite3_value_double(argv[1]) / 100;
		if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || !(p >= 0 && p <= 1)) {
			sqlite3_result_error(context,
					     "percentile(): the second argument is a number "
					     "between 0 and 100",
					     -1);
			return false;
		}
	}
	if (v->begun && (p < v->p || p > v->p)) {
		sqlite3_result_error(
			context, "percentile(): the second argument is the same in all rows", -1);
		return false;
	}
	v->begun = true;
	v->p = p;
	return true;
}

static void on_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	struct values *v = sqlite3_aggregate_context(context, sizeof(*v));
	int type = sqlite3_value_numeric_type(argv[0]);

	if (!v) {
		sqlite3_result_error_nomem(context);
		return;
	}
	if (!take_share(context, v, argc, argv) || type == SQLITE_NULL)
		return;
	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
		sqlite3_result_error(context, "percentile(): the first argument is a number", -1);
	else if (add_value(v, argv[0], type) != SQLITE_OK)
		sqlite3_result_error_nomem(context);
}

/* Hoare's selection: the @k lowest stand in front of list[k], which is the next one */
#define DEFINE_SELECT(type)                                                     \
	static void select_##type(type *list, sqlite3_int64 n, sqlite3_int64 k) \
	{                                                                       \
		sqlite3_int64 left = 0, right = n - 1;                          \
                                                                                \
		while (left < right) {                                          \
			const type pivot = list[left + (right - left) / 2];     \
			sqlite3_int64 i = left, j = right;                      \
                                                                                \
			while (i <= j) {                                        \
				while (list[i] < pivot)                         \
					i++;                                    \
				while (pivot < list[j])                         \
					j--;                                    \
				if (i <= j) {                                   \
					SWAP(list[i], list[j]);                 \
					i++;                                    \
					j--;                                    \
				}                                               \
			}                                                       \
			if (k <= j)                                             \
				right = j;                                      \
			else if (k >= i)                                        \
				left = i;                                       \
			else                                                    \
				break;                                          \
		}                                                               \
	}
DEFINE_SELECT(uint32_t)
DEFINE_SELECT(double)

static double value_at(const struct values *v, sqlite3_uint64 i)
{
	return v->list ? v->list[i] : v->small[i];
}

static void free_values(struct values *v)
{
	if (!v)
		return;
	sqlite3_free(v->list);
	sqlite3_free(v->small);
}

static void on_final(sqlite3_context *context)
{
	struct values *v = sqlite3_aggregate_context(context, 0);
	double at, low, high;
	sqlite3_uint64 below;

	if (!v || v->n == 0) {
		free_values(v);
		return;
	}
	at = v->p * (double)(v->n - 1);
	below = MIN((sqlite3_uint64)at, v->n - 1);
	if (v->list)
		select_double(v->list, (sqlite3_int64)v->n, (sqlite3_int64)below);
	else
		select_uint32_t(v->small, (sqlite3_int64)v->n, (sqlite3_int64)below);
	low = high = value_at(v, below);
	if (below + 1 < v->n) {
		high = value_at(v, below + 1);
		for (sqlite3_uint64 i = below + 2; i < v->n; i++)
			high = MIN(high, value_at(v, i));
	}
	sqlite3_result_double(context, low + (high - low) * (at - floor(at)));
	free_values(v);
}

int percentile_add(sqlite3 *db)
{
	const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
	int r = sqlite3_create_function_v2(db, "percentile", 2, flags, NULL, NULL, on_step,
					   on_final, NULL);

	if (r != SQLITE_OK)
		return r;
	return sqlite3_create_function_v2(db, "median", 1, flags, NULL, NULL, on_step, on_final,
					  NULL);
}
