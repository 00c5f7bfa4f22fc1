#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A flight session sleeps while the kernel traces: by the scheduler's own events nothing wakes
# the daemon but the watchdog's timer, once for each ping. (A snapshot afterwards shows that these
# events would tell.)
# also: debian13
# time-limit: 180
. "$(dirname "$0")/../guest.sh"
WATCHED=${LONG:+600}
WATCHED=${WATCHED:-60}
WATCH=$TRACEFS/instances/vm-watch

session idle <<-EOT
	[Session]
	Mode=flight
	[Trace]
	Event=raw_syscalls:sys_enter if $LOAD_FILTER
	BufferSize=512K
EOT

watch_end() {
	echo 0 >"$WATCH/events/enable"
	rmdir "$WATCH"
}

seen() { # EVENT
	grep -c ": $1" "$T/trace" || true
}

flyrecd_start
load_start --rate=1000 "--duration=$((WATCHED + 300))"
sleep 1
tasks=("/proc/$FLYRECD_PID/task/"*)
[ ${#tasks[@]} = 1 ] || fail "it has threads: ${tasks[*]}"
mkdir "$WATCH"
at_end watch_end
echo "pid == $FLYRECD_PID" >"$WATCH/events/sched/sched_wakeup/filter"
for event in sendmsg clone clone3; do
	echo "common_pid == $FLYRECD_PID" >"$WATCH/events/syscalls/sys_enter_$event/filter"
done
for event in sched/sched_wakeup syscalls/sys_enter_{sendmsg,clone,clone3}; do
	echo 1 >"$WATCH/events/$event/enable"
done
grep -h '^\(entries\|overrun\)' "$(instance idle)"/per_cpu/cpu*/stats >"$T/before"
sleep "$WATCHED"
cat "$WATCH/trace" >"$T/trace"
grep -h '^\(entries\|overrun\)' "$(instance idle)"/per_cpu/cpu*/stats >"$T/after"
tasks=("/proc/$FLYRECD_PID/task/"*)
[ ${#tasks[@]} = 1 ] || fail "it has threads now: ${tasks[*]}"
born=$(seen "sys_clone")
[ "$born" = 0 ] || fail "$born threads were born meanwhile"

# sd_event(3) sends one after half to three quarters of the time
limit=$(systemctl show --property=WatchdogUSec --value flyrecd)
wakeups=$(seen sched_wakeup) pings=$(seen sys_sendmsg)
echo "$WATCHED s: $wakeups wake-ups, $pings messages; WatchdogSec=$limit"
[ "$limit" = 30s ] || fail "WatchdogSec is $limit, not 30s"
[ "$wakeups" = "$pings" ] || fail "$wakeups wake-ups and $pings pings: $(grep -v '^#' "$T/trace")"
[ "$pings" -le $((WATCHED / 15 + 1)) ] || fail "$pings pings in $WATCHED s"
[ "$pings" -ge $((WATCHED / 30)) ] || fail "$pings pings in $WATCHED s"
! cmp -s "$T/before" "$T/after" || fail "nothing was traced meanwhile: a poor test"

"$FLYRECCTL" snapshot idle >/dev/null || fail "snapshot"
cat "$WATCH/trace" >"$T/trace"
[ "$(seen sched_wakeup)" -gt "$wakeups" ] || fail "nothing wakes it, by these events: a poor test"
load_stop
verify "$STATE/idle"
flyrecd_stop
