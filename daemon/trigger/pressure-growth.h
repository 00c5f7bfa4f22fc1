/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How much a counter of pressure has grown in the last window, by looks at it twice in a window.
 * Pure functions over a plain value.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

struct pressure_growth {
	uint64_t usec[2], total[2]; /* the look before the last one, and the last one */
	bool begun;
};

/**
 * pressure_growth_begin() - what comes after this counts
 */
void pressure_growth_begin(struct pressure_growth *growth, uint64_t now_usec, uint64_t total);

/**
 * pressure_growth_add() - another look
 * @total: the counter; if it is less than before it is another one, which began at 0
 * Return: how much has come since the look before the last one; if that is several windows ago, of
 * one of them. 0 at the first look.
 */
uint64_t pressure_growth_add(struct pressure_growth *growth, uint64_t window_usec,
			     uint64_t now_usec, uint64_t total);
