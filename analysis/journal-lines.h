/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines of the system journal that recordings have (formats/own-journal.h), of all of them in the
 * order of time. Plain memory, one thread.
 */
#pragma once

#include "analysis/sources.h"
#include "formats/own-journal.h"

struct trace_dat;

struct journal_lines {
	struct own_journal_line *list;
	size_t n;
	uint64_t left_out; /* of all files; of OWN_JOURNAL_LEFT_OUT_MAX in one there may be more */
	size_t n_files;	   /* that have a journal */
	char **texts;	   /* one a file, which the list points into */
};

void journal_lines_done(struct journal_lines *lines);

/**
 * journal_lines_add() - those of a file, if it has any
 * Return: 0, -ENOMEM, or another negative errno with @why: they are damaged, and left out.
 */
int journal_lines_add(struct journal_lines *lines, const struct trace_dat *dat, struct fault *why);

/**
 * journal_lines_sort() - after the last file: by time, and what several files have is there once
 */
void journal_lines_sort(struct journal_lines *lines);

/**
 * journal_lines_keep() - forget those that are not of this time
 * @from, @to: of events
 * Keeps all where the files' times are no dates.
 */
void journal_lines_keep(struct journal_lines *lines, const struct sources_facts *facts,
			uint64_t from, uint64_t to);

#define JOURNAL_SLACK (100 * 1000 * NSEC_PER_USEC)

/**
 * journal_lines_near() - those of a time, and of JOURNAL_SLACK before and after it
 * @from, @to: of events; where these are no dates there are none
 * @ret: the first of them
 * Return: how many.
 */
size_t journal_lines_near(const struct journal_lines *lines, const struct sources_facts *facts,
			  uint64_t from, uint64_t to, const struct own_journal_line **ret);

/**
 * journal_lines_pick() - the most severe ones, of the same priority the first ones, in the order of
 * time
 * @list, @n: of which
 * @worst: only those whose priority is so low a number, or lower
 * @ret: @max of them
 * Return: how many.
 */
size_t journal_lines_pick(const struct own_journal_line *list, size_t n, uint32_t worst, size_t max,
			  const struct own_journal_line **ret);
