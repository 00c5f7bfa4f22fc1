#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
# tests: fast
#
# Retention of snapshots: the default of their MaxUse= is a tenth of the file system, whatever that of
# the segments is; for KeepFree= the older ones make way, not the segments, and not the new one.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
state_on ext4 400M
KEEP=$((100 << 20))

take() { # prints its path
	ctl snapshot s || fail "no snapshot"
}

used() { # FILE...: bytes on the disk
	du -c --block-size=1 "$@" | tail -n 1 | cut -f1
}

free() {
	df --output=avail --block-size=1 "$T/ext4" | tail -n 1
}

snapshots() {
	SNAPSHOTS=("$STATE"/s/snapshot/2*.dat)
}

# fill FREE: somebody else's file leaves so much
fill() {
	sync -f "$T/ext4"
	fallocate -l $(($(free) - $1)) "$T/ext4/other"
}

# keeps_free: with room for half of another one, the third takes that of the oldest
keeps_free() {
	local first second third
	first=$(take)
	second=$(take)
	fill $((KEEP + $(used "$second") / 2))
	third=$(take)
	[ -e "$third" ] || fail "$1: the new one is gone"
	[ ! -e "$first" ] || fail "$1: the oldest is still there, with $(free) bytes free"
	[ -e "$second" ] || fail "$1: more is gone than had to"
	[ "$(free)" -ge "$KEEP" ] || fail "$1: $(free) bytes are free"
}

# what is removed while it is analysed is gone, and its room free, only a moment later
daemon_config <<-EOF
	[Snapshot]
	Analyze=no
EOF

# --- MaxUse=
storage MaxUse=300M KeepFree=0 FlushSec=100ms
flyrecd_start
write_markers 60000
limit=$(($(stat -f -c '%b * %S' "$T/ext4") / 10)) made=0 n=0
while [ "$made" -le $((limit * 3 / 2)) ]; do
	[ $((n += 1)) -lt 30 ] || fail "the test makes too little: $made bytes"
	file=$(take)
	[ -e "$file" ] || fail "MaxUse: the new one is gone"
	made=$((made + $(used "$file")))
	snapshots
	[ "$(used "${SNAPSHOTS[@]}")" -le "$limit" ] ||
		fail "MaxUse: $(used "${SNAPSHOTS[@]}") bytes of snapshots, a tenth is $limit"
done
snapshots
[ ${#SNAPSHOTS[@]} -ge 2 ] || fail "MaxUse: only ${#SNAPSHOTS[@]} of $n are left"
echo "MaxUse: ${#SNAPSHOTS[@]} of $n are left"
flyrecd_stop

# --- KeepFree=
rm -rf "$STATE" "$T"/expect.*
storage MaxUse=300M MaxFileSize=4M KeepFree=$KEEP SyncIntervalSec=200ms FlushSec=100ms
flyrecd_start
write_markers 60000
kill -USR2 "$FLYRECD_PID"
finished() {
	segments=("$STATE"/s/record/2*.dat)
	[ ${#segments[@]} -ge 1 ] && [ -z "$(find "$(REC)" -name '.*.finishing')" ]
}
wait_for 20 finished || fail "no segment is finished"
sleep 0.5 # synced, and nothing more comes
before=("$(REC)"/2*.dat)
keeps_free record
write_markers 100
sleep 1 # synced
after=("$(REC)"/2*.dat)
[ "${before[*]}" = "${after[*]}" ] || fail "segments made way: ${before[*]}, now ${after[*]}"
flyrecd_stop

# --- in flight
rm -rf "$STATE" "$T/ext4/other" "$T"/expect.*
session s <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_process_exec
	[Storage]
	KeepFree=$KEEP
EOF
flyrecd_start
write_markers 20000
keeps_free flight
# nothing else to remove: the newest stays
rm "$STATE"/s/snapshot/2*.dat "$T/ext4/other"
fill $KEEP
file=$(take)
[ -e "$file" ] || fail "the only one is gone"
[ "$(free)" -lt "$KEEP" ] || fail "there was room enough: the test tests nothing"
flyrecd_stop
