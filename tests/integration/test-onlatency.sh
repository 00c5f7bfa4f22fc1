#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 240
#
# OnLatency=: waits of known length, of each kind that can be made here; a record session and a flight
# session have a snapshot for each that is too long, also while it goes on, and none for shorter ones.
# Events that this takes are recorded, too. The process that looks for them comes back when it is
# killed, and nothing of it is left at the end.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd python3
need_event sched:sched_switch sched:sched_waking syscalls:sys_enter_clock_nanosleep raw_syscalls:sys_enter raw_syscalls:sys_exit
cd "$T"
need_tool waits
# of a name that no other test has
NAME=w$LOAD_NAME
NAME=${NAME:0:15}
WAITS=$T/$NAME
ln -s "$TOOLS/waits" "$WAITS"

# status SESSION TEXT FIELD: of the trigger
status() {
	ctl --json status "$1" | python3 -c 'import json, sys
all = json.load(sys.stdin)["sessions"][0]["triggers"]
print([t[sys.argv[2]] for t in all if t["kind"] == "latency" and t["text"] == sys.argv[1]][0])' "$2" "$3"
}

is_armed() { # SESSION TEXT
	[ "$(status "$1" "$2" state)" = armed ]
}

# hits SESSION TEXT: how often the condition was fulfilled
hits() {
	echo $(($(status "$1" "$2" fired) + $(status "$1" "$2" suppressed)))
}

has_hits() { # SESSION TEXT NUMBER
	[ "$(hits "$1" "$2")" -ge "$3" ]
}

# snapshot_says SESSION PATTERN: the text of one of them, as trace-cmd shows it
snapshot_says() {
	local file
	for file in "$STATE/$1"/snapshot/*-latency.dat; do
		[ -e "$file" ] || return 1
		trace-cmd report --stat "$file" 2>/dev/null | sed -n '/^flyrec snapshot/,/^ /p'
	done >"$T/stat"
	grep -qE -- "$2" "$T/stat"
}

SLEEP="syscall clock_nanosleep 250ms task=$NAME"
BLOCKED="blocked 250ms task=$NAME"
# nobody else's first event is recorded
PAIR='syscalls:sys_enter_clock_nanosleep syscalls:sys_exit_clock_nanosleep key=common_pid 2s'
RUNQUEUE="runqueue 40ms task=$NAME"
IN_KERNEL="syscall clock_nanosleep 250ms task=$NAME way=kernel"

configure() { # NAME MODE
	session "$1" <<-END
		[Session]
		Mode=$2
		[Trace]
		Event=sched:sched_process_exit
		Event=syscalls:sys_enter_clock_nanosleep if comm == "$NAME"
		# all system calls of the machine are recorded, and what was lost may have ended a wait
		BufferSize=16M
		[Storage]
		FlushSec=1h
		[Snapshot]
		OnSignal=no
		Burst=0
		OnLatency=syscall clock_nanosleep 250ms task=$NAME
		OnLatency=blocked 250ms task=$NAME
		OnLatency=$PAIR
		OnLatency=runqueue 40ms task=$NAME
		OnLatency=$IN_KERNEL
	END
}
echo "== they are armed, and what they take is recorded"
configure r record
configure f flight
flyrecd_start
for s in r f; do
	wait_for 15 is_armed $s "$SLEEP" || fail "$s is not armed: $(status $s "$SLEEP" unavailable)"
	must_log "$s: Also recording raw_syscalls:sys_enter, for OnLatency="
	must_log "$s: Also recording sched:sched_waking, for OnLatency="
done

echo "== in the kernel, where it can; else it says why, and the others go on"
for s in r f; do
	[ "$(status $s "$SLEEP" way)" = user ] || fail "$s: not by the default way"
	[ "$(status $s "$IN_KERNEL" way)" = kernel ] || fail "$s: not by the kernel's way"
	if [ ! -e "$TRACEFS/synthetic_events" ]; then
		[ "$(status $s "$IN_KERNEL" state)" = unavailable ] || fail "$s: a kernel without synthetic events can do it"
		must_log "$s: Trigger latency $IN_KERNEL is unavailable, continuing without it: this kernel has no synthetic events (CONFIG_SYNTH_EVENTS), which way=kernel needs"
	elif [ ! -e "$TRACEFS/events/sched/sched_switch/hist" ]; then
		must_log "$s: Trigger latency $IN_KERNEL is unavailable, continuing without it: this kernel has no histogram triggers (CONFIG_HIST_TRIGGERS), which way=kernel needs"
	else
		wait_for 15 is_armed $s "$IN_KERNEL" || fail "$s: $(status $s "$IN_KERNEL" unavailable)"
	fi
done

echo "== nothing is too long"
"$WAITS" sleep 100000 100000 5 >/dev/null
"$WAITS" blocked 100000 100000 5 >/dev/null
"$WAITS" runqueue 5000 5000 5 >/dev/null || [ $? = 77 ]
echo "== a call that goes on, and one that ends"
background "$WAITS" sleep 1000000000 1000000000 1
GOES_ON=$!
for s in r f; do
	wait_for 10 has_hits $s "$SLEEP" 1 || fail "$s: no snapshot of a call that goes on"
	wait_for 10 snapshot_says $s "clock_nanosleep of $NAME $GOES_ON has taken [0-9.]*m?s" ||
		fail "$s: the file does not say so: $(cat stat)"
	[ "$(hits $s "$BLOCKED")" = 0 ] || fail "$s: not blocked that long"
done
for s in r f; do
	wait_for 10 has_hits $s "$PAIR" 1 || fail "$s: no snapshot of a pair of events that goes on"
done
kill -KILL $GOES_ON
wait $GOES_ON 2>/dev/null || true
"$WAITS" sleep 300000 300000 3 >/dev/null
for s in r f; do
	wait_for 10 has_hits $s "$SLEEP" 4 || fail "$s: not all calls were told"
done

echo "== blocked, and waiting for a CPU"
"$WAITS" blocked 300000 300000 2 >/dev/null
for s in r f; do
	wait_for 10 has_hits $s "$BLOCKED" 2 || fail "$s: not all blocks were told"
	wait_for 10 snapshot_says $s "$NAME [0-9]* was blocked 3[0-9.]*ms, woken by $NAME [0-9]*" ||
		fail "$s: the file does not say so: $(cat stat)"
done
if "$WAITS" runqueue 60000 60000 3 >"$T/took"; then
	for s in r f; do
		wait_for 10 has_hits $s "$RUNQUEUE" 3 ||
			fail "$s: not all waits for a CPU were told, which took $(xargs <"$T/took"): $("$FLYRECCTL" why "$NAME" "$STATE/r/record/current.dat" | head -n 60)"
		wait_for 10 snapshot_says $s "$NAME [0-9]* waited [67][0-9.]*ms for CPU 0, woken by hog" ||
			fail "$s: the file does not say so: $(cat stat)"
	done
fi
# each is told once; what the blocked ones wait for are calls, too
pause 2
for s in r f; do
	[ "$(hits $s "$SLEEP")" = 6 ] || fail "$s: $(hits $s "$SLEEP") calls, not 6"
	[ "$(hits $s "$BLOCKED")" = 2 ] || fail "$s: $(hits $s "$BLOCKED") blocks, not 2"
done

echo "== what waits while nothing is traced does not go on for ever"
background "$WAITS" sleep 100000 100000 10000 1000
SHORT=$!
pause 1
for s in r f; do
	ctl pause $s
done
pause 3
for s in r f; do
	ctl resume $s
	wait_for 15 is_armed $s "$SLEEP" || fail "$s is not armed after a pause"
done
pause 2
for s in r f; do
	[ "$(hits $s "$SLEEP")" = 6 ] || fail "$s: $(hits $s "$SLEEP") calls, not 6"
done
kill -KILL $SHORT
wait $SHORT 2>/dev/null || true

echo "== its process is killed"
for pid in $(pgrep -P "$FLYRECD_PID" -x flyrec-latency); do
	kill -KILL "$pid"
done
must_log 'Trigger latency .* is unavailable, continuing without it: its process ended, signal 9'
for s in r f; do
	wait_for 15 is_armed $s "$SLEEP" || fail "$s is not armed again"
done
"$WAITS" sleep 300000 300000 1 >/dev/null
for s in r f; do
	wait_for 10 has_hits $s "$SLEEP" 7 || fail "$s: nothing is told by the next process"
done
ctl rotate r >/dev/null
"$WAITS" sleep 300000 300000 1 >/dev/null
wait_for 10 has_hits r "$SLEEP" 8 || fail "nothing is told of the next segment"
flyrecd_stop
! pgrep -x flyrec-latency >"$T/left" || fail "left: $(cat "$T/left")"
