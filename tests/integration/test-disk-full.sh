#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 300
#
# A full or failing disk: nothing that is in the ring buffer is taken out for nothing, draining goes on
# by itself when there is room again, other sessions do not notice, and it is said once.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
need_tool check-markers
MNT=$STATE/s # one session's directory is a small file system, the other's is not

free() {
	df --output=avail --block-size=1 "$MNT" | tail -n 1
}

# fill LEAVE: somebody else's file takes all but so many bytes; with 0 also what xfs reserves for a file
# that grows, and gives back once it is written
fill() {
	local n
	n=$(($(free) - $1))
	[ $n -le 0 ] || fallocate -l "$n" "$MNT/other" 2>/dev/null ||
		dd if=/dev/zero of="$MNT/other" bs=64K count=$((n / 65536)) status=none 2>/dev/null || true
	while [ "$1" = 0 ] && dd if=/dev/zero bs=4K count=1 status=none >>"$MNT/other.rest"; do
		dd if=/dev/zero bs=4K status=none >>"$MNT/other.rest" || true
		sync -f "$MNT/other.rest"
	done 2>/dev/null
}

six_segments() {
	local i
	for i in 1 2 3 4 5 6; do
		write_markers 100000
		kill -USR2 "$FLYRECD_PID"
		wait_for 60 has_segments "$i" || fail "no rotation"
	done
}

other_session() {
	session beside <<-EOF
		[Trace]
		Event=raw_syscalls:sys_enter
		[Storage]
		FlushSec=200ms
	EOF
}

# the other session's file grows
other_grows() {
	local before
	before=$(stat -c %b "$STATE/beside/record/current.dat")
	background "$TOOLS/storm" --count=100000 >/dev/null
	wait $! || true
	grown() { [ "$(stat -c %b "$STATE/beside/record/current.dat")" -gt "$before" ]; }
	wait_for 10 grown || fail "$1: the other session stands still"
}

count_log() {
	grep -c -e "$1" "$FLYRECD_LOG" || true
}

live_is_valid() {
	verify "$(REC)/current.dat"
}

away() { # take the file system and what was recorded away
	umount "$MNT"
	unset 'MOUNTS[-1]'
	rm -rf "$STATE" "$T"/expect.*
	N_EXPECT=0
	: >"$FLYRECD_LOG"
}

mkdir -p "$STATE"
for fs in ${FS:-ext4 xfs tmpfs}; do
	# --- nothing of ours to remove: draining pauses, loses nothing that the ring buffer holds
	mkfs_mount "$fs" 400M "$MNT"
	other_session
	BUFFER=64M storage MaxUse=250M MaxFileSize=100M KeepFree=0 FlushSec=200ms SyncIntervalSec=500ms
	flyrecd_start
	write_markers 1000
	fill 0
	markers_begin --rate=20000
	wait_for 30 log_has 'cannot write to .*s/record/current.dat: No space' || fail "$fs: not noticed that the disk is full"
	live_is_valid "$fs, full"
	other_grows "$fs, full"
	sleep 1.5
	[ "$(count_log 'No space')" = 1 ] || fail "$fs: said $(count_log 'No space') times that there is no space"
	live_is_valid "$fs, still full"
	rm -f "$MNT"/other*
	wait_for 10 log_has 'writing again' || fail "$fs: does not go on although there is room"
	markers_end
	flyrecd_stop
	all_right "$fs, full for a while"
	echo "$fs: full for a while: nothing lost"
	away

	# --- there are old segments: they make way, at once
	mkfs_mount "$fs" 400M "$MNT"
	BUFFER=64M storage MaxUse=250M MaxFileSize=100M KeepFree=30M FlushSec=200ms SyncIntervalSec=500ms
	rm -f "$CONFIG/sessions.d/beside.conf"
	flyrecd_start
	six_segments
	fill $((1 << 20))
	markers_begin --rate=5000
	gone() { [ "$(n_segments)" -lt 6 ]; }
	wait_for 30 gone || fail "$fs: no segment makes way"
	room() { [ "$(free)" -ge $((20 << 20)) ]; }
	wait_for 10 room || fail "$fs: KeepFree=30M, $(free) bytes are free"
	sleep 0.5
	[ "$(n_segments)" -ge 1 ] || fail "$fs: all segments are gone"
	markers_end
	rm -f "$MNT"/other*
	flyrecd_stop
	echo "$fs: $(n_segments) segments left of 7"
	all_right "$fs, segments make way" --allow-lost-at-start
	away
done

# --- no inode for the next segment
mkfs_mount ext4 200M "$MNT" -N 64
storage MaxUse=100M KeepFree=0 FlushSec=200ms
flyrecd_start
write_markers 1000
i=0
while touch "$MNT/inode.$i" 2>/dev/null; do
	i=$((i + 1))
done
kill -USR2 "$FLYRECD_PID"
wait_for 10 log_has 'cannot begin a new segment, going on in the old one' || fail "no word of the lack of inodes"
write_markers 1000
live_is_valid "no inodes"
rm "$MNT"/inode.*
kill -USR2 "$FLYRECD_PID"
wait_for 60 has_segments 1 || fail "no rotation although there are inodes again"
write_markers 1000
flyrecd_stop
all_right "no inodes"
[ "$(count_log 'cannot begin a new segment')" = 1 ] || fail "said more than once that there are no inodes"
away

# --- read-only, and one that gives nothing but errors: the daemon and the other session live
failing() { # WHAT EXPECTED-ERROR COMMAND...
	local what=$1 error=$2
	shift 2
	other_session
	storage MaxUse=100M KeepFree=0 FlushSec=200ms SyncIntervalSec=300ms
	flyrecd_start
	write_markers 1000
	sleep 1.5 # flushed and synced
	"$@" || skip "cannot make a file system fail here ($what)"
	"$TOOLS/markers" "--instance=${PREFIX}s" --count=1000 >/dev/null
	wait_for 20 log_has "record/current.dat.*: $error" || fail "$what: not noticed"
	other_grows "$what"
	sleep 1
	flyrecd_stop
	verify "$STATE/beside/record"
	mount_anew "$(blkid -o value -s TYPE "${LOOPS[-1]}")" "$MNT"
	flyrecd_start
	flyrecd_stop
	rm -f "$(REC)"/*.damaged
	all_right "$what" --allow-lost-at-end
	away
}
mkfs_mount ext4 200M "$MNT" -e remount-ro
ext4_error() {
	echo 1 >"/sys/fs/ext4/${LOOPS[-1]##*/}/trigger_fs_error"
}
failing "read-only" "Read-only file system" ext4_error
need_command xfs_io
mkfs_mount xfs 400M "$MNT"
failing "xfs with errors" "Input/output error" xfs_io -x -c "shutdown -f" "$MNT"

echo "== others fill the disk while it does not run: old segments make room for the start"
mkfs_mount xfs 400M "$MNT"
storage MaxUse=300M KeepFree=24M MaxFiles=0 FlushSec=200ms
flyrecd_start
six_segments
flyrecd_stop
before=$(n_segments)
fill 0
log_mark
flyrecd_start
must_log "s: no room to begin: retention removed [1-9]"
must_log "s: recording"
after=$(n_segments)
[ $((after > 0 && after < before)) = 1 ] || fail "$after segments, before $before"
! logged "session failed" || fail "it had failed before"
flyrecd_stop
away
