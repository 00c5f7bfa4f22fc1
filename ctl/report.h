/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export --format=html: a recording as a page, one file that needs nothing else. Text and tables
 * are plain HTML; page/report.js draws the time line from what analysis/timeline.h encodes.
 */
#pragma once

#include "decode/text.h"
#include "formats/trace-dat-read.h"

struct analysis;

/* What a page is made of: a recording, or what one host has in it */
struct report_part {
	struct analysis *analysis; /* sources, filter and the like are set; its host, too */
	const struct trace_dat *const *dats; /* of its sources, for causes; NULL at the end */
	char *const *files; /* names of the recording's, for commands; NULL at the end */
	uint64_t error;	    /* of its host's clock: struct own_host's */
};

/**
 * report_begin() - begin the page
 * @name: of the recording, for people
 * @out: empty
 */
void report_begin(const char *name, struct text *out);

/**
 * report_part() - append a part; the first host's first
 * @i, @n: which one of how many, who share the room of a page
 * The recording is read several times. Return: 0 or negative errno, after a line on stderr.
 */
int report_part(const struct report_part *part, const char *name, size_t i, size_t n,
		struct text *out);

/**
 * report_end() - complete the page
 * Return: 0, or -ENOMEM after a line on stderr: @out is no whole page.
 */
int report_end(struct text *out);

/* page/report.js and report.css, and their SHA-256 as Content-Security-Policy has it; made by
 * page/embed */
extern const char report_script[], report_style[];
extern const char report_script_hash[], report_style_hash[];
