#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# flyrecctl trigger: a program has a moment kept as a trigger of the configuration does, with a limit
# of its own, and the file says why.
# time-limit: 60
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/control-lib.sh"
need_tracefs
need_command jq trace-cmd setpriv unshare
need_event sched:sched_process_fork

session demo <<-EOF
	[Trace]
	Event=sched:sched_process_fork
	[Storage]
	FlushSec=300ms
	[Snapshot]
	Burst=2
	IntervalSec=1h
	PostSec=1s
EOF
has_snapshots() { # NUMBER
	SNAPSHOTS=("$STATE"/demo/snapshot/*-control.dat)
	[ ${#SNAPSHOTS[@]} -ge "$1" ]
}
counts() { # of the trigger, "FIRED SUPPRESSED"
	ctl --json status demo |
		jq -r '.sessions[0].triggers[] | select(.kind == "control") | "\(.fired) \(.suppressed)"'
}

flyrecd_start
/bin/true
ctl trigger demo "the p99 is bad" || fail "trigger"
! has_snapshots 1 || fail "not after PostSec="
wait_for 10 has_snapshots 1 || fail "no snapshot"
trace-cmd report --stat "${SNAPSHOTS[0]}" >"$T/stat" 2>/dev/null
for line in 'reason: control' 'for: the p99 is bad' 'by: user 0'; do
	grep -qx "$line" "$T/stat" || fail "the file does not say '$line': $(tail -n 12 "$T/stat")"
done
verify "${SNAPSHOTS[0]}"
[ "$(ctl --json trigger demo again | jq -c .sessions)" = '["demo"]' ] || fail "--json"
wait_for 10 has_snapshots 2 || fail "no second snapshot"

echo "== its own limit, and nobody else's"
refused 'demo: Burst=2 is used up by earlier calls, no snapshot of one for [0-9]+ s' ctl trigger demo more
[ "$(counts)" = "2 1" ] || fail "counted: $(counts)"
kill -USR1 "$FLYRECD_PID"
by_signal() {
	[ -n "$(echo "$STATE"/demo/snapshot/*-signal.dat)" ]
}
wait_for 10 by_signal || fail "a signal is refused, too"
ctl snapshot demo >/dev/null || fail "a snapshot is refused, too"

echo "== what is wrong"
refused 'the text must be a line' ctl trigger demo $'two\nlines'
refused 'the text must be a line' ctl trigger demo ''
refused nosuch ctl trigger nosuch text
for arguments in demo 'demo two words'; do
	status=0
	# shellcheck disable=SC2086 # words
	ctl trigger $arguments 2>"$T/err" || status=$?
	[ $status = 2 ] || fail "status $status: trigger $arguments"
done
ctl stop demo
refused 'demo does not record' ctl trigger demo text
flyrecd_stop

echo "== members of group flyrec: within their limits, though Burst=0, and nobody else's"
sed -i '/PostSec/d; s/^Burst=.*/Burst=0/' "$CONFIG/sessions.d/demo.conf"
chmod 755 "$T"
cp "$FLYRECCTL" "$T/flyrecctl" # where other users can reach it
private_groups
member() {
	setpriv --reuid=65534 --regid=65534 --groups="$1" "$T/flyrecctl" "--runtime-dir=$RUNTIME" "${@:2}"
}
rm -rf "$STATE/demo"
flyrecd_start
for n in 1 2 3 4 5; do
	/bin/true
	member "$FLYREC_GID" trigger demo "call $n" || fail "call $n of a member"
	wait_for 10 has_snapshots $n || fail "no snapshot $n of a member"
done
refused 'group flyrec has had the 5 snapshots' member "$FLYREC_GID" trigger demo more
refused 'denied|refused|may not' member 65534 trigger demo "a stranger's"
trace-cmd report --stat "${SNAPSHOTS[0]}" 2>/dev/null | grep -qx 'by: user 65534' || fail "whose is ${SNAPSHOTS[0]}?"
ctl trigger demo "root's" || fail "refused because of members"
wait_for 10 has_snapshots 6 || fail "no snapshot of root's"
flyrecd_stop
