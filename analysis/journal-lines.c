/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "analysis/journal-lines.h"
#include "formats/own-section.h"

void journal_lines_done(struct journal_lines *lines)
{
	for (size_t i = 0; i < lines->n_files; i++)
		free(lines->texts[i]);
	free(lines->texts);
	free(lines->list);
	*lines = (struct journal_lines){};
}

static int take_lines(struct journal_lines *lines, char *text, size_t size, size_t at)
{
	struct own_journal_line line;
	int r;

	while ((r = own_journal_take(text, size, &at, &line)) > 0) {
		r = array_grow(&lines->list, lines->n, sizeof(*lines->list));
		if (r < 0)
			return r;
		lines->list[lines->n++] = line;
	}
	return r;
}

int journal_lines_add(struct journal_lines *lines, const struct trace_dat *dat, struct fault *why)
{
	const size_t before = lines->n;
	struct own_journal_head head;
	uint8_t *bytes;
	size_t size, at = 0;
	int r = own_section_read(dat, OWN_JOURNAL, &bytes, &size, why);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = own_journal_take_head((char *)bytes, size, &at, &head);
	r = r == 0 ? -EBADMSG : r;
	if (r > 0)
		r = array_grow(&lines->texts, lines->n_files, sizeof(*lines->texts));
	if (r >= 0)
		r = take_lines(lines, (char *)bytes, size, at);
	if (r < 0) {
		lines->n = before;
		free(bytes);
		return r == -ENOMEM
			       ? fault_errno(why, r, "%s: cannot read its journal", dat->path)
			       : fault_set(why, r, "%s: its lines of the journal make no sense",
					   dat->path);
	}
	lines->texts[lines->n_files++] = (char *)bytes;
	lines->left_out += head.left_out;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct own_journal_line *x = a, *y = b;

	if (x->usec != y->usec)
		return x->usec < y->usec ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return strcmp(x->message, y->message);
}

void journal_lines_sort(struct journal_lines *lines)
{
	size_t n = 0;

	if (lines->n == 0)
		return;
	/* Also of one file: the wall clock may have been set back */
	qsort(lines->list, lines->n, sizeof(*lines->list), by_time);
	for (size_t i = 0; i < lines->n; i++)
		if (n == 0 || by_time(&lines->list[n - 1], &lines->list[i]) != 0)
			lines->list[n++] = lines->list[i];
	lines->n = n;
}

size_t journal_lines_near(const struct journal_lines *lines, const struct sources_facts *facts,
			  uint64_t from, uint64_t to, const struct own_journal_line **ret)
{
	const uint64_t from_usec = (from - MIN(from, JOURNAL_SLACK)) / NSEC_PER_USEC;
	const uint64_t to_usec = (to + MIN(UINT64_MAX - to, JOURNAL_SLACK)) / NSEC_PER_USEC;
	size_t begin = 0, end;

	while (begin < lines->n && lines->list[begin].usec < from_usec)
		begin++;
	end = begin;
	while (end < lines->n && lines->list[end].usec <= to_usec)
		end++;
	*ret = lines->list ? lines->list + begin : NULL;
	return facts->has_date ? end - begin : 0;
}

void journal_lines_keep(struct journal_lines *lines, const struct sources_facts *facts,
			uint64_t from, uint64_t to)
{
	const struct own_journal_line *first;
	size_t n = journal_lines_near(lines, facts, from, to, &first);

	if (!facts->has_date)
		return;
	if (n > 0)
		memmove(lines->list, first, n * sizeof(*first));
	lines->n = n;
}

size_t journal_lines_pick(const struct own_journal_line *list, size_t n, uint32_t worst, size_t max,
			  const struct own_journal_line **ret)
{
	size_t count[OWN_JOURNAL_PRIORITIES] = {}, picked = 0;
	uint32_t last = 0;

	for (size_t i = 0; i < n; i++)
		count[list[i].priority]++;
	/* All that are more severe than @last fit, and of it so many */
	while (last < worst && count[last] <= max)
		max -= count[last++];
	for (size_t i = 0; i < n; i++) {
		if (list[i].priority > last || (list[i].priority == last && max == 0))
			continue;
		max -= list[i].priority == last;
		ret[picked++] = &list[i];
	}
	return picked;
}
