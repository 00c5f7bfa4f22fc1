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
#include "ctl/bus.h"
#include "ctl/command.h"
#include "ctl/output.h"
#include "ctl/remote.h"

enum group {
	LOOK,
	TAKE,
	CHANGE,
	FILES,
};

struct verb {
	enum group group;
	const char *name;
	verb_function *run;
	const char *arguments;
	const char *summary;
	const char *help;
	const char *method; /* on D-Bus, of a verb that is no more than that */
	bool here;	    /* -H is the verb's own */
	bool paged;	    /* its output may go through a pager */
	bool hidden;
};

/* The verbs that scripts may count on */
static const struct verb verbs[] = {
	{LOOK, "status", verb_status, "[SESSION]", "Show the daemon and its sessions",
	 "State, files, how far back they reach, lost events, and what is not as configured. Of one\n"
	 "SESSION also its clock, buffers, triggers, and the processes that Unit= has found.\n",
	 .paged = true},
	{LOOK, "list", verb_list, "[SESSION]", "List recordings",
	 "Each file with the times of its first and last event, oldest first; current.dat is\n"
	 "the one being written.\n",
	 .paged = true},
	{LOOK, "stats", verb_stats, "[SESSION]", "Show the loss accounting of each CPU",
	 "Sub-buffers and bytes recorded; events overwritten, dropped, lost; sub-buffers removed\n"
	 "by retention or not written. Since the daemon was started.\n",
	 .paged = true},
	{LOOK, "tail", verb_tail, "[-f] SESSION", "Show the last events, and those that come",
	 "The events of all CPUs in time order, with the time of day (see --time=); --json: an\n"
	 "object a line, as of export. TIME as in systemd.time(7). Recording is not disturbed: who\n"
	 "reads too slowly is told what was skipped.\n"},
	{LOOK, "analyze", verb_analyze, "SOURCE...", "Say what went wrong, and who was to blame",
	 "The worst waits, handlers, requests and losses of a recording, each with the command that shows\n"
	 "more; then how busy the CPUs were, and what was not recorded. SOURCE and TIME as of view.\n",
	 .paged = true},
	{LOOK, "view", verb_view, "[NAME SOURCE...]",
	 "Show what a recording says of tasks and CPUs",
	 "NAME is a table: tasks, units, runqueue, blocked, preemptors, wakers, irq, softirq, block,\n"
	 "syscalls, events; without one these are listed. SOURCE: a trace.dat file of flyrec or\n"
	 "trace-cmd, or a session of the daemon: its segments and the one being written. Several are\n"
	 "taken as one recording. TIME as in systemd.time(7), or a number as the file's times are shown.\n",
	 .paged = true},
	{LOOK, "why", verb_why, "TASK SOURCE...", "Show what a task waited for",
	 "TASK: a name, which may have * and ?, or a pid. Its longest waits: since when, woken by whom,\n"
	 "and who ran on that CPU meanwhile, one after the other. SOURCE and TIME as of view.\n",
	 .paged = true},
	{LOOK, "latency", verb_latency, "SOURCE [CONDITION...]",
	 "Show how often something took too long",
	 "Over the last hour of a recording, or --last=, --since=, --until=: how long it took, how often\n"
	 "the time of CONDITION was reached, and a time that would be reached seldom. CONDITION:\n"
	 "runqueue|blocked|irq|softirq [TIME] [task=NAME] [unit=UNIT], block [TIME] [dev=MAJOR:MINOR],\n"
	 "syscall NAME [TIME] [task=NAME] [unit=UNIT], or SYSTEM:EVENT SYSTEM:EVENT key=FIELD,... [TIME].\n"
	 "Without one: the first five. SOURCE and TIME as of view.\n",
	 .paged = true},
	{LOOK, "query", verb_query, "['SQL'] SOURCE...", "Ask recordings in SQL",
	 "Tables: events, one for each kind of event (sched_sched_switch), runqueue, blocked, irqs, block,\n"
	 "syscalls, tasks, clocks, files; nothing is loaded. Without SQL: a shell, or SQL from standard\n"
	 "input. Of a SESSION also its snapshots. SOURCE and TIME as of view. See flyrec-query(7).\n",
	 .paged = true},
	{LOOK, "cost", verb_cost, "[SESSION]", "Show what tracing costs, event by event",
	 "Events and bytes of the last minute and the last hour, how long the space for them lasts,\n"
	 "the share of the machine's CPU time, and what leaving out each event would save.\n",
	 .paged = true},
	{LOOK, "metrics", verb_metrics, "", "Print OpenMetrics text",
	 "For node_exporter's textfile directory, see flyrec-metrics.timer.\n"},
	{TAKE, "snapshot", verb_snapshot, "[SESSION...]",
	 "Make a file of a time range, print its path",
	 "Of what was recorded and of what the ring buffer holds, without disturbing either.\n"
	 "TIME as in systemd.time(7). Without SESSION: all that record.\n"
	 "With --together one file of all of them, in the first one's folder.\n"
	 "With --limited as other hosts may ask for it: waits until TIME of --until= is over, and is the\n"
	 "file that has the ID already, or most of that time, if there is one.\n"
	 "With --coresight also what is in this machine's CoreSight sinks, see flyrec-coresight(7).\n",
	 .here = true},
	{TAKE, "trigger", verb_trigger, "SESSION TEXT", "Have a snapshot taken, for a script",
	 "As a trigger of the configuration does: with Last= and PostSec=, within Burst=, and maybe in\n"
	 "another trigger's file. Does not wait for it. TEXT, a line, is what the file says of it.\n"},
	{TAKE, "rotate", verb_rotate, "[SESSION...]", "Begin new segments, print the finished ones",
	 "Waits until each file is finished and prints its path. Without SESSION: all that\n"
	 "record.\n"},
	{TAKE, "cat", verb_cat, "SESSION FILE", "Copy a recording to standard output",
	 "FILE: as in list, or its name alone. A file that is being written comes as it is now,\n"
	 "without holes. A compressed one comes as version 6, which all readers know; --raw: as it is.\n",
	 .here = true},
	{TAKE, "export", verb_export, "FILE...",
	 "Write the events of a trace.dat file in other formats",
	 "Print the events of all CPUs in time order. FILE: a trace.dat of flyrec or\n"
	 "trace-cmd, version 6 or 7. --format=text: line for line what trace-cmd report prints, but for --time=;\n"
	 "--format=json: an object a line; --format=perfetto: for ui.perfetto.dev;\n"
	 "--format=clickhouse: rows of TABLE in ClickHouse's Native format;\n"
	 "--format=qemu4v: see flyrec-qemu4v(7); --format=gdb-tfile: see\n"
	 "flyrec-gdb(7). TIME as in systemd.time(7), or a number as the file's times are shown.\n"
	 "FILE: - is standard input; perfetto and html take several, of several hosts, too.\n"
	 "--format=arm-snapshot: the directory OUT with what is in this machine's CoreSight\n"
	 "sinks, and a copy of FILE if there is one; see flyrec-coresight(7).\n",
	 .here = true},
	{CHANGE, "start", verb_start, "SESSION...", "Start recording",
	 "Also what the configuration has not enabled. Waits until it records.\n",
	 .method = "Start"},
	{CHANGE, "stop", verb_start, "SESSION...", "Finish the segment, remove the instance",
	 "Waits until the file is finished.\n", .method = "Stop"},
	{CHANGE, "pause", verb_pause, "SESSION...", "Switch tracing off, leave everything else", "",
	 .method = "Pause"},
	{CHANGE, "resume", verb_pause, "SESSION...", "Switch tracing on again", "",
	 .method = "Resume"},
	{CHANGE, "event-enable", verb_events, "SESSION EVENT...", "Trace more events",
	 "EVENT: SYSTEM:NAME, \"SYSTEM:NAME if FILTER\", or SYSTEM for all of it.\n",
	 .method = "EnableEvents"},
	{CHANGE, "event-disable", verb_events, "SESSION EVENT...", "Stop tracing events",
	 "EVENT: SYSTEM:NAME, or SYSTEM for all of it.\n", .method = "DisableEvents"},
	{CHANGE, "filter", verb_filter, "SESSION EVENT FILTER", "Set the kernel filter of an event",
	 "FILTER in the kernel's syntax, as in \"prev_pid == 0\"; 0 or \"\": no filter.\n"},
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
	 "events, and flyrec's own accounting, of trace.dat files (version 6 or 7) that flyrec or\n"
	 "trace-cmd wrote. Of a DIR: every *.dat below it, sorted, and every\n"
	 "directory with a snapshot.ini in it: an Arm snapshot, whose faults are lines\n"
	 "\"DIR/FILE:LINE: what\".\n\n"
	 "Exit status: 0 all are right, 1 any fault; each is a line \"FILE: offset 0x...: what\".\n",
	 .here = true},
	{FILES, "import", verb_import, "FILE",
	 "Make a trace.dat file out of another program's trace",
	 "FILE: - is standard input. The trace.dat appears when it is complete; -o - is standard\n"
	 "output. --format=qemu4v: traces of QEMU4V and Tarmac, see flyrec-qemu4v(7);\n"
	 "--format=gdb-tfile: what gdb's tsave writes, see flyrec-gdb(7).\n",
	 .here = true},
	{FILES, "convert", verb_convert, "FILE", "Write a trace.dat file as another version",
	 "Version 6, the default, is not compressed and every program reads it; version 7 is\n"
	 "compressed with zstd unless --compress=no. FILE: a trace.dat of flyrec or trace-cmd,\n"
	 "version 6 or 7; - is standard input. Of a damaged one what can be read is written, each\n"
	 "damage is a line on standard error, and the exit status is 1. -o - is standard output.\n",
	 .here = true},
	{FILES, "merge", verb_merge, "[HOST=]FILE...",
	 "Make one trace.dat file of those of several hosts",
	 "Ring buffers are called HOST:SESSION, times are by one clock: how they were moved, and how\n"
	 "right each clock was, is printed, and in the file. All programs that read trace.dat files\n"
	 "show it interleaved. HOST: instead of the name that the file has.\n",
	 .here = true},
	{FILES, "pin", verb_pin, "FILE...", "Keep recordings from being deleted by retention", ""},
	{FILES, "unpin", verb_pin, "FILE...", "Let retention delete recordings again", ""},
	{FILES, "vacuum", verb_vacuum, "", "Delete old recordings",
	 "Of each session, oldest first; pinned ones and those being written stay.\n"},
	{FILES, "complete", verb_complete, "sessions|events|files [SESSION]",
	 "For the shell's completion", "", .hidden = true},
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

		if (v->hidden)
			continue;
		if (i == 0 || v->group != v[-1].group)
			printf("\n%s:\n", groups[v->group]);
		printf("  %s %-*s %s\n", v->name, (int)(30 - strlen(v->name)), v->arguments,
		       v->summary);
	}
	printf("\n");
	command_help(NULL, NULL);
	printf("\nSee flyrecctl(1).\n");
}

static void print_verb_help(const struct verb *verb)
{
	printf("flyrecctl [OPTIONS...] %s %s\n\n%s.\n\n%s%s", verb->name, verb->arguments,
	       verb->summary, verb->help, *verb->help ? "\n" : "");
	command_help(verb->name, verb->run == verb_import ? import_formats : export_formats);
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

static enum ctl_status run_verb(struct ctl *ctl, int argc, char **argv)
{
	const struct verb *verb = find_verb(argv[0]);
	enum ctl_status status;

	if (!verb) {
		unknown_verb(argv[0]);
		return CTL_USAGE;
	}
	ctl->verb = verb->name;
	ctl->method = verb->method;
	optind = 0; /* start over; argv[0], the verb, takes the program's place */
	if (command_parse(argc, argv, false, ctl) < 0)
		return CTL_USAGE;
	if (ctl->help) {
		print_verb_help(verb);
		return CTL_DONE;
	}
	if (ctl->version) {
		printf("flyrecctl %s\n", PACKAGE_VERSION);
		return CTL_DONE;
	}
	if (!command_fit(ctl, verb->name))
		return CTL_USAGE;
	argv[optind - 1] = argv[0];
	argc -= optind - 1;
	argv += optind - 1;
	if (!ctl->host || verb->here)
		return verb->run(ctl, argc, argv);
	if (!verb->paged)
		return remote_run(ctl, argv, STDOUT_FILENO);
	output_begin(ctl);
	status = remote_run(ctl, argv, STDOUT_FILENO);
	return MAX(status, output_end());
}

static enum ctl_status run(struct ctl *ctl, int argc, char **argv)
{
	if (command_parse(argc, argv, true, ctl) < 0)
		return CTL_USAGE;
	if (optind < argc)
		return run_verb(ctl, argc - optind, argv + optind);
	if (ctl->help) {
		print_help();
		return CTL_DONE;
	}
	if (ctl->version) {
		printf("flyrecctl %s\n", PACKAGE_VERSION);
		return CTL_DONE;
	}
	(void)fprintf(stderr, "flyrecctl: a verb is missing, see flyrecctl --help\n");
	return CTL_USAGE;
}

int main(int argc, char **argv)
{
	struct ctl ctl = {.runtime_dir = "/run/flyrec"};
	enum ctl_status status;

	log_open(LOG_NOTICE);
	status = run(&ctl, argc, argv);
	bus_close(&ctl);
	command_done(&ctl);
	return (int)status;
}
