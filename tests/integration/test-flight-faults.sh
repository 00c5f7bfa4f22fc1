#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 200
# tests: fast
#
# Flight sessions: SIGKILL and a full disk in the middle of an export leave no half file, and cost
# nothing of the history.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/flight-lib.sh"
need_tracefs
need_tool check-markers
need_command trace-cmd jq

mkfs_mount ext4 1G "$T/ext4" -m 0 # no blocks for root alone: room is what df tells
STATE=$T/ext4/state
flight
stopped_itself() { [ "$(process_state "$FLYRECD_PID")" = T ]; }

# --- killed: with half of the data written, and complete but for its name
first=yes
for point in flight-data flight-rename; do
	FLYREC_FAULT_POINT=$point flyrecd_start
	[ "$first" = no ] || "$TOOLS/markers" "--instance=${PREFIX}f" --count=20000 >"$T/expect"
	first=no
	kill -USR1 "$FLYRECD_PID"
	wait_for 20 stopped_itself || fail "does not come to $point"
	snapshots
	[ ${#SNAPSHOTS[@]} = 0 ] || fail "a half file has its final name"
	half=("$STATE"/f/snapshot/.*.new)
	[ ${#half[@]} = 1 ] || fail "no half file at $point: the test tests nothing"
	flyrecd_kill
done
flyrecd_start
nothing_half
path=$(ctl snapshot f)
EXPECT=$T/expect good "$path"
markers_are "$path" --expect="$T/expect" "$path"

# --- no room: said once, nothing left, nothing lost
data_bytes() {
	trace-cmd report --stat "$1" 2>/dev/null | awk '/^flyrec bytes:/ { n += $3 } END { print n }'
}
fill() {
	fallocate -l "$(df --output=avail -B1 "$T/ext4" | tail -n 1)" "$T/ext4/filler" 2>/dev/null || true
	dd if=/dev/zero of="$T/ext4/filler2" bs=4k 2>/dev/null || true
}
fill
kill -USR1 "$FLYRECD_PID"
wait_for 10 logged_once "snapshot failed: .*No space left" || fail "ENOSPC is not said once"
nothing_half
# room for the header, and for half of the data
rm -f "$T"/ext4/filler*
sync -f "$T/ext4"
room=$(($(stat -c '%b * %B' "$path") - $(data_bytes "$path") / 2))
fallocate -l $(($(df --output=avail -B1 "$T/ext4" | tail -n 1) - room)) "$T/ext4/filler"
before=$(ls "$STATE/f/snapshot")
log_mark
kill -USR1 "$FLYRECD_PID"
must_log "snapshot failed: .*No space left"
[ "$(ctl --json status f | jq -r '.sessions[0].method')" != mapped ] ||
	logged "snapshot failed: cannot write CPU [0-9]*'s data: " || fail "no room for the header"
nothing_half
[ "$(ls "$STATE/f/snapshot")" = "$before" ] || fail "no room, but made: $(ls "$STATE/f/snapshot")"
rm -f "$T"/ext4/filler*
path=$(ctl snapshot f)
markers_are "$path" --expect="$T/expect" "$path"

# --- its instance taken away: said, and made anew
rmdir "$(instance f)"
if ctl snapshot f 2>"$T/err"; then fail "a snapshot of nothing"; fi
[ -s "$T/err" ] || fail "nothing is said"
wait_for 10 test -d "$(instance f)" || fail "the instance is not made anew: $(ctl status f)"
running() { [ "$(ctl --json status f | jq -r '.sessions[0].state')" = recording ]; }
wait_for 10 running || fail "$(ctl status f)"
"$TOOLS/markers" "--instance=${PREFIX}f" --count=100 >"$T/expect"
path=$(ctl snapshot f)
markers_are "$path" --expect="$T/expect" "$path"

# --- many at once: each is answered, and the daemon goes on
for i in 1 2 3 4 5 6 7 8; do
	ctl snapshot f --reason="many-$i" >"$T/many.$i" &
	CHILDREN+=($!)
done
wait "${CHILDREN[@]: -8}" || fail "not all were answered"
for i in 1 2 3 4 5 6 7 8; do
	good "$(cat "$T/many.$i")"
done

# --- killed, and the next one finds no room even for the state file: old snapshots go, not the newest
snapshots() { SNAPSHOTS=("$STATE"/f/snapshot/2*.dat); }
snapshots
before=${#SNAPSHOTS[@]} newest=${SNAPSHOTS[-1]}
fill
flyrecd_kill
log_mark
flyrecd_start
wait_for 10 running || fail "$(ctl status f)"
must_log "f: no room to begin: retention removed"
snapshots
[ ${#SNAPSHOTS[@]} -lt "$before" ] || fail "nothing has gone"
good "$newest"
rm -f "$T"/ext4/filler*
path=$(ctl snapshot f)
markers_are "$path" --expect="$T/expect" "$path"
flyrecd_stop
nothing_half
