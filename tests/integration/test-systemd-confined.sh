#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 300
#
# A flyrecd that was taken over, under a real systemd in a container: with all that its process may
# it reads no secret, writes nothing but its own, and has nobody do anything for it; it records all
# the same. The exposure of all units. Which paths flyrec-shipping@.service takes.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/integration/container.sh"
. "$SRC/tests/integration/confined-lib.sh"
need_tracefs
need_event sched:sched_process_exec
need_command ps
[ -e "$TOOLS/taken-over.so" ] || skip "taken-over.so is not built"

inside() {
	guest "$@"
}

property() {
	guest systemctl show --property="$1" --value flyrecd
}

status_of() { # FIELD
	guest sed -n "s/^$1:[[:space:]]*//p" "/proc/$(property MainPID)/status"
}

session confined <<-EOF
	[Trace]
	Event=sched:sched_process_exec
	Uprobe=p:add /opt/demo/probed:probed_add
	Usdt=/opt/demo/probed:demo:request
	[Storage]
	FlushSec=100ms
EOF
container_start
ROOT=$T/root
confined_prepare
confined_secrets
mkdir "$ROOT/opt/demo"
cp "$TOOLS/probed" "$ROOT/opt/demo/"
guest systemctl start flyrecd || fail "flyrecd: $(guest journalctl --quiet --unit=flyrecd)"
confined_check

# --- who it is: root to files alone, and by one capability
uid=$(guest id -u flyrecd) gid=$(guest getent group flyrec | cut -d : -f 3)
[ "$(status_of Uid)" = "$uid	$uid	$uid	0" ] || fail "users: $(status_of Uid)"
[ "$(status_of Gid)" = "$gid	$gid	$gid	$gid" ] || fail "groups: $(status_of Gid)"
[ "$(status_of Groups)" = "" ] || fail "further groups: $(status_of Groups)"
for set in CapPrm CapEff; do
	[ "$(status_of $set)" = 0000000400000000 ] || fail "$set: $(status_of $set)"
done
for set in CapInh CapAmb; do
	[ "$(status_of $set)" = 0000000000000000 ] || fail "$set: $(status_of $set)"
done
[ "$(status_of NoNewPrivs)" = 1 ] || fail "NoNewPrivs"
# and so are all its threads
for task in $(guest sh -c "ls /proc/$(property MainPID)/task"); do
	[ "$(guest sed -n 's/^Uid:[[:space:]]*//p' "/proc/$task/status")" = "$uid	$uid	$uid	0" ] ||
		fail "thread $task is another user"
done

# --- it records
guest /bin/true
[ "$(guest /opt/demo/probed 3)" = 3 ] || fail "the semaphore is down"
guest env PATH=/usr/local/bin:/usr/bin:/bin flyrecctl rotate confined >"$T/rotated" || fail "rotate"
files=("$STATE"/confined/record/2*.dat)
verify "${files[@]}"
"$FLYRECCTL" export --format=text -o - "${files[@]}" >"$T/text"
[ "$(grep -c ' add: ' "$T/text") $(grep -c ' demo_request: ' "$T/text")" = '3 3' ] ||
	fail "probes of a program: $(tail -n 5 "$T/text")"
[ "$(stat -c '%u %g %a' "${files[0]}")" = "0 $gid 640" ] || fail "rights: $(stat -c '%u %g %a' "${files[0]}")"
guest journalctl --sync
guest journalctl --quiet --unit=flyrecd >"$T/journal"
! grep -E 'not permitted|denied|SYS' "$T/journal" || fail "too narrow"

confined_exposure flyrecd.service flyrec-metrics.service flyrec-shipping@x.service flyrec-snapshot@x.service

# --- only recordings are shipped
printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n' \
	>"$ROOT/etc/systemd/system/flyrec-ship@.service"
guest systemctl daemon-reload
n=0
ship() { # PATH: to flyrec-shipping@.service as if by flyrecd; its result is in RESULT
	n=$((n + 1))
	printf '%s\n' "$1" >"$ROOT/srv/line"
	mkdir -p "$ROOT/etc/systemd/system/flyrec-shipping@$n.service.d"
	printf '[Service]\nStandardInput=file:/srv/line\n' \
		>"$ROOT/etc/systemd/system/flyrec-shipping@$n.service.d/test.conf"
	printf '[Unit]\nCollectMode=inactive\n' >>"$ROOT/etc/systemd/system/flyrec-shipping@$n.service.d/test.conf"
	guest systemctl daemon-reload
	RESULT=yes
	guest systemctl start "flyrec-shipping@$n" 2>"$T/ship" || RESULT=no
	guest systemctl reset-failed "flyrec-shipping@$n" 2>/dev/null || true
}
shipped() {
	guest systemctl list-units --all --plain --no-legend 'flyrec-ship@*'
}
for path in /etc/shadow / '' /etc/x.dat /var/lib/flyrec/../../../etc/x.dat /var/lib/flyrec/a/.. \
	/var/lib/flyrec/..dat/../x.dat /var/lib/flyrec /var/lib/flyrec/ /var/lib/flyrec//x.dat \
	/var/lib/flyrecd/x.dat var/lib/flyrec/x.dat /var/lib/flyrec/fl/state "/etc/shadow /var/lib/flyrec/x.dat"; do
	ship "$path"
	[ "$RESULT" = no ] || fail "shipped: '$path'"
	[ "$(shipped)" = "" ] || fail "'$path': $(shipped)"
done
ship /var/lib/flyrec/fl/snapshot/x.dat
[ "$RESULT" = yes ] || fail "a recording is not shipped: $(guest journalctl --quiet --unit="flyrec-shipping@$n")"
is_shipped() {
	[[ $(shipped) == *'flyrec-ship@var-lib-flyrec-fl-snapshot-x.dat.service'* ]]
}
wait_for 10 is_shipped || fail "not shipped: $(shipped)"
guest systemctl stop flyrecd
container_stop
