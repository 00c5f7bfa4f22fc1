#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# SIGKILL again and again at random times, also while it starts and while it finishes a segment,
# under load, with the file descriptor store of systemd: each marker comes out once and in order.
# also: debian13 debian12
# time-limit: 600
. "$(dirname "$0")/../guest.sh"
KILLS=${LONG:+1000}
KILLS=${KILLS:-40}

# Room for all of it: what retention evicts would be missing
mkfs.ext4 -q -F "$DATA_DISK" || skip "no data disk"
mkdir -p "$STATE/kill"
mount "$DATA_DISK" "$STATE/kill"
leave_disk() {
	systemctl stop flyrecd
	umount "$STATE/kill"
}
at_end leave_disk

# A low watermark and a short flush, so that pipes and memfds have something to lose
session kill <<-EOT
	[Trace]
	Event=sched:sched_switch
	BufferSize=8M
	BufferPercent=1
	[Storage]
	FlushSec=100ms
	MaxUse=100G
	KeepFree=0
	MaxFiles=0
EOT
# Most of the time that a start takes where a CPU is emulated is the sandbox, which others test
drop_in kill <<-EOT
	[Unit]
	StartLimitIntervalSec=0
	[Service]
	RestartSec=0
	$(systemctl cat flyrecd | sed -nE 's/^((ReadOnly|ReadWrite|Inaccessible)Paths=).*/\1/p
		s/^((Private|Protect)[A-Za-z]*=|RestrictNamespaces=).*/\1no/p' | sort -u |
		sed -E 's/^(ProtectProc=)no/\1default/')
	SystemCallFilter=
EOT

# It has workers: it records
has_threads() {
	local tasks=("/proc/$FLYRECD_PID/task/"*)
	if is_started; then
		FLYRECD_PID=$STARTED_PID
		return
	fi
	[ ${#tasks[@]} -gt 1 ]
}

# rotate: begun, and perhaps done
rotate() {
	local segments=("$STATE"/kill/record/2*.dat "$STATE"/kill/record/.*.finishing)
	ROTATIONS=${#segments[@]}
	kill -USR2 "$FLYRECD_PID"
	wait_for 60 is_rotating || fail "kill $i: no rotation"
}

is_rotating() {
	local segments=("$STATE"/kill/record/2*.dat "$STATE"/kill/record/.*.finishing)
	[ ${#segments[@]} -gt "$ROTATIONS" ]
}

# fill_pipes: it may not write to its file any more: what it takes stays in the pipes
fill_pipes() {
	prlimit --pid "$FLYRECD_PID" --fsize=4096:
	sleep 0.5
}

flyrecd_start
markers_start kill 300
WAIT_PAUSE=0.02 # not after the start that is to be killed
for ((i = 0; i < KILLS; i++)); do
	# Every other time while it starts, else it would never get anywhere
	[ $((i % 2)) = 0 ] || wait_for 60 has_threads || fail "kill $i: does not record"
	[ $((i % 10)) != 9 ] || rotate
	[ $((i % 10)) != 5 ] || fill_pipes
	sleep "0.$(printf '%03d' $((RANDOM % 600)))"
	kill -KILL "$FLYRECD_PID" || fail "kill $i: it had ended by itself: $(flyrecd_log | tail -n 5)"
	wait_for 60 is_started || fail "kill $i: not started again: $(flyrecd_log | tail -n 5)"
	FLYRECD_PID=$STARTED_PID
	[ $((i % 20)) != 0 ] || echo "$SECONDS s: $i kills"
done
wait_for 60 is_active || fail "not active after the last kill: $(flyrecd_log | tail -n 5)"
restarts=$(property NRestarts)
sleep 1
markers_stop
flyrecd_stop

segments=("$STATE"/kill/record/2*.dat)
recorded=$(flyrecd_log | grep -c 'kill: recording' || true)
echo "$KILLS kills, $restarts restarts, $recorded times recording, ${#segments[@]} segments"
[ "$restarts" -ge "$KILLS" ] || fail "$restarts restarts for $KILLS kills"
[ "$recorded" -ge $((KILLS / 2)) ] || fail "it recorded $recorded times: a poor test"
[ ${#segments[@]} -gt 1 ] || fail "no rotation: a poor test"
taken=$(flyrecd_log | grep -c 'bytes past the recorded size' || true)
echo "$taken times bytes beyond the recorded sizes were taken in"
[ "$taken" -gt 0 ] || fail "nothing was in flight in any of the kills: a poor test"
in_hand=$(flyrecd_log | grep -c 'bytes that the earlier process had in hand' || true)
echo "$in_hand times pipes had something in them"
[ "$in_hand" -ge $((KILLS / 20)) ] || fail "pipes had something in them $in_hand times only: a poor test"
! logged 'session failed' || fail "$(flyrecd_log | grep -m 1 'session failed')"
! logged 'may be lost' || fail "wrong data: not from the file descriptor store: $(flyrecd_log | grep -m 1 'may be lost')"
verify "$STATE/kill"
no_damage
markers_check kill
tail -n 1 "$T/check"
