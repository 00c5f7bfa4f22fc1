#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# verify-speed.sh [--build=DIR] [--size=MIB] [FILE] - how fast `flyrecctl verify` is on one core, from
# the page cache: the best of five. Without FILE, some MIB (default 600) of system call events are
# recorded first with trace-cmd, as root, in an instance of its own.
#
# Last line: "verify: N.NN GB/s, N.N M events/s (SIZE MB, N events)". Goal: 1 GB/s.
set -eu
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
size=600
options build size -- "$@"
file=${words[0]:-}
place "${TMPDIR:-/var/tmp}"

if [ -z "$file" ]; then
	[ -x "$build/tests/tools/storm" ] || make -s -C "$build" tools
	file=$dir/bench.dat
	# two events of about 49 bytes a call
	calls=$((size * 1048576 / 98 / $(nproc)))
	record "$file" -b 65536 -e raw_syscalls "$build/tests/tools/storm" "--count=$calls"
fi

cpu=$(taskset -pc $$ | sed 's/.*: *//; s/[-,].*//')
bytes=$(du --apparent-size -B1 "$file" | cut -f1)
cat "$file" >/dev/null
best=''
for _ in 1 2 3 4 5; do
	begin=${EPOCHREALTIME/./}
	taskset -c "$cpu" "$build/flyrecctl" verify "$file" >"$dir/out"
	took=$((${EPOCHREALTIME/./} - begin))
	[ -n "$best" ] && [ "$best" -le "$took" ] || best=$took
done
events=$(sed -nE '1s/.* ([0-9]+) events.*/\1/p' "$dir/out")
awk -v b="$bytes" -v t="$best" -v e="$events" 'BEGIN {
	printf "verify: %.2f GB/s, %.1f M events/s (%d MB, %d events)\n",
		b / t / 1000, e / t, b / 1000000, e }'
