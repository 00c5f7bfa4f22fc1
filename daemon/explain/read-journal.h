/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The system journal's entries of a snapshot's time, as lines for its file. Runs in a process that
 * has opened the journal and then given up its rights.
 */
#pragma once

#include <systemd/sd-journal.h>

#include "formats/own-journal.h"

/**
 * read_journal() - the newest of them, as many as there is room for
 * @from_usec, @to_usec: realtime
 * @room: bytes, at least READ_JOURNAL_ROOM_MIN
 * @ret: as in formats/own-journal.h, malloc'ed
 * Return: 0 or negative errno.
 */
int read_journal(sd_journal *journal, uint64_t from_usec, uint64_t to_usec, size_t room, char **ret,
		 size_t *ret_size);
#define READ_JOURNAL_ROOM_MIN 128U /* for the first line */
