#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# Task names: of a fork storm of 40,000 (at night 100,000) short tasks, each with a pid and a name of its own, at most
# 0.1 % of the events show as <...>, or under the name of an earlier task with the same pid, in
# trace-cmd report. The kernel itself remembers 32768 pids; when a segment's room for names is nearly
# full, the next one begins, and all of them have the names they need.
# may-fail: whoever else reads the table of names or sets its size makes the kernel miss names
# time-limit: 300
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd

session names <<-END
	[Trace]
	Event=sched:sched_switch
	Event=sched:sched_process_fork
	Event=sched:sched_process_exit
	BufferSize=8M
	[Storage]
	MaxUse=8G
	MaxFileSize=4G
END
# as systemd sets it on most machines; else pids are used again, and a file knows one name for each
set_sysctl kernel/pid_max 4194304

TASKS=$(thorough && echo 100000 || echo 40000)

# once: false if too many names are missing
once() {
	local segments segment
	rm -rf "$STATE"
	flyrecd_start
	"$TOOLS/forkstorm" "--count=$TASKS" --jobs=8 --list="$T/tasks"
	flyrecd_stop
	segments=("$STATE"/names/record/2*.dat)
	# A room that is nearly full ends a segment, and the next one's is four times as large; the storm
	# may be over before
	[ $((${#segments[@]} >= 1 && ${#segments[@]} <= 4)) = 1 ] || fail "segments: ${segments[*]}"
	verify "${segments[@]}"
	for segment in "${segments[@]}"; do
		trace-cmd report --nodate "$segment" 2>/dev/null
	done >"$T/report"
	# Right is what the task called itself, or was called before it did
	awk -v "tasks=$TASKS" 'NR == FNR { if ($1 in name) again = 1; name[$1] = $2; next }
		match($0, /-[0-9]+ +\[[0-9]+\]/) {
			n++
			comm = substr($0, 1, RSTART - 1); sub(/^ +/, "", comm)
			pid = substr($0, RSTART + 1); sub(/ .*/, "", pid)
			if (comm == "<...>")
				unknown++
			else if (!again && pid in name && comm != name[pid] && comm != "forkstorm")
				stale++ }
		END { bad = unknown + stale
		      printf "events=%d unknown=%d stale=%d share=%.4f%%%s\n", n, unknown, stale,
			     n ? 100 * bad / n : 100, again ? " (somebody has set pid_max)" : ""
		      exit n < 2 * tasks || bad * 1000 > n }' "$T/tasks" "$T/report"
}

once || fail "too many events without a task name: $(grep -m 3 '<\.\.\.>' "$T/report")"
