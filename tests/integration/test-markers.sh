#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# may-fail: a disk that stands still for longer than the ring buffers last costs events
# time-limit: 180
#
# Numbered markers written on every CPU under load come out exactly once and in order: over reload,
# rotation, hand-over, and SIGKILL with the fds kept by a service manager.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_tool check-markers

state_on ext4 12G
RATE=20000

load() {
	session load <<-EOF
		[Trace]
		Event=raw_syscalls:sys_enter
		Event=raw_syscalls:sys_exit
		BufferSize=${2:-64M}
		[Storage]
		FlushSec=500ms
		MaxFileSize=$1
		MaxUse=20G
	EOF
}

# other: the same session, so that reload has something to do beside it
other() {
	session other <<-EOF
		[Session]
		Description=$1
		[Trace]
		Event=sched:sched_switch
		BufferSize=$2
	EOF
}

begin() {
	"$TOOLS/markers" "--instance=${PREFIX}load" "--rate=$RATE" >"$T/expect" &
	MARKERS=$!
	CHILDREN+=("$MARKERS")
	# so that ring buffers last while the next process starts on a busy machine, too
	background "$TOOLS/storm" --duration=120 --rate=100000 >/dev/null
	STORM=$!
	sleep 0.5
}

end() {
	kill -TERM "$MARKERS"
	wait "$MARKERS"
	kill -TERM "$STORM"
	wait "$STORM" || true
	flyrecd_stop
	verify "$STATE/load/record"
	markers_check load
	local damaged=("$STATE"/*/record/*damaged)
	[ ${#damaged[@]} = 0 ] || fail "damaged files: ${damaged[*]}"
	[ -n "${KEEP:-}" ] || rm -rf "$STATE"
}

load 1G
other a 1M
flyrecd_start
begin
for i in 1 2 3 4 5; do
	other "b$i" "${i}M"
	[ "$i" = 3 ] && load 2G
	kill -HUP "$FLYRECD_PID"
	sleep 0.5
done
end "reload"

flyrecd_start
begin
for i in 1 2 3 4 5 6 7 8 9 10; do
	kill -USR2 "$FLYRECD_PID"
	sleep 0.3
done
end "rotation"

load 1G 128M
flyrecd_start
begin
for i in 1 2 3; do
	flyrecd_hand_over
	flyrecd_start
	sleep 0.5
done
end "hand-over"

flyrecd_start_stored
begin
for i in 1 2 3 4 5 6 7 8; do
	flyrecd_kill
	sleep "0.$((RANDOM % 6 + 2))"
done
end "SIGKILL with stored fds"
