/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl: options first, then a verb from the table. Options may also stand after the verb, as
 * in systemctl. Main thread only.
 */
#include <getopt.h>
#include <string.h>

#include "basic/log.h"
#include "basic/macro.h"
#include "basic/near.h"
#include "basic/strv.h"
#include "ctl/bridge.h"
#include "ctl/cat.h"
#include "ctl/change.h"
#include "ctl/command.h"
#include "ctl/ctl.h"
#include "ctl/export.h"
#include "ctl/import.h"
#include "ctl/show.h"
#include "ctl/snapshot.h"
#include "ctl/tail.h"
#include "ctl/verify.h"

enum group {
	LOOK,
	TAKE,
	CHANGE,
	FILES,
};

struct verb {
	enum group group;
	const char *name;
	enum ctl_status (*run)(const struct ctl *ctl, int argc, char **argv); /* NULL: not built */
	const char *arguments;
	const char *summary;
	const char *help;
	unsigned takes; /* options of its own: enum verb_option, or-ed */
	bool hidden;
};

/* The verbs that scripts may count on; those without a function answer that they are not built */
static const struct verb verbs[] = {
	{LOOK, "status", verb_status, "[SESSION]", "Show the daemon and its sessions",
	 "State, files, how far back they reach, lost events, and what is not as configured. Of one\n"
	 "SESSION also its clock, buffers, triggers, and the processes that Unit= has found.\n"},
	{LOOK, "list", verb_list, "[SESSION]", "List recordings",
	 "Each file with the times of its first and last event, oldest first; current.dat is\n"
	 "the one being written.\n"},
	{LOOK, "stats", verb_stats, "[SESSION]", "Show the loss accounting of each CPU",
	 "Sub-buffers and bytes recorded; events overwritten, dropped, lost; sub-buffers removed\n"
	 "by retention or not written. Since the daemon was started.\n"},
	{LOOK, "tail", verb_tail, "[-f] SESSION", "Show the last events, and those that come",
	 "The events of all CPUs in time order, with the time of day (see --time=); --json: an\n"
	 "object a line, as of export. TIME as in systemd.time(7). Recording is not disturbed: who\n"
	 "reads too slowly is told what was skipped.\n",
	 TAKES_FOLLOW | TAKES_FILTER | TAKES_SINCE | TAKES_RAW | TAKES_TIME},
	{LOOK, "metrics", verb_metrics, "", "Print OpenMetrics text",
	 "For node_exporter's textfile directory, see flyrec-metrics.timer.\n"},
	{TAKE, "snapshot", verb_snapshot, "[SESSION...]",
	 "Make a file of a time range, print its path",
	 "Of what was recorded and of what the ring buffer holds, without disturbing either.\n"
	 "TIME as in systemd.time(7). Without SESSION: all that record.\n"
	 "With --together one file of all of them, in the first one's folder.\n"
	 "With --coresight also what is in this machine's CoreSight sinks, see flyrec-coresight(7).\n",
	 TAKES_RANGE | TAKES_SINCE | TAKES_TOGETHER | TAKES_OUTPUT | TAKES_CORESIGHT |
		 TAKES_SYSROOT},
	{TAKE, "rotate", verb_rotate, "[SESSION...]", "Begin new segments, print the finished ones",
	 "Waits until each file is finished and prints its path. Without SESSION: all that\n"
	 "record.\n"},
	{TAKE, "cat", verb_cat, "SESSION FILE", "Copy a recording to standard output",
	 "FILE: as in list, or its name alone. A file that is being written comes as it is now,\n"
	 "without holes.\n",
	 TAKES_OUTPUT},
	{TAKE, "export", verb_export, "FILE",
	 "Write the events of a trace.dat file in other formats",
	 "Print the events of all CPUs in time order. FILE: a version 6 trace.dat of flyrec or\n"
	 "trace-cmd. --format=text: line for line what trace-cmd report prints, but for --time=;\n"
	 "--format=json: an object a line; --format=qemu4v: see flyrec-qemu4v(7); --format=gdb-tfile: see\n"
	 "flyrec-gdb(7). TIME as in systemd.time(7), or a number as the file's times are shown.\n"
	 "FILE: - is standard input.\n"
	 "--format=arm-snapshot: the directory OUT with what is in this machine's CoreSight\n"
	 "sinks, and a copy of FILE if there is one; see flyrec-coresight(7).\n",
	 TAKES_FORMAT | TAKES_OUTPUT | TAKES_FILTER | TAKES_SINCE | TAKES_TARMAC | TAKES_SYSROOT |
		 TAKES_MAX_FRAMES | TAKES_RAW | TAKES_TIME},
	{CHANGE, "start", verb_start, "SESSION...", "Start recording",
	 "Also what the configuration has not enabled. Waits until it records.\n", TAKES_PERSIST},
	{CHANGE, "stop", verb_stop, "SESSION...", "Finish the segment, remove the instance",
	 "Waits until the file is finished.\n", TAKES_PERSIST},
	{CHANGE, "pause", verb_pause, "SESSION...", "Switch tracing off, leave everything else",
	 ""},
	{CHANGE, "resume", verb_resume, "SESSION...", "Switch tracing on again", ""},
	{CHANGE, "event-enable", verb_event_enable, "SESSION EVENT...", "Trace more events",
	 "EVENT: SYSTEM:NAME, \"SYSTEM:NAME if FILTER\", or SYSTEM for all of it.\n",
	 TAKES_PERSIST},
	{CHANGE, "event-disable", verb_event_disable, "SESSION EVENT...", "Stop tracing events",
	 "EVENT: SYSTEM:NAME, or SYSTEM for all of it.\n", TAKES_PERSIST},
	{CHANGE, "filter", verb_filter, "SESSION EVENT FILTER", "Set the kernel filter of an event",
	 "FILTER in the kernel's syntax, as in \"prev_pid == 0\"; 0 or \"\": no filter.\n",
	 TAKES_PERSIST},
	{CHANGE, "reload", verb_reload, "", "Read the configuration again",
	 "Waits until it is in force. A configuration with errors changes nothing: they are\n"
	 "shown. What was asked for with --runtime is over.\n"},
	{CHANGE, "boot-parameters", verb_boot_parameters, "[SESSION...]",
	 "Print the kernel command line for Persistent=yes",
	 "One line for the kernel's command line, for the sessions that are enabled and have\n"
	 "Persistent=yes, or for SESSIONs: memory that outlives the kernel, and instances in it.\n"
	 "See \"The trace of a kernel that died\" in flyrecd(8).\n"},
	{FILES, "verify", verb_verify, "FILE|DIR...",
	 "Check trace.dat files and Arm snapshots, offline",
	 "Checks structure, alignment, every sub-buffer and every event, time order, lost\n"
	 "events, and flyrec's own accounting, of trace.dat files (version 6) that flyrec or\n"
	 "trace-cmd wrote. Of a DIR: every *.dat below it, sorted, and every\n"
	 "directory with a snapshot.ini in it: an Arm snapshot, whose faults are lines\n"
	 "\"DIR/FILE:LINE: what\".\n\n"
	 "Exit status: 0 all are right, 1 any fault; each is a line \"FILE: offset 0x...: what\".\n"},
	{FILES, "import", verb_import, "FILE",
	 "Make a trace.dat file out of another program's trace",
	 "FILE: - is standard input. The trace.dat appears when it is complete; -o - is standard\n"
	 "output. --format=qemu4v: traces of QEMU4V and Tarmac, see flyrec-qemu4v(7);\n"
	 "--format=gdb-tfile: what gdb's tsave writes, see flyrec-gdb(7).\n",
	 TAKES_FORMAT | TAKES_OUTPUT | TAKES_TEXT_IN | TAKES_ENDIAN},
	{FILES, "pin", verb_pin, "FILE...", "Keep recordings from being deleted by retention", ""},
	{FILES, "unpin", verb_unpin, "FILE...", "Let retention delete recordings again", ""},
	{FILES, "vacuum", verb_vacuum, "", "Delete old recordings",
	 "Of each session, oldest first; pinned ones and those being written stay.\n",
	 TAKES_VACUUM},
	{FILES, "stdio-bridge", verb_stdio_bridge, "", "The far end of --host", "", .hidden = true},
	{FILES, "complete", verb_complete, "sessions|events|files [SESSION]",
	 "For the shell's completion", "", .hidden = true},
};

static const char global_options[] =
	"Options (before or after the verb):\n"
	"  -h --help             Show this help, behind a verb: that verb's\n"
	"     --version          Show the version\n"
	"     --json             Print one JSON document (tail: one a line)\n"
	"     --no-pager         Do not pipe output into a pager\n"
	"     --runtime-dir=DIR  Where the daemon's control socket is (default /run/flyrec)\n"
	"  -H --host=[USER@]HOST Talk to the daemon of another machine\n";

#define FORMAT_HELP "     --format=FORMAT    %s (required)\n"

static const struct {
	enum verb_option option;
	const char *help;
} verb_options[] = {
	{TAKES_PERSIST,
	 "     --runtime          Until the next reload or start (default)\n"
	 "     --persist          Keep it: write sessions.d/NAME.conf.d/50-flyrecctl.conf\n"},
	{TAKES_FORMAT, ""}, /* FORMAT_HELP, with the verb's own */
	{TAKES_RANGE,
	 "     --last=TIME        From so long ago on, as in 30s; 0: all there is (default)\n"
	 "     --reason=WORD      Part of the file's name (default control, or together)\n"
	 "     --pin              Keep it from being deleted by retention\n"},
	{TAKES_FOLLOW,
	 "  -f --follow           Go on with new events, until interrupted\n"
	 "  -n --lines=N|all      Begin with so many (default 10; with --since= all)\n"},
	{TAKES_SINCE, "     --since=TIME       From then on\n"
		      "     --until=TIME       Up to then\n"},
	{TAKES_TOGETHER,
	 "     --together         One file, in which each session is a buffer with its name\n"},
	{TAKES_FILTER,
	 "     --event=EVENT,...  Only these: SYSTEM:NAME, SYSTEM, NAME; * and ? are fine\n"
	 "     --cpu=LIST         Only these CPUs, as in 0-3,8\n"
	 "     --pid=PID,...      Only these tasks\n"},
	{TAKES_CORESIGHT,
	 "     --coresight[=DIR]  An Arm snapshot of CoreSight trace too, beside the file; in DIR:\n"
	 "                        made by flyrecctl, not by the daemon\n"},
	{TAKES_SYSROOT,
	 "     --sysroot=DIR      Where sys, dev and proc are, for CoreSight (default /)\n"
	 "     --memory=ADDR=FILE Memory that shall be in the Arm snapshot; may be repeated\n"},
	{TAKES_MAX_FRAMES,
	 "     --max-frames=N     gdb-tfile: at most so many events, 0: all (default 20000)\n"},
	{TAKES_ENDIAN,
	 "     --endian=ORDER     gdb-tfile: little or big (default: as the file looks)\n"},
	{TAKES_TEXT_IN,
	 "     --clk=TIME         qemu4v: how long a clk is, as in 10ns (default 1us)\n"
	 "     --strict           qemu4v: a malformed line is an error\n"},
	{TAKES_RAW,
	 "     --raw[=yes|no]     Texts of events with all their control characters; no: escaped, also\n"
	 "                        in pipes (default: escaped on a terminal, newlines everywhere)\n"},
	{TAKES_TIME,
	 "     --time=epoch|local|utc|trace|trigger\n"
	 "                        Times in text: seconds since 1970, time of day, of the trace\n"
	 "                        clock, ms before (-) or after what caused the snapshot\n"},
	{TAKES_TARMAC, "     --tarmac           qemu4v: as Arm's tools read it\n"},
	{TAKES_OUTPUT,
	 "  -o --output=FILE      Write to FILE, replaced once complete; -: standard output\n"},
	{TAKES_VACUUM, "     --max-use=SIZE     Until each session's files take no more than this\n"
		       "     --older-than=TIME  Those whose last event is longer ago\n"},
};

static void print_help(void)
{
	static const char *const groups[] = {
		[LOOK] = "Look",
		[TAKE] = "Take",
		[CHANGE] = "Change",
		[FILES] = "Files",
	};

	printf("flyrecctl [OPTIONS...] VERB ...\n\nControl the flyrec flight recorder and check its "
	       "files.\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		const struct verb *v = &verbs[i];

		if (!v->run || v->hidden)
			continue;
		if (i == 0 || v->group != v[-1].group)
			printf("\n%s:\n", groups[v->group]);
		printf("  %s %-*s %s\n", v->name, (int)(30 - strlen(v->name)), v->arguments,
		       v->summary);
	}
	printf("\n%s\nSee flyrecctl(1).\n", global_options);
}

static void print_verb_help(const struct verb *verb)
{
	printf("flyrecctl [OPTIONS...] %s %s\n\n%s.\n\n%s%s", verb->name, verb->arguments,
	       verb->summary, verb->help, *verb->help ? "\n" : "");
	printf("%s", global_options);
	for (size_t i = 0; i < ARRAY_SIZE(verb_options); i++)
		if (verb_options[i].option == TAKES_FORMAT && verb->takes & TAKES_FORMAT)
			printf(FORMAT_HELP,
			       verb->run == verb_import ? import_formats() : export_formats());
		else if (verb->takes & verb_options[i].option)
			printf("%s", verb_options[i].help);
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

static void unknown_verb(const char *word)
{
	const char *near = NULL;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!verbs[i].hidden && near_better(word, verbs[i].name, &best))
			near = verbs[i].name;
	if (near)
		(void)fprintf(stderr, "flyrecctl: unknown verb \"%s\", did you mean %s?\n", word,
			      near);
	else
		(void)fprintf(stderr, "flyrecctl: unknown verb \"%s\", see flyrecctl --help\n",
			      word);
}

/* "flyrecctl: export: --pin is not an option of this verb (snapshot has it)" */
static void refuse_option(const struct command *command, const struct verb *verb)
{
	unsigned bit = command->used & ~verb->takes;
	const char *name = command->names[__builtin_ctz(bit)], *separator = " (";
	unsigned n = 0;

	bit &= -bit;
	(void)fprintf(stderr, "flyrecctl: %s: --%s is not an option of this verb", verb->name,
		      name ? name : "?");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (verbs[i].takes & bit) {
			(void)fprintf(stderr, "%s%s", separator, verbs[i].name);
			separator = ", ";
			n++;
		}
	(void)fprintf(stderr, " %s it)\n", n > 1 ? "have" : "has");
}

static enum ctl_status run_verb(struct command *command, int argc, char **argv)
{
	const struct verb *verb = find_verb(argv[0]);

	if (!verb) {
		unknown_verb(argv[0]);
		return CTL_USAGE;
	}
	if (!verb->run) {
		(void)fprintf(stderr, "flyrecctl: %s: not supported by this build\n", verb->name);
		return CTL_FAILED;
	}
	optind = 0; /* start over; argv[0], the verb, takes the program's place */
	if (command_parse(argc, argv, false, command) < 0)
		return CTL_USAGE;
	if (command->help) {
		print_verb_help(verb);
		return CTL_DONE;
	}
	if (command->version) {
		printf("flyrecctl %s\n", PACKAGE_VERSION);
		return CTL_DONE;
	}
	if (command->used & ~verb->takes) {
		refuse_option(command, verb);
		return CTL_USAGE;
	}
	argv[optind - 1] = argv[0];
	return verb->run(&command->ctl, argc - optind + 1, argv + optind - 1);
}

static enum ctl_status run(struct command *command, int argc, char **argv)
{
	if (command_parse(argc, argv, true, command) < 0)
		return CTL_USAGE;
	if (optind < argc)
		return run_verb(command, argc - optind, argv + optind);
	if (command->help) {
		print_help();
		return CTL_DONE;
	}
	if (command->version) {
		printf("flyrecctl %s\n", PACKAGE_VERSION);
		return CTL_DONE;
	}
	(void)fprintf(stderr, "flyrecctl: a verb is missing, see flyrecctl --help\n");
	return CTL_USAGE;
}

int main(int argc, char **argv)
{
	struct command command = {.ctl = {.runtime_dir = "/run/flyrec"}};
	enum ctl_status status;

	log_open(LOG_NOTICE);
	status = run(&command, argc, argv);
	strv_free(command.ctl.events);
	strv_free(command.ctl.pids);
	strv_free(command.ctl.convert.memory);
	return (int)status;
}
