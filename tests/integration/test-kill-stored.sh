#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 400
#
# SIGKILL with data in the pipes, which the service manager keeps. When the next start cannot go on, for
# a reason that has nothing to do with the disk, they are kept until it can: also over another SIGKILL.
# Where it has kept some of them only, the log and the file say which CPUs may have lost something.
# CPUs that share a pipe, and a next start with more or fewer of them. With Drain=read as well, where the
# data is in memory instead.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
need_command prlimit trace-cmd
need_tool check-markers
need_event oom:mark_victim
EVENT=oom:mark_victim # of which there are none: markers only
BUFFER=$'8M\nBufferPercent=2' # a wake-up after 160 KiB

state_on ext4 1G

# workers N: of the next start; each has a pipe, and with many of them so has each CPU
workers() {
	rm -f "$CONFIG/flyrecd.conf"
	echo "Workers=$1" | daemon_config
}
workers 256

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

# fill_pipes N: what is drained from now on stays in the pipes: flyrecd may not write to the file. Once one
# CPU's data could not be written the others' is left where it is: it is tried again until N of the two have
# some, and more than what fits into the one sub-buffer that is kept elsewhere while it is not full.
fill_pipes() {
	local try
	for try in 1 2 3 4 5; do
		write_markers 1000
		wait_for 10 is_still || fail "there is no end to what is drained"
		log_mark
		prlimit --pid "$FLYRECD_PID" --fsize=4096:
		before=$(drained)
		write_markers 10000
		must_log "s: cannot write to .*File too large"
		sleep 0.5
		[ "$(in_pipes | wc -l)" -lt "$1" ] || return 0
		echo "not all pipes have some, try $try"
		prlimit --pid "$FLYRECD_PID" --fsize=unlimited:
		must_log "s: writing again"
	done
	fail "not all pipes have some"
}

# in_pipes: the CPUs that have some there, a line each
in_pipes() {
	paste <(echo "$before") <(drained) | awk '$2 - $1 > 120 { print NR - 1 }'
}

may_be_lost() {
	grep 'may be lost' "$FLYRECD_LOG"
}

event_is_missing() {
	printf '[Snapshot]\nOnEvent=nosuch:event\n' >>"$CONFIG/sessions.d/s.conf"
}

event_is_right() {
	storage FlushSec=200ms "Drain=$drain"
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

begin() { # N: as fill_pipes
	forget
	event_is_right
	: >"$FLYRECD_LOG"
	log_mark
	flyrecd_start_stored
	fill_pipes "$1"
}

# goes_on WHAT: with what was in the pipes; nothing is lost
goes_on() {
	must_log "s: continuing record/current.dat"
	must_log "s: going on with [1-9][0-9]* bytes that the earlier process had in hand"
	must_log "s: recording"
	flyrecd_stop
	! may_be_lost || fail "something may be lost"
	all_right "$1"
}

for drain in splice read; do
	for what in event directory file; do
		case $what in
		event) wrong=event_is_missing ;;
		directory) wrong=directory_is_elsewhere ;;
		file) wrong=file_is_immutable ;;
		esac
		echo "== Drain=$drain: the next start fails: $wrong"
		begin 2
		$wrong
		log_mark
		flyrecd_kill
		must_log "s: session failed: "
		flyrecd_kill
		! grep '^removed' "$T/manager/log" || fail "out of the store although the instance goes on"
		"${what}_is_right"
		kill -HUP "$FLYRECD_PID"
		goes_on "$wrong"
	done
done

# lost_of_cpu N: as CPUSTAT has it
lost_of_cpu() {
	cpustat "$(echo "$(REC)"/2*.dat)" 'flyrec maybe lost in a kill bytes' | awk -v cpu="$1" '$1 == cpu { print $2 }'
}

# only_one_may_lack WHAT CPU: and as much as was said
only_one_may_lack() {
	local said lacks have
	must_log "s: the earlier process was killed, and no service manager kept its pipes of CPU $2: up to [1-9][0-9]* bytes"
	must_log "s: recording"
	flyrecd_stop
	said=$(may_be_lost | sed 's/.*: up to \([0-9]*\) bytes.*/\1/p;d')
	[ "$(lost_of_cpu $((1 - $2)))" = 0 ] || fail "CPUSTAT of the other CPU: $(lost_of_cpu $((1 - $2)))"
	[ "$(lost_of_cpu "$2")" = "$said" ] || fail "CPUSTAT of CPU $2: $(lost_of_cpu "$2"), the log: $said"
	all_right "$1" "--max-lost=$((said / 40))"
	have=$(sed -n "s/^cpu=$((1 - $2)) .* lost=\([0-9]*\).*/\1/p" "$T/check")
	lacks=$(sed -n "s/^cpu=$2 .* lost=\([0-9]*\).*/\1/p" "$T/check")
	[ "$have" = 0 ] || fail "the other CPU lacks $have markers"
	[ "$lacks" -gt 0 ] || fail "CPU $2 lacks nothing: a poor test"
}

# out_of_store NAME: flyrecd does not know. It is gone before the next start gets what there is.
out_of_store() {
	echo "drop $1" >"$T/manager/control"
	wait_for 5 grep -qx "removed $1" "$T/manager/log" || fail "$1 is not in the store"
}

cpus=$(sed 's/.*-//' /sys/devices/system/cpu/possible)
[ "$cpus" -ge 1 ] || skip "one CPU only"
drain='splice'

echo "== one CPU's pipe is not in the store"
begin 2
log_mark
out_of_store s.worker1.pipe
flyrecd_kill
only_one_may_lack "a pipe lost" 1

echo "== the store has no room for a second CPU's"
forget
: >"$FLYRECD_LOG"
log_mark
STORE_MAX=4 flyrecd_start_stored # also slots, notes and a trace fd
logged_once "file descriptor store has room for 4, which is too few: .* session s " || fail "says nothing"
fill_pipes 2
log_mark
flyrecd_kill
! grep '^full' "$T/manager/log" || fail "more than it takes"
only_one_may_lack "no room" 1

for drain in splice read; do
	echo "== Drain=$drain: the disk does not take one CPU's data, for which all wait, and then does"
	workers 1
	begin 1
	prlimit --pid "$FLYRECD_PID" --fsize=unlimited:
	must_log "s: writing again"
	flyrecd_stop
	all_right "writing again"

	echo "== Drain=$drain: SIGKILL then, and as many workers, or more"
	for n in 1 256; do
		workers 1
		begin 1
		workers "$n"
		log_mark
		flyrecd_kill
		goes_on "one worker, $n then"
	done

	echo "== Drain=$drain: SIGKILL with a worker a CPU, and one then, which is killed, too"
	workers 256
	begin 2
	workers 1
	log_mark
	flyrecd_kill
	must_log "s: recording"
	write_markers 5000
	flyrecd_kill
	must_log "s: recording"
	goes_on "fewer workers"

	echo "== Drain=$drain: SIGKILL at any moment, with another way the next time"
	for ways in "$drain" "splice read"; do
		forget
		: >"$FLYRECD_LOG"
		event_is_right
		flyrecd_start_stored
		markers_begin --rate=200000
		for n in 1 2 3 4 5; do
			for drain_next in $ways; do
				storage FlushSec=200ms "Drain=$drain_next"
				sleep "0.$((RANDOM % 5 + 2))"
				flyrecd_kill
			done
		done
		markers_end
		flyrecd_stop
		! may_be_lost || fail "something may be lost"
		all_right "at any moment, $ways"
	done
done

echo "== the memory of both pipes is there, the pipes are not"
drain='read'
workers 256
begin 2
log_mark
out_of_store s.worker0.pipe
out_of_store s.worker1.pipe
flyrecd_kill
flyrecd_stop
all_right "without pipes" --max-lost=$(($(may_be_lost | wc -l) * 2097152 / 40))

drain='splice'
echo "== and that is not in the store"
workers 1
begin 1
held=$(in_pipes)
[ "$held" = 0 ] || [ "$held" = 1 ] || fail "not one CPU has its data in the pipe: $held"
log_mark
out_of_store s.worker0.pipe
flyrecd_kill
only_one_may_lack "the pipe lost" "$held"

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
