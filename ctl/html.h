/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pieces of HTML. What others wrote - names of tasks, lines of a trigger - goes through
 * html_text(), so that none of it is markup. Main thread.
 */
#pragma once

#include "analysis/histogram.h"
#include "ctl/output.h"
#include "decode/text.h"

/**
 * html_text() - shown as it is; control characters and what is no UTF-8 as \x1b and the like
 */
void html_text(struct text *out, const char *text);

void html_base64(struct text *out, const uint8_t *bytes, size_t size);

/**
 * html_json() - a document, for a script element of data; consumes @object
 * @object: its strings are UTF-8
 */
void html_json(struct text *out, struct json_object *object);

/**
 * html_table() - @table, which is freed
 * @rows: how many there would be
 */
void html_table(struct text *out, struct table *table, size_t rows);

/**
 * html_rate() - events over time, as a picture
 * @nsec: of the whole; 0: its times are none
 */
void html_rate(struct text *out, const uint64_t *counts, size_t n, uint64_t nsec);

/**
 * html_histogram() - how long something took, as a picture
 */
void html_histogram(struct text *out, const char *title, const struct measure *measure);
