#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
#
# OnPressure= for a unit: what its own control group waits for, while it is there, and not what others
# do; a unit that does not run is said, one that is started later or again is watched.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd jq
need_event sched:sched_process_fork
CGROUPS=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -w "${CGROUPS:-/nonexistent}" ] || skip "no control groups of version 2 that may be changed"
UNIT=${PREFIX}demo.service
GROUP=$CGROUPS/$UNIT
remove_group() {
	[ ! -d "$GROUP" ] || rmdir "$GROUP"
}
at_end remove_group
mkdir "$GROUP"
[ -e "$GROUP/cpu.pressure" ] || skip "this kernel does not watch pressure of control groups"
rmdir "$GROUP"

# busy GROUP: two on one CPU, one of which always waits; "": in this test's own control group
busy() {
	BUSY=()
	for _ in 1 2; do
		# shellcheck disable=SC2016 # for the inner shell
		background taskset -c 0 sh -c '[ -z "$0" ] || echo $$ >"$0/cgroup.procs"; while :; do :; done' "$1"
		BUSY+=($!)
	done
}

calm() {
	kill "${BUSY[@]}"
	wait "${BUSY[@]}" 2>/dev/null || true
}

trigger() { # FIELD
	ctl --json status ev | jq -r '.sessions[0].triggers[] | select(.kind == "pressure") | .'"$1"
}

trigger_is() { # FIELD VALUE
	[ "$(trigger "$1")" = "$2" ]
}

has_fired() { # NUMBER
	[ "$(trigger fired)" -ge "$1" ]
}

session ev <<-EOF
	[Trace]
	Event=sched:sched_process_fork
	[Snapshot]
	OnSignal=no
	OnPressure=cpu some 100ms 1s unit=$UNIT post=10ms
	Burst=0
EOF

echo "== it does not run"
flyrecd_start
wait_for 10 trigger_is state unavailable || fail "watched though it does not run"
[[ $(trigger unavailable) = "$UNIT has no control group: it does not run"* ]] || fail "$(trigger unavailable)"
must_log "Trigger pressure cpu some .* is unavailable, continuing without it: $UNIT has no control group"

echo "== it is started, and others press"
mkdir "$GROUP"
wait_for 20 trigger_is state armed || fail "started, and not watched: $(trigger unavailable)"
must_log "Trigger pressure cpu some .* is available"
busy ''
sleep 3
trigger_is fired 0 || fail "triggered by what is not in the unit"
calm

echo "== it presses"
busy "$GROUP"
wait_for 20 has_fired 1 || fail "no trigger: $(cat "$GROUP/cpu.pressure")"
calm
has_snapshot() {
	SNAPSHOTS=("$STATE"/ev/snapshot/*-pressure.dat)
	[ ${#SNAPSHOTS[@]} -ge 1 ]
}
wait_for 10 has_snapshot || fail "no snapshot"
trace-cmd report --stat "${SNAPSHOTS[0]}" >"$T/stat" 2>/dev/null
grep -q "^pressure: cpu some 100ms 1s unit=$UNIT" "$T/stat" || fail "whose? $(tail -n 5 "$T/stat")"
grep -q '^now: some avg10=' "$T/stat" || fail "the file does not say how much pressure"

echo "== it is started again, with another control group"
n=$(trigger fired)
rmdir "$GROUP"
mkdir "$GROUP"
busy "$GROUP"
wait_for 20 has_fired $((n + 1)) || fail "not watched after a restart"
trigger_is state armed || fail "a restart makes it $(trigger unavailable)"
calm

echo "== it ends, and is started after a while"
log_mark
rmdir "$GROUP"
wait_for 20 trigger_is state unavailable || fail "watched though it has ended"
must_log "is unavailable, continuing without it: $UNIT has no control group"
mkdir "$GROUP"
wait_for 20 trigger_is state armed || fail "not watched after a while"
n=$(trigger fired)
busy "$GROUP"
wait_for 20 has_fired $((n + 1)) || fail "not watched after a while"
calm

echo "== what looking costs"
cpu_nsec() {
	cut -d ' ' -f 1 "/proc/$FLYRECD_PID/task/$FLYRECD_PID/schedstat"
}
n=$(cpu_nsec)
sleep 5
n=$((($(cpu_nsec) - n) / 1000))
echo "CPU time of looks in 5 s: $n us"
[ $n -le 50000 ] || fail "looks cost more than 1 % of a CPU"
flyrecd_stop
