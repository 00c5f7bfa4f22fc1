/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl analyze: the worst of a recording in words, and how busy the machine was. The
 * recordings are read, and the rest done, by a process that has given up its rights.
 */
#include <inttypes.h>
#include <string.h>

#include "analysis/finding-text.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "ctl/analysis.h"
#include "ctl/output.h"

#define TOP_DEFAULT 10
#define TASKS	    5U /* shown of those that ran most */
#define CPUS	    8U /* and of CPUs those that were waited for most */
#define JOURNAL	    5U /* lines of it, warnings and worse */

struct shown {
	struct analysis a;
	struct findings_config config;
	char **words;
	struct findings *findings;
	struct finding *list;
	size_t n;
	struct findings_task *tasks;
	size_t n_tasks;
};

static const struct spans_totals *totals_of(const struct shown *shown)
{
	return spans_totals(findings_spans(shown->findings));
}

/* --- for people */

static void print_finding(const struct shown *shown, size_t i)
{
	const struct finding *finding = &shown->list[i];
	const struct sources_facts *facts = &shown->a.facts;
	_cleanup_free_ char *at = analysis_at(facts, finding->from);
	_cleanup_free_ char *text = finding_text(facts, finding);
	_cleanup_free_ char *command = finding_command(facts, finding, shown->words);

	if (!at || !text || !command)
		return;
	printf("%s%zu. %s %s%s: %s\n", style(STYLE_BOLD), i + 1, at,
	       finding_rule_facts(finding->rule)->name, style(STYLE_OFF), text);
	analysis_journal_near(&shown->a, finding->from, finding->to, "   ");
	printf("   %s\n", command);
}

/* Once for all findings of a rule */
static void print_unknown(const struct shown *shown, size_t n)
{
	bool said[_RULE_MAX] = {};

	for (size_t i = 0; i < n; i++) {
		enum finding_rule rule = shown->list[i].rule;
		const struct finding_rule_facts *facts = finding_rule_facts(rule);

		if (!said[rule])
			printf("(%s cannot tell %s)\n", facts->name, facts->unknown);
		said[rule] = true;
	}
}

/* --- CPUs */

static char *percent(uint64_t part, uint64_t whole)
{
	return strf("%.1f%%", 100.0 * (double)part / (double)MAX(whole, UINT64_C(1)));
}

static void print_head(const struct shown *shown)
{
	const struct spans_totals *totals = totals_of(shown);
	_cleanup_free_ char *from = analysis_at(&shown->a.facts, totals->from);
	_cleanup_free_ char *to = analysis_at(&shown->a.facts, totals->to);
	_cleanup_free_ char *took = analysis_nsec(totals->to - totals->from);

	if (!from || !to || !took || totals->events == 0)
		return;
	printf("\n%s from %s to %s: %" PRIu64 " events", took, from, to, totals->events);
	if (totals->lost > 0)
		printf(", %" PRIu64 " lost", totals->lost);
	else
		printf(", %s lost", totals->gaps > 0 ? "some" : "none");
	printf("\n");
}

static int by_waited(const void *a, const void *b, void *cpus)
{
	const struct findings_cpu *all = cpus;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (all[x].waited != all[y].waited)
		return all[x].waited < all[y].waited ? 1 : -1;
	return x < y ? -1 : x > y;
}

int analysis_cpus(const struct findings *findings, size_t most, uint64_t whole, struct table *ret)
{
	const struct findings_cpu *cpus;
	size_t n = findings_cpus(findings, &cpus);
	_cleanup_free_ uint32_t *order = calloc(MAX(n, (size_t)1), sizeof(*order));

	if (!order)
		return -ENOMEM;
	*ret = (struct table){
		.headings = {"CPU", "BUSY", "IRQ", "SOFTIRQ", "WAITED", "MAX"},
		.n_columns = 6,
		.numbers = 0x3f,
	};
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	if (most > 0 && n > most)
		qsort_r(order, n, sizeof(*order), by_waited, (void *)cpus);
	for (size_t i = 0; i < (most > 0 ? MIN(n, most) : n); i++) {
		const struct findings_cpu *cpu = &cpus[order[i]];

		table_add(ret, strf("%" PRIu32, order[i]));
		table_add(ret, percent(cpu->busy, cpu->busy + cpu->idle));
		table_add(ret, percent(cpu->irq, whole));
		table_add(ret, percent(cpu->softirq, whole));
		table_add(ret, analysis_nsec(cpu->waited));
		table_add(ret, analysis_nsec(cpu->waited_max));
	}
	return 0;
}

static int print_cpus(const struct shown *shown)
{
	const struct spans_totals *totals = totals_of(shown);
	struct table t;
	int r = analysis_cpus(shown->findings, CPUS, totals->to - totals->from, &t);

	if (r >= 0 && t.n_rows > 0)
		r = table_print(&t);
	return r;
}

static int print_tasks(const struct shown *shown)
{
	struct table t = {
		.headings = {"TASK", "TASKS", "RAN", "CPU", "WAITED", "MAX", "BLOCKED"},
		.n_columns = 7,
		.numbers = 0x7e,
	};
	const struct spans_totals *totals = totals_of(shown);

	for (size_t i = 0; i < MIN(shown->n_tasks, (size_t)TASKS); i++) {
		const struct findings_task *task = &shown->tasks[i];

		table_add_text(&t, task->comm[0] ? task->comm : "<...>");
		table_add_number(&t, task->tasks);
		table_add(&t, analysis_nsec(task->run));
		table_add(&t, percent(task->run, totals->to - totals->from));
		table_add(&t, analysis_nsec(task->waited));
		table_add(&t, analysis_nsec(task->waited_max));
		table_add(&t, analysis_nsec(task->blocked_max));
	}
	return shown->n_tasks > 0 ? table_print(&t) : 0;
}

/* What it says of the whole time; findings have what was said beside them */
static void print_journal(const struct shown *shown)
{
	const struct journal_lines *journal = &shown->a.journal;
	const struct own_journal_line *worst[JOURNAL];
	size_t picked = journal_lines_pick(journal->list, journal->n, LOG_WARNING, JOURNAL, worst);

	if (journal->n_files == 0)
		return;
	printf("journal: %zu lines", journal->n);
	if (journal->left_out > 0)
		printf(", %" PRIu64 " older ones left out", journal->left_out);
	printf("%s\n", picked > 0 ? "; the worst:" : "");
	for (size_t i = 0; i < picked; i++)
		analysis_journal_line(worst[i], "   ");
}

static int print(const struct shown *shown, size_t n)
{
	struct findings_missing missing[_KNOWN_MAX];
	size_t n_missing = findings_missing(shown->findings, missing);
	int r;

	for (size_t i = 0; i < n; i++)
		print_finding(shown, i);
	if (n < shown->n)
		printf("%zu more; --top=0 shows all\n", shown->n - n);
	if (shown->n == 0)
		printf("Nothing stands out.\n");
	print_unknown(shown, n);
	print_head(shown);
	r = print_cpus(shown);
	if (r >= 0)
		r = print_tasks(shown);
	print_journal(shown);
	for (size_t i = 0; i < n_missing; i++)
		printf("no %s events: %s would tell %s\n", missing[i].event, missing[i].add,
		       missing[i].tells);
	analysis_notes(&shown->a, totals_of(shown));
	return r;
}

/* --- JSON */

static void add_task(struct json_object *o, const struct finding_task *who)
{
	json_add(o, "task", who->task ? json_text(who->comm[0] ? who->comm : "<...>") : NULL);
	json_add(o, "pid", json_number(who->task ? (uint64_t)who->task->pid : 0));
	json_add(o, "unit", finding_unit(who) ? json_text(finding_unit(who)) : NULL);
}

static struct json_object *blame_json(const struct blame *blame)
{
	static const char *const kinds[] = {"task", "idle", "irq", "softirq", "waker"};
	struct json_object *o = json_object_new_object();

	json_add(o, "kind", json_text(kinds[blame->kind]));
	add_task(o, &blame->who);
	if (blame->kind == BLAME_WAKER && blame->waker != SPAN_WAKER_TASK)
		json_add(o, "task", json_text(analysis_waker(blame->waker, NULL)));
	json_add(o, "tasks", json_number(blame->tasks));
	json_add(o, "prio", blame->prio == PRIO_UNKNOWN ? NULL : json_object_new_int(blame->prio));
	json_add(o, "nsec", json_number(blame->nsec));
	return o;
}

static struct json_object *finding_json(const struct shown *shown, const struct finding *finding)
{
	const struct sources_facts *facts = &shown->a.facts;
	const struct finding_rule_facts *rule = finding_rule_facts(finding->rule);
	_cleanup_free_ char *text = finding_text(facts, finding);
	_cleanup_free_ char *command = finding_command(facts, finding, shown->words);
	_cleanup_free_ char *label = finding->label ? analysis_label(facts, finding->label) : NULL;
	struct json_object *o = json_object_new_object(), *blame = json_object_new_array();
	struct json_object *others = json_object_new_array();

	for (size_t i = 0; i < MIN(finding->n_others, FINDING_OTHERS); i++) {
		struct json_object *other = json_object_new_object();

		add_task(other, &finding->others[i]);
		json_add(other, "nsec", json_number(finding->others[i].nsec));
		json_append(others, other);
	}
	for (size_t i = 0; i < finding->n_blames; i++)
		json_append(blame, blame_json(&finding->blames[i]));
	json_add(o, "kind", json_text(rule->kind));
	json_add(o, "rule", json_text(rule->name));
	json_add(o, "score", json_number(finding->score));
	json_add(o, "text", text ? json_text(text) : NULL);
	add_task(o, &finding->victim);
	json_add(o, "cpu", json_number(finding->cpu));
	json_add(o, "name", label ? json_text(label) : NULL);
	json_add(o, "start_usec", json_number(analysis_usec(facts, finding->from)));
	json_add(o, "duration_nsec", json_number(finding->nsec));
	json_add(o, "usual_nsec", json_number(finding->usual));
	json_add(o, "open", json_object_new_boolean(finding->open));
	json_add(o, "count", json_number(finding->count));
	json_add(o, "blame", blame);
	json_add(o, "others", others);
	json_add(o, "unknown", rule->unknown ? json_text(rule->unknown) : NULL);
	json_add(o, "command", command ? json_text(command) : NULL);
	return o;
}

static struct json_object *cpus_json(const struct shown *shown)
{
	struct json_object *array = json_object_new_array();
	const struct findings_cpu *cpus;
	size_t n = findings_cpus(shown->findings, &cpus);

	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_object_new_object();

		json_add(o, "cpu", json_number(i));
		json_add(o, "busy_nsec", json_number(cpus[i].busy));
		json_add(o, "idle_nsec", json_number(cpus[i].idle));
		json_add(o, "irq_nsec", json_number(cpus[i].irq));
		json_add(o, "softirq_nsec", json_number(cpus[i].softirq));
		json_add(o, "runqueue_nsec", json_number(cpus[i].waited));
		json_add(o, "runqueue_max_nsec", json_number(cpus[i].waited_max));
		json_append(array, o);
	}
	return array;
}

static struct json_object *tasks_json(const struct shown *shown)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < MIN(shown->n_tasks, (size_t)TASKS); i++) {
		const struct findings_task *task = &shown->tasks[i];
		struct json_object *o = json_object_new_object();

		json_add(o, "task", json_text(task->comm[0] ? task->comm : "<...>"));
		json_add(o, "tasks", json_number(task->tasks));
		json_add(o, "run_nsec", json_number(task->run));
		json_add(o, "runqueue_nsec", json_number(task->waited));
		json_add(o, "runqueue_max_nsec", json_number(task->waited_max));
		json_add(o, "blocked_max_nsec", json_number(task->blocked_max));
		json_append(array, o);
	}
	return array;
}

static enum ctl_status show_json(const struct shown *shown, size_t n)
{
	const struct spans_totals *totals = totals_of(shown);
	const struct sources_facts *facts = &shown->a.facts;
	struct json_object *o = json_object_new_object(), *array = json_object_new_array();
	struct json_object *words = json_object_new_array();
	const struct journal_lines *journal = &shown->a.journal;
	struct findings_missing missing[_KNOWN_MAX];
	size_t n_missing = findings_missing(shown->findings, missing);

	for (size_t i = 0; i < n_missing; i++)
		json_append(words, json_text(missing[i].event));
	for (size_t i = 0; i < n; i++)
		json_append(array, finding_json(shown, &shown->list[i]));
	json_add(o, "from_usec", json_number(analysis_usec(facts, totals->from)));
	json_add(o, "to_usec", json_number(analysis_usec(facts, totals->to)));
	json_add(o, "events", json_number(totals->events));
	json_add(o, "lost_events", json_number(totals->lost));
	json_add(o, "gaps", json_number(totals->gaps));
	json_add(o, "missing", words);
	analysis_sheds_json(&shown->a, o);
	json_add(o, "findings", array);
	json_add(o, "cpus", cpus_json(shown));
	json_add(o, "tasks", tasks_json(shown));
	json_add(o, "journal",
		 journal->n_files > 0 ? analysis_journal_json(journal->list, journal->n) : NULL);
	json_add(o, "journal_left_out", json_number(journal->left_out));
	return print_json(o);
}

/* --- the verb */

static enum ctl_status show(struct shown *shown)
{
	const struct spans_totals *totals = totals_of(shown);
	size_t n;
	int r = findings_list(shown->findings, &shown->list, &shown->n);

	if (r >= 0)
		r = findings_tasks(shown->findings, &shown->tasks, &shown->n_tasks);
	if (shown->a.filter.since.set || shown->a.filter.until.set || shown->a.last > 0)
		journal_lines_keep(&shown->a.journal, &shown->a.facts, totals->from, totals->to);
	if (r >= 0) {
		n = shown->a.top ? MIN(shown->n, (size_t)shown->a.top) : shown->n;
		if (shown->a.ctl->json)
			return show_json(shown, n);
		r = print(shown, n);
	}
	if (r < 0)
		(void)log_error_errno(r, "analyze: %m");
	return r < 0 ? CTL_FAILED : CTL_DONE;
}

/* Without rights */
static int analyze_confined(void *userdata)
{
	struct shown *shown = userdata;
	struct sources_config sources = {.machine = true};
	enum ctl_status status = CTL_FAILED;
	int r = analysis_ask_who(&shown->a);

	shown->config.who = shown->a.who;
	if (r >= 0)
		r = findings_new(&shown->config, &shown->findings);
	if (r < 0) {
		(void)log_error_errno(r, "analyze: %m");
		return CTL_FAILED;
	}
	sources.spans = findings_spans(shown->findings);
	if (analysis_read(&shown->a, &sources) >= 0)
		status = show(shown);
	free(shown->list);
	free(shown->tasks);
	findings_free(shown->findings);
	who_free(shown->a.who);
	return (int)(shown->a.facts.n_faults > 0 ? CTL_FAILED : status);
}

enum ctl_status verb_analyze(struct ctl *ctl, int argc, char **argv)
{
	struct shown shown = {.a.ctl = ctl, .words = argv + 1};
	struct cpu_list cpus;
	uint64_t usec = 0;

	if (argc == 1)
		return ctl_complain(ctl, "a SOURCE is missing: a trace.dat file or a session");
	if (ctl->min && parse_time(ctl->min, &usec) < 0)
		return ctl_complain(ctl, "--min=: not understood: \"%s\"", ctl->min);
	if (!analysis_options(&shown.a, TOP_DEFAULT)) {
		analysis_done(&shown.a);
		return CTL_USAGE;
	}
	shown.config.min = usec * NSEC_PER_USEC;
	shown.config.filter.places = event_filter_has_places(&shown.a.filter);
	analysis_filter(&shown.a, &shown.config.filter, &cpus);
	return analysis_run(&shown.a, argv + 1, analyze_confined, &shown);
}
