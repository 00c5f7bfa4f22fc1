#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# may-fail: a disk that stands still for longer than the ring buffers last costs events
# time-limit: 500
# beside: yes
#
# Rotation under load, by signal, size, time and full regions: no marker lost or doubled; each segment
# stands alone and has all that came before it was asked for; the kernel's counters in it agree with what is
# counted in its data.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
need_tool check-markers
need_command trace-cmd jq

ROTATIONS=${ROTATIONS:-$(thorough && echo 200 || echo 30)}
EVENT=raw_syscalls

# counters_agree WHAT: per segment, events read = events there; over all, overwritten = lost
counters_agree() {
	local file
	recount "$1" >"$T/counted"
	# Each takes a while, for all the symbols
	rm -rf "$T/stat"
	mkdir "$T/stat"
	# shellcheck disable=SC2016 # for the inner shell
	printf '%s\0' "$(REC)"/2*.dat | STAT=$T/stat xargs -0 -n 1 -P "$(nproc)" \
		sh -c 'trace-cmd report --stat "$0" 2>/dev/null >"$STAT/${0##*/}"' || fail "$1: trace-cmd report --stat"
	for file in "$T"/stat/*; do
		stat_value "read events" <"$file" | sed "s|^|$(REC)/${file##*/} |"
	done >"$T/read"
	awk '{ print $1, $2, $3 }' "$T/counted" | sort >"$T/events"
	sort "$T/read" | diff - "$T/events" >"$T/diff" ||
		fail "$1: CPUSTAT (<) does not agree with the data (>): $(head -n 6 "$T/diff")"
	for file in "$T"/stat/*; do
		stat_value overrun <"$file"
	done | awk '{ n[$1] += $2 } END { for (c in n) print c, n[c] }' | sort >"$T/overrun"
	awk '{ n[$2] += $4 } END { for (c in n) print c, n[c] }' "$T/counted" | sort |
		diff "$T/overrun" - >"$T/diff" ||
		fail "$1: overwritten (<) and missing in the data (>) differ: $(cat "$T/diff")"
}

# stands_alone FILE: sections as tracefs has them, names and clock
stands_alone() {
	"$TOOLS/seed-reader" "$1" >"$T/seed" 2>&1 || fail "$1: $(tail -n 3 "$T/seed")"
	trace-cmd report "$1" >"$T/report" 2>"$T/report.err" || fail "$1: $(cat "$T/report.err")"
	! grep -q 'UNKNOWN\|FAILED' "$T/report" || fail "$1: $(grep -m 3 'UNKNOWN\|FAILED' "$T/report")"
	grep -q 'markers-.*sys_enter' "$T/report" || fail "$1: no name or no event of what writes the markers"
}

# The wall-clock time that report shows for the first event is the file's name, but for what rounding
# costs, and lies between the beginning and the end of the test
right_time() { # FILE
	local first name
	first=$(trace-cmd report "$1" 2>/dev/null | sed -nE 's/^.*\] +([0-9]+\.[0-9]+): .*/\1/p' | sort -n | head -n 1)
	name=$(basename "$1" .dat)
	name=$(date -u -d "${name:0:4}-${name:4:2}-${name:6:2} ${name:9:2}:${name:11:2}:${name:13:9}" +%s.%N)
	awk -v a="$first" -v b="$name" -v from="$BEGAN" -v to="$(date +%s)" \
		'BEGIN { d = a - b; exit !(d > -1 && d < 1 && a >= from && a <= to + 1) }' ||
		fail "$1: begins at $first, is named $name"
}

# Full speed for moments, so that there is not too much to read through afterwards
storm_bursts() {
	trap 'exit 0' TERM
	while sleep 0.2; do
		"$TOOLS/storm" "--count=$BURST" >/dev/null
	done
}

load_begin() {
	BEGAN=$(date +%s)
	flyrecd_start
	markers_begin --rate=10000
	background storm_bursts
	STORM=$!
	sleep 0.3
}

load_end() {
	markers_end
	kill -TERM "$STORM"
	wait "$STORM" || true
	flyrecd_stop
	all_right "$1"
	counters_agree "$1"
	echo "$1: $(n_segments) segments, $(awk '{ n += $3 } END { print n }' "$T/counted") events"
}

BUFFER=64M BURST=6000
storage FlushSec=500ms MaxUse=20G MaxFiles=0
load_begin
# on a busy machine several signals may make one rotation
SECONDS=0
until has_segments "$ROTATIONS"; do
	[ $SECONDS -lt 200 ] || fail "$(n_segments) segments in 200 s"
	kill -USR2 "$FLYRECD_PID"
	sleep 0.05
done
load_end "by signal"
for file in $(find "$(REC)" -name '2*.dat' | sort | awk 'NR % 20 == 1'); do
	stands_alone "$file"
	right_time "$file"
done
forget

BURST=20000
storage FlushSec=500ms MaxUse=20G MaxFileSize=16M MaxFiles=0
load_begin
wait_for 60 has_segments 10 || fail "$(n_segments) segments by size"
load_end "by size"
forget

storage FlushSec=200ms MaxUse=20G MaxFileSec=1s MaxFiles=0
EVENT=sched load_begin
sleep 6
load_end "by time"
n=$(n_segments)
[ $((n >= 4 && n <= 8)) = 1 ] || fail "$(n_segments) segments in 6 s of 1 s each"
forget

# What comes while the next segment is being made asks for one, not for two
storage FlushSec=200ms SyncIntervalSec=500ms MaxUse=20G MaxFileSize=64M MaxFiles=0
flyrecd_start
wait_for 60 eval 'has_segments 14 || ! dd if=/dev/zero of=/dev/null bs=1 count=500000 status=none'
flyrecd_stop
short=$(find "$(REC)" -name '2*.dat' | sort | head -n -1 | xargs stat -c '%s %n' | awk '$1 < 16 * 1024 * 1024')
[ -z "$short" ] || fail "segments of less than a quarter of MaxFileSize=: $short"
forget

# Regions have room for MaxFileSize and the ring buffer; with a disk that is slow to make the next
# segment they fill up
storage FlushSec=500ms MaxUse=20G MaxFileSize=1M MaxFiles=0
BUFFER=4M
load_begin
sleep 8
load_end "tiny segments"
[ "$(n_segments)" -ge 10 ] || fail "$(n_segments) segments of 1 MiB in 8 s"
forget

# What was traced before it was asked for is in its file, also when workers get little time
EVENT=sched:sched_process_exec
storage FlushSec=100ms SyncIntervalSec=1h MaxUse=1G MaxFiles=0
flyrecd_start
burn() { while :; do :; done; }
burning=()
for ((i = 0; i < 2 * $(nproc); i++)); do
	background burn
	burning+=("$!")
done
for i in {1..60}; do
	"$TOOLS/markers" "--instance=${PREFIX}s" --count=20 >"$T/expect"
	file=$(ctl rotate s) || fail "rotate"
	markers_are "rotation $i" "--expect=$T/expect" "$file"
done
kill -TERM "${burning[@]}"
flyrecd_stop
