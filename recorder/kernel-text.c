/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <tracefs.h>

#include "basic/parse.h"
#include "basic/strv.h"
#include "recorder/kernel-text.h"

#define SUBBUF_MIN 256U /* sane bounds; the kernel's are one to 2^order pages */
#define SUBBUF_MAX (64U * 1024 * 1024)

int kernel_text_header_page(const char *text, unsigned *ret_subbuf_size)
{
	const char *field = strstr(text, " data;");
	unsigned offset, size;

	if (!field || sscanf(field, " data; offset:%u; size:%u;", &offset, &size) != 2)
		return -EBADMSG;
	if (offset > SUBBUF_MAX || size > SUBBUF_MAX || offset + size < SUBBUF_MIN)
		return -EBADMSG;
	*ret_subbuf_size = offset + size;
	return 0;
}

/* "797.705486" in microseconds; a plain number is a clock that counts no time */
static uint64_t parse_time_usec(const char *text)
{
	uint64_t sec, usec;

	if (sscanf(text, "%" SCNu64 ".%6" SCNu64, &sec, &usec) != 2)
		return 0;
	return sec * USEC_PER_SEC + usec;
}

int kernel_text_stats(const char *text, struct cpu_stats *ret)
{
	struct cpu_stats stats = {0};
	const struct {
		const char *name;
		uint64_t *value;
		bool time;
	} fields[] = {
		{"entries: ", &stats.entries},
		{"overrun: ", &stats.overrun},
		{"commit overrun: ", &stats.commit_overrun},
		{"bytes: ", &stats.bytes},
		{"oldest event ts: ", &stats.oldest_usec, true},
		{"now ts: ", &stats.now_usec, true},
		{"dropped events: ", &stats.dropped_events},
		{"read events: ", &stats.read_events},
	};
	bool found = false;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
			size_t n = strlen(fields[i].name);

			if (strncmp(line, fields[i].name, n) != 0)
				continue;
			*fields[i].value = fields[i].time ? parse_time_usec(line + n)
							  : strtoull(line + n, NULL, 10);
			found = found || i == 0;
			break;
		}
	}
	if (!found)
		return -EBADMSG;
	*ret = stats;
	return 0;
}

char *kernel_text_of_stats(unsigned cpu, const struct cpu_stats *s)
{
	return strf("CPU: %u\nentries: %" PRIu64 "\noverrun: %" PRIu64 "\ncommit overrun: %" PRIu64
		    "\nbytes: %" PRIu64 "\noldest event ts: %" PRIu64 ".%06" PRIu64
		    "\nnow ts: %" PRIu64 ".%06" PRIu64 "\ndropped events: %" PRIu64
		    "\nread events: %" PRIu64 "\n",
		    cpu, s->entries, s->overrun, s->commit_overrun, s->bytes,
		    s->oldest_usec / USEC_PER_SEC, s->oldest_usec % USEC_PER_SEC,
		    s->now_usec / USEC_PER_SEC, s->now_usec % USEC_PER_SEC, s->dropped_events,
		    s->read_events);
}

int kernel_text_possible_cpus(const char *text, unsigned *ret_n)
{
	_cleanup_free_ char *line = strndup(text, strcspn(text, "\n"));
	struct cpu_list list;
	int r = line ? parse_cpu_list(line, &list) : -ENOMEM;

	for (unsigned cpu = 0; r >= 0 && cpu < CPU_LIST_MAX; cpu++)
		if (cpu_list_has(&list, cpu))
			*ret_n = cpu + 1;
	return r;
}

int kernel_text_cpu_list(const char *text, unsigned n_cpus, char **ret_mask)
{
	struct cpu_list list = {};
	int r = n_cpus > 0 && n_cpus <= CPU_LIST_MAX ? 0 : -EINVAL;
	char *p;

	if (r >= 0 && text)
		r = parse_cpu_list(text, &list);
	for (unsigned cpu = 0; r >= 0 && cpu < CPU_LIST_MAX; cpu++)
		if (!text && cpu < n_cpus)
			cpu_list_add(&list, cpu);
		else if (cpu >= n_cpus && cpu_list_has(&list, cpu))
			r = -ERANGE;
	if (r < 0)
		return r;
	*ret_mask = p = malloc((size_t)n_cpus / 32 * 9 + 10);
	if (!p)
		return -ENOMEM;
	for (unsigned i = (n_cpus + 31) / 32; i-- > 0;)
		p += sprintf(p, "%08" PRIx32 "%s", (uint32_t)(list.bits[i / 2] >> (i % 2 * 32)),
			     i ? "," : "");
	return 0;
}

bool kernel_text_cpumask_equal(const char *a, const char *b)
{
	a += strspn(a, "0,");
	b += strspn(b, "0,");
	for (;;) {
		a += strspn(a, ",");
		b += strspn(b, ",");
		if (!isxdigit((unsigned char)*a) || !isxdigit((unsigned char)*b))
			return !isxdigit((unsigned char)*a) && !isxdigit((unsigned char)*b);
		if (tolower((unsigned char)*a++) != tolower((unsigned char)*b++))
			return false;
	}
}

bool kernel_text_has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (;;) {
		size_t length;

		text += strspn(text, " \t\n");
		length = strcspn(text, " \t\n");
		if (length == 0)
			return false;
		if (length == n && memcmp(text, word, n) == 0)
			return true;
		text += length;
	}
}

int kernel_text_selected(const char *text, char **ret)
{
	const char *begin = strchr(text, '[');
	const char *end = begin ? strchr(begin, ']') : NULL;
	char *word;

	if (!end)
		return -EBADMSG;
	word = strndup(begin + 1, (size_t)(end - begin - 1));
	if (!word)
		return -ENOMEM;
	*ret = word;
	return 0;
}

/* @what: behind "error: " of an entry */
static int format_entry(const char *what, char **ret)
{
	static const char label[] = "  Command: ";
	size_t what_size = strcspn(what, "\n"), cmd_size, column;
	const char *cmd = what + what_size;

	cmd += *cmd == '\n';
	if (strncmp(cmd, label, strlen(label)) != 0)
		return (*ret = strf("%.*s", (int)what_size, what)) ? 0 : -ENOMEM;
	cmd += strlen(label);
	cmd_size = strcspn(cmd, "\n");
	column = strspn(cmd + cmd_size, "\n ");
	if (column <= strlen(label) || cmd[cmd_size + column] != '^')
		*ret = strf("%.*s in \"%.*s\"", (int)what_size, what, (int)cmd_size, cmd);
	else
		*ret = strf("%.*s in \"%.*s\" at character %zu", (int)what_size, what,
			    (int)cmd_size, cmd, column - strlen(label));
	return *ret ? 0 : -ENOMEM;
}

/*
 * An entry:
 *   [  797.677444] event filter parse error: error: Field not found
 *     Command: xx == 3
 *              ^
 */
int kernel_text_error_log_last(const char *text, char **ret)
{
	const char *entry = NULL, *what;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (*line == '[')
			entry = line;
	}
	what = entry ? strstr(entry, "error: ") : NULL;
	if (!what) {
		*ret = NULL;
		return 0;
	}
	/* "PLACE: error: TEXT", where the place itself may end in "error" */
	for (const char *next = what; next && next < entry + strcspn(entry, "\n");
	     next = strstr(next, "error: ")) {
		next += strlen("error: ");
		what = next;
	}
	return format_entry(what, ret);
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

int kernel_text_list_add(char ***list, const char *text, size_t n)
{
	_cleanup_free_ char *word = NULL;
	char **grown;

	for (int i = 0; *list && (*list)[i]; i++)
		if (strlen((*list)[i]) == n && memcmp((*list)[i], text, n) == 0)
			return 0;
	word = strndup(text, n);
	if (!word)
		return -ENOMEM;
	grown = tracefs_list_add(*list, word);
	if (!grown)
		return -ENOMEM;
	*list = grown;
	return 0;
}

int kernel_text_set_event(const char *text, char ***list)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		size_t n;
		int r;

		line += *line == '\n';
		for (n = 0; is_name(line[n]); n++)
			;
		if (n == 0 || line[n] != ':' || (n == 6 && memcmp(line, "ftrace", n) == 0))
			continue;
		if (strncmp(line + n, ":mod:", 5) == 0)
			continue;
		r = kernel_text_list_add(list, line, n);
		if (r < 0)
			return r;
	}
	return 0;
}

/* SYSTEM at the start of @text when @separator and a name follow it; else nothing is added */
static int add_system(const char *text, char separator, char ***list)
{
	size_t n = 0;

	while (is_name(text[n]))
		n++;
	if (n == 0 || text[n] != separator || !is_name(text[n + 1]))
		return 0;
	return kernel_text_list_add(list, text, n);
}

int kernel_text_trigger_systems(const char *trigger, char ***list)
{
	static const struct {
		const char *before;
		char separator;
	} places[] = {
		{"enable_event:", ':'}, {"disable_event:", ':'}, {"enable_hist:", ':'},
		{"disable_hist:", ':'}, {"onmatch(", '.'},
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		size_t n = strlen(places[i].before);

		for (const char *p = strstr(trigger, places[i].before); p;
		     p = strstr(p + n, places[i].before)) {
			int r = add_system(p + n, places[i].separator, list);

			if (r < 0)
				return r;
		}
	}
	return 0;
}
