#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Files carry the clock of their session and the right wall-clock time, whatever this kernel thinks of
# its TSC, and a region for each CPU that is possible. outside/cpus.sh runs this on other machines.
# machines: debian12
# time-limit: 120
. "$(dirname "$0")/../guest.sh"
. "$(dirname "$0")/clock-lib.sh"
clocks=(local global mono boot)
possible=$(sed 's/.*-//' /sys/devices/system/cpu/possible)
selected=$(sed -n 's/.*\[\(.*\)\].*/\1/p' "$TRACEFS/trace_clock")
case $(cat /proc/cmdline) in
*tsc=unstable*) [ "$selected" = global ] || fail "the kernel's clock is $selected" ;;
*) [ "$selected" = local ] || fail "the kernel's clock is $selected" ;;
esac
echo "clock $selected, CPUs 0-$possible"

for clock in "${clocks[@]}"; do
	session "$clock" <<-EOF
		[Trace]
		Event=sched:sched_process_exec
		Clock=$clock
		BufferSize=16K
	EOF
done
session flight <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_process_exec
	Clock=$selected
	BufferSize=16K
EOF
flyrecd_start
exec_now /usr/bin/true
snapshot=$("$FLYRECCTL" snapshot flight --last=1min)
"$FLYRECCTL" snapshot local --last=1min >/dev/null || fail "no range of clock local"
flyrecd_stop

right() { # FILE CLOCK
	has_exec /usr/bin/true "$1"
	grep -qx "cpus=$((possible + 1))" "$T/report" || fail "$1: $(head -n 1 "$T/report")"
	tr '\0' '\n' <"$1" | grep -aE "^\[?local\]? .*global" >"$T/clock" || fail "$1 names no clock"
	grep -aqF "[$2]" "$T/clock" || fail "$1 has another clock: $(cat "$T/clock")"
}

for clock in "${clocks[@]}"; do
	right "$(echo "$STATE/$clock"/record/2*.dat)" "$clock"
done
right "$snapshot" "$selected"
verify "$STATE"
