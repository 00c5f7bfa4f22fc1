#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 200
#
# Snapshots of a record session by time range, cut out of several segments and the live file: without
# a gap from their first marker to their last, opened by others' programs, explaining themselves;
# what goes wrong leaves no half file.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_tool check-markers
need_command trace-cmd jq python3

state_on ext4 4G
session load <<-EOF
	[Trace]
	Event=sched:sched_process_exit
	BufferSize=32M
	[Storage]
	MaxFileSize=1M
	FlushSec=100ms
	KeepFree=0
	MaxFiles=0
	MaxUse=3G
	[Snapshot]
	Last=2s
EOF

snapshots() {
	SNAPSHOTS=("$STATE"/load/snapshot/*-signal.dat)
}

one_more_than() {
	snapshots
	[ ${#SNAPSHOTS[@]} -gt "$1" ]
}

take() {
	snapshots
	local n=${#SNAPSHOTS[@]}
	kill -USR1 "$FLYRECD_PID"
	wait_for 20 one_more_than "$n" || fail "no snapshot"
}

flyrecd_start
"$TOOLS/markers" "--instance=${PREFIX}load" --rate=30000 >"$T/expect" &
MARKERS=$!
CHILDREN+=("$MARKERS")
sleep 3
take
sleep 0.3
take
kill -TERM "$MARKERS"
wait "$MARKERS"

snapshots
for f in "${SNAPSHOTS[@]}"; do
	verify "$f"
	markers_are "$f" --expect="$T/expect" --allow-lost-at-start --allow-lost-at-end "$f"
	cat "$T/check"
	trace-cmd report --stat "$f" >"$T/stat" 2>"$T/stderr" || fail "trace-cmd: $(cat "$T/stderr")"
	[ ! -s "$T/stderr" ] || fail "trace-cmd warns: $(cat "$T/stderr")"
	grep -q "^flyrec snapshot of session load" "$T/stat" || fail "$f does not explain itself"
	grep -q "^reason: signal" "$T/stat" || fail "$f does not tell its trigger"
done

# at least the two seconds asked for, and not much more
trace-cmd report --nodate "${SNAPSHOTS[0]}" 2>/dev/null |
	awk '$3 ~ /^[0-9.]+:$/ { t = $3 + 0; if (!first) first = t; last = t }
		END { d = last - first; print "seconds:", d; exit !(d > 1.8 && d < 4) }' ||
	fail "not the last two seconds"

# a range over several segments has their data once
segments=("$STATE"/load/record/2*.dat)
[ ${#segments[@]} -ge 2 ] || fail "only ${#segments[@]} segments"

# --- a second between two points in time, by the wall clock that markers tell
cp "$T/expect" "$T/expect.before"
markers_start load 15000 --time "--continue=$T/expect.before"
sleep 1
since=${EPOCHREALTIME/./}
before=${#segments[@]}
sleep 1
until=${EPOCHREALTIME/./}
sleep 1
markers_stop
at() { # USEC
	echo "@${1:0:-6}.${1: -6}"
}
asked=${EPOCHREALTIME/./}
file=$(ctl snapshot load "--since=$(at "$since")" \
	"--until=$(at "$until")" --reason=contents)
answered=${EPOCHREALTIME/./}
# of a sub-buffer's bytes a marker with its time takes 64 at least
subbuf=$(sed -n 's/.*char data;.*size:\([0-9]*\);.*/\1/p' "$(instance load)/events/header_page")
flyrecd_stop
segments=("$STATE"/load/record/2*.dat)
[ ${#segments[@]} -ge $((before + 2)) ] || fail "only ${#segments[@]} segments, $before before"
verify "$file"

timed_markers() { # FILE...: "CPU SEQ USEC"
	local f
	for f in "$@"; do
		trace-cmd report "$f" 2>/dev/null |
			sed -n 's/.*flyrec-test cpu=\([0-9]*\) seq=\([0-9]*\) time=\([0-9]*\)$/\1 \2 \3/p'
	done
}
# A marker is written a little after the time it tells: at the edges there may be one of each CPU
timed_markers "${segments[@]}" >"$T/written"
timed_markers "$file" | sort -n -k1,1 -k2,2 >"$T/found"
awk -v since="$since" -v until="$until" -v max=$((subbuf / 64 + 1)) '
	function bad(what) { print what ": CPU " $1 " marker " $2; wrong = 1; exit }
	NR == FNR {
		if ($3 >= since && $3 < until) {
			if (!($1 in first) || $2 < first[$1]) first[$1] = $2
			if ($2 > last[$1]) last[$1] = $2
		}
		next
	}
	$1 in seq && $2 != seq[$1] + 1 { bad("a gap, or twice") }
	!($1 in seq) { begin[$1] = $2 }
	{ seq[$1] = $2 }
	$3 < since && ++early[$1] > max { bad("more than a sub-buffer too early") }
	$3 >= until && ++late[$1] > max { bad("more than a sub-buffer too late") }
	END {
		for (c in first) {
			if (wrong) break
			n++
			print "CPU " c ": " begin[c] " to " seq[c] ", of that time " first[c] " to " last[c]
			if (!(c in seq) || begin[c] > first[c] || seq[c] < last[c] - 1) wrong = 1
		}
		exit wrong || !n
	}' "$T/written" "$T/found" || fail "not what was written in that time"

# what it says of itself: extended attributes, and statistics that are those of its data
attribute() {
	python3 -c 'import os, sys; print(os.getxattr(sys.argv[1], sys.argv[2]).decode())' "$file" \
		"user.flyrec.$1" || fail "$file has no user.flyrec.$1"
}
[ "$(attribute session)" = load ] || fail "of session $(attribute session)"
[ "$(attribute reason)" = contents ] || fail "for the reason $(attribute reason)"
time=$(attribute time_usec)
if [ "$time" -lt "$asked" ] || [ "$time" -gt "$answered" ]; then
	fail "of $time, but was asked for at $asked and there at $answered"
fi
[ "$(attribute boot_id)" = "$(tr -d - </proc/sys/kernel/random/boot_id)" ] ||
	fail "of boot $(attribute boot_id)"
trace-cmd report --stat "$file" 2>/dev/null | awk '
	/^CPU: / { cpu = $2 }
	/^entries: / { entries = $2 }
	/^flyrec subbufs: / { subbufs = $3 }
	/^flyrec bytes: / { bytes = $3 }
	/^flyrec lost events: / { lost = $4 }
	/^flyrec final: yes/ { print cpu, subbufs, bytes, entries, lost }' >"$T/stat"
"$FLYRECCTL" --json verify "$file" |
	jq -r --argjson size "$(getconf PAGESIZE)" '.files[0].cpus[] |
		"\(.cpu) \(.subbufs) \(.subbufs * $size) \(.events) \(.lost_events)"' >"$T/counted"
[ -s "$T/counted" ] || fail "verify counts nothing"
cmp "$T/stat" "$T/counted" ||
	fail "statistics: $(cat "$T/stat"), its data: $(cat "$T/counted")"

# --- segments with formats of different systems: each event is understood
flyrecd_start
sleep 0.3
ctl event-enable load raw_syscalls:sys_enter || fail "event-enable"
sleep 1
file=$(ctl snapshot load --last=10min --reason=systems) || fail "snapshot over a change of events"
verify "$file"
trace-cmd report "$file" >"$T/report" 2>"$T/stderr" || fail "trace-cmd: $(cat "$T/stderr")"
[ ! -s "$T/stderr" ] || fail "trace-cmd warns: $(cat "$T/stderr")"
for event in print sched_process_exit sys_enter; do
	grep -q " $event: " "$T/report" || fail "no $event in a snapshot over a change of events"
done
! grep -q 'UNKNOWN' "$T/report" || fail "$(grep -m 1 UNKNOWN "$T/report")"
flyrecd_stop

# killed in the middle: no half file, and the next start is clean
FLYREC_FAULT_POINT=cut-rename flyrecd_start
kill -USR1 "$FLYRECD_PID"
stopped() { [ "$(process_state "$FLYRECD_PID")" = T ]; }
wait_for 20 stopped || fail "did not come to the fault point"
snapshots
[ ${#SNAPSHOTS[@]} = 2 ] || fail "a half file has its final name"
flyrecd_kill
flyrecd_start
take
flyrecd_stop
hidden=("$STATE"/load/snapshot/.*.new)
[ ${#hidden[@]} = 0 ] || fail "left behind: ${hidden[*]}"

# no room, and no older snapshot that could make way: said so, nothing left
rm -f "$STATE"/load/snapshot/*.dat
flyrecd_start
sleep 0.2
fallocate -l "$(df --output=avail -B1 "$T/ext4" | tail -n 1)" "$T/ext4/filler" 2>/dev/null || true
dd if=/dev/zero of="$T/ext4/filler2" bs=4k 2>/dev/null || true
kill -USR1 "$FLYRECD_PID"
wait_for 10 grep -q "snapshot failed: .*No space left" "$FLYRECD_LOG" || fail "ENOSPC is not said"
hidden=("$STATE"/load/snapshot/.*.new)
[ ${#hidden[@]} = 0 ] || fail "left behind on a full disk: ${hidden[*]}"
rm -f "$T"/ext4/filler*
take
flyrecd_stop

# an event storm cannot fill the disk: Burst=; PostSec= goes on a while after the trigger
session load <<-EOF
	[Trace]
	Event=sched:sched_process_exit
	[Snapshot]
	Last=1s
	Burst=2
	PostSec=500ms
EOF
rm -rf "$STATE"
flyrecd_start
background "$TOOLS/markers" "--instance=${PREFIX}load" --rate=100 --duration=8 >/dev/null
sleep 1.5
begin=${EPOCHREALTIME/./}
for _ in 1 2 3 4 5 6; do
	kill -USR1 "$FLYRECD_PID"
	sleep 0.05
done
wait_for 10 one_more_than 1 || fail "no snapshots after PostSec="
[ $((${EPOCHREALTIME/./} - begin)) -ge 500000 ] || fail "PostSec= was not waited for"
sleep 0.5
snapshots
[ ${#SNAPSHOTS[@]} = 2 ] || fail "Burst=2, but ${#SNAPSHOTS[@]} snapshots"
[ "$(grep -c "SIGUSR1 triggered, no snapshot of it for [0-9]* s: Burst=" "$FLYRECD_LOG")" = 1 ] ||
	fail "suppressed triggers are not said, or more than once"
# from a second before the trigger to half a second after it
trace-cmd report --nodate "${SNAPSHOTS[0]}" 2>/dev/null |
	awk '$3 ~ /^[0-9.]+:$/ { t = $3 + 0; if (!first) first = t; last = t }
		END { d = last - first; print "seconds:", d; exit !(d > 1.2 && d < 4) }' ||
	fail "not from Last= before to PostSec= after"
flyrecd_stop

# what is of an earlier boot is not put into one file with what is of this one; by itself it says so
session load <<-EOF
	[Trace]
	Event=sched:sched_process_exit
	[Storage]
	KeepFree=0
EOF
boot_of() { # FILE
	python3 -c 'import os, sys; print(os.getxattr(sys.argv[1], "user.flyrec.boot_id").decode())' "$1"
}
rm -rf "${STATE:?}"
flyrecd_start
"$TOOLS/markers" "--instance=${PREFIX}load" --count=100 >"$T/expect.before"
flyrecd_stop
another_boot "$STATE"/load/record/2*.dat
sleep 1.1
ended=$(date +%s)
sleep 1.5
flyrecd_start
"$TOOLS/markers" "--instance=${PREFIX}load" --count=50 >"$T/expect"
log_mark
path=$(ctl snapshot load)
must_log "load: 1 segments of that time are left out: a snapshot is of one boot"
markers_are "this boot" --expect="$T/expect" "$path"
[ "$(boot_of "$path")" = "$(tr -d '\n-' </proc/sys/kernel/random/boot_id)" ] || fail "not of this boot: $(boot_of "$path")"
log_mark
ctl snapshot load --last=1s >"$T/out"
sleep 0.2
if logged "left out"; then fail "what ended before the time is said to be left out"; fi
path=$(ctl snapshot load --since=-1h --until="@$ended")
markers_are "the earlier boot" --expect="$T/expect.before" "$path"
[ "$(boot_of "$path")" = "$ANOTHER_BOOT" ] || fail "the earlier boot's is labelled $(boot_of "$path")"
trace-cmd report --stat "$path" >"$T/stat" 2>/dev/null
grep -qx "boot id: $ANOTHER_BOOT" "$T/stat" || fail "its text has not that boot"
grep -qF "$(uname -n) $(uname -r | sed 's/.$/?/')" "$path" || fail "it says that this kernel made it"
flyrecd_stop
