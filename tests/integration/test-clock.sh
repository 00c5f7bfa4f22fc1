#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 120
#
# Somebody sets the wall clock, for flyrecd alone (clock-shim.c): from a millisecond on each file's
# DATE is right again soon, small steps add up and do not make a file each, what remains is in the file.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd jq
export CLOCK_SHIM=$T/clock
gcc -shared -fPIC -O1 -o "$T/shim.so" "$SRC/tests/integration/clock-shim.c"
mkfifo "$CLOCK_SHIM.fifo"
CURRENT=$STATE/a/record/current.dat

# set_clock NSEC: it is ahead of the right time by so much; written in one go, as it is read all the time
set_clock() {
	echo "$1" >"$CLOCK_SHIM.new"
	mv "$CLOCK_SHIM.new" "$CLOCK_SHIM.ns"
	[ -z "$FLYRECD_PID" ] || printf 'a step' >"$CLOCK_SHIM.fifo"
}
date_of() { # FILE: its DATE, microseconds
	local hex
	hex=$(trace-cmd dump --options "$1" 2>/dev/null | sed -nE '/Option DATE/s/.*(0x[0-9a-f]+).*/\1/p;/Option DATE/{n;s/^[^0]*(0x[0-9a-f]+).*/\1/p}' | tail -n 1)
	[ -n "$hex" ] || fail "$1: no DATE"
	echo $((hex))
}
# date_is USEC: current.dat has the right DATE plus so much; a reading takes some microseconds
date_is() {
	local off
	off=$(($(date_of "$CURRENT") - RIGHT - $1))
	[ "${off#-}" -lt 900 ]
}
start() {
	if [ -e "$SANITIZER" ]; then
		LD_PRELOAD="$SANITIZER $T/shim.so" flyrecd_start
	else
		LD_PRELOAD=$T/shim.so flyrecd_start
	fi
}
SANITIZER=$(ldd "$FLYRECD" | awk '/libasan/ { print $3 }')

session a <<-END
	[Trace]
	Event=sched:sched_process_fork
	[Storage]
	FlushSec=200ms
END
set_clock 0
start
RIGHT=$(date_of "$CURRENT")
inode() { stat -c %i "$CURRENT"; }

echo "== 0.3 s"
first=$(inode)
set_clock 300000000
wait_for 10 date_is 300000 || fail "0.3 s: DATE is off by $(($(date_of "$CURRENT") - RIGHT - 300000)) us"
must_log 'the clock was set forward by 0\.\(300\|299\) s: beginning new segments'

echo "== a leap second, as the kernel makes it, and back"
set_clock $((300000000 - 999999872))
wait_for 20 date_is -700000 || fail "a leap second: DATE is off by $(($(date_of "$CURRENT") - RIGHT + 700000)) us"
set_clock 300000000
wait_for 20 date_is 300000 || fail "back: DATE is off by $(($(date_of "$CURRENT") - RIGHT - 300000)) us"

echo "== 0.6 ms are no reason for a file, nor is 0.6 ms more until ten seconds have passed"
sleep 10
before=$(inode)
set_clock 300600000
sleep 1
[ "$(inode)" = "$before" ] || fail "a new segment for 0.6 ms"
set_clock 301200000
wait_for 5 date_is 301200 || fail "0.6 ms twice: DATE is off by $(($(date_of "$CURRENT") - RIGHT - 301200)) us"
[ "$(inode)" != "$before" ] || fail "no new segment for 0.6 ms twice"
before=$(inode)
for i in {1..20}; do
	set_clock $((301200000 + i * 5000000))
	sleep 0.1
done
[ "$(inode)" = "$before" ] || fail "a storm of steps makes a storm of segments"
wait_for 15 date_is 401200 || fail "a storm of steps: DATE is off by $(($(date_of "$CURRENT") - RIGHT - 401200)) us"
[ "$(find "$STATE/a/record" -name '2*.dat' | wc -l)" -le 5 ] || fail "$(ls "$STATE/a/record")"

echo "== a step of less than a millisecond is in the file at the end"
set_clock 401800000
sh -c : # an event
flyrecd_stop
last=$(find "$STATE/a/record" -name '2*.dat' | sort | tail -n 1)
off=$(trace-cmd report --stat "$last" 2>/dev/null | sed -n 's/^flyrec date off by usec: //p' | sort -u)
[ $((off > 500 && off < 700)) = 1 ] || fail "the file says it is off by \"$off\" us, not 600"
"$FLYRECCTL" verify "$STATE/a/record" >/dev/null || fail "verify"
# and is a reading of its own, in nanoseconds
steps=$("$FLYRECCTL" --json verify "$last" | jq -r '.files[0].clocks |
	"\(.[-2].at) \(.[-1].at) \(((.[-2] | .realtime_nsec - .trace_nsec) - (.[0] | .realtime_nsec - .trace_nsec)) / 1000 | round)"')
[[ $steps =~ ^"step end "(5[5-9]|6[0-4])[0-9]$ ]] || fail "readings of the last segment: $steps"

echo "== set while nobody looks: the next process begins a new file"
set_clock 0
start
sh -c :
first=$(inode)
flyrecd_hand_over
set_clock 50000000
start
wait_for 20 date_is 50000 || fail "0.05 s between two processes: DATE is off by $(($(date_of "$CURRENT") - RIGHT - 50000)) us"
[ "$(inode)" != "$first" ] || fail "the same file"
flyrecd_stop
