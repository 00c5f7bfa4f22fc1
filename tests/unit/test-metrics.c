/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of `flyrecctl metrics`, read by the rules of OpenMetrics 1.0: families in one piece,
 * TYPE, UNIT, HELP before samples, names with their unit, counters with _total, label values
 * escaped, no sample twice, "# EOF" at the end and nothing behind it. The reader is tried first.
 */
#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "basic/strv.h"
#include "ctl/view.h"

struct reader {
	char family[128], type[32];
	bool has_help, ended;
	char **families, **samples;
	const char *fault;
};

static bool is_name(const char *s, size_t n)
{
	if (n == 0 || isdigit((unsigned char)*s))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != ':')
			return false;
	return true;
}

/* {name="value",…}; Return: behind it, or NULL */
static const char *read_labels(const char *p)
{
	for (p++;; p++) {
		size_t n = strcspn(p, "=");

		if (!is_name(p, n) || p[n + 1] != '"')
			return NULL;
		for (p += n + 2; *p != '"'; p++) {
			if (*p == '\\' && !strchr("\\\"n", *++p))
				return NULL;
			if (!*p || *p == '\n')
				return NULL;
		}
		if (*++p == '}')
			return p + 1;
		if (*p != ',')
			return NULL;
	}
}

static const char *read_sample(struct reader *r, const char *line)
{
	size_t n = strcspn(line, "{ "), f = strlen(r->family);
	const char *p = line + n, *total = "_total";
	bool counter = strcmp(r->type, "counter") == 0;
	_cleanup_free_ char *key = NULL;
	char *end;

	if (!is_name(line, n) || strncmp(line, r->family, f) != 0)
		return "a sample of another family";
	if (counter ? n != f + strlen(total) || strncmp(line + f, total, n - f) != 0 : n != f)
		return "a sample with the wrong suffix";
	if (*p == '{')
		p = read_labels(p);
	if (!p || *p != ' ')
		return "labels that are none";
	key = strndup(line, (size_t)(p - line));
	if (strv_contains(r->samples, key))
		return "a sample twice";
	(void)strv_append(&r->samples, key);
	errno = 0;
	if (strtod(p + 1, &end) < 0 || end == p + 1 || *end)
		return "no value";
	return NULL;
}

static const char *read_type(struct reader *r, const char *line)
{
	if (sscanf(line, "# TYPE %127s %31s", r->family, r->type) != 2 ||
	    (strcmp(r->type, "counter") != 0 && strcmp(r->type, "gauge") != 0))
		return "a TYPE that is none";
	if (strv_contains(r->families, r->family))
		return "a family twice";
	(void)strv_append(&r->families, r->family);
	r->has_help = false;
	return NULL;
}

static const char *read_line(struct reader *r, const char *line)
{
	char name[128], word[128];
	size_t n;

	if (r->ended)
		return "something behind # EOF";
	if (strcmp(line, "# EOF") == 0) {
		r->ended = true;
		return NULL;
	}
	if (strncmp(line, "# TYPE ", 7) == 0)
		return read_type(r, line);
	if (strncmp(line, "# UNIT ", 7) == 0) {
		if (sscanf(line, "# UNIT %127s %127s", name, word) != 2 ||
		    strcmp(name, r->family) != 0)
			return "a UNIT of another family";
		n = strlen(name) - MIN(strlen(word), strlen(name));
		return n > 0 && name[n - 1] == '_' && strcmp(name + n, word) == 0
			       ? NULL
			       : "a name without its unit";
	}
	if (strncmp(line, "# HELP ", 7) == 0) {
		r->has_help = true;
		return sscanf(line, "# HELP %127s %127s", name, word) == 2 &&
				       strcmp(name, r->family) == 0
			       ? NULL
			       : "a HELP of another family";
	}
	if (line[0] == '#' || !line[0])
		return "a line that is nothing";
	return r->has_help ? read_sample(r, line) : "a sample before TYPE and HELP";
}

/* What is wrong, or NULL */
static const char *read_text(const char *text, struct reader *r)
{
	_cleanup_free_ char *copy = strdup(text);
	const char *fault = NULL;
	char *line = copy, *end;

	for (; !fault && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		fault = read_line(r, line);
	}
	if (!fault && *line)
		fault = "no line end";
	return fault ? fault : r->ended ? NULL : "no # EOF";
}

static void reader_done(struct reader *r)
{
	strv_free(r->families);
	strv_free(r->samples);
}

static void test_reader(void **state)
{
	static const struct {
		const char *text;
		bool good;
	} texts[] = {
		{"# EOF\n", true},
		{"# TYPE a counter\n# HELP a x\na_total{b=\"c\\\\\\\"\\n\"} 1\n# EOF\n", true},
		{"# TYPE a_s gauge\n# UNIT a_s s\n# HELP a_s x\na_s 1.5\n# EOF\n", true},
		{"# TYPE a counter\n# HELP a x\na 1\n# EOF\n", false},
		{"# TYPE a gauge\n# HELP a x\na 1\na 1\n# EOF\n", false},
		{"# TYPE a gauge\n# UNIT a s\n# HELP a x\na 1\n# EOF\n", false},
		{"# TYPE a gauge\n# HELP a x\nb 1\n# EOF\n", false},
		{"# TYPE a gauge\n# HELP a x\na{b=\"\"\"} 1\n# EOF\n", false},
		{"# TYPE a gauge\n# HELP a x\na -1\n# EOF\n", false},
		{"a 1\n# EOF\n", false},
		{"# TYPE a gauge\n# HELP a x\na 1\n", false},
		{"# EOF\n\n", false},
		{"# EOF", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_(reader_done) struct reader r = {};

		assert_int_equal(read_text(texts[i].text, &r) == NULL, texts[i].good);
	}
}

static void check(const struct view_status *status, const struct view_stats_list *stats,
		  const char *contains)
{
	_cleanup_(reader_done) struct reader r = {};
	_cleanup_free_ char *text = NULL;
	const char *fault;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	metrics_write(f, status, stats);
	assert_int_equal(fclose(f), 0);
	fault = read_text(text, &r);
	if (fault)
		fail_msg("%s in:\n%s", fault, text);
	if (!strstr(text, contains))
		fail_msg("no %s in:\n%s", contains, text);
}

static void check_without(const struct view_status *status, const struct view_stats_list *stats,
			  const char *wrong)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	metrics_write(f, status, stats);
	assert_int_equal(fclose(f), 0);
	if (strstr(text, wrong))
		fail_msg("%s in:\n%s", wrong, text);
}

static void test_metrics(void **state)
{
	char name[] = "sched", odd[] = "o\"d\\d\n", recording[] = "recording", version[] = "1.0";
	struct view_cpu cpus[] = {{.cpu = 0, .values = {1, 4096}},
				  {.cpu = 3, .values = {[VIEW_OVERRUN] = 7, [7] = UINT64_MAX}}};
	char flight[] = "flight", kind[] = "event", text[] = "a:b if c == \"d\"";
	struct view_trigger triggers[] = {
		{.kind = kind, .text = text, .fired = 2, .suppressed = 12345}};
	struct view_session sessions[] = {
		{.name = name,
		 .state = recording,
		 .segments = 2,
		 .bytes_on_disk = 5,
		 .triggers = triggers,
		 .n_triggers = 1},
		{.name = odd, .state = recording},
	};
	struct view_stats stats[] = {{.name = name, .cpus = cpus, .n_cpus = 2}, {.name = odd}};
	struct view_status status = {
		.version = version, .uptime_usec = 1500000, .sessions = sessions, .n_sessions = 2};
	struct view_stats_list list = {.sessions = stats, .n = 2};

	check(&status, &list, "flyrec_overrun_events_total{session=\"sched\",cpu=\"3\"} 7\n");
	check(&status, &list,
	      "flyrec_evicted_subbufs_total{session=\"sched\",cpu=\"3\"} "
	      "18446744073709551615\n");
	check(&status, &list, "flyrec_session_state{session=\"sched\",state=\"recording\"} 1\n");
	check(&status, &list, "flyrec_segments{session=\"o\\\"d\\\\d\\n\"} 0\n");
	check(&status, &list, "flyrec_uptime_seconds 1.500000\n");
	check(&status, &list,
	      "flyrec_triggers_fired_total{session=\"sched\",kind=\"event\","
	      "trigger=\"a:b if c == \\\"d\\\"\"} 2\n");
	check(&status, &list,
	      "flyrec_triggers_suppressed_total{session=\"sched\",kind=\"event\","
	      "trigger=\"a:b if c == \\\"d\\\"\"} 12345\n");
	/* what a flight session overwrites would page whoever watches overrun */
	sessions[0].mode = flight;
	sessions[0].history_usec = 4300000;
	sessions[0].snapshots = 6;
	check(&status, &list, "flyrec_overwritten_events_total{session=\"sched\",cpu=\"3\"} 7\n");
	check_without(&status, &list, "flyrec_overrun_events_total{session=\"sched\"");
	check_without(&status, &list, "flyrec_budget_seconds{session=\"sched\"");
	check(&status, &list, "flyrec_history_seconds{session=\"sched\"} 4.300000\n");
	check(&status, &list, "flyrec_snapshots{session=\"sched\"} 6\n");
	status.n_sessions = list.n = 0;
	check(&status, &list, "# EOF\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader),
		cmocka_unit_test(test_metrics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
