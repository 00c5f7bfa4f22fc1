/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrec's own section (formats/own-section.h): each entry's checksum, and of what this version
 * knows, that it makes sense.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/strv.h"
#include "ctl/output.h"
#include "ctl/verify.h"
#include "formats/own-cause.h"
#include "formats/own-findings.h"
#include "formats/own-hosts.h"
#include "formats/own-journal.h"
#include "formats/own-section.h"
#include "formats/own-shed.h"
#include "formats/own-tasks.h"

struct own_scan {
	struct verify_report *report;
	const struct own_entry *entry;
};

static void tell(const struct own_scan *s, size_t at, const char *what)
{
	verify_report_fault(s->report, s->entry->place + at, "flyrec's own section: %s: %s",
			    own_section_kind(s->entry->kind), what);
}

static void on_bad_reading(void *userdata, size_t at)
{
	tell(userdata, OWN_ENTRY_HEAD + at, "the checksum of a reading does not match");
}

static int check_clocks(struct own_scan *s, bool big_endian)
{
	struct own_clocks *clocks = malloc(sizeof(*clocks));

	if (!clocks)
		return -ENOMEM;
	if (own_clocks_take(s->entry->data, s->entry->size, big_endian, clocks, on_bad_reading, s) <
	    0) {
		tell(s, 0, "they make no sense");
		free(clocks);
		return 0;
	}
	free(s->report->clocks);
	s->report->clocks = clocks;
	return 0;
}

static int keep_cause(struct verify_report *report, const struct own_cause *cause)
{
	struct verify_cause *kept;

	if (array_grow(&report->causes, report->n_causes, sizeof(*report->causes)) < 0)
		return -ENOMEM;
	kept = &report->causes[report->n_causes++];
	*kept = (struct verify_cause){strdup(cause->reason), strdup(cause->text), cause->usec};
	return kept->reason && kept->text ? 0 : -ENOMEM;
}

static int check_causes(struct own_scan *s, bool big_endian)
{
	size_t at = 0;

	for (;;) {
		struct own_cause cause;
		size_t begin = at;
		int r = own_cause_take(s->entry->data, s->entry->size, big_endian, &at, &cause);

		if (r == 0)
			return 0;
		if (r < 0)
			tell(s, OWN_ENTRY_HEAD + begin, "one does not match its checksum");
		else if (keep_cause(s->report, &cause) < 0)
			return -ENOMEM;
	}
}

static int count_task(void *userdata, const struct own_look *look, const struct own_task *task)
{
	struct own_scan *s = userdata;

	(void)look;
	(void)task;
	s->report->n_tasks++;
	return 0;
}

static void on_bad_part(void *userdata, size_t at)
{
	tell(userdata, OWN_ENTRY_HEAD + at, "a part is damaged");
}

static int check_tasks(struct own_scan *s, bool big_endian)
{
	const struct own_tasks_reader reader = {count_task, on_bad_part, s};

	return own_tasks_read(s->entry->data, s->entry->size, big_endian, &reader);
}

static int check_findings(struct own_scan *s)
{
	_cleanup_free_ char *lines = strndup((const char *)s->entry->data, s->entry->size);
	size_t at = 0, begin = 0, size = lines ? strlen(lines) : 0;
	struct own_finding finding;
	int r;

	if (!lines)
		return -ENOMEM;
	while ((r = own_finding_take(lines, size, &at, &finding)) != 0) {
		if (r < 0)
			tell(s, OWN_ENTRY_HEAD + begin, "a line makes no sense");
		else if (strv_append(&s->report->findings, finding.text) < 0)
			return -ENOMEM;
		begin = at;
	}
	return 0;
}

static void on_bad_shed(void *userdata, size_t at)
{
	tell(userdata, OWN_ENTRY_HEAD + at, "a line makes no sense");
}

static int check_sheds(struct own_scan *s)
{
	_cleanup_own_sheds_ struct own_sheds sheds = {};
	int r = own_sheds_take(&sheds, s->entry->data, s->entry->size, on_bad_shed, s);

	s->report->n_sheds = sheds.n;
	return r;
}

static int check_journal(struct own_scan *s)
{
	_cleanup_free_ char *lines = strndup((const char *)s->entry->data, s->entry->size);
	size_t at = 0, begin = 0, size = lines ? strlen(lines) : 0;
	struct own_journal_head head;
	struct own_journal_line line;
	int r;

	if (!lines)
		return -ENOMEM;
	if (own_journal_take_head(lines, size, &at, &head) <= 0)
		tell(s, OWN_ENTRY_HEAD, "the first line makes no sense");
	while (begin = at, (r = own_journal_take(lines, size, &at, &line)) != 0) {
		if (r < 0)
			tell(s, OWN_ENTRY_HEAD + begin, "a line makes no sense");
		s->report->n_journal += r > 0;
	}
	return 0;
}

/* Whether the files that it was merged from can be read as files; their data is this one's */
static int check_hosts(struct own_scan *s, const struct trace_dat *dat)
{
	_cleanup_free_ char *lines = strndup((const char *)s->entry->data, s->entry->size);
	_cleanup_own_hosts_ struct own_hosts hosts = {};
	int r = lines ? own_hosts_take(lines, strlen(lines), &hosts) : -ENOMEM;

	if (r == -EBADMSG)
		tell(s, OWN_ENTRY_HEAD, "a line makes no sense");
	for (size_t i = 0; i < hosts.n && r >= 0; i++) {
		_cleanup_trace_dat_ struct trace_dat *frame = NULL;
		struct fault why = {};

		r = trace_dat_open_frame(dat->fd, dat->path, hosts.list[i].frame, &frame, &why);
		if (r < 0 && r != -ENOMEM)
			verify_report_line(s->report, why.text);
	}
	return r == -ENOMEM ? r : 0;
}

static int check_entry(struct own_scan *s, const struct trace_dat *dat)
{
	const bool big_endian = dat->big_endian;

	if (s->entry->damaged) {
		tell(s, 0, "its checksum does not match");
		return 0;
	}
	if (s->entry->size == 0)
		return 0;
	switch (s->entry->kind) {
	case OWN_TASKS:
		return check_tasks(s, big_endian);
	case OWN_CLOCKS:
		return check_clocks(s, big_endian);
	case OWN_CAUSE:
		return check_causes(s, big_endian);
	case OWN_FINDINGS:
		return check_findings(s);
	case OWN_SHED:
		return check_sheds(s);
	case OWN_JOURNAL:
		return check_journal(s);
	case OWN_HOSTS:
		return check_hosts(s, dat);
	default:
		return 0;
	}
}

int verify_own(const struct trace_dat *dat, struct verify_report *report)
{
	_cleanup_own_section_ struct own_section own = {};
	struct own_scan s = {.report = report};
	struct fault why = {};
	int r = own_section_load(dat, &own, &why);

	if (r < 0 && r != -ENOENT && r != -ENOMEM)
		verify_report_line(report, why.text);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; i < own.n && r >= 0; i++) {
		s.entry = &own.entries[i];
		r = check_entry(&s, dat);
	}
	return r;
}

void verify_own_done(struct verify_report *report)
{
	for (size_t i = 0; i < report->n_causes; i++) {
		free(report->causes[i].reason);
		free(report->causes[i].text);
	}
	free(report->causes);
	strv_free(report->findings);
	free(report->clocks);
}

static struct json_object *reading_json(const struct own_clock *c)
{
	struct json_object *o = json_object_new_object();

	json_add(o, "at", json_text(own_clock_at_name(c->at)));
	json_add(o, "realtime_nsec", json_number(c->realtime));
	if (!(c->flags & OWN_CLOCK_NO_TRACE))
		json_add(o, "trace_nsec", json_number(c->trace));
	json_add(o, "mono_raw_nsec", json_number(c->mono_raw));
	json_add(o, "boot_nsec", json_number(c->boot));
	json_add(o, "width_nsec", json_number(c->width));
	if (!(c->flags & OWN_CLOCK_NO_STATUS)) {
		json_add(o, "status", json_number(c->status));
		json_add(o, "maxerror_usec", json_number(c->maxerror));
	}
	json_add(o, "tai_sec", json_object_new_int(c->tai));
	return o;
}

static void clocks_json(const struct own_clocks *clocks, struct json_object *file)
{
	const struct own_clock *list[OWN_CLOCKS_MAX];
	struct json_object *readings = json_object_new_array();
	size_t n = own_clocks_list(clocks, list);
	char boot_id[2 * sizeof(clocks->boot_id) + 1];

	for (size_t i = 0; i < sizeof(clocks->boot_id); i++)
		(void)snprintf(boot_id + 2 * i, 3, "%02x", clocks->boot_id[i]);
	for (size_t i = 0; i < n; i++)
		json_append(readings, reading_json(list[i]));
	json_add(file, "clock", json_text(clocks->clock));
	json_add(file, "boot_id", json_text(boot_id));
	json_add(file, "clocks", readings);
}

void verify_own_json(const struct verify_report *report, struct json_object *file)
{
	struct json_object *causes;

	if (report->clocks)
		clocks_json(report->clocks, file);
	if (report->n_tasks > 0)
		json_add(file, "tasks", json_number(report->n_tasks));
	if (report->n_sheds > 0)
		json_add(file, "shed", json_number(report->n_sheds));
	if (report->findings)
		json_add(file, "findings", json_list(report->findings));
	if (report->n_journal > 0)
		json_add(file, "journal", json_number(report->n_journal));
	if (report->n_causes == 0)
		return;
	causes = json_object_new_array();
	for (size_t i = 0; i < report->n_causes; i++) {
		const struct verify_cause *c = &report->causes[i];
		struct json_object *o = json_object_new_object();

		json_add(o, "reason", json_text(c->reason));
		json_add(o, "time_usec", json_number(c->usec));
		json_add(o, "text", json_text(c->text));
		json_append(causes, o);
	}
	json_add(file, "causes", causes);
}
