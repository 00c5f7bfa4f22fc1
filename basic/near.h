/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What might have been meant by a word that nobody knows: names that a typing mistake or two would
 * turn into it. Pure functions, any thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

#define NEAR_LENGTH_MAX 96 /* longer names are not guessed at */
#define NEAR_MAX	3

/* The nearest of many names, nearest first; zeroed to begin with */
struct near_list {
	char names[NEAR_MAX][NEAR_LENGTH_MAX + 1];
	size_t distances[NEAR_MAX];
	size_t n;
};

/**
 * near_better() - is @known near @word, and nearer than what was found before?
 * Two typing mistakes at most, one in short words; the case of letters does not count.
 * @best: SIZE_MAX to begin with
 */
bool near_better(const char *word, const char *known, size_t *best);

/**
 * near_add() - keep @known, of which a copy is made, if it is near @word and among the nearest
 */
void near_add(struct near_list *list, const char *word, const char *known);

/**
 * near_text() - ", did you mean 'a' or 'b'?", or "" where there is none
 * @buffer: NEAR_TEXT_SIZE bytes
 * Return: @buffer.
 */
#define NEAR_TEXT_SIZE (NEAR_MAX * (NEAR_LENGTH_MAX + 8) + 32)
const char *near_text(const struct near_list *list, char *buffer);
