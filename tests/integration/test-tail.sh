#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# may-fail: a disk that stands still for longer than the ring buffers last costs events
# time-limit: 300
#
# flyrecctl tail: the same lines as trace-cmd report, in the order of time, none missing or doubled
# over rotations, restarts and hand-overs; an event shows within 200 ms; a reader that is slow, dead
# or gone costs the recorder nothing.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_tool check-markers
need_command trace-cmd python3

RATE=${RATE:-2000}

# follow NAME ARGUMENT...: tail -f in the background, into $T/NAME, complaints into $T/NAME.err
declare -A TAILS
follow() {
	local name=$1 time=(--time=epoch) # as trace-cmd report has it
	shift
	[[ " $* " != *" --json "* ]] || time=()
	background "$FLYRECCTL" "--runtime-dir=$RUNTIME" tail -f "${time[@]}" "$@" >"$T/$name" 2>"$T/$name.err"
	TAILS[$name]=$!
}

# finish NAME SIGNAL
finish() {
	kill -s "$2" "${TAILS[$1]}"
	wait "${TAILS[$1]}" 2>/dev/null || true
}

# status WANTED COMMAND...
status() {
	local wanted=$1 status=0
	shift
	"$@" >"$T/out" 2>"$T/err" || status=$?
	[ "$status" = "$wanted" ] || fail "status $status, not $wanted: $*: $(cat "$T/err")"
}

# says PATTERN: the last status had one line of complaint, like this
says() {
	grep -qE -- "$1" "$T/err" || fail "\"$(cat "$T/err")\" does not say $1"
	[ "$(wc -l <"$T/err")" = 1 ] || fail "more than a line: $(cat "$T/err")"
}

marker() {
	echo "$1" >"$(instance "${2:-m}")/trace_marker"
}

has() { # NAME TEXT
	grep -q -e "$2" "$T/$1"
}

must_show() { # NAME TEXT [SECONDS]
	wait_for "${3:-10}" has "$1" "$2" ||
		fail "$1: $2 does not show: $(cat "$T/$1.err") $(tail -n 2 "$T/$1")"
}

reports() { # SESSION
	local file
	for file in "$STATE/$1"/record/2*.dat; do
		trace-cmd report "$file" 2>/dev/null | grep -v '^cpus='
	done
}

# Times do not go back; from the first line to the last it has each event of the reports once.
# Those shown with the time of the first or last line may be on either side of it.
cat >"$T/same.py" <<-'EOF'
	import re, sys
	from collections import Counter
	when = re.compile(rb"\] +(\d+\.\d+):")
	def read(path):
	    return [(float(when.search(l).group(1)), l) for l in open(path, "rb") if when.search(l)]
	tail, report = read(sys.argv[1]), read(sys.argv[2])
	if len(tail) <= int(sys.argv[3]):
	    sys.exit(f"only {len(tail)} events")
	for a, b in zip(tail, tail[1:]):
	    if a[0] > b[0]:
	        sys.exit(f"time goes back: {a[1]} {b[1]}")
	first, last = tail[0][0], tail[-1][0]
	inside = lambda events: Counter(l for t, l in events if first < t < last)
	more, less = inside(tail) - inside(report), inside(report) - inside(tail)
	if more or less:
	    sys.exit(f"{sum(more.values())} too many: {list(more)[:3]}, {sum(less.values())} missing: {list(less)[:3]}")
	print(len(tail), "events")
EOF

# same NAME SESSION LEAST
same() {
	reports "$2" >"$T/reports"
	python3 "$T/same.py" "$T/$1" "$T/reports" "$3" >"$T/same" 2>&1 ||
		fail "$1: $(cat "$T/same") $(cat "$T/$1.err")"
	echo "$1: $(cat "$T/same")"
}

session m <<-EOF
	[Trace]
	Event=raw_syscalls:sys_enter if $LOAD_FILTER
	BufferSize=16M
	[Storage]
	FlushSec=5s
	MaxUse=4G
EOF
session quiet <<-EOF
	[Trace]
	Event=raw_syscalls:sys_enter if comm == "nobody"
	[Storage]
	FlushSec=30s
EOF
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$T/no-bus
flyrecd_start

# --- how soon? Each marker is written when the one before has shown; some of them must be quick,
# whatever else the machine does meanwhile
cat >"$T/latency.py" <<-'EOF'
	import subprocess, sys, time
	marker, command = sys.argv[1], sys.argv[2:]
	took = []
	with subprocess.Popen(command, stdout=subprocess.PIPE) as tail, open(marker, "wb", buffering=0) as out:
	    for i in range(12):
	        time.sleep(0.3 + 0.037 * i)
	        begin = time.monotonic()
	        out.write(b"soon %d" % i)
	        while b"soon %d\n" % i not in tail.stdout.readline():
	            pass
	        took.append(time.monotonic() - begin)
	    tail.terminate()
	took = sorted(took[2:])
	print("an event shows after %.0f ms at best, %.0f ms in the middle, %.0f ms at worst" % tuple(
	    1000 * took[i] for i in (0, 5, -1)))
	sys.exit(took[2] > 0.2)
EOF
timeout 60 python3 "$T/latency.py" "$(instance quiet)/trace_marker" \
	"$FLYRECCTL" "--runtime-dir=$RUNTIME" tail -f --time=epoch -n 0 quiet || fail "that is too late"

# --- nobody follows any more: the flush is every 30 s again, also when the tail was killed
wakeups() {
	local task n=0 sum=0
	for task in "/proc/$FLYRECD_PID/task"/*/status; do
		grep -q '^Name:[[:space:]]*flyrec-drain' "$task" || continue
		n=$(sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "$task")
		sum=$((sum + n))
	done
	echo $sum
}
wakeups_in_2s() {
	local before
	before=$(wakeups)
	sleep 2
	echo $(($(wakeups) - before))
}
before=$(wakeups_in_2s)
follow killed quiet
sleep 0.5
with=$(wakeups_in_2s)
finish killed KILL
sleep 0.3
after=$(wakeups_in_2s)
echo "wake-ups of the workers in 2 s: $before before, $with with a tail, $after after it was killed"
[ "$with" -ge 10 ] || fail "an open tail does not shorten the flush"
[ "$after" -lt $((before + 8)) ] || fail "the flush stays short"

# --- under load on all CPUs, over rotations
# no leak check, which is a task of the same name that ends before it can be asked for
ASAN_OPTIONS=detect_leaks=0 load_start --rate=500
markers_start m "$RATE"
sleep 0.5
follow rotated -n 5 m
follow json -n 0 --json m
for _ in 1 2 3 4; do
	sleep 0.7
	ctl rotate m >/dev/null
done
sleep 0.7
marker "rotations are over"
must_show rotated "rotations are over"
must_show json "rotations are over"
finish json TERM

ctl rotate m >/dev/null # what was shown is in finished files
for file in "$STATE/m/record"/2*.dat; do
	"$FLYRECCTL" export --format=json "$file"
done >"$T/json.all"
cat >"$T/shown.py" <<-'EOF'
	import json, sys
	def read(path):
	    return [(json.loads(l)["ts"], l) for l in open(path) if l.endswith("\n")]
	tail, all = read(sys.argv[1]), read(sys.argv[2])
	first, last = tail[0][0], tail[-1][0]
	inside = lambda events: sorted(l for t, l in events if first < t < last)
	if tail != sorted(tail, key=lambda e: e[0]) or inside(tail) != inside(all):
	    sys.exit("not in order, or not the same")
	print("json:", len(tail), "events")
EOF
python3 "$T/shown.py" "$T/json" "$T/json.all" || fail "--json -f is not what export has"

# --- a daemon that hands over, and one that is killed: the tail goes on with the next
load_stop
markers_stop
marker "before"
flyrecd_hand_over
marker "nobody looks"
flyrecd_start
must_show rotated "nobody looks" 15
marker "handed over"
must_show rotated "handed over"
ctl rotate m >/dev/null
marker "after the rotation"
must_show rotated "after the rotation"
flyrecd_kill
marker "it was killed"
flyrecd_start
must_show rotated "it was killed" 15

# --- paused, stopped and started again
ctl pause m
sleep 0.3
ctl resume m
marker "resumed"
must_show rotated "resumed"
ctl stop m
ctl start m
wait_for 5 test -e "$(instance m)" || fail "it does not start"
sleep 0.5
marker "started again"
must_show rotated "started again" 15

# --- stopped for good: a clear word, and it ends
ctl stop m
wait_for 15 ended "${TAILS[rotated]}" || fail "tail -f goes on without a session"
result=0
wait "${TAILS[rotated]}" || result=$?
[ $result = 1 ] || fail "status $result of a tail whose session is gone"
[ "$(cat "$T/rotated.err")" = "flyrecctl: tail: session m does not record, it is stopped" ] ||
	fail "the end: $(cat "$T/rotated.err")"
same rotated m 5000
markers_check m

# --- what is there without following: of a stopped session everything, as export has it
flyrecd_stop
rm -r "$STATE/m/record"
session m <<-EOF
	[Trace]
	Event=raw_syscalls:sys_enter if $LOAD_FILTER
	Event=raw_syscalls:sys_exit if $LOAD_FILTER
	Event=sched:sched_process_exit if $LOAD_FILTER
	BufferSize=16M
EOF
flyrecd_start
ASAN_OPTIONS=detect_leaks=0 load_start --rate=5000
sleep 2
marker "some text"
ctl tail --time=epoch -n 8000 m >"$T/live"
load_stop
ctl stop m
file=$(echo "$STATE/m/record"/2*.dat)
exported() { # ARGUMENT...
	"$FLYRECCTL" export --format=text "$@" "$file" | grep -v '^cpus='
}
[ "$(wc -l <"$T/live")" = 8000 ] || fail "-n 8000: $(wc -l <"$T/live") lines"
: >"$T/live.err"
same live m 7000
trace-cmd report "$file" 2>/dev/null | grep -v '^cpus=' >"$T/report"
ctl tail --time=epoch -n all m | cmp - "$T/report" || fail "not what trace-cmd report prints"
ctl tail --time=epoch -n 7 m | cmp - <(tail -n 7 "$T/report") || fail "-n 7"
ctl tail --time=epoch m | cmp - <(tail -n 10 "$T/report") || fail "ten lines by default"
ctl tail --time=epoch -n 0 m | cmp - /dev/null || fail "-n 0"
"$FLYRECCTL" export --format=json "$file" | cmp - <(ctl tail -n all --json m) || fail "--json"
pid=$(sed -n "s/^ *$LOAD_NAME-\([0-9]*\) .*/\1/p" "$T/report" | head -n 1)
for filter in '--event=sched_process_exit' '--event=raw_syscalls:sys_exit' --cpu=0 --cpu=1 \
	"--pid=$pid" "--pid=$pid --event=sys_enter --cpu=0-1"; do
	# shellcheck disable=SC2086 # words
	exported $filter >"$T/wanted"
	[ -s "$T/wanted" ] || fail "nothing to find by $filter"
	# shellcheck disable=SC2086
	ctl tail --time=epoch -n all $filter m | cmp - "$T/wanted" || fail "$filter"
	# shellcheck disable=SC2086
	ctl tail --time=epoch -n 3 $filter m | cmp - <(tail -n 3 "$T/wanted") || fail "-n 3 $filter"
done
middle=$(sed -nE '4000s/.*\] +([0-9.]+):.*/\1/p' "$T/report")
for filter in "--since=$middle" "--until=$middle" "--since=@$middle"; do
	exported "$filter" >"$T/wanted"
	[ -s "$T/wanted" ] || fail "nothing to find by $filter"
	ctl tail --time=epoch -n all "$filter" m | cmp - "$T/wanted" || fail "$filter"
done
exported "--since=$middle" | cmp - <(ctl tail --time=epoch "--since=$middle" m) || fail "--since alone is all since then"

# --- over several segments, back to where there are enough
ctl start m
sleep 0.3
marker "one more"
ctl rotate m >/dev/null
marker "and another"
ctl tail --time=epoch -n 2 --event=print m >"$T/two"
[ "$(grep -c 'one more\|and another' "$T/two")" = 2 ] || fail "-n over segments: $(cat "$T/two")"
prints 'some text' ctl tail --time=epoch --since=-1h --event=print m || fail "--since over segments"

# --- from another machine, with an ssh that goes nowhere
mkdir "$T/far"
cat >"$T/far/ssh" <<-'EOF'
	#!/bin/sh
	# ssh -xT -- HOST COMMAND
	[ "$1 $2 $3" = "-xT -- far" ] || exit 255
	shift 3
	exec sh -c "$*"
EOF
ln -s "$FLYRECCTL" "$T/far/flyrecctl"
chmod +x "$T/far/ssh"
PATH=$T/far:$PATH ctl -H far tail --time=epoch -n 2 --event=print --cpu 0-1 m | cmp - "$T/two" || fail "-H"
status 1 env "PATH=$T/far:$PATH" "$FLYRECCTL" "--runtime-dir=$RUNTIME" -H far tail nobody
says nobody

# --- a reader that has seen enough; also when nothing more comes
ctl tail --time=epoch -n all m | head -n 2 >"$T/out" || fail "| head"
begin=${EPOCHREALTIME/./}
ctl tail --time=epoch -f -n 3 quiet 2>"$T/err" | head -n 1 >"$T/out" || fail "tail -f | head"
[ $((${EPOCHREALTIME/./} - begin)) -lt 5000000 ] || fail "tail -f stays when its reader has gone"
[ ! -s "$T/err" ] || fail "it complains: $(cat "$T/err")"
status 124 timeout 1 "$FLYRECCTL" "--runtime-dir=$RUNTIME" tail -f quiet

# --- bad input
status 1 ctl tail --time=epoch nobody
says 'no session nobody|nobody'
status 1 ctl tail --time=epoch -f --event=nobody m
says 'no format of an event nobody'
status 2 ctl tail
status 2 ctl tail m quiet
status 2 ctl tail -n x m
says 'not understood: "x"'
status 2 ctl tail -n -3 m
status 2 ctl tail --since=never m
status 2 ctl tail --cpu=x m
status 2 ctl tail -o file m

# --- no more tails than there may be, and room again when they have ended
cat >"$T/many.py" <<-'EOF'
	import subprocess, sys, time
	tails = [subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(66)]
	time.sleep(8)
	refused = [t.stderr.read() for t in tails if t.poll() is not None]
	for t in tails:
	    if t.poll() is None:
	        t.terminate()
	    t.wait()
	print(refused)
	sys.exit(len(refused) != 2 or any(b"64 tails are open" not in r for r in refused))
EOF
nice -n 5 python3 "$T/many.py" "$FLYRECCTL" "--runtime-dir=$RUNTIME" tail -f quiet >"$T/many" ||
	fail "66 tails: $(cat "$T/many")"
ctl tail --time=epoch quiet >/dev/null || fail "no tail after many"
flyrecd_stop

# --- a full storm, a reader that does not keep up, and one that does not read at all
state_on ext4 3G
session m <<-EOF
	[Trace]
	Event=raw_syscalls
	BufferSize=32M
	[Storage]
	MaxUse=256M
	MaxFileSize=32M
EOF
flyrecd_start
mkfifo "$T/fifo"
# shellcheck disable=SC2016 # for the inner shell
background bash -c 'exec python3 -c "import os, time
while os.read(0, 65536): time.sleep(0.02)" <"$0"' "$T/fifo"
READER=$!
background "$FLYRECCTL" "--runtime-dir=$RUNTIME" tail -f --time=epoch -n 0 m >"$T/fifo" 2>"$T/slow.err"
SLOW=$!
follow stopped m
# not while it is still bash, which would take the signal that ends it for its parent's
wait_for 10 grep -qs flyrecctl "/proc/${TAILS[stopped]}/comm" || fail "no flyrecctl"
kill -STOP "${TAILS[stopped]}"
load_start
sleep 6
load_stop
largest=$(sed -n 's/^VmHWM:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$SLOW/status")
echo "memory of a tail that does not keep up: $largest KiB"
[ "$largest" -lt 262144 ] || fail "$largest KiB for a tail"
ctl stats m
echo "the slow one: $(cat "$T/slow.err")"
grep -q '^flyrecctl: tail: skipped .*: ' "$T/slow.err" || fail "it does not say what it skipped: $(cat "$T/slow.err")"
kill "$READER"
wait_for 10 ended $SLOW || fail "it does not end with its reader"
kill -CONT "${TAILS[stopped]}"
finish stopped TERM
flyrecd_stop
