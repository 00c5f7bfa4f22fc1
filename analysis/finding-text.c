/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "analysis/finding-text.h"
#include "analysis/words.h"
#include "basic/escape.h"
#include "basic/strv.h"

static void put_nsec(FILE *f, uint64_t nsec)
{
	_cleanup_free_ char *text = analysis_nsec(nsec);

	(void)fputs(text ? text : "", f);
}

/* "postgres[812] (postgresql.service)" */
static void put_task(FILE *f, const struct finding_task *who)
{
	(void)fprintf(f, "%s", who->comm[0] ? who->comm : "<...>");
	if (who->task)
		(void)fprintf(f, "[%d]", who->task->pid);
	if (finding_unit(who))
		(void)fprintf(f, " (%s)", finding_unit(who));
}

static void put_share(FILE *f, uint64_t part, uint64_t whole)
{
	(void)fprintf(f, " (%.0f%%)", 100.0 * (double)part / (double)MAX(whole, UINT64_C(1)));
}

/* "fifo-hog[815] rt 50 398.1ms (97%)" */
static void put_blame(FILE *f, const struct blame *blame, uint64_t whole)
{
	_cleanup_free_ char *prio = analysis_prio(blame->prio);

	switch (blame->kind) {
	case BLAME_TASK:
		if (blame->tasks > 1)
			(void)fprintf(f, "%" PRIu32 " %s tasks", blame->tasks,
				      blame->who.comm[0] ? blame->who.comm : "<...>");
		else
			put_task(f, &blame->who);
		if (prio && (strncmp(prio, "rt ", 3) == 0 || strcmp(prio, "deadline") == 0))
			(void)fprintf(f, " %s", prio);
		break;
	case BLAME_IDLE:
		(void)fputs("nothing", f);
		break;
	case BLAME_IRQ:
		(void)fputs("interrupts", f);
		break;
	case BLAME_SOFTIRQ:
		(void)fputs("softirqs", f);
		break;
	case BLAME_WAKER:
		return;
	}
	(void)fputc(' ', f);
	put_nsec(f, blame->nsec);
	put_share(f, blame->nsec, whole);
}

/* "; usually 52us; 7 such waits, 2.1s in all" */
static void put_more(FILE *f, const struct finding *x, const char *what)
{
	if (x->usual > 0) {
		(void)fputs("; usually ", f);
		put_nsec(f, x->usual);
	}
	if (x->count > 1) {
		(void)fprintf(f, "; %" PRIu64 " such %s, ", x->count, what);
		put_nsec(f, x->total);
		(void)fputs(" in all", f);
	}
}

static void put_others(FILE *f, const struct finding *x)
{
	uint32_t n = MIN(x->n_others, FINDING_OTHERS);

	for (uint32_t i = 0; i < n; i++) {
		(void)fputs(i == 0 ? "" : ", ", f);
		put_task(f, &x->others[i]);
		if (x->others[i].nsec > 0) {
			(void)fputc(' ', f);
			put_nsec(f, x->others[i].nsec);
		}
	}
	if (x->n_others > n)
		(void)fprintf(f, " and %" PRIu32 " more", x->n_others - n);
}

static void put_runqueue(FILE *f, const struct finding *x)
{
	put_task(f, &x->victim);
	(void)fputs(" waited ", f);
	put_nsec(f, x->nsec);
	(void)fprintf(f, " for CPU %" PRIu32, x->cpu);
	if (x->open)
		(void)fputs(", to the end of the recording", f);
	if (x->rule == RULE_PREEMPTED)
		(void)fputs(", preempted", f);
	if (x->rule == RULE_REALTIME)
		(void)fputs(", starved by a real-time task", f);
	if (x->rule == RULE_KEPT_OFF && x->beats)
		(void)fputs(", as with a CPU quota: such waits ended every 100ms", f);
	else if (x->rule == RULE_KEPT_OFF)
		(void)fputs(" although it was idle, as when a CPU quota is used up", f);
	for (size_t i = 0; i < x->n_blames; i++) {
		if (i > 0 && x->blames[i].nsec < x->nsec / 100)
			break;
		(void)fputs(i == 0 ? "; meanwhile it ran " : ", ", f);
		put_blame(f, &x->blames[i], x->nsec);
	}
	if (x->n_blames == 0)
		(void)fputs("; what ran meanwhile is not known", f);
	if (x->n_others > 0) {
		(void)fputs("; likewise ", f);
		put_others(f, x);
	}
	put_more(f, x, "waits");
}

static void put_device(FILE *f, const struct span_label *request)
{
	_cleanup_free_ char *device = analysis_device(request->number);

	(void)fprintf(f, "%s on device %s", request->text ? request->text : "request",
		      device ? device : "");
}

static void put_cause(FILE *f, const struct sources_facts *facts, const struct finding *x)
{
	_cleanup_free_ char *call = x->call ? analysis_label(facts, x->call) : NULL;

	if (call)
		(void)fprintf(f, " in %s()", call);
	if (x->on)
		(void)fprintf(f, ", waiting for %s", x->on);
}

static void put_blocked(FILE *f, const struct sources_facts *facts, const struct finding *x)
{
	put_task(f, &x->victim);
	(void)fputs(" was blocked (D) for ", f);
	put_nsec(f, x->nsec);
	if (x->open)
		(void)fputs(" to the end of the recording", f);
	put_cause(f, facts, x);
	if (x->request) {
		(void)fputs(", until a ", f);
		put_device(f, x->request);
		(void)fputs(" completed, which took ", f);
		put_nsec(f, x->request_nsec);
	}
	if (x->n_blames > 0) {
		const struct blame *by = &x->blames[0];

		(void)fputs(x->request ? "; woken by " : ", until woken by ", f);
		if (by->waker == SPAN_WAKER_TASK)
			put_task(f, &by->who);
		else
			(void)fputs(analysis_waker(by->waker, NULL), f);
	}
	if (x->waker_blocked > 0) {
		(void)fputs(", which was blocked itself for ", f);
		put_nsec(f, x->waker_blocked);
		(void)fputs(" just before", f);
	}
	put_more(f, x, "waits");
}

static void put_convoy(FILE *f, const struct sources_facts *facts, const struct finding *x)
{
	(void)fprintf(f, "%s%" PRIu32 " tasks were blocked (D) together",
		      x->n_others + 1 == FINDING_CONVOY ? "at least " : "", x->n_others + 1);
	put_cause(f, facts, x);
	(void)fputs(", each until woken by ", f);
	put_task(f, &x->blames[0].who);
	(void)fputs(": ", f);
	put_task(f, &x->victim);
	(void)fputs(" for ", f);
	put_nsec(f, x->nsec);
	(void)fputs(", also ", f);
	put_others(f, x);
	put_more(f, x, "waits");
}

static void put_handler(FILE *f, const struct sources_facts *facts, const struct finding *x)
{
	_cleanup_free_ char *name = analysis_label(facts, x->label);

	if (x->rule == RULE_IRQ)
		(void)fprintf(f, "the handler of interrupt %" PRIu64 " (%s) took ",
			      x->label->number, name ? name : "");
	else
		(void)fprintf(f, "softirq %s took ", name ? name : "");
	put_nsec(f, x->nsec);
	(void)fprintf(f, " of CPU %" PRIu32, x->cpu);
	put_more(f, x, x->rule == RULE_IRQ ? "interrupts" : "softirqs");
}

static void put_storm(FILE *f, const struct sources_facts *facts, const struct finding *x)
{
	_cleanup_free_ char *name = x->label ? analysis_label(facts, x->label) : NULL;
	const bool irq = x->rule == RULE_IRQ_STORM;

	(void)fprintf(f, "%" PRIu64 " %s took ", x->count, irq ? "interrupts" : "softirqs");
	put_nsec(f, x->nsec);
	put_share(f, x->nsec, x->to - x->from);
	(void)fprintf(f, " of CPU %" PRIu32 " within ", x->cpu);
	put_nsec(f, x->to - x->from);
	if (name)
		(void)fprintf(f, ", most of it %s", name);
	(void)fputs("; usually ", f);
	put_nsec(f, x->usual);
}

static void put_request(FILE *f, const struct finding *x)
{
	(void)fputs("a ", f);
	put_device(f, x->label);
	(void)fputs(" took ", f);
	put_nsec(f, x->nsec);
	put_more(f, x, "requests");
}

static void put_call(FILE *f, const struct sources_facts *facts, const struct finding *x)
{
	_cleanup_free_ char *name = analysis_label(facts, x->label);

	(void)fprintf(f, "%s() of ", name ? name : "");
	put_task(f, &x->victim);
	(void)fputs(" took ", f);
	put_nsec(f, x->nsec);
	if (x->awake < x->nsec) {
		(void)fputs(", of which it slept ", f);
		put_nsec(f, x->nsec - x->awake);
	}
	put_more(f, x, "calls");
}

static void put_oom(FILE *f, const struct finding *x)
{
	put_task(f, &x->victim);
	(void)fputs(" was killed for lack of memory", f);
	if (x->n_blames > 0) {
		(void)fputs(" when ", f);
		put_task(f, &x->blames[0].who);
		(void)fputs(" asked for more", f);
	}
}

static void put_loss(FILE *f, const struct finding *x)
{
	if (x->total > 0)
		(void)fprintf(f, "%" PRIu64 " events", x->total);
	else
		(void)fputs("events", f);
	(void)fprintf(f, " of CPU %" PRIu32 " were lost in %" PRIu64 " place%s: for ", x->cpu,
		      x->count, x->count == 1 ? "" : "s");
	put_nsec(f, x->nsec);
	(void)fputs(" in all it is not known what happened there", f);
}

char *finding_text(const struct sources_facts *facts, const struct finding *finding)
{
	const struct finding *x = finding;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	switch (x->rule) {
	case RULE_RUNQUEUE:
	case RULE_PREEMPTED:
	case RULE_REALTIME:
	case RULE_KEPT_OFF:
		put_runqueue(f, x);
		break;
	case RULE_BLOCKED:
		put_blocked(f, facts, x);
		break;
	case RULE_CONVOY:
		put_convoy(f, facts, x);
		break;
	case RULE_IRQ:
	case RULE_SOFTIRQ:
		put_handler(f, facts, x);
		break;
	case RULE_IRQ_STORM:
	case RULE_SOFTIRQ_STORM:
		put_storm(f, facts, x);
		break;
	case RULE_BLOCK:
		put_request(f, x);
		break;
	case RULE_SYSCALL:
		put_call(f, facts, x);
		break;
	case RULE_OOM:
		put_oom(f, x);
		break;
	case RULE_LOSS:
		put_loss(f, x);
		break;
	case _RULE_MAX:
		break;
	}
	if (fclose(f) != 0 || escape_replace(&text) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* --- the command */

/* As a shell takes it */
static void put_word(FILE *f, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./:,+@%=";

	if (*word && word[strspn(word, plain)] == '\0') {
		(void)fprintf(f, " %s", word);
		return;
	}
	(void)fputs(" '", f);
	for (; *word; word++)
		(void)fputs(*word == '\'' ? "'\\''" : (const char[]){*word, '\0'}, f);
	(void)fputc('\'', f);
}

/* As --since= and the like take it: as the file's times are shown, which are rounded */
static void put_time(FILE *f, const struct sources_facts *facts, uint64_t ts)
{
	if (facts->in_usecs)
		ts += NSEC_PER_USEC / 2;
	if (facts->in_usecs)
		(void)fprintf(f, "%" PRIu64 ".%06" PRIu64, ts / NSEC_PER_SEC,
			      ts % NSEC_PER_SEC / NSEC_PER_USEC);
	else
		(void)fprintf(f, "%" PRIu64, ts);
}

static const char *view_of(enum finding_rule rule)
{
	switch (rule) {
	case RULE_CONVOY:
		return "blocked";
	case RULE_IRQ:
	case RULE_IRQ_STORM:
		return "irq";
	case RULE_SOFTIRQ:
	case RULE_SOFTIRQ_STORM:
		return "softirq";
	case RULE_BLOCK:
		return "block";
	case RULE_SYSCALL:
		return "syscalls";
	case RULE_LOSS:
		return "events";
	default:
		return "tasks";
	}
}

static bool is_wait(enum finding_rule rule)
{
	return rule == RULE_RUNQUEUE || rule == RULE_PREEMPTED || rule == RULE_REALTIME ||
	       rule == RULE_KEPT_OFF || rule == RULE_BLOCKED;
}

char *finding_command(const struct sources_facts *facts, const struct finding *finding,
		      char *const *words)
{
	const struct finding *x = finding;
	uint64_t around = x->from == x->to ? NSEC_PER_SEC : NSEC_PER_USEC;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	if (is_wait(x->rule) && x->victim.task) {
		(void)fputs("flyrecctl why --at=", f);
		put_time(f, facts, x->from);
		(void)fprintf(f, " %d", x->victim.task->pid);
	} else {
		(void)fputs("flyrecctl view --since=", f);
		put_time(f, facts, x->from - MIN(x->from, around));
		(void)fputs(" --until=", f);
		put_time(f, facts, x->to + around);
		(void)fprintf(f, " %s", view_of(x->rule));
	}
	STRV_FOREACH (word, words)
		put_word(f, *word);
	if (fclose(f) != 0 || escape_replace(&text) < 0) {
		free(text);
		return NULL;
	}
	return text;
}
