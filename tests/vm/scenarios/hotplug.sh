#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A CPU goes and comes twenty times, and a module with its events, while sessions record and are in
# flight: no gap on the other CPU, what the CPU that went had traced is kept; events and symbols of the
# module are in the segments, and decode.
# machines: debian13
# also: debian12
# time-limit: 240
. "$(dirname "$0")/../guest.sh"
times=20
[ -z "${LONG:-}" ] || times=500
online=/sys/devices/system/cpu/cpu1/online
cpu_back() {
	echo 1 >$online
}
at_end cpu_back

session plug <<-EOF
	[Trace]
	Event=sched:sched_process_exec
	BufferSize=256K
	[Storage]
	FlushSec=500ms
EOF
for method in auto drain; do
	session $method <<-EOF
		[Session]
		Mode=flight
		[Trace]
		Event=sched:sched_process_exec
		BufferSize=256K
		[Snapshot]
		Method=$method
	EOF
done
! grep -q '^xfs ' /proc/modules || modprobe --remove xfs || fail "xfs is loaded already"
flyrecd_start

# mark TEXT: in each session, from CPU 1
mark() {
	local s
	for s in plug auto drain; do
		# shellcheck disable=SC2016 # for the inner shell
		taskset -c 1 sh -c 'echo "$1" >"$2/trace_marker"' sh "$1" "$(instance $s)"
	done
}

markers_start plug 200 --cpus=0
background "$TOOLS/markers" "--instance=${PREFIX}auto" --cpus=0 --rate=100 >"$T/expect.auto"
auto_markers=$!
for i in $(seq 1 $times); do
	mark "went $i"
	echo 0 >$online
	if [ "$i" = 13 ]; then
		auto=$("$FLYRECCTL" snapshot auto)
		drain=$("$FLYRECCTL" snapshot drain)
	fi
	echo 1 >$online
done
kill -TERM $auto_markers
wait $auto_markers || fail "markers: $(cat "$T/expect.auto")"
last=$("$FLYRECCTL" snapshot auto)

# The module comes, and its events are asked for
mkfs_mount xfs 400M "$T/xfs"
"$FLYRECCTL" event-enable plug xfs:xfs_file_fsync
dd if=/dev/zero of="$T/xfs/file" bs=64k count=1 conv=fsync status=none
"$FLYRECCTL" event-enable plug xfs:xfs_create
touch "$T/xfs/new"
umount "$T/xfs"
losetup --detach "${LOOPS[0]}"
MOUNTS=() LOOPS=()
markers_stop
"$FLYRECCTL" rotate plug # until it is in a file
# and goes, with its events enabled; then the kernel empties the ring buffers
wait_for 10 modprobe -r xfs || fail "the module is held"
must_log 'the event xfs:xfs_file_fsync has gone'
mark afterwards
"$FLYRECCTL" --json status plug | jq -e '.sessions[0].state == "recording"' >/dev/null || fail "not recording"
flyrecd_stop
[ "$(flyrecd_log | grep -c xfs_file_fsync)" = 1 ] || fail "more than once: $(flyrecd_log | grep xfs_file_fsync)"

markers_check plug
verify "$STATE/plug" "$auto" "$drain" "$last"
markers_are "in flight" --expect="$T/expect.auto" "$last"

went() { # NUMBER FILE...: what CPU 1 had traced by then
	local n=$1 file
	shift
	for file; do
		trace-cmd report --cpu 1 "$file" 2>/dev/null
	done >"$T/cpu1"
	[ "$(grep -c ' print: .*went [0-9]' "$T/cpu1")" = "$n" ] ||
		fail "wrong data: $(grep -c ' print: .*went [0-9]' "$T/cpu1") marks of CPU 1, not $n: $*"
}

went $times "$STATE"/plug/record/2*.dat
went 13 "$auto"
went 13 "$drain"
[ -n "${LONG:-}" ] || went $times "$last"
for file in "$STATE"/plug/record/2*.dat; do
	trace-cmd report "$file"
done >"$T/report" 2>"$T/errors"
[ ! -s "$T/errors" ] || fail "trace-cmd report: $(cat "$T/errors")"
grep -q ' print: .*afterwards' "$T/report" || fail "nothing was recorded after the module had gone"
grep -q 'xfs_file_fsync: *dev .* ino ' "$T/report" || fail "xfs_file_fsync: $(grep -m 1 xfs "$T/report")"
grep -q 'xfs_create: *dev .* dp ino ' "$T/report" || fail "xfs_create: $(grep -m 1 xfs_create "$T/report")"
cat "$STATE"/plug/record/2*.dat | grep -aq '\[xfs\]$' || fail "no symbols of the module"
