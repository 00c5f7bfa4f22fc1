/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "analysis/hosts.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "ctl/analysis.h"
#include "ctl/command.h"
#include "ctl/confine.h"
#include "ctl/output.h"
#include "ctl/place.h"
#include "decode/event-time.h"

#define SHEDS_SHOWN 10U
#define NEAR_MAX    3U

static void on_fault(const char *text)
{
	log_error("%s", text);
}

bool analysis_options(struct analysis *analysis, unsigned top)
{
	const struct ctl *ctl = analysis->ctl;
	uint64_t usec = 0;

	if (!command_filter(ctl, &analysis->filter))
		return false;
	analysis->top = top;
	if (ctl->top && parse_unsigned(ctl->top, &analysis->top) < 0) {
		(void)ctl_complain(ctl, "--top=: not understood: \"%s\"", ctl->top);
		return false;
	}
	if (ctl->last && parse_time(ctl->last, &usec) < 0) {
		(void)ctl_complain(ctl, "--last=: not understood: \"%s\"", ctl->last);
		return false;
	}
	analysis->last = usec * NSEC_PER_USEC;
	if (ctl->at && event_filter_time(&analysis->at, ctl->at) < 0) {
		(void)ctl_complain(ctl, "--at=: not understood: \"%s\"", ctl->at);
		return false;
	}
	return true;
}

void analysis_done(struct analysis *analysis)
{
	source_list_done(&analysis->sources);
	journal_lines_done(&analysis->journal);
	event_filter_done(&analysis->filter);
	free(analysis->at.text);
	own_sheds_done(&analysis->sheds);
}

void analysis_filter(struct analysis *analysis, struct tables_filter *filter, struct cpu_list *cpus)
{
	const char *task = analysis->ctl->task;
	unsigned pid;

	if (analysis->filter.has_cpus) {
		*cpus = analysis->filter.cpus;
		analysis->filter.has_cpus = false;
		filter->cpus = cpus;
	}
	if (task && parse_unsigned(task, &pid) >= 0 && pid <= INT32_MAX)
		filter->pid = (int32_t)pid;
	else
		filter->task = task;
}

/* What analysis_run() hands over */
struct handed {
	struct analysis *analysis;
	int (*run)(void *userdata);
	void *userdata;
};

/* What belongs to the host before */
static void forget_host(struct analysis *analysis)
{
	own_sheds_done(&analysis->sheds);
	journal_lines_done(&analysis->journal);
	analysis->journal = (struct journal_lines){};
	analysis->quiet = false;
	analysis->who = NULL;
}

static void begin_host(const struct analysis *analysis, size_t i)
{
	struct json_object *name;

	if (!analysis->ctl->json) {
		printf("%s== %s\n", i == 0 ? "" : "\n", analysis->host);
		return;
	}
	name = json_text(analysis->host);
	printf("%s{\"host\":%s,\"result\":\n", i == 0 ? "{\"hosts\":[\n" : ",\n",
	       json_object_to_json_string(name));
	json_object_put(name);
}

static int run_hosts(const struct handed *h, const struct host_sources *hosts)
{
	int status = CTL_DONE;

	for (size_t i = 0; hosts->names[i]; i++) {
		int r;

		h->analysis->host = hosts->names[i];
		begin_host(h->analysis, i);
		r = h->run(h->userdata);
		/* what fails for another reason than damages has printed nothing */
		if (r != CTL_DONE && h->analysis->facts.n_faults == 0 && h->analysis->ctl->json)
			printf("null\n");
		if (h->analysis->ctl->json)
			printf("}%s", hosts->names[i + 1] ? "" : "]}\n");
		status = MAX(status, r);
		forget_host(h->analysis);
	}
	return status;
}

/* Without rights */
static int run_confined(void *userdata)
{
	const struct handed *h = userdata;
	const struct source_list given = h->analysis->sources;
	_cleanup_host_sources_ struct host_sources hosts = {};
	struct fault why;
	int r;

	r = host_sources_find(given.sources, given.n, &hosts, &why);
	if (r >= 0)
		r = place_hosts(&hosts, given.n, &why);
	if (r < 0) {
		log_error("%s", why.text);
		return CTL_FAILED;
	}
	h->analysis->sources = (struct source_list){hosts.list, hosts.n};
	r = hosts.names[1] ? run_hosts(h, &hosts) : h->run(h->userdata);
	h->analysis->sources = given;
	return r;
}

enum ctl_status analysis_run(struct analysis *analysis, char *const *words,
			     int (*run)(void *userdata), void *userdata)
{
	enum ctl_status status = CTL_FAILED;

	if (source_list_open(analysis->ctl, words, &analysis->filter, analysis->snapshots,
			     &analysis->sources) >= 0) {
		struct handed handed = {analysis, run, userdata};
		int r;

		output_begin(analysis->ctl);
		r = analysis->together
			    ? ctl_confined(analysis->sources.sources[0].name, NULL, run, userdata)
			    : ctl_confined(analysis->sources.sources[0].name, NULL, run_confined,
					   &handed);
		status = output_end();
		status = MAX(status, r < 0 ? CTL_FAILED : (enum ctl_status)r);
	}
	analysis_done(analysis);
	return status;
}

int analysis_ask_who(struct analysis *analysis)
{
	return who_new(analysis->filter.units, analysis->filter.containers, false, &analysis->who);
}

const char *analysis_unit(const struct analysis *analysis, const struct span_task *task)
{
	const struct task_who *who =
		task && analysis->who ? who_find(analysis->who, task->pid, UINT64_MAX) : NULL;

	return who && who->place ? who->place->names.unit : NULL;
}

int analysis_read(struct analysis *analysis, struct sources_config *config)
{
	struct fault why;
	int r;

	config->sources = analysis->sources.sources;
	config->n = analysis->sources.n;
	config->host = analysis->host;
	config->filter = &analysis->filter;
	config->last = analysis->last;
	config->at = analysis->at.set ? &analysis->at : NULL;
	config->who = analysis->who;
	/* what has been read once is not said or kept twice */
	config->on_fault = analysis->quiet ? NULL : on_fault;
	config->journal = analysis->quiet ? NULL : &analysis->journal;
	config->sheds = analysis->quiet ? NULL : &analysis->sheds;
	r = sources_run(config, &analysis->facts, &why);
	if (r < 0)
		log_error("%s", why.text);
	return r;
}

void analysis_sheds_json(const struct analysis *analysis, struct json_object *o)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < analysis->sheds.n; i++) {
		const struct own_shed *shed = &analysis->sheds.list[i];
		struct json_object *item = json_object_new_object();

		json_add(item, "event", json_text(shed->event));
		json_add(item, "from_usec",
			 json_number(analysis_usec(&analysis->facts, shed->from)));
		json_add(item, "to_usec", json_number(analysis_usec(&analysis->facts, shed->to)));
		json_append(array, item);
	}
	json_add(o, "not_recorded", array);
}

static void note_sheds(const struct analysis *analysis)
{
	const size_t n = analysis->sheds.n;

	for (size_t i = 0; i < MIN(n, SHEDS_SHOWN); i++) {
		const struct own_shed *shed = &analysis->sheds.list[i];
		_cleanup_free_ char *from = analysis_at(&analysis->facts, shed->from);
		_cleanup_free_ char *to = analysis_at(&analysis->facts, shed->to);

		log_notice("%s: %s: not recorded from %s to %s", analysis->ctl->verb, shed->event,
			   from ? from : "?", to ? to : "?");
	}
	if (n > SHEDS_SHOWN)
		log_notice("%s: %zu more of these; --json shows all", analysis->ctl->verb,
			   n - SHEDS_SHOWN);
}

void analysis_journal_line(const struct own_journal_line *line, const char *indent)
{
	const struct sources_facts realtime = {.in_usecs = true, .has_date = true};
	_cleanup_free_ char *at = analysis_at(&realtime, line->usec * NSEC_PER_USEC);

	if (!at)
		return;
	printf("%s%s %s", indent, at, line->identifier);
	if (line->pid > 0)
		printf("[%" PRIu32 "]", line->pid);
	printf(": %s%s\n", line->message, line->cut ? "..." : "");
}

void analysis_journal_near(const struct analysis *analysis, uint64_t from, uint64_t to,
			   const char *indent)
{
	const struct own_journal_line *list, *shown[NEAR_MAX];
	size_t n = journal_lines_near(&analysis->journal, &analysis->facts, from, to, &list);
	size_t picked = journal_lines_pick(list, n, OWN_JOURNAL_PRIORITIES - 1, NEAR_MAX, shown);

	for (size_t i = 0; i < picked; i++)
		analysis_journal_line(shown[i], indent);
	if (n > picked)
		printf("%s%zu more lines of the journal\n", indent, n - picked);
}

struct json_object *analysis_journal_json(const struct own_journal_line *list, size_t n)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_object_new_object();

		json_add(o, "time_usec", json_number(list[i].usec));
		json_add(o, "priority", json_number(list[i].priority));
		json_add(o, "pid", json_number(list[i].pid));
		json_add(o, "identifier", json_text(list[i].identifier));
		json_add(o, "unit", *list[i].unit ? json_text(list[i].unit) : NULL);
		json_add(o, "message", json_text(list[i].message));
		json_add(o, "cut", json_object_new_boolean(list[i].cut));
		json_append(array, o);
	}
	return array;
}

void analysis_notes(const struct analysis *analysis, const struct spans_totals *totals)
{
	const char *verb = analysis->ctl->verb;

	if (totals->gaps > 0 && totals->ended > 0)
		log_notice("%s: events were lost in %" PRIu64 " place%s; left out: %" PRIu64
			   " waits that were going on there",
			   verb, totals->gaps, totals->gaps == 1 ? "" : "s", totals->ended);
	else if (totals->gaps > 0)
		log_notice("%s: events were lost in %" PRIu64 " place%s", verb, totals->gaps,
			   totals->gaps == 1 ? "" : "s");
	note_sheds(analysis);
	if (totals->unknown > 0)
		log_notice("%s: left out: %" PRIu64
			   " waits whose beginning is not in the recording",
			   verb, totals->unknown);
	if (totals->left_out > 0)
		log_notice("%s: left out: %" PRIu64 " events of more tasks or names than there "
			   "is room for",
			   verb, totals->left_out);
	if (analysis->facts.n_silent > 0)
		log_notice("%s: %s not say which units %s tasks belong to", verb,
			   analysis->sources.n == 1	   ? "the recording does"
			   : analysis->facts.n_silent == 1 ? "one of the recordings does"
							   : "some of the recordings do",
			   analysis->facts.n_silent == 1 ? "its" : "their");
	if (totals->events == 0)
		log_notice("%s: no events", verb);
}
