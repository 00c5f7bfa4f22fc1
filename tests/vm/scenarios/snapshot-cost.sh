#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What a snapshot of a flight session costs by each method, beside `trace-cmd snapshot -s` and
# `trace-cmd extract -s`, which need a kernel with CONFIG_TRACER_SNAPSHOT: system calls of a storm on
# all CPUs, 16 MiB a CPU. For each the median of milliseconds until the file is durable, and the bytes
# in it (trace-cmd of debian13 compresses them). Whichever way, flyrec is the faster one.
# machines: debian12 debian13
# only: long
# time-limit: 60
. "$(dirname "$0")/../guest.sh"
# shellcheck source=tests/integration/flight-lib.sh
. /job/tests/integration/flight-lib.sh
export BUFFER=16M EVENT=raw_syscalls:sys_enter
RUNS=3

# wait until the ring buffers of an instance have been overwritten
filled() { # INSTANCE
	! grep -qx "overrun: 0" "$TRACEFS/instances/$1"/per_cpu/cpu*/stats
}

report_cost() { # NAME FILE
	echo "$1: $(median "$T/$1") ms, $(du -sm "$2" | cut -f 1) MiB"
}

faster() { # NAME THAN-NAME
	awk -v a="$(median "$T/$1")" -v b="$(median "$T/$2")" 'BEGIN { exit !(a < b) }'
}

flight Method=auto
flyrecd_start
load_start
for method in mapped swap drain; do
	case $method-$(uname -r) in
	mapped-6.1.*) continue ;;
	esac
	flight "Method=$method" MaxFiles=2
	systemctl reload flyrecd || fail "reload: $(flyrecd_log | tail -n 3)"
	for ((i = 0; i < RUNS; i++)); do
		wait_for 30 filled flyrec.f || fail "the storm does not fill the ring buffer"
		[ $method = mapped ] || sleep 2 # it was emptied
		begin=${EPOCHREALTIME/./}
		file=$(ctl snapshot f) || fail "no snapshot"
		msec "$begin" >>"$T/$method"
	done
	report_cost $method "$file"
done
flyrecd_stop

remove_peer() {
	[ ! -d "$TRACEFS/instances/vm-peer" ] || rmdir "$TRACEFS/instances/vm-peer"
}
at_end remove_peer
for ((i = 0; i < RUNS; i++)); do
	# trace-cmd extract takes the instance away
	trace-cmd start -B vm-peer -b 16384 -C mono -e raw_syscalls:sys_enter >"$T/start" 2>&1 ||
		fail "trace-cmd start: $(cat "$T/start")"
	wait_for 30 filled vm-peer || fail "the storm does not fill the ring buffer"
	sleep 2
	begin=${EPOCHREALTIME/./}
	trace-cmd snapshot -B vm-peer -s >/dev/null 2>&1 || fail "trace-cmd snapshot"
	trace-cmd extract -B vm-peer -s -o "$T/peer.dat" >"$T/extract" 2>&1 ||
		fail "extract: $(cat "$T/extract")"
	sync -f "$T/peer.dat"
	msec "$begin" >>"$T/trace-cmd"
done
report_cost trace-cmd "$T/peer.dat"
load_stop
for method in mapped swap drain; do
	[ ! -e "$T/$method" ] || faster $method trace-cmd || fail "trace-cmd is faster than method $method"
done
