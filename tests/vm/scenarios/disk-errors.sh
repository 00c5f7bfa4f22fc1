#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A disk that gives errors: ext4 and xfs give up, the session lets go of the file system so that it can
# be unmounted, a session elsewhere goes on. Mounted again it records again, in the same file, and what
# is missing was counted. Where the errors pass before the file system has noticed nothing is missing.
# machines: debian13
# time-limit: 300
. "$(dirname "$0")/../guest.sh"
. "$(dirname "$0")/disk-lib.sh"
disk ext4 ext4 100
disk xfs xfs 320
disk brief ext4 100
mount -o remount,commit=3600 "$STATE/brief" # its journal has nothing to write meanwhile
for name in ext4 xfs beside; do
	recorder $name
done
recorder brief SyncIntervalSec=1h
flyrecd_start
for name in ext4 xfs beside brief; do
	begin_count $name 1 --rate=300
done
sleep 2
table brief error_writes
must_say brief "$STATE/brief" 30
table brief linear
must_be_well brief 30
grows brief
once "brief: cannot write to" "brief: writing again"
! logged "$STATE/brief: its file system is let go of" || fail "it did not wait for the disk"
table ext4 error_writes
table xfs error_writes
for fs in ext4 xfs; do
	must_say $fs "$STATE/$fs" 30
done
for fs in ext4 xfs; do
	must_log "$STATE/$fs: its file system is let go of" 60
done
is_alive
grows beside
for fs in ext4 xfs; do
	table $fs linear
	umount "$STATE/$fs" || fail "$fs: cannot unmount what was let go of"
	mount "/dev/mapper/flyrec-$fs" "$STATE/$fs"
	must_be_well $fs 60
	once "cannot write to $STATE/$fs" "$STATE/$fs: its file system is let go of"
done
sleep 1
for name in ext4 xfs beside brief; do
	end_count $name
	note_counters $name
done
is_alive
flyrecd_stop
for name in ext4 xfs beside brief; do
	accounted $name
done
