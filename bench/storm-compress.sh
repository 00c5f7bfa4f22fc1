#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# storm-compress.sh [--rounds=N] [--calls=N] [--size=MIB] [--segments=N] [--dir=DIR] - what compressing finished
# segments costs whoever is traced meanwhile
#
# Two variants take turns for N (7) rounds, each after the other first: without Compress=, and with. Each
# records N (6) segments of MIB (256), of system calls on all CPUs at full speed, 16 MiB of ring buffer a CPU,
# and then, while these are compressed or not, N (4000000) calls on each CPU more. It is an error if all were
# compressed before the calls were over. Prints of the two medians, with the least and the greatest: seconds
# that the calls took, CPU seconds of flyrecd, its largest resident size; the sum of lost events; and how much
# slower the calls were, by the medians of the rounds' own ratios. Wants root, tracefs and 8 GB.
# Uses build/ or FLYREC_BUILD.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
rounds=7 calls=4000000 size=256 segments=6 dir=${TMPDIR:-/var/tmp}
options rounds calls size segments dir -- "$@"
[ ${#words[@]} = 0 ] || usage
export TMPDIR=$dir
# shellcheck source-path=SCRIPTDIR/../tests/integration
. "$(dirname "$0")/../tests/integration/lib.sh"
need_tracefs
need_command jq

configure() { # no|zstd
	session load <<-EOF
		[Trace]
		Event=raw_syscalls:sys_enter
		Event=raw_syscalls:sys_exit
		BufferSize=16M
		[Storage]
		MaxUse=20G
		KeepFree=0
		FlushSec=200ms
		MaxFileSize=${size}M
		Compress=$1
	EOF
}

status_of() { # KEY
	ctl --json status load | jq -r ".sessions[0].$1"
}

half_made() {
	local new=("$STATE"/load/record/.*.dat.new)
	[ ${#new[@]} -gt 0 ]
}

# shellcheck disable=SC2128 # a number
has_segments() {
	local files=("$STATE"/load/record/2*.dat)
	[ ${#files[@]} -ge "$segments" ]
}

cpu_msec() { # of all threads, also of those that have ended
	awk -v tick="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) * 1000 / tick }' "/proc/$FLYRECD_PID/stat"
}

peak_kb() {
	sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$FLYRECD_PID/status"
}

# run VARIANT: adds to $T/VARIANT.…
# shellcheck disable=SC2128 # as above
run() {
	local before began packed
	rm -rf "$STATE"
	configure no
	flyrecd_start
	load_start
	wait_for 120 has_segments || fail "no $segments segments"
	load_stop
	sleep 1 # FlushSec: the last ones
	configure "$1"
	ctl reload
	[ "$1" = no ] || wait_for 20 half_made || fail "nothing is compressed"
	echo 5 >"/proc/$FLYRECD_PID/clear_refs"
	before=$(cpu_msec)
	packed=$(status_of compressed_segments)
	began=${EPOCHREALTIME/./}
	"$TOOLS/storm" "--count=$calls" >"$T/storm"
	msec "$began" | tee -a "$T/$1.msec" >"$T/$1.last"
	echo "$(cpu_msec) $before" | awk '{ print $1 - $2 }' >>"$T/$1.cpu"
	[ "$1" = no ] || half_made || fail "all is compressed already: more --segments=, or less --calls="
	[ "$1" = no ] || echo $(($(status_of compressed_segments) - packed)) >>"$T/$1.packed"
	sleep 1
	peak_kb >>"$T/$1.peak"
	status_of lost_events >>"$T/$1.lost"
	flyrecd_stop
}

summary() { # FILE DIVISOR: median (least-greatest)
	sort -n "$1" | awk -v by="$2" '{ v[NR] = $1 / by }
		END { printf "%.2f (%.2f-%.2f)", v[int((NR + 1) / 2)], v[1], v[NR] }'
}

for ((round = 0; round < rounds; round++)); do
	order=(no zstd)
	[ $((round % 2)) = 0 ] || order=(zstd no)
	for variant in "${order[@]}"; do
		run "$variant"
	done
	paste "$T/zstd.last" "$T/no.last" | awk '{ print ($1 / $2 - 1) * 100 }' >>"$T/slower"
done

echo "$rounds rounds, $(nproc) CPUs, $calls calls each, load $(cut -d ' ' -f 1 /proc/loadavg)"
while read -r file by text; do
	echo "$text: without $(summary "$T/no.$file" "$by"), with $(summary "$T/zstd.$file" "$by")"
done <<-EOF
	msec 1000 seconds of the calls
	cpu 1000 CPU seconds of flyrecd
	peak 1024 largest resident size, MiB
EOF
echo "the traced program is slower by $(summary "$T/slower" 1) % (goal 2)"
echo "lost events: without $(jq -s add "$T/no.lost"), with $(jq -s add "$T/zstd.lost") (goal 0)"
echo "segments compressed meanwhile: $(summary "$T/zstd.packed" 1), the next one under way"
