#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 150
# tests: fast
#
# Unit= that matches nothing, or whose processes cannot be told, is said in status and log, and so is that
# they are there.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command unshare nsenter ps
need_event sched:sched_switch

CGROUPS=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$CGROUPS" ] || CGROUPS=$(awk '$3 == "cgroup" && $4 ~ /name=systemd/ { print $2; exit }' /proc/mounts)
[ -w "${CGROUPS:-/nonexistent}" ] || skip "no control groups that may be changed"
UNIT=${PREFIX}a.service OTHER=${PREFIX}b.service

unit_session() { # NAME [LINE...]
	session "$1" <<-EOF
		[Session]
		$(printf '%s\n' "${@:2}")
		[Trace]
		Event=sched:sched_switch
		Unit=$UNIT $OTHER
		[Storage]
		FlushSec=100ms
	EOF
}
unit_session rec
unit_session fl Mode=flight
flyrecd_start

trouble() { # SESSION
	ctl status | sed -n "s/^$1: trouble: //p"
}
says() { # SESSION TEXT
	[ "$(trouble "$1")" = "$2" ]
}
must_say() {
	wait_for 5 says "$@" || fail "status of $1: $(trouble "$1"), not: $2"
}
for s in rec fl; do
	must_say $s "Unit=$UNIT $OTHER: no process is there, nothing of it is traced"
	LOG_MARK=0
	logged_once "$s: Unit=$UNIT $OTHER: no process is there" || fail "log of $s: $(cat "$FLYRECD_LOG")"
done
ctl --json status rec | grep -q '"state":"recording"' || fail "rec does not record"

# --- one of the two runs
remove_groups() {
	rmdir "$CGROUPS/$UNIT" "$CGROUPS/$OTHER"
}
mkdir "$CGROUPS/$UNIT" "$CGROUPS/$OTHER"
at_end remove_groups
background sleep 600
one=$!
echo "$one" >"$CGROUPS/$UNIT/cgroup.procs"
for s in rec fl; do
	must_say $s "Unit=$OTHER: no process is there, nothing of it is traced"
	grep -qx "$one" "$(instance $s)/set_event_pid" || fail "$s does not trace $UNIT"
done

# --- both
background sleep 600
echo $! >"$CGROUPS/$OTHER/cgroup.procs"
for s in rec fl; do
	must_say $s ''
	must_log "$s: processes of each Unit= are traced"
done
flyrecd_stop

# --- in a PID namespace: the numbers there are not the kernel's
flyrecd_command
background unshare --pid --fork --kill-child=TERM --mount-proc "${FLYRECD_COMMAND[@]}" 2>>"$FLYRECD_LOG"
namespaced=$!
inside() {
	inner=$(ps -o pid= --ppid "$namespaced" | tr -d ' ') && [ -n "$inner" ]
}
wait_for 5 inside || fail "unshare starts nothing"
CHILDREN+=("$inner")
# It answers those alone whose pid it sees
trouble() { # SESSION
	nsenter --target "$inner" --pid --mount "$FLYRECCTL" "--runtime-dir=$RUNTIME" status |
		sed -n "s/^$1: trouble: //p"
}
wait_for 10 test -S "$RUNTIME/control" || fail "flyrecd does not start in a namespace"
wait_for 10 says rec "Unit=$UNIT $OTHER: flyrecd runs in a PID namespace and cannot tell the kernel which \
processes these are, nothing of it is traced" || fail "in a namespace: $(trouble rec)"
for s in rec fl; do
	[ "$(grep -cvxE '4194304|[0-9]*[^0-9].*' "$(instance $s)/set_event_pid")" = 0 ] ||
		fail "$s traces $(cat "$(instance $s)/set_event_pid")"
done
kill "$inner"
wait_for 10 ended "$namespaced" || fail "flyrecd in a namespace does not end"
