#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A CPU goes away and comes back while it is recorded: what it had traced stays, it goes on afterwards.
# time-limit: 150
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command taskset trace-cmd
need_tool check-markers libtracecmd-open

online=/sys/devices/system/cpu/cpu1/online
[ "$(cat $online 2>/dev/null)" = 1 ] || skip "no CPU here that can be switched off"
echo 0 >$online 2>/dev/null || skip "this CPU cannot be switched off"
cpu_back() {
	echo 1 >$online
}
at_end cpu_back
cpu_back

session plug <<-EOF
	[Trace]
	Event=sched:sched_switch
	[Storage]
	FlushSec=200ms
EOF
flyrecd_start
markers_start plug 2000 --cpus=0
echo "flyrec-test before" >"$T/before"
taskset -c 1 cp "$T/before" "$(instance plug)/trace_marker"
echo 0 >$online
sleep 0.5
flyrecd_hand_over # and one that starts while the CPU is away
flyrecd_start
sleep 0.3
echo 1 >$online
echo "flyrec-test after" >"$T/after"
taskset -c 1 cp "$T/after" "$(instance plug)/trace_marker"
sleep 0.5
markers_stop
flyrecd_stop
file=$(echo "$STATE"/plug/record/2*.dat)
verify "$file"
markers_check plug
trace-cmd report --cpu 1 "$file" >"$T/report" 2>/dev/null
grep -q 'flyrec-test before' "$T/report" || fail "what the CPU had traced before it went is lost"
grep -q 'flyrec-test after' "$T/report" || fail "the CPU that came back is not recorded"
! logged 'failed' || fail "$(grep failed "$FLYRECD_LOG")"
