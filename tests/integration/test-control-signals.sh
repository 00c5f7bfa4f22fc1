#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
#
# What flyrecd says on the system bus without being asked: sessions that come and go, whether they run or
# are only configured, by their interface; states, the last one of a session too; and who hears it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/control-lib.sh"
need_tracefs
need_command busctl dbus-daemon dbus-monitor setpriv unshare jq
need_event sched:sched_switch

# A user of no group, and one of group flyrec, as a private /etc/group has it for the bus
STRANGER=65534 MEMBER=1 GROUP=54321
chmod 755 "$T"
grep -v '^flyrec' /etc/group >"$T/group"
printf 'flyrec:x:%s:%s\n' $GROUP "$(getent passwd $MEMBER | cut -d : -f 1)" >>"$T/group"
cat >"$T/private" <<-EOF
	#!/bin/sh
	mount --bind "$T/group" /etc/group && exec "\$@"
EOF
chmod +x "$T/private"
private_system_bus unshare --mount --propagation=slave "$T/private"

named() { # NAME [LINE...]
	session "$1" <<-EOF
		[Session]
		$(printf '%s\n' "${@:2}")
		[Trace]
		Event=sched:sched_process_exit
	EOF
}
named first
named off Enabled=no
flyrecd_start
bus_has_name

listen() { # FILE UID GROUPS-OPTION
	background setpriv "--reuid=$2" "--regid=$2" "$3" dbus-monitor --system \
		"type='signal',sender='org.flyrec.Recorder1'" >"$T/$1" 2>"$T/$1.err"
}
listen stranger $STRANGER --clear-groups
listen member $MEMBER --groups=$GROUP
background busctl --system --json=short monitor org.flyrec.Recorder1 >"$T/signals" 2>"$T/signals.err"
# dbus-monitor is told its own name first
listening() {
	[ -s "$T/signals.err" ] && grep -q NameAcquired "$T/stranger" && grep -q NameAcquired "$T/member"
}
wait_for 10 listening || fail "no listener: $(cat "$T"/*.err)"

OBJECT=/org/flyrec/Recorder1/session
added() { # NAME STATE
	jq -es --arg path "$OBJECT/$1" --arg state "$2" 'any(.[]; .member == "InterfacesAdded" and
		.payload.data[0] == $path and
		.payload.data[1]["org.flyrec.Recorder1.Session"].State.data == $state)' "$T/signals" >/dev/null
}
removed() { # NAME
	jq -es --arg path "$OBJECT/$1" 'any(.[]; .member == "InterfacesRemoved" and
		.payload.data[0] == $path and
		(.payload.data[1] | index("org.flyrec.Recorder1.Session")))' "$T/signals" >/dev/null
}
states() { # NAME: all that were announced, one after the other
	jq -r --arg path "$OBJECT/$1" 'select(.member == "PropertiesChanged" and .path == $path) |
		.payload.data[1].State.data // empty' "$T/signals"
}
state_was() { # NAME STATE
	states "$1" | grep -qx "$2"
}
times() { # MEMBER NAME
	jq -r --arg path "$OBJECT/$2" --arg member "$1" 'select(.member == $member) |
		.payload.data[0] | select(. == $path)' "$T/signals" | wc -l
}

# --- they come: one that runs, one that does not
named second
named later Enabled=no
ctl reload
wait_for 5 added second stopped || fail "second was not announced: $(cat "$T/signals")"
wait_for 5 added later stopped || fail "later, which is not enabled, was not announced"
wait_for 5 state_was second recording || fail "second does not record: $(states second)"
[ "$(times InterfacesAdded second)" = 1 ] || fail "second came $(times InterfacesAdded second) times"

# --- one that stops, or starts, and stays configured is no other object
ctl start off
ctl stop off
wait_for 5 state_was off stopped || fail "states of off: $(states off)"
[ "$(times InterfacesAdded off)$(times InterfacesRemoved off)" = 00 ] || fail "off came or went"

# --- what an earlier boot has left is looked at, and is nothing: its last state is announced
mkdir -p "$STATE/left"
cat >"$STATE/left/state" <<-EOF
	session left
	instance ${PREFIX}left
	group g
	boot-id 00000000000000000000000000000000
	trace
EOF
ctl reload
wait_for 5 removed left || fail "left does not go: $(jq -c .payload "$T/signals")"
[ "$(states left | tail -n 1)" = stopped ] || fail "the last state of left is: $(states left | tail -n 1)"

# --- they go, by their interface
rm "$CONFIG/sessions.d/second.conf" "$CONFIG/sessions.d/later.conf"
ctl reload
wait_for 5 removed second || fail "second has gone unnoticed: $(grep InterfacesRemoved "$T/signals")"
wait_for 5 removed later || fail "later has gone unnoticed"
busctl --system call org.flyrec.Recorder1 /org/flyrec/Recorder1 org.freedesktop.DBus.ObjectManager \
	GetManagedObjects | grep -q 'second\|later' && fail "they are still there"

# --- who hears it
member_hears() {
	grep -q 'member=InterfacesRemoved' "$T/member"
}
wait_for 5 member_hears || fail "a member of group flyrec hears nothing: $(cat "$T"/member*)"
! grep -q 'path=/org/flyrec' "$T/stranger" || fail "a user of no group hears: $(cat "$T/stranger")"
flyrecd_stop
