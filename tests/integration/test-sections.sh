#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 120
#
# A reader written from the manual page of the format alone agrees byte for byte with tracefs, and
# readers of other people open the file: while it is written, and when it is finished.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd
need_tool libtracecmd-open check-markers

session sections <<-EOF
	[Trace]
	Event=sched
	Event=irq:softirq_entry
	[Storage]
	FlushSec=200ms
EOF

live=$STATE/sections/record/current.dat
flyrecd_start
background "$TOOLS/markers" --instance="${PREFIX}sections" --rate=5000 --retry >"$T/expect"
markers=$!
sleep 1

echo "== live"
"$TOOLS/seed-reader" --compare-tracefs="${PREFIX}sections" "$live" || fail "seed-reader, live"
"$SRC/tests/tools/live-reader" "$live" 5 "$TOOLS/seed-reader" || fail "seed-reader in a loop"
"$SRC/tests/tools/live-reader" "$live" 10 trace-cmd report || fail "trace-cmd in a loop"
"$SRC/tests/tools/live-reader" "$live" 2 trace-cmd dump --summary -i || fail "trace-cmd dump"
"$TOOLS/libtracecmd-open" "$live" || fail "libtracecmd, live"

echo "== finished"
kill -TERM "$markers"
wait_for 5 ended "$markers" || fail "markers does not end"
flyrecd_stop
files=("$STATE"/sections/record/2*.dat)
[ ${#files[@]} = 1 ] || fail "finished files: ${files[*]}"
[ ! -e "$live" ] || fail "current.dat is still there"
# the instance is gone, its header files are those of the top level
"$TOOLS/seed-reader" --compare-tracefs=/ "${files[0]}" || fail "seed-reader, finished"
"$TOOLS/libtracecmd-open" "${files[0]}" >"$T/records" || fail "libtracecmd, finished"
records=$(sed -n 's/^total records=//p' "$T/records")
lines=$(trace-cmd report "${files[0]}" 2>/dev/null | grep -c ' \[[0-9]*\] ')
[ "$records" = "$lines" ] || fail "libtracecmd finds $records records, trace-cmd report $lines"
[ "$records" -gt 10000 ] || fail "only $records events"
"$TOOLS/check-markers" --expect="$T/expect" "${files[0]}" || fail "markers"
trace-cmd dump --all -i "${files[0]}" >"$T/dump" 2>&1 || fail "trace-cmd dump: $(tail -n 3 "$T/dump")"
