#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
#
# SIGKILL with data in the pipes, which the service manager keeps. When the next start cannot go on, for
# a reason that has nothing to do with the disk, they are kept until it can: also over another SIGKILL.
# Where it has kept those of some CPUs only, the log and the file say what the others may have lost.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
need_command prlimit trace-cmd
need_tool check-markers
need_event oom:mark_victim
EVENT=oom:mark_victim # of which there are none: markers only

state_on ext4 1G

# drained: events that were taken out of the ring buffers of the first two CPUs, a line each
drained() {
	sed -n 's/^read events: //p' "$(instance s)"/per_cpu/cpu[01]/stats
}

is_still() {
	local before
	before=$(drained)
	sleep 0.5
	[ "$(drained)" = "$before" ]
}

# fill_pipes: what is drained from now on stays in the pipes: flyrecd may not write to the file. Once one
# CPU's data could not be written the others' is left where it is: it is tried again until both have some,
# and more than what fits into the one sub-buffer that is kept elsewhere while it is not full.
fill_pipes() {
	local try before
	for try in 1 2 3 4 5; do
		write_markers 1000
		wait_for 10 is_still || fail "there is no end to what is drained"
		log_mark
		prlimit --pid "$FLYRECD_PID" --fsize=4096:
		before=$(drained)
		write_markers 10000
		must_log "s: cannot write to .*File too large"
		sleep 0.5
		paste <(echo "$before") <(drained) | awk '$2 - $1 <= 120 { few = 1 } END { exit few }' && return 0
		echo "not all pipes have some, try $try"
		prlimit --pid "$FLYRECD_PID" --fsize=unlimited:
		must_log "s: writing again"
	done
	fail "not all pipes have some"
}

may_be_lost() {
	grep 'may be lost' "$FLYRECD_LOG"
}

event_is_missing() {
	printf '[Snapshot]\nOnEvent=nosuch:event\n' >>"$CONFIG/sessions.d/s.conf"
}

event_is_right() {
	storage FlushSec=200ms
}

# After the fds have been taken
file_is_immutable() {
	chattr +i "$(REC)/current.dat"
}

file_is_right() {
	chattr -i "$(REC)/current.dat"
}

# Before it is known that there is an instance
directory_is_elsewhere() {
	mv "$STATE/s" "$T/ext4/elsewhere"
	ln -s ../elsewhere "$STATE/s"
}

directory_is_right() {
	rm "$STATE/s"
	mv "$T/ext4/elsewhere" "$STATE/s"
}

begin_with_full_pipes() {
	forget
	event_is_right
	: >"$FLYRECD_LOG"
	log_mark
	flyrecd_start_stored
	fill_pipes
}

for what in event directory file; do
	case $what in
	event) wrong=event_is_missing ;;
	directory) wrong=directory_is_elsewhere ;;
	file) wrong=file_is_immutable ;;
	esac
	echo "== the next start fails: $wrong"
	begin_with_full_pipes
	$wrong
	log_mark
	flyrecd_kill
	must_log "s: session failed: "
	flyrecd_kill
	! grep '^removed' "$T/manager/log" || fail "out of the store although the instance goes on"
	"${what}_is_right"
	kill -HUP "$FLYRECD_PID"
	must_log "s: continuing record/current.dat"
	must_log "s: going on with [1-9][0-9]* bytes that the earlier process had in hand"
	must_log "s: recording"
	flyrecd_stop
	! may_be_lost || fail "something may be lost"
	all_right "$wrong"
done

# lost_of_cpu N: as CPUSTAT has it
lost_of_cpu() {
	cpustat "$(echo "$(REC)"/2*.dat)" 'flyrec maybe lost in a kill bytes' | awk -v cpu="$1" '$1 == cpu { print $2 }'
}

# only_cpu_1_may_lack: and as much as was said
only_cpu_1_may_lack() {
	local said all missing
	must_log "s: the earlier process was killed, and no service manager kept its pipes of CPU $others: up to [1-9][0-9]* bytes"
	must_log "s: recording"
	flyrecd_stop
	said=$(may_be_lost | sed 's/.*: up to \([0-9]*\) bytes.*/\1/')
	[ "$(lost_of_cpu 0)" = 0 ] || fail "CPUSTAT of CPU 0: $(lost_of_cpu 0)"
	[ "$(lost_of_cpu 1)" = "$said" ] || fail "CPUSTAT of CPU 1: $(lost_of_cpu 1), the log: $said"
	all_right "$1" "--max-lost=$((said / 40))"
	missing=$(sed -n 's/^cpu=0 .* lost=\([0-9]*\).*/\1/p' "$T/check")
	all=$(sed -n 's/^cpu=1 .* lost=\([0-9]*\).*/\1/p' "$T/check")
	[ "$missing" = 0 ] || fail "CPU 0 lacks $missing markers"
	[ "$all" -gt 0 ] || fail "CPU 1 lacks nothing: a poor test"
}

cpus=$(sed 's/.*-//' /sys/devices/system/cpu/possible)
[ "$cpus" -ge 1 ] || skip "one CPU only"

echo "== one CPU's pipe is not in the store"
begin_with_full_pipes
log_mark
echo "drop s.cpu1.pipe" >"$T/manager/control"
flyrecd_kill
others=1
only_cpu_1_may_lack "a pipe lost"

echo "== the store has no room for a second CPU's"
forget
: >"$FLYRECD_LOG"
log_mark
STORE_MAX=3 flyrecd_start_stored
logged_once "file descriptor store has room for 3, which is too few: .* session s " || fail "says nothing"
fill_pipes
log_mark
flyrecd_kill
! grep '^full' "$T/manager/log" || fail "more than it takes"
others=1
[ "$cpus" = 1 ] || others=1-$cpus
only_cpu_1_may_lack "no room"

echo "== the service manager is busy when the instance goes"
forget
: >"$FLYRECD_LOG"
log_mark
flyrecd_start_stored
kill -STOP "$FLYRECD_MANAGER"
background sh -c "sleep 1; kill -CONT $FLYRECD_MANAGER"
ctl stop s
[ ! -d "$(instance s)" ] || fail "the instance is left"
! logged 'cannot remove' || fail "$(cat "$FLYRECD_LOG")"
flyrecd_stop
