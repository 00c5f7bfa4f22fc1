/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What might have been meant by a word that nobody knows: names that a typing mistake or two would
 * turn into it. Pure functions, any thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

/**
 * near_better() - is @known near @word, and nearer than what was found before?
 * Two typing mistakes at most, one in short words; the case of letters does not count.
 * @best: SIZE_MAX to begin with
 */
bool near_better(const char *word, const char *known, size_t *best);
