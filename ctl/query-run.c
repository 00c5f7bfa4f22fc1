/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "ctl/output.h"
#include "ctl/place.h"
#include "ctl/query-run.h"

#define TELL_AFTER (USEC_PER_SEC / 2) /* nobody has to be told of what is quick */
#define TELL_AGAIN (USEC_PER_SEC / 5)
#define BAR	   40U

/* A signal handler's, which has no other way */
static volatile sig_atomic_t interrupted;

void query_run_interrupt(void)
{
	interrupted = 1;
}

static void on_fault(const char *text)
{
	log_error("%s", text);
}

static bool goes_on(void *userdata)
{
	struct query_run *run = userdata;

	if (run->timeout > 0 && now_usec(CLOCK_MONOTONIC) - run->begun >= run->timeout)
		run->timed_out = true;
	return !interrupted && !run->timed_out;
}

/* --- how far it has got */

static void clear_progress(struct query_run *run)
{
	if (run->told > 0)
		(void)fprintf(stderr, "\r\033[K");
	run->told = 0;
}

static void tell_progress(struct query_run *run, uint64_t done, uint64_t bytes)
{
	const uint64_t now = now_usec(CLOCK_MONOTONIC);
	const unsigned n = (unsigned)((double)done / (double)MAX(bytes, UINT64_C(1)) * BAR);
	_cleanup_free_ char *size = NULL;

	if (run->n_rows > 0 || now - run->begun < TELL_AFTER ||
	    (run->told > 0 && now - run->told < TELL_AGAIN))
		return;
	size = format_bytes(bytes);
	run->told = now;
	(void)fprintf(stderr, "\r[%.*s%*s] %3u%% of %s\033[K", (int)MIN(n, BAR),
		      "========================================", (int)(BAR - MIN(n, BAR)), "",
		      100 * MIN(n, BAR) / BAR, size ? size : "");
}

static bool on_progress(void *userdata, uint64_t done, uint64_t bytes)
{
	struct query_run *run = userdata;

	if (run->progress)
		tell_progress(run, done, bytes);
	return goes_on(run);
}

/* --- rows */

static int on_columns(void *userdata, const char *const *names, unsigned n)
{
	struct query_run *run = userdata;

	run->n_rows = 0;
	return rows_columns(run->rows, names, n);
}

static int on_row(void *userdata, const struct query_cell *cells, unsigned n)
{
	struct query_run *run = userdata;

	clear_progress(run);
	if (run->a.top > 0 && run->n_rows == run->a.top)
		return -ECANCELED;
	run->n_rows++;
	return rows_row(run->rows, cells, n);
}

int query_run_begin(struct query_run *run)
{
	const char *task = run->a.filter.has_pids ? NULL : run->a.ctl->task;
	const struct query_config config = {
		.place = place_hosts,
		.sources = run->a.sources.sources,
		.n = run->a.sources.n,
		.filter = &run->a.filter,
		.task = task,
		.last = run->a.last,
		.on_progress = on_progress,
		.userdata = run,
		.on_fault = on_fault,
	};
	struct query_limits limits = {.memory = run->memory, .goes_on = goes_on, .userdata = run};
	struct fault why;
	int r;

	run->rows = rows_new(run->form);
	if (!run->rows)
		return log_error_errno(-ENOMEM, "query: %m");
	run->begun = now_usec(CLOCK_MONOTONIC);
	r = query_new(&config, &run->query, &why);
	if (r >= 0)
		r = query_database_new(run->query, &limits, &run->database, &why);
	if (r < 0)
		log_error("query: %s", why.text);
	return r;
}

static void tell_failure(const struct query_run *run, int r, const struct fault *why)
{
	if (r == -EINTR && run->timed_out)
		log_error("query: ended after --timeout=%s", run->a.ctl->timeout);
	else if (why->text[0])
		log_error("query: %s", why->text);
	else
		(void)log_error_errno(r, "query: %m");
}

/* A statement that has read no events is about none of them */
static int tell_notes(struct query_run *run)
{
	struct query_notes notes;
	int r = query_take_notes(run->query, &notes);

	if (r < 0 || notes.totals.events == 0)
		return r;
	own_sheds_done(&run->a.sheds);
	run->a.sheds = notes.sheds;
	run->a.facts = notes.facts;
	analysis_notes(&run->a, &notes.totals);
	return 0;
}

enum ctl_status query_run_sql(struct query_run *run, const char *sql)
{
	const struct query_output output = {on_columns, on_row, run};
	const size_t faults = query_faults(run->query);
	struct fault why;
	int r, end;

	run->begun = now_usec(CLOCK_MONOTONIC);
	run->n_rows = 0;
	run->timed_out = false;
	interrupted = 0;
	r = query_database_run(run->database, sql, run->form == ROWS_JSON, &output, &why);
	if (r == -ECANCELED)
		r = 0;
	clear_progress(run);
	end = rows_end(run->rows, r >= 0);
	/* a reader that has gone away has seen enough */
	if (r < 0 && r != -EIO)
		tell_failure(run, r, &why);
	if (tell_notes(run) < 0) {
		(void)log_error_errno(-ENOMEM, "query: %m");
		return CTL_FAILED;
	}
	return r < 0 || end < 0 || query_faults(run->query) > faults ? CTL_FAILED : CTL_DONE;
}

void query_run_end(struct query_run *run)
{
	query_database_free(run->database);
	query_unref(run->query);
	rows_free(run->rows);
}
