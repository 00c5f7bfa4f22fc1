/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz-analysis - any bytes as a trace.dat: each table of it, the longest waits, findings, the time
 * line, lines of the journal and the rates of events, as a recording alone and as one that comes
 * twice; and as the lines themselves, whose checksum would else keep them from being looked at.
 * libFuzzer target; the corpora are tests/fuzz/corpus/analysis, whose files have events of all
 * kinds that analysis knows, and trace-dat.
 */
#include <string.h>
#include <sys/mman.h>

#include "analysis/finding-text.h"
#include "analysis/journal-lines.h"
#include "analysis/rates.h"
#include "analysis/sources.h"
#include "analysis/tables.h"
#include "analysis/timeline.h"
#include "analysis/why.h"
#include "basic/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libtraceevent's parser forgets a token here and there where it gives a format up */
const char *__lsan_default_suppressions(void)
{
	return "leak:libtraceevent\n";
}

static int put_nothing(void *userdata, const struct span_task *task, const char *stack,
		       uint64_t nsec)
{
	*(uint64_t *)userdata += nsec + (uint64_t)task->pid + (uint64_t)*stack;
	return 0;
}

static void look_at(struct tables *tables, enum table_view view)
{
	struct table_row *rows = NULL;
	uint64_t sum = 0;
	size_t n = 0;

	if (tables_rows(tables, &rows, &n) < 0)
		abort();
	for (size_t i = 0; i < n; i++)
		if (rows[i].p50 > rows[i].p99 || rows[i].p99 > rows[i].max)
			abort();
	if (view == VIEW_BLOCKED && tables_folded(tables, put_nothing, &sum) < 0)
		abort();
	free(rows);
}

static void make_tables(int fd, enum table_view view, size_t n)
{
	const struct source sources[] = {{"fuzz", fd}, {"fuzz", fd}};
	const struct event_filter filter = {};
	struct tables_config config = {.view = view, .by_unit = n > 1};
	struct sources_facts facts;
	struct tables *tables;
	struct fault why = {};
	struct who *who;
	int r;

	if (who_new(NULL, NULL, false, &who) < 0)
		abort();
	config.who = who;
	if (tables_new(&config, &tables) < 0)
		abort();
	r = sources_run(&(struct sources_config){.sources = sources,
						 .n = n,
						 .filter = &filter,
						 .last = n > 1 ? NSEC_PER_SEC : 0,
						 .spans = tables_spans(tables),
						 .who = who,
						 .on_count = tables_count,
						 .userdata = tables},
			&facts, &why);
	if (r < 0 && why.text[0] == '\0')
		abort(); /* each refusal says why */
	look_at(tables, view);
	tables_free(tables);
	who_free(who);
}

static void ask_why(int fd)
{
	const struct source source = {"fuzz", fd};
	const struct event_filter filter = {};
	const struct why_config config = {.task = "*", .top = 5};
	struct why_wait *const *waits;
	struct sources_facts facts;
	struct fault fault = {};
	struct why *why;
	size_t n;

	if (why_new(&config, &why) < 0)
		abort();
	(void)sources_run(
		&(struct sources_config){
			.sources = &source, .n = 1, .filter = &filter, .spans = why_spans(why)},
		&facts, &fault);
	n = why_waits(why, &waits);
	for (size_t i = 0; i < n; i++)
		if (waits[i]->n > WHY_SLICES || waits[i]->shares.n > RUN_SHARES ||
		    waits[i]->span.to < waits[i]->span.from)
			abort();
	why_free(why);
}

static void look_at_lines(const struct journal_lines *lines, const struct sources_facts *facts)
{
	const struct own_journal_line *near, *picked[3];
	size_t n = journal_lines_near(lines, facts, 0, UINT64_MAX, &near);

	if (n > lines->n || journal_lines_pick(near, n, 4, 3, picked) > 3)
		abort();
	for (size_t i = 1; i < lines->n; i++)
		if (lines->list[i].usec < lines->list[i - 1].usec)
			abort();
}

/* Whatever is taken can be printed as it is */
static void take_lines(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = malloc(size + 1);
	struct own_journal_head head;
	struct own_journal_line line;
	size_t at = 0;
	int r;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	(void)own_journal_take_head(text, size, &at, &head);
	while ((r = own_journal_take(text, size, &at, &line)) != 0) {
		if (r > 0 &&
		    (line.priority >= OWN_JOURNAL_PRIORITIES || strpbrk(line.message, "\n\t\033")))
			abort();
		if (at > size)
			abort();
	}
}

static void find(int fd)
{
	const struct source source = {"fuzz", fd};
	struct journal_lines journal = {};
	const struct event_filter filter = {};
	char *words[] = {(char *)"fuzz", NULL};
	struct sources_facts facts;
	struct findings *findings;
	struct finding *list;
	struct findings_task *tasks;
	struct fault fault = {};
	size_t n, n_tasks;

	if (findings_new(&(struct findings_config){.min = 1}, &findings) < 0)
		abort();
	(void)sources_run(&(struct sources_config){.sources = &source,
						   .n = 1,
						   .filter = &filter,
						   .machine = true,
						   .journal = &journal,
						   .spans = findings_spans(findings)},
			  &facts, &fault);
	look_at_lines(&journal, &facts);
	journal_lines_done(&journal);
	if (findings_list(findings, &list, &n) < 0 ||
	    findings_tasks(findings, &tasks, &n_tasks) < 0)
		abort();
	for (size_t i = 0; i < n; i++) {
		char *text = finding_text(&facts, &list[i]);
		char *command = finding_command(&facts, &list[i], words);

		if (!text || !command || strchr(text, '\n') ||
		    (i > 0 && list[i].score > list[i - 1].score))
			abort();
		free(text);
		free(command);
	}
	free(list);
	free(tasks);
	findings_free(findings);
}

static void count(int fd, uint64_t read_max)
{
	const struct source sources[] = {{"fuzz", fd}, {"fuzz", fd}};
	struct fault why = {};
	struct rates rates;
	int r = rates_read(
		&(struct rates_config){
			.sources = sources, .n = 2, .to_usec = UINT64_MAX, .read_max = read_max},
		&rates, &why);

	if (r < 0 && why.text[0] == '\0')
		abort(); /* each refusal says why */
	if (r < 0)
		return;
	for (size_t i = 0; i < rates.n_events; i++)
		if (rates.events[i].count[RATES_SHORT] > rates.events[i].count[RATES_LONG])
			abort();
	rates_done(&rates);
}

static void draw(int fd)
{
	const struct source source = {"fuzz", fd};
	const struct event_filter filter = {};
	const struct timeline_window window = {1000, 2000};
	const struct timeline_config config = {
		.to = UINT64_MAX, .windows = &window, .n_windows = 1, .room = 300};
	struct timeline_picture picture;
	struct sources_facts facts;
	struct timeline *timeline;
	struct fault fault = {};

	if (timeline_new(&config, &timeline) < 0)
		abort();
	(void)sources_run(&(struct sources_config){.sources = &source,
						   .n = 1,
						   .filter = &filter,
						   .spans = timeline_spans(timeline),
						   .on_events = timeline_count,
						   .userdata = timeline},
			  &facts, &fault);
	if (timeline_draw(timeline, &picture) < 0)
		abort();
	timeline_picture_done(&picture);
	timeline_free(timeline);
}

static void look_for(int fd, unsigned what)
{
	if (what == _VIEW_MAX + 3) {
		draw(fd);
	} else if (what == _VIEW_MAX + 2) {
		count(fd, GIB);
		count(fd, 3 * 4096);
	} else if (what == _VIEW_MAX + 1) {
		find(fd);
	} else if (what == _VIEW_MAX) {
		ask_why(fd);
	} else {
		make_tables(fd, (enum table_view)what, 1 + what % 2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("fuzz-analysis", MFD_CLOEXEC);

	if (fd < 0 || io_pwrite_all(fd, data, size, 0) < 0)
		abort();
	take_lines(data, size);
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	/* one of them in the time of one */
	look_for(fd, size > 0 ? data[size / 2] % (_VIEW_MAX + 4) : 0);
#else
	for (unsigned i = 0; i <= _VIEW_MAX + 3; i++)
		look_for(fd, i);
#endif
	return 0;
}
