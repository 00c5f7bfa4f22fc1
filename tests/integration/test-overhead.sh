#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 300
#
# MaxOverhead=: under many system calls their events go, others stay, and all come back afterwards; what a trigger
# needs stays; over a check of the instance, a change of events and a hand-over; the trace, the log and what is told
# of the files say so. Only system calls of the storm count, whatever else the machine does.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command python3
need_event raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch sched:sched_wakeup
no_sanitizers "storm is slow"
BOTH=(raw_syscalls:sys_enter raw_syscalls:sys_exit)
# Others may run a storm beside this test
NAME=calls$$
CALLS="Event=raw_syscalls:sys_enter if comm == \"$NAME\"
Event=raw_syscalls:sys_exit if comm == \"$NAME\""
cd "$T"
cp "$TOOLS/storm" "$NAME" || fail "cp"

traced() {
	grep -q "^$2\$" "$TRACEFS/instances/$PREFIX$1/set_event"
}

# shed_is NAME [EVENT…]: these and no others, by status; tracefs agrees
shed_is() {
	local name=$1 event
	shift
	ctl --json status "$name" >status.json || return 1
	python3 - "$@" <<-'END' || return 1
		import json, sys
		s = json.load(open("status.json"))["sessions"][0]
		sys.exit(sorted(s["shed"]) != sorted(sys.argv[1:]))
	END
	for event in "$@"; do
		! traced "$name" "$event" || return 1
	done
}
# wait_shed SECONDS NAME [EVENT…]
wait_shed() {
	local seconds=$1
	shift
	WAIT_PAUSE=0.2 wait_for "$seconds" shed_is "$@" ||
		fail "$1 does not shed just '${*:2}': $(cat status.json) $(tail -n 5 "$FLYRECD_LOG")"
}

calls() {
	background "./$NAME" --rate=50000 --duration=200 >storm
	STORM=$!
	# calls of 0.3 s each: the last one before a gap must not seem to last until after it
	background python3 -c 'import sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
while True:
    time.sleep(0.3)' "$NAME"
	SLEEPER=$!
}
calls_end() {
	kill -TERM "$STORM"
	wait "$STORM" || fail "storm: $?"
}

session rec <<-EOF
	[Trace]
	$CALLS
	Event=sched:sched_switch
	MaxOverhead=0.5%
	Shed=raw_syscalls
	[Storage]
	MaxUse=1G
	FlushSec=1
EOF
session fly <<-EOF
	[Session]
	Mode=flight
	[Trace]
	$CALLS
	EventTrigger=raw_syscalls:sys_enter traceon
	MaxOverhead=0.25
	[Storage]
	FlushSec=1
EOF
session free <<-EOF
	[Session]
	Mode=flight
	[Trace]
	$CALLS
EOF

echo "== they go"
mkdir "$TRACEFS/instances/${PREFIX}event.rates" # as of a process that was killed while it counted
flyrecd_start
[ ! -e "$TRACEFS/instances/${PREFIX}event.rates" ] || fail "event.rates has not been removed"
calls
wait_shed 15 rec "${BOTH[@]}"
traced rec sched:sched_switch || fail "sched_switch is not recorded"
wait_shed 15 fly raw_syscalls:sys_exit
wait_for 20 grep -q 'fly: .*nothing is left that could be switched off' "$FLYRECD_LOG" ||
	fail "nothing says that fly costs too much"
nsec=$(ctl --json cost free | python3 -c 'import json, sys; print(json.load(sys.stdin)["event_nsec"])') ||
	fail "cost of an event"
for i in 0 1; do
	ctl --json status free >"free$i.json" || fail "status"
	sleep 2
done
rate=$(python3 -c 'import json
a, b = [json.load(open(f"free{i}.json")) for i in (0, 1)]
events = [s["sessions"][0]["events_traced"] for s in (a, b)]
print(int((events[1] - events[0]) / (b["uptime_usec"] - a["uptime_usec"]) * 1e6))') || fail "rate"
echo "$rate events a second, $nsec ns each"
# without one of the two it costs half as much: which of them is a matter of Shed= alone
for event in "${BOTH[@]}"; do
	session "${event#*:}" <<-EOF
		[Session]
		Mode=flight
		[Trace]
		$CALLS
		MaxOverhead=$(python3 -c "print(round(0.75 * $rate * $nsec / 1e9 / $(nproc) * 100, 2))")
		Shed=$event
		[Storage]
		FlushSec=1
	EOF
done
ctl reload || fail "reload"
for event in "${BOTH[@]}"; do
	wait_shed 15 "${event#*:}" "$event"
done
shed_is free || fail "free has no MaxOverhead="
ctl --json cost rec >cost.json || fail "cost"
python3 -c 'import json; s = json.load(open("cost.json"))["sessions"][0]
assert sorted(s["shed"]) == ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"], s["shed"]' || fail "cost.json"
ctl cost rec >rec.cost || fail "cost"
grep -q "raw_syscalls:sys_exit is not recorded" rec.cost || fail "cost: $(cat rec.cost)"
ctl status rec >rec.text || fail "status"
grep -q "Shed: raw_syscalls:sys_e" rec.text || fail "status: $(cat rec.text)"

echo "== other events at runtime"
ctl event-enable rec sched:sched_wakeup || fail "event-enable"
traced rec sched:sched_wakeup || fail "sched_wakeup is not recorded"
wait_shed 15 rec "${BOTH[@]}"

echo "== hand-over"
flyrecd_hand_over
for event in "${BOTH[@]}"; do
	traced rec "$event" || fail "$event is left disabled"
done
flyrecd_start
wait_shed 15 rec "${BOTH[@]}"
wait_shed 15 fly raw_syscalls:sys_exit

! grep 'had been disabled' "$FLYRECD_LOG" || fail "a check of the instance has enabled what was shed"

echo "== killed"
flyrecd_kill
! traced fly raw_syscalls:sys_exit || fail "sys_exit of fly is recorded"
flyrecd_start
wait_shed 15 rec "${BOTH[@]}"
wait_shed 15 fly raw_syscalls:sys_exit

echo "== they come back"
calls_end
SECONDS=0
for name in rec fly sys_enter sys_exit; do
	wait_shed 60 "$name" # half a minute, where the machine is not busy
done
echo "within $SECONDS s"
for event in "${BOTH[@]}" sched:sched_switch; do
	traced rec "$event" || fail "$event is not recorded"
done
sleep 2 # calls of the sleeper
# the live file knows, too
ctl --json view syscalls rec >live.json || fail "view"
ctl snapshot fly || fail "snapshot"
flyrecd_stop
kill "$SLEEPER"

echo "== the trace"
for file in "$STATE"/rec/record/*.dat; do
	"$FLYRECCTL" export --format=json "$file" >>trace.json || fail "export"
done
python3 - <<-'END' || fail "the trace is not as its marks say"
	import json
	gaps, begin, inside, switches, after, margin = 0, None, 0, 0, 0, 500000000
	for line in open("trace.json"):
	    e = json.loads(line)
	    mark = e["fields"]["buf"] if e["event"] == "print" else ""
	    if mark.startswith("flyrec: not recorded from here on: ") and "sys_enter" in mark:
	        begin, here = e["ts"], []
	    elif mark.startswith("flyrec: recorded again: all events"):
	        # after a kill: they were, some time before it says so
	        gaps, begin = gaps + (begin is not None), None
	    elif mark.startswith("flyrec: recorded again: ") and "sys_enter" in mark:
	        assert begin, "recorded again, without a beginning"
	        gaps, begin, inside = gaps + 1, None, inside + sum(ts < e["ts"] - margin for ts in here)
	    elif begin is None:
	        after += gaps > 0 and e["system"] == "raw_syscalls"
	    elif e["ts"] > begin + margin: # some come until each is switched off, and from when it is on again
	        if e["event"] == "sys_enter": # sys_exit may be switched off later
	            here.append(e["ts"])
	        switches += e["event"] == "sched_switch"
	print("gaps", gaps, "calls in them", inside, "switches", switches, "calls after them", after)
	assert gaps >= 4 and inside == 0 and switches > 100 and after > 0
END

echo "== what is told of the files"
"$FLYRECCTL" --json view syscalls "$STATE"/rec/record/*.dat >files.json || fail "view of the files"
"$FLYRECCTL" verify "$STATE"/rec/record/*.dat "$STATE"/fly/snapshot/*.dat || fail "verify"
"$FLYRECCTL" --json view syscalls "$STATE"/fly/snapshot/*.dat >fly.json || fail "view of the snapshot"
"$FLYRECCTL" view syscalls "$STATE"/rec/record/*.dat >view.text 2>view.notes || fail "view of the files"
grep -q "view: raw_syscalls:sys_enter: not recorded from " view.notes || fail "view: $(cat view.notes)"
if [ -e "$BUILD/flyrec.so" ]; then # with SQLite
	"$FLYRECCTL" query 'SELECT count(*) FROM syscalls' "$STATE"/rec/record/*.dat >query.text 2>query.notes ||
		fail "query: $(cat query.notes)"
	diff <(sed -n 's/^flyrecctl: view: \(.*not recorded from\)/\1/p' view.notes) \
		<(sed -n 's/^flyrecctl: query: \(.*not recorded from\)/\1/p' query.notes) || fail "query does not say what view says"
	"$FLYRECCTL" query 'SELECT count(*) FROM sched_sched_switch' "$STATE"/rec/record/*.dat >query.text 2>query.notes ||
		fail "query: $(cat query.notes)"
	! grep 'not recorded from' query.notes || fail "sched_switch was recorded all the time"
else
	echo "built without SQLite: nothing is asked in SQL"
fi
"$FLYRECCTL" export --format=html -o page.html "$STATE"/fly/snapshot/*.dat || fail "export"
grep -q "raw_syscalls:sys_exit: not recorded from <time>" page.html || fail "the page does not say what was not recorded"
python3 - <<-'END' || fail "what is told is not as it was"
	import json
	for name in "live", "files", "fly":
	    told = json.load(open(name + ".json"))
	    gaps = [g for g in told["not_recorded"] if g["event"] == "raw_syscalls:sys_exit"]
	    longest = max(g["to_usec"] - g["from_usec"] for g in gaps)
	    call = max(r["max_nsec"] for r in told["rows"]) / 1000
	    print(name, len(gaps), "gaps, of", longest, "us at most; the longest call", call, "us")
	    assert longest > 5e6 and call < 3e6
END
