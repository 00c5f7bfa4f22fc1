#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# engine/ records without the daemon: tests/tools/engine-record, a program of its own, drains an
# instance into segments, which are whole, readable by trace-cmd, and have every event.
# beside: yes
# tests: fast
# time-limit: 150
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd
need_tool engine-record
need_tool check-markers

mkdir "$T/record"
echo "== recording, over several segments"
background "$TOOLS/engine-record" --instance="${PREFIX}engine" --dir="$T/record" \
	--event=raw_syscalls:sys_enter --max-bytes=4M >"$T/engine.log" 2>&1
ENGINE=$!
recording() { grep -q '^recording$' "$T/engine.log"; }
wait_for 20 recording || fail "engine-record: $(cat "$T/engine.log")"
markers_start engine 20000
sleep 3
markers_stop
kill -TERM $ENGINE
wait $ENGINE || fail "engine-record: $(cat "$T/engine.log")"
[ ! -e "$(instance engine)" ] || fail "the instance is still there"

segments=("$T"/record/2*.dat)
[ ${#segments[@]} -ge 3 ] || fail "not several segments: $(ls -lA "$T/record")"
[ "$(printf '%s\n' "${segments[@]##*/}")" = "$(grep '\.dat$' "$T/engine.log")" ] ||
	fail "what it has finished: $(cat "$T/engine.log"), what is there: $(ls -A "$T/record")"
[ "$(find "$T/record" -type f | wc -l)" = ${#segments[@]} ] || fail "left over: $(ls -lA "$T/record")"
[ "$(grep -cv '^recording$\|\.dat$' "$T/engine.log")" = 0 ] || fail "engine-record: $(cat "$T/engine.log")"
echo "== ${#segments[@]} segments"
verify "${segments[@]}"
markers_are engine "--expect=$T/expect" "${segments[@]}"
for file in "${segments[@]}"; do
	trace-cmd report -i "$file" >"$T/report" 2>"$T/report.err" || fail "trace-cmd report $file: $(cat "$T/report.err")"
	grep -q 'sys_enter:' "$T/report" || fail "no event of sys_enter in $file"
done
