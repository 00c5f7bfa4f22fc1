#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
#
# flyrec's own section: readings of the clocks in each segment, over rotations, a kill and a new start,
# and in each kind of snapshot, which also says what it was taken for. Other programs see nothing of it.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command jq trace-cmd
need_event sched:sched_process_exec

# own FILE FILTER: of what verify says of it
own() {
	"$FLYRECCTL" --json verify "$1" >"$T/own" || fail "verify $1: $(cat "$T/own")"
	jq -r ".files[0] | $2" "$T/own"
}

# readings_are FILE WHAT: "begin end"; each later than the one before, in all clocks alike
readings_are() {
	local found
	found=$(own "$1" '[.clocks[].at] | join(" ")')
	[ "$found" = "$2" ] || fail "$1 has readings \"$found\", not \"$2\""
	own "$1" '[.clocks[] | .boot_nsec] | . == sort' | grep -qx true || fail "$1: not in order: $(cat "$T/own")"
	# No reading took a second, and no clock goes other than the raw one by a thousandth and that
	# shellcheck disable=SC2016 # jq's variable
	own "$1" '.clocks as $c | [$c[] | select(.width_nsec > 1e9)] == [] and
		([$c[1:][] | [.realtime_nsec - $c[0].realtime_nsec, .trace_nsec - $c[0].trace_nsec,
			.boot_nsec - $c[0].boot_nsec, .mono_raw_nsec - $c[0].mono_raw_nsec]] |
			all((max - min) < max / 1000 + 2e7))' | grep -qx true || fail "$1: clocks differ: $(cat "$T/own")"
}

# cause_is FILE REASON [TEXT]: the first one
cause_is() {
	[ "$(own "$1" '.causes[0].reason')" = "$2" ] || fail "$1: $(own "$1" .causes)"
	own "$1" '.causes[0].text' | grep -qF -e "${3:-}" || fail "$1: $(own "$1" .causes)"
	own "$1" ".causes[0].time_usec | . > ${4:-$begun} and . <= ${EPOCHREALTIME/./}" | grep -qx true ||
		fail "$1: not now: $(own "$1" .causes)"
}

rotated() {
	[ "$(find "$STATE/rec/record" -name '2*.dat' | wc -l)" -ge "$1" ]
}
newest() {
	find "$STATE/rec/record" -name '2*.dat' | sort | tail -n 1
}

begun=${EPOCHREALTIME/./}
session rec <<-END_OF_SESSION
	[Trace]
	Event=sched:sched_process_exec
	Event=sched:sched_process_fork
	[Storage]
	FlushSec=200ms
	SyncIntervalSec=500ms
	KeepFree=0
END_OF_SESSION
session fly <<-END_OF_SESSION
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_process_exec
	Event=sched:sched_process_fork
	Clock=local
	BufferSize=256K
	[Snapshot]
	OnSignal=yes
	OnEvent=sched:sched_process_exec if filename == "$T/hit"
END_OF_SESSION
cp /bin/true "$T/hit"
flyrecd_start
sh -c :

echo "== a segment's begin, its end"
current=$STATE/rec/record/current.dat
readings_are "$current" begin
[ "$(own "$current" .clock)" = mono ] || fail "clock $(own "$current" .clock)"
[ "$(own "$current" .boot_id)" = "$(tr -d - </proc/sys/kernel/random/boot_id)" ] || fail "$(own "$current" .boot_id)"
[ "$(own "$current" .causes)" = null ] || fail "a segment has a cause"
# DATE is of the same reading
date=$(trace-cmd dump --options "$current" 2>/dev/null | grep -oE '0x[0-9a-f]{10,}' | head -n 1)
own "$current" "(.clocks[0] | .realtime_nsec - .trace_nsec) / 1000 - $((date)) | fabs < 2" | grep -qx true ||
	fail "DATE is $((date)) us: $(cat "$T/own")"
own "$current" '.clocks[0] | has("status") and has("maxerror_usec") and has("tai_sec")' | grep -qx true ||
	fail "nothing of adjtimex: $(cat "$T/own")"
sleep 0.5
ctl rotate rec >/dev/null || fail "rotate"
wait_for 10 rotated 1 || fail "no segment"
first=$(newest)
readings_are "$first" "begin end"
verify "$first"
sh -c :

echo "== killed, and another process goes on"
readings_are "$current" begin
flyrecd_kill
readings_are "$current" begin
flyrecd_start
readings_are "$current" "begin begin"
for _ in 1 2 3; do sh -c :; done

echo "== snapshots"
range=$(ctl snapshot rec '--reason=test what for') || fail "snapshot"
# the next segment is there before the one before ends
readings_are "$range" "begin begin end begin snapshot"
cause_is "$range" test "for: what for"
fly=$(ctl snapshot fly) || fail "snapshot"
readings_are "$fly" "begin snapshot"
cause_is "$fly" control
[ "$(own "$fly" .clock)" = local ] || fail "clock $(own "$fly" .clock)"
again=$(ctl snapshot fly) || fail "snapshot"
readings_are "$again" "begin snapshot snapshot"
session two <<-END_OF_SESSION
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_process_exec
	Clock=mono
	BufferSize=256K
END_OF_SESSION
ctl reload >/dev/null || fail "reload"
"$T/hit"
together=$(ctl snapshot --together rec two) || fail "snapshot of both"
[ "$(own "$together" '[.clocks[].at] | (.[0] == "begin") and (.[-1] == "snapshot") and length > 3')" = true ] ||
	fail "$together: $(cat "$T/own")"

echo "== two triggers, one snapshot"
triggered() {
	SNAPSHOTS=("$STATE"/fly/snapshot/*-"$1".dat)
	[ ${#SNAPSHOTS[@]} -ge 1 ]
}
sleep 1.1 # else it joins the one of before
rm -f "$STATE"/fly/snapshot/*-event*
kill -USR1 "$FLYRECD_PID"
wait_for 10 triggered signal || fail "no snapshot on a signal"
"$T/hit"
joined() {
	[ "$(own "${SNAPSHOTS[0]}" '.causes | length')" = 2 ]
}
wait_for 10 joined || fail "not both: $(own "${SNAPSHOTS[0]}" .causes; tail -n 3 "$FLYRECD_LOG")"
cause_is "${SNAPSHOTS[0]}" signal
own "${SNAPSHOTS[0]}" '.causes[1] | .reason, .text' | tr '\n' ' ' | grep -q '^event also: OnEvent=' ||
	fail "$(own "${SNAPSHOTS[0]}" .causes)"
signal=${SNAPSHOTS[0]}
flyrecd_stop
last=$(newest)
readings_are "$last" "begin begin end"

echo "== other programs"

for file in "$first" "$last" "$range" "$fly" "$together" "$signal"; do
	trace-cmd report "$file" >"$T/report" 2>"$T/complaints" || fail "report $file: $(cat "$T/complaints")"
	trace-cmd dump --all "$file" >"$T/dump" 2>>"$T/complaints" || fail "dump $file: $(cat "$T/complaints")"
	[ ! -s "$T/complaints" ] || fail "$file: $(cat "$T/complaints")"
	! grep -aqi 'flyrec own' "$T/report" "$T/dump" || fail "$file: trace-cmd shows the section"
	"$FLYRECCTL" export --format=text -o "$T/ours" "$file" || fail "export $file"
	cmp -s "$T/report" "$T/ours" || fail "$file: export differs from trace-cmd report"
	[ ! -x "$TOOLS/kshark-names" ] || "$TOOLS/kshark-names" "$file" >"$T/names" || fail "$file: $(cat "$T/names")"
	[ ! -x "$TOOLS/libtracecmd-open" ] || "$TOOLS/libtracecmd-open" "$file" >"$T/open" 2>&1 ||
		fail "$file: $(cat "$T/open")"
done
# what makes another file leaves it out
trace-cmd convert --file-version 7 --compression none -i "$range" -o "$T/seven.dat" >"$T/convert" 2>&1 ||
	fail "trace-cmd convert: $(cat "$T/convert")"
[ "$(own "$T/seven.dat" '.clocks, .causes' | sort -u)" = null ] || fail "trace-cmd convert keeps it: the manual is wrong"

echo "== damaged"
cp --sparse=always "$range" "$T/bad.dat"
at=$(LC_ALL=C grep -obUa 'flyrec own 1' "$T/bad.dat" | cut -d: -f1)
[ $((at % 4096)) = 0 ] || fail "the section is at $at"
printf x | dd of="$T/bad.dat" bs=1 seek=$((at + 64)) conv=notrunc status=none
! "$FLYRECCTL" verify "$T/bad.dat" >"$T/verify" 2>&1 || fail "verify finds nothing"
grep -q "^$T/bad.dat: offset $(printf 0x%x $((at + 48))): flyrec's own section: clocks: " "$T/verify" ||
	fail "verify: $(cat "$T/verify")"
