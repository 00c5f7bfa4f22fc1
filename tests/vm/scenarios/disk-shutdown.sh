#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# An xfs that shuts down without having written its log: as after an error, and what the file has lost
# by that is counted as not written.
# also: debian13
# time-limit: 300
. "$(dirname "$0")/../guest.sh"
. "$(dirname "$0")/disk-lib.sh"
disk xfs xfs 320
recorder xfs SyncIntervalSec=1h
recorder beside
flyrecd_start
count xfs 1 --count=1000
sleep 1 # flushed, so that it is in the file, and not synced
begin_count xfs 2 --rate=300
begin_count beside 1 --rate=300
xfs_io -x -c shutdown "$STATE/xfs"
must_say xfs "Input/output error" 30
must_log "Closed all files below $STATE/xfs" 60
is_alive
grows beside
umount "$STATE/xfs" || fail "cannot unmount what was let go of"
must_say xfs "no longer mounted" 30
[ -z "$(ls -A "$STATE/xfs")" ] || fail "something was written below the mount point"
mount /dev/mapper/flyrec-xfs "$STATE/xfs"
must_be_well xfs 60
sleep 1
once "cannot write to $STATE/xfs" "Closed all files below $STATE/xfs" "no longer mounted" "writing again"
for name in xfs beside; do
	end_count $name
	note_counters $name
done
flyrecd_stop
accounted xfs
accounted beside
[ "$(jq '[.sessions[0].cpus[].not_written] | add' "$T/xfs.stats")" -gt 0 ] || fail "nothing was counted as not written"
