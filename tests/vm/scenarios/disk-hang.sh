#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A disk that does not answer for a while: said, seen in status, flyrecd answers all the time, a session
# elsewhere goes on, and nothing is lost that the ring buffer has room for. One that does not answer when
# flyrecd starts, or reloads, keeps only its session waiting.
# also: debian13
# time-limit: 300
. "$(dirname "$0")/../guest.sh"
. "$(dirname "$0")/disk-lib.sh"
disk ext4 ext4 100
recorder ext4
recorder beside
flyrecd_start
begin_count ext4 1 --rate=300
begin_count beside 1 --rate=300
sleep 1
dmsetup suspend --noflush --nolockfs flyrec-ext4
begin=$SECONDS
must_say ext4 "the disk does not answer" 60
timeout 20 "$FLYRECCTL" list beside >/dev/null || fail "flyrecd does not answer"
grows beside
while [ $((SECONDS - begin)) -lt "${LONG:+6}0" ] || [ $((SECONDS - begin)) -lt 10 ]; do
	sleep 0.5
done
is_alive
dmsetup resume flyrec-ext4
must_be_well ext4 60
once "cannot write to $STATE/ext4.*does not answer" "writing again"
for name in ext4 beside; do
	end_count $name
	note_counters $name
	[ "$(jq '[.sessions[0].cpus[] | .overrun + .not_written] | add' "$T/$name.stats")" = 0 ] ||
		fail "$name: something was lost"
done
is_alive
flyrecd_stop
accounted ext4
accounted beside

is_recording() { # NAME
	[ "$("$FLYRECCTL" --json status "$1" | jq -r '.sessions[0].state')" = recording ]
}
sync
echo 3 >/proc/sys/vm/drop_caches
dmsetup suspend --noflush --nolockfs flyrec-ext4
begin=$SECONDS
flyrecd_start
echo "started after $((SECONDS - begin)) s"
[ $((SECONDS - begin)) -le 45 ] || fail "the start took $((SECONDS - begin)) s"
is_recording beside || fail "the session beside does not record"
! is_recording ext4 || fail "the disk answers: a poor test"
timeout 20 "$FLYRECCTL" list beside >/dev/null || fail "flyrecd does not answer"
# Nor does it keep the others from being stopped and started, or a reload
timeout 20 "$FLYRECCTL" stop beside || fail "cannot stop the session beside"
timeout 20 "$FLYRECCTL" start beside || fail "cannot start the session beside"
begin=$SECONDS
timeout 60 systemctl reload flyrecd || fail "cannot reload"
echo "reloaded after $((SECONDS - begin)) s"
is_recording beside || fail "the session beside does not record after the reload"
! is_recording ext4 || fail "the disk answers: a poor test"
[ "$(times_logged "ext4: still starting; flyrecd does not wait")" = 2 ] || fail "it is not said who takes so long"
dmsetup resume flyrec-ext4
wait_for 60 is_recording ext4 || fail "no recording when the disk answers"
is_alive
flyrecd_stop
