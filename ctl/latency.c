/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl latency: how often something took longer than a limit, and which limit would be a good
 * one.
 */
#include <inttypes.h>
#include <string.h>

#include "analysis/latency.h"
#include "basic/log.h"
#include "basic/strv.h"
#include "config/latency.h"
#include "ctl/analysis.h"
#include "ctl/output.h"

#define LAST_DEFAULT (3600 * NSEC_PER_SEC)

struct dry_run {
	struct analysis a;
	struct latency_config *conditions;
	size_t n;
	struct latency *latency;
};

/* --- for people */

static int print_condition(const struct dry_run *run, size_t i, struct table *t)
{
	const struct latency_config *condition = &run->conditions[i];
	const struct latency_facts *facts = latency_facts(run->latency, i);
	const struct measure *m = &facts->measure;
	const uint64_t suggested = latency_suggest(m);
	const char *worst = facts->worst ? analysis_task(facts->worst) : "-";

	table_add(t, latency_format(condition, condition->nsec));
	table_add_number(t, m->count);
	table_add(t, analysis_nsec(measure_quantile(m, 990)));
	table_add(t, analysis_nsec(measure_quantile(m, 999)));
	table_add(t, analysis_nsec(m->max));
	table_add_text(t, worst);
	table_add(t, condition->nsec ? strf("%" PRIu64, facts->hits) : strdup("-"));
	table_add(t, condition->nsec ? strf("%" PRIu64, facts->snapshots) : strdup("-"));
	table_add(t, suggested ? latency_format(condition, suggested) : strdup("-"));
	return t->error;
}

/* What the recording cannot tell */
static void print_notes(const struct dry_run *run)
{
	const char *missing[LATENCY_NEEDS];

	for (size_t i = 0; i < run->n; i++) {
		_cleanup_free_ char *text = latency_format(&run->conditions[i], 0);
		size_t n = latency_missing(run->latency, i, missing);

		for (size_t k = 0; k < n && text; k++)
			log_notice("latency: %s: not recorded: %s", text, missing[k]);
	}
	analysis_notes(&run->a, spans_totals(latency_spans(run->latency)));
}

static enum ctl_status show_text(const struct dry_run *run)
{
	struct table t = {
		.headings = {"CONDITION", "COUNT", "P99", "P99.9", "MAX", "TASK", "FIRES",
			     "SNAPSHOTS", "SUGGESTED"},
		.n_columns = 9,
		.numbers = 0xde,
	};
	int r = 0;

	for (size_t i = 0; i < run->n && r >= 0; i++)
		r = print_condition(run, i, &t);
	return table_print(&t) < 0 ? CTL_FAILED : CTL_DONE;
}

/* --- JSON */

static struct json_object *condition_json(const struct dry_run *run, size_t i)
{
	const struct latency_config *condition = &run->conditions[i];
	const struct latency_facts *facts = latency_facts(run->latency, i);
	const struct measure *m = &facts->measure;
	const uint64_t suggested = latency_suggest(m);
	_cleanup_free_ char *text = latency_format(condition, condition->nsec);
	_cleanup_free_ char *better = suggested ? latency_format(condition, suggested) : NULL;
	struct json_object *o = json_object_new_object(), *words = json_object_new_array();
	const char *missing[LATENCY_NEEDS];
	size_t n = latency_missing(run->latency, i, missing);

	for (size_t k = 0; k < n; k++)
		json_append(words, json_text(missing[k]));
	json_add(o, "condition", text ? json_text(text) : NULL);
	json_add(o, "count", json_number(m->count));
	json_add(o, "p50_nsec", json_number(measure_quantile(m, 500)));
	json_add(o, "p99_nsec", json_number(measure_quantile(m, 990)));
	json_add(o, "p999_nsec", json_number(measure_quantile(m, 999)));
	json_add(o, "max_nsec", json_number(m->max));
	json_add(o, "max_at_usec",
		 m->count ? json_number(analysis_usec(&run->a.facts, m->max_at)) : NULL);
	json_add(o, "task", facts->worst ? json_text(analysis_task(facts->worst)) : NULL);
	json_add(o, "pid", facts->worst ? json_number((uint64_t)facts->worst->pid) : NULL);
	json_add(o, "fires", condition->nsec ? json_number(facts->hits) : NULL);
	json_add(o, "snapshots", condition->nsec ? json_number(facts->snapshots) : NULL);
	json_add(o, "suggested_nsec", suggested ? json_number(suggested) : NULL);
	json_add(o, "suggested", better ? json_text(better) : NULL);
	json_add(o, "missing", words);
	return o;
}

static enum ctl_status show_json(const struct dry_run *run)
{
	const struct spans_totals *totals = spans_totals(latency_spans(run->latency));
	struct json_object *o = json_object_new_object(), *array = json_object_new_array();

	for (size_t i = 0; i < run->n; i++)
		json_append(array, condition_json(run, i));
	json_add(o, "from_usec", json_number(analysis_usec(&run->a.facts, totals->from)));
	json_add(o, "to_usec", json_number(analysis_usec(&run->a.facts, totals->to)));
	json_add(o, "conditions", array);
	return print_json(o);
}

/* --- the verb */

static bool has_unit(const struct dry_run *run)
{
	for (size_t i = 0; i < run->n; i++)
		if (run->conditions[i].unit)
			return true;
	return false;
}

static int read_all(struct dry_run *run)
{
	struct latency_setup setup = {
		.conditions = run->conditions,
		.n = run->n,
		.facts = &run->a.facts,
		.measure = true,
	};
	struct sources_config sources = {.machine = true};
	int r = has_unit(run) ? analysis_ask_who(&run->a) : 0;

	setup.who = run->a.who;
	if (r >= 0)
		r = latency_new(&setup, &run->latency);
	if (r < 0)
		return log_error_errno(r, "latency: %m");
	sources.spans = latency_spans(run->latency);
	r = analysis_read(&run->a, &sources);
	/* what had not ended by then would have fired all the same */
	if (r >= 0)
		r = latency_tick(run->latency, spans_totals(sources.spans)->to);
	return r;
}

/* Without rights */
static int latency_confined(void *userdata)
{
	struct dry_run *run = userdata;
	enum ctl_status status = CTL_FAILED;

	if (read_all(run) >= 0) {
		if (!run->a.ctl->json)
			print_notes(run);
		status = run->a.ctl->json ? show_json(run) : show_text(run);
	}
	latency_free(run->latency);
	who_free(run->a.who);
	return (int)(run->a.facts.n_faults > 0 ? CTL_FAILED : status);
}

/* Of those kinds of waits that need no name */
static int add_all(struct dry_run *run)
{
	run->conditions = calloc(LATENCY_SYSCALL, sizeof(*run->conditions));
	if (!run->conditions)
		return log_error_errno(-ENOMEM, "latency: %m");
	for (; run->n < LATENCY_SYSCALL; run->n++)
		run->conditions[run->n].kind = (enum latency_kind)run->n;
	return 0;
}

/* The condition may be one word or several */
static int add_words(struct dry_run *run, char *const *words)
{
	_cleanup_free_ char *text = strdup(words[0]);
	struct fault why;
	int r;

	for (size_t i = 1; text && words[i]; i++) {
		char *more = strf("%s %s", text, words[i]);

		free(text);
		text = more;
	}
	run->conditions = calloc(1, sizeof(*run->conditions));
	if (!text || !run->conditions)
		return log_error_errno(-ENOMEM, "latency: %m");
	r = latency_parse(text, false, run->conditions, &why);
	if (r == -EINVAL)
		(void)ctl_complain(run->a.ctl, "%s: %s", text, why.text);
	run->n = r >= 0;
	return r;
}

enum ctl_status verb_latency(struct ctl *ctl, int argc, char **argv)
{
	struct dry_run run = {.a.ctl = ctl};
	enum ctl_status status = CTL_USAGE;
	char *source[] = {NULL, NULL};
	int r;

	if (argc < 2)
		return ctl_complain(ctl, "a SOURCE is wanted: a trace.dat file or a session");
	source[0] = argv[1];
	r = argc > 2 ? add_words(&run, argv + 2) : add_all(&run);
	if (r >= 0 && analysis_options(&run.a, 0)) {
		if (!ctl->last && !run.a.filter.since.set && !run.a.filter.until.set)
			run.a.last = LAST_DEFAULT;
		status = analysis_run(&run.a, source, latency_confined, &run);
	} else if (r >= 0) {
		analysis_done(&run.a);
	}
	for (size_t i = 0; i < run.n; i++)
		latency_done(&run.conditions[i]);
	free(run.conditions);
	return r == -ENOMEM ? CTL_FAILED : status;
}
