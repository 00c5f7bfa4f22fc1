/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl why: the longest waits of a task, and who ran meanwhile.
 */
#include <inttypes.h>
#include <string.h>

#include "analysis/why.h"
#include "basic/escape.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "ctl/analysis.h"
#include "ctl/output.h"

#define TOP_DEFAULT 3
#define TOP_MAX	    1000U

struct shown {
	struct analysis a;
	const char *task;
	struct why *why;
};

static const char *kind_text(const struct span *span)
{
	switch (span->kind) {
	case SPAN_RUN:
		return "ran";
	case SPAN_BLOCKED:
		return "blocked";
	case SPAN_ASLEEP:
		return "asleep";
	default:
		return span->preempted ? "preempted" : "runqueue";
	}
}

static uint64_t length_of(const struct span *span)
{
	return span->to - span->from;
}

/* Of the wait so much is not told: the CPU's events were lost, or are too long ago */
static uint64_t unknown_of(const struct why_wait *wait)
{
	uint64_t sum = wait->shares.others, all = length_of(&wait->span);

	if (wait->span.kind != SPAN_RUNQUEUE)
		return 0;
	for (size_t i = 0; i < wait->shares.n; i++)
		sum += wait->shares.list[i].nsec;
	return all - MIN(all, sum);
}

/* --- for people */

static void print_head(const struct shown *shown, const struct why_wait *wait)
{
	const struct span *span = &wait->span;
	const char *unit = analysis_unit(&shown->a, span->task);
	_cleanup_free_ char *took = analysis_nsec(length_of(span));
	_cleanup_free_ char *from = analysis_at(&shown->a.facts, span->from);
	_cleanup_free_ char *to = analysis_at(&shown->a.facts, span->to);
	_cleanup_free_ char *name = strdup(analysis_task(span->task));
	_cleanup_free_ char *waker = strdup(analysis_waker(span->waker, span->waker_task));

	if (!took || !from || !to || !name || !waker || escape_replace(&name) < 0 ||
	    escape_replace(&waker) < 0)
		return;
	printf("%s%s[%d] ", style(STYLE_BOLD), name, span->task->pid);
	if (unit)
		printf("of %s ", unit);
	if (span->kind == SPAN_BLOCKED)
		printf("was blocked %s, from %s to %s", took, from, to);
	else
		printf("waited %s for CPU %" PRIu32 ", from %s to %s", took, span->cpu, from, to);
	if (span->open)
		printf(" to the end of the recording");
	if (span->preempted)
		printf(", preempted");
	else if (span->waker_task)
		printf(", woken by %s[%d]", waker, span->waker_task->pid);
	else if (span->waker)
		printf(", woken by %s", waker);
	printf("%s\n", style(STYLE_OFF));
}

/* What it did before and afterwards, as far as that is known */
static void print_around(const struct why_wait *wait)
{
	_cleanup_free_ char *before = analysis_nsec(length_of(&wait->before));
	_cleanup_free_ char *after = analysis_nsec(wait->after);
	_cleanup_free_ char *stack = wait->span.label ? strdup(wait->span.label->text) : NULL;

	if (stack && escape_replace(&stack) >= 0)
		printf("stack: %s\n", stack);
	if (wait->before.to > 0 && before)
		printf("before: %s %s\n", kind_text(&wait->before), before);
	if (wait->after > 0 && after)
		printf("afterwards: ran %s\n", after);
}

static void add_task(struct table *t, const struct span_task *task)
{
	table_add_text(t, analysis_task(task));
	table_add(t, task ? strf("%d", task->pid) : strdup("-"));
}

/* Does the recording tell a unit of who ran? */
static bool has_units(const struct shown *shown, const struct why_wait *wait)
{
	for (size_t i = 0; i < wait->shares.n; i++)
		if (analysis_unit(&shown->a, wait->shares.list[i].task))
			return true;
	return false;
}

static int print_shares(const struct shown *shown, const struct why_wait *wait)
{
	const double all = (double)length_of(&wait->span);
	struct table t = {
		.headings = {"", "RAN", "SHARE", "RUNS", "TASK", "PID", "UNIT"},
		.n_columns = has_units(shown, wait) ? 7 : 6,
		.numbers = 0x2e,
	};

	for (size_t i = 0; i < wait->shares.n; i++) {
		const struct run_share *share = &wait->shares.list[i];
		const char *unit = analysis_unit(&shown->a, share->task);

		table_add(&t, strf("%c", why_letter(wait, share->task)));
		table_add(&t, analysis_nsec(share->nsec));
		table_add(&t, strf("%.1f%%", 100 * (double)share->nsec / all));
		table_add_number(&t, share->runs);
		add_task(&t, share->task);
		if (t.n_columns > 6)
			table_add_text(&t, unit ? unit : "-");
	}
	return table_print(&t);
}

static int print_slices(const struct why_wait *wait)
{
	struct table t = {
		.headings = {"", "AFTER", "RAN", "TASK", "PID", "PRIO"},
		.n_columns = 6,
		.numbers = 0x16,
	};

	for (size_t i = wait->n; i-- > 0;) {
		const struct run_slice *slice = &wait->slices[i];

		table_add(&t, strf("%c", why_letter(wait, slice->task)));
		table_add(&t, analysis_nsec(slice->from - wait->span.from));
		table_add(&t, analysis_nsec(slice->to - slice->from));
		add_task(&t, slice->task);
		table_add(&t, slice->task ? analysis_prio(slice->prio) : strdup("-"));
	}
	return table_print(&t);
}

static void print_rest(const char *what, uint64_t nsec)
{
	_cleanup_free_ char *text = analysis_nsec(nsec);

	if (nsec > 0 && text)
		printf("%s %s\n", what, text);
}

static int print_wait(const struct shown *shown, const struct why_wait *wait)
{
	int r = 0;

	print_head(shown, wait);
	if (wait->n > 0) {
		printf("[%s]\n", wait->line);
		r = print_shares(shown, wait);
		print_rest("others ran", wait->shares.others);
		print_rest("not known who ran:", unknown_of(wait));
		/* one after the other, if that says more */
		if (r >= 0 && wait->n > wait->shares.n)
			r = print_slices(wait);
		if (wait->n > wait->shares.n)
			print_rest("shorter runs than these:", wait->shorter);
	} else {
		print_rest("not known who ran:", unknown_of(wait));
	}
	print_around(wait);
	analysis_journal_near(&shown->a, wait->span.from, wait->span.to, "journal: ");
	return r;
}

/* --- JSON */

static struct json_object *unit_json(const struct shown *shown, const struct span_task *task)
{
	const char *unit = analysis_unit(&shown->a, task);

	return unit ? json_text(unit) : NULL;
}

static struct json_object *task_json(const struct shown *shown, const struct span_task *task)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "task", json_text(analysis_task(task)));
	json_add(o, "pid", json_number(task ? (uint64_t)task->pid : 0));
	json_add(o, "unit", unit_json(shown, task));
	return o;
}

static struct json_object *share_json(const struct shown *shown, const struct run_share *share)
{
	struct json_object *o = task_json(shown, share->task);

	json_add(o, "kind", json_text(share->task ? "task" : "idle"));
	json_add(o, "nsec", json_number(share->nsec));
	json_add(o, "runs", json_number(share->runs));
	return o;
}

static struct json_object *slice_json(const struct shown *shown, const struct run_slice *slice)
{
	struct json_object *o = task_json(shown, slice->task);

	json_add(o, "start_usec", json_number(analysis_usec(&shown->a.facts, slice->from)));
	json_add(o, "nsec", json_number(slice->to - slice->from));
	json_add(o, "prio", slice->prio == PRIO_UNKNOWN ? NULL : json_object_new_int(slice->prio));
	return o;
}

/* Who is to blame for a wait that nobody sat out on the CPU */
static struct json_object *waker_json(const struct shown *shown, const struct span *span)
{
	struct json_object *o = task_json(shown, span->waker_task);

	json_add(o, "kind", json_text("waker"));
	json_add(o, "task", json_text(analysis_waker(span->waker, span->waker_task)));
	json_add(o, "nsec", json_number(length_of(span)));
	return o;
}

static struct json_object *wait_json(const struct shown *shown, const struct why_wait *wait)
{
	const struct span *span = &wait->span;
	struct json_object *o = task_json(shown, span->task), *blame = json_object_new_array();
	struct json_object *before = NULL, *runs = json_object_new_array();
	const struct own_journal_line *near;
	size_t n_near;

	for (size_t i = 0; i < wait->shares.n; i++)
		json_append(blame, share_json(shown, &wait->shares.list[i]));
	for (size_t i = wait->n; i-- > 0;)
		json_append(runs, slice_json(shown, &wait->slices[i]));
	if (span->kind == SPAN_BLOCKED && span->waker)
		json_append(blame, waker_json(shown, span));
	if (wait->before.to > 0) {
		before = json_object_new_object();
		json_add(before, "kind", json_text(kind_text(&wait->before)));
		json_add(before, "nsec", json_number(length_of(&wait->before)));
	}
	json_add(o, "kind", json_text(span->kind == SPAN_BLOCKED ? "blocked" : "runqueue"));
	json_add(o, "preempted", json_object_new_boolean(span->preempted));
	json_add(o, "start_usec", json_number(analysis_usec(&shown->a.facts, span->from)));
	json_add(o, "duration_nsec", json_number(length_of(span)));
	json_add(o, "cpu", json_number(span->cpu));
	json_add(o, "waker",
		 span->waker ? json_text(analysis_waker(span->waker, span->waker_task)) : NULL);
	json_add(o, "waker_unit", unit_json(shown, span->waker_task));
	json_add(o, "waker_pid",
		 json_number(span->waker_task ? (uint64_t)span->waker_task->pid : 0));
	json_add(o, "stack", span->label ? json_text(span->label->text) : NULL);
	json_add(o, "before", before);
	json_add(o, "after_nsec", json_number(wait->after));
	json_add(o, "others_nsec", json_number(wait->shares.others));
	json_add(o, "unknown_nsec", json_number(unknown_of(wait)));
	json_add(o, "blame", blame);
	json_add(o, "runs", runs);
	json_add(o, "shorter_nsec", json_number(wait->shorter));
	n_near =
		journal_lines_near(&shown->a.journal, &shown->a.facts, span->from, span->to, &near);
	json_add(o, "journal",
		 shown->a.journal.n_files > 0 ? analysis_journal_json(near, n_near) : NULL);
	return o;
}

static enum ctl_status show_json(const struct shown *shown, struct why_wait *const *waits, size_t n)
{
	struct json_object *o = task_json(shown, waits[0]->span.task),
			   *array = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_append(array, wait_json(shown, waits[i]));
	json_add(o, "waits", array);
	analysis_sheds_json(&shown->a, o);
	return print_json(o);
}

/* --- the verb */

static enum ctl_status show(const struct shown *shown)
{
	struct why_wait *const *waits;
	size_t n = why_waits(shown->why, &waits);
	int r = 0;

	if (n == 0) {
		log_error("why: %s: %s", shown->task,
			  why_knows(shown->why) ? "no wait of this task" : "no such task");
		return CTL_FAILED;
	}
	if (shown->a.ctl->json)
		return show_json(shown, waits, n);
	analysis_notes(&shown->a, spans_totals(why_spans(shown->why)));
	for (size_t i = 0; i < n && r >= 0; i++) {
		if (i > 0)
			(void)putchar('\n');
		r = print_wait(shown, waits[i]);
	}
	if (r < 0)
		(void)log_error_errno(r, "why: %m");
	return r < 0 ? CTL_FAILED : CTL_DONE;
}

/* Without rights */
static int why_confined(void *userdata)
{
	struct shown *shown = userdata;
	struct why_config config = {
		.task = shown->task,
		.top = shown->a.top ? MIN(shown->a.top, TOP_MAX) : TOP_MAX,
		.at = shown->a.at.set ? &shown->a.facts.at : NULL,
		.places = event_filter_has_places(&shown->a.filter),
	};
	struct sources_config sources = {};
	enum ctl_status status = CTL_FAILED;
	unsigned pid;
	int r;

	if (parse_unsigned(shown->task, &pid) >= 0 && pid <= INT32_MAX)
		config.pid = (int32_t)pid;
	r = analysis_ask_who(&shown->a);
	config.who = shown->a.who;
	if (r >= 0)
		r = why_new(&config, &shown->why);
	if (r < 0) {
		(void)log_error_errno(r, "why: %m");
		return CTL_FAILED;
	}
	sources.spans = why_spans(shown->why);
	r = analysis_read(&shown->a, &sources);
	/* of that moment also a wait that had not ended by the end of the recording */
	if (r >= 0 && shown->a.at.set)
		r = spans_end(sources.spans);
	if (r >= 0)
		status = show(shown);
	why_free(shown->why);
	who_free(shown->a.who);
	return (int)(shown->a.facts.n_faults > 0 ? CTL_FAILED : status);
}

enum ctl_status verb_why(struct ctl *ctl, int argc, char **argv)
{
	struct shown shown = {.a.ctl = ctl, .task = argv[1]};

	if (argc < 3)
		return ctl_complain(ctl, "a TASK and a SOURCE are wanted: a trace.dat file or a "
					 "session");
	if (!analysis_options(&shown.a, TOP_DEFAULT)) {
		analysis_done(&shown.a);
		return CTL_USAGE;
	}
	return analysis_run(&shown.a, argv + 2, why_confined, &shown);
}
