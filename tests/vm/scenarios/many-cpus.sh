#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Where many more CPUs are possible than there are: flyrecd starts at once, with few threads, nothing
# wakes it up but the flush timer, and what each CPU costs in memory and in a file's header is little.
# outside/cpus.sh runs this.
# time-limit: 200
. "$(dirname "$0")/../guest.sh"
WATCHED=16 FLUSH=5
possible=$(find "$TRACEFS/per_cpu" -mindepth 1 -maxdepth 1 -type d | wc -l)
[ "$possible" -ge 64 ] || fail "only $possible CPUs are possible"

session many <<-EOF
	[Trace]
	Event=raw_syscalls:sys_enter if id == 99999
	BufferSize=1M
	[Storage]
	FlushSec=${FLUSH}s
EOF

# usage: microseconds of CPU time that the service has used
usage() {
	sed -n 's/^usage_usec //p' /sys/fs/cgroup/system.slice/flyrecd.service/cpu.stat
}
switches() {
	sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "/proc/$FLYRECD_PID"/task/*/status |
		awk '{ n += $1 } END { print n }'
}

begin=${EPOCHREALTIME/./}
flyrecd_start
started=$(((${EPOCHREALTIME/./} - begin) / 1000))
threads=$(process_status Threads)
cpu=$(($(usage) / 1000))
sleep 2
before=$(switches)
used=$(usage)
sleep "$WATCHED"
woken=$(($(switches) - before))
used=$((($(usage) - used) / 1000))
allowed=$((threads * (WATCHED / FLUSH + 1)))
memory=$(process_memory)
file=$STATE/many/record/current.dat
"$FLYRECCTL" verify "$file" >"$T/verify" || fail "verify: $(tail -n 3 "$T/verify")"
echo "$possible CPUs: started after $started ms, $cpu ms of CPU time; $threads threads," \
	"$woken wake-ups ($allowed allowed) and $used ms of CPU time in $WATCHED s, $memory kB of memory," \
	"$(du -k "$file" | cut -f 1) kB of file"
[ "$threads" -le 8 ] || fail "$threads threads"
[ "$woken" -le "$allowed" ] || fail "$woken wake-ups in $WATCHED s, not $allowed"
[ "$memory" -le 16384 ] || fail "$memory kB of memory"

# It still records, on each CPU that is there
flyrecd_stop
session many <<-EOF
	[Trace]
	Event=sched:sched_switch
	BufferSize=1M
EOF
flyrecd_start
markers_start many 500
sleep 1
flyrecd_kill
sleep 1
markers_stop
flyrecd_stop
markers_check many
verify "$STATE/many"
# A second on a real processor; these here are emulated, some ten times as slow, and share those of the host
[ "$cpu" -le 5000 ] || fail "the start took $cpu ms of CPU time"
