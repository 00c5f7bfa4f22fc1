/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "analysis/finding-text.h"
#include "analysis/findings.h"
#include "analysis/words.h"
#include "convert/convert.h"
#include "decode/event-filter.h"
#include "formats/own-findings.h"
#include "formats/own-section.h"

#define FINDINGS_MAX 10U /* as many as flyrecctl analyze shows */

struct taker {
	const struct export *export;
	int (*take)(void *userdata, const struct own_finding *finding);
	void *userdata;
};

static int take_wanted(const struct taker *taker, const struct own_finding *finding)
{
	const struct event_filter *filter = taker->export->filter;
	const bool usecs = decoder_facts(taker->export->decoder)->in_usecs;
	const uint64_t from = usecs ? finding->start_usec * NSEC_PER_USEC : finding->start_usec;

	if (from + finding->duration_nsec < filter->from || from > filter->to)
		return 0;
	return taker->take(taker->userdata, finding);
}

static int analyze(const struct export *export, struct findings *findings, struct who *who,
		   struct sources_facts *ret_facts, struct fault *why)
{
	const struct source source = {
		.name = export->dat->path, .fd = export->dat->fd, .frame = export->frame};
	/* the texts are borrowed */
	const struct event_filter filter = {
		.since = export->filter->since,
		.until = export->filter->until,
	};

	return sources_run(&(struct sources_config){.sources = &source,
						    .n = 1,
						    .filter = &filter,
						    .machine = true,
						    .spans = findings_spans(findings),
						    .who = who},
			   ret_facts, why);
}

static int take_new(const struct taker *taker, struct fault *why)
{
	_cleanup_(findings_freep) struct findings *findings = NULL;
	_cleanup_(who_freep) struct who *who = NULL;
	_cleanup_free_ struct finding *list = NULL;
	struct sources_facts facts;
	size_t n = 0;
	int r = who_new(NULL, NULL, false, &who);

	if (r >= 0)
		r = findings_new(&(struct findings_config){.who = who}, &findings);
	if (r < 0)
		return r;
	r = analyze(taker->export, findings, who, &facts, why);
	if (r >= 0)
		r = findings_list(findings, &list, &n);
	for (size_t i = 0; i < MIN(n, (size_t)FINDINGS_MAX) && r >= 0; i++) {
		_cleanup_free_ char *text = finding_text(&facts, &list[i]);
		const struct finding_task *victim = &list[i].victim;
		const char *unit = finding_unit(victim);

		if (!text)
			return -ENOMEM;
		r = take_wanted(taker,
				&(struct own_finding){
					.score = list[i].score,
					.start_usec = analysis_usec(&facts, list[i].from),
					.duration_nsec = list[i].nsec,
					.rule = finding_rule_facts(list[i].rule)->name,
					.pid = victim->task ? (uint32_t)victim->task->pid : 0,
					.task = victim->comm,
					.unit = unit ? unit : "",
					.text = text,
				});
	}
	return r;
}

/* The file's own, whose lines @bytes are */
static int take_own(const struct taker *taker, uint8_t *bytes, size_t size,
		    void (*on_fault)(const char *text), size_t *n_faults)
{
	struct own_finding finding;
	char line[512];
	size_t at = 0;
	int r;

	while ((r = own_finding_take((char *)bytes, size, &at, &finding)) != 0) {
		if (r > 0) {
			r = take_wanted(taker, &finding);
			if (r < 0)
				return r;
			continue;
		}
		(void)snprintf(line, sizeof(line), "%.300s: a finding is damaged",
			       taker->export->dat->path);
		on_fault(line);
		(*n_faults)++;
	}
	return 0;
}

static bool is_all(const struct event_filter *filter)
{
	return !filter->events && !filter->has_cpus && !filter->has_pids &&
	       !event_filter_has_places(filter);
}

int export_findings(const struct export *export,
		    int (*take)(void *userdata, const struct own_finding *finding), void *userdata,
		    void (*on_fault)(const char *text), size_t *n_faults, struct fault *why)
{
	const struct taker taker = {.export = export, .take = take, .userdata = userdata};
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size = 0;
	int r = own_section_read(export->dat, OWN_FINDINGS, &bytes, &size, why);

	if (r == -EBADMSG) {
		on_fault(why->text);
		(*n_faults)++;
	} else if (r < 0 && r != -ENOENT) {
		return r;
	}
	why->error = 0;
	if (r >= 0 && size > 0)
		r = take_own(&taker, bytes, size, on_fault, n_faults);
	else
		r = is_all(export->filter) ? take_new(&taker, why) : 0;
	return r < 0 && why->error == 0
		       ? fault_errno(why, r, "%s: cannot analyse", export->dat->path)
		       : r;
}
