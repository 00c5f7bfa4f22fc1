#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 240
#
# Snapshot triggers by events and pressure: the file says what it was, a storm costs no CPU and
# obeys Burst=, the small instance survives kills and meddling, and stop leaves nothing. Failed
# units are in test-systemd-triggers.sh.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd python3
need_event sched:sched_process_exec syscalls:sys_enter_getppid

TRIGGER_INSTANCE=$TRACEFS/instances/${PREFIX}ev.trigger
HIT=$T/hit-$LOAD_NAME
cp /bin/true "$HIT"

# has_snapshots REASON NUMBER: of session ev; they are in SNAPSHOTS then
has_snapshots() {
	# shellcheck disable=SC2206 # a pattern
	SNAPSHOTS=("$STATE"/ev/snapshot/*-$1.dat)
	[ ${#SNAPSHOTS[@]} -ge "$2" ]
}

# trigger KIND FIELD: from status, of the first trigger of the kind
trigger() {
	ctl --json status ev | python3 -c 'import json, sys
all = json.load(sys.stdin)["sessions"][0]["triggers"]
print([t[sys.argv[2]] for t in all if t["kind"] == sys.argv[1]][0])' "$1" "$2"
}

trigger_is() { # KIND FIELD VALUE
	[ "$(trigger "$1" "$2")" = "$3" ]
}

# The event that is waited for: a program of this test's own name
hit() {
	"$HIT"
}

# configure: session ev, from standard input more of [Snapshot]
configure() {
	session ev <<-EOF
		[Trace]
		Event=sched:sched_process_fork
		[Storage]
		FlushSec=500ms
		[Snapshot]
		OnSignal=no
		Last=10s
		OnEvent=sched:sched_process_exec if filename == "$HIT"
		OnEvent=-nosuch:event
		$(cat)
	EOF
}

cpu_ticks() {
	awk '{ print $14 + $15 }' "/proc/$FLYRECD_PID/stat"
}

# --- one event, one snapshot, which says what it was
printf 'Burst=3\nIntervalSec=1h\n' | configure
flyrecd_start
[ -d "$TRIGGER_INSTANCE" ] || fail "no instance of its own"
trigger_is event state armed || fail "not armed: $(trigger event unavailable)"
ctl status ev >"$T/status"
grep -q "event -nosuch:event: unavailable; 0 taken" "$T/status" ||
	fail "the missing event is not shown: $(cat "$T/status")"
sleep 0.3
! has_snapshots '*' 1 || fail "a snapshot without an event"
before=${EPOCHREALTIME/./}
hit
wait_for 10 has_snapshots event 1 || fail "no snapshot on an event"
after=${EPOCHREALTIME/./}
echo "from the event to the file: at most $(((after - before) / 1000)) ms"
trace-cmd report --stat "${SNAPSHOTS[0]}" >"$T/stat" 2>/dev/null
for line in 'reason: event' "event: sched:sched_process_exec filename=$HIT pid=" \
	'cpu: [0-9]' 'task: .*-[0-9]' 'boot id: '; do
	grep -q "^$line" "$T/stat" || fail "the file does not say '$line': $(tail -n 12 "$T/stat")"
done
# the time of the event, not of the file
time=$(sed -n 's/^time: \(.*\) UTC$/\1/p' "$T/stat")
usec=$(date -u -d "$time" +%s%6N)
[[ $usec -ge $before && $usec -le $after ]] || fail "'$time' is not when it happened"
verify "${SNAPSHOTS[0]}"
trigger_is event fired 1 || fail "status says $(trigger event fired) snapshots"

# --- a kill: the instance is taken over, and what happened meanwhile is not lost
inode=$(stat -c %i "$TRIGGER_INSTANCE")
flyrecd_kill
hit
flyrecd_start
wait_for 10 has_snapshots event 2 || fail "what happened while no daemon ran is lost"
[ "$(stat -c %i "$TRIGGER_INSTANCE")" = "$inode" ] || fail "made anew instead of taken over"

# --- meddling: set right again
echo 0 >"$TRIGGER_INSTANCE/events/enable"
must_log "trigger: .*sched_process_exec had been disabled"
hit
wait_for 10 has_snapshots event 3 || fail "deaf after meddling"

# --- a hand-over, after which the configuration is another one: nothing of the old one is left
flyrecd_stop RTMIN+1
[ -d "$TRIGGER_INSTANCE" ] || fail "a hand-over has removed the instance"
sed -i '/OnEvent/d' "$CONFIG/sessions.d/ev.conf"
flyrecd_start
[ ! -e "$TRIGGER_INSTANCE" ] || fail "the instance is left though nothing is waited for"
# and a reload brings it back, without a new segment
segment=$(stat -c %i "$STATE/ev/record/current.dat")
printf 'Burst=2\nIntervalSec=1h\n' | configure
kill -HUP "$FLYRECD_PID"
wait_for 10 trigger_is event state armed || fail "not armed after a reload"
[ -d "$TRIGGER_INSTANCE" ] || fail "a reload has not made the instance"
[ "$(stat -c %i "$STATE/ev/record/current.dat")" = "$segment" ] ||
	fail "a reload of [Snapshot] has begun a segment"

# --- an event or filter that the kernel does not take: failed as a whole, with its words
session bad <<-EOF
	[Trace]
	Event=sched:sched_process_fork
	[Snapshot]
	OnEvent=sched:sched_process_exec if nofield == 1
EOF
session lacks <<-EOF
	[Trace]
	Event=sched:sched_process_fork
	[Snapshot]
	OnEvent=nosuch:event
EOF
log_mark
kill -HUP "$FLYRECD_PID"
must_log "bad: session failed: .*filter of sched:sched_process_exec.*Field not found"
must_log "lacks: session failed: OnEvent=nosuch:event: this kernel has no event nosuch:event"
for name in bad bad.trigger lacks lacks.trigger; do
	wait_for 5 test ! -e "$TRACEFS/instances/$PREFIX$name" || fail "instance $name is left"
done
rm "$CONFIG"/sessions.d/{bad,lacks}.conf
# the same by a reload of a session that records: what it has is kept, and it fails
log_mark
sed -i 's/^OnEvent=-nosuch/OnEvent=nosuch/' "$CONFIG/sessions.d/ev.conf"
kill -HUP "$FLYRECD_PID"
must_log "ev: session failed: OnEvent=nosuch:event: this kernel has no event"
segments=("$STATE"/ev/record/2*.dat)
[ ${#segments[@]} -ge 1 ] || fail "a session that fails by a reload has not finished its segment"
flyrecd_stop
[ ! -e "$TRIGGER_INSTANCE" ] || fail "stop has left the instance"

# --- a storm: Burst= holds, the rest is counted, and the daemon has hardly anything to do
rm -rf "$STATE/ev"
session ev <<-EOF
	[Trace]
	Event=sched:sched_process_fork
	[Storage]
	FlushSec=500ms
	[Snapshot]
	OnSignal=no
	OnEvent=syscalls:sys_enter_getppid if $LOAD_FILTER
	Burst=2
	IntervalSec=1h
EOF
log_mark
flyrecd_start
load_start
wait_for 20 has_snapshots event 2 || fail "no snapshots in a storm: $(tail -n 3 "$FLYRECD_LOG")"
ticks=$(cpu_ticks)
sleep 4
ticks=$(($(cpu_ticks) - ticks))
load_stop
echo "CPU in 4 s of storm: $((ticks * 1000 / $(getconf CLK_TCK))) ms; $(head -n 1 "$T/load")"
[ "$ticks" -le $(($(getconf CLK_TCK) / 5)) ] || fail "the storm costs $ticks ticks of CPU in 4 s"
has_snapshots '*' 2
[ ${#SNAPSHOTS[@]} = 2 ] || fail "Burst=2, but ${#SNAPSHOTS[@]} snapshots"
trigger_is event fired 2 || fail "status says $(trigger event fired) snapshots"
# every one is accounted for (and those that a tool built with sanitizers makes by itself)
calls=$(sed -n 's/^cpu=.*calls=\([0-9]*\).*/\1/p' "$T/load" | awk '{ n += $1 } END { print n }')
suppressed=$(trigger event suppressed)
echo "events: $calls, suppressed: $suppressed"
[[ $((suppressed + 2)) -ge $calls && $suppressed -le $((calls + calls / 10000)) ]] ||
	fail "$suppressed suppressed and 2 fired are not $calls"
ctl metrics | grep -E '^flyrec_triggers_suppressed_total\{session="ev",kind="event",trigger="syscalls:' >"$T/metrics"
grep -q "} $suppressed\$" "$T/metrics" || fail "metrics: $(cat "$T/metrics")"
# asked for by a person, a snapshot is always taken
ctl snapshot ev >/dev/null || fail "control call after a storm"
flyrecd_stop

# --- a storm of one trigger takes nothing from the others, which each have their line in the log
rm -rf "$STATE/ev"
session ev <<-EOF
	[Trace]
	Event=sched:sched_process_fork
	[Storage]
	FlushSec=500ms
	[Snapshot]
	OnEvent=syscalls:sys_enter_getppid if $LOAD_FILTER
	OnEvent=sched:sched_process_exec if filename == "$HIT"
	Burst=1
	IntervalSec=1h
EOF
log_mark
flyrecd_start
load_start --rate=20000
wait_for 20 has_snapshots event 1 || fail "no snapshot in a storm: $(tail -n 3 "$FLYRECD_LOG")"
must_log "OnEvent=syscalls:sys_enter_getppid .* triggered, syscalls:sys_enter_getppid.*, no snapshot of it for [0-9]* s: Burst=1"
sleep 1.1 # else it joins that one
hit
wait_for 10 has_snapshots event 2 || fail "a storm of another event has hidden this one: $(tail -n 3 "$FLYRECD_LOG")"
must_log "OnEvent=sched:sched_process_exec .* triggered, sched:sched_process_exec filename=$HIT .*, taking snapshot"
sleep 1.1
hit
must_log "OnEvent=sched:sched_process_exec .* triggered, sched:sched_process_exec filename=$HIT .*, no snapshot of it for"
load_stop
flyrecd_stop

# --- two within a second are one snapshot, whose text has both: while it waits, and when it is there
for post in '' PostSec=2s; do
	rm -rf "$STATE/ev"
	printf 'Burst=10\n%s\n' "$post" | configure
	sed -i /OnSignal/d "$CONFIG/sessions.d/ev.conf"
	log_mark
	flyrecd_start
	kill -USR1 "$FLYRECD_PID"
	must_log 'ev: SIGUSR1 triggered, taking snapshot'
	[ -n "$post" ] || wait_for 10 has_snapshots signal 1 || fail "no snapshot on a signal"
	hit
	must_log "ev: OnEvent=.* triggered, .*, joining the snapshot of [0-9]* ms ago"
	wait_for 10 has_snapshots '*' 1 || fail "no snapshot, $post"
	both() {
		trace-cmd report --stat "${SNAPSHOTS[0]}" >"$T/stat" 2>/dev/null &&
			grep -q '^reason: signal' "$T/stat" && grep -q '^also: OnEvent=sched:sched_process_exec' "$T/stat" &&
			grep -q "^event: sched:sched_process_exec filename=$HIT" "$T/stat"
	}
	wait_for 10 both || fail "the file does not tell both causes: $(tail -n 12 "$T/stat")"
	verify "${SNAPSHOTS[0]}"
	trigger_is event fired 1 || fail "the one that joined does not count"
	sleep 1.2
	hit
	wait_for 10 has_snapshots '*' 2 || fail "more than a second later it still joins"
	flyrecd_stop
	has_snapshots '*' 1
	[ ${#SNAPSHOTS[@]} = 2 ] || fail "${#SNAPSHOTS[@]} snapshots, not 2"
done

# --- the next interval lets another one through; PostSec= is cut short by a stop
rm -rf "$STATE/ev"
printf 'Burst=1\nIntervalSec=6s\nPostSec=1h\n' | configure
flyrecd_start
hit
wait_for 10 trigger_is event fired 1 || fail "not fired"
sleep 0.3
hit
hit
wait_for 5 trigger_is event suppressed 2 ||
	fail "suppressed: $(trigger event suppressed) instead of 2"
sleep 6
hit
wait_for 10 trigger_is event fired 2 || fail "the next interval does not let one through"
flyrecd_stop
has_snapshots event 2 || fail "a stop has dropped what waited for PostSec="

# --- a trigger's own post=; of two that are one snapshot the longer one counts, and one that waits longer
# than the snapshot did has its own
rm -rf "$STATE/ev"
printf 'Burst=10\nPostSec=1h\n' | configure
sed -i "/OnSignal/d; /^OnEvent=sched/s/\$/ post=1500ms/" "$CONFIG/sessions.d/ev.conf"
flyrecd_start
begin=${EPOCHREALTIME/./}
hit
wait_for 10 has_snapshots event 1 || fail "post= does not take the place of PostSec="
[ $((${EPOCHREALTIME/./} - begin)) -ge 1500000 ] || fail "post= was not waited for"
log_mark
hit
must_log 'ev: OnEvent=.* triggered, .*, taking snapshot' # no longer than a second
kill -USR1 "$FLYRECD_PID"
must_log "ev: SIGUSR1 triggered, joining the snapshot of [0-9]* ms ago"
sleep 2
! has_snapshots '*' 2 || fail "PostSec= of the one that joined is longer, and was not waited for"
flyrecd_stop # cuts it short
has_snapshots signal 1 || fail "no snapshot of both"
prints "^also: SIGUSR1" trace-cmd report --stat "${SNAPSHOTS[0]}" || fail "not of both"
sed -i '/PostSec/d' "$CONFIG/sessions.d/ev.conf"
flyrecd_start
kill -USR1 "$FLYRECD_PID"
wait_for 10 has_snapshots signal 2 || fail "no snapshot on a signal"
hit
wait_for 10 has_snapshots event 2 || fail "the one that waits longer is in a snapshot that did not wait"
flyrecd_stop

# --- the session's own probe as trigger
rm -rf "$STATE/ev"
group=$(echo "${PREFIX}ev" | tr -c 'a-zA-Z0-9\n' _)
session ev <<-EOF
	[Trace]
	Uprobe=p:truth $HIT:0x2000
	[Snapshot]
	OnEvent=$group:truth
EOF
flyrecd_start
trigger_is event state armed || fail "the session's own probe is no trigger: $(tail -n 3 "$FLYRECD_LOG")"
flyrecd_stop
! grep "$group" "$TRACEFS/dynamic_events" || fail "stop has left a dynamic event"

# --- nothing happens: nobody wakes up
rm -rf "$STATE/ev"
session ev <<-EOF
	[Trace]
	Event=sched:sched_process_fork if common_pid == 0
	[Storage]
	FlushSec=1h
	[Snapshot]
	OnEvent=sched:sched_process_exec if filename == "$HIT"
	OnUnitFailed=*.service
EOF
wakeups() {
	awk '/ctxt_switches/ { n += $2 } END { print n }' "/proc/$FLYRECD_PID/task/$FLYRECD_PID/status"
}
flyrecd_start
sleep 1
n=$(wakeups)
sleep 3
n=$(($(wakeups) - n))
echo "wake-ups in 3 s: $n"
[ "$n" -le 2 ] || fail "$n wake-ups in 3 s though nothing happens"
flyrecd_stop

# --- pressure: two busy loops a CPU, and a window that needs no capability
if [ -e /proc/pressure/cpu ]; then
	rm -rf "$STATE/ev"
	session ev <<-EOF
		[Trace]
		Event=sched:sched_process_fork
		[Snapshot]
		OnSignal=no
		OnPressure=cpu some 20ms 2s
		OnPressure=cpu some 20ms 600ms
		Burst=1
		IntervalSec=1h
	EOF
	flyrecd_start
	busy=()
	for _ in $(seq $(($(nproc) * 2))); do
		background sh -c 'while :; do :; done'
		busy+=($!)
	done
	wait_for 12 has_snapshots pressure 1 || fail "no snapshot on pressure: $(cat /proc/pressure/cpu)"
	kill "${busy[@]}"
	trace-cmd report --stat "${SNAPSHOTS[0]}" >"$T/stat" 2>/dev/null
	grep -q '^pressure: cpu some 20ms ' "$T/stat" || fail "the file does not say which pressure"
	grep -q '^now: some avg10=' "$T/stat" || fail "the file does not say how much pressure"
	# without the capability the other one is unavailable, and says so; with it, it works
	ctl --json status ev | python3 -c 'import json, sys
s = json.load(sys.stdin)["sessions"][0]
t = [t for t in s["triggers"] if t["text"] == "cpu some 20ms 600ms"][0]
print(t)
sys.exit(s["state"] != "recording" or
	t["state"] != "armed" and "CAP_SYS_RESOURCE" not in t["unavailable"])' ||
		fail "a short window is neither watched nor explained"
	flyrecd_stop
else
	echo "this kernel does not watch pressure"
fi

# --- memory runs out for real, in a control group: the kernel kills, and waits for memory before it
oom_group() {
	if [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
		GROUP=/sys/fs/cgroup/memory/flyrec-${PREFIX%.} LIMIT=memory.limit_in_bytes
	elif grep -qw memory /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
		GROUP=/sys/fs/cgroup/flyrec-${PREFIX%.} LIMIT=memory.max
	else
		return 1
	fi
	mkdir "$GROUP" 2>/dev/null || return 1
	at_end rmdir "$GROUP"
	echo 24M >"$GROUP/$LIMIT"
	[ ! -e "$GROUP/memory.swap.max" ] || echo 0 >"$GROUP/memory.swap.max"
}
if [ -e "$TRACEFS/events/oom/mark_victim" ] && oom_group; then
	rm -rf "$STATE/ev"
	session ev <<-EOF
		[Trace]
		Event=sched:sched_process_fork
		Event=sched:sched_process_exec
		[Snapshot]
		OnSignal=no
		OnEvent=oom:mark_victim
		OnPressure=memory some 100us 2s
		Burst=10
	EOF
	flyrecd_start
	# shellcheck disable=SC2016 # for the inner shell
	sh -c 'echo $$ >"$0/cgroup.procs" && exec python3 -c "x = bytearray(100 << 20)"' "$GROUP" &
	VICTIM=$!
	wait "$VICTIM" 2>/dev/null || true
	wait_for 10 has_snapshots event 1 || fail "no snapshot when memory ran out"
	trace-cmd report --stat "${SNAPSHOTS[0]}" >"$T/stat" 2>/dev/null
	grep -qE "^event: oom:mark_victim .*pid=$VICTIM" "$T/stat" || fail "whom? $(tail -n 4 "$T/stat")"
	# the kernel looks every two seconds; within one of the kill it is the same snapshot
	pressure_is_told() {
		has_snapshots pressure 1 || {
			has_snapshots event 1 &&
				trace-cmd report --stat "${SNAPSHOTS[0]}" 2>/dev/null | grep -q '^also: OnPressure=memory'
		}
	}
	[ ! -e /proc/pressure/memory ] || wait_for 10 pressure_is_told ||
		fail "no snapshot on memory pressure: $(cat /proc/pressure/memory)"
	flyrecd_stop
else
	echo "memory cannot run out here"
fi

# --- units where systemd is not: said, and recording goes on
if [ ! -d /run/systemd/system ]; then
	rm -rf "$STATE/ev"
	printf 'OnUnitFailed=*.service\n' | configure
	flyrecd_start
	trigger_is unit state unavailable || fail "units are watched without systemd?"
	[[ $(trigger unit unavailable) == *"systemd does not run"* ]] || fail "$(trigger unit unavailable)"
	must_log "OnUnitFailed= does not work: systemd does not run on this machine"
	flyrecd_stop
fi
