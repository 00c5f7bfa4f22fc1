#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 240
#
# flyrecctl cost: known rates of markers, the bytes that stats counts, what an event costs beside what
# storm is slowed down by one; of flight sessions; as a member of group flyrec; and no instance is left,
# also when flyrecd was killed while it measured.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/control-lib.sh"
need_tracefs
need_command python3 setpriv
need_event raw_syscalls:sys_enter raw_syscalls:sys_exit oom:mark_victim oom:oom_score_adj_update
no_sanitizers "markers do not keep their rate, and storm is slow"
RATE=1500
INSTANCE=$TRACEFS/instances/${PREFIX}event.cost
cd "$T"

# cost_is NAME PYTHON: a condition, with s the session of that name, e its events, and c the document
cost_is() {
	ctl --json cost "$1" >cost.json 2>err || fail "cost $1: $(cat err)"
	python3 - "$1" "$2" <<-'END' || fail "cost $1: not $2: $(head -c 1500 cost.json)"
		import json, sys
		c = json.load(open("cost.json"))
		s = [s for s in c["sessions"] if s["name"] == sys.argv[1]][0]
		e = {e["event"]: e for e in s["events"]}
		near = lambda a, b, part: abs(a - b) <= part * b
		assert eval(sys.argv[2])
	END
}

# wait_until MICROSECONDS: of the clock
is_past() {
	[ "${EPOCHREALTIME/./}" -ge "$1" ]
}
wait_until() {
	WAIT_PAUSE=0.2 wait_for 100 is_past "$1"
}

private_groups
session marks <<-EOF
	[Trace]
	Event=oom:mark_victim
	[Storage]
	MaxUse=1G
EOF
for name in one two; do
	session $name <<-EOF
		[Session]
		Enabled=no
		Mode=flight
		[Trace]
		Event=raw_syscalls:sys_enter
		$([ $name = one ] || echo Event=raw_syscalls:sys_exit)
		BufferSize=256K
	EOF
done
session flight <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=oom:mark_victim
	Event=oom:oom_score_adj_update
	BufferSize=64K
EOF
session counter <<-EOF
	[Trace]
	Event=oom:mark_victim
	Clock=counter
EOF

echo "== killed while it measures"
stopped_itself() {
	[ "$(process_state "$FLYRECD_PID")" = T ]
}
export FLYREC_FAULT_POINT=event-cost
flyrecd_start
unset FLYREC_FAULT_POINT
background "$FLYRECCTL" "--runtime-dir=$RUNTIME" cost
asks=$!
wait_for 10 stopped_itself || fail "it does not measure"
[ -d "$INSTANCE" ] || fail "no instance $INSTANCE"
kill -KILL "$asks" # it would ask the next one
wait "$asks" || true
flyrecd_kill
[ -d "$INSTANCE" ] || fail "the instance has gone by itself"
flyrecd_start
[ ! -d "$INSTANCE" ] || fail "what a killed flyrecd left is still there"

echo "== what an event costs"
markers_start marks $RATE
begun=${EPOCHREALTIME/./}
# calls SESSION: microseconds of CPU time for 300,000 system calls of storm while it traces
calls() {
	local TIMEFORMAT='%U %S' took
	ctl start "$1" || fail "start $1"
	took=$({ time "$TOOLS/storm" --cpus=0 --count=300000 >/dev/null; } 2>&1)
	ctl stop "$1" || fail "stop $1"
	awk '{ printf "%d\n", ($1 + $2) * 1e6 }' <<<"$took"
}
for _ in 1 2 3 4 5; do
	calls one >>one.usec
	calls two >>two.usec
done
slower=$(($(sort -n two.usec | head -n 1) - $(sort -n one.usec | head -n 1)))
cost_is marks "c['event_nsec'] / 2 < $slower / 300 < c['event_nsec'] * 2"
echo "storm: $((slower / 300)) ns, flyrecd: $(grep -o 'event costs: .*' "$FLYRECD_LOG")"
[ ! -d "$INSTANCE" ] || fail "the instance is still there"
ctl cost >all || fail "cost"
logged_once 'measured what an event costs'

echo "== rates, by the kernel's counters"
# come SESSION: events that its instance has counted
come() {
	cat "$(instance "$1")"/per_cpu/cpu*/stats | awk '/^(entries|overrun|read events):/ { n += $NF } END { print n }'
}
bytes() {
	ctl --json stats marks | python3 -c 'import json, sys
print(sum(c["bytes"] for s in json.load(sys.stdin)["sessions"] for c in s["cpus"]))'
}
wait_until $((begun + 6000000))
ctl cost marks >table || fail "cost marks" # has all flushed
bytes=$(bytes) come=$(come marks) at=${EPOCHREALTIME/./}
wait_until $((at + 60000000))
cost_is marks "s['mode'] == 'record' and 59.9 < s['window_sec'] <= 60.1"
come=$(($(come marks) - come)) took=$(((${EPOCHREALTIME/./} - at) / 1000))
# with what cost had flushed
bytes=$(($(bytes) - bytes))
cost_is marks "near(s['events_per_sec'], $come * 1000 / $took, 0.02) \
	and near(s['bytes_per_hour'], $bytes * 3600 * 1000 / $took, 0.05) \
	and near(e['ftrace:print']['events_per_sec'], $come * 1000 / $took, 0.02) \
	and near(s['history_sec'], (1 << 30) / s['bytes_per_hour'] * 3600, 0.01) \
	and near(s['tracing_percent'], s['events_per_sec'] * c['event_nsec'] / 1e7 / c['cpus'], 0.01) \
	and 0 < s['recorder_percent'] < 5 \
	and near(s['overhead_percent'], s['tracing_percent'] + s['recorder_percent'], 0.01) \
	and s['hour']['window_sec'] > 61 and s['shed'] == []"
ctl rotate marks >path || fail "rotate"
markers_stop
ctl cost marks >table || fail "cost marks"
grep -q '^ftrace:print' table || fail "cost marks: $(cat table)"
# all that was ever recorded, to the event, of two segments
written=$(sed 's/.*first=\([0-9]*\) last=\([0-9]*\)/\2 - \1 + 1/' expect | paste -sd+)
cost_is marks "near(e['ftrace:print']['hour_events_per_sec'] * s['hour']['window_sec'], $written, 0.0001)"

echo "== in flight"
background "$TOOLS/markers" "--instance=${PREFIX}flight" --rate=1000
load=$!
at=${EPOCHREALTIME/./}
wait_until $((at + 4000000))
cost_is flight "s['events'] == [] and any('snapshot' in n for n in s['notes'])"
ctl snapshot flight >path || fail "snapshot"
come=$(come flight)
cost_is flight "near(s['events_per_sec'], 1000 * $(nproc), 0.3) and 0.2 < s['history_sec'] < 10 \
	and near(s['hour']['events_per_sec'] * s['hour']['window_sec'], $come, 0.05) \
	and near(e['ftrace:print']['events_per_sec'], s['events_per_sec'], 0.02) and s['recorder_percent'] == 0 \
	and near(s['tracing_percent'], s['events_per_sec'] * c['event_nsec'] / 1e7 / c['cpus'], 0.01)"
kill "$load"
wait "$load" || fail "markers"
cost_is counter "s['events_per_sec'] is None and s['bytes_per_hour'] is None and 'no time of day' in s['notes'][0]"

echo "== who may"
chmod 755 "$T" "$RUNTIME"
cp "$FLYRECCTL" "$T/flyrecctl"
as() { # GROUPS ARGUMENT...
	setpriv --reuid=65534 --regid=65534 "$1" "$T/flyrecctl" "--runtime-dir=$RUNTIME" cost "${@:2}"
}
as "--groups=$FLYREC_GID" marks >member 2>err || fail "a member: $(cat err)"
grep -q '^ftrace:print' member || fail "a member: $(cat member)"
grep -q ' ns an event' member || fail "a member: $(cat member)"
refused 'Permission denied' as --clear-groups marks
refused 'one does not record' ctl cost one
refused 'nosuch' ctl cost nosuch
flyrecd_stop
