#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Task names: of a fork storm of 100,000 short tasks, each with a pid and a name of its own, at most
# 0.1 % of the events show as <...> in trace-cmd report. The kernel itself remembers 32768 pids.
# time-limit: 180
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd

session names <<-END
	[Trace]
	Event=sched:sched_switch
	Event=sched:sched_process_fork
	Event=sched:sched_process_exit
	BufferSize=16M
	[Storage]
	MaxUse=8G
	MaxFileSize=4G
END
# as systemd sets it on most machines; else pids are used again, and a file knows one name for each
set_sysctl kernel/pid_max 4194304
flyrecd_start
"$TOOLS/forkstorm" --count=100000 --jobs=8 --list="$T/tasks"
flyrecd_stop
segments=("$STATE"/names/record/2*.dat)
[ "${#segments[@]}" = 1 ] || fail "not one segment: ${segments[*]}"
verify "${segments[@]}"
trace-cmd report --nodate "${segments[@]}" >"$T/report" 2>/dev/null
awk '/-[0-9]+ +\[[0-9]+\]/ { n++ } /^ *<\.\.\.>-[0-9]+ +\[[0-9]+\]/ { unknown++ }
	END { printf "events=%d unknown=%d share=%.4f%%\n", n, unknown, n ? 100 * unknown / n : 100
	      exit n < 200000 || unknown * 1000 > n }' "$T/report" ||
	fail "too many events without a task name: $(grep -m 3 '<\.\.\.>' "$T/report")"

# And they are the right ones: what the task called itself, or was called before it did
awk 'NR == FNR { name[$1] = $2; next }
	match($0, /-[0-9]+ +\[[0-9]+\]/) {
		comm = substr($0, 1, RSTART - 1); sub(/^ +/, "", comm)
		pid = substr($0, RSTART + 1); sub(/ .*/, "", pid)
		if (pid in name && comm != "<...>") {
			n++; if (comm != name[pid] && comm != "forkstorm") wrong++ } }
	END { printf "of forkstorm: events=%d wrong=%d\n", n, wrong
	      exit n < 100000 || wrong * 1000 > n }' "$T/tasks" "$T/report" || fail "wrong task names"
