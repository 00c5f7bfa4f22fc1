/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The system journal, for reading. FLYREC_JOURNAL names another directory of journal files, for
 * tests.
 */
#pragma once

#include <systemd/sd-journal.h>

#include "basic/fault.h"

#define JOURNAL_RUNTIME	   "/run/log/journal"
#define JOURNAL_PERSISTENT "/var/log/journal"

/**
 * journal_dir() - the directory that FLYREC_JOURNAL names, or NULL
 */
const char *journal_dir(void);

/**
 * journal_open() - this machine's, of all users
 * Opens all of its files. What the process may read of files is up to then, not later.
 * Return: 0; -ENOENT: there is none; or another negative errno; with @why.
 */
int journal_open(sd_journal **ret, struct fault *why);

/**
 * journal_field() - of the current entry, the first one of this name
 * @name: of a string literal
 * @ret: @ret_size bytes of any kind, until the next call; what is longer than the data threshold
 * may be cut
 * Return: 0; -ENOENT: it has none; or another negative errno: it cannot be read.
 */
int journal_field(sd_journal *journal, const char *name, const char **ret, size_t *ret_size);

/**
 * journal_name() - the first of two fields that the entry has, as a string that can be shown
 * @other: or NULL
 * @max: bytes of it, before it is escaped
 * Return: malloc'ed, "" if there is none; NULL without memory.
 */
char *journal_name(sd_journal *journal, const char *name, const char *other, size_t max);
