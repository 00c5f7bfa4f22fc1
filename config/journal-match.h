/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OnJournal=: which entries of the system journal, as journalctl(1) is told on its command line:
 * FIELD=VALUE terms, of which one of each field that is named must hold; "+" begins an alternative.
 * A value with blanks is quoted. systemd.journal-fields(7).
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

#define JOURNAL_TERM_MAX 1024 /* bytes of a term */
#define JOURNAL_TERMS	 64U

/**
 * journal_match_parse() - split and check
 * @ret: see basic/strv.h: "FIELD=VALUE" and "+"
 * Return: 0, -EINVAL with @why set, or -ENOMEM.
 */
int journal_match_parse(const char *text, char ***ret, struct fault *why);

/**
 * journal_match_holds() - does an entry match?
 * @terms: as of journal_match_parse()
 * @found: for each of them: the entry has this field with this value
 */
bool journal_match_holds(char *const *terms, const bool *found);
