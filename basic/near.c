/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "basic/near.h"

#define LENGTH_MAX 96 /* longer names are not guessed at */

/* Levenshtein's distance, letters compared without case */
static size_t distance(const char *a, const char *b)
{
	size_t row[LENGTH_MAX + 1], n = strlen(b);

	if (strlen(a) > LENGTH_MAX || n > LENGTH_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t change = strncasecmp(a + i - 1, b + j - 1, 1) != 0;
			size_t best = MIN(diagonal + change, MIN(row[j], row[j - 1]) + 1);

			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[n];
}

bool near_better(const char *word, const char *known, size_t *best)
{
	size_t most = strlen(known) < 5 ? 1 : 2, d = distance(word, known);

	if (d > most || d >= *best)
		return false;
	*best = d;
	return true;
}
