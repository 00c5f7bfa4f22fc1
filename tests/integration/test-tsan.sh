#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 180
# tests: all
#
# flyrecd built with ThreadSanitizer, through all that its main loop does while jobs and workers run:
# rotations, syncs, snapshots of both modes and together, tail, reload, pause, stop, start, hand-over,
# with clients that ask for counters all the time. A report of ThreadSanitizer fails the test.
#
# FLYREC_TSAN: the build directory, else build-tsan, which must be there
. "$(dirname "$0")/lib.sh"
need_tracefs
need_event sched:sched_switch sched:sched_wakeup irq:softirq_entry

TSAN=${FLYREC_TSAN:-$SRC/build-tsan}
[ -n "${FLYREC_TSAN:-}" ] || [ -x "$TSAN/flyrecd" ] ||
	skip "needs scripts/build build-tsan --enable-sanitizers=thread"
grep -q -- '-fsanitize=thread' "$TSAN/Makefile" || fail "$TSAN is not built with ThreadSanitizer"
FLYRECD=$TSAN/flyrecd
export TSAN_OPTIONS="log_path=$T/tsan exitcode=66 second_deadlock_stack=1"

# reports: what ThreadSanitizer has written; a race seen once is one, whatever the next run says
no_report() {
	local files=("$T"/tsan.*)
	[ ${#files[@]} = 0 ] ||
		fail "wrong data: $(grep -c '^WARNING: ThreadSanitizer' "${files[@]}") reports of ThreadSanitizer:
$(cat "${files[@]}")"
}

# It finds a race where there is one, and tells by the file and the status
cat >"$T/race.c" <<-'EOF'
	#include <pthread.h>
	static int n;
	static void *add(void *p) { n++; return p; }
	int main(void)
	{
		pthread_t t;
		pthread_create(&t, 0, add, 0);
		n++;
		return pthread_join(t, 0);
	}
EOF
"$(sed -n 's/^CC = \([^ ]*\).*/\1/p' "$TSAN/Makefile")" -g -fsanitize=thread -pthread -o "$T/race" "$T/race.c"
if "$T/race"; then fail "ThreadSanitizer does not see a race"; fi
[ -n "$(cat "$T"/tsan.*)" ] || fail "ThreadSanitizer does not write to $T"
rm "$T"/tsan.*

# ThreadSanitizer does not follow a fork of one of many threads
ANALYZE=Analyze=no

record() { # NAME MAXFILESIZE
	session "$1" <<-EOF
		[Trace]
		Event=sched:sched_switch
		Clock=mono
		BufferSize=1M
		[Storage]
		MaxFileSize=$2
		FlushSec=100ms
		SyncIntervalSec=500ms
		MaxUse=64M
		[Snapshot]
		OnEvent=sched:sched_process_exit if pid == 99999999
		Burst=0
		$ANALYZE
	EOF
}
record rec 2M
record other 4M
for name in f g; do
	session "$name" <<-EOF
		[Session]
		Mode=flight
		[Trace]
		Event=sched
		Clock=mono
		BufferSize=512K
		[Storage]
		FlushSec=100ms
		[Snapshot]
		OnEvent=sched:sched_process_exit if pid == 99999999
		Burst=0
		$ANALYZE
		MaxFiles=5
		$([ "$name" = f ] || echo Method=drain)
	EOF
done
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$T/no-bus
flyrecd_start

# Clients that ask for everything, all the time
# shellcheck disable=SC2016 # for the inner shell
background bash -c 'trap "exit 0" TERM
	while :; do "$@" stats; "$@" status; "$@" list; sleep 0.05; done >/dev/null 2>&1' \
	- "$FLYRECCTL" "--runtime-dir=$RUNTIME"
background "$FLYRECCTL" "--runtime-dir=$RUNTIME" tail -f rec >"$T/tail"
load_bursts 0.1 0.3

# What is asked for while the one before is still being written down
# shellcheck disable=SC2016 # for the inner shell
background bash -c 'trap "exit 0" TERM
	while :; do for s in rec f; do "$@" pause $s; "$@" resume $s; done; sleep 0.05; done >/dev/null 2>&1' \
	- "$FLYRECCTL" "--runtime-dir=$RUNTIME"
PAUSES=$!

snapshots_of() { # SESSION
	local files=("$STATE/$1"/snapshot/2*.dat)
	echo "${#files[@]}"
}

ctl rotate rec >/dev/null
ctl snapshot f >/dev/null
ctl snapshot g >/dev/null
ctl snapshot rec --last=2s >/dev/null
ctl snapshot --together f rec >/dev/null
kill -USR2 "$FLYRECD_PID"
ctl event-enable rec irq:softirq_entry
ctl event-disable rec irq:softirq_entry
record other 5M
ctl reload >/dev/null
ctl stop other
ctl start other
no_report
[ "$(snapshots_of f)" = 2 ] || fail "f has $(snapshots_of f) snapshots"
[ -s "$T/tail" ] || fail "nothing was followed"
load_stop
kill "$PAUSES"
wait_for 5 ended "$PAUSES" || fail "the client that pauses does not end"
flyrecd_hand_over
no_report
flyrecd_start
ctl rotate rec >/dev/null
flyrecd_stop
no_report
verify "$STATE"/*/record "$STATE"/*/snapshot
