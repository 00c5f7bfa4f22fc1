#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 600
#
# Compress=zstd: all finished segments but the newest become files of version 7 with the same text, the same
# markers, times and pins; snapshots of both kinds; a kill at each step leaves one file or the other; who
# stops does not wait; where there is no room nothing happens.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
need_tool check-markers
need_command trace-cmd jq od python3
# nothing but markers
EVENT='sched:sched_process_exec if pid == 0'
LIMITS="FlushSec=100ms MaxFiles=0 KeepFree=0"

version() { # FILE
	[ "$(od -An -c -j 10 -N 1 "$1" | tr -d ' ')" = 7 ] && echo 7 || echo 6
}

# What compresses gets hardly any time on a busy machine, as it should; what it makes of segments, not when, is
# looked at here
hurry() {
	local task
	for task in /proc/"$FLYRECD_PID"/task/*; do
		[ "$(sed 's/.*) //' "$task/stat" 2>/dev/null | cut -d ' ' -f 39)" != 5 ] ||
			chrt --other --pid 0 "${task##*/}" || true # it may have ended
	done
}

# packed [N]: all finished segments but the newest, at least N of them, are of version 7
packed() {
	local files=("$(REC)"/2*.dat) f
	hurry
	[ ${#files[@]} -gt "${1:-1}" ] || return 1
	for f in "${files[@]::${#files[@]}-1}"; do
		[ "$(version "$f")" = 7 ] || return 1
	done
	[ "$(version "${files[-1]}")" = 6 ]
}

half_made() {
	find "$(REC)" -name '.*.dat.new'
}

status_of() { # KEY
	ctl --json status s | jq -r ".sessions[0].$1"
}

status_is() { # KEY VALUE
	[ "$(status_of "$1")" = "$2" ]
}

is_version() { # FILE 6|7
	hurry
	[ "$(version "$1")" = "$2" ]
}

stopped_itself() {
	hurry
	flyrecd_stopped_itself
}

# record N: N segments of 1 MiB and the rest, with markers, as $COMPRESS says
COMPRESS=zstd
# The same with and without Compress=: those of a range are in one snapshot
SUBBUF=()
[ ! -e "$TRACEFS/buffer_subbuf_size_kb" ] || SUBBUF=('[Trace]' SubBufferSize=4K)
record() {
	markers_begin --rate=30000
	wait_for 60 has_segments "$1" || fail "no $1 segments"
	markers_end
}
# shellcheck disable=SC2086 # words
configure() { # LINE...
	storage $LIMITS "Compress=$COMPRESS" "MaxFileSize=${FILE_SIZE:-1M}" "$@" "${SUBBUF[@]}"
}

state_on ext4 4G
faulty_flyrecd

echo "== the same as before"
COMPRESS=no
configure MaxUse=2G
flyrecd_start
record 4
flyrecd_stop
files=("$(REC)"/2*.dat)
for f in "${files[@]}"; do
	[ "$(version "$f")" = 6 ] || fail "Compress=no: $f is of version 7"
	trace-cmd report "$f" >"$f.txt" 2>/dev/null
	stat -c '%a %u %g %y' "$f" >"$f.stat"
done
before=$(du -k --total "${files[@]::${#files[@]}-1}" | tail -n 1 | cut -f 1)
COMPRESS=zstd
configure MaxUse=2G
flyrecd_start
ctl pin "${files[1]}"
wait_for 120 packed 3 || fail "not compressed: $(ls -la "$(REC)"; tail -n 5 "$FLYRECD_LOG")"
for f in "${files[@]}"; do
	trace-cmd report "$f" 2>/dev/null | cmp - "$f.txt" || fail "trace-cmd report $f: another text"
	stat -c '%a %u %g %y' "$f" | cmp - "$f.stat" || fail "$f: $(stat -c '%a %u %g %y' "$f"), not $(cat "$f.stat")"
	rm "$f.txt" "$f.stat"
done
after=$(du -k --total "${files[@]::${#files[@]}-1}" | tail -n 1 | cut -f 1)
echo "${#files[@]} files, all but one: $before KiB, then $after KiB"
[ $((after * 3)) -lt "$before" ] || fail "hardly smaller"

echo "== list, status, metrics"
wait_for 5 status_is compress_backlog 0 || fail "backlog $(status_of compress_backlog)"
[ "$(status_of compress)" = zstd ] || fail "status: $(status_of compress)"
[ "$(status_of compressed_segments)" = $((${#files[@]} - 1)) ] || fail "status: $(status_of compressed_segments)"
[ "$(status_of compressed_bytes)" = $((after * 1024)) ] || fail "status: $(status_of compressed_bytes), not $after K"
[ "$(status_of uncompressed_bytes)" = $((before * 1024)) ] || fail "status: $(status_of uncompressed_bytes), not $before K"
[ "$(status_of compress_failure)" = "" ] || fail "status: $(status_of compress_failure)"
prints "^Compressed: $((${#files[@]} - 1)) segments, .* instead of .* (1/" ctl status s || fail "$(cat "$T/printed")"
prints "^flyrec_compress_backlog{session=\"s\"} 0" ctl metrics || fail "metrics"
ctl --json list s >"$T/list.json"
[ "$(jq '[.files[] | select(.raw_bytes > 2 * .bytes)] | length' "$T/list.json")" = $((${#files[@]} - 1)) ] ||
	fail "list: $(cat "$T/list.json")"
[ "$(jq -r '.files[] | select(.pinned) | .path' "$T/list.json")" = "${files[1]}" ] || fail "pins: $(cat "$T/list.json")"

echo "== while it records; snapshots of both kinds"
record 9
wait_for 120 packed 8 || fail "not compressed: $(tail -n 5 "$FLYRECD_LOG")"
expect=()
for f in "$T"/expect.[0-9]*; do
	expect+=("--expect=$f")
done
all=$(ctl snapshot s)
verify "$all"
markers_are "a snapshot of all" --allow-lost-at-end "${expect[@]}" "$all"
[ "$(version "$all")" = 6 ] || fail "$all is of version 7"
# from the middle of the second to the middle of the last, in microseconds
from=$(jq '.files[1] | (.start_usec + .end_usec) / 2 | floor' "$T/list.json")
to=$(($(date +%s%6N) - 500000))
part=$(ctl snapshot s --since="@${from::-6}.${from: -6}" --until="@${to::-6}.${to: -6}")
verify "$part"
markers_are "a snapshot of a part" --allow-lost-at-start --allow-lost-at-end "${expect[@]}" "$part"
flyrecd_stop
all_right "compressed"
forget

echo "== killed at each step"
points=$(grep -oE 'fault_point\("compress-[a-z]+"' "$SRC/writer/compress.c" | cut -d'"' -f2)
for point in $points; do
	configure MaxUse=2G
	echo "$point" >"$T/fault"
	flyrecd_start_stored
	record 2
	wait_for 60 stopped_itself || fail "flyrecd did not come to $point"
	: >"$T/fault"
	for f in "$(REC)"/2*.dat; do
		verify "$f"
	done
	made=$(half_made)
	[ -n "$made" ] || [ "$point" = compress-removed ] || fail "$point: no copy"
	flyrecd_kill
	write_markers 1000
	wait_for 120 packed || fail "$point: not compressed after it: $(ls -la "$(REC)")"
	flyrecd_stop
	all_right "SIGKILL at $point"
	forget
done

# that of those that are no service's
NOTIFY_LOG=$T/notify.log

echo "== no room"
COMPRESS=no
configure MaxUse=2G
flyrecd_start
record 4
flyrecd_stop
files=("$(REC)"/2*.dat)
COMPRESS=zstd
configure MaxUse=8M
log_mark
# all of them are kept, and more than MaxUse=
python3 -c 'import os, sys
for path in sys.argv[1:]:
    os.setxattr(path, "user.flyrec.pinned", b"1")' "${files[@]}"
flyrecd_start
must_log "Failed to compress record/.*: no room for a copy within MaxUse= and beyond KeepFree=; nothing is deleted"
[ "$(status_of compress_backlog)" = $((${#files[@]} - 1)) ] || fail "backlog $(status_of compress_backlog)"
prints "last failure: no room" ctl status s || fail "$(cat "$T/printed")"
for f in "${files[@]}"; do
	[ "$(version "$f")" = 6 ] || fail "$f was compressed"
done
configure MaxUse=1G
ctl reload
wait_for 120 packed 3 || fail "not compressed with room: $(tail -n 5 "$FLYRECD_LOG")"
logged_once "Failed to compress" || fail "said more than once"
[ "$(status_of compress_failure)" = "" ] || fail "status: $(status_of compress_failure)"
ctl --json list s >"$T/list.json"
[ "$(jq '[.files[] | select(.pinned)] | length' "$T/list.json")" = ${#files[@]} ] || fail "pins: $(cat "$T/list.json")"
flyrecd_stop
all_right "no room"
forget

echo "== damaged"
COMPRESS=no
configure MaxUse=1G
flyrecd_start
record 3
flyrecd_stop
files=("$(REC)"/2*.dat)
truncate -s 1000 "${files[1]}"
COMPRESS=zstd
configure MaxUse=1G
log_mark
flyrecd_start
must_log "Failed to compress record/${files[1]##*/}: .*; it stays as it is"
wait_for 10 is_version "${files[0]}" 7 || fail "${files[0]} waits for a damaged one"
[ "$(stat -c %s "${files[1]}")" = 1000 ] || fail "a damaged file was changed"
flyrecd_stop
forget

echo "== beside a load: nothing is lost; and whoever stops it does not wait"
FILE_SIZE=32M EVENT=raw_syscalls BUFFER=16M
configure MaxUse=3G
flyrecd_start
markers_begin --rate=5000
load_start --rate=100000
wait_for 60 has_segments 4 || fail "no segments"
busy() {
	[ -n "$(half_made)" ]
}
wait_for 60 busy || fail "nothing is compressed beside a load: $(ls -la "$(REC)")"
markers_end
lost=$(status_of lost_events)
[ "$lost" = 0 ] || fail "$(stall_excuses || echo "wrong data: ")$lost events lost"
began=${EPOCHREALTIME/./}
kill -RTMIN+1 "$FLYRECD_PID"
wait_for 30 ended "$FLYRECD_PID" || fail "does not hand over"
echo "hand-over: $(msec "$began") ms"
[ $((${EPOCHREALTIME/./} - began)) -lt 2000000 ] || fail "hand-over took $(msec "$began") ms"
[ -z "$(half_made)" ] || fail "left behind: $(half_made)"
load_stop
flyrecd_start
wait_for 120 packed 3 || fail "not compressed: $(tail -n 5 "$FLYRECD_LOG")"
flyrecd_stop
all_right "beside a load"
forget
