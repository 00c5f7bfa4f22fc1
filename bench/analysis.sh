#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# analysis.sh [--build=DIR] [--rounds=N] [--loops=N] [FILE...] - CPU time of `flyrecctl view` and
# `analyze` beside `trace-cmd report --profile`
#
# Without FILE the scheduler's events, interrupts and block requests of `perf bench sched messaging`,
# tasks that pass messages through pipes, N (12000) each, of `perf bench sched pipe` and of files that are
# written are recorded first: some 7 million events, of the scheduler alone in one file and of all in
# another, by flyrecd, since trace-cmd does not profile instances in its own files. Wants root, tracefs,
# perf and 2 GB below TMPDIR (/var/tmp).
#
# All commands take turns in each of N (7) rounds, from the page cache. Prints for each table the user and
# system time together, the least and the most of the rounds; with the least, millions of events a
# second, the start of the program included. Goals: 30 of runqueue and 15 of
# analyze, on one core, and a fifth of --profile's time.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
rounds=7 loops=12000
options build rounds loops -- "$@"
files=()
for file in "${words[@]}"; do
	files+=("$(realpath "$file")")
done
export FLYREC_BUILD=$build TMPDIR=${TMPDIR:-/var/tmp}
# shellcheck source-path=SCRIPTDIR/../tests/integration
. "$(dirname "$0")/../tests/integration/lib.sh"
need_command trace-cmd perf
cd "$T"

load() {
	perf bench sched messaging -p -g 4 -l "$loops" >/dev/null 2>&1 || fail "perf bench sched messaging"
	perf bench sched pipe -l $((50 * loops)) >/dev/null 2>&1 || fail "perf bench sched pipe"
	for _ in {1..20}; do
		dd if=/dev/zero of=junk bs=64k count=40 conv=fsync status=none
	done
}

# events_of SYSTEM...: a session's lines; the ring buffer has room for whatever the disk is at
events_of() {
	echo "[Trace]"
	printf 'Event=%s\n' "$@"
	printf 'BufferSize=128M\n[Storage]\nMaxFileSize=2G\nMaxUse=4G\n'
}

if [ ${#files[@]} = 0 ]; then
	need_tracefs
	for name in sched all; do
		systems=(sched)
		[ $name = sched ] || systems+=(irq block)
		session $name < <(events_of "${systems[@]}")
		flyrecd_start
		load
		flyrecd_stop
		rm "$CONFIG/sessions.d/$name.conf"
		mv "$STATE/$name/record"/*.dat $name.dat
		files+=("$name.dat")
	done
fi

# took NAME COMMAND...: its milliseconds of CPU time are added to NAME
took() {
	local TIMEFORMAT='%U %S' name=$1
	shift
	{ time "$@" >/dev/null 2>errors; } 2>&1 | awk '{ printf "%d\n", 1000 * ($1 + $2) }' >>"$name"
}

mapfile -t tables < <("$FLYRECCTL" view | cut -f 1 | tail -n +2)
for file in "${files[@]}"; do
	cat "$file" >/dev/null
	events=$("$FLYRECCTL" view --json events "$file" | sed -nE 's/.*"events":([0-9]+),.*/\1/p')
	echo "$(basename "$file"): $events events, $(du --apparent-size -m "$file" | cut -f1) MB, load $(cut -d' ' -f1 /proc/loadavg)"
	rm -f took.*
	for ((round = 0; round < rounds; round++)); do
		took took.start "$FLYRECCTL" view --last=1us events "$file"
		for table in "${tables[@]}"; do
			took "took.$table" "$FLYRECCTL" view "$table" "$file"
		done
		took took.analyze "$FLYRECCTL" analyze "$file"
		took took.profile trace-cmd report --profile "$file"
	done
	profile=$(sort -n took.profile | head -n 1)
	for name in start "${tables[@]}" analyze profile; do
		sort -n "took.$name" | awk -v name="$name" -v events="$events" -v profile="$profile" '
			NR == 1 { least = $1 > 0 ? $1 : 1 }
			END {
				printf "%-11s %d to %d ms", name, least, $1
				if (name != "start")
					printf ": %.1f M events/s", events / least / 1000
				if (name != "start" && name != "profile")
					printf ", %.2f of --profile", least / profile
				print ""
			}'
	done
done
