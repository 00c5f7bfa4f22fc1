#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Days in minutes: 2000 rotations and 2000 snapshots, two at a time, with retention. What flyrecd holds
# (memory, files, threads, instances) stays as it was after the first ones, its directory within
# its limits, and what retention has left is whole.
# also: debian12 debian13
# time-limit: 900
. "$(dirname "$0")/../guest.sh"
TURNS=${LONG:+10000}
TURNS=${TURNS:-2000}
LIMIT=100 # MiB, each kind

daemon_config <<-EOT
	[Storage]
	MaxUse=${LIMIT}M
	KeepFree=0
	[Snapshot]
	MaxUse=${LIMIT}M
EOT
session week <<-EOT
	[Trace]
	Event=sched:sched_process_exit
	BufferSize=256K
	[Storage]
	FlushSec=1s
EOT
session flight <<-EOT
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_switch
	BufferSize=64K
EOT

# Nothing is under way: no hidden file, no thread of a snapshot
settled() {
	! find "$STATE"/*/{record,snapshot} -name '.*' 2>/dev/null | grep -q . && [ "$(process_status Threads)" = "$IDLE_THREADS" ]
}

FILES=0
# turns COUNT: rotations and snapshots, the last one of each by a process of its own
turns() {
	local rotate files
	files=$("$TOOLS/turns" "$RUNTIME/control" $(($1 - 1)) week flight) || fail "turns"
	FILES=$((FILES + files + 2))
	"$FLYRECCTL" rotate week >"$T/rotated" 2>&1 &
	rotate=$!
	"$FLYRECCTL" snapshot flight >"$T/taken" 2>&1 || fail "snapshot: $(cat "$T/taken")"
	wait "$rotate" || fail "rotate: $(cat "$T/rotated")"
	wait_for 60 settled || fail "not settled: $(find "$STATE"/*/* -name '.*')"
}

# part: a fifth of the turns, or of the minutes where these are more
part() {
	local end=$((SECONDS + ${MINUTES:-0} * 12)) until=$((DONE + TURNS / 5))
	while [ $DONE -lt $until ] || [ $SECONDS -lt $end ]; do
		turns 20
		DONE=$((DONE + 20))
	done
}

# Names of tasks are kept for each pid, of which there are few enough here to have been through them all
# before it is warm
echo 2048 >/proc/sys/kernel/pid_max
flyrecd_start
IDLE_THREADS=$(process_status Threads)
markers_start week 200
sleep 1
# Until retention has begun, and then some
for _ in 1 2 3; do
	turns 20
done
held "warm"
held_keep
DONE=0
for _ in 1 2 3 4 5; do
	part
	for dir in week/record flight/snapshot; do
		used=$(du --summarize --block-size=1M "$STATE/$dir" | cut -f 1)
		# the live segment with what is preallocated, and a file that is being written, beside it
		[ "$used" -le $((LIMIT * 5 / 4)) ] || fail "$dir has $used MiB, not $LIMIT"
	done
	held "$DONE turns"
done
held_check
[ "$(property NRestarts)" = 0 ] || fail "it was started again"
markers_stop
flyrecd_stop
segments=("$STATE"/week/record/2*.dat) taken=("$STATE"/flight/snapshot/2*.dat)
echo "${#segments[@]} segments and ${#taken[@]} snapshots are left of $FILES files"
[ "$FILES" -ge $((TURNS * 19 / 10)) ] || fail "$FILES files only: a poor test"
[ $((${#segments[@]} + ${#taken[@]})) -lt $((FILES / 2)) ] || fail "no retention: a poor test"
verify "$STATE"
markers_check week --allow-lost-at-start
