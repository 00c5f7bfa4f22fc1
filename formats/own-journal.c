/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/parse.h"
#include "basic/strv.h"
#include "formats/own-journal.h"
#include "formats/own-text.h"

#define HEAD_COLUMNS 3
#define COLUMNS	     7

char *own_journal_put_head(const struct own_journal_head *head)
{
	return strf("%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", head->from_usec, head->to_usec,
		    head->left_out);
}

char *own_journal_put(const struct own_journal_line *line, const char *message, size_t size)
{
	_cleanup_free_ char *name = own_text_column(line->identifier, strlen(line->identifier));
	_cleanup_free_ char *unit = own_text_column(line->unit, strlen(line->unit));
	_cleanup_free_ char *text = own_text_column(message, size);

	if (!name || !unit || !text)
		return NULL;
	return strf("%" PRIu64 "\t%" PRIu32 "\t%" PRIu32 "\t%d\t%s\t%s\t%s\n", line->usec,
		    line->priority, line->pid, line->cut, name, unit, text);
}

int own_journal_take_head(char *bytes, size_t size, size_t *at, struct own_journal_head *ret)
{
	struct own_journal_head head;
	char *columns[HEAD_COLUMNS];
	int r = own_text_take(bytes, size, at, columns, HEAD_COLUMNS);

	if (r <= 0)
		return r;
	if (parse_u64(columns[0], &head.from_usec) < 0 ||
	    parse_u64(columns[1], &head.to_usec) < 0 || parse_u64(columns[2], &head.left_out) < 0)
		return -EBADMSG;
	*ret = head;
	return 1;
}

int own_journal_take(char *bytes, size_t size, size_t *at, struct own_journal_line *ret)
{
	struct own_journal_line line;
	char *columns[COLUMNS];
	unsigned priority, pid;
	int r = own_text_take(bytes, size, at, columns, COLUMNS);

	if (r <= 0)
		return r;
	if (parse_u64(columns[0], &line.usec) < 0 || parse_unsigned(columns[1], &priority) < 0 ||
	    priority >= OWN_JOURNAL_PRIORITIES || parse_unsigned(columns[2], &pid) < 0 ||
	    parse_bool(columns[3], &line.cut) < 0)
		return -EBADMSG;
	line.priority = priority;
	line.pid = pid;
	line.identifier = columns[4];
	line.unit = columns[5];
	line.message = columns[6];
	*ret = line;
	return 1;
}
