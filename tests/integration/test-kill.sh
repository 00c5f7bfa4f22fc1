#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# SIGKILL where no service manager keeps the fds: recording goes on in the same file, what is lost is
# at most what was in the pipes, and the log and the file say so. SIGKILL while starting and stopping.
# What an earlier run left in the kernel when the configuration is another one now, or none.
# beside: yes
# time-limit: 180
# tests: fast
. "$(dirname "$0")/lib.sh"
need_tracefs
need_tool check-markers
MARKER_SIZE=40 # bytes in the ring buffer, at least: header, ip, "flyrec-test cpu=0 seq=0\n"
cpus=$(($(sed 's/.*-//' /sys/devices/system/cpu/possible) + 1))

config() { # EVENT [LINE-OF-STORAGE]
	session kill <<-EOF
		[Trace]
		Event=$1
		BufferSize=64M
		[Storage]
		FlushSec=300ms
		MaxUse=8G
		${2:-}
	EOF
}

# stated: what a kill may have cost, in bytes a CPU, by the log
stated() {
	sed -n 's/.*up to \([0-9]*\) bytes of events a CPU may be lost.*/\1/p' "$FLYRECD_LOG" |
		awk '{ n += $1 } END { print n + 0 }'
}

# bounded: the markers, and no more lost than stated
bounded() {
	local max=$(($(stated) * cpus / MARKER_SIZE))
	markers_check kill "--max-lost=$max"
	echo "$1: $(tail -n 1 "$T/check"); stated: $(stated) bytes a CPU, so at most $max"
}

instance_gone() {
	[ ! -e "$(instance kill)" ] || fail "the instance is still there $1"
	[ ! -e "$STATE/kill/state" ] || fail "the state file is still there $1"
}

fresh() {
	rm -rf "$STATE"
	: >"$FLYRECD_LOG"
	log_mark
}

echo "== SIGKILL under load"
config "raw_syscalls:sys_enter if $LOAD_FILTER"
flyrecd_start
load_start
markers_start kill 20000
kills=5
for i in $(seq $kills); do
	sleep "0.$((RANDOM % 5 + 3))"
	inode=$(stat -c %i "$STATE/kill/record/current.dat")
	log_mark
	flyrecd_kill
	[ -e "$(instance kill)" ] || fail "the instance went with the daemon"
	flyrecd_start
	must_log "kill: the earlier process was killed.*up to [1-9][0-9]* bytes of events a CPU may be lost"
	must_log "kill: continuing record/current.dat"
	[ "$(stat -c %i "$STATE/kill/record/current.dat")" = "$inode" ] || fail "not the same file"
done
sleep 0.5
markers_stop
load_stop
flyrecd_stop
segments=("$STATE"/kill/record/2*.dat)
[ ${#segments[@]} = 1 ] || fail "not one segment: ${segments[*]}"
verify "${segments[@]}"
no_damage
bounded "$kills kills"
in_file=$(head -c 33554432 "${segments[0]}" | tr '\0' '\n' |
	sed -n 's/^flyrec maybe lost in a kill bytes: //p' | sort -u)
[ "$in_file" = "$(stated)" ] || fail "the log states $(stated) bytes, CPUSTAT $in_file"
instance_gone "after a clean stop"

echo "== and the first start after it fails"
fresh
flyrecd_start
load_start
markers_start kill 20000 --retry
sleep 0.5
flyrecd_kill
if chattr +i "$STATE/kill/record/current.dat"; then
	flyrecd_start
	must_log "kill: session failed"
	chattr -i "$STATE/kill/record/current.dat"
	ctl start kill
	must_log "kill: the earlier process was killed.*up to [1-9][0-9]* bytes of events a CPU may be lost"
else
	flyrecd_start
fi
sleep 0.5
markers_stop
load_stop
flyrecd_stop
verify "$STATE/kill/record"
bounded "kill and a start that fails"
instance_gone "after a start that failed"

echo "== and is stopped then"
# failed_start: what an earlier process has left cannot be taken up
failed_start() {
	fresh
	flyrecd_start
	markers_start kill 10000
	sleep 0.5
	markers_stop
	flyrecd_kill
	chattr +i "$STATE/kill/record/current.dat" || return
	flyrecd_start
	must_log "kill: session failed: .*its instance goes on tracing for the next try"
	[ "$(cat "$(instance kill)/tracing_on")" = 1 ] || fail "it does not trace"
}
saved() {
	verify "$STATE/kill/record"
	bounded "a start that fails, stopped"
	instance_gone "after a stop"
}
if failed_start; then
	ctl stop kill
	must_log "kill: session failed: .*tracing stopped, unread data stays in the instance"
	[ "$(cat "$(instance kill)/tracing_on")" = 0 ] || fail "it traces after a stop"
	chattr -i "$STATE/kill/record/current.dat"
	ctl stop kill
	saved
	flyrecd_stop
	failed_start
	chattr -i "$STATE/kill/record/current.dat"
	flyrecd_stop
	saved
else
	flyrecd_stop
fi

echo "== the disk takes the file back to an earlier state"
fresh
config sched:sched_process_exec SyncIntervalSec=500ms
current=$STATE/kill/record/current.dat
flyrecd_start
markers_start kill 2000
sleep 1.5
cp --sparse=always "$current" "$T/earlier"
sleep 2
markers_stop
sleep 1 # all of it has been synced
confirmed=$(sed -n 's/^published //p' "$RUNTIME/synced/kill/state" | paste -sd+)
flyrecd_kill
cp --sparse=always "$T/earlier" "$current"
flyrecd_start
must_log "kill: [1-9][0-9]* bytes of record/current.dat were synced but are missing now"
said=$(sed -n 's|.* \([0-9]*\) bytes of record/current.dat were synced but.*|\1|p' "$FLYRECD_LOG")
counted=$(ctl --json stats kill | grep -o '"not_written":[0-9]*' | cut -d: -f2 | paste -sd+)
[ $((counted)) = $((said / 4096)) ] || fail "$said bytes are said, $((counted)) sub-buffers counted"
flyrecd_kill
flyrecd_start
[ "$(grep -c 'were synced but are missing' "$FLYRECD_LOG")" = 1 ] || fail "counted again"
flyrecd_stop
verify "$STATE/kill/record"
there=$("$FLYRECCTL" --json verify "$STATE/kill/record" | grep -o '"subbufs":[0-9]*' | cut -d: -f2 | paste -sd+)
there=$(((there) * 4096)) confirmed=$((confirmed))
echo "$confirmed bytes confirmed, $said lost, $there there"
# what has come since is no marker
if [ "$there" -lt $((confirmed - said)) ] || [ "$there" -gt $((confirmed - said + 65536 * cpus)) ]; then
	fail "of $confirmed bytes there are $there, $said are said to be lost"
fi
markers_check kill "--max-lost=$((said / MARKER_SIZE))" --allow-lost-at-end
grep -q 'lost_at_end=[1-9]' "$T/check" || fail "no marker is missing: a poor test"
[ ! -e "$RUNTIME/synced/kill/state" ] || fail "a note is left in $RUNTIME"
config "raw_syscalls:sys_enter if $LOAD_FILTER"

echo "== SIGKILL while starting"
fresh
flyrecd_command
for i in $(seq 25); do
	"${FLYRECD_COMMAND[@]}" 2>>"$FLYRECD_LOG" &
	sleep "0.$(printf '%03d' $((RANDOM % 400)))"
	kill -KILL $!
	wait $! 2>/dev/null || true
done
flyrecd_start
! grep -q 'failed\|cannot' "$FLYRECD_LOG" || fail "$(grep -m 1 'failed\|cannot' "$FLYRECD_LOG")"
markers_start kill 5000
sleep 0.5
markers_stop
flyrecd_stop
verify "$STATE/kill/record"
markers_check kill
no_damage
instance_gone "after kills while starting"
segments=("$STATE"/kill/record/2*.dat)
echo "${#segments[@]} segments, $(grep -c 'continuing' "$FLYRECD_LOG") continued"

echo "== SIGKILL while stopping"
for i in $(seq 8); do
	fresh
	flyrecd_start
	load_start
	markers_start kill 10000
	sleep 0.5
	markers_stop
	load_stop
	kill -TERM "$FLYRECD_PID"
	sleep "0.$(printf '%03d' $((RANDOM % 80)))"
	kill -KILL "$FLYRECD_PID" 2>/dev/null || echo "$i: had stopped by then"
	wait "$FLYRECD_PID" || true
	flyrecd_start
	flyrecd_stop
	verify "$STATE/kill/record"
	bounded "kill $i" >"$T/bounded"
	no_damage
	instance_gone "after a kill while stopping"
	hidden=("$STATE"/kill/record/.*.dat* "$STATE"/kill/record/.*.finishing)
	[ ${#hidden[@]} = 0 ] || fail "left behind: ${hidden[*]}"
done
cat "$T/bounded"

echo "== left behind with another configuration"
fresh
flyrecd_start
load_start
markers_start kill 10000 --retry
sleep 0.5
flyrecd_kill
config sched:sched_switch
markers_stop
load_stop
log_mark
flyrecd_start
must_log "kill: instance ${PREFIX}kill of an earlier run is set up differently: draining it to a last segment"
must_log "kill: recording"
[ "$(cat "$(instance kill)/events/raw_syscalls/enable")" = 0 ] || fail "still the old events"
[ "$(cat "$(instance kill)/events/sched/sched_switch/enable")" = 1 ] || fail "not the new events"
flyrecd_stop
verify "$STATE/kill/record"
bounded "other configuration"
segments=("$STATE"/kill/record/2*.dat)
[ ${#segments[@]} -ge 2 ] || fail "no segment of its own for the new configuration: ${segments[*]}"

echo "== left behind and no longer wanted"
fresh
session other <<-EOF
	[Trace]
	Event=sched:sched_process_fork
EOF
flyrecd_start
markers_start kill 10000
sleep 0.5
markers_stop
flyrecd_kill
mv "$CONFIG/sessions.d/kill.conf" "$T"
log_mark
flyrecd_start
must_log "kill: instance ${PREFIX}kill of an earlier run is no longer wanted: draining it to a last segment"
gone() {
	[ ! -e "$(instance kill)" ]
}
wait_for 5 gone || fail "the unwanted instance is still there"
[ -e "$(instance other)" ] || fail "the other session is gone too"
verify "$STATE/kill/record"
bounded "no longer wanted"
instance_gone "although nobody wants it"

echo "== a copied directory"
flyrecd_kill
cp -a "$STATE/other" "$STATE/copied"
cp -a "$STATE/other" "$STATE/her" # the end of its name
log_mark
flyrecd_start
must_log "copied: the state file is of instance ${PREFIX}other, another session's"
must_log "her: the state file is of instance ${PREFIX}other, another session's"
must_log "other: recording"
[ -e "$(instance other)" ] || fail "the copy has taken the instance away"
rm -r "${STATE:?}/copied" "$STATE/her"

echo "== another daemon with the same state directory"
status=0
"${FLYRECD_COMMAND[@]}" 2>"$T/second" || status=$?
[ "$status" = 1 ] || fail "a second daemon ended with $status"
grep -qx "flyrecd: another flyrecd uses state directory $STATE.*" "$T/second" || fail "$(cat "$T/second")"
[ "$(grep -cv "^flyrecd: there is no user flyrecd: " "$T/second")" = 1 ] || fail "more than one line: $(cat "$T/second")"
[ -e "$(instance other)" ] || fail "the second daemon took the instance away"
flyrecd_stop

echo "== somebody else's instance of the same name"
fresh
mv "$T/kill.conf" "$CONFIG/sessions.d"
mkdir "$(instance kill)"
echo 1 >"$(instance kill)/events/sched/sched_process_exec/enable"
flyrecd_start
must_log "kill: session failed: instance ${PREFIX}kill exists and is not ours"
must_log "other: recording"
flyrecd_stop
[ "$(cat "$(instance kill)/events/sched/sched_process_exec/enable")" = 1 ] ||
	fail "somebody else's instance was changed"
rmdir "$(instance kill)"
