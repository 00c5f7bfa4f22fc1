#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 200
#
# Loss accounting balances, per CPU and over all segments: what was traced = what is in the files + what
# was overwritten, with a ring buffer that is far too small, and with a daemon that is stopped for a
# while; and what the kernel counted as overwritten is marked as missing in the data.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
need_command trace-cmd jq

case $(uname -m) in
x86_64) GETPPID=110 ;;
aarch64 | riscv64) GETPPID=173 ;;
*) skip "which number has getppid here?" ;;
esac
# Only our own calls: by a name that nobody else has
name=${T##*.}st
cp "$TOOLS/storm" "$T/$name"
# LeakSanitizer calls getppid() itself
STORM=(env ASAN_OPTIONS=detect_leaks=0 "$T/$name")
# sys_exit: its length leaves room at the end of a full sub-buffer, where the kernel writes how many
# events are missing before it; where there is none (sys_enter: 60 events of 68 bytes) it only sets the
# flag that some are.
EVENT="raw_syscalls:sys_exit if id == $GETPPID && COMM == \"$name\""

# storm COUNT: so many calls a CPU; their sum so far in TRACED
TRACED=0
storm() {
	"${STORM[@]}" --count="$1" >/dev/null
	TRACED=$((TRACED + $1))
}

# per_cpu KEY: sum of a CPUSTAT over all segments, as "CPU NUMBER"
per_cpu() {
	for file in "$(REC)"/2*.dat; do
		cpustat "$file" "$1"
	done | awk '{ n[$1] += $2 } END { for (c in n) print c, n[c] }' | sort -n
}

# log_has WHAT: all that was overwritten since the last log_mark, although it is said only now and then
log_has() {
	local counted said
	counted=$({
		per_cpu overrun
		per_cpu "commit overrun"
		per_cpu "dropped events"
	} | awk '{ n += $2 } END { print n }')
	said=$(tail -n "+$((LOG_MARK + 1))" "$FLYRECD_LOG" |
		sed -n 's/.* \([0-9]*\) events were overwritten .*/\1/p' | awk '{ n += $1 } END { print n + 0 }')
	[ "$said" = "$counted" ] || fail "$1: $counted events lost, the log says $said"
}

balances() { # WHAT LOST: yes, no: shall there be losses?
	local what=$1 cpu kept lost over read commit dropped entries sum
	recount "$what" >"$T/counted"
	awk '{ kept[$2] += $3; lost[$2] += $4 } END { for (c in kept) print c, kept[c], lost[c] }' \
		"$T/counted" >"$T/sums"
	while read -r cpu kept lost; do
		over=$(per_cpu overrun | awk -v c="$cpu" '$1 == c { print $2 }')
		read=$(per_cpu "read events" | awk -v c="$cpu" '$1 == c { print $2 }')
		commit=$(per_cpu "commit overrun" | awk -v c="$cpu" '$1 == c { print $2 }')
		dropped=$(per_cpu "dropped events" | awk -v c="$cpu" '$1 == c { print $2 }')
		entries=$(cpustat "$(find "$(REC)" -name '2*.dat' | sort | tail -n 1)" entries |
			awk -v c="$cpu" '$1 == c { print $2 }')
		echo "$what: cpu $cpu: traced $TRACED = kept $kept + overwritten $over + commit overrun $commit + dropped $dropped"
		[ "$entries" = 0 ] || fail "$what: cpu $cpu: $entries events were left in the ring buffer"
		[ "$kept" = "$read" ] || fail "$what: cpu $cpu: $read events read, $kept in the files"
		[ "$lost" = "$over" ] || fail "$what: cpu $cpu: $over events overwritten, $lost missing by the data"
		sum=$((kept + over + commit + dropped))
		[ "$sum" = "$TRACED" ] || fail "$what: cpu $cpu: traced $TRACED, accounted for $sum"
		case $2 in
		yes) [ "$over" -gt 0 ] || fail "$what: cpu $cpu: nothing was overwritten: a poor test" ;;
		no) [ "$over" = 0 ] || fail "$what: cpu $cpu: $over events overwritten" ;;
		esac
	done <"$T/sums"
	[ -s "$T/sums" ] || fail "$what: no CPU"
	forget
	TRACED=0
}

# --- as it should be
BUFFER=64M
storage MaxUse=4G FlushSec=200ms KeepFree=0 MaxFiles=0
flyrecd_start
for i in 1 2 3; do
	storm 50000
	kill -USR2 "$FLYRECD_PID"
	wait_for 60 has_segments "$i" || fail "no rotation"
done
storm 50000
flyrecd_stop
balances "roomy" no

# --- a tiny buffer at full speed, with rotations in the middle of it, and the daemon stopped for a
# while, so that there are certainly losses
BUFFER=64K
storage MaxUse=4G FlushSec=200ms KeepFree=0 MaxFiles=0
log_mark
flyrecd_start
for i in 1 2 3 4 5; do
	kill -STOP "$FLYRECD_PID"
	storm 20000
	kill -CONT "$FLYRECD_PID"
	background "${STORM[@]}" --count=100000 >/dev/null
	sleep 0.1
	kill -USR2 "$FLYRECD_PID"
	wait $!
	TRACED=$((TRACED + 100000))
	wait_for 60 has_segments "$i" || fail "no rotation"
done
storm 20000
# Nobody has asked for the counters before: they do not go with the ring buffer
ctl stop s
counted=$(ctl --json stats s | jq '[.sessions[0].cpus[].overrun] | add')
said=$(per_cpu overrun | awk '{ n += $2 } END { print n }')
[ "$counted" = "$said" ] || fail "stats of a stopped session: $counted overwritten, CPUSTAT: $said"
flyrecd_stop
log_has "overrun"
balances "overrun" yes

# --- losses that end just before the stop and just after the start of a segment
storage MaxUse=4G FlushSec=1h KeepFree=0 MaxFiles=0
log_mark
flyrecd_start
kill -STOP "$FLYRECD_PID"
storm 30000
kill -USR2 "$FLYRECD_PID"
kill -CONT "$FLYRECD_PID"
wait_for 60 has_segments 1 || fail "no rotation"
kill -STOP "$FLYRECD_PID"
storm 30000
kill -TERM "$FLYRECD_PID"
kill -CONT "$FLYRECD_PID"
wait_for 20 ended "$FLYRECD_PID" || fail "flyrecd does not stop"
log_has "at the ends"
balances "at the ends" yes

# --- a kill after a rotation: the next process counts from the new segment on
storage MaxUse=4G FlushSec=1h KeepFree=0 MaxFiles=0
log_mark
flyrecd_start
kill -STOP "$FLYRECD_PID"
storm 30000
kill -USR2 "$FLYRECD_PID"
kill -CONT "$FLYRECD_PID"
wait_for 60 has_segments 1 || fail "no rotation"
flyrecd_kill
flyrecd_start
flyrecd_stop
log_has "killed after a rotation"
