/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export --format=html: a recording as a page, one file that needs nothing else. Text and tables
 * are plain HTML; page/report.js draws the time line from what analysis/timeline.h encodes.
 */
#pragma once

#include "decode/text.h"
#include "formats/trace-dat-read.h"

struct analysis;

/**
 * report_write() - make the page
 * @analysis: sources, filter and the like are set
 * @dat: that one source, for its cause
 * @name: of the recording, for people
 * @out: empty; the page
 * The recording is read several times. Return: 0 or negative errno, after a line on stderr.
 */
int report_write(struct analysis *analysis, const struct trace_dat *dat, const char *name,
		 struct text *out);

/* page/report.js and report.css, and their SHA-256 as Content-Security-Policy has it; made by
 * page/embed */
extern const char report_script[], report_style[];
extern const char report_script_hash[], report_style_hash[];
