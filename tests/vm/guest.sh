# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Helpers of what runs in a virtual machine: those of tests/integration/lib.sh, for the flyrecd that
# the package has installed and systemd runs. A scenario is a script tests/vm/scenarios/NAME.sh:
#
#	#!/bin/bash
#	# What must hold, in a sentence or two.
#	# machines: debian12 debian13 backports
#	# time-limit: 60
#	. "$(dirname "$0")/../guest.sh"
#	session demo <<-EOF
#	[Trace]
#	Event=sched
#	EOF
#	flyrecd_start
#	…
#	flyrecd_stop
#
# Several run in one boot, one after the other; each finds a machine where flyrecd is not running,
# nothing is configured or recorded, and leaves it so.

export FLYREC_BUILD=/job/build FLYREC_RUN_ALL=1 FLYREC_TEST_PREFIX=flyrec.
export FLYREC_TEST_DIR=${FLYREC_TEST_DIR:-/var/tmp/vm-test}
mkdir -p "$FLYREC_TEST_DIR"
# shellcheck source=tests/integration/lib.sh
. /job/tests/integration/lib.sh
# Whoever asks all the time takes the emulated processor from what is waited for; also by starting sleep(1)
WAIT_PAUSE=0.2
exec {NOTHING_COMES}<> <(:)
pause() {
	read -rt "$1" -u "$NOTHING_COMES" || :
}

CONFIG=/etc/flyrec STATE=/var/lib/flyrec RUNTIME=/run/flyrec
FLYRECD=/usr/sbin/flyrecd
# shellcheck disable=SC2034 # for the scenarios
FLYRECCTL=/usr/bin/flyrecctl
# shellcheck disable=SC2034 # for the scenarios
DATA_DISK=/dev/disk/by-id/virtio-data
# short: the kernel cuts names of tasks after 15 characters
# shellcheck disable=SC2034 # for the scenarios
LOAD_NAME=ld-vm LOAD_FILTER='comm == "ld-vm"'

property() { # NAME
	systemctl show --property="$1" --value flyrecd
}

is_active() {
	[ "$(property ActiveState)" = active ]
}

# Another process than the one before, as soon as systemd's child has become flyrecd: its pid is in
# STARTED_PID. Asking systemd takes a tenth of a second here.
is_started() {
	local name
	while read -r STARTED_PID; do
		if read -r name <"/proc/$STARTED_PID/comm" && [ "$name" = flyrecd ] &&
			[ "$STARTED_PID" != "$FLYRECD_PID" ]; then
			return
		fi
	done </sys/fs/cgroup/system.slice/flyrecd.service/cgroup.procs
	return 1
} 2>/dev/null

is_another_process() {
	is_started && is_active
}

# flyrecd_start [failing]: fails if a session does, unless that is meant
flyrecd_start() {
	log_mark
	systemctl start flyrecd || fail "flyrecd does not start: $(flyrecd_log | tail -n 5)"
	FLYRECD_PID=$(property MainPID)
	[ "${1:-}" = failing ] || ! logged 'session failed' || fail "$(flyrecd_log | grep 'session failed')"
}

flyrecd_restarted() {
	wait_for 60 is_another_process || fail "flyrecd was not restarted: $(flyrecd_log | tail -n 5)"
	FLYRECD_PID=$STARTED_PID
}

flyrecd_kill() {
	kill -KILL "$FLYRECD_PID"
	flyrecd_restarted
}

flyrecd_hand_over() {
	systemctl restart flyrecd || fail "restart: $(flyrecd_log | tail -n 5)"
	FLYRECD_PID=$(property MainPID)
}

flyrecd_stop() {
	systemctl stop flyrecd
	[ "$(property Result)" = success ] || fail "flyrecd ended with $(property Result): $(flyrecd_log | tail -n 5)"
}

# flyrecd_log: what flyrecd has logged since the last log_mark
flyrecd_log() {
	journalctl --sync
	journalctl --quiet --output=cat --unit=flyrecd "--after-cursor=${LOG_CURSOR:?}"
}

log_mark() {
	journalctl --sync
	LOG_CURSOR=$(journalctl --quiet --lines=1 --show-cursor | sed -n 's/^-- cursor: //p')
}
log_mark

loss_is_said() {
	flyrecd_log | grep -q 'events were lost\|overwritten'
}

logged() { # TEXT
	flyrecd_log | grep -q -e "$1"
}

logged_once() { # TEXT
	[ "$(flyrecd_log | grep -c -e "$1")" = 1 ]
}

must_log() { # TEXT [SECONDS]
	wait_for "${2:-20}" logged "$1" || fail "not in the log: $1: $(flyrecd_log | tail -n 5)"
}

# with what flyrecd has said
fail() {
	flyrecd_log | tail -n 20 >&2
	echo "FAIL: $*" >&2
	exit 1
}

process_status() { # FIELD: of the daemon, in kB or a number
	sed -n "s/^$1:[[:space:]]*\([0-9]*\).*/\1/p" "/proc/$FLYRECD_PID/status"
}

# process_memory: what it has that is in no file, in kB; not from status, which is up to 256 kB off for
# each thread before Linux 6.2
process_memory() {
	awk '/^(Anonymous|Pss_Shmem):/ { kb += $2 } END { print kb }' "/proc/$FLYRECD_PID/smaps_rollup"
}

# held WHEN: what may not grow, by name
held() {
	local open=("/proc/$FLYRECD_PID/fd/"*) kernel=("$TRACEFS/instances/"*)
	FDS=${#open[@]} THREADS=$(process_status Threads) INSTANCES=${#kernel[@]}
	STORE=$(property NFileDescriptorStore) MEMORY=$(process_memory)
	echo "$1: $FDS files, $STORE in the store, $THREADS threads, $INSTANCES instances," \
		"$MEMORY kB of memory"
}

# held_keep: as it is to stay; held_check: no more than then
held_keep() {
	HELD_FDS=$FDS HELD_STORE=$STORE HELD_THREADS=$THREADS HELD_INSTANCES=$INSTANCES HELD_MEMORY=$MEMORY
}
held_check() {
	[ "$FDS" -le "$HELD_FDS" ] || fail "$FDS files are open, not $HELD_FDS: $(ls -l "/proc/$FLYRECD_PID/fd/")"
	[ "$STORE" -le "$HELD_STORE" ] || fail "$STORE files are in the store, not $HELD_STORE"
	[ "$THREADS" -le "$HELD_THREADS" ] || fail "$THREADS threads, not $HELD_THREADS"
	[ "$INSTANCES" -le "$HELD_INSTANCES" ] || fail "$INSTANCES instances, not $HELD_INSTANCES"
	# What threads have had stays with malloc()
	[ "$MEMORY" -le $((HELD_MEMORY + HELD_MEMORY / 8)) ] || fail "$MEMORY kB of memory, not $HELD_MEMORY"
}

# drop_in NAME: one for flyrecd.service, from standard input, until the end of the scenario
drop_in() {
	mkdir -p /run/systemd/system/flyrecd.service.d
	cat >"/run/systemd/system/flyrecd.service.d/$1.conf"
	systemctl daemon-reload
}

# say WORD...: on the console, for who drives the machine from outside
say() {
	echo "VM: $*" >/dev/console
}

# reset: what every scenario finds
reset() {
	systemctl stop flyrecd.socket flyrecd.service 2>/dev/null
	systemctl reset-failed
	rm -rf "${STATE:?}"/* "${CONFIG:?}"/sessions.d/* "$CONFIG"/flyrecd.conf*
	[ -d /run/systemd/system/flyrecd.service.d ] || return 0
	rm -rf /run/systemd/system/flyrecd.service.d
	systemctl daemon-reload
}

# run_scenarios NAME...: each with a line on the console and a log in /job/out
run_scenarios() {
	local name limit status begin word why left
	systemctl disable --quiet flyrecd
	for name in "$@"; do
		reset
		begin=${EPOCHREALTIME/./} status=0 word=PASS why=''
		limit=$(sed -n 's/^# time-limit: \([0-9]*\)$/\1/p;12q' "/job/tests/vm/scenarios/$name.sh")
		limit=${limit:-60}
		[ -z "${LONG:-}" ] || limit=$((limit * 12)) # of ten times as much
		limit=$((limit + ${MINUTES:-0} * 120))
		FLYREC_TEST_DIR=/var/tmp/vm-$name timeout --kill-after=30 "$limit" \
			bash "/job/tests/vm/scenarios/$name.sh" >"/job/out/$name.log" 2>&1 </dev/null ||
			status=$?
		systemctl stop flyrecd
		left=$(env --unset=FLYREC_TEST_PREFIX /job/tests/integration/leftovers --remove "/var/tmp/vm-$name" flyrec.)
		rm -rf --one-file-system "/var/tmp/vm-$name"
		why=$(sed -n 's/^\(FAIL\|SKIP\): //p' "/job/out/$name.log" | tail -n 1)
		case $status in
		0)
			why=${left:+"left behind: ${left//$'\n'/, }"}
			[ -z "$left" ] || word=FAIL
			;;
		77) word=SKIP ;;
		124 | 137) word=FAIL why="not done after $limit s" ;;
		*) word=FAIL why=${why:-status $status} ;;
		esac
		begin=$(((${EPOCHREALTIME/./} - begin) / 100000))
		say "$word $name $((begin / 10)).$((begin % 10)) $why"
	done
}
