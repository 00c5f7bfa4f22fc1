#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# current.dat is read over and over while it is written, under a storm of events and while task names
# are rewritten, by several programs at once and over rotations: never an error or a complaint.
# time-limit: 120
# tests: fast
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd
need_tool libtracecmd-open
DURATION=7

# Segments small enough for trace-cmd report to read some before they are full
session live <<-EOF
	[Trace]
	Event=raw_syscalls:sys_enter if $LOAD_FILTER
	Event=sched:sched_switch
	BufferSize=8M
	[Storage]
	FlushSec=100ms
	SyncIntervalSec=200ms
	MaxFileSize=32M
	MaxUse=8G
EOF

dump() {
	trace-cmd dump --summary --options --flyrecord "$1"
}
# seed FILE: a name that is just being written may be half there, for one reader at one moment, where
# the file system's writes are seen byte by byte (ext4)
seed() {
	local status=0
	"$TOOLS/seed-reader" "$1" >"$T/seed" || status=$?
	if [ $status != 0 ] && grep -q '^FAULT .*not "PID COMM"' "$T/seed" &&
		! grep '^FAULT ' "$T/seed" | grep -qv 'not "PID COMM"'; then
		status=0
		"$TOOLS/seed-reader" "$1" >"$T/seed" || status=$?
	fi
	cat "$T/seed"
	return $status
}
names() { # new task names all the time
	while :; do
		"$TOOLS/forkstorm" --count=200 >/dev/null
		sleep 0.05
	done
}
export -f dump seed
export T TOOLS

# readers FILE: all kinds of them at once; fails when one of them did
# shellcheck disable=SC2016 # for the inner shell
readers() {
	local file=$1 pid pids=() kind
	"$SRC/tests/tools/live-reader" "$file" "$DURATION" >"$T/out.report" &
	pids+=($!)
	"$SRC/tests/tools/live-reader" "$file" "$DURATION" bash -c 'dump "$@"' dump >"$T/out.dump" &
	pids+=($!)
	"$SRC/tests/tools/live-reader" "$file" "$DURATION" "$TOOLS/libtracecmd-open" >"$T/out.open" &
	pids+=($!)
	"$SRC/tests/tools/live-reader" "$file" "$DURATION" "$FLYRECCTL" verify >"$T/out.verify" &
	pids+=($!)
	"$SRC/tests/tools/live-reader" "$file" "$DURATION" bash -c 'seed "$@"' seed >"$T/out.seed" &
	pids+=($!)
	CHILDREN+=("${pids[@]}")
	for pid in "${pids[@]}"; do
		wait "$pid" || true
	done
	for kind in report dump open verify seed; do
		echo "$1: $kind $(tail -n 1 "$T/out.$kind")"
		grep -q '^runs=[1-9][0-9]* failures=0$' "$T/out.$kind" ||
			fail "reading with $kind: $(head -n 3 "$T/out.$kind")"
	done
}

flyrecd_start
background names
NAMES_PID=$!
load_bursts 0.02 0.2
file=$STATE/live/record/current.dat
readers "$file"

echo "== over rotations"
rotate_on() { # no sleep(1), which would outlive it
	local nothing
	exec {nothing}<> <(:)
	while ! read -r -t 0.4 -u "$nothing"; do
		kill -USR2 "$FLYRECD_PID"
	done
}
background rotate_on
ROTATE_PID=$!
DURATION=5 readers "$file"
kill "$ROTATE_PID" "$NAMES_PID"
load_stop
flyrecd_stop
verify "$STATE/live/record"
no_damage
segments=("$STATE"/live/record/2*.dat)
echo "${#segments[@]} segments"
[ "${#segments[@]}" -ge 5 ] || fail "no rotations"
