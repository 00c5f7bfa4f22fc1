#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 120
# tests: fast
#
# Flight sessions: the history stays in the kernel, and each snapshot has all of it, without a gap,
# while tracing goes on; what else can be asked of such a session.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/flight-lib.sh"
need_tracefs
need_tool check-markers
need_command trace-cmd numfmt jq

state_on ext4 4G
flight
flyrecd_start
ctl --json status f >"$T/status"
[ "$(jq -r '.sessions[0].mode' "$T/status")" = flight ] || fail "status: $(cat "$T/status")"
[ "$(jq -r '.sessions[0].method' "$T/status")" = mapped ] || skip "this kernel does not map ring buffers"

# --- nothing there yet: said so, and nothing left
if ctl snapshot f >"$T/out" 2>"$T/err"; then fail "a snapshot of nothing"; fi
grep -q "f: no events yet (recording since" "$T/err" || fail "$(cat "$T/err")"
nothing_half

# --- SIGUSR1 twice within a second under load: both have the whole history
markers_start f 100000
wait_for 60 wrapped || fail "too few markers"
take
sleep 0.2
take
[ "$(cat "$(instance f)/tracing_on")" = 1 ] || fail "tracing is off"
# --- ten in ten seconds
for _ in 1 2 3 4 5 6 7 8 9 10; do
	begin=${EPOCHREALTIME/./}
	take
	left=$((1000000 - (${EPOCHREALTIME/./} - begin)))
	[ "$left" -le 0 ] || sleep "$(printf '0.%06d' "$left")"
done
markers_stop
snapshots
[ ${#SNAPSHOTS[@]} = 12 ] || fail "${#SNAPSHOTS[@]} snapshots"
EXPECT=$T/expect good "${SNAPSHOTS[@]}"
for f in "${SNAPSHOTS[@]}"; do
	whole "$f"
done
# the second goes back to before the end of the first
first=$(range "${SNAPSHOTS[0]}" | awk 'NR == 1 { print $3 }')
[ "$first" -gt "$(range "${SNAPSHOTS[1]}" | awk 'NR == 1 { print $2 }')" ] ||
	fail "the second snapshot has lost its history to the first"
# nothing was consumed
reads=$(sed -n 's/^read events: //p' "$(instance f)/per_cpu/cpu0/stats")
[ "$reads" = 0 ] || fail "$reads events were consumed"

# --- by control call: path, reason, pin, range, output
pinned=$(ctl snapshot f --reason=why-not --pin)
[[ $pinned == "$STATE"/f/snapshot/*-why-not.dat && -s $pinned ]] || fail "prints $pinned"
ctl --json list f | jq -e --arg p "$pinned" '.files[] | select(.path == $p) | .pinned' >/dev/null ||
	fail "not pinned"
ctl snapshot f --output="$T/out.dat" >/dev/null
good "$T/out.dat"
subbufs() {
	"$FLYRECCTL" verify "$1" | sed -n 's/.*version 6, \([0-9]*\) sub-buffers.*/\1/p'
}
cp "$T/expect" "$T/expect.before"
markers_start f 20000 "--continue=$T/expect.before"
sleep 1
path=$(ctl snapshot f --last=100ms)
markers_stop
good "$path"
[ "$(subbufs "$path")" -lt $(($(subbufs "$T/out.dat") / 3)) ] ||
	fail "--last=100ms gave $(subbufs "$path") sub-buffers"
path=$(ctl snapshot f --since=-30s --until=now)
good "$path"
if ctl snapshot f --since=-3h --until=-2h 2>"$T/err"; then fail "a snapshot of two hours ago"; fi
grep -q "nothing was recorded" "$T/err" || fail "$(cat "$T/err")"

# --- what a flight session has not
if ctl rotate f 2>"$T/err"; then fail "rotated"; fi
grep -q "no segments" "$T/err" || fail "$(cat "$T/err")"
ctl rotate || fail "rotate of all that record"
kill -USR2 "$FLYRECD_PID"
if ctl cat f current.dat >/dev/null 2>"$T/err"; then fail "cat of a file that is not there"; fi
[ -s "$T/err" ] || fail "cat says nothing"

# --- stats and metrics
ctl --json stats f >"$T/stats"
jq -e '.sessions[0].cpus[0] | .subbufs > 0 and .overrun > 0 and .lost_events == 0' "$T/stats" >/dev/null ||
	fail "stats: $(cat "$T/stats")"
prints '^flyrec_.*session="f"' ctl metrics || fail "no metrics"
[ "$(ctl --json status f | jq '.sessions[0].lost_events')" = 0 ] || fail "overwriting counts as loss"

# --- pause and resume, other events
ctl pause f
[ "$(cat "$(instance f)/tracing_on")" = 0 ] || fail "not paused"
ctl resume f
ctl event-enable f sched:sched_process_exec
[ "$(cat "$(instance f)/events/sched/sched_process_exec/enable")" = 1 ] || fail "event not enabled"
sh -c true
path=$(ctl snapshot f)
prints sched_process_exec trace-cmd report "$path" || fail "no event of the other kind"
ctl event-disable f sched:sched_process_exec

# --- reload: other [Snapshot] keys without a new instance
inode=$(stat -c %i "$(instance f)")
flight MaxFiles=3
log_mark
kill -HUP "$FLYRECD_PID"
must_log "configuration reloaded"
[ "$(stat -c %i "$(instance f)")" = "$inode" ] || fail "the instance was made anew"
ctl snapshot f >/dev/null
left=("$STATE"/f/snapshot/2*.dat)
[ ${#left[@]} = 3 ] || fail "MaxFiles=3, but ${#left[@]} files"
[[ " ${left[*]} " == *" $pinned "* ]] || fail "$pinned is pinned, but gone: ${left[*]}"

# --- hand-over, and SIGKILL: the history outlives the daemon
"$TOOLS/markers" "--instance=${PREFIX}f" --count=1000 "--continue=$T/expect" >"$T/expect.last"
flyrecd_hand_over
flyrecd_start
[ "$(stat -c %i "$(instance f)")" = "$inode" ] || fail "the instance was made anew"
flyrecd_kill
flyrecd_start
[ "$(stat -c %i "$(instance f)")" = "$inode" ] || fail "the instance was made anew after a kill"
path=$(ctl snapshot f)
markers_are "after hand-over and kill" --expect="$T/expect.before" --expect="$T/expect" \
	--expect="$T/expect.last" --allow-lost-at-start "$path"

# --- and so does a pause
traces() {
	[ "$(cat "$(instance f)/tracing_on")" = 1 ]
}
ctl pause f
sleep 0.5
for way in hand_over kill; do
	"flyrecd_$way"
	flyrecd_start
	must_log "f: still paused"
	! traces || fail "paused, and after a $way it traces"
	[ "$(ctl --json status f | jq -r '.sessions[0].state')" = paused ] || fail "not paused after a $way"
done
ctl resume f
traces || fail "resume after a restart"
ctl pause f
ctl stop f
ctl start f
traces || fail "still paused after stop and start"

# --- stop and start
ctl stop f
[ ! -d "$(instance f)" ] || fail "stop leaves the instance"
ctl start f
[ -d "$(instance f)" ] || fail "start makes no instance"

# --- to record and back: what was in flight is not kept, what was recorded is
is() { # MODE
	ctl --json status f | jq -e --arg m "$1" '.sessions[0] | .mode == $m and .state == "recording"' >/dev/null
}
record() {
	session f <<-EOF
		[Trace]
		Event=${EVENT:-$UNSEEN}
	EOF
}
record
kill -HUP "$FLYRECD_PID"
wait_for 10 is record || fail "it does not record: $(ctl status f)"
"$TOOLS/markers" "--instance=${PREFIX}f" --count=1000 >"$T/expect"
flyrecd_kill
flight
flyrecd_start
wait_for 10 is flight || fail "not in flight: $(ctl status f)"
markers_check f
flyrecd_kill
record
flyrecd_start
wait_for 10 is record || fail "it does not record after a kill in flight: $(ctl status f)"
nothing_half
flyrecd_stop
[ ! -d "$(instance f)" ] || fail "the instance is still there"
