/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl: options first, then a verb from the table. Options may also stand behind the verb, as
 * in systemctl. Main thread only.
 */
#include <getopt.h>
#include <string.h>

#include "basic/log.h"
#include "basic/macro.h"
#include "ctl/ctl.h"
#include "ctl/verify.h"

struct verb {
	const char *name;
	enum ctl_status (*run)(const struct ctl *ctl, int argc, char **argv); /* NULL: not built */
	const char *arguments;
	const char *summary;
	const char *help;
};

/* The verbs that scripts may count on; those without a function answer that they are not built */
static const struct verb verbs[] = {
	{"verify", verb_verify, "FILE|DIR...", "Check trace.dat files, offline",
	 "Checks structure, alignment, every sub-buffer and every event, time order, lost\n"
	 "events, and flyrec's own accounting, of trace.dat files (version 6) that flyrec or\n"
	 "trace-cmd wrote. Of a DIR: every *.dat below it, sorted.\n\n"
	 "Exit status: 0 all are right, 1 any fault; each is a line \"FILE: offset 0x...: what\".\n"},
	{"status"},
	{"list"},
	{"stats"},
	{"metrics"},
	{"snapshot"},
	{"pin"},
	{"unpin"},
	{"rotate"},
	{"start"},
	{"stop"},
	{"pause"},
	{"resume"},
	{"event-enable"},
	{"event-disable"},
	{"filter"},
	{"tail"},
	{"cat"},
	{"vacuum"},
	{"reload"},
	{"export"},
	{"import"},
};

static const char global_options[] =
	"Options:\n"
	"  -h --help             Show this help, behind a verb: that verb's\n"
	"     --version          Show the version\n"
	"     --json             Print one JSON document\n"
	"     --no-pager         Do not pipe output into a pager\n"
	"     --runtime-dir=DIR  Where the daemon's control socket is (default /run/flyrec)\n"
	"  -H --host=[USER@]HOST Talk to the daemon of another machine\n";

enum {
	OPTION_VERSION = 256,
	OPTION_JSON,
	OPTION_NO_PAGER,
	OPTION_RUNTIME_DIR,
};

static const struct option long_options[] = {
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"json", no_argument, NULL, OPTION_JSON},
	{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
	{"runtime-dir", required_argument, NULL, OPTION_RUNTIME_DIR},
	{"host", required_argument, NULL, 'H'},
	{},
};

struct command {
	struct ctl ctl;
	bool help, version;
};

static void print_help(void)
{
	printf("flyrecctl [OPTIONS...] VERB ...\n\nControl the flyrec flight recorder and check its files.\n\n"
	       "Verbs:\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (verbs[i].run)
			printf("  %s %-*s%s\n", verbs[i].name, (int)(20 - strlen(verbs[i].name)),
			       verbs[i].arguments, verbs[i].summary);
	printf("\n%s\nSee flyrecctl(1).\n", global_options);
}

static void print_verb_help(const struct verb *verb)
{
	printf("flyrecctl [OPTIONS...] %s %s\n\n%s.\n\n%s\n%s", verb->name, verb->arguments,
	       verb->summary, verb->help, global_options);
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

/* "+": stop at the first word that is no option, else let options stand anywhere */
static int parse_options(int argc, char **argv, const char *how, struct command *command)
{
	int c;

	while ((c = getopt_long(argc, argv, how, long_options, NULL)) >= 0) {
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
		default:
			return -EINVAL; /* getopt has said why */
		}
	}
	return 0;
}

static enum ctl_status run_verb(struct command *command, int argc, char **argv)
{
	const struct verb *verb = find_verb(argv[0]);

	if (!verb) {
		(void)fprintf(stderr, "flyrecctl: unknown verb \"%s\", see flyrecctl --help\n",
			      argv[0]);
		return CTL_USAGE;
	}
	if (!verb->run) {
		(void)fprintf(stderr, "flyrecctl: %s: not supported by this build\n", verb->name);
		return CTL_FAILED;
	}
	optind = 0; /* start over; argv[0], the verb, takes the program's place */
	if (parse_options(argc, argv, "hH:", command) < 0)
		return CTL_USAGE;
	if (command->help) {
		print_verb_help(verb);
		return CTL_DONE;
	}
	if (command->version) {
		printf("flyrecctl %s\n", PACKAGE_VERSION);
		return CTL_DONE;
	}
	argv[optind - 1] = argv[0];
	return verb->run(&command->ctl, argc - optind + 1, argv + optind - 1);
}

int main(int argc, char **argv)
{
	struct command command = {.ctl = {.runtime_dir = "/run/flyrec"}};

	log_open(LOG_NOTICE);
	if (parse_options(argc, argv, "+hH:", &command) < 0)
		return CTL_USAGE;
	if (optind < argc)
		return (int)run_verb(&command, argc - optind, argv + optind);
	if (command.help) {
		print_help();
		return CTL_DONE;
	}
	if (command.version) {
		printf("flyrecctl %s\n", PACKAGE_VERSION);
		return CTL_DONE;
	}
	(void)fprintf(stderr, "flyrecctl: a verb is missing, see flyrecctl --help\n");
	return CTL_USAGE;
}
