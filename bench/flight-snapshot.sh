#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# flight-snapshot.sh [--buffer=MIB] [--runs=N] [--dir=DIR] [--realtime] - what a snapshot of a flight
# session costs
#
# Records all system calls of `storm` on all CPUs into MIB (64) per CPU, and takes N (5) snapshots.
# Prints, each as the median of the runs: the share of the history at the trigger that is in the file;
# milliseconds from the signal to the durable file, and the same for a plain O_DIRECT write with fsync of
# as many bytes to the same file system, once while the storm rages and once on a quiet machine; how
# much slower the traced program on CPU 0 is while one snapshot follows the other, and for comparison
# while one plain write does, and beside a program that only computes; CPU time; and
# `trace-cmd extract` after `trace-cmd stop` with the same events and buffers, and after
# `trace-cmd snapshot` where the kernel has that. The file system is DIR's (/var/tmp). As in its unit
# flyrecd has no real-time priority, unless --realtime. Wants root and tracefs. Uses build/ or
# FLYREC_BUILD.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
CPUS=$(nproc) buffer=64 runs=5 realtime='' dir=${TMPDIR:-/var/tmp}
options buffer runs dir realtime? -- "$@"
[ ${#words[@]} = 0 ] || usage
export TMPDIR=$dir
# shellcheck source-path=SCRIPTDIR/../tests/integration
. "$(dirname "$0")/../tests/integration/lib.sh"
. "$(dirname "$0")/../tests/integration/flight-lib.sh"
need_tracefs
need_command trace-cmd jq setpriv

# note_history: of each CPU, how far back the ring buffer goes, by the kernel's own counters: OLDEST and
# NOW, seconds of the trace clock. No process is started for it: it is just before the signal.
note_history() {
	local cpu text=()
	for ((cpu = 0; cpu < CPUS; cpu++)); do
		mapfile text <"$INSTANCE/per_cpu/cpu$cpu/stats"
		[[ ${text[*]} =~ oldest\ event\ ts:\ +([0-9.]+).*now\ ts:\ +([0-9.]+) ]] || fail "stats: ${text[*]}"
		OLDEST[cpu]=${BASH_REMATCH[1]} NOW[cpu]=${BASH_REMATCH[2]}
	done
}

# first_event FILE CPU: its time, seconds of the trace clock
first_event() {
	trace-cmd report --nodate --cpu "$2" "$1" 2>/dev/null |
		awk '{ for (i = 1; i < NF; i++) if ($i ~ /^[0-9]+\.[0-9]+:$/) { sub(/:/, "", $i); print $i; exit } }'
}

plain_write() { # BYTES: milliseconds
	local begin=${EPOCHREALTIME/./}
	dd if=/dev/zero of="$T/plain" bs=4M count="$1" iflag=count_bytes oflag=direct conv=fsync status=none
	msec "$begin"
	rm "$T/plain"
}

timed_snapshot() { # sets PATH_, adds milliseconds to FILE $1
	local begin line
	begin=${EPOCHREALTIME/./}
	kill -USR1 "$FLYRECD_PID"
	until read -r -t 20 -u "$LOG" line && [[ $line == *": snapshot /"* ]]; do
		[ -n "$line" ] || fail "no snapshot"
	done
	msec "$begin" >>"$1"
	PATH_=${line##*: snapshot }
}

cpu_msec() { # of flyrecd, all its threads
	awk '{ print ($14 + $15) * 10 }' "/proc/$FLYRECD_PID/stat"
}

# one_round NAME: a snapshot and a plain write of as many bytes
one_round() {
	timed_snapshot "$T/$1"
	plain_write "$(du -B1 "$PATH_" | cut -f1)" >>"$T/$1.plain"
}

ratio() { # NAME WHAT
	local a b
	a=$(median "$T/$1") b=$(median "$T/$1.plain")
	echo "$2: $a ms to the durable file, a plain O_DIRECT write $b ms: ratio $(
		awk -v a="$a" -v b="$b" 'BEGIN { printf "%.2f", a / b }'
	) (goal 1.3)"
}

rate() { # calls a second of a storm on CPU 0, one second
	"$T/$LOAD_NAME" --cpus=0 --duration=1 | sed -n 's/^total.*rate=\([0-9]*\).*/\1/p'
}

# What is run beside the traced program, until it is killed
one_snapshot_after_the_other() {
	while :; do
		ctl snapshot f >/dev/null
	done
}

one_write_after_the_other() {
	while :; do
		plain_write $((buffer * CPUS * 1048576)) >/dev/null
	done
}

only_computing() {
	while :; do
		:
	done
}

# slow_down WHAT: how much slower, per cent, the traced program is beside it, to FILE $1
slow_down() {
	local alone beside
	alone=$(rate)
	background "$1"
	sleep 0.1
	beside=$(rate)
	kill -TERM $!
	wait $! 2>/dev/null || true
	sleep 0.3 # what was begun ends
	awk -v a="$alone" -v b="$beside" 'BEGIN { printf "%.1f\n", 100 * (a - b) / a }' >>"$T/$1"
}

ln -sf "$TOOLS/storm" "$T/$LOAD_NAME"
EVENT="raw_syscalls:sys_enter" BUFFER=${buffer}M flight MaxFiles=4
if [ -z "$realtime" ]; then
	printf '#!/bin/sh\nexec setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice "%s" "$@"\n' "$FLYRECD" >"$T/flyrecd"
	chmod +x "$T/flyrecd"
	FLYRECD=$T/flyrecd
fi
flyrecd_start
echo "method: $(ctl --json status f | jq -r '.sessions[0].method'), $buffer MiB a CPU, $(nproc) CPUs, $(
	df --output=fstype "$T" | tail -n 1), load $(cut -d' ' -f1 /proc/loadavg)"

mkfifo "$T/log.pipe"
exec {LOG}<>"$T/log.pipe" # both ways: opening one alone would wait for the other
background tail -n 0 -f "$FLYRECD_LOG" >"$T/log.pipe"

# --- under full storm
load_start
wait_for 60 wrapped || fail "the storm does not fill the ring buffer"
ctl snapshot f >/dev/null # symbols are read once
INSTANCE=$(instance f)
cpu_before=$(cpu_msec)
for ((run = 0; run < runs; run++)); do
	sleep 1
	note_history
	one_round storm
	for ((cpu = 0; cpu < CPUS; cpu++)); do
		awk -v now="${NOW[cpu]}" -v oldest="${OLDEST[cpu]}" \
			-v first="$(first_event "$PATH_" "$cpu")" 'BEGIN {
				p = 100 * (now - first) / (now - oldest)
				printf "%.2f\n", (p > 100 ? 100 : p) }' >>"$T/share"
	done
done
cpu_each=$((($(cpu_msec) - cpu_before) / runs))
load_stop
echo "share of the history at the trigger that is in the file: median $(median "$T/share") %," \
	"least $(sort -n "$T/share" | head -n 1) % (goal 99)"
ratio storm "under storm on all CPUs"
echo "CPU time of flyrecd: $cpu_each ms a snapshot"

# --- nobody else needs the CPUs
for ((run = 0; run < runs; run++)); do
	one_round quiet
done
ratio quiet "quiet"

# --- the traced program
for ((run = 0; run < runs; run++)); do
	slow_down one_snapshot_after_the_other
	slow_down one_write_after_the_other
	slow_down only_computing
done
echo "traced program on CPU 0: $(median "$T/one_snapshot_after_the_other") % slower while snapshots are taken (goal 5);" \
	"beside plain writes $(median "$T/one_write_after_the_other") %," \
	"beside a program that only computes $(median "$T/only_computing") %"
flyrecd_stop

# --- trace-cmd: tracing has to stop for it
peer=$PREFIX"peer"
trace_cmd() {
	"$SRC/tests/tools/peer-trace-cmd" "$@" >"$T/peer.log" 2>&1 || fail "trace-cmd $1: $(tail -n 3 "$T/peer.log")"
}
remove_peer() {
	[ ! -d "$TRACEFS/instances/$peer" ] || rmdir "$TRACEFS/instances/$peer"
}
at_end remove_peer
mkdir "$TRACEFS/instances/$peer" # peer-trace-cmd covers files of what is there
trace_cmd start -B "$peer" -b $((buffer * 1024)) -C mono -e raw_syscalls:sys_enter
load_start
sleep 3
if [ -e "$TRACEFS/instances/$peer/snapshot" ]; then
	begin=${EPOCHREALTIME/./}
	trace_cmd snapshot -B "$peer" -s
	trace_cmd extract -B "$peer" -s -o "$T/peer.dat"
	sync -f "$T/peer.dat"
	echo "trace-cmd snapshot, extract, sync: $(msec "$begin") ms"
fi
begin=${EPOCHREALTIME/./}
trace_cmd stop -B "$peer"
trace_cmd extract -B "$peer" -o "$T/peer.dat"
sync -f "$T/peer.dat"
echo "trace-cmd stop, extract, sync: $(msec "$begin") ms, tracing was off for it"
load_stop
[ ! -d "$TRACEFS/instances/$peer" ] || echo 0 >"$TRACEFS/instances/$peer/events/enable"
