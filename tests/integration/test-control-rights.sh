#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
# tests: fast
#
# Who may do what: a stranger, a member of group flyrec, one of AdminGroup= and root, as real users;
# over the control socket, and over a system bus with the policy file that is shipped.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/control-lib.sh"
need_tracefs
need_command setpriv unshare busctl dbus-daemon
need_event sched:sched_switch

STRANGER=65534
chmod 755 "$T"
cp "$FLYRECCTL" "$T/flyrecctl" # where other users can reach it

# as GROUP COMMAND...: as a user with this group besides; none: ''
as() {
	local groups=--clear-groups
	[ -z "$1" ] || groups=--groups=$1
	shift
	setpriv "--reuid=$STRANGER" "--regid=$STRANGER" "$groups" "$@"
}

stranger() {
	as '' "$T/flyrecctl" "--runtime-dir=$RUNTIME" "$@"
}

member() {
	as $FLYREC_GID "$T/flyrecctl" "--runtime-dir=$RUNTIME" "$@"
}

admin() {
	as $ADMIN_GID "$T/flyrecctl" "--runtime-dir=$RUNTIME" "$@"
}

state() {
	ctl --json status sched |
		sed 's/.*"state":"\([a-z]*\)","instance".*/\1/'
}

private_groups
session sched <<-EOF
	[Trace]
	Event=sched:sched_switch
	[Storage]
	FlushSec=200ms
EOF
session off <<-EOF
	[Session]
	Enabled=no
	[Trace]
	Event=irq
EOF
flyrecd_start
SOCKET=$RUNTIME/control
chmod 755 "$RUNTIME"
[ "$(stat -c '%a %u %g' "$SOCKET")" = "660 0 $FLYREC_GID" ] ||
	fail "rights of the socket: $(stat -c '%a %u %g' "$SOCKET")"

# --- a stranger does not even get in
refused 'Permission denied: it is for root and group flyrec' stranger status
refused 'Permission denied: it is for root and group flyrec' stranger tail -f sched

# --- a member looks, and takes copies out
member --json status >/dev/null
member --json stats >/dev/null
member list >/dev/null
member metrics >/dev/null
prints 'sched_switch' member tail -n 1 sched || fail "a member's tail"
member cat sched current.dat >"$T/member.dat"
verify "$T/member.dat"
snap=$(member snapshot sched --last=5s)
[ -e "$snap" ] || fail "a member's snapshot"
for call in 'rotate sched' 'stop sched' 'start off' 'pause sched' 'resume sched' reload \
	'vacuum --max-use=1K' 'event-enable sched irq' 'event-disable sched sched' \
	'filter sched sched:sched_switch 0' "pin $snap" "unpin $snap"; do
	# shellcheck disable=SC2086 # words
	refused 'needs root or membership in AdminGroup= .*you are user 65534' member $call
done
[ "$(state)" = recording ] || fail "a member has changed something"

# --- with AdminGroup= everybody may connect, and each call is looked at
echo AdminGroup=flyrecadm | daemon_config
ctl reload
[ "$(stat -c %a "$SOCKET")" = 666 ] || fail "the socket is closed to AdminGroup="
# or its number
echo "AdminGroup=$ADMIN_GID" | daemon_config
ctl reload
[ "$(stat -c %a "$SOCKET")" = 666 ] || fail "the socket is closed to AdminGroup= by number"
admin pause sched || fail "AdminGroup= by number may not pause"
admin resume sched || fail "AdminGroup= by number may not resume"
echo AdminGroup=flyrecadm | daemon_config
ctl reload
for call in status stats list metrics 'tail sched' 'tail -f sched' 'snapshot sched' 'rotate sched' 'cat sched current.dat' reload; do
	# shellcheck disable=SC2086 # words
	refused 'needs root.*you are user 65534' stranger $call
done
refused 'needs root or membership in AdminGroup=' member rotate sched
admin rotate sched >/dev/null || fail "AdminGroup= may not rotate"
admin pause sched || fail "AdminGroup= may not pause"
[ "$(state)" = paused ] || fail "pause by AdminGroup="
admin resume sched || fail "AdminGroup= may not resume"
admin --json status >/dev/null || fail "AdminGroup= may not look"
flyrecd_stop

# --- with a system bus: the policy file, and rights by what the bus says
private_system_bus
flyrecd_start

# over_bus GROUP OBJECT INTERFACE METHOD [ARGUMENT...]
over_bus() {
	local group=$1 object=$2 interface=$3
	shift 3
	as "$group" busctl --system call org.flyrec.Recorder1 "$object" \
		"org.flyrec.Recorder1.$interface" "$@"
}

bus_has_name
sched=/org/flyrec/Recorder1/session/sched
prints sched over_bus $FLYREC_GID /org/flyrec/Recorder1 Manager ListSessions ||
	fail "a member over the system bus"
# busctl has its own words for it
refused 'Access denied' over_bus '' /org/flyrec/Recorder1 Manager ListSessions
refused 'Access denied' over_bus '' $sched Session OpenTail
over_bus $FLYREC_GID $sched Session OpenTail >/dev/null || fail "a member's tail over the system bus"
refused 'Access denied' over_bus $FLYREC_GID $sched Session Pause
over_bus $ADMIN_GID $sched Session Pause || fail "an administrator over the system bus"
[ "$(cat "$(instance sched)/tracing_on")" = 0 ] || fail "Pause over the system bus"
flyrecd_stop
