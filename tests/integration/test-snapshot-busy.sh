#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# may-fail: a disk that stands still for longer than the ring buffers last costs events
# time-limit: 180
#
# What goes on while a snapshot is being made: a record session rotates, retention removes what is
# being copied, nothing is lost; a flight session gets another configuration, and what is under way
# stays whole.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/flight-lib.sh"
need_tracefs
need_tool check-markers
need_command trace-cmd jq

state_on ext4 6G
load_session() { # KEEPFREE [LINE...]
	session load <<-EOF
		[Trace]
		Event=raw_syscalls:sys_enter if $LOAD_FILTER
		BufferSize=32M
		[Storage]
		MaxFileSize=4M
		FlushSec=100ms
		KeepFree=$1
		MaxFiles=0
		MaxUse=900M
		$(printf '%s\n' "${@:2}")
	EOF
}
load_session 0

used() { # MiB
	du -sm "$STATE/load/record" 2>/dev/null | cut -f 1
}
used_more_than() {
	[ "$(used)" -gt "$1" ]
}
# by its name: old ones may go meanwhile
newest_archived() {
	local segments=("$STATE"/load/record/2*.dat)
	echo "${segments[-1]}"
}
being_made() { # SESSION
	compgen -G "$STATE/$1/snapshot/.*.new" >/dev/null
}
# without a pause: it may be a matter of milliseconds
wait_being_made() { # SESSION
	SECONDS=0
	until being_made "$1"; do
		[ $SECONDS -lt 20 ] || fail "no snapshot is being made"
	done
}

echo "== a record session rotates while it is copied"
flyrecd_start
markers_start load 1000
load_start --rate=250000
wait_for 60 used_more_than 600 || fail "only $(used) MiB are recorded"
ctl snapshot load --since=-60s >"$T/path" 2>"$T/err" &
taking=$!
wait_being_made load
before=$(newest_archived) after=$before
while being_made load; do
	kill -USR2 "$FLYRECD_PID"
	now=$(newest_archived)
	! being_made load || after=$now
done
wait "$taking" || fail "snapshot: $(cat "$T/err")"
load_stop
markers_stop
path=$(<"$T/path")
echo "$(du -m "$path" | cut -f 1) MiB; $(basename "$before"), and $(basename "$after") while it was made"
[[ $after > $before ]] || fail "no rotation while it was made"
verify "$path"
markers_are "$path" --expect="$T/expect" --allow-lost-at-start --allow-lost-at-end "$path"
flyrecd_stop
verify "$STATE/load/record"
markers_check load --allow-lost-at-start
rm "$CONFIG/sessions.d/load.conf"

echo "== KeepFree= removes no more for it than is missing"
rm -rf "${STATE:?}"
room=$(df --output=avail -BM "$T/ext4" | tail -n 1 | tr -d ' M')
load_session $((room - 900))M "[Snapshot]" MaxUse=2G
flyrecd_start
load_start --rate=250000
wait_for 120 used_more_than 600 || fail "only $(used) MiB are recorded"
ctl snapshot load --since=-120s >"$T/path" 2>"$T/err" &
taking=$!
wait_being_made load
while being_made load; do
	kill -USR2 "$FLYRECD_PID"
done
wait "$taking" || fail "snapshot: $(cat "$T/err")"
load_stop
flyrecd_stop
left=$(used) size=$(du -m "$(<"$T/path")" | cut -f 1)
echo "$size MiB; $left MiB of segments are left"
[ $((left + size)) -gt 800 ] || fail "$left MiB are left of the segments beside a snapshot of $size MiB, with room for 900"
rm "$CONFIG/sessions.d/load.conf"

echo "== a flight session's Method= and Memory= are changed while it is written"
export BUFFER=64M
export EVENT="raw_syscalls:sys_enter if $LOAD_FILTER"
flight Memory=4M MaxUse=4G
flyrecd_start
ctl --json status f >"$T/status"
[ "$(jq -r '.sessions[0].method' "$T/status")" = mapped ] || skip "this kernel does not map ring buffers"
load_start --rate=250000
filled() {
	! grep -qx "overrun: 0" "$(instance f)"/per_cpu/cpu*/stats
}
wait_for 60 filled || fail "the storm does not fill the ring buffer"
load_stop
take
changes=0
is_method() {
	[ "$(ctl --json status f | jq -r '.sessions[0].method')" = "$1" ]
}
subbufs() { # FILE
	"$FLYRECCTL" verify "$1" | sed -n 's/.*version 6, \([0-9]*\) sub-buffers.*/\1/p'
}
least=$(($(subbufs "${SNAPSHOTS[0]}") * 9 / 10))
for ((i = 0; i < 5; i++)); do
	flight Method=drain MaxUse=4G
	n=${#SNAPSHOTS[@]}
	kill -USR1 "$FLYRECD_PID"
	wait_being_made f
	kill -HUP "$FLYRECD_PID"
	sleep 0.02
	! being_made f || changes=$((changes + 1))
	wait_for 20 more_snapshots_than "$n" || fail "no snapshot: $(tail -n 3 "$FLYRECD_LOG")"
	verify "${SNAPSHOTS[-1]}"
	[ "$(subbufs "${SNAPSHOTS[-1]}")" -ge "$least" ] ||
		fail "changed while it was written: not $least sub-buffers: $(head -n 1 "$T/verify")"
	wait_for 10 is_method drain || fail "Method= does not become drain"
	flight Memory=4M MaxUse=4G
	kill -HUP "$FLYRECD_PID"
	wait_for 10 is_method mapped || fail "Method= does not become mapped again"
done
[ "$changes" -ge 1 ] || fail "never changed while one was written: a poor test"
flyrecd_stop

echo "== what cannot be taken does not keep those behind it waiting"
session f <<-EOT
	[Session]
	Mode=flight
	[Trace]
	Event=raw_syscalls:sys_enter if $LOAD_FILTER
	Clock=counter
	BufferSize=16M
	[Snapshot]
	Burst=0
EOT
flyrecd_start
load_start
sleep 2
load_stop
for ((i = 0; i < 5; i++)); do
	waiting=()
	for range in '' --last=1s '' --last=1s ''; do
		# shellcheck disable=SC2086 # one word, or none
		timeout 30 "$FLYRECCTL" --runtime-dir="$RUNTIME" snapshot f $range >"$T/out.${#waiting[@]}" 2>&1 &
		waiting+=($!)
		sleep 0.003
	done
	for n in 0 1 2 3 4; do
		status=0
		wait "${waiting[n]}" || status=$?
		[ "$status" = $((n % 2)) ] || fail "call $n ended with $status: $(cat "$T/out.$n")"
	done
done
grep -q 'counts no time' "$T/out.1" || fail "$(cat "$T/out.1")"
flyrecd_stop
no_damage
