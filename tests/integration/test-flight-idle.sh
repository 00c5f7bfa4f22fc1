#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 150
#
# An idle daemon with a flight session sleeps: no wake-up, no CPU time at all, while the kernel traces.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/flight-lib.sh"
need_tracefs
WATCHED=${WATCHED:-20} # a minute shows no more

EVENT="raw_syscalls:sys_enter if $LOAD_FILTER" flight
flyrecd_start
need_command jq
load_start --rate=20000
sleep 1

# of each thread: its id, nanoseconds on a CPU, times it got one, and its context switches
look() {
	local task
	for task in "/proc/$FLYRECD_PID/task"/*; do
		echo "${task##*/}" "$(cut -d' ' -f1,3 "$task/schedstat")" \
			"$(awk '/ctxt_switches/ { printf "%s ", $2 }' "$task/status")"
	done
}
look >"$T/before"
sleep "$WATCHED"
look >"$T/after"
cat "$T/before"
diff "$T/before" "$T/after" || fail "it was woken within $WATCHED s"
[ "$(wc -l <"$T/before")" = 1 ] || fail "it has threads"

# and it is awake when it is wanted
overrun=$(sed -n 's/^entries: //p' "$(instance f)/per_cpu/cpu0/stats")
[ "$overrun" -gt 0 ] || fail "nothing is traced"
take
look >"$T/after"
! diff -q "$T/before" "$T/after" >/dev/null || fail "the figures never change"
# the file is there before its thread has ended
one_thread() {
	local tasks=("/proc/$FLYRECD_PID/task/"*)
	[ ${#tasks[@]} = 1 ]
}
wait_for 5 one_thread || fail "threads are left of a snapshot"
load_stop
verify "${SNAPSHOTS[@]}"
flyrecd_stop
