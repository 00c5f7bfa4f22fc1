#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# export-speed.sh [--build=DIR] [--rounds=N] [FILE...] - how fast `flyrecctl export` is beside
# `trace-cmd report`, on the same files in turn, from the page cache, the best of N (default 3)
# rounds each. Without FILE, events of several kinds are recorded first with trace-cmd, as root, in
# an instance of its own.
#
# A line each: "KIND: N events, report N.N s, text N.N s (N.N times as fast), JSON N.N s (…), Perfetto N.N s
# (N.N M events/s)", where the text was found to be the same. Goals: 3 times as fast; 2 M events/s.
set -eu
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
rounds=3
options build rounds -- "$@"
files=("${words[@]}")
place "${TMPDIR:-/var/tmp}"

cat >"$dir/work" <<-EOF
	#!/bin/sh
	for i in 1 2 3; do
		"$build/tests/tools/storm" --count=30000
		"$build/tests/tools/forkstorm" --count=1500
		ls -lR /usr/share/doc /usr/lib
		dd if=/dev/zero of="$dir/junk" bs=64k count=100 conv=fsync
	done
EOF
chmod +x "$dir/work"

# record_kind KIND OPTION...
record_kind() {
	PEER_NAMES=still record "$dir/$1.dat" -b 32768 -m 60000 "${@:2}" "$dir/work"
	files+=("$dir/$1.dat")
}

# best COMMAND...: microseconds of the fastest round
best() {
	local begin took fastest=''
	for ((i = 0; i < rounds; i++)); do
		begin=${EPOCHREALTIME/./}
		"$@" >/dev/null 2>&1
		took=$((${EPOCHREALTIME/./} - begin))
		[ -n "$fastest" ] && [ "$fastest" -le "$took" ] || fastest=$took
	done
	echo "$fastest"
}

if [ ${#files[@]} = 0 ]; then
	make -s -C "$build" tools
	record_kind sched -e sched
	record_kind raw_syscalls -e raw_syscalls
	record_kind syscalls -e syscalls
	record_kind block_ext4 -e block -e ext4 -e writeback -e jbd2 -e filemap
	record_kind irq_timer -e irq -e timer -e irq_vectors -e rcu -e workqueue
	record_kind stacks -e sched:sched_switch -R stacktrace -e kmem:kmalloc
	record_kind all -e all
fi
for file in "${files[@]}"; do
	trace-cmd report "$file" >"$dir/theirs" 2>/dev/null
	"$build/flyrecctl" export --format=text -o "$dir/ours" "$file"
	cmp "$dir/theirs" "$dir/ours" || exit 1
	events=$("$build/flyrecctl" export --format=json "$file" | wc -l)
	rm -f "$dir/theirs" "$dir/ours"
	report=$(best trace-cmd report "$file")
	text=$(best "$build/flyrecctl" export --format=text "$file")
	json=$(best "$build/flyrecctl" export --format=json "$file")
	perfetto=$(best "$build/flyrecctl" export --format=perfetto "$file")
	awk -v name="$(basename "$file" .dat)" -v n="$events" -v r="$report" -v t="$text" -v j="$json" -v p="$perfetto" \
		'BEGIN { printf "%s: %d events, report %.2f s, text %.2f s (%.1f times as fast), " \
			"JSON %.2f s (%.1f times), Perfetto %.2f s (%.1f M events/s)\n", name, n, r / 1e6, t / 1e6, r / t,
			j / 1e6, r / j, p / 1e6, n / p }'
done
