#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# Somebody else changes a running session's instance: noticed within a flush interval, reported once
# with what was changed, repaired; the files stay valid.
# time-limit: 120
# tests: fast
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd
need_tool check-markers
need_event sched:sched_switch sched:sched_process_fork

session med <<-EOF
	[Trace]
	Event=sched:sched_switch if next_pid != 0
	Event=sched:sched_process_fork
	Event=raw_syscalls:sys_enter if $LOAD_FILTER
	Clock=local
	BufferSize=2M
	[Storage]
	FlushSec=500ms
EOF
file() {
	cat "$(instance med)/$1"
}
is() { # FILE VALUE
	[ "$(file "$1")" = "$2" ]
}
meddle() { # FILE VALUE
	echo "$2" >"$(instance med)/$1"
}

# noticed WHAT FILE VALUE: one line, and the file has its value again
noticed() {
	must_log "med: $TRACEFS/instances/${PREFIX}med: .*$1" 5
	is "$2" "$3" || fail "$1: $2 is $(file "$2"), not $3"
	sleep 1.2 # two more looks
	logged_once "med: " || logged_once "med: $TRACEFS.*had been" ||
		fail "reported more than once: $(tail -n "+$((LOG_MARK + 1))" "$FLYRECD_LOG")"
	is "$2" "$3" || fail "$1: $2 is $(file "$2") again"
	tail -n "+$((LOG_MARK + 1))" "$FLYRECD_LOG"
	log_mark
}
segments() {
	local files=("$STATE"/med/record/2*.dat)
	echo ${#files[@]}
}

flyrecd_start
load_bursts 0.01 0.3
markers_start med 2000 --retry
sleep 0.3
log_mark
size=$(file buffer_size_kb)
filter=$(file events/sched/sched_switch/filter)

! rmdir "$(instance med)" 2>/dev/null || fail "an instance that is being drained could be removed"
meddle tracing_on 0
noticed 'tracing had been switched off' tracing_on 1
meddle events/enable 0
noticed 'sched:sched_switch had been disabled' events/sched/sched_switch/enable 1
is events/raw_syscalls/sys_enter/enable 1 || fail "not all events are enabled again"
meddle events/sched/sched_switch/filter 0
noticed 'the filter of sched:sched_switch had been set to none' events/sched/sched_switch/filter "$filter"
meddle events/sched/sched_switch/filter 'next_pid == 1'
noticed 'the filter of sched:sched_switch had been set to next_pid == 1' events/sched/sched_switch/filter "$filter"
meddle buffer_size_kb 64
noticed 'the buffer size had been set to' buffer_size_kb "$size"
meddle buffer_percent 99
noticed 'buffer_percent had been set to 99' buffer_percent 25
# tai is far ahead of local: were one more event of local behind it, time would go backwards
before=$(segments)
meddle trace_clock tai
must_log 'the clock had been set to tai' 5
grep -q '\[local\]' "$(instance med)/trace_clock" || fail "the clock is $(file trace_clock)"
next_segment() {
	[ "$(segments)" -gt "$before" ]
}
wait_for 5 next_segment || fail "no new segment after the clock was another one"
log_mark

"$SRC/tests/tools/peer-trace-cmd" reset -B "${PREFIX}med" >"$T/reset" 2>&1 || fail "trace-cmd reset: $(cat "$T/reset")"
# It takes its time, so that a look may find half of it
must_log 'sched:sched_switch had been disabled' 5
quiet() {
	log_mark
	sleep 1.2
	! logged "med: "
}
wait_for 10 quiet || fail "reported again and again: $(tail -n 5 "$FLYRECD_LOG")"
is events/sched/sched_switch/enable 1 || fail "the events are disabled"
is events/sched/sched_switch/filter "$filter" || fail "the filter is $(file events/sched/sched_switch/filter)"
is buffer_size_kb "$size" || fail "the buffer size is $(file buffer_size_kb)"
is tracing_on 1 || fail "tracing is off"

sleep 0.5
kill -0 "$FLYRECD_PID" || fail "flyrecd has ended"
markers_stop
load_stop
flyrecd_stop
verify "$STATE/med/record"
no_damage
# What was written while tracing was off is in no file; the rest is there once and in order
markers_check med --max-lost=100000
for path in "$STATE"/med/record/2*.dat; do
	"$TOOLS/libtracecmd-open" "$path" >"$T/open" || fail "libtracecmd: $(cat "$T/open")"
	trace-cmd report "$path" 2>&1 >/dev/null | grep . && fail "trace-cmd report $path"
done
tail -n 1 "$T/check"
last=$(sed -n 's/^cpu=0 .*last=//p' "$T/expect")
prints "flyrec-test cpu=0 seq=$last" trace-cmd report "$path" ||
	fail "the last marker is in no file: tracing was not repaired"
