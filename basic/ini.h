/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A reader of the syntax of systemd.syntax(7), over a text in memory:
 *
 *	# comment, also ; comment, on lines of their own, also between continued lines
 *	[Section]
 *	Key=value \
 *	    continued
 *
 * No limit on the length of a line. White space around keys and values goes, the value itself is
 * handed on raw: quotes, '#' and ';' in it are part of it. A byte order mark and CRLF line ends are
 * tolerated. Every fault is reported with its line, and reading goes on after it. Any thread.
 */
#pragma once

#include "basic/macro.h"

/* One assignment, or, with @key and @value NULL, the beginning of a section */
struct ini_entry {
	const char *file; /* as given to ini_parse() */
	unsigned line;	  /* of the key, from 1; continued lines follow it */
	const char *section;
	const char *key;
	const char *value; /* "" for "Key=" */
};

struct ini_handler {
	/* A negative return stops the reading and is passed on. */
	int (*on_entry)(const struct ini_entry *entry, void *userdata);
	/* NULL: the first fault ends the reading, with -EBADMSG. */
	void (*on_fault)(const char *file, unsigned line, const char *text, void *userdata);
};

/**
 * ini_parse() - report each section and assignment of a text in order
 * @file: name for the reports
 * @data: @size bytes; NUL bytes are faults of their lines
 * What follows a faulty section header, up to the next header, is read but not reported: nobody
 * knows where it belongs.
 * Return: 0 (also when there were faults that were reported), -EBADMSG, -ENOMEM, or what on_entry
 * returned.
 */
int ini_parse(const char *file, const char *data, size_t size, const struct ini_handler *handler,
	      void *userdata);

/**
 * ini_bad_value() - why "Key=VALUE" on a line would not be read as this value
 * Stricter than ini_parse() where that is tolerant: a tab is a control character, too.
 * Return: the reason, to follow "WHAT: "; NULL: it would.
 */
const char *ini_bad_value(const char *value);
