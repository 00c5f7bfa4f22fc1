# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests of who may do what: groups of flyrecd's own, and a system bus with the policy file that is shipped.

# shellcheck disable=SC2034 # for the tests
FLYREC_GID=54321 ADMIN_GID=54322
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$T/no-bus

# private_groups [MEMBER]: FLYRECD becomes one for which flyrec, which the user MEMBER is in, and flyrecadm are groups:
# $T/private, below unshare, has a private /etc/group that names them; no group of the machine is needed
private_groups() {
	cat >"$T/private" <<-END
		#!/bin/sh
		mount --bind "$T/group" /etc/group && exec "\$@"
	END
	cat >"$T/flyrecd-private" <<-END
		#!/bin/sh
		exec unshare --mount --propagation=slave "$T/private" "$FLYRECD" "\$@"
	END
	chmod +x "$T/private" "$T/flyrecd-private"
	grep -v '^flyrec' /etc/group >"$T/group"
	printf 'flyrec:x:%s:%s\nflyrecadm:x:%s:\n' $FLYREC_GID "${1:-}" $ADMIN_GID >>"$T/group"
	FLYRECD=$T/flyrecd-private
}

# private_system_bus [PREFIX...]: a dbus-daemon with flyrecd's policy, for this test alone, started by
# the command PREFIX. Other users get through to it where they get through to $T.
private_system_bus() {
	cat >"$T/bus.conf" <<-END
		<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
		 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
		<busconfig>
		<type>system</type><listen>unix:path=$T/bus</listen><auth>EXTERNAL</auth>
		<policy context="default">
		<allow user="*"/><deny own="*"/><deny send_type="method_call"/><allow send_type="signal"/>
		<allow send_requested_reply="true" send_type="method_return"/>
		<allow send_requested_reply="true" send_type="error"/>
		<allow receive_type="method_call"/><allow receive_type="method_return"/>
		<allow receive_type="error"/><allow receive_type="signal"/>
		<allow send_destination="org.freedesktop.DBus"/>
		</policy>
		<include>$SRC/systemd/org.flyrec.Recorder1.conf</include>
		</busconfig>
	END
	background "$@" dbus-daemon --nofork "--config-file=$T/bus.conf"
	wait_for 10 test -S "$T/bus" || fail "dbus-daemon does not start"
	export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$T/bus
}

# bus_has_name: wait until flyrecd is on it
bus_has_name() {
	wait_for 10 busctl --quiet --system status org.flyrec.Recorder1 >/dev/null 2>&1 ||
		fail "flyrecd has not taken its name: $(tail -n 3 "$FLYRECD_LOG")"
}
