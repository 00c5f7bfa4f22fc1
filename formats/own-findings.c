/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/parse.h"
#include "basic/strv.h"
#include "formats/own-findings.h"
#include "formats/own-text.h"

#define COLUMNS 8

char *own_finding_put(const struct own_finding *finding)
{
	_cleanup_free_ char *task = own_text_column(finding->task, strlen(finding->task));
	_cleanup_free_ char *unit = own_text_column(finding->unit, strlen(finding->unit));
	_cleanup_free_ char *text = own_text_column(finding->text, strlen(finding->text));

	if (!task || !unit || !text)
		return NULL;
	return strf("%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\t%" PRIu32 "\t%s\t%s\t%s\n",
		    finding->score, finding->start_usec, finding->duration_nsec, finding->rule,
		    finding->pid, task, unit, text);
}

int own_finding_take(char *bytes, size_t size, size_t *at, struct own_finding *ret)
{
	struct own_finding finding;
	char *columns[COLUMNS];
	unsigned pid;
	int r = own_text_take(bytes, size, at, columns, COLUMNS);

	if (r <= 0)
		return r;
	if (parse_u64(columns[0], &finding.score) < 0 ||
	    parse_u64(columns[1], &finding.start_usec) < 0 ||
	    parse_u64(columns[2], &finding.duration_nsec) < 0 ||
	    parse_unsigned(columns[4], &pid) < 0)
		return -EBADMSG;
	finding.rule = columns[3];
	finding.pid = pid;
	finding.task = columns[5];
	finding.unit = columns[6];
	finding.text = columns[7];
	*ret = finding;
	return 1;
}
