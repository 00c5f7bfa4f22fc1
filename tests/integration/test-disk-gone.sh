#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 500
#
# A file system that dies under a recording (shut down, as after an error) is let go of, so that it can
# be unmounted; other sessions go on; when it is mounted again the recording goes on in the same file
# by itself, and what the disk has not kept is counted. The same for the state directory as a whole,
# which may also be read-only when flyrecd starts, or be mounted over later; and for a session that is
# only started by flyrecctl.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
need_command xfs_io jq
need_tool check-markers

failure() {
	ctl --json status s | jq -r '.sessions[0].failure'
}

state() {
	ctl --json status s | jq -r '.sessions[0].state'
}

is_stopped() {
	[ "$(state)" = stopped ]
}

has_no_failure() {
	[ -z "$(failure)" ]
}

fails_with() {
	[[ $(failure) == *$1* ]]
}

count_log() {
	grep -c -e "$1" "$FLYRECD_LOG" || true
}

# begin DIRECTORY SYNC: a new file system there, and nothing written or logged so far
begin() {
	mkfs_mount xfs 400M "$1"
	rm -f "$T"/expect.*
	: >"$FLYRECD_LOG"
	storage MaxUse=200M KeepFree=0 FlushSec=200ms "SyncIntervalSec=$2"
}

# gone MOUNTPOINT [-f [killed [rotated]]]: the file system there dies under the recording, and comes back;
# -f: its log is written before, else it is lost, with what nobody on the machine has synced; killed:
# flyrecd is, while it is away; rotated: after that
gone() {
	write_markers 2000
	[ -n "${2:-}" ] || markers_begin --rate=1000
	sleep 1
	# shellcheck disable=SC2086 # none or one
	xfs_io -x -c "shutdown ${2:-}" "$1" || skip "cannot shut a file system down"
	[ -z "${2:-}" ] || markers_begin --rate=1000
	wait_for 10 fails_with "Input/output error" || fail "status says nothing: $(failure)"
	wait_for 40 log_has 'Closed all files below' || fail "not let go of"
	umount "$1" || fail "cannot unmount what flyrecd has let go of"
	unset 'MOUNTS[-1]'
	wait_for 20 fails_with "no longer mounted" || fail "status: $(failure)"
	if [ "${3:-}" = killed ]; then
		flyrecd_kill
		wait_for 20 fails_with "no longer mounted" || fail "status: $(failure)"
		flyrecd_hand_over
		wait_for 20 fails_with "no longer mounted" || fail "status: $(failure)"
	fi
	[ -z "$(ls -A "$1")" ] || fail "wrote below the mount point: $(ls -A "$1")"
	mounted=$1
	wait_for 60 mounted_alive || skip "another mount namespace holds the dead file system"
	MOUNTS+=("$1")
	wait_for 20 log_has 'writing again' || fail "does not go on"
	wait_for 5 has_no_failure || fail "status still has: $(failure)"
	sleep 1
	[ -z "${4:-}" ] || ctl rotate s >/dev/null || fail "rotate"
	markers_end
	ctl --json stats s >"$T/stats"
	[ "$(jq '[.sessions[0].cpus[].not_written] | add' "$T/stats")" = \
		"$(ctl --json status s | jq '.sessions[0].not_written')" ] || fail "status: $(ctl status s)"
}

# As long as another mount namespace has the old mount it is the same dead file system again
mounted_alive() {
	mount -t xfs "${LOOPS[-1]}" "$mounted"
	! touch "$mounted/alive" 2>/dev/null || { rm "$mounted/alive" && return 0; }
	umount "$mounted"
	return 1
}

# What is missing on each CPU was counted as not written: sub-buffers of 4080 bytes, and events of at
# least 36
missing_is_counted() {
	local cpu missing not_written said file expect=() all=0
	for file in "$T"/expect.[0-9]*; do
		expect+=("--expect=$file")
	done
	verify "$(REC)"
	markers_are s "${expect[@]}" --max-lost=1000000 "$(REC)"/2*.dat
	while read -r cpu not_written; do
		missing=$(sed -nE "s/^cpu=$cpu .* lost=([0-9]+) lost_at_start=([0-9]+) lost_at_end=([0-9]+) .*/\1 + \2 + \3/p" "$T/check")
		missing=$((missing))
		echo "CPU $cpu: $missing missing, $not_written sub-buffers not written"
		all=$((all + not_written))
		[ $((not_written > 0 ? missing > 0 && missing <= not_written * 113 : missing == 0)) = 1 ] ||
			fail "wrong data: CPU $cpu: that is not the same"
		said=$(for file in "$(REC)"/2*.dat; do cpustat "$file" 'flyrec not written bytes'; done |
			awk -v cpu="$cpu" '$1 == cpu { n += $2 } END { print n / 4096 }')
		[ "$said" = "$not_written" ] || fail "CPU $cpu: CPUSTAT of all files: $said, stats: $not_written"
	done < <(jq -r '.sessions[0].cpus[] | "\(.cpu) \(.not_written)"' "$T/stats")
	[ $all -gt 0 ] || fail "a poor test: nothing was lost, something has synced all file systems just before"
}

storage MaxUse=200M KeepFree=0 FlushSec=200ms SyncIntervalSec=200ms

echo "== one session's file system"
mkfs_mount xfs 400M "$STATE/s"
session beside <<-EOF
	[Trace]
	Event=raw_syscalls:sys_enter if $LOAD_FILTER
	[Storage]
	FlushSec=200ms
EOF
flyrecd_start
gone "$STATE/s" -f
before=$(stat -c %b "$STATE/beside/record/current.dat")
load_start --duration=1
wait "$LOAD_PID" || true
grown() { [ "$(stat -c %b "$STATE/beside/record/current.dat")" -gt "$before" ]; }
wait_for 10 grown || fail "the other session stands still"
for text in 'cannot write to' 'Closed all files below' 'no longer mounted' 'writing again'; do
	[ "$(count_log "flyrecd: s: .*$text")" = 1 ] || fail "said $(count_log "flyrecd: s: .*$text") times: $text"
done
flyrecd_stop
rm "$CONFIG/sessions.d/beside.conf"
all_right "one session's file system"
umount "$STATE/s"
unset 'MOUNTS[-1]'

echo "== its log is lost"
begin "$STATE/s" 1h
flyrecd_start
gone "$STATE/s" '' '' rotated
flyrecd_stop
missing_is_counted
umount "$STATE/s"
unset 'MOUNTS[-1]'

echo "== the whole state directory"
rm -rf "${STATE:?}"
begin "$STATE" 200ms
mount -o remount,ro "$STATE"
flyrecd_start
wait_for 10 fails_with "Read-only file system" || fail "status: $(failure)"
[ ! -d "$(instance s)" ] || fail "an instance without a place for its data"
mount -o remount,rw "$STATE"
wait_for 20 log_has 'writing again' || fail "does not begin although it can"
[ "$(count_log 'session failed')" = 1 ] || fail "said $(count_log 'session failed') times that it cannot start"
: >"$FLYRECD_LOG"
gone "$STATE" -f
flyrecd_stop
all_right "the whole state directory"

echo "== mounted over, and stopped while it is away"
umount "$STATE"
unset 'MOUNTS[-1]'
rm -f "$T"/expect.*
: >"$FLYRECD_LOG"
flyrecd_start
write_markers 1000
mount -t xfs "${LOOPS[-1]}" "$STATE" && MOUNTS+=("$STATE")
moved() { [ "$(stat -c %d "$STATE/s/record/current.dat" 2>/dev/null)" = "$(stat -c %d "$STATE")" ]; }
wait_for 20 moved || fail "it goes on below the mount point"
xfs_io -x -c "shutdown -f" "$STATE"
write_markers 10
wait_for 40 log_has 'Closed all files below .*retrying' || fail "not let go of"
flyrecd_stop
[ ! -d "$(instance s)" ] || fail "the instance is left"

# frozen_try: its disk is gone, and then back, but frozen, so that it is starting
frozen_try() {
	rm -rf "${STATE:?}"
	begin "$STATE/s" 200ms
	flyrecd_start
	write_markers 1000
	sleep 1
	xfs_io -x -c "shutdown -f" "$STATE/s"
	write_markers 1000
	wait_for 40 log_has 'Closed all files below' || fail "not let go of"
	kill -STOP "$FLYRECD_PID"
	umount "$STATE/s"
	mounted=$STATE/s
	wait_for 60 mounted_alive || skip "another mount namespace holds the dead file system"
	at_end unfreeze "$STATE/s"
	xfs_io -x -c freeze "$STATE/s"
	kill -CONT "$FLYRECD_PID"
	wait_for 20 is_starting || fail "it is not tried again: $(state)"
}

# stopped_in_a_try [dies]: then the disk goes on, or dies again
stopped_in_a_try() {
	local stop
	frozen_try
	ctl stop s &
	stop=$!
	sleep 0.5
	thaw "$STATE/s" "$@"
	wait "$stop" || fail "stop"
	wait_for 20 is_over || fail "it is $(state)"
	flyrecd_stop
	[ ! -d "$(instance s)" ] || fail "the instance is left"
}
# thaw DIRECTORY [dies]: whose file system is dead by then
thaw() {
	python3 - "$@" <<-'EOF' || fail "cannot thaw"
		import fcntl, os, subprocess, sys
		FITHAW = 0xC0045878
		directory = os.open(sys.argv[1], os.O_RDONLY)
		if len(sys.argv) > 2:
		    subprocess.check_call(["xfs_io", "-x", "-c", "shutdown", sys.argv[1]])
		fcntl.ioctl(directory, FITHAW, 0)
	EOF
}
unfreeze() { xfs_io -x -c thaw "$1" 2>/dev/null || :; }
is_as_configured() {
	[ "$(state)" = recording ] && [ "$(cat "$(instance s)/set_event")" = sched:sched_process_fork ]
}
is_starting() { [ "$(state)" = starting ]; }
is_over() { [[ $(state) =~ ^(stopped|failed)$ ]]; }

echo "== stopped while it is tried again"
umount "$STATE"
unset 'MOUNTS[-1]'
stopped_in_a_try
all_right "stopped while it is tried again"
log_has 'was discarded' && fail "said to be lost: $(grep 'was discarded' "$FLYRECD_LOG")"

echo "== stopped while it is tried again, which fails"
umount "$STATE/s"
unset 'MOUNTS[-1]'
stopped_in_a_try dies
log_has 'has not come back; data left in the ring buffer was discarded' || fail "the loss is not said"

echo "== reloaded while it is tried again, which fails"
umount "$STATE/s"
unset 'MOUNTS[-1]'
frozen_try
ctl reload 2>"$T/reload" &
RELOAD=$!
sleep 0.5
thaw "$STATE/s" dies
! wait "$RELOAD" || fail "reload does not say that the session has failed"
grep -q 'session s has failed: .*Input/output error' "$T/reload" || fail "reload: $(cat "$T/reload")"
wait_for 20 fails_with "Input/output error" || fail "status: $(state), $(failure)"
umount "$STATE/s"
unset 'MOUNTS[-1]'
wait_for 20 fails_with "no longer mounted" || fail "after a reload it goes below the mount point: $(state), $(failure)"
[ -z "$(ls -A "$STATE/s")" ] || fail "after a reload it writes below the mount point: $(ls -A "$STATE/s")"
mounted=$STATE/s
wait_for 60 mounted_alive || skip "another mount namespace holds the dead file system"
MOUNTS+=("$STATE/s")
wait_for 20 log_has 'writing again' || fail "it is not tried again after the reload"
log_has 'was discarded' && fail "said to be lost: $(grep 'was discarded' "$FLYRECD_LOG")"
flyrecd_stop
all_right "reloaded while it is tried again"

# leaving SYNC: another file system is mounted over its disk, which does not answer and is let go of; or
# is to be, after a sync that is most likely under way
leaving() {
	rm -rf "${STATE:?}"
	begin "$STATE/s" "$1"
	flyrecd_start
	markers_begin --rate=1000
	sleep 1
	exec {root}<"$STATE/s"
	at_end unfreeze "/proc/$$/fd/$root"
	xfs_io -x -c freeze "$STATE/s"
	sleep 0.5
	markers_end
	wait_for 20 fails_with "does not answer" || fail "status: $(failure)"
	mount -t tmpfs -o mode=0750 tmpfs "$STATE/s" && MOUNTS+=("$STATE/s")
	[ "$1" != 1h ] || wait_for 20 is_stopping || fail "it is $(state)"
}
answers() {
	thaw "/proc/$$/fd/$root"
	exec {root}<&-
}
is_stopping() { [ "$(state)" = stopping ]; }

echo "== stopped while it is let go of"
umount "$STATE/s"
unset 'MOUNTS[-1]'
leaving 1h
ctl stop s &
STOP=$!
sleep 0.5
answers
wait "$STOP" || fail "stop"
wait_for 20 is_over || fail "it is $(state)"
log_has 'has not come back; data left in the ring buffer was discarded' || fail "the loss is not said"
flyrecd_stop
[ ! -d "$(instance s)" ] || fail "the instance is left"

# reloaded_leaving SYNC
reloaded_leaving() {
	local reload
	leaving "$1"
	EVENT=sched:sched_process_fork storage MaxUse=200M KeepFree=0 FlushSec=200ms "SyncIntervalSec=$1"
	ctl reload 2>"$T/reload" &
	reload=$!
	sleep 0.5
	answers
	# it has failed by then, or is still to
	wait "$reload" || grep -q 'session s has failed: Closed all files' "$T/reload" ||
		fail "reload: $(cat "$T/reload")"
	wait_for 20 log_has 'Closed all files below' || fail "not let go of"
	wait_for 20 is_as_configured || fail "it is $(state), and traces $(cat "$(instance s)/set_event")"
	write_markers 1000
	flyrecd_stop
	cp "$STATE/s/record"/2*.dat "$T"
	umount "$STATE/s"
	unset 'MOUNTS[-1]'
	flyrecd_start
	flyrecd_stop
	mv "$T"/2*.dat "$STATE/s/record"
	all_right "reloaded while it is let go of"
}

echo "== reloaded while it is let go of"
umount "$STATE/s"
umount "$STATE/s"
unset 'MOUNTS[-1]' 'MOUNTS[-1]'
reloaded_leaving 1h

echo "== reloaded before it is let go of, which waits for a sync"
umount "$STATE/s"
unset 'MOUNTS[-1]'
reloaded_leaving 200ms

echo "== of a session that is not enabled, but was started"
umount "$STATE/s"
unset 'MOUNTS[-1]'
rm -rf "${STATE:?}"
begin "$STATE/s" 200ms
mkdir "$CONFIG/sessions.d/s.conf.d"
printf '[Session]\nEnabled=no\n' >"$CONFIG/sessions.d/s.conf.d/off.conf"
flyrecd_start
[ "$(state)" = stopped ] || fail "it is $(state) although it is not enabled"
ctl start s
gone "$STATE/s" -f
[ "$(state)" = recording ] || fail "it is $(state)"
ctl stop s
all_right "started by hand"
ctl start s
: >"$FLYRECD_LOG"
xfs_io -x -c "shutdown -f" "$STATE/s"
write_markers 10
wait_for 40 log_has 'Closed all files below .*retrying' || fail "not let go of"
[ "$(state)" = failed ] || fail "it is $(state)"
ctl stop s
[ ! -d "$(instance s)" ] || fail "the instance is left"
wait_for 5 is_stopped || fail "it is $(state)"
flyrecd_stop
rm -r "$CONFIG/sessions.d/s.conf.d"

echo "== of a session that is no longer configured"
umount "$STATE/s"
unset 'MOUNTS[-1]'
rm -rf "${STATE:?}"
mkfs_mount xfs 400M "$STATE/s"
: >"$FLYRECD_LOG"
storage FlushSec=200ms
flyrecd_start
write_markers 100
flyrecd_kill
xfs_io -x -c shutdown "$STATE/s"
rm "$CONFIG"/sessions.d/*.conf
session beside <<-EOF
	[Trace]
	Event=sched:sched_process_exec
EOF
flyrecd_start
must_log "s: session failed: .*Input/output error"
must_log "beside: recording"
flyrecd_stop
mounted=$STATE/s
umount "$mounted"
unset 'MOUNTS[-1]'
wait_for 60 mounted_alive || skip "another mount namespace holds the dead file system"
MOUNTS+=("$mounted")
flyrecd_start
flyrecd_stop
[ ! -d "$(instance s)" ] || fail "the instance is left although its disk is back"

echo "== and flyrecd is killed while it is away"
umount "$STATE/s"
unset 'MOUNTS[-1]'
rm -rf "${STATE:?}"
rm -f "$CONFIG"/sessions.d/*.conf
begin "$STATE/s" 200ms
flyrecd_start_stored
gone "$STATE/s" -f killed
flyrecd_stop
all_right "killed while its file system is away"
[ -z "$(find "$RUNTIME/away" -type f)" ] || fail "left in the runtime directory: $(find "$RUNTIME/away")"
umount "$STATE/s"
unset 'MOUNTS[-1]'

echo "== its log is lost, killed as well"
begin "$STATE/s" 1h
flyrecd_start_stored
gone "$STATE/s" '' killed
flyrecd_stop
missing_is_counted
umount "$STATE/s"
unset 'MOUNTS[-1]'

echo "== killed while it is away, and stopped then"
mkfs_mount xfs 400M "$STATE/s"
: >"$FLYRECD_LOG"
storage MaxUse=200M KeepFree=0 FlushSec=200ms SyncIntervalSec=200ms
flyrecd_start_stored
write_markers 10
xfs_io -x -c "shutdown -f" "$STATE/s"
write_markers 10
wait_for 40 log_has 'Closed all files below .*retrying' || fail "not let go of"
umount "$STATE/s"
unset 'MOUNTS[-1]'
flyrecd_kill
wait_for 20 fails_with "no longer mounted" || fail "status: $(failure)"
[ -d "$(instance s)" ] || fail "the instance is gone"
ctl stop s
[ ! -d "$(instance s)" ] || fail "the instance is left"
log_has 'data left in the ring buffer was discarded' || fail "not a word of what is lost"
flyrecd_stop

echo "== the whole state directory, killed as well"
rm -rf "${STATE:?}"
begin "$STATE" 200ms
flyrecd_start_stored
gone "$STATE" -f killed
flyrecd_stop
all_right "the whole state directory, killed while it is away"
[ ! -e "$RUNTIME/state-mounted" ] || fail "state-mounted is left in the runtime directory"
