/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/trigger/pressure-growth.h"

void pressure_growth_begin(struct pressure_growth *g, uint64_t now_usec, uint64_t total)
{
	*g = (struct pressure_growth){{now_usec, now_usec}, {total, total}, true};
}

uint64_t pressure_growth_add(struct pressure_growth *g, uint64_t window_usec, uint64_t now_usec,
			     uint64_t total)
{
	uint64_t growth, windows;

	if (!g->begun)
		pressure_growth_begin(g, now_usec, total);
	if (total < g->total[1])
		pressure_growth_begin(g, g->usec[1], 0);
	growth = total - g->total[0];
	windows = (now_usec - g->usec[0]) / window_usec;
	g->usec[0] = g->usec[1];
	g->total[0] = g->total[1];
	g->usec[1] = now_usec;
	g->total[1] = total;
	return growth / MAX(windows, UINT64_C(1));
}
