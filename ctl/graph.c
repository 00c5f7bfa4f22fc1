/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "basic/now.h"
#include "ctl/graph.h"
#include "ctl/output.h"

#define MINUTES	    60
#define MINUTE_USEC (60 * USEC_PER_SEC)
#define INDENT	    7U	/* "events " */
#define COLUMNS_MIN 12U /* of what stands below */

unsigned graph_columns(unsigned room)
{
	unsigned n = MIN(MAX(room, COLUMNS_MIN), (unsigned)GRAPH_COLUMNS);

	while (MINUTES % n != 0)
		n--;
	return n;
}

void graph_fit(const struct view_hour *hour, uint64_t now_usec, unsigned n, double *ret_rate,
	       double *ret_lost)
{
	const uint64_t width = MINUTES * MINUTE_USEC / n, begin = now_usec - n * width;

	for (unsigned i = 0; i < n; i++) {
		const uint64_t from = begin + i * width, to = from + width;
		double events = 0, lost = 0, usec = 0;

		for (size_t k = 0; k < hour->n_minutes; k++) {
			const struct view_minute *m = &hour->minutes[k];
			uint64_t a = MAX(from, m->end_usec - MIN(m->usec, m->end_usec));
			uint64_t b = MIN(to, m->end_usec);
			double part = b > a ? (double)(b - a) / (double)m->usec : 0;

			usec += b > a ? (double)(b - a) : 0;
			events += part * (double)m->events;
			lost += part * (double)m->lost;
		}
		ret_rate[i] = usec > 0 ? events / usec * USEC_PER_SEC : -1;
		ret_lost[i] = usec > 0 ? lost : -1;
	}
}

static double highest(const double *values, unsigned n)
{
	double max = 0;

	for (unsigned i = 0; i < n; i++)
		max = MAX(max, values[i]);
	return max;
}

char *graph_line(const double *values, unsigned n, bool utf8)
{
	static const char *const blocks[] = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {".", ":", "-", "=", "+", "*", "#", "%", "@"};
	const unsigned heights = ARRAY_SIZE(blocks) - 1;
	double max = highest(values, n);
	char *line = malloc(n * strlen("█") + 1), *end = line;

	if (!line)
		return NULL;
	for (unsigned i = 0; i < n; i++) {
		/* however little it is, it is not nothing */
		unsigned height =
			values[i] > 0 ? 1 + (unsigned)(values[i] / max * (heights - 0.5)) : 0;

		if (values[i] < 0)
			end = stpcpy(end, " ");
		else
			end = stpcpy(end, (utf8 ? blocks : ascii)[MIN(height, heights)]);
	}
	*end = 0;
	return line;
}

static int print_line(const char *title, const double *values, unsigned n)
{
	_cleanup_free_ char *line = graph_line(values, n, output_is_utf8());

	if (!line)
		return -ENOMEM;
	printf("%-*s%s\n", (int)INDENT, title, line);
	return 0;
}

static int print_hour(const struct view_hour *hour, uint64_t now_usec, unsigned n)
{
	double rate[GRAPH_COLUMNS], lost[GRAPH_COLUMNS], all = 0;
	int r;

	graph_fit(hour, now_usec, n, rate, lost);
	for (unsigned i = 0; i < n; i++)
		all += MAX(lost[i], 0.0);
	printf("%s%s%s: ", style(STYLE_BOLD), hour->name, style(STYLE_OFF));
	if (hour->n_minutes == 0) {
		printf("nothing is known of the last hour\n");
		return 0;
	}
	if (rate[n - 1] >= 0)
		printf("%.0f events/s, ", rate[n - 1]);
	printf("at most %.0f; ", highest(rate, n));
	printf("%s%.0f lost%s\n", all > 0 ? style(STYLE_YELLOW) : "", all,
	       all > 0 ? style(STYLE_OFF) : "");
	r = print_line("events", rate, n);
	if (r >= 0 && all > 0)
		r = print_line("lost", lost, n);
	return r;
}

int graph_print(const struct view_hours *hours)
{
	const uint64_t now = now_usec(CLOCK_REALTIME);
	const unsigned width = output_width();
	const unsigned n = graph_columns(width - MIN(width, INDENT));
	int r = 0;

	for (size_t i = 0; i < hours->n && r >= 0; i++)
		r = print_hour(&hours->sessions[i], now, n);
	if (hours->n > 0)
		printf("%*s%-*snow\n", (int)INDENT, "", (int)n - 3, "1h ago");
	return r;
}
