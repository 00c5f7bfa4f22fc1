#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
#
# The disk is full when a recording ends: the file says how much it lacks, to the event. And verify of
# nothing is an error.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command jq
MNT=$STATE/s
mkdir -p "$STATE"
mkfs_mount ext4 40M "$MNT"
session s <<-END
	[Trace]
	Event=sched:sched_process_exit if pid == 99999999
	BufferSize=256K
	[Storage]
	KeepFree=0
	MaxUse=100M
	MaxFileSize=50M
	FlushSec=200ms
	SyncIntervalSec=400ms
END

# counted MARKERS: events and losses of all CPUs are those that were written
counted() {
	local files sum
	files=("$STATE"/s/record/2*.dat)
	[ ${#files[@]} = 1 ] || fail "files: ${files[*]}"
	"$FLYRECCTL" --json verify "${files[0]}" >"$T/json" || fail "verify: $(cat "$T/json")"
	jq -r '[.files[0].cpus[] | .events, .lost_events, .lost_at_end // 0] | @text' "$T/json"
	sum=$(jq '[.files[0].cpus[] | .events + .lost_events + (.lost_at_end // 0)] | add' "$T/json")
	[ "$sum" = "$1" ] || fail "$sum events and losses, $1 were written: $(jq -c '.files[0].cpus' "$T/json")"
}
cpus=$(grep -c '^processor' /proc/cpuinfo)
full() {
	grep -q 'cannot write to .*: No space' "$FLYRECD_LOG"
}

# With a time, markers never fill a sub-buffer to its last byte: where they do (48 bytes each without one),
# the kernel has no room to say in it how many were lost before.
markers() {
	"$TOOLS/markers" "--instance=${PREFIX}s" --time --count="$1" >/dev/null
}

# fill: some markers are on the disk, then it is full, then more come than the ring buffer holds
there() {
	[ "$("$FLYRECCTL" --json verify "$STATE/s/record/current.dat" | jq '[.files[0].cpus[].events] | add')" -ge $((1000 * cpus)) ]
}
fill() {
	markers 1000
	wait_for 10 there || fail "nothing is flushed"
	dd if=/dev/zero of="$MNT/other" bs=64K status=none 2>/dev/null && fail "the disk does not become full"
	markers 200000
	wait_for 10 full || fail "not noticed that the disk is full"
}

echo "== full to the end"
flyrecd_start
fill
flyrecd_stop
must_log 'data left in the ring buffer was discarded'
counted $((201000 * cpus))
[ "$(jq '[.files[0].cpus[] | .lost_at_end // 0] | add' "$T/json")" -gt 0 ] || fail "nothing is lost at the end"
"$FLYRECCTL" verify "$STATE/s/record" | head -n 1 | grep -qE ' [1-9][0-9]* lost' || fail "verify says nothing"
rm -f "$MNT/other" "$STATE"/s/record/2*.dat

echo "== full for a while: losses are where they happened"
: >"$FLYRECD_LOG"
flyrecd_start
fill
rm "$MNT/other"
must_log 'writing again'
flyrecd_stop
counted $((201000 * cpus))
jq -e '[.files[0].cpus[] | has("lost_at_end")] | any | not' "$T/json" >/dev/null || fail "lost at the end: $(cat "$T/json")"

echo "== nothing to verify"
mkdir "$T/nothing"
refused 'nothing: no \*.dat file and no Arm snapshot in it: nothing was verified' "$FLYRECCTL" verify "$T/nothing"
refused 'missing.dat: cannot open|1 of 1 files' "$FLYRECCTL" --json verify "$T/missing.dat"
status=0
"$FLYRECCTL" verify 2>"$T/err" || status=$?
[ "$status" = 2 ] || fail "verify of no file: status $status"
grep -q 'FILE or DIR is missing' "$T/err" || fail "$(cat "$T/err")"
