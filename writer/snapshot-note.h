/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text in a snapshot that says what it is of: written with the file, with room for what else
 * causes it while it is written or just afterwards. Any thread.
 */
#pragma once

#include "basic/fault.h"

/* What the text begins with, as a CPUSTAT option */
#define SNAPSHOT_NOTE "flyrec snapshot of session"

/**
 * snapshot_note_pad() - room at the end of a text
 * Return: malloc'ed, or NULL if memory runs out.
 */
char *snapshot_note_pad(const char *text);

/**
 * snapshot_note_add() - lines at the end of a finished snapshot's text, in place
 * @fd: open for reading and writing; nothing else of it changes
 * @name: of the file, for @why
 * Return: 0, -ENOSPC: no more room, what fits is there, -ENOENT: a file without such a text or
 * room; or another negative errno.
 */
int snapshot_note_add(int fd, const char *name, const char *lines, struct fault *why);
