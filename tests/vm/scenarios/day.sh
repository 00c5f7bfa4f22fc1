#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A day as it is: a session that records, one that waits for snapshots, which come each half hour; a
# reload every four hours, a restart every six, a SIGKILL every eight. Segments are of an hour, and
# retention keeps six hours. What flyrecd holds stays as it was, no marker is lost or doubled.
# machines: see outside/day.sh
# time-limit: 9000
. "$(dirname "$0")/../guest.sh"
HALF_HOURS=$((${MINUTES:-0} > 0 ? MINUTES / 30 : 48))

session day <<-EOT
	[Trace]
	Event=sched:sched_process_exec
	[Storage]
	MaxFileSec=1h
	MaxRetentionSec=6h
EOT
session flight <<-EOT
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_process_exec
	BufferSize=256K
	[Snapshot]
	MaxFiles=10
EOT

begin() { # when, by the clock that nobody sets
	cut -d . -f 1 /proc/uptime
}

# A process is looked at before it ends: it holds what it held an hour after its beginning
disturb() { # HALF-HOURS
	[ $(($1 % 8)) != 0 ] || systemctl reload flyrecd || fail "reload: $(flyrecd_log | tail -n 5)"
	if [ $(($1 % 16)) = 0 ]; then
		flyrecd_kill
	elif [ $(($1 % 12)) = 0 ]; then
		flyrecd_hand_over
	else
		return 0
	fi
	young=2
}

flyrecd_start
markers_start day 5
began=$(begin)
young=2
for ((half = 1; half <= HALF_HOURS; half++)); do
	sleep 1800
	"$FLYRECCTL" snapshot flight >"$T/taken" 2>&1 || fail "snapshot: $(cat "$T/taken")"
	sleep 10
	say "hour $((half / 2)) of $((HALF_HOURS / 2))"
	held "after $(($(begin) - began)) s"
	if [ $((--young)) = 0 ]; then
		held_keep
	elif [ $young -lt 0 ]; then
		held_check
	fi
	disturb "$half"
done
"$FLYRECCTL" status day
markers_stop
flyrecd_stop
! flyrecd_log | grep 'lost\|overwritten\|does not answer\|failed' || fail "it complained"
segments=("$STATE"/day/record/2*.dat) taken=("$STATE"/flight/snapshot/2*.dat)
echo "${#segments[@]} segments and ${#taken[@]} snapshots are left"
[ "${#segments[@]}" -ge $((HALF_HOURS < 12 ? HALF_HOURS / 2 : 6)) ] || fail "segments are missing"
[ "${#segments[@]}" -le 12 ] || fail "no retention"
[ "${#taken[@]}" -le 11 ] || fail "no retention of snapshots"
verify "$STATE"
markers_check day --allow-lost-at-start
