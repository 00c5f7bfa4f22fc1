#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A disk that gives errors: ext4 and xfs give up, the session lets go of the file system so that it can
# be unmounted, a session elsewhere goes on. Mounted again it records again, in the same file, and what
# is missing was counted. Where the errors pass before the file system has noticed nothing is missing.
# A sector of current.dat that cannot be read, after a kill: it is waited for, then recorded elsewhere.
# also: debian13
# time-limit: 300
. "$(dirname "$0")/../guest.sh"
. "$(dirname "$0")/disk-lib.sh"
disk ext4 ext4 100
disk xfs xfs 320
disk brief ext4 100
disk sector ext4 100 -b 4096
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
! logged "Closed all files below $STATE/brief" || fail "it did not wait for the disk"
table ext4 error_writes
table xfs error_writes
for fs in ext4 xfs; do
	must_say $fs "$STATE/$fs" 30
done
for fs in ext4 xfs; do
	must_log "Closed all files below $STATE/$fs" 60
done
is_alive
grows beside
for fs in ext4 xfs; do
	table $fs linear
	umount "$STATE/$fs" || fail "$fs: cannot unmount what was let go of"
	mount "/dev/mapper/flyrec-$fs" "$STATE/$fs"
	must_be_well $fs 60
	once "cannot write to $STATE/$fs" "Closed all files below $STATE/$fs"
done
is_alive
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

recorder sector
flyrecd_start
begin_count sector 1 --rate=300
sleep 2
current=$STATE/sector/record/current.dat
block=$(filefrag -v -b4096 "$current" | awk '$1 == "0:" { print $4 + 0 }')
[ "$block" -gt 0 ] || fail "where is the file's first block? $(filefrag -v "$current")"
sync -f "$current"
table sector bad $((block * 8))
echo 1 >/proc/sys/vm/drop_caches
flyrecd_kill
must_say sector "Input/output error" 30
[ -e "$current" ] || fail "it is renamed at once"
must_log "sector: record/current.dat is damaged" 60
must_be_well sector 60
grows sector
table sector linear
sleep 1
end_count sector
note_counters sector
flyrecd_stop
damaged=("$STATE"/sector/record/*.damaged)
[ -e "${damaged[0]}" ] || fail "it is not there any more"
accounted sector
# Only the disk was wrong with it
mv "${damaged[0]}" "$STATE/sector/record/2000.dat"
markers_are sector "--expect=$T/sector.1" "$STATE"/sector/record/2*.dat
