/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/parse.h"
#include "ctl/confine.h"
#include "ctl/output.h"
#include "ctl/query-shell.h"

#define MEMORY	   (48 * MIB) /* with what we need beside it 64 */
#define MEMORY_MIN (4 * MIB)

/* They work with recordings that lack the events: then there are no rows */
static const struct example {
	const char *what, *sql;
} examples[] = {
	{"Which events are there?", "SELECT system, name, count(*) AS n FROM events\n"
				    "GROUP BY system, name ORDER BY n DESC LIMIT 20"},
	{"How long did tasks of each unit wait for a CPU, in microseconds?",
	 "SELECT unit, count(*) AS waits, percentile(nsec, 50) / 1e3 AS p50,\n"
	 "       percentile(nsec, 99) / 1e3 AS p99, max(nsec) / 1e3 AS worst\n"
	 "FROM runqueue GROUP BY unit ORDER BY p99 DESC LIMIT 10"},
	{"The longest waits for a CPU, and who woke the task",
	 "SELECT strftime('%H:%M:%f', ts / 1e9, 'unixepoch', 'localtime') AS at, comm, pid, cpu,\n"
	 "       nsec / 1e6 AS ms, preempted, waker_comm\n"
	 "FROM runqueue ORDER BY nsec DESC LIMIT 10"},
	{"All events of that CPU during the longest one",
	 "WITH worst AS MATERIALIZED (SELECT ts, nsec, cpu FROM runqueue ORDER BY nsec DESC LIMIT 1)\n"
	 "SELECT (e.ts - worst.ts) / 1e3 AS us, e.comm, e.pid, e.name, e.fields\n"
	 "FROM worst JOIN events AS e ON e.ts BETWEEN worst.ts AND worst.ts + worst.nsec\n"
	 "     AND e.cpu = worst.cpu ORDER BY e.ts LIMIT 20"},
	{"In which system calls do tasks sleep uninterruptibly?",
	 "SELECT comm, syscall, count(*) AS n, sum(nsec) / 1e6 AS ms, max(nsec) / 1e6 AS worst\n"
	 "FROM blocked GROUP BY comm, syscall ORDER BY ms DESC LIMIT 10"},
	{"Which interrupts take most of the time?",
	 "SELECT kind, name, count(*) AS n, sum(nsec) / 1e6 AS ms, max(nsec) / 1e3 AS worst_us\n"
	 "FROM irqs GROUP BY kind, name ORDER BY ms DESC LIMIT 10"},
	{"How long do requests to disks take?",
	 "SELECT device, operation, count(*) AS n, sum(bytes) / 1048576.0 AS mib,\n"
	 "       median(nsec) / 1e3 AS median_us, max(nsec) / 1e3 AS worst_us\n"
	 "FROM block GROUP BY device, operation ORDER BY n DESC LIMIT 10"},
	{"Slow system calls",
	 "SELECT comm, name, count(*) AS n, max(nsec) / 1e6 AS worst_ms FROM syscalls\n"
	 "WHERE nsec > 1000000 GROUP BY comm, name ORDER BY worst_ms DESC LIMIT 10"},
	{"Which tasks are switched to most often, and how often to the same one within a second?",
	 "SELECT json_extract(fields, '$.next_comm') AS task, count(*) AS switches,\n"
	 "       count(*) / count(DISTINCT ts / 1000000000) AS a_second\n"
	 "FROM events WHERE name = 'sched_switch' GROUP BY task ORDER BY switches DESC LIMIT 10"},
	{"Where were events lost?",
	 "SELECT ts, cpu, lost_before FROM events WHERE lost_before IS NOT 0 LIMIT 20"},
};

static enum ctl_status print_examples(struct ctl *ctl)
{
	output_begin(ctl);
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
		printf("%s-- %s\n%s;\n", i > 0 ? "\n" : "", examples[i].what, examples[i].sql);
	return output_end();
}

struct asked {
	struct query_run run;
	const char *sql;
};

/* Without rights */
static int query_confined(void *userdata)
{
	struct asked *asked = userdata;
	enum ctl_status status = CTL_FAILED;

	if (query_run_begin(&asked->run) >= 0)
		status = query_run_sql(&asked->run, asked->sql);
	query_run_end(&asked->run);
	return (int)status;
}

static bool take_options(struct query_run *run)
{
	const struct ctl *ctl = run->a.ctl;

	if (!analysis_options(&run->a, 0))
		return false;
	if (ctl->task && strspn(ctl->task, "0123456789") == strlen(ctl->task) &&
	    event_filter_pids(&run->a.filter, ctl->task) < 0) {
		(void)ctl_complain(ctl, "--task=: not understood: \"%s\"", ctl->task);
		return false;
	}
	if (ctl->timeout && parse_time(ctl->timeout, &run->timeout) < 0) {
		(void)ctl_complain(ctl, "--timeout=: not understood: \"%s\"", ctl->timeout);
		return false;
	}
	if (ctl->max_memory &&
	    (parse_size(ctl->max_memory, &run->memory) < 0 || run->memory < MEMORY_MIN)) {
		(void)ctl_complain(ctl, "--max-memory=: a size of at least 4M is wanted: \"%s\"",
				   ctl->max_memory);
		return false;
	}
	if (ctl->csv && ctl->json) {
		(void)ctl_complain(ctl, "only one of --csv and --json is possible");
		return false;
	}
	return true;
}

/* A name of a session or file has no blanks in it, or has a slash, or is there */
static bool is_sql(const char *word)
{
	return strpbrk(word, " \t\n;") && access(word, F_OK) != 0;
}

static enum ctl_status run_shell(struct query_run *run, char *const *words)
{
	enum ctl_status status = CTL_FAILED;

	if (source_list_open(run->a.ctl, words, &run->a.filter, run->a.snapshots,
			     &run->a.sources) >= 0)
		status = query_shell(run);
	analysis_done(&run->a);
	return status;
}

enum ctl_status verb_query(struct ctl *ctl, int argc, char **argv)
{
	struct asked asked = {
		.run = {.a = {.ctl = ctl, .snapshots = true, .together = true}, .memory = MEMORY},
	};
	const bool sql = argc > 1 && is_sql(argv[1]);

	if (ctl->examples)
		return print_examples(ctl);
	if (argc < 2 + sql)
		return ctl_complain(ctl, "a SOURCE is missing: a trace.dat file or a session");
	if (!take_options(&asked.run)) {
		analysis_done(&asked.run.a);
		return CTL_USAGE;
	}
	asked.run.form = ctl->csv ? ROWS_CSV : ctl->json ? ROWS_JSON : ROWS_COLUMNS;
	asked.run.progress = isatty(STDERR_FILENO);
	if (!sql)
		return run_shell(&asked.run, argv + 1);
	asked.sql = argv[1];
	return analysis_run(&asked.run.a, argv + 2, query_confined, &asked);
}
