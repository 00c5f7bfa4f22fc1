/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "analysis/finding-text.h"
#include "analysis/timeline.h"
#include "basic/escape.h"
#include "basic/log.h"
#include "basic/strv.h"
#include "ctl/analysis.h"
#include "ctl/html.h"
#include "ctl/report.h"
#include "formats/own-cause.h"
#include "formats/own-hosts.h"
#include "formats/own-section.h"

#define FINDINGS      20U	     /* shown */
#define WINDOWS	      10U	     /* of them whose surroundings are drawn exactly */
#define ROWS	      50U	     /* of each table */
#define JOURNAL_SHOWN 500U	     /* lines */
#define ROOM	      (1900 * 1000U) /* of time lines: with all else, in base64, 3 MB */

struct report {
	struct analysis *a;
	const struct report_part *part;
	size_t n_parts;
	char suffix[16]; /* of ids: none of the first part */
	const char *name;
	struct text *out;
	struct findings *findings;
	struct finding *list;
	size_t n;
	uint64_t from, to;
	uint64_t cause_usec; /* 0: unknown */
	struct timeline *timeline;
	struct timeline_picture picture;
};

static const struct spans_totals *totals_of(const struct report *r)
{
	return spans_totals(findings_spans(r->findings));
}

/* --- reading, once for each thing to be found out */

static int read_findings(struct report *r)
{
	const struct findings_config config = {.who = r->a->who};
	struct sources_config sources = {.machine = true};
	int e = findings_new(&config, &r->findings);

	if (e >= 0) {
		sources.spans = findings_spans(r->findings);
		e = analysis_read(r->a, &sources);
		if (e < 0)
			return e;
		r->a->quiet = true;
		e = findings_list(r->findings, &r->list, &r->n);
	}
	if (e < 0)
		return log_error_errno(e, "export: %m");
	r->n = MIN(r->n, (size_t)FINDINGS);
	r->from = totals_of(r)->from;
	r->to = MAX(totals_of(r)->to, r->from);
	return 0;
}

/* Half as much before and after it */
static struct timeline_window window_of(const struct report *r, const struct finding *finding)
{
	const uint64_t more = (finding->to - finding->from) / 2 + NSEC_PER_SEC / 1000;

	return (struct timeline_window){
		.from = MAX(finding->from - MIN(finding->from, more), r->from),
		.to = MIN(finding->to + more, r->to),
	};
}

static int read_timeline(struct report *r)
{
	struct timeline_window windows[WINDOWS];
	struct timeline_config config = {
		.from = r->from,
		.to = r->to,
		.windows = windows,
		.n_windows = MIN(r->n, (size_t)WINDOWS),
		.room = ROOM / (unsigned)r->n_parts,
	};
	struct sources_config sources = {.on_events = timeline_count};
	/* has learned from these events */
	struct who *who = TAKE_PTR(r->a->who);
	int e, read = 0;

	for (size_t i = 0; i < config.n_windows; i++)
		windows[i] = window_of(r, &r->list[i]);
	e = timeline_new(&config, &r->timeline);
	if (e >= 0) {
		sources.spans = timeline_spans(r->timeline);
		sources.userdata = r->timeline;
		read = analysis_read(r->a, &sources);
		if (read >= 0)
			e = timeline_draw(r->timeline, &r->picture);
	}
	r->a->who = who;
	return e < 0 ? log_error_errno(e, "export: %m") : read;
}

/* --- text */

static void put_link(const struct report *r, const char *id, const char *title)
{
	text_printf(r->out, "<a href=\"#%s%s\">%s</a>\n", id, r->suffix, title);
}

static void put_section(const struct report *r, const char *id, const char *title)
{
	text_printf(r->out, "<section id=%s%s>\n<h2>%s</h2>\n", id, r->suffix, title);
}

void report_begin(const char *name, struct text *out)
{
	text_string(out, "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n");
	/* Nothing is loaded, and of scripts and styles only ours apply, whatever a name may be */
	text_printf(out,
		    "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; "
		    "script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; "
		    "form-action 'none'\">\n",
		    report_script_hash, report_style_hash);
	text_string(out, "<meta name=viewport content=\"width=device-width\">\n"
			 "<meta name=referrer content=no-referrer>\n"
			 "<meta name=generator content=\"flyrecctl " PACKAGE_VERSION "\">\n"
			 "<link rel=icon href=\"data:,\">\n<title>");
	html_text(out, name);
	text_string(out, " - flyrec</title>\n<style>");
	text_string(out, report_style);
	text_string(out, "</style>\n</head>\n<body>\n");
}

static void put_at(struct text *out, const struct report *r, uint64_t ts)
{
	_cleanup_free_ char *text = analysis_at(&r->a->facts, ts);

	html_text(out, text ? text : "");
	out->no_memory |= !text;
}

static void put_nsec(struct text *out, const struct report *r, uint64_t nsec)
{
	_cleanup_free_ char *text =
		r->a->facts.in_usecs ? analysis_nsec(nsec) : strf("%" PRIu64 " ticks", nsec);

	html_text(out, text ? text : "");
	out->no_memory |= !text;
}

static void put_cause(struct report *r, const struct own_cause *cause)
{
	struct text *out = r->out;
	_cleanup_free_ char *at = format_time(cause->usec);

	text_string(out, "<p class=cause>Taken for: ");
	html_text(out, cause->reason);
	text_string(out, " at ");
	html_text(out, at ? at : "");
	text_string(out, "</p>\n<pre class=cause>");
	for (const char *line = cause->text; *line; line += *line == '\n') {
		_cleanup_free_ char *copy = strndup(line, strcspn(line, "\n"));

		html_text(out, copy ? copy : "");
		text_char(out, '\n');
		line += strcspn(line, "\n");
	}
	text_string(out, "</pre>\n");
	if (r->cause_usec == 0)
		r->cause_usec = cause->usec;
}

/* Damages are verify's business */
static void put_causes(struct report *r, const struct trace_dat *dat)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct own_cause cause;
	size_t size, at = 0;
	struct fault why;
	int e = own_section_read(dat, OWN_CAUSE, &bytes, &size, &why);

	while (e >= 0 && (e = own_cause_take(bytes, size, dat->big_endian, &at, &cause)) > 0)
		put_cause(r, &cause);
}

/* How its times may be taken beside those of others */
static void put_error(const struct report *r)
{
	text_string(r->out, "<p>Its clock may be wrong by ");
	if (r->part->error == OWN_HOST_ERROR_UNKNOWN)
		text_string(r->out, "any time");
	else
		put_nsec(r->out, r, r->part->error);
	text_string(r->out, ", beside those of the other hosts.</p>\n");
}

static void put_summary(struct report *r)
{
	const struct spans_totals *totals = totals_of(r);
	struct text *out = r->out;

	text_string(out, "<div class=host>\n<header>\n<h1>");
	if (r->a->host) {
		html_text(out, r->a->host);
		text_string(out, ": ");
	}
	html_text(out, r->name);
	text_string(out, "</h1>\n<p>");
	put_nsec(out, r, r->to - r->from);
	text_string(out, " from ");
	put_at(out, r, r->from);
	text_string(out, " to ");
	put_at(out, r, r->to);
	text_printf(out, ": %" PRIu64 " events, ", totals->events);
	if (totals->lost > 0)
		text_printf(out, "<strong>%" PRIu64 " lost</strong>", totals->lost);
	else
		text_string(out, totals->gaps > 0 ? "<strong>some lost</strong>" : "none lost");
	text_string(out, "</p>\n");
	if (r->n_parts > 1)
		put_error(r);
	for (const struct trace_dat *const *dat = r->part->dats; *dat; dat++)
		put_causes(r, *dat);
	text_string(out, "<nav>\n");
	put_link(r, "findings", "Findings");
	put_link(r, "timeline", "Time line");
	put_link(r, "rate", "Rate");
	put_link(r, "histograms", "Histograms");
	put_link(r, "tables", "Tables");
	if (r->a->journal.n_files > 0)
		put_link(r, "journal", "Journal");
	put_link(r, "missing", "Not in it");
	text_string(out, "</nav>\n</header>\n");
}

static void put_finding(const struct report *r, const struct finding *finding)
{
	_cleanup_free_ char *text = finding_text(&r->a->facts, finding);
	_cleanup_free_ char *command = finding_command(&r->a->facts, finding, r->part->files);
	struct text *out = r->out;

	if (!text || !command) {
		out->no_memory = true;
		return;
	}
	text_string(out, "<li><p><time>");
	put_at(out, r, finding->from);
	text_printf(out, "</time> <b>%s</b> ", finding_rule_facts(finding->rule)->name);
	html_text(out, text);
	text_string(out, "</p>\n<code>");
	html_text(out, command);
	text_string(out, "</code></li>\n");
}

static void put_findings(const struct report *r)
{
	struct text *out = r->out;
	bool said[_RULE_MAX] = {};

	put_section(r, "findings", "Findings");
	text_string(out, r->n > 0 ? "<ol>\n" : "<p>Nothing stands out.</p>\n");
	for (size_t i = 0; i < r->n; i++)
		put_finding(r, &r->list[i]);
	if (r->n > 0)
		text_string(out, "</ol>\n");
	for (size_t i = 0; i < r->n; i++) {
		const struct finding_rule_facts *facts = finding_rule_facts(r->list[i].rule);

		if (facts->unknown && !said[r->list[i].rule])
			text_printf(out, "<p class=more>%s does not tell %s.</p>\n", facts->name,
				    facts->unknown);
		said[r->list[i].rule] = true;
	}
	text_string(out, "</section>\n");
}

static void put_timeline(const struct report *r)
{
	struct text *out = r->out;

	put_section(r, "timeline", "Time line");
	text_string(out, "<noscript><p>The time line takes JavaScript.</p></noscript>\n");
	if (r->picture.grain > 0) {
		text_string(out, "<p class=more>What is closer together than ");
		put_nsec(out, r, r->picture.grain);
		text_string(out, " is drawn as one");
		if (r->picture.left_out > 0)
			text_printf(out, ", %" PRIu64 " shorter waits are not drawn",
				    r->picture.left_out);
		if (r->picture.n_exact > 0)
			text_printf(out, ", but around %zu of the findings", r->picture.n_exact);
		text_string(out, ".</p>\n");
	}
	text_string(out, "</section>\n");
}

static void put_pictures(const struct report *r)
{
	static const struct {
		enum span_kind kind;
		const char *title;
	} histograms[] = {
		{SPAN_RUNQUEUE, "Waits for a CPU"}, {SPAN_BLOCKED, "Blocked (D)"},
		{SPAN_IRQ, "Interrupts"},	    {SPAN_SOFTIRQ, "Softirqs"},
		{SPAN_BLOCK, "Block requests"},	    {SPAN_SYSCALL, "System calls"},
	};
	struct text *out = r->out;

	put_section(r, "rate", "Rate");
	html_rate(out, timeline_rate(r->timeline), TIMELINE_BINS,
		  r->a->facts.in_usecs ? r->to - r->from : 0);
	text_string(out, "</section>\n");
	put_section(r, "histograms", "Histograms");
	for (size_t i = 0; i < ARRAY_SIZE(histograms); i++) {
		const struct measure *measure = timeline_measure(r->timeline, histograms[i].kind);

		if (measure->count > 0)
			html_histogram(out, histograms[i].title, measure);
	}
	text_string(out, "</section>\n");
}

static int put_tables(const struct report *r)
{
	struct text *out = r->out;
	struct table table;
	int e = analysis_cpus(r->findings, 0, r->to - r->from, &table);

	if (e < 0)
		return log_error_errno(e, "export: %m");
	put_section(r, "tables", "Tables");
	text_string(out, "<h3>cpus: how busy each CPU was</h3>\n");
	html_table(out, &table, 0);
	for (unsigned i = 0; i < _VIEW_MAX; i++) {
		size_t rows;

		e = analysis_table(r->a, (enum table_view)i, ROWS, &table, &rows);
		if (e < 0)
			return e;
		if (rows > 0) {
			text_printf(out, "<h3>%s: %s</h3>\n", table_view_name((enum table_view)i),
				    analysis_table_title((enum table_view)i));
			html_table(out, &table, rows);
		}
		table_done(&table);
	}
	text_string(out, "</section>\n");
	return 0;
}

static void put_journal(const struct report *r)
{
	const struct journal_lines *journal = &r->a->journal;
	const struct own_journal_line *shown[JOURNAL_SHOWN];
	size_t n = journal_lines_pick(journal->list, journal->n, OWN_JOURNAL_PRIORITIES - 1,
				      JOURNAL_SHOWN, shown);
	struct text *out = r->out;

	if (journal->n_files == 0)
		return;
	put_section(r, "journal", "Journal");
	text_printf(out, "<p>%zu lines", journal->n);
	if (journal->left_out > 0)
		text_printf(out, ", %" PRIu64 " older ones left out", journal->left_out);
	if (n < journal->n)
		text_printf(out, "; these are the %zu most severe", n);
	text_string(out, "</p>\n<ul class=journal>\n");
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *at = format_time(shown[i]->usec);

		text_printf(out, "<li class=p%" PRIu32 "><time>", shown[i]->priority);
		html_text(out, at ? at : "");
		text_string(out, "</time> <b>");
		html_text(out, shown[i]->identifier);
		text_string(out, "</b>");
		if (shown[i]->pid > 0)
			text_printf(out, "[%" PRIu32 "]", shown[i]->pid);
		text_string(out, ": ");
		html_text(out, shown[i]->message);
		text_string(out, shown[i]->cut ? "…</li>\n" : "</li>\n");
		out->no_memory |= !at;
	}
	text_string(out, "</ul>\n</section>\n");
}

static void put_missing(const struct report *r)
{
	const struct spans_totals *totals = totals_of(r);
	struct findings_missing missing[_KNOWN_MAX];
	size_t n = findings_missing(r->findings, missing);
	struct text *out = r->out;

	put_section(r, "missing", "What is not in it");
	text_string(out, "<ul>\n");
	if (totals->gaps > 0)
		text_printf(out,
			    "<li>Events were lost in %" PRIu64 " place%s; left out: %" PRIu64
			    " waits that were going on there</li>\n",
			    totals->gaps, totals->gaps == 1 ? "" : "s", totals->ended);
	else
		text_string(out, "<li>No events were lost</li>\n");
	if (totals->unknown > 0)
		text_printf(out,
			    "<li>Left out: %" PRIu64
			    " waits whose beginning is not in the recording</li>\n",
			    totals->unknown);
	if (totals->left_out > 0)
		text_printf(out,
			    "<li>Left out: %" PRIu64
			    " events of more tasks or names than there is room for</li>\n",
			    totals->left_out);
	for (size_t i = 0; i < r->a->sheds.n; i++) {
		const struct own_shed *shed = &r->a->sheds.list[i];

		text_string(out, "<li>");
		html_text(out, shed->event);
		text_string(out, ": not recorded from <time>");
		put_at(out, r, shed->from);
		text_string(out, "</time> to <time>");
		put_at(out, r, shed->to);
		text_string(out, "</time>, by MaxOverhead=</li>\n");
	}
	for (size_t i = 0; i < n; i++) {
		text_string(out, "<li>No ");
		html_text(out, missing[i].event);
		text_string(out, " events: <code>");
		html_text(out, missing[i].add);
		text_printf(out, "</code> would tell %s</li>\n", missing[i].tells);
	}
	if (r->a->facts.n_silent > 0)
		text_string(out, "<li>Not said: which units tasks belong to</li>\n");
	if (r->a->facts.n_faults > 0)
		text_string(out, "<li>Parts of the file are damaged, see flyrecctl verify</li>\n");
	text_string(out, "</ul>\n</section>\n");
}

/* --- data for the script: times from the beginning of the recording */

static struct json_object *json_plain(const char *text)
{
	_cleanup_free_ char *plain = escape_text(text, false);

	return plain ? json_text(plain) : NULL;
}

static struct json_object *tasks_json(const struct report *r)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < r->picture.n_tasks; i++) {
		const struct timeline_task *task = &r->picture.tasks[i];
		struct json_object *o = json_object_new_array();
		const char *unit = analysis_unit(r->a, task->task);

		json_append(o, json_number((uint64_t)task->task->pid));
		json_append(o, json_plain(analysis_task(task->task)));
		if (unit || task->before[0])
			json_append(o, json_plain(unit ? unit : ""));
		if (task->before[0])
			json_append(o, json_plain(task->before));
		json_append(array, o);
	}
	return array;
}

static struct json_object *labels_json(const struct report *r)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < r->picture.n_labels; i++) {
		const struct span_label *label = r->picture.labels[i];
		_cleanup_free_ char *name = analysis_label(&r->a->facts, label);
		_cleanup_free_ char *device =
			label->kind == SPAN_BLOCK ? analysis_device(label->number) : NULL;
		_cleanup_free_ char *text =
			strf("%s%s%s", device ? device : "", device ? " " : "", name ? name : "");

		json_append(array, json_plain(text ? text : ""));
	}
	return array;
}

static struct json_object *findings_json(const struct report *r)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < r->n; i++) {
		const struct finding *finding = &r->list[i];
		struct json_object *o = json_object_new_object(), *pids = json_object_new_array();

		if (finding->victim.task)
			json_append(pids, json_number((uint64_t)finding->victim.task->pid));
		for (size_t k = 0; k < finding->n_blames; k++)
			if (finding->blames[k].who.task)
				json_append(
					pids,
					json_number((uint64_t)finding->blames[k].who.task->pid));
		json_add(o, "from", json_number(finding->from - MIN(finding->from, r->from)));
		json_add(o, "to", json_number(finding->to - MIN(finding->to, r->from)));
		json_add(o, "cpu", json_number(finding->cpu));
		json_add(o, "pids", pids);
		json_append(array, o);
	}
	return array;
}

static struct json_object *rate_json(const struct report *r)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < TIMELINE_BINS; i++)
		json_append(array, json_number(timeline_rate(r->timeline)[i]));
	return array;
}

/* Nanoseconds since midnight of the beginning, as text has times, too */
static struct json_object *day_json(const struct report *r)
{
	const time_t t = (time_t)(r->from / NSEC_PER_SEC);
	struct tm tm;

	if (!r->a->facts.has_date || !localtime_r(&t, &tm))
		return NULL;
	return json_number((uint64_t)(tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec) *
				   NSEC_PER_SEC +
			   r->from % NSEC_PER_SEC);
}

static struct json_object *facts_json(const struct report *r)
{
	struct json_object *o = json_object_new_object();
	const uint64_t cause = r->cause_usec * NSEC_PER_USEC;
	const struct findings_cpu *cpus;
	_cleanup_free_ char *from = strf("%" PRIu64, r->from);

	json_add(o, "from", json_text(from)); /* more than a number of JavaScript can be */
	json_add(o, "day", day_json(r));
	json_add(o, "usecs", json_object_new_boolean(r->a->facts.in_usecs));
	json_add(o, "length", json_number(r->to - r->from));
	json_add(o, "cpus", json_number(findings_cpus(r->findings, &cpus)));
	json_add(o, "cause",
		 r->a->facts.has_date && cause >= r->from && cause <= r->to
			 ? json_number(cause - r->from)
			 : NULL);
	json_add(o, "groups", json_number(r->picture.n_groups));
	json_add(o, "items", json_number(r->picture.n_items));
	json_add(o, "tasks", tasks_json(r));
	json_add(o, "labels", labels_json(r));
	json_add(o, "findings", findings_json(r));
	json_add(o, "rate", rate_json(r));
	return o;
}

static void put_data(const struct report *r)
{
	struct text *out = r->out;

	text_printf(out, "<script id=facts%s type=\"application/json\">", r->suffix);
	html_json(out, facts_json(r));
	text_printf(out, "</script>\n<script id=items%s type=\"application/octet-stream\">",
		    r->suffix);
	html_base64(out, r->picture.bytes, r->picture.size);
	text_string(out, "</script>\n</div>\n");
}

int report_end(struct text *out)
{
	text_string(out, "<script>");
	text_string(out, report_script);
	text_string(out, "</script>\n</body>\n</html>\n");
	return out->no_memory ? log_error_errno(-ENOMEM, "export: %m") : 0;
}

int report_part(const struct report_part *part, const char *name, size_t i, size_t n,
		struct text *out)
{
	struct analysis *analysis = part->analysis;
	struct report report = {
		.a = analysis, .part = part, .n_parts = n, .name = name, .out = out};
	struct report *r = &report;
	int e = analysis_ask_who(analysis);

	if (i > 0)
		(void)snprintf(r->suffix, sizeof(r->suffix), "-%zu", i + 1);
	e = e < 0 ? log_error_errno(e, "export: %m") : read_findings(r);
	if (e >= 0)
		e = read_timeline(r);
	if (e >= 0) {
		put_summary(r);
		put_findings(r);
		put_timeline(r);
		put_pictures(r);
		e = put_tables(r);
	}
	if (e >= 0) {
		put_journal(r);
		put_missing(r);
		put_data(r);
	}
	timeline_picture_done(&r->picture);
	timeline_free(r->timeline);
	free(r->list);
	findings_free(r->findings);
	analysis->who = who_free(analysis->who);
	return e;
}
