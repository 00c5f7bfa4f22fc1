/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "ctl/view.h"

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

/* The beginning of a sample of a session's */
static void put_sample(FILE *f, const struct view_field *m, const char *suffix, const char *session)
{
	(void)fprintf(f, "%s%s{", m->metric, suffix);
	put_label(f, "session", session);
}

static void put_head(FILE *f, const struct view_field *m, const char *type)
{
	(void)fprintf(f, "# TYPE %s %s\n", m->metric, type);
	if (m->unit)
		(void)fprintf(f, "# UNIT %s %s\n", m->metric, m->unit);
	(void)fprintf(f, "# HELP %s %s.\n", m->metric, m->help);
}

static void put_value(FILE *f, const struct view_field *m, const void *object)
{
	uint64_t value;

	memcpy(&value, (const char *)object + m->offset, sizeof(value));
	if (m->unit && strcmp(m->unit, "seconds") == 0)
		(void)fprintf(f, " %" PRIu64 ".%06" PRIu64 "\n", value / USEC_PER_SEC,
			      value % USEC_PER_SEC);
	else
		(void)fprintf(f, " %" PRIu64 "\n", value);
}

static bool has_metric(const struct view_field *m, const struct view_session *s)
{
	bool flight = s && s->mode && strcmp(s->mode, "flight") == 0;

	return m->mode == VIEW_OF_ALL || (m->mode == VIEW_OF_FLIGHT) == flight;
}

static const struct view_session *find_session(const struct view_status *status, const char *name)
{
	for (size_t i = 0; i < status->n_sessions; i++)
		if (status->sessions[i].name && strcmp(status->sessions[i].name, name) == 0)
			return &status->sessions[i];
	return NULL;
}

static void put_counter(FILE *f, const struct view_field *m, const struct view_stats_list *stats,
			const struct view_status *status)
{
	put_head(f, m, "counter");
	for (size_t i = 0; i < stats->n; i++) {
		const struct view_stats *s = &stats->sessions[i];

		if (!has_metric(m, find_session(status, s->name ? s->name : "")))
			continue;
		for (size_t cpu = 0; cpu < s->n_cpus; cpu++) {
			put_sample(f, m, "_total", s->name);
			(void)fprintf(f, ",cpu=\"%" PRIu64 "\"}", s->cpus[cpu].cpu);
			put_value(f, m, &s->cpus[cpu]);
		}
	}
}

static void put_counters(FILE *f, const struct view_stats_list *stats,
			 const struct view_status *status)
{
	for (const struct view_field *m = view_cpu_fields; m->types; m++) {
		struct view_field overwritten = *m;

		if (m->metric)
			put_counter(f, m, stats, status);
		if (m->mode != VIEW_OF_RECORD)
			continue;
		overwritten.metric = "flyrec_overwritten_events";
		overwritten.help = "Events of flight sessions whose place newer ones have taken, "
				   "which is no loss";
		overwritten.mode = VIEW_OF_FLIGHT;
		put_counter(f, &overwritten, stats, status);
	}
}

static void put_gauge(FILE *f, const struct view_field *m, const struct view_status *status)
{
	put_head(f, m, "gauge");
	for (size_t i = 0; i < status->n_sessions; i++) {
		if (!has_metric(m, &status->sessions[i]))
			continue;
		put_sample(f, m, "", status->sessions[i].name);
		(void)fputc('}', f);
		put_value(f, m, &status->sessions[i]);
	}
}

/* By session, kind and text: the same event may trigger several sessions */
static void put_triggers(FILE *f, const struct view_field *m, const struct view_status *status)
{
	put_head(f, m, "counter");
	for (size_t i = 0; i < status->n_sessions; i++) {
		const struct view_session *s = &status->sessions[i];

		for (size_t j = 0; j < s->n_triggers; j++) {
			put_sample(f, m, "_total", s->name);
			put_label(f, ",kind", s->triggers[j].kind);
			put_label(f, ",trigger", s->triggers[j].text);
			(void)fputc('}', f);
			put_value(f, m, &s->triggers[j]);
		}
	}
}

/* A gauge that is 1 for the state it is in: node_exporter knows no type stateset */
static void put_states(FILE *f, const struct view_status *status)
{
	static const struct view_field m = {.metric = "flyrec_session_state",
					    .help = "1 for the state that the session is in"};

	put_head(f, &m, "gauge");
	for (size_t i = 0; i < status->n_sessions; i++)
		for (size_t j = 0; j < ARRAY_SIZE(states); j++) {
			const struct view_session *s = &status->sessions[i];

			put_sample(f, &m, "", s->name);
			(void)fprintf(f, ",state=\"%s\"} %d\n", states[j],
				      s->state && strcmp(s->state, states[j]) == 0);
		}
}

static void put_sheds(FILE *f, const struct view_status *status)
{
	static const struct view_field m = {
		.metric = "flyrec_shed_events",
		.help = "Events that are switched off, as they would cost more than MaxOverhead="};

	put_head(f, &m, "gauge");
	for (size_t i = 0; i < status->n_sessions; i++) {
		put_sample(f, &m, "", status->sessions[i].name);
		(void)fprintf(f, "} %zu\n", strv_length(status->sessions[i].shed));
	}
}

void metrics_write(FILE *f, const struct view_status *status, const struct view_stats_list *stats)
{
	static const struct view_field build = {.metric = "flyrec_build",
						.help = "Version of flyrecd"};

	put_head(f, &build, "gauge");
	(void)fprintf(f, "%s{", build.metric);
	put_label(f, "version", status->version);
	(void)fprintf(f, "} 1\n");
	for (const struct view_field *m = view_status_fields; m->types; m++)
		if (m->metric) {
			put_head(f, m, "gauge");
			(void)fprintf(f, "%s", m->metric);
			put_value(f, m, status);
		}
	put_states(f, status);
	for (const struct view_field *m = view_session_fields; m->types; m++)
		if (m->metric)
			put_gauge(f, m, status);
	put_sheds(f, status);
	put_counters(f, stats, status);
	for (const struct view_field *m = view_trigger_fields; m->types; m++)
		if (m->metric)
			put_triggers(f, m, status);
	(void)fprintf(f, "# EOF\n");
}
