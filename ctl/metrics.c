/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "ctl/view.h"

struct metric {
	const char *name; /* without _total */
	const char *unit; /* or NULL; the name ends in it */
	const char *help;
	size_t offset; /* of a uint64_t */
	enum {
		OF_ALL,
		OF_RECORD,
		OF_FLIGHT,
	} mode; /* sessions that have it */
};

#define S(member) offsetof(struct view_session, member)
#define T(member) offsetof(struct view_trigger, member)

/* clang-format off */
static const struct metric trigger_counters[] = {
	{ "flyrec_triggers_fired", NULL, "Snapshots that a trigger asked for", T(fired) },
	{ "flyrec_triggers_suppressed", NULL, "Times a trigger got no snapshot of its own", T(suppressed) },
};

static const struct metric gauges[] = {
	{ "flyrec_segments", NULL, "Segments of the session", S(segments) },
	{ "flyrec_snapshots", NULL, "Snapshots of the session", S(snapshots) },
	{ "flyrec_disk_bytes", "bytes", "Bytes on the disk: segments, or snapshots of flight sessions", S(bytes_on_disk) },
	{ "flyrec_snapshot_bytes", "bytes", "Bytes of snapshots on the disk", S(snapshot_bytes) },
};

static const struct metric times[] = {
	{ "flyrec_history_seconds", "seconds", "How far back from now the data reaches", S(history_usec) },
	{ "flyrec_budget_seconds", "seconds", "How long MaxUse= lasts at the rate of the last day; 0: unknown", S(budget_usec), OF_RECORD },
};
/* clang-format on */

static const char *const states[] = {"stopped", "starting", "recording",
				     "paused",	"stopping", "failed"};

/* Backslash, quote and newline in a label's value */
static void put_label(FILE *f, const char *name, const char *value)
{
	(void)fprintf(f, "%s=\"", name);
	for (; value && *value; value++)
		if (*value == '\n')
			(void)fputs("\\n", f);
		else if (*value == '\\' || *value == '"')
			(void)fprintf(f, "\\%c", *value);
		else
			(void)fputc(*value, f);
	(void)fputc('"', f);
}

static void put_head(FILE *f, const struct metric *m, const char *type)
{
	(void)fprintf(f, "# TYPE %s %s\n", m->name, type);
	if (m->unit)
		(void)fprintf(f, "# UNIT %s %s\n", m->name, m->unit);
	(void)fprintf(f, "# HELP %s %s.\n", m->name, m->help);
}

static uint64_t value_of(const struct metric *m, const void *object)
{
	uint64_t value;

	memcpy(&value, (const char *)object + m->offset, sizeof(value));
	return value;
}

static bool has_metric(const struct metric *m, const struct view_session *s)
{
	bool flight = s && s->mode && strcmp(s->mode, "flight") == 0;

	return m->mode == OF_ALL || (m->mode == OF_FLIGHT) == flight;
}

static const struct view_session *find_session(const struct view_status *status, const char *name)
{
	for (size_t i = 0; i < status->n_sessions; i++)
		if (status->sessions[i].name && strcmp(status->sessions[i].name, name) == 0)
			return &status->sessions[i];
	return NULL;
}

static void put_counter(FILE *f, const struct metric *m, size_t counter,
			const struct view_stats_list *stats, const struct view_status *status)
{
	put_head(f, m, "counter");
	for (size_t i = 0; i < stats->n; i++) {
		const struct view_stats *s = &stats->sessions[i];

		if (!has_metric(m, find_session(status, s->name ? s->name : "")))
			continue;
		for (size_t cpu = 0; cpu < s->n_cpus; cpu++) {
			(void)fprintf(f, "%s_total{", m->name);
			put_label(f, "session", s->name);
			(void)fprintf(f, ",cpu=\"%" PRIu32 "\"} %" PRIu64 "\n", s->cpus[cpu].cpu,
				      s->cpus[cpu].values[counter]);
		}
	}
}

static void put_counters(FILE *f, const struct view_stats_list *stats,
			 const struct view_status *status)
{
	static const struct metric overwritten = {
		"flyrec_overwritten_events", NULL,
		"Events of flight sessions whose place newer ones have taken, which is no loss", 0,
		OF_FLIGHT};

	for (size_t i = 0; i < VIEW_COUNTERS; i++) {
		const struct view_counter *c = &view_counters[i];

		put_counter(f,
			    &(struct metric){c->metric, c->unit, c->help, 0,
					     i == VIEW_OVERRUN ? OF_RECORD : OF_ALL},
			    i, stats, status);
		if (i == VIEW_OVERRUN)
			put_counter(f, &overwritten, i, stats, status);
	}
}

static void put_time(FILE *f, const struct metric *m, const struct view_status *status)
{
	put_head(f, m, "gauge");
	for (size_t i = 0; i < status->n_sessions; i++) {
		uint64_t usec = value_of(m, &status->sessions[i]);

		if (!has_metric(m, &status->sessions[i]))
			continue;
		(void)fprintf(f, "%s{", m->name);
		put_label(f, "session", status->sessions[i].name);
		(void)fprintf(f, "} %" PRIu64 ".%06" PRIu64 "\n", usec / USEC_PER_SEC,
			      usec % USEC_PER_SEC);
	}
}

static void put_gauge(FILE *f, const struct metric *m, const struct view_status *status)
{
	put_head(f, m, "gauge");
	for (size_t i = 0; i < status->n_sessions; i++) {
		(void)fprintf(f, "%s{", m->name);
		put_label(f, "session", status->sessions[i].name);
		(void)fprintf(f, "} %" PRIu64 "\n", value_of(m, &status->sessions[i]));
	}
}

/* By session, kind and text: the same event may trigger several sessions */
static void put_triggers(FILE *f, const struct metric *m, const struct view_status *status)
{
	put_head(f, m, "counter");
	for (size_t i = 0; i < status->n_sessions; i++) {
		const struct view_session *s = &status->sessions[i];

		for (size_t j = 0; j < s->n_triggers; j++) {
			(void)fprintf(f, "%s_total{", m->name);
			put_label(f, "session", s->name);
			(void)fputc(',', f);
			put_label(f, "kind", s->triggers[j].kind);
			(void)fputc(',', f);
			put_label(f, "trigger", s->triggers[j].text);
			(void)fprintf(f, "} %" PRIu64 "\n", value_of(m, &s->triggers[j]));
		}
	}
}

/* A gauge that is 1 for the state it is in: node_exporter knows no type stateset */
static void put_states(FILE *f, const struct view_status *status)
{
	static const struct metric m = {"flyrec_session_state", NULL,
					"1 for the state that the session is in", 0};

	put_head(f, &m, "gauge");
	for (size_t i = 0; i < status->n_sessions; i++)
		for (size_t j = 0; j < ARRAY_SIZE(states); j++) {
			const struct view_session *s = &status->sessions[i];

			(void)fprintf(f, "%s{", m.name);
			put_label(f, "session", s->name);
			(void)fprintf(f, ",state=\"%s\"} %d\n", states[j],
				      s->state && strcmp(s->state, states[j]) == 0);
		}
}

void metrics_write(FILE *f, const struct view_status *status, const struct view_stats_list *stats)
{
	static const struct metric build = {"flyrec_build", NULL, "Version of flyrecd", 0};
	static const struct metric uptime = {"flyrec_uptime_seconds", "seconds",
					     "Time since flyrecd was started", 0};

	put_head(f, &build, "gauge");
	(void)fprintf(f, "%s{", build.name);
	put_label(f, "version", status->version);
	(void)fprintf(f, "} 1\n");
	put_head(f, &uptime, "gauge");
	(void)fprintf(f, "%s %" PRIu64 ".%06" PRIu64 "\n", uptime.name,
		      status->uptime_usec / USEC_PER_SEC, status->uptime_usec % USEC_PER_SEC);
	put_states(f, status);
	for (size_t i = 0; i < ARRAY_SIZE(gauges); i++)
		put_gauge(f, &gauges[i], status);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		put_time(f, &times[i], status);
	put_counters(f, stats, status);
	for (size_t i = 0; i < ARRAY_SIZE(trigger_counters); i++)
		put_triggers(f, &trigger_counters[i], status);
	(void)fprintf(f, "# EOF\n");
}
