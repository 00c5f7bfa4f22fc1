#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Read-only from one moment to the next (emergency remount): said once, seen in status, and recording
# goes on by itself when the file system is writable again, without a marker less.
# machines: debian12
# time-limit: 300
. "$(dirname "$0")/../guest.sh"
. "$(dirname "$0")/disk-lib.sh"
disk ext4 ext4 100
recorder ext4
flyrecd_start
begin_count ext4 1 --rate=300
sleep 1
read_only() { [[ $(findmnt --noheadings --output=OPTIONS --target="$1") == ro* ]]; }
echo u >/proc/sysrq-trigger
while ! read_only "$STATE/ext4" || ! read_only /; do :; done
mount -o remount,rw /
must_say ext4 "Read-only file system" 60
is_alive
sleep 2 # in which it might say so again
once "cannot write to $STATE/ext4"
mount -o remount,rw "$STATE/ext4"
must_be_well ext4 60
end_count ext4
note_counters ext4
is_alive
flyrecd_stop
accounted ext4
[ "$(jq '[.sessions[0].cpus[] | .overrun + .not_written] | add' "$T/ext4.stats")" = 0 ] ||
	fail "something was lost"
