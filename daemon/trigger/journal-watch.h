/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OnJournal=: told by sd-journal when entries have been written that match. One for all sessions.
 * Looks again for a journal where there is none. What flyrecd itself writes never matches, nor does
 * what was written before. Owner: the daemon. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "basic/macro.h"

struct journal_watch;

/*
 * @text: which, as in OnJournal=; @lines: "KEY: VALUE" lines that say what the entry is; @usec:
 * realtime, when journald received it
 */
typedef void (*journal_matched_t)(void *userdata, const char *text, const char *lines,
				  uint64_t usec);

/**
 * journal_watch_new() - begin; whether it works is journal_watch_trouble()
 * Return: 0 or -ENOMEM.
 */
int journal_watch_new(sd_event *event, int64_t priority, journal_matched_t on_matched,
		      void *userdata, struct journal_watch **ret);

/* NULL is fine */
void journal_watch_free(struct journal_watch *watch);

/**
 * journal_watch_set() - which entries, from now on
 * @texts: as in OnJournal=, checked; each once; with none the journal is closed
 * May be called by on_matched(). Return: 0 or -ENOMEM; then nothing is watched.
 */
int journal_watch_set(struct journal_watch *watch, char *const *texts);

/**
 * journal_watch_trouble() - why the journal is not watched now; NULL: it is
 */
const char *journal_watch_trouble(const struct journal_watch *watch);

DEFINE_CLEANUP(struct journal_watch *, journal_watch_free)
