#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# qemu4v-speed.sh [--build=DIR] [--lines=N] [--rounds=N] - how fast `flyrecctl import` and `export`
# --format=qemu4v are, on one CPU, from the page cache, beside a bare tokenizer that only finds
# lines and words; the best of N (default 3) rounds each, in turn.
#
# A line each: "NAME: N.N M lines/s (N.NN s; N.N M a second of CPU time; N.N MB of memory)". Goal:
# import 5 M lines/s.
set -eu
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
lines=6000000 rounds=3
options build lines rounds -- "$@"
[ ${#words[@]} = 0 ] || usage
make -s -C "$build" bench/text-trace flyrecctl
place "${TMPDIR:-/var/tmp}"
"$build/bench/text-trace" generate "$lines" >"$dir/in.txt"

# run NAME COMMAND...: the fastest round's figures in $dir/NAME
run() {
	local name=$1 took
	shift
	"$build/bench/text-trace" run "$@" >/dev/null 2>"$dir/took" || {
		cat "$dir/took" >&2
		exit 1
	}
	took=$(tail -n 1 "$dir/took")
	if [ ! -e "$dir/$name" ] || awk -v a="$took" -v b="$(cat "$dir/$name")" \
		'BEGIN { exit !(a + 0 < b + 0) }'; then
		echo "$took" >"$dir/$name"
	fi
}

for ((i = 0; i < rounds; i++)); do
	run tokenizer "$build/bench/text-trace" tokenize "$dir/in.txt"
	run import "$build/flyrecctl" import --format=qemu4v --strict -o "$dir/out.dat" "$dir/in.txt"
	run export "$build/flyrecctl" export --format=qemu4v -o "$dir/out.txt" "$dir/out.dat"
done
cmp "$dir/in.txt" "$dir/out.txt"
for name in tokenizer import export; do
	awk -v name="$name" -v n="$lines" '{ printf "%s: %.1f M lines/s (%.2f s; %.1f M a second of " \
		"CPU time; %.1f MB of memory)\n", name, n / $1 / 1e6, $1, n / $2 / 1e6, $3 / 1024 }' "$dir/$name"
done
