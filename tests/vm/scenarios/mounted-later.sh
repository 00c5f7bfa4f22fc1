#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The state directory is a file system of its own. Its disk comes late: flyrecd waits for the mount that
# systemd knows. It is read-only, as on a root that is: flyrecd starts, says so, and records once a
# disk is mounted there. One is mounted over the directory that a session records in: the recording
# goes on there, and nothing is lost.
# also: debian13 debian12
# time-limit: 300
. "$(dirname "$0")/../guest.sh"
. "$(dirname "$0")/disk-lib.sh"
waits() { [ "$(property Job)" != 0 ] && [ "$(property MainPID)" = 0 ]; }
dmsetup_create() { dmsetup create flyrec-late --table "0 $((100 * 2048)) linear $DATA_DISK 0"; }
take_away() {
	systemctl stop flyrecd
	rm -f /run/systemd/system/var-lib-flyrec.mount
	while mountpoint -q "$STATE"; do umount "$STATE"; done
	dmsetup remove --retry flyrec-late
	systemctl daemon-reload
}
dmsetup_create || skip "no device mapper"
at_end take_away
mkfs.ext4 -q -F /dev/mapper/flyrec-late
recorder a

# --- late
dmsetup remove --retry flyrec-late
printf '[Mount]\nWhat=/dev/mapper/flyrec-late\nWhere=%s\n' "$STATE" >/run/systemd/system/var-lib-flyrec.mount
systemctl daemon-reload
log_mark
systemctl start --no-block flyrecd
wait_for 20 waits || fail "flyrecd does not wait for the mount of its state directory"
dmsetup_create
must_log 'a: recording' 60
mountpoint -q "$STATE" || fail "it is not mounted"
[ -e "$STATE/a/record/current.dat" ] || fail "it records elsewhere"
flyrecd_stop

# --- read-only
umount "$STATE"
rm /run/systemd/system/var-lib-flyrec.mount
systemctl daemon-reload
# As systemd would have made it, which it cannot do here
mount -t tmpfs -o "ro,mode=0750,gid=$(getent group flyrec | cut -d: -f3)" tmpfs "$STATE"
flyrecd_start failing
must_say a "Read-only file system" 30
is_alive
mount /dev/mapper/flyrec-late "$STATE"
must_be_well a 30
once 'session failed' 'a: recording'
count a 1 --count=200
"$FLYRECCTL" rotate >/dev/null || fail "rotate"
flyrecd_stop

# --- mounted over
umount "$STATE" "$STATE"
flyrecd_start
begin=$(date --utc +%Y%m%dT%H%M%S.%6NZ)
begin_count a 2 --rate=300
sleep 1
mount /dev/mapper/flyrec-late "$STATE"
moved() { [ "$(stat -c %d "$STATE/a/record/current.dat" 2>/dev/null)" = "$(stat -c %d "$STATE")" ]; }
wait_for 30 moved || fail "it records below the mount point"
must_be_well a 30
is_alive
sleep 1
end_count a
note_counters a
flyrecd_stop
# What had been recorded below the mount point is still there, as it was left
mkdir "$T/below" "$T/all"
mount --bind / "$T/below"
cp "$T/below$STATE/a/record/current.dat" "$T/all/$begin.dat"
umount "$T/below"
cp "$STATE"/a/record/2*.dat "$T/all"
verify "$T/all"
markers_are a "--expect=$T/a.1" "--expect=$T/a.2" "$T"/all/*.dat
