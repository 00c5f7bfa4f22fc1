/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "analysis/words.h"
#include "basic/escape.h"
#include "ctl/html.h"

#define RATE_HEIGHT 80U
#define BAR_WIDTH   26U
#define BAR_HEIGHT  60U

void html_text(struct text *out, const char *text)
{
	_cleanup_free_ char *plain = escape_text(text, false);

	if (!plain)
		out->no_memory = true;
	for (const char *p = plain; p && *p; p++)
		switch (*p) {
		case '&':
			text_string(out, "&amp;");
			break;
		case '<':
			text_string(out, "&lt;");
			break;
		case '>':
			text_string(out, "&gt;");
			break;
		case '"':
			text_string(out, "&quot;");
			break;
		default:
			text_char(out, *p);
		}
}

void html_base64(struct text *out, const uint8_t *bytes, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		const size_t left = size - i;
		uint32_t word = (uint32_t)bytes[i] << 16 |
				(left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0U) |
				(left > 2 ? (uint32_t)bytes[i + 2] : 0U);

		text_char(out, digits[word >> 18]);
		text_char(out, digits[word >> 12 & 63]);
		text_char(out, left > 1 ? digits[word >> 6 & 63] : '=');
		text_char(out, left > 2 ? digits[word & 63] : '=');
	}
}

/* In strings alone there is a '<', and "</script" or "<!--" would be markup there */
void html_json(struct text *out, struct json_object *object)
{
	const char *p =
		object ? json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN) : NULL;

	if (!p)
		out->no_memory = true;
	while (p && *p) {
		size_t n = strcspn(p, "<");

		text_bytes(out, p, n);
		p += n;
		if (*p == '<') {
			text_string(out, "\\u003c");
			p++;
		}
	}
	json_object_put(object);
}

/* --- tables */

static void put_cell(struct text *out, const struct table *table, unsigned column,
		     const char *element, const char *cell)
{
	text_printf(out, "<%s%s%s>", element,
		    *element == 't' && element[1] == 'h' ? " scope=col" : "",
		    table->numbers & 1U << column ? " class=n" : "");
	html_text(out, cell);
	text_printf(out, "</%s>", element);
}

void html_table(struct text *out, struct table *table, size_t rows)
{
	const unsigned columns = MAX(table->n_columns, 1U);
	const size_t n = table->n_rows / columns;

	if (table->error)
		out->no_memory = true;
	text_string(out, "<div class=scroll><table>\n<thead><tr>");
	for (unsigned i = 0; i < table->n_columns; i++)
		put_cell(out, table, i, "th", table->headings[i]);
	text_string(out, "</tr></thead>\n<tbody>\n");
	for (size_t row = 0; row < n; row++) {
		text_string(out, "<tr>");
		for (unsigned i = 0; i < table->n_columns; i++)
			put_cell(out, table, i, "td", table->cells[row * columns + i]);
		text_string(out, "</tr>\n");
	}
	text_string(out, "</tbody></table></div>\n");
	if (rows > n)
		text_printf(out, "<p class=more>%zu more are left out.</p>\n", rows - n);
	table_done(table);
}

/* --- pictures */

static uint64_t largest(const uint64_t *counts, size_t n)
{
	uint64_t most = 1;

	for (size_t i = 0; i < n; i++)
		most = MAX(most, counts[i]);
	return most;
}

/* What is there at all can be seen */
static unsigned height_of(uint64_t count, uint64_t most, unsigned height)
{
	return count ? MAX((unsigned)((unsigned __int128)count * height / most), 1U) : 0;
}

void html_rate(struct text *out, const uint64_t *counts, size_t n, uint64_t nsec)
{
	const uint64_t most = largest(counts, n);

	text_printf(out,
		    "<svg class=rate viewBox=\"0 0 %zu %u\" preserveAspectRatio=none role=img "
		    "aria-label=\"Events over time\"><path d=\"M0 %u",
		    4 * n, RATE_HEIGHT, RATE_HEIGHT);
	for (size_t i = 0; i < n; i++)
		text_printf(out, "V%uh4", RATE_HEIGHT - height_of(counts[i], most, RATE_HEIGHT));
	text_printf(out, "V%uz\"/></svg>\n<p>At most ", RATE_HEIGHT);
	if (nsec > 0)
		text_printf(out, "%.0f events a second",
			    (double)most * (double)n * (double)NSEC_PER_SEC / (double)nsec);
	else
		text_printf(out, "%" PRIu64 " events", most);
	text_printf(out, " in a %zuth of the recording.</p>\n", n);
}

#define STEPS  (1U << HISTOGRAM_STEP_BITS)
#define POWERS (HISTOGRAM_BUCKETS / STEPS)

static void put_bars(struct text *out, const struct measure *measure)
{
	uint64_t counts[POWERS] = {}, most;
	unsigned first = 0, n = POWERS;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		counts[i / STEPS] += measure->histogram[i];
	while (n > 1 && counts[n - 1] == 0)
		n--;
	while (first + 1 < n && counts[first] == 0)
		first++;
	most = largest(counts, POWERS);
	text_printf(out, "<svg class=bars viewBox=\"0 0 %u %u\" width=%u height=%u role=img>",
		    (n - first) * BAR_WIDTH, BAR_HEIGHT + 14, (n - first) * BAR_WIDTH,
		    BAR_HEIGHT + 14);
	for (unsigned i = first; i < n; i++) {
		const uint64_t from = i > 0 ? UINT64_C(1) << (HISTOGRAM_FIRST_BITS - 1 + i) : 0;
		const unsigned height = height_of(counts[i], most, BAR_HEIGHT);
		const unsigned x = (i - first) * BAR_WIDTH;
		_cleanup_free_ char *text = analysis_nsec(from);

		if (!text)
			out->no_memory = true;
		text_printf(out,
			    "<rect x=%u y=%u width=%u height=%u><title>%" PRIu64 " from %s</title>"
			    "</rect>",
			    x, BAR_HEIGHT - height, BAR_WIDTH - 1, height, counts[i],
			    text ? text : "");
		if ((i - first) % 3 == 0)
			text_printf(out, "<text x=%u y=%u>%s</text>", x, BAR_HEIGHT + 11,
				    text ? text : "");
	}
	text_string(out, "</svg>\n");
}

void html_histogram(struct text *out, const char *title, const struct measure *measure)
{
	_cleanup_free_ char *p50 = analysis_nsec(measure_quantile(measure, 50));
	_cleanup_free_ char *p99 = analysis_nsec(measure_quantile(measure, 99));
	_cleanup_free_ char *max = analysis_nsec(measure->max);

	if (!p50 || !p99 || !max) {
		out->no_memory = true;
		return;
	}
	text_printf(out, "<figure><figcaption>%s</figcaption>\n", title);
	/* of one or two there is none */
	if (measure->histogram)
		put_bars(out, measure);
	text_printf(out, "<p>%" PRIu64 " times; half took %s at most, 99%% %s, the longest %s</p>",
		    measure->count, p50, p99, max);
	text_string(out, "</figure>\n");
}
