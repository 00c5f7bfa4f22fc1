/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "basic/macro.h"
#include "basic/near.h"
#include "basic/strv.h"
#include "ctl/command.h"

#define CHANGES "start stop event-enable event-disable filter"
#define EVENTS	"text json perfetto clickhouse gdb-tfile qemu4v"
#define TIMES	EVENTS " html"
#define COLUMN	17U /* width of "name=ARGUMENT" in the help */

enum kind {
	ON,   /* a bool becomes true */
	OFF,  /* false */
	TEXT, /* const char *, the last one counts */
	LIST, /* char **, all of them */
	RAW,
	CORESIGHT,
	TO_VERSION,
};

/* In the order of the help */
static const struct row {
	char letter; /* 0: none */
	const char *name;
	const char *argument; /* "=WHAT", "[=WHAT]"; NULL: none */
	enum kind kind;
	size_t offset;	     /* in struct ctl */
	const char *help;    /* NULL: the verb's formats */
	const char *verbs;   /* that have it, in the order of the help; NULL: all */
	const char *formats; /* that have it; NULL: all */
} rows[] = {
#define F(member) offsetof(struct ctl, member)
	/* clang-format off */
	{'h', "help", NULL, ON, F(help), "Show this help, behind a verb: that verb's"},
	{0, "version", "[=6|7]", TO_VERSION, 0, "Show the version; convert: that of the file to write"},
	{0, "json", NULL, ON, F(json), "Print one JSON document (tail: one a line)"},
	{0, "no-pager", NULL, ON, F(no_pager), "Do not pipe output into a pager"},
	{0, "runtime-dir", "=DIR", TEXT, F(runtime_dir),
	 "Where the daemon's control socket is (default /run/flyrec)"},
	{'H', "host", "=[USER@]HOST", TEXT, F(host), "Talk to the daemon of another machine"},
	{0, "runtime", NULL, OFF, F(persist), "Until the next reload or start (default)", CHANGES},
	{0, "persist", NULL, ON, F(persist),
	 "Keep it: write sessions.d/NAME.conf.d/50-flyrecctl.conf", CHANGES},
	{0, "format", "=FORMAT", TEXT, F(format), NULL, "export import"},
	{0, "last", "=TIME", TEXT, F(last),
	 "Only the last of it, as in 30s; 0: all there is (default)", "snapshot export view why analyze latency query", "html"},
	{0, "reason", "=WORD", TEXT, F(reason),
	 "Part of the file's name (default control, or together)", "snapshot"},
	{0, "pin", NULL, ON, F(pin), "Keep it from being deleted by retention", "snapshot"},
	{'f', "follow", NULL, ON, F(follow), "Go on with new events, until interrupted", "tail"},
	{'n', "lines", "=N|all", TEXT, F(lines),
	 "Begin with so many (default 10; with --since= all)", "tail"},
	{0, "since", "=TIME", TEXT, F(since), "From then on", "tail snapshot export view why analyze latency query", TIMES},
	{0, "until", "=TIME", TEXT, F(until), "Up to then", "tail snapshot export view why analyze latency query", TIMES},
	{0, "limited", NULL, ON, F(limited),
	 "For another host: within the session's limits for those", "snapshot"},
	{0, "id", "=ID", TEXT, F(id), "--limited: what the other host calls that moment", "snapshot"},
	{0, "together", NULL, ON, F(together),
	 "One file, in which each session is a buffer with its name", "snapshot"},
	{0, "event", "=EVENT,...", LIST, F(events),
	 "Only these: SYSTEM:NAME, SYSTEM, NAME; * and ? are fine", "tail export", EVENTS},
	{0, "cpu", "=LIST", TEXT, F(cpus), "Only these CPUs, as in 0-3,8", "tail export view analyze query", EVENTS},
	{0, "pid", "=PID,...", LIST, F(pids), "Only these tasks", "tail export", EVENTS},
	{0, "unit", "=UNIT,...", LIST, F(units),
	 "Only tasks of these systemd units; * and ? are fine", "tail export view why analyze query", "text json perfetto clickhouse"},
	{0, "container", "=ID,...", LIST, F(containers),
	 "Only tasks of these containers; the beginning of an id is enough", "tail export view why analyze query", "text json perfetto clickhouse"},
	{0, "task", "=NAME|PID", TEXT, F(task), "Only these tasks; * and ? are fine in names", "view analyze query"},
	{0, "top", "=N", TEXT, F(top), "At most so many (default 10; why: 3; query: all); 0: all", "view why analyze query"},
	{0, "min", "=TIME", TEXT, F(min), "Only what took at least that long, as in 5ms", "analyze"},
	{0, "at", "=TIME", TEXT, F(at), "Only waits that were going on at that time", "why"},
	{0, "by", "=task|unit", TEXT, F(by), "preemptors: a row for each pair of these (default task)", "view"},
	{0, "folded", NULL, ON, F(folded), "blocked: a line for each kernel stack, for flame graphs", "view"},
	{0, "graph", NULL, ON, F(graph), "Also events and losses of the last hour, as a graph", "status"},
	{0, "csv", NULL, ON, F(csv), "Print comma-separated values, with a heading", "query"},
	{0, "examples", NULL, ON, F(examples), "Print some useful queries", "query"},
	{0, "timeout", "=TIME", TEXT, F(timeout), "End it after so long, as in 10s (default: never)", "query"},
	{0, "max-memory", "=SIZE", TEXT, F(max_memory), "Memory that SQLite may take (default 48M)", "query"},
	{0, "coresight", "[=DIR]", CORESIGHT, 0,
	 "An Arm snapshot of CoreSight trace too, beside the file; in DIR:\n"
	 "                        made by flyrecctl, not by the daemon", "snapshot"},
	{0, "sysroot", "=DIR", TEXT, F(convert.sysroot),
	 "Where sys, dev and proc are, for CoreSight (default /)", "snapshot export", "arm-snapshot"},
	{0, "memory", "=ADDR=FILE", LIST, F(convert.memory),
	 "Memory that shall be in the Arm snapshot; may be repeated", "snapshot export", "arm-snapshot"},
	{0, "table", "=TABLE", TEXT, F(convert.table),
	 "clickhouse: events (default), waits, tasks, clocks, findings or snapshots", "export", "clickhouse"},
	{0, "host-name", "=NAME", TEXT, F(convert.host_name),
	 "clickhouse: of the host (default: as the file says)", "export", "clickhouse"},
	{0, "session", "=NAME", TEXT, F(convert.session),
	 "clickhouse: of the session that recorded it", "export", "clickhouse"},
	{0, "max-frames", "=N", TEXT, F(convert.max_frames),
	 "gdb-tfile: at most so many events, 0: all (default 20000)", "export", "gdb-tfile"},
	{0, "endian", "=ORDER", TEXT, F(convert.endian),
	 "gdb-tfile: little or big (default: as the file looks)", "import", "gdb-tfile"},
	{0, "clk", "=TIME", TEXT, F(convert.clk),
	 "qemu4v: how long a clk is, as in 10ns (default 1us)", "import", "qemu4v"},
	{0, "strict", NULL, ON, F(convert.strict), "qemu4v: a malformed line is an error", "import", "qemu4v"},
	{0, "raw", "[=yes|no]", RAW, 0,
	 "As it is: texts of events with all their control characters; no:\n"
	 "                        escaped, also in pipes (default: escaped on a terminal, newlines\n"
	 "                        everywhere); cat: a compressed file",
	 "tail export cat", "text"},
	{0, "time", "=epoch|local|utc|trace|trigger", TEXT, F(time),
	 "Times in text: seconds since 1970, time of day, of the trace\n"
	 "                        clock, ms before (-) or after what caused the snapshot",
	 "tail export", "text"},
	{0, "tarmac", NULL, ON, F(convert.tarmac), "qemu4v: as Arm's tools read it", "export", "qemu4v"},
	{'o', "output", "=FILE", TEXT, F(output),
	 "Write to FILE, replaced once complete; -: standard output", "snapshot cat export import convert merge"},
	{0, "tsc-offset", "=HOST:N", LIST, F(tsc_offsets),
	 "The TSC of that KVM guest is so much ahead of its host's", "merge"},
	{0, "compress", "=no|zstd", TEXT, F(compress), "Compress the data of the file to write", "convert"},
	{0, "max-use", "=SIZE", TEXT, F(max_use), "Until each session's files take no more than this", "vacuum"},
	{0, "older-than", "=TIME", TEXT, F(older_than), "Those whose last event is longer ago", "vacuum"},
/* clang-format on */
#undef F
};

enum ctl_status ctl_complain(const struct ctl *ctl, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, format);
	text = vstrf(format, ap);
	va_end(ap);
	/* In one piece: others may write to the same log */
	(void)fprintf(stderr, "flyrecctl: %s: %s\n", ctl->verb, text ? text : format);
	return CTL_USAGE;
}

#define FIRST_LONG 256 /* getopt's value of rows[0] */

/* @words: NULL has all */
static bool has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *w = words; w && *w; w += strspn(w, " ")) {
		size_t size = strcspn(w, " ");

		if (size == n && memcmp(w, word, n) == 0)
			return true;
		w += size;
	}
	return !words;
}

/* getopt's own lines know neither the verb nor what might have been meant */
static void explain(const char *verb, const char *word, int c)
{
	const char *near = NULL, *end = word + strcspn(word, "=");
	_cleanup_free_ char *name = strndup(word, (size_t)(end - word));
	size_t best = SIZE_MAX, n = name ? strlen(name) : 0;
	unsigned begins = 0;
	bool known = false;

	(void)fprintf(stderr, "flyrecctl: %s%s", verb ? verb : "", verb ? ": " : "");
	for (size_t i = 0; n > 2 && i < ARRAY_SIZE(rows); i++) {
		const struct row *o = &rows[i];

		begins += strncmp(o->name, name + 2, n - 2) == 0;
		known |= strcmp(o->name, name + 2) == 0;
		if (near_better(name + 2, o->name, &best))
			near = o->name;
	}
	if (c == ':')
		(void)fprintf(stderr, "option %s needs an argument", name ? name : word);
	else if (known)
		(void)fprintf(stderr, "option %s takes no argument", name ? name : word);
	else if (strncmp(word, "--", 2) != 0)
		(void)fprintf(stderr, "unknown option -%c", optopt);
	else if (begins > 1)
		(void)fprintf(stderr, "option %s is ambiguous", name ? name : word);
	else
		(void)fprintf(stderr, "unknown option %s", name ? name : word);
	if (c != ':' && !known && begins <= 1 && near)
		(void)fprintf(stderr, ", did you mean --%s?", near);
	(void)fprintf(stderr, "\n");
}

static int take_option(const struct row *row, const char *value, struct ctl *ctl)
{
	void *at = (char *)ctl + row->offset;

	ctl->given |= UINT64_C(1) << (row - rows);
	switch (row->kind) {
	case ON:
	case OFF:
		*(bool *)at = row->kind == ON;
		return 0;
	case TEXT:
		*(const char **)at = value;
		return 0;
	case LIST:
		if (strv_append((char ***)at, value) >= 0)
			return 0;
		(void)fprintf(stderr, "flyrecctl: out of memory\n");
		return -ENOMEM;
	case CORESIGHT:
		ctl->coresight = true;
		ctl->coresight_dir = value;
		return 0;
	case TO_VERSION:
		ctl->version = !value;
		ctl->to_version = value;
		return 0;
	case RAW:
		if (!value || strcmp(value, "yes") == 0)
			ctl->raw = CTL_RAW_YES;
		else if (strcmp(value, "no") == 0)
			ctl->raw = CTL_RAW_NO;
		else
			break;
		return 0;
	}
	(void)fprintf(stderr, "flyrecctl: --raw=: yes or no is wanted: \"%s\"\n", value);
	return -EINVAL;
}

/* The rows as getopt_long() wants them. @letters: with room for a colon behind each */
static void list_options(struct option *options, char *letters)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];

		options[i] = (struct option){
			.name = row->name,
			.has_arg = !row->argument	   ? no_argument
				   : *row->argument == '=' ? required_argument
							   : optional_argument,
			.val = FIRST_LONG + (int)i,
		};
		if (row->letter)
			*letters++ = row->letter;
		if (row->letter && row->argument)
			*letters++ = ':';
	}
	*letters = '\0';
}

int command_parse(int argc, char **argv, bool to_verb, struct ctl *ctl)
{
	struct option options[ARRAY_SIZE(rows) + 1] = {};
	char letters[2 * ARRAY_SIZE(rows) + 3] = "+:";
	int c, r = 0;

	list_options(options, letters + 2);
	opterr = 0;
	while (r >= 0 && (c = getopt_long(argc, argv, letters + !to_verb, options, NULL)) >= 0) {
		size_t i = c >= FIRST_LONG ? (size_t)(c - FIRST_LONG) : 0;

		if (c == '?' || c == ':') {
			explain(to_verb ? NULL : argv[0], argv[optind - 1], c);
			return -EINVAL;
		}
		while (c < FIRST_LONG && rows[i].letter != c)
			i++;
		r = take_option(&rows[i], optarg, ctl);
	}
	return r;
}

void command_done(struct ctl *ctl)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].kind == LIST)
			strv_free(*(char ***)(void *)((char *)ctl + rows[i].offset));
}

static bool is_given(const struct ctl *ctl, const struct row *row)
{
	return ctl->given & UINT64_C(1) << (row - rows);
}

bool command_fit(const struct ctl *ctl, const char *verb)
{
	unsigned n = 1;

	/* every verb has --version */
	if (ctl->to_version && strcmp(verb, "convert") != 0) {
		(void)fprintf(stderr,
			      "flyrecctl: %s: --version= is not an option of this verb "
			      "(convert has it)\n",
			      verb);
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];

		if (!is_given(ctl, row) || has_word(row->verbs, verb))
			continue;
		/* "--pin is not an option of this verb (snapshot has it)" */
		(void)fprintf(stderr, "flyrecctl: %s: --%s is not an option of this verb (", verb,
			      row->name);
		for (const char *p = row->verbs; *p; p++) {
			(void)fputs(*p == ' ' ? ", " : (const char[]){*p, '\0'}, stderr);
			n += *p == ' ';
		}
		(void)fprintf(stderr, " %s it)\n", n > 1 ? "have" : "has");
		return false;
	}
	return true;
}

static void print_names(FILE *f, const char *const *names)
{
	for (const char *const *name = names; *name; name++)
		(void)fprintf(f, "%s%s", name == names ? "" : ", ", *name);
}

int command_format(const struct ctl *ctl, const char *verb, const char *const *names)
{
	int format = 0;

	while (ctl->format && names[format] && strcmp(names[format], ctl->format) != 0)
		format++;
	if (!ctl->format || !names[format]) {
		if (ctl->format)
			(void)fprintf(stderr, "flyrecctl: %s: unknown format \"%s\": known are ",
				      verb, ctl->format);
		else
			(void)fprintf(stderr, "flyrecctl: %s: --format= is missing: ", verb);
		print_names(stderr, names);
		(void)fputc('\n', stderr);
		return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (is_given(ctl, &rows[i]) && !has_word(rows[i].formats, names[format])) {
			(void)fprintf(stderr, "flyrecctl: %s: --format=%s takes no such option\n",
				      verb, names[format]);
			return -EINVAL;
		}
	return format;
}

static int add_word(char ***words, const struct row *row, const char *value)
{
	_cleanup_free_ char *word =
		strf("--%s%s%s", row->name, value ? "=" : "", value ? value : "");

	return word ? strv_append(words, word) : -ENOMEM;
}

int command_words(const struct ctl *ctl, char ***words)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows) && r >= 0; i++) {
		const struct row *row = &rows[i];
		const void *at = (const char *)ctl + row->offset;

		/* of those that all verbs have the other side needs only this one */
		if (!is_given(ctl, row) || at == &ctl->output || (!row->verbs && at != &ctl->json))
			continue;
		/* overruled by one behind it */
		if ((row->kind == ON || row->kind == OFF) && *(const bool *)at != (row->kind == ON))
			continue;
		if (row->kind == LIST)
			STRV_FOREACH (value, *(char **const *)at)
				r = r < 0 ? r : add_word(words, row, *value);
		else if (row->kind == RAW)
			r = add_word(words, row, ctl->raw == CTL_RAW_YES ? "yes" : "no");
		else
			r = add_word(words, row, row->kind == TEXT ? *(char *const *)at : NULL);
	}
	return r;
}

static bool understood(const struct ctl *ctl, int r, const char *option, const char *value)
{
	if (r < 0)
		(void)ctl_complain(ctl, "%s: %s: \"%s\"", option,
				   r == -ENOMEM ? "out of memory" : "not understood", value);
	return r >= 0;
}

bool command_filter(const struct ctl *ctl, struct event_filter *filter)
{
	STRV_FOREACH (e, ctl->events)
		if (!understood(ctl, event_filter_event(filter, *e), "--event=", *e))
			return false;
	STRV_FOREACH (p, ctl->pids)
		if (!understood(ctl, event_filter_pids(filter, *p), "--pid=", *p))
			return false;
	STRV_FOREACH (u, ctl->units)
		if (!understood(ctl, event_filter_unit(filter, *u), "--unit=", *u))
			return false;
	STRV_FOREACH (c, ctl->containers)
		if (!understood(ctl, event_filter_container(filter, *c), "--container=", *c))
			return false;
	return (!ctl->cpus ||
		understood(ctl, event_filter_cpus(filter, ctl->cpus), "--cpu=", ctl->cpus)) &&
	       (!ctl->since || understood(ctl, event_filter_time(&filter->since, ctl->since),
					  "--since=", ctl->since)) &&
	       (!ctl->until || understood(ctl, event_filter_time(&filter->until, ctl->until),
					  "--until=", ctl->until));
}

static void print_row(const struct row *row, const char *const *formats)
{
	const char letter[] = {'-', row->letter, '\0'};
	int n = printf("  %2s --%s%s", row->letter ? letter : "", row->name,
		       row->argument ? row->argument : "") -
		(int)strlen("  -x --");

	if (n < (int)COLUMN)
		printf("%*s", (int)COLUMN - n, "");
	else
		printf("\n%*s", (int)(COLUMN + strlen("  -x --")), "");
	if (!row->help)
		print_names(stdout, formats);
	printf("%s\n", row->help ? row->help : " (required)");
}

void command_help(const char *verb, const char *const *formats)
{
	printf("Options (before or after the verb):\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!rows[i].verbs || (verb && has_word(rows[i].verbs, verb)))
			print_row(&rows[i], formats);
}
