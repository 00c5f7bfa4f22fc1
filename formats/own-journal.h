/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines of the system journal in flyrec's own section of a trace.dat, those of a snapshot's time:
 * lines of text (formats/own-text.h), the oldest first, after one that says what they are of:
 *
 *   FROM_USEC TO_USEC LEFT_OUT\n
 *   { USEC PRIORITY PID CUT IDENTIFIER UNIT MESSAGE\n }*
 *
 * Times are realtime, as journald has received an entry (__REALTIME_TIMESTAMP). LEFT_OUT: so many
 * entries of that time are not here, older than those that are. PRIORITY: 0 to 7, 6 where the entry
 * has none. PID 0: of no process. CUT 1: the message was longer. The rest may be empty.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OWN_JOURNAL_ROOM	 (256U * 1024) /* in the file */
#define OWN_JOURNAL_MESSAGE	 2000U	       /* bytes of a message; longer ones are cut */
#define OWN_JOURNAL_NAME	 255U	       /* of an identifier or a unit */
#define OWN_JOURNAL_PRIORITY	 6U	       /* where an entry has none */
#define OWN_JOURNAL_PRIORITIES	 8U
#define OWN_JOURNAL_LEFT_OUT_MAX 100000U /* so many are counted: there may be more */

struct own_journal_head {
	uint64_t from_usec, to_usec, left_out;
};

struct own_journal_line {
	uint64_t usec;
	uint32_t priority, pid;
	bool cut;
	const char *identifier, *unit, *message; /* "": none */
};

/**
 * own_journal_put_head(), own_journal_put() - as a line
 * @message: instead of the line's: @size bytes, of any kind
 * Return: malloc'ed, NULL without memory.
 */
char *own_journal_put_head(const struct own_journal_head *head);
char *own_journal_put(const struct own_journal_line *line, const char *message, size_t size);

/**
 * own_journal_take_head(), own_journal_take() - the first line, which says what follows; the next
 * one
 * @bytes: @size of them, with a NUL byte behind; lines that were taken are changed
 * @at: where it begins, moved behind it
 * @ret: into @bytes
 * Return: 1, 0 there are no more, or -EBADMSG.
 */
int own_journal_take_head(char *bytes, size_t size, size_t *at, struct own_journal_head *ret);
int own_journal_take(char *bytes, size_t size, size_t *at, struct own_journal_line *ret);
