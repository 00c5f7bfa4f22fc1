/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "analysis/run-history.h"
#include "analysis/sources.h"
#include "analysis/tables.h"
#include "analysis/words.h"
#include "basic/out-file.h"
#include "convert/clickhouse/clickhouse-waits.h"
#include "decode/event-filter.h"
#include "decode/who.h"

#define WAIT_LEAST (1000 * NSEC_PER_USEC) /* shorter ones are most, and cost most */

struct job {
	struct clickhouse_waits *waits;
	const struct event_filter *filter; /* of the tasks and CPUs that waits are wanted of */
	struct tables_filter by;
	struct who *who;
	struct run_history *history;
	struct spans *spans;
	struct native_rows *rows;
	struct text out;
	int fd;
	int written; /* what out_file_write() returned */
	struct fault *why;
};

static const struct native_table table = {
	CLICKHOUSE_WAITS,
	{{"ts", NATIVE_TIME},	       {"nsec", NATIVE_U64},	    {"kind", NATIVE_WORD},
	 {"preempted", NATIVE_U8},     {"open", NATIVE_U8},	    {"cpu", NATIVE_U16},
	 {"pid", NATIVE_I32},	       {"tgid", NATIVE_I32},	    {"comm", NATIVE_WORD},
	 {"unit", NATIVE_WORD},	       {"container", NATIVE_WORD},  {"waker", NATIVE_WORD},
	 {"waker_pid", NATIVE_I32},    {"waker_comm", NATIVE_WORD}, {"waker_unit", NATIVE_WORD},
	 {"ran_pid", NATIVE_PIDS},     {"ran_comm", NATIVE_TEXTS},  {"ran_unit", NATIVE_TEXTS},
	 {"ran_nsec", NATIVE_NUMBERS}, {"ran_others", NATIVE_U64}},
};

/* --- rows */

struct ran {
	uint64_t pids[RUN_SHARES], nsec[RUN_SHARES];
	const char *comms[RUN_SHARES], *units[RUN_SHARES];
};

static const struct task_place *place_of(const struct job *job, const struct span_task *task,
					 uint64_t at)
{
	const struct task_who *is = task ? who_find(job->who, task->pid, at) : NULL;

	return is ? is->place : NULL;
}

static const char *unit_of(const struct job *job, const struct span_task *task, uint64_t at)
{
	const struct task_place *place = place_of(job, task, at);

	return place ? place->names.unit : NULL;
}

static void fill_ran(const struct job *job, const struct span *span,
		     const struct run_shares *shares, struct ran *ret)
{
	for (size_t i = 0; i < shares->n; i++) {
		const struct span_task *task = shares->list[i].task;
		const char *unit = unit_of(job, task, span->to);

		ret->pids[i] = task ? (uint64_t)task->pid : 0;
		ret->comms[i] = task ? task->comm : "idle";
		ret->units[i] = unit ? unit : "";
		ret->nsec[i] = shares->list[i].nsec;
	}
}

static int add_row(struct job *job, const struct span *span, const struct run_shares *shares)
{
	const struct task_who *is =
		span->task ? who_find(job->who, span->task->pid, span->to) : NULL;
	const struct task_place *place = is ? is->place : NULL;
	const struct span_task *waker = span->waker_task;
	struct ran ran;

	fill_ran(job, span, shares, &ran);
	return native_rows_add(
		job->rows,
		(const struct native_value[]){
			{.number = span->from},
			{.number = span->to - span->from},
			{.text = span->kind == SPAN_BLOCKED ? "blocked" : "runqueue"},
			{.number = span->preempted},
			{.number = span->open},
			{.number = span->cpu},
			{.number = span->task ? (uint64_t)span->task->pid : 0},
			{.number = is ? (uint64_t)is->tgid : 0},
			{.text = span->task ? span->task->comm : NULL},
			{.text = place ? place->names.unit : NULL},
			{.text = place ? place->names.container : NULL},
			{.text = analysis_waker_kind(span->waker)},
			{.number = waker ? (uint64_t)waker->pid : 0},
			{.text = waker ? waker->comm : NULL},
			{.text = unit_of(job, waker, span->to)},
			{.n = shares->n, .numbers = ran.pids},
			{.n = shares->n, .texts = ran.comms},
			{.n = shares->n, .texts = ran.units},
			{.n = shares->n, .numbers = ran.nsec},
			{.number = shares->others},
		},
		&job->out);
}

static int write_out(struct job *job)
{
	if (job->out.size == 0)
		return 0;
	job->written = out_file_write(job->fd, job->out.bytes, job->out.size, job->why);
	job->out.size = 0;
	return job->written == 0 ? 0 : -EPIPE;
}

static bool is_wanted(const struct job *job, const struct span *span)
{
	const struct event_filter *filter = job->filter;
	bool pid = !filter->has_pids;

	for (size_t i = 0; i < filter->n_pids && !pid; i++)
		pid = span->task && filter->pids[i] == span->task->pid;
	return pid && tables_filter_wants(&job->by, job->who, span);
}

static int on_span(void *userdata, const struct span *span)
{
	struct run_shares shares = {};
	struct job *job = userdata;
	int r;

	if (span->kind == SPAN_RUN)
		return run_history_add(job->history, span);
	if (span->to - span->from < WAIT_LEAST || !is_wanted(job, span))
		return 0;
	if (span->kind == SPAN_RUNQUEUE)
		run_history_shares(job->history, span, &shares);
	r = add_row(job, span, &shares);
	return r < 0 ? r : write_out(job);
}

/* --- all */

static void job_done(struct job *job)
{
	native_rows_free(job->rows);
	spans_free(job->spans);
	run_history_free(job->history);
	who_free(job->who);
	text_done(&job->out);
}

static int job_begin(struct job *job)
{
	const struct spans_config config = {
		.kinds = SPAN_BIT(SPAN_RUNQUEUE) | SPAN_BIT(SPAN_BLOCKED) | SPAN_BIT(SPAN_RUN),
		.names = true,
		.shortest = WAIT_LEAST,
		.on_span = on_span,
		.userdata = job,
	};
	int r = who_new(job->filter->units, job->filter->containers, false, &job->who);

	if (r >= 0)
		r = run_history_new(&job->history);
	if (r >= 0)
		r = native_rows_new(&table, &job->waits->labels, &job->rows);
	return r < 0 ? r : spans_new(&config, &job->spans);
}

static int run(struct job *job, struct fault *why)
{
	struct clickhouse_waits *waits = job->waits;
	const struct export *export = waits->export;
	const struct source source = {
		.name = export->dat->path, .fd = export->dat->fd, .frame = export->frame};
	/* other events tell of these waits, too; the texts are borrowed */
	const struct event_filter filter = {
		.since = export->filter->since,
		.until = export->filter->until,
	};
	struct sources_facts facts;
	int r = sources_run(&(struct sources_config){.sources = &source,
						     .n = 1,
						     .filter = &filter,
						     .spans = job->spans,
						     .who = job->who,
						     .on_fault = waits->on_fault},
			    &facts, why);

	waits->n_faults += facts.n_faults;
	return r < 0 ? r : spans_end(job->spans);
}

int clickhouse_waits_put(struct clickhouse_waits *waits, int fd, struct fault *why)
{
	const struct event_filter *filter = waits->export->filter;
	_cleanup_(job_done) struct job job = {
		.waits = waits,
		.filter = filter,
		.by = {.cpus = filter->has_cpus ? &filter->cpus : NULL,
		       .places = event_filter_has_places(filter)},
		.fd = fd,
		.why = why,
	};
	struct fault story = {};
	int r = job_begin(&job);

	if (r >= 0)
		r = run(&job, &story);
	if (r >= 0)
		r = native_rows_end(job.rows, &job.out);
	if (r >= 0)
		r = write_out(&job);
	if (job.written != 0)
		return job.written;
	if (r < 0 && story.error)
		*why = story;
	return r < 0 && !story.error
		       ? fault_errno(why, r, "%s: cannot export", waits->export->dat->path)
		       : MIN(r, 0);
}
