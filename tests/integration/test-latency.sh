#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
#
# flyrecctl latency: sleeps of known length, as system calls and as pairs of events, one of which goes on
# at the end; waits for a CPU as another program counts them; of a file and of a session; what was not
# recorded; bad input.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd python3
need_event sched:sched_switch sched:sched_waking raw_syscalls:sys_enter raw_syscalls:sys_exit
cd "$T"

# 20 short sleeps and 7 long ones in a task "sleeper", and one that goes on when the recording ends
cat >sleeper.py <<-'END'
	import subprocess, sys, time
	open("/proc/self/comm", "w").write("sleeper")
	for i in range(20):
	    time.sleep(0.001)
	for i in range(7):
	    time.sleep(0.3)
	open("slept", "w")
	time.sleep(1000)
END
cat >work <<-'END'
	#!/bin/sh
	python3 sleeper.py >/dev/null 2>&1 &
	echo $! >sleeper.pid
	until [ -e slept ]; do sleep 0.1; done
	sleep 0.5
END
chmod +x work
SLEEP=$(python3 -c 'import platform; print({"x86_64": 230, "aarch64": 115}[platform.machine()])') ||
	skip "the number of clock_nanosleep is not known here"

# latency_is PYTHON ARGUMENT...: a condition, with c the first one, of flyrecctl latency
latency_is() {
	local wanted=$1
	shift
	"$FLYRECCTL" "--runtime-dir=$RUNTIME" latency --json "$@" >out.json 2>err ||
		fail "latency $*: $(cat err)"
	python3 - "$wanted" <<-'END' || fail "latency $*: not $wanted: $(cat out.json)"
		import json, sys
		d = json.load(open("out.json"))
		c = d["conditions"][0]
		assert eval(sys.argv[1])
	END
}

echo "== sleeps"
peer_record sleeps.dat "${PREFIX}l" -e raw_syscalls:sys_enter -f "id == $SLEEP" \
	-e raw_syscalls:sys_exit -f "id == $SLEEP" -e sched -- ./work
kill -KILL "$(cat sleeper.pid)"
# nobody else has such a name; the one that goes on is told, and not measured
latency_is 'c["fires"] == 8 and c["count"] == 27' sleeps.dat syscall clock_nanosleep 250ms task=sleeper
latency_is 'c["fires"] == 8 and c["snapshots"] in (3, 4)' sleeps.dat 'syscall clock_nanosleep 250ms task=sleeper'
latency_is 'c["fires"] == 1 and c["task"] == "sleeper"' sleeps.dat syscall clock_nanosleep 0.4s 'task=sleep*r'
latency_is 'c["fires"] is None and c["max_nsec"] >= 300000000' sleeps.dat syscall clock_nanosleep task=sleeper
latency_is 'c["suggested_nsec"] >= 900000000 and c["suggested"] == "syscall clock_nanosleep %dms task=sleeper" % (c["suggested_nsec"] // 1000000)' \
	sleeps.dat syscall clock_nanosleep task=sleeper
latency_is 'c["count"] == 0 and c["fires"] == 0' sleeps.dat syscall read 1us
latency_is 'c["fires"] >= 8' sleeps.dat raw_syscalls:sys_enter raw_syscalls:sys_exit key=id,common_pid 250ms
"$FLYRECCTL" export --format=json --event=raw_syscalls:sys_enter,raw_syscalls:sys_exit sleeps.dat >events.json ||
	fail "export"
python3 - <<-'END' || fail "wrong data: pairs are not what they are in the events: $(cat out.json)"
	import json
	c = json.load(open("out.json"))["conditions"][0]
	begun, times = {}, []
	for e in map(json.loads, open("events.json")):
	    key = e["pid"], e["fields"]["id"]
	    if e["event"] == "sys_enter":
	        begun[key] = e["ts"]
	    elif key in begun:
	        times.append(e["ts"] - begun.pop(key))
	assert c["count"] == len(times) > 27 - 1, len(times)
END

echo "== waits for a CPU"
"$FLYRECCTL" view runqueue --json --top=0 sleeps.dat >view.json || fail "view"
latency_is 'c["count"] == sum(r["count"] for r in json.load(open("view.json"))["rows"])' sleeps.dat --last=0 runqueue
latency_is 'c["max_nsec"] == max(r["max_nsec"] for r in json.load(open("view.json"))["rows"])' sleeps.dat --last=0 runqueue
latency_is '[x["condition"] for x in d["conditions"]] == ["runqueue", "blocked", "irq", "softirq", "block"]' sleeps.dat
latency_is 'd["conditions"][2]["missing"] == ["irq:irq_handler_entry", "irq:irq_handler_exit"]' sleeps.dat

echo "== sessions"
session s <<-'END'
	[Trace]
	Event=sched
END
flyrecd_start
rm slept
./work
kill -KILL "$(cat sleeper.pid)"
ctl rotate s || fail "rotate" # what was traced is in files
latency_is 'c["count"] > 20 and c["missing"] == []' s runqueue 1us
# some take less
latency_is '0.9 * c["count"] < c["fires"] < 1.1 * c["count"]' s --last=0 runqueue 1us
prints 'not recorded: block:block_rq_issue' ctl latency s
flyrecd_stop

echo "== bad input"
refused 'has no field "pid", it has .*next_pid' "$FLYRECCTL" latency sleeps.dat sched:sched_waking sched:sched_switch key=pid 1ms
bad() { # TEXT ARGUMENT...
	local text=$1 status=0
	shift
	"$FLYRECCTL" latency "$@" >out 2>err || status=$?
	[ $status = 2 ] || fail "status $status, not 2: latency $*"
	grep -qF -- "$text" err || fail "\"$(cat err)\" does not say $text"
}
bad 'a SOURCE is wanted'
bad "did you mean 'runqueue'?" sleeps.dat runqeue 1ms
bad 'the time must be at least 1us' sleeps.dat runqueue 0
bad 'key=FIELD is missing' sleeps.dat a:b a:c 1ms
bad 'no system call "fsnc"' sleeps.dat syscall fsnc
bad '--last=: not understood' sleeps.dat --last=x
