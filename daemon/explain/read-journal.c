/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "daemon/explain/read-journal.h"
#include "daemon/plumbing/journal.h"

#define NUMBER_MAX 16U
#define THRESHOLD  (OWN_JOURNAL_MESSAGE + 64U) /* with the field's name */

struct reading {
	sd_journal *journal;
	struct own_journal_head head;
	char **lines; /* the newest first */
	size_t n, size, room;
	bool full;
};

static uint32_t number(sd_journal *journal, const char *name, const char *other, unsigned fallback)
{
	_cleanup_free_ char *text = journal_name(journal, name, other, NUMBER_MAX);
	unsigned n;

	return text && parse_unsigned(text, &n) >= 0 ? n : fallback;
}

/* No more bytes than there may be, and none of half a character. Only those before the end can be
 * told to be whole */
static size_t cut(const char *message, size_t size)
{
	size_t n = size;

	if (size <= OWN_JOURNAL_MESSAGE)
		return size;
	n = OWN_JOURNAL_MESSAGE;
	while (n > OWN_JOURNAL_MESSAGE - 4 && ((uint8_t)message[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static char *line_of(sd_journal *journal, uint64_t usec)
{
	_cleanup_free_ char *name = NULL, *unit = NULL;
	const char *message = "";
	size_t size = 0, shown;
	uint32_t priority = number(journal, "PRIORITY", NULL, OWN_JOURNAL_PRIORITY);
	struct own_journal_line line = {
		.usec = usec,
		.priority = priority < OWN_JOURNAL_PRIORITIES ? priority : OWN_JOURNAL_PRIORITY,
		.pid = number(journal, "_PID", "SYSLOG_PID", 0),
	};
	int r;

	name = journal_name(journal, "SYSLOG_IDENTIFIER", "_COMM", OWN_JOURNAL_NAME);
	unit = journal_name(journal, "_SYSTEMD_UNIT", NULL, OWN_JOURNAL_NAME);
	if (!name || !unit)
		return NULL;
	line.identifier = name;
	line.unit = unit;
	/* last, as it is only there until the next call */
	r = journal_field(journal, "MESSAGE", &message, &size);
	shown = cut(message, size);
	line.cut = shown < size || (r < 0 && r != -ENOENT);
	return own_journal_put(&line, message, shown);
}

static int add_line(struct reading *reading, uint64_t usec)
{
	char *line = line_of(reading->journal, usec);
	size_t size;

	if (!line)
		return -ENOMEM;
	size = strlen(line);
	reading->full = size > reading->room - reading->size;
	if (reading->full) {
		reading->head.left_out++;
		free(line);
		return 0;
	}
	if (array_grow(&reading->lines, reading->n, sizeof(*reading->lines)) < 0) {
		free(line);
		return -ENOMEM;
	}
	reading->lines[reading->n++] = line;
	reading->size += size;
	return 0;
}

/* Return: 1 there may be more, 0, or negative errno */
static int take_entry(struct reading *reading)
{
	uint64_t usec;
	int r = sd_journal_previous(reading->journal);

	if (r <= 0)
		return r;
	/* of a damaged entry, or from before the clock was set back */
	if (sd_journal_get_realtime_usec(reading->journal, &usec) < 0 ||
	    usec > reading->head.to_usec)
		return 1;
	if (usec < reading->head.from_usec)
		return 0;
	if (!reading->full) {
		r = add_line(reading, usec);
		return r < 0 ? r : 1;
	}
	return ++reading->head.left_out < OWN_JOURNAL_LEFT_OUT_MAX;
}

static int compose(const struct reading *reading, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *head = own_journal_put_head(&reading->head);
	size_t at = head ? strlen(head) : 0;
	char *text = head ? malloc(at + reading->size + 1) : NULL;

	if (!text)
		return -ENOMEM;
	memcpy(text, head, at + 1);
	for (size_t i = reading->n; i-- > 0;)
		at += (size_t)(stpcpy(text + at, reading->lines[i]) - (text + at));
	*ret = text;
	*ret_size = at;
	return 0;
}

int read_journal(sd_journal *journal, uint64_t from_usec, uint64_t to_usec, size_t room, char **ret,
		 size_t *ret_size)
{
	struct reading reading = {
		.journal = journal,
		.head = {.from_usec = from_usec, .to_usec = to_usec},
		.room = room - READ_JOURNAL_ROOM_MIN,
	};
	int r = sd_journal_set_data_threshold(journal, THRESHOLD);

	if (r >= 0)
		r = sd_journal_seek_realtime_usec(journal, to_usec + 1);
	if (r >= 0)
		do
			r = take_entry(&reading);
		while (r > 0);
	if (r >= 0)
		r = compose(&reading, ret, ret_size);
	for (size_t i = 0; i < reading.n; i++)
		free(reading.lines[i]);
	free(reading.lines);
	return r;
}
