#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# two-builds.sh --old=DIR [--new=DIR] [--rounds=N] [--size=MB] [--dir=DIR] - is this build as fast as
# that one?
#
# The two take turns for N (5) rounds, each after the other first. In a round each records MB (800) of
# system calls at full speed, and takes a snapshot of 0.3 s out of its files and one of a flight session
# of 16 MiB a CPU; then each verifies and exports one and the same recording, from the page cache.
# Prints a line each, medians with the least and the greatest: CPU seconds of flyrecd per GB,
# milliseconds of the rest; and how the medians compare, new to old. Wants root and tracefs.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
old='' new=${FLYREC_BUILD:-$build} rounds=5 size=800 dir=${TMPDIR:-/var/tmp}
options old new rounds size dir -- "$@"
[ ${#words[@]} = 0 ] || usage
[ -x "$old/flyrecd" ] || usage
export TMPDIR=$dir FLYREC_BUILD=$new
# shellcheck source-path=SCRIPTDIR/../tests/integration
. "$(dirname "$0")/../tests/integration/lib.sh"
need_tracefs
need_command jq

CALLS=$((size * 1000000 / 98 / $(nproc))) # two events of about 49 bytes each
CPU=$(taskset -pc $$ | sed 's/.*: *//; s/[-,].*//')

# timed FILE COMMAND...: its milliseconds are added to FILE
timed() {
	local begin=${EPOCHREALTIME/./} file=$1
	shift
	"$@" >"$T/out" 2>"$T/errors" || fail "$*: $(tail -n 2 "$T/errors")"
	msec "$begin" >>"$file"
}

cpu_nsec() { # of all threads; those of recording stay
	cat "/proc/$FLYRECD_PID"/task/*/schedstat | awk '{ n += $1 } END { printf "%.0f\n", n }'
}

kept() { # bytes
	ctl --json stats load | jq '[.sessions[].cpus[].bytes] | add'
}

# record WHICH
record() {
	local before bytes
	rm -rf "$STATE"
	flyrecd_start
	before=$(cpu_nsec)
	"$TOOLS/storm" "--count=$CALLS" >/dev/null
	sleep 0.5 # FlushSec: the last ones
	bytes=$(kept)
	echo "$(cpu_nsec) $before $bytes" |
		awk '{ printf "%.3f\n", ($1 - $2) / $3 }' >>"$T/$1.drain"
	timed "$T/$1.range" ctl snapshot load "--since=@$(($(date +%s) - 1)).4" "--until=@$(($(date +%s) - 1)).7"
	timed "$T/$1.flight" ctl snapshot f
	flyrecd_stop
}

# use WHICH: its programs
use() {
	local which=$1
	FLYRECD=${!which}/flyrecd
	FLYRECCTL=${!which}/flyrecctl
}

for name in load f; do
	session "$name" <<-EOT
		[Session]
		Mode=$([ "$name" = f ] && echo flight || echo record)
		[Trace]
		Event=raw_syscalls:sys_enter
		Event=raw_syscalls:sys_exit
		BufferSize=16M
		$([ "$name" = f ] || printf '[Storage]\nMaxUse=20G\nKeepFree=0\nFlushSec=200ms\n')
	EOT
done

use new
flyrecd_start
"$TOOLS/storm" "--count=$CALLS" >/dev/null
flyrecd_stop
mv "$STATE"/load/record/2*.dat "$T/one.dat"

for ((round = 0; round < rounds; round++)); do
	order=(old new)
	[ $((round % 2)) = 0 ] || order=(new old)
	for which in "${order[@]}"; do
		use "$which"
		record "$which"
	done
	for which in "${order[@]}"; do
		use "$which"
		timed "$T/$which.verify" taskset -c "$CPU" "$FLYRECCTL" verify "$T/one.dat"
		timed "$T/$which.text" "$FLYRECCTL" export --format=text -o /dev/null "$T/one.dat"
		timed "$T/$which.json" "$FLYRECCTL" export --format=json -o /dev/null "$T/one.dat"
	done
done

# summary FILE: median (least-greatest)
summary() {
	sort -n "$1" | awk '{ v[NR] = $1 } END { printf "%s (%s-%s)", v[int((NR + 1) / 2)], v[1], v[NR] }'
}

echo "$rounds rounds of $size MB, $(nproc) CPUs"
while read -r name text; do
	echo "$text: old $(summary "$T/old.$name"), new $(summary "$T/new.$name"): $(
		awk -v a="$(median "$T/old.$name")" -v b="$(median "$T/new.$name")" 'BEGIN { printf "%.2f", b / a }'
	)"
done <<-EOF
	drain recording, CPU s/GB
	range snapshot of 0.3 s out of files, ms
	flight snapshot of a ring buffer, ms
	verify verify on one core, ms
	text export as text, ms
	json export as JSON, ms
EOF
