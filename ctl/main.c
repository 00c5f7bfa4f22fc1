/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl: options first, then a verb from the table. Options may also stand behind the verb, as
 * in systemctl. Main thread only.
 */
#include <getopt.h>
#include <string.h>

#include "basic/log.h"
#include "basic/macro.h"
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

struct verb {
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
	{"verify", verb_verify, "FILE|DIR...", "Check trace.dat files and Arm snapshots, offline",
	 "Checks structure, alignment, every sub-buffer and every event, time order, lost\n"
	 "events, and flyrec's own accounting, of trace.dat files (version 6) that flyrec or\n"
	 "trace-cmd wrote. Of a DIR: every *.dat below it, sorted, and every\n"
	 "directory with a snapshot.ini in it: an Arm snapshot, whose faults are lines\n"
	 "\"DIR/FILE:LINE: what\".\n\n"
	 "Exit status: 0 all are right, 1 any fault; each is a line \"FILE: offset 0x...: what\".\n"},
	{"status", verb_status, "[SESSION]", "Show the daemon and its sessions",
	 "State, files, bytes, lost events and since when, and what is not as configured.\n"},
	{"list", verb_list, "[SESSION]", "List recordings",
	 "Each file with the times of its first and last event, oldest first; current.dat is\n"
	 "the one being written.\n"},
	{"stats", verb_stats, "[SESSION]", "Show the loss accounting of each CPU",
	 "Sub-buffers and bytes recorded; events overwritten, dropped, lost; sub-buffers removed\n"
	 "by retention or not written. Since the daemon was started.\n"},
	{"metrics", verb_metrics, "", "Print OpenMetrics text",
	 "For node_exporter's textfile directory, see flyrec-metrics.timer.\n"},
	{"rotate", verb_rotate, "[SESSION...]", "Begin new segments, print the finished ones",
	 "Waits until each file is finished and prints its path. Without SESSION: all that\n"
	 "record.\n"},
	{"start", verb_start, "SESSION...", "Start recording",
	 "Also what the configuration has not enabled. Waits until it records.\n", TAKES_PERSIST},
	{"stop", verb_stop, "SESSION...", "Finish the segment, remove the instance",
	 "Waits until the file is finished.\n", TAKES_PERSIST},
	{"pause", verb_pause, "SESSION...", "Switch tracing off, leave everything else", ""},
	{"resume", verb_resume, "SESSION...", "Switch tracing on again", ""},
	{"event-enable", verb_event_enable, "SESSION EVENT...", "Trace more events",
	 "EVENT: SYSTEM:NAME, \"SYSTEM:NAME if FILTER\", or SYSTEM for all of it.\n",
	 TAKES_PERSIST},
	{"event-disable", verb_event_disable, "SESSION EVENT...", "Trace these events no more",
	 "EVENT: SYSTEM:NAME, or SYSTEM for all of it.\n", TAKES_PERSIST},
	{"filter", verb_filter, "SESSION EVENT FILTER", "Set the kernel filter of an event",
	 "FILTER in the kernel's syntax, as in \"prev_pid == 0\"; 0 or \"\": no filter.\n",
	 TAKES_PERSIST},
	{"cat", verb_cat, "SESSION FILE", "Copy a recording to standard output",
	 "FILE: as in list, or its name alone. A file that is being written comes as it is now,\n"
	 "without holes.\n",
	 TAKES_OUTPUT},
	{"vacuum", verb_vacuum, "", "Delete old recordings",
	 "Of each session, oldest first; pinned ones and those being written stay.\n",
	 TAKES_VACUUM},
	{"pin", verb_pin, "FILE...", "Keep recordings from being deleted by retention", ""},
	{"unpin", verb_unpin, "FILE...", "Let retention have them again", ""},
	{"reload", verb_reload, "", "Read the configuration again",
	 "Waits until it is in force. A configuration with errors changes nothing: they are\n"
	 "shown. What was asked for with --runtime is over.\n"},
	{"snapshot", verb_snapshot, "[SESSION...]", "Make a file of a time range, print its path",
	 "Of what was recorded and of what the ring buffer holds, without disturbing either.\n"
	 "TIME as in systemd.time(7). Without SESSION: all that record.\n"
	 "With --together one file of all of them, in the first one's folder.\n"
	 "With --coresight also what is in this machine's CoreSight sinks, see flyrec-coresight(7).\n",
	 TAKES_RANGE | TAKES_SINCE | TAKES_TOGETHER | TAKES_OUTPUT | TAKES_CORESIGHT |
		 TAKES_SYSROOT},
	{"tail", verb_tail, "[-f] SESSION", "Show the last events, and those that come",
	 "As trace-cmd report prints them, those of all CPUs in the order of time; --json: an\n"
	 "object a line, as of export. TIME as in systemd.time(7). Recording is not disturbed: who\n"
	 "reads too slowly is told what was skipped.\n",
	 TAKES_FOLLOW | TAKES_FILTER | TAKES_SINCE | TAKES_RAW},
	{"export", verb_export, "FILE", "Write the events of a trace.dat file in other formats",
	 "Of a file (version 6) that flyrec or trace-cmd wrote, those of all CPUs in the order\n"
	 "of time. --format=text: line for line what trace-cmd report prints; --format=json: an\n"
	 "object a line; --format=qemu4v: see flyrec-qemu4v(7); --format=gdb-tfile: see\n"
	 "flyrec-gdb(7). TIME as in systemd.time(7), or a number as the file's times are shown.\n"
	 "FILE: - is standard input.\n"
	 "--format=arm-snapshot: the directory OUT with what is in this machine's CoreSight\n"
	 "sinks, and a copy of FILE if there is one; see flyrec-coresight(7).\n",
	 TAKES_FORMAT | TAKES_OUTPUT | TAKES_FILTER | TAKES_SINCE | TAKES_TARMAC | TAKES_SYSROOT |
		 TAKES_MAX_FRAMES | TAKES_RAW},
	{"import", verb_import, "FILE", "Make a trace.dat file out of another program's trace",
	 "FILE: - is standard input. The trace.dat appears when it is complete; -o - is standard\n"
	 "output. --format=qemu4v: traces of QEMU4V and Tarmac, see flyrec-qemu4v(7);\n"
	 "--format=gdb-tfile: what gdb's tsave writes, see flyrec-gdb(7).\n",
	 TAKES_FORMAT | TAKES_OUTPUT | TAKES_TEXT_IN | TAKES_ENDIAN},
	{"boot-parameters", verb_boot_parameters, "[SESSION...]",
	 "Print what the kernel has to be started with for Persistent=yes",
	 "One line for the kernel's command line, for the sessions that are enabled and have\n"
	 "Persistent=yes, or for SESSIONs: memory that outlives the kernel, and instances in it.\n"
	 "See \"The trace of a kernel that died\" in flyrecd(8).\n"},
	{"stdio-bridge", verb_stdio_bridge, "", "The far end of --host", "", .hidden = true},
	{"complete", verb_complete, "sessions|events|files [SESSION]", "For the shell's completion",
	 "", .hidden = true},
};

static const char global_options[] =
	"Options:\n"
	"  -h --help             Show this help, behind a verb: that verb's\n"
	"     --version          Show the version\n"
	"     --json             Print one JSON document (tail: one a line)\n"
	"     --no-pager         Do not pipe output into a pager\n"
	"     --runtime-dir=DIR  Where the daemon's control socket is (default /run/flyrec)\n"
	"  -H --host=[USER@]HOST Talk to the daemon of another machine\n";

static const struct {
	enum verb_option option;
	const char *help;
} verb_options[] = {
	{TAKES_PERSIST,
	 "     --runtime          Until the next reload or start (default)\n"
	 "     --persist          Keep it: write sessions.d/NAME.conf.d/50-flyrecctl.conf\n"},
	{TAKES_FORMAT, "     --format=FORMAT    Of the other side; must be given\n"},
	{TAKES_RANGE,
	 "     --last=TIME        From so long ago on, as in 30s\n"
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
	{TAKES_TARMAC, "     --tarmac           qemu4v: as Arm's tools read it\n"},
	{TAKES_OUTPUT, "  -o --output=FILE      Write here\n"},
	{TAKES_VACUUM, "     --max-use=SIZE     Until each session's files take no more than this\n"
		       "     --older-than=TIME  Those whose last event is longer ago\n"},
};

static void print_help(void)
{
	printf("flyrecctl [OPTIONS...] VERB ...\n\nControl the flyrec flight recorder and check its files.\n\n"
	       "Verbs:\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (verbs[i].run && !verbs[i].hidden)
			printf("  %s %-*s %s\n", verbs[i].name, (int)(30 - strlen(verbs[i].name)),
			       verbs[i].arguments, verbs[i].summary);
	printf("\n%s\nSee flyrecctl(1).\n", global_options);
}

static void print_verb_help(const struct verb *verb)
{
	printf("flyrecctl [OPTIONS...] %s %s\n\n%s.\n\n%s%s", verb->name, verb->arguments,
	       verb->summary, verb->help, *verb->help ? "\n" : "");
	printf("%s", global_options);
	for (size_t i = 0; i < ARRAY_SIZE(verb_options); i++)
		if (verb->takes & verb_options[i].option)
			printf("%s", verb_options[i].help);
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
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
	if (command_parse(argc, argv, "hH:o:fn:", command) < 0)
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
		(void)fprintf(stderr,
			      "flyrecctl: %s: takes no such option, see flyrecctl %s --help\n",
			      verb->name, verb->name);
		return CTL_USAGE;
	}
	argv[optind - 1] = argv[0];
	return verb->run(&command->ctl, argc - optind + 1, argv + optind - 1);
}

static enum ctl_status run(struct command *command, int argc, char **argv)
{
	if (command_parse(argc, argv, "+hH:o:fn:", command) < 0)
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
	strv_free(command.ctl.memory);
	return (int)status;
}
