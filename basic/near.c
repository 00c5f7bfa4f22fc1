/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "basic/near.h"

static bool same(char a, char b)
{
	return strncasecmp(&a, &b, 1) == 0;
}

/* Levenshtein's distance, letters compared without case; any number above @most if it is more */
static size_t distance(const char *a, size_t m, const char *b, size_t n, size_t most)
{
	size_t row[NEAR_LENGTH_MAX + 1], least = 0;

	for (; m > 0 && n > 0 && same(*a, *b); m--, n--)
		a++, b++;
	for (; m > 0 && n > 0 && same(a[m - 1], b[n - 1]); m--)
		n--;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; i <= m && least <= most; i++) {
		size_t diagonal = row[0];

		least = row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t change = !same(a[i - 1], b[j - 1]);
			size_t best = MIN(diagonal + change, MIN(row[j], row[j - 1]) + 1);

			diagonal = row[j];
			row[j] = best;
			least = MIN(least, best);
		}
	}
	return MAX(row[n], least);
}

bool near_better(const char *word, const char *known, size_t *best)
{
	size_t m = strlen(word), n = strlen(known), most = n < 5 ? 1 : 2, d;

	/* most names of many are ruled out by this alone */
	if (m > NEAR_LENGTH_MAX || n > NEAR_LENGTH_MAX || m + most < n || n + most < m)
		return false;
	d = distance(word, m, known, n, most);
	if (d > most || d >= *best)
		return false;
	*best = d;
	return true;
}

void near_add(struct near_list *list, const char *word, const char *known)
{
	size_t d = list->n < NEAR_MAX ? SIZE_MAX : list->distances[NEAR_MAX - 1], at;

	if (!near_better(word, known, &d))
		return;
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->names[i], known) == 0)
			return;
	at = list->n < NEAR_MAX ? list->n++ : NEAR_MAX - 1;
	for (; at > 0 && list->distances[at - 1] > d; at--) {
		memcpy(list->names[at], list->names[at - 1], sizeof(list->names[at]));
		list->distances[at] = list->distances[at - 1];
	}
	(void)snprintf(list->names[at], sizeof(list->names[at]), "%s", known);
	list->distances[at] = d;
}

const char *near_text(const struct near_list *list, char *buffer)
{
	size_t n = 0;

	*buffer = '\0';
	for (size_t i = 0; i < list->n; i++)
		n += (size_t)snprintf(buffer + n, NEAR_TEXT_SIZE - n, "%s'%s'",
				      i == 0		? ", did you mean "
				      : i + 1 < list->n ? ", "
							: " or ",
				      list->names[i]);
	if (list->n > 0)
		(void)snprintf(buffer + n, NEAR_TEXT_SIZE - n, "?");
	return buffer;
}
