#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 240
#
# A file system that dies under a recording (shut down, as after an error) is let go of, so that it can
# be unmounted; other sessions go on; when it is mounted again the recording goes on in the same file
# by itself, and what the disk has not kept is counted. The same for the state directory as a whole,
# which may also be read-only when flyrecd starts, or be mounted over later.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
need_command xfs_io jq
need_tool check-markers

failure() {
	"$FLYRECCTL" "--runtime-dir=$RUNTIME" --json status s | jq -r '.sessions[0].failure'
}

fails_with() {
	[[ $(failure) == *$1* ]]
}

count_log() {
	grep -c -e "$1" "$FLYRECD_LOG" || true
}

# gone MOUNTPOINT: the file system there dies under the recording, and comes back
gone() {
	write_markers 2000
	sleep 1
	xfs_io -x -c "shutdown -f" "$1" || skip "cannot shut a file system down"
	markers_begin --rate=1000
	wait_for 10 fails_with "Input/output error" || fail "status says nothing: $(failure)"
	wait_for 40 log_has 'let go of' || fail "not let go of"
	umount "$1" || fail "cannot unmount what flyrecd has let go of"
	unset 'MOUNTS[-1]'
	wait_for 20 fails_with "no longer mounted" || fail "status: $(failure)"
	[ -z "$(ls -A "$1")" ] || fail "wrote below the mount point: $(ls -A "$1")"
	mount -t xfs "${LOOPS[-1]}" "$1" && MOUNTS+=("$1")
	wait_for 20 log_has 'writing again' || fail "does not go on"
	wait_for 5 fails_with "" || fail "status still has: $(failure)"
	sleep 1
	markers_end
}

storage MaxUse=200M KeepFree=0 FlushSec=200ms SyncIntervalSec=200ms

echo "== one session's file system"
mkfs_mount xfs 400M "$STATE/s"
session beside <<-EOF
	[Trace]
	Event=raw_syscalls:sys_enter if $LOAD_FILTER
	[Storage]
	FlushSec=200ms
EOF
flyrecd_start
gone "$STATE/s"
before=$(stat -c %b "$STATE/beside/record/current.dat")
load_start --duration=1
wait "$LOAD_PID" || true
grown() { [ "$(stat -c %b "$STATE/beside/record/current.dat")" -gt "$before" ]; }
wait_for 10 grown || fail "the other session stands still"
for text in 'cannot write to' 'let go of' 'no longer mounted' 'writing again'; do
	[ "$(count_log "$text")" = 1 ] || fail "said $(count_log "$text") times: $text"
done
flyrecd_stop
rm "$CONFIG/sessions.d/beside.conf"
all_right "one session's file system"
