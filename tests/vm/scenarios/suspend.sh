#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The machine sleeps three times, its memory kept, while sessions record and are in flight: no marker
# is lost or doubled, and events before, between and after have the right wall-clock time, with a clock
# that goes on in a sleep (boot) and one that does not (mono: in the segment that flyrecd then begins).
# flyrecd is not taken for hung.
# also: debian13 debian12
# time-limit: 240
. "$(dirname "$0")/../guest.sh"
. "$(dirname "$0")/clock-lib.sh"
sleeps=3
[ -z "${LONG:-}" ] || sleeps=50
alarm=/sys/class/rtc/rtc0/wakealarm
if ! grep -qw deep /sys/power/mem_sleep || [ ! -w $alarm ]; then
	skip "this machine cannot sleep"
fi
echo deep >/sys/power/mem_sleep

for clock in boot mono; do
	session $clock <<-EOT
		[Trace]
		Event=sched:sched_process_exec
		Clock=$clock
		BufferSize=256K
		[Storage]
		FlushSec=500ms
	EOT
done
session flight <<-EOT
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_process_exec
	Clock=boot
	BufferSize=256K
EOT
flyrecd_start
# Alive within 30 s, by a clock that does not go on in a sleep
[ "$(property WatchdogUSec)" != 0 ] || fail "no watchdog"

markers_start boot 100
declare -a AFTER BEFORE
# Each has a name of its own
tell() { # NUMBER
	cp /usr/bin/true "$T/true$1.x"
	exec_now "$T/true$1.x"
	AFTER[$1]=$AFTER_USEC BEFORE[$1]=$BEFORE_USEC
}

slept() { # seconds that this machine has slept since it was started
	local up
	up=$(cut -d. -f1 /proc/uptime)
	# shellcheck disable=SC2016 # of awk
	awk -v up="$up" '/^now at/ { print int(up - $3 / 1000000000) }' /proc/timer_list
}

tell 0
slept_before=$(slept) slept=0
for ((i = 1; i <= sleeps; i++)); do
	sleep 1
	inode=$(stat -c %i "$STATE/mono/record/current.dat")
	echo 0 >$alarm
	echo +10 >$alarm
	echo mem >/sys/power/state || fail "the machine does not sleep: $(dmesg | tail -n 3)"
	# The alarm of an emulated machine comes early, once it has rung at once
	if [ "$(slept)" -ge $((slept_before + slept + 2)) ]; then
		wait_for 30 is_another_file mono "$inode" || fail "no new segment although the clock stood still"
	fi
	slept=$(($(slept) - slept_before))
	echo "sleep $i: $slept s in all"
	tell "$i"
done
[ "$slept" -ge 2 ] || fail "slept for $slept s only"
snapshot=$("$FLYRECCTL" snapshot flight) || fail "no snapshot"
sleep 1
markers_stop
flyrecd_stop
[ "$(property NRestarts)" = 0 ] || fail "flyrecd was started again: $(flyrecd_log | tail -n 5)"

for ((i = 0; i <= sleeps; i++)); do
	AFTER_USEC=${AFTER[i]} BEFORE_USEC=${BEFORE[i]}
	has_exec "$T/true$i.x" "$snapshot"
	for clock in boot mono; do
		file=$(grep -laF "$T/true$i.x" "$STATE/$clock"/record/2*.dat) || fail "$clock: no event after sleep $i"
		# A sleep of less than a second is not worth a segment
		by=1100000
		[ $clock = mono ] || by=100000
		has_exec "$T/true$i.x" "$file" $by
	done
done
verify "$STATE"
markers_check boot
