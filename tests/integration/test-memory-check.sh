#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 150
# tests: fast
#
# flyrecd warns, at its start and in a reload, when snapshots of the flight sessions may take more
# than the memory.max of its control group; else, without a limit, and where none is known, it says
# nothing. The control group is a directory of this test's, in a mount namespace.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command unshare
need_event sched:sched_process_exec
grep -q '^0::/' /proc/self/cgroup || skip "no unified control groups"
GROUP=$T/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
WARNING='snapshots of all flight sessions at once may take'

cat >"$T/flyrecd-here" <<-EOF
	#!/bin/sh
	mount --bind "$T/cgroup" /sys/fs/cgroup && exec "$FLYRECD" "\$@"
EOF
cat >"$T/flyrecd-private" <<-EOF
	#!/bin/sh
	exec unshare --mount --propagation=slave "$T/flyrecd-here" "\$@"
EOF
chmod +x "$T/flyrecd-here" "$T/flyrecd-private"
FLYRECD=$T/flyrecd-private

flight() { # NAME MEMORY
	session "$1" <<-EOF
		[Session]
		Mode=flight
		[Trace]
		Event=sched:sched_process_exec
		BufferSize=8M
		[Snapshot]
		Memory=$2
	EOF
}

reload() {
	log_mark
	ctl reload
	must_log 'configuration reloaded'
}

mkdir -p "$GROUP"
echo $((12 << 20)) >"$GROUP/memory.max"
flight one 6M
flight two 6M
flyrecd_start
! logged "$WARNING" || fail "warns without a reason"
flight two 7M
reload
must_log "$WARNING 13 MiB of memory, but flyrecd is killed beyond 12 MiB"
flyrecd_stop
log_mark
flyrecd_start
must_log "$WARNING 13 MiB"
echo max >"$GROUP/memory.max"
reload
! logged "$WARNING" || fail "warns without a limit"
rm "$GROUP/memory.max"
reload
! logged "$WARNING" || fail "warns where no limit is known"
flyrecd_stop

echo "== a state directory in memory"
rm "$CONFIG"/sessions.d/*.conf
mount -t tmpfs -o size=64M,mode=0750 tmpfs "$STATE"
MOUNTS+=("$STATE")
echo $((12 << 20)) >"$GROUP/memory.max"
record() { # MAX-USE
	session record <<-EOF
		[Trace]
		Event=sched:sched_process_exec
		[Storage]
		MaxUse=$1
		KeepFree=0
	EOF
}
record 13M
log_mark
flyrecd_start
must_log 'the state directory is in memory (tmpfs), and sessions may keep 13 MiB there, but flyrecd is killed beyond 12 MiB'
record 12M
reload
! logged 'in memory (tmpfs)' || fail "warns without a reason"
flyrecd_stop
