#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A flyrecd that was taken over has no way out, with the Landlock of this kernel, while all that it is
# there for works: recording, triggers, the bus, metrics, shipping; taken over, in the other sense, from
# a flyrecd that ran as root.
# machines: debian12 debian13
# time-limit: 120
. "$(dirname "$0")/../guest.sh"
# shellcheck source=tests/integration/confined-lib.sh
. /job/tests/integration/confined-lib.sh
# shellcheck disable=SC2034 # confined-lib.sh's
ROOT=''

inside() {
	"$@"
}

status_of() { # FIELD
	sed -n "s/^$1:[[:space:]]*//p" "/proc/$FLYRECD_PID/status"
}

unit() { # NAME, from standard input
	cat >"/etc/systemd/system/$1"
	UNITS+=("/etc/systemd/system/$1")
}

UNITS=(/etc/systemd/system/{flyrecd.service.d/taken-over.conf,taken.service,root-only.socket}
	/etc/systemd/system/{root-only@.service,victim.service} /usr/local/lib/taken-over.so)
remove_units() {
	rm -f "${UNITS[@]}"
	systemctl daemon-reload
}

session rec <<-EOF
	[Trace]
	Event=sched:sched_process_exec
	[Snapshot]
	OnUnitFailed=fails.service
	OnPressure=memory some 100ms 2s
EOF
session fl <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_process_exec
	BufferSize=256K
EOF
uid=$(id -u flyrecd) || fail "the package has not made the user"
grep -q landlock /sys/kernel/security/lsm || mount -t securityfs securityfs /sys/kernel/security || true
echo "security modules: $(cat /sys/kernel/security/lsm)"

echo "== taken over from a flyrecd that ran as root"
at_end systemd-sysusers flyrec.conf
drop_in was-root <<-EOF
	[Service]
	User=root
EOF
userdel flyrecd
flyrecd_start
[ "$(status_of Uid)" = "0	0	0	0" ] || fail "not root without the user: $(status_of Uid)"
begun=$(stat -c %i "$STATE/rec/record/current.dat")
systemd-sysusers flyrec.conf
rm /run/systemd/system/flyrecd.service.d/was-root.conf
systemctl daemon-reload
uid=$(id -u flyrecd)
flyrecd_hand_over
[ "$(status_of Uid)" = "$uid	$uid	$uid	0" ] || fail "users: $(status_of Uid)"
[ "$(stat -c %i "$STATE/rec/record/current.dat")" = "$begun" ] || fail "the file was not gone on with"
logged 'handed over' || fail "not handed over"
flyrecd_stop

echo "== taken over"
at_end remove_units
confined_prepare
confined_secrets
flyrecd_start
confined_check
[ "$(status_of CapEff)" = 0000000400000000 ] || fail "capabilities: $(status_of CapEff)"
confined_exposure flyrecd.service flyrec-metrics.service flyrec-shipping@x.service flyrec-snapshot@x.service

echo "== it does what it is there for"
busctl --system call org.flyrec.Recorder1 /org/flyrec/Recorder1 org.freedesktop.DBus.Properties Get ss \
	org.flyrec.Recorder1.Manager ProcessId >"$T/bus" || fail "not on the bus"
path=$("$FLYRECCTL" snapshot fl) || fail "no snapshot"
verify "$path"
printf '[Service]\nExecStart=/bin/false\n' | unit fails.service
systemctl daemon-reload
systemctl start fails.service
failed_is_seen() {
	set -- "$STATE"/rec/snapshot/*-unit.dat
	[ $# -ge 1 ]
}
wait_for 30 failed_is_seen || fail "a unit that fails is not seen: $("$FLYRECCTL" status rec)"
systemctl reset-failed
"$FLYRECCTL" status rec >"$T/status"
case $(uname -r) in
# before Linux 6.5 it takes CAP_SYS_RESOURCE
[1-5].* | 6.[0-4].*) grep -qE 'memory some 100ms 2s: (armed|unavailable)' "$T/status" || fail "$(cat "$T/status")" ;;
*) grep -q 'memory some 100ms 2s: armed' "$T/status" || fail "not armed: $(cat "$T/status")" ;;
esac

echo "== metrics, and not where a link leads to"
directory=/var/lib/prometheus/node-exporter
at_end rm -rf /var/lib/prometheus /srv/elsewhere
mkdir -p $directory /srv/elsewhere
systemctl start flyrec-metrics.service || fail "metrics: $(journalctl --quiet --unit=flyrec-metrics | tail -n 3)"
grep -q '^flyrec_.*session="rec"' $directory/flyrec.prom || fail "no metrics"
rm -r $directory
ln -s /srv/elsewhere $directory
systemctl start flyrec-metrics.service 2>/dev/null || true
[ ! -e /srv/elsewhere/flyrec.prom ] || fail "metrics behind a link"

echo "== shipping"
at_end rm -rf /srv/shipped
mkdir /srv/shipped
printf '[Service]\nType=oneshot\nExecStart=/bin/cp %%f /srv/shipped/\n' | unit flyrec-ship@.service
systemctl daemon-reload
systemctl start flyrec-shipping.socket
at_end systemctl stop flyrec-shipping.socket
path=$("$FLYRECCTL" snapshot fl) || fail "no snapshot"
shipped() { [ -s "/srv/shipped/${path##*/}" ]; }
wait_for 30 shipped || fail "not shipped: $(journalctl --quiet | tail -n 10)"
! flyrecd_log | grep -E 'not permitted|denied' || fail "too narrow"
flyrecd_stop
