/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "basic/near.h"
#include "basic/strv.h"
#include "ctl/command.h"

enum {
	OPTION_VERSION = 256,
	OPTION_JSON,
	OPTION_NO_PAGER,
	OPTION_RUNTIME_DIR,
	OPTION_RUNTIME,
	OPTION_PERSIST,
	OPTION_MAX_USE,
	OPTION_OLDER_THAN,
	OPTION_LAST,
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_REASON,
	OPTION_PIN,
	OPTION_FORMAT,
	OPTION_EVENT,
	OPTION_CPU,
	OPTION_PID,
	OPTION_TOGETHER,
	OPTION_SYSROOT,
	OPTION_MEMORY,
	OPTION_CORESIGHT,
	OPTION_MAX_FRAMES,
	OPTION_ENDIAN,
	OPTION_CLK,
	OPTION_STRICT,
	OPTION_TARMAC,
	OPTION_TIME,
	OPTION_RAW,
};

static const struct option long_options[] = {
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"json", no_argument, NULL, OPTION_JSON},
	{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
	{"runtime-dir", required_argument, NULL, OPTION_RUNTIME_DIR},
	{"host", required_argument, NULL, 'H'},
	{"runtime", no_argument, NULL, OPTION_RUNTIME},
	{"persist", no_argument, NULL, OPTION_PERSIST},
	{"output", required_argument, NULL, 'o'},
	{"max-use", required_argument, NULL, OPTION_MAX_USE},
	{"older-than", required_argument, NULL, OPTION_OLDER_THAN},
	{"last", required_argument, NULL, OPTION_LAST},
	{"since", required_argument, NULL, OPTION_SINCE},
	{"until", required_argument, NULL, OPTION_UNTIL},
	{"reason", required_argument, NULL, OPTION_REASON},
	{"pin", no_argument, NULL, OPTION_PIN},
	{"together", no_argument, NULL, OPTION_TOGETHER},
	{"format", required_argument, NULL, OPTION_FORMAT},
	{"event", required_argument, NULL, OPTION_EVENT},
	{"cpu", required_argument, NULL, OPTION_CPU},
	{"pid", required_argument, NULL, OPTION_PID},
	{"sysroot", required_argument, NULL, OPTION_SYSROOT},
	{"memory", required_argument, NULL, OPTION_MEMORY},
	{"coresight", optional_argument, NULL, OPTION_CORESIGHT},
	{"max-frames", required_argument, NULL, OPTION_MAX_FRAMES},
	{"endian", required_argument, NULL, OPTION_ENDIAN},
	{"clk", required_argument, NULL, OPTION_CLK},
	{"strict", no_argument, NULL, OPTION_STRICT},
	{"tarmac", no_argument, NULL, OPTION_TARMAC},
	{"raw", optional_argument, NULL, OPTION_RAW},
	{"time", required_argument, NULL, OPTION_TIME},
	{"follow", no_argument, NULL, 'f'},
	{"lines", required_argument, NULL, 'n'},
	{},
};

static void take_range_option(int c, struct command *command)
{
	struct ctl *ctl = &command->ctl;

	command->used |= c == OPTION_SINCE || c == OPTION_UNTIL ? TAKES_SINCE : TAKES_RANGE;
	ctl->format_options |= c == OPTION_SINCE || c == OPTION_UNTIL ? CTL_FILTER : 0;
	if (c == OPTION_LAST)
		ctl->last = optarg;
	else if (c == OPTION_SINCE)
		ctl->since = optarg;
	else if (c == OPTION_UNTIL)
		ctl->until = optarg;
	else if (c == OPTION_REASON)
		ctl->reason = optarg;
	else
		ctl->pin = true;
}

static int take_filter_option(int c, struct command *command)
{
	struct ctl *ctl = &command->ctl;
	int r = 0;

	command->used |= c == OPTION_FORMAT ? TAKES_FORMAT : TAKES_FILTER;
	ctl->format_options |= c == OPTION_FORMAT ? 0 : CTL_FILTER;
	if (c == OPTION_FORMAT)
		ctl->format = optarg;
	else if (c == OPTION_CPU)
		ctl->cpus = optarg;
	else
		r = strv_append(c == OPTION_EVENT ? &ctl->events : &ctl->pids, optarg);
	if (r < 0)
		(void)fprintf(stderr, "flyrecctl: out of memory\n");
	return r;
}

static int take_coresight_option(int c, struct command *command)
{
	struct ctl *ctl = &command->ctl;

	command->used |= c == OPTION_CORESIGHT ? TAKES_CORESIGHT : TAKES_SYSROOT;
	ctl->format_options |= c == OPTION_CORESIGHT ? 0 : CTL_SYSROOT;
	if (c == OPTION_CORESIGHT) {
		ctl->coresight = true;
		ctl->coresight_dir = optarg;
	} else if (c == OPTION_SYSROOT) {
		ctl->convert.sysroot = optarg;
	} else if (strv_append(&ctl->convert.memory, optarg) < 0) {
		(void)fprintf(stderr, "flyrecctl: out of memory\n");
		return -ENOMEM;
	}
	return 0;
}

static void take_format_option(int c, struct command *command)
{
	struct ctl *ctl = &command->ctl;

	command->used |= c == OPTION_TARMAC ? TAKES_TARMAC : TAKES_TEXT_IN;
	if (c == OPTION_CLK) {
		ctl->convert.clk = optarg;
		ctl->format_options |= CTL_CLK;
	} else if (c == OPTION_STRICT) {
		ctl->convert.strict = true;
		ctl->format_options |= CTL_STRICT;
	} else {
		ctl->convert.tarmac = true;
		ctl->format_options |= CTL_TARMAC;
	}
}

static int take_raw(struct command *command)
{
	if (!optarg || strcmp(optarg, "yes") == 0) {
		command->ctl.raw = CTL_RAW_YES;
	} else if (strcmp(optarg, "no") == 0) {
		command->ctl.raw = CTL_RAW_NO;
	} else {
		(void)fprintf(stderr, "flyrecctl: --raw=: yes or no is wanted: \"%s\"\n", optarg);
		return -EINVAL;
	}
	command->ctl.format_options |= CTL_RAW;
	command->used |= TAKES_RAW;
	return 0;
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
	for (const struct option *o = long_options; n > 2 && o->name; o++) {
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

/* For a message: an option's name, the first time that it, or one like it, is given */
static void note_name(struct command *command, unsigned before, int c)
{
	unsigned bit = command->used & ~before;

	for (const struct option *o = long_options; bit && o->name; o++)
		if (o->val == c)
			command->names[__builtin_ctz(bit)] = o->name;
}

static int take_option(int c, struct command *command)
{
	switch (c) {
	case 'h':
		command->help = true;
		break;
	case OPTION_VERSION:
		command->version = true;
		break;
	case OPTION_JSON:
		command->ctl.json = true;
		break;
	case OPTION_NO_PAGER:
		command->ctl.no_pager = true;
		break;
	case OPTION_RUNTIME_DIR:
		command->ctl.runtime_dir = optarg;
		break;
	case 'H':
		command->ctl.host = optarg;
		break;
	case OPTION_RUNTIME:
	case OPTION_PERSIST:
		command->ctl.persist = c == OPTION_PERSIST;
		command->used |= TAKES_PERSIST;
		break;
	case OPTION_LAST:
	case OPTION_SINCE:
	case OPTION_UNTIL:
	case OPTION_REASON:
	case OPTION_PIN:
		take_range_option(c, command);
		break;
	case OPTION_TOGETHER:
		command->ctl.together = true;
		command->used |= TAKES_TOGETHER;
		break;
	case OPTION_FORMAT:
	case OPTION_EVENT:
	case OPTION_CPU:
	case OPTION_PID:
		if (take_filter_option(c, command) < 0)
			return -ENOMEM;
		break;
	case OPTION_MAX_FRAMES:
		command->ctl.convert.max_frames = optarg;
		command->ctl.format_options |= CTL_MAX_FRAMES;
		command->used |= TAKES_MAX_FRAMES;
		break;
	case OPTION_ENDIAN:
		command->ctl.convert.endian = optarg;
		command->ctl.format_options |= CTL_ENDIAN;
		command->used |= TAKES_ENDIAN;
		break;
	case OPTION_SYSROOT:
	case OPTION_MEMORY:
	case OPTION_CORESIGHT:
		if (take_coresight_option(c, command) < 0)
			return -ENOMEM;
		break;
	case OPTION_CLK:
	case OPTION_STRICT:
	case OPTION_TARMAC:
		take_format_option(c, command);
		break;
	case 'f':
	case 'n':
		if (c == 'f')
			command->ctl.follow = true;
		else
			command->ctl.lines = optarg;
		command->used |= TAKES_FOLLOW;
		break;
	case 'o':
		command->ctl.output = optarg;
		command->used |= TAKES_OUTPUT;
		break;
	case OPTION_RAW:
		if (take_raw(command) < 0)
			return -EINVAL;
		break;
	case OPTION_MAX_USE:
		command->ctl.max_use = optarg;
		command->used |= TAKES_VACUUM;
		break;
	case OPTION_OLDER_THAN:
		command->ctl.older_than = optarg;
		command->used |= TAKES_VACUUM;
		break;
	case OPTION_TIME:
		command->ctl.time = optarg;
		command->ctl.format_options |= CTL_TIME;
		command->used |= TAKES_TIME;
		break;
	default:
		return -EINVAL;
	}
	return 0;
}

int command_parse(int argc, char **argv, bool to_verb, struct command *command)
{
	const char *verb = to_verb ? NULL : argv[0];
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, to_verb ? "+:hH:o:fn:" : ":hH:o:fn:", long_options,
				NULL)) >= 0) {
		unsigned before = command->used;
		int r;

		if (c == '?' || c == ':') {
			explain(verb, argv[optind - 1], c);
			return -EINVAL;
		}
		r = take_option(c, command);
		if (r < 0)
			return r;
		note_name(command, before, c);
	}
	return 0;
}
