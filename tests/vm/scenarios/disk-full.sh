#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A full disk, of blocks and of inodes, on ext4 and xfs: said once, seen in status, recording goes on
# by itself when there is room, and what is missing is what was counted as overwritten.
# machines: debian13
# time-limit: 300
. "$(dirname "$0")/../guest.sh"
. "$(dirname "$0")/disk-lib.sh"
disk ext4 ext4 100 -N 64
disk xfs xfs 320
for fs in ext4 xfs; do
	BUFFER=256K recorder $fs MaxFileSize=8M
done
# fill DIRECTORY: also with what xfs reserves for a file that grows, and gives back once it is written
fill() {
	fallocate -l "$(df --output=avail --block-size=1 "$1" | tail -n 1)" "$1/other" 2>/dev/null || true
	while dd if=/dev/zero bs=4K count=1 status=none >>"$1/rest" 2>/dev/null; do
		dd if=/dev/zero bs=4K status=none >>"$1/rest" 2>/dev/null || true
		sync -f "$1/rest"
	done
}

flyrecd_start
for fs in ext4 xfs; do
	count $fs 1 --count=200
	fill "$STATE/$fs"
	begin_count $fs 2 --rate=5000 # xfs has given the file more room than what was written takes
done
for fs in ext4 xfs; do
	must_say $fs "No space left on device" 120
done
is_alive
sleep 3 # in which it might say so again, and something is overwritten
for fs in ext4 xfs; do
	end_count $fs
	rm -f "$STATE/$fs/other" "$STATE/$fs/rest"
	must_be_well $fs 60
	count $fs 3 --count=200
	once "cannot write to .*/$fs/record/current.dat: No space"
done
[ "$(times_logged 'writing again')" = 2 ] || fail "logged $(times_logged 'writing again') times: writing again"

i=0
while : 2>/dev/null >"$STATE/ext4/inode.$i"; do
	i=$((i + 1))
done
kill -USR2 "$FLYRECD_PID"
must_log 'cannot begin a new segment, going on in the old one'
count ext4 4 --count=200
rm "$STATE"/ext4/inode.*
"$FLYRECCTL" rotate ext4 >/dev/null || fail "no rotation although there are inodes again"
once 'cannot begin a new segment'
for fs in ext4 xfs; do
	note_counters $fs
done
flyrecd_stop
for fs in ext4 xfs; do
	accounted $fs
	[ "$(jq '[.sessions[0].cpus[].overrun] | add' "$T/$fs.stats")" -gt 0 ] || fail "$fs: nothing was overwritten"
done
