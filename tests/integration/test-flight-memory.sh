#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 180
#
# Flight sessions whose ring buffers are much larger than Memory=: most of them is copied while the
# file is being written, and is not let go of a moment longer than that takes. What the kernel has
# overwritten before its turn is counted, and the file says where it was.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/flight-lib.sh"
need_tracefs
need_tool check-markers
need_command trace-cmd numfmt jq
BUFFER=8M

state_on ext4 2G
flight Memory=2M
flyrecd_start
[ "$(ctl --json status f | jq -r '.sessions[0].method')" = mapped ] || skip "this kernel does not map ring buffers"

# held: files and mappings of ring buffers that flyrecd has
held() {
	local fd n=0
	for fd in "/proc/$FLYRECD_PID/fd"/*; do
		[[ $(readlink "$fd") != *trace_pipe_raw* ]] || n=$((n + 1))
	done
	echo $((n + $(grep -c trace_pipe_raw "/proc/$FLYRECD_PID/maps")))
}

let_go() {
	[ "$(held)" = 0 ] ||
		fail "flyrecd holds ring buffers: $(grep trace_pipe_raw "/proc/$FLYRECD_PID/maps"; ls -l "/proc/$FLYRECD_PID/fd")"
}

let_go

# --- twice at once, while markers are written
"$TOOLS/markers" "--instance=${PREFIX}f" --count=225000 >"$T/burst"
wrapped || fail "the ring buffers are not full"
markers_start f 50000 "--continue=$T/burst"
first=$(ctl snapshot f)
let_go
second=$(ctl snapshot f)
let_go
markers_stop
good "$second"
whole "$second"
begin=$(sed -n 's/^cpu=0 .* lost_at_start=\([0-9]*\) .*/\1/p' "$T/check")
good "$first"
whole "$first"
end=$(sed -n 's/^cpu=0 found=\([0-9]*\) .* lost_at_start=\([0-9]*\) .*/\1 + \2/p' "$T/check")
[ $((end)) -gt "$begin" ] || fail "the second snapshot has lost its history to the first"

# --- as much is written as the MiB say, a CPU, while the daemon has copied what Memory= allows
stopped_itself() { [ "$(process_state "$FLYRECD_PID")" = T ]; }

per_mib=$(($(sed -n 's/^entries: //p' "$(instance f)/per_cpu/cpu0/stats") / 8))

snapshot_behind() { # MIB
	local mib=$1 pid
	flyrecd_hand_over
	FLYREC_FAULT_POINT=flight-captured flyrecd_start
	cp "$T/expect" "$T/before"
	ctl snapshot f >"$T/path" &
	pid=$!
	CHILDREN+=("$pid")
	wait_for 20 stopped_itself || fail "does not come to flight-captured"
	[ "$(held)" -gt 0 ] || fail "all is copied: the test tests nothing"
	"$TOOLS/markers" "--instance=${PREFIX}f" "--count=$((per_mib * mib))" "--continue=$T/expect" >"$T/more"
	mv "$T/more" "$T/expect"
	kill -CONT "$FLYRECD_PID"
	wait "$pid" || fail "no snapshot: $(tail -n 3 "$FLYRECD_LOG")"
	let_go
}

# reaches: of each CPU the last marker from before the snapshot is there, by what check-markers said
reaches() {
	awk -F '[ =]' 'NR == FNR { last[$2] = $6; n++; next }
		/^cpu=/ { n--; if ($4 + $6 + $8 <= last[$2]) bad = 1 }
		END { exit bad || n }' "$T/before" "$T/check" ||
		fail "the end lacks: $(cat "$T/before" "$T/check")"
}

torn() { # FILE: of each CPU
	trace-cmd report --stat "$1" 2>/dev/null | sed -n 's/^flyrec torn subbufs:[[:space:]]*//p'
}

# The kernel has overtaken the copy, behind which there is nothing missing but that
snapshot_behind 3
file=$(cat "$T/path")
verify "$file"
subbuf=$(sed -n 's/.*char data;.*size:\([0-9]*\);.*/\1/p' "$(instance f)/events/header_page")
for n in $(torn "$file"); do
	[ $((n * subbuf)) -gt 1000000 ] || fail "only $n sub-buffers torn: $(trace-cmd report --stat "$file")"
done
markers_are "$file" --allow-lost-at-start --allow-lost-at-end --max-lost=10000000 "$file"
reaches
# one hole a CPU, and the file tells of each
holes=$(grep -c '^  cpu=[0-9]* lost [1-9]' "$T/check")
[ "$holes" = "$(torn "$file" | wc -l)" ] || fail "holes: $(cat "$T/check")"
grep -q "^total .* gaps=$holes$" "$T/check" || fail "holes that the file does not tell: $(cat "$T/check")"

# With more memory the copy is ahead, and goes on without waiting for the disk when that is at stake
flyrecd_stop
BUFFER=32M
flight Memory=32M
flyrecd_start
"$TOOLS/markers" "--instance=${PREFIX}f" "--count=$((per_mib * 33))" >"$T/expect"
wrapped || fail "the ring buffers are not full"
snapshot_behind 4
file=$(cat "$T/path")
good "$file"
reaches
whole "$file"
flyrecd_stop
nothing_half
