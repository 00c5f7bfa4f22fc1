#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 600
# tests: all
# beside: yes
#
# The Debian package, in a container with systemd: installed it records nothing until a session is
# switched on; upgrade and downgrade lose no marker of what is being recorded, and leave alone which
# other units are active; removed, nothing of it is active or can be started; installed again it goes
# on as configured; purged it leaves recordings, unless told otherwise, and no dead configuration.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/integration/container.sh"
. "$SRC/tests/tools/package.sh"
need_tracefs
need_tool check-markers
need_event sched:sched_switch
need_command dh dpkg-buildpackage

package_make
version=$(dpkg-deb --field "$PACKAGE" Version)

# The next version: the same with another number
dpkg-deb --raw-extract "$PACKAGE" "$T/next"
sed -i "s/^Version: .*/Version: $version+next/" "$T/next/DEBIAN/control"
dpkg-deb --root-owner-group --build "$T/next" "$T/next.deb" >/dev/null

container_make
cp "$PACKAGE" "$T/root/root/flyrec.deb"
cp "$T/next.deb" "$T/root/root/next.deb"
container_boot

install() { # FILE
	guest dpkg --install "/root/$1" >"$T/dpkg" 2>&1 </dev/null || fail "dpkg --install $1: $(cat "$T/dpkg")"
}

is_active() {
	[ "$(guest systemctl is-active flyrecd)" = active ]
}

# those beside flyrecd.service that stay as they are
OTHERS=(flyrecd.socket flyrec-metrics.timer flyrec-shipping.socket)

others_are() { # STATE WHEN
	local unit
	for unit in "${OTHERS[@]}"; do
		[ "$(guest systemctl is-active "$unit")" = "$1" ] ||
			fail "$2: $unit is $(guest systemctl is-active "$unit"), not $1"
	done
}

records() {
	[ -s "$STATE/sched/record/current.dat" ] && [ -d "$(instance sched)" ]
}

# --- nothing is recorded yet
install flyrec.deb
wait_for 10 is_active || fail "not started: $(guest systemctl status flyrecd)"
[ "$(guest systemctl is-enabled flyrecd)" = enabled ] || fail "not enabled"
shipped=0
for file in "$T"/root/usr/lib/flyrec/sessions.d/*.conf; do
	grep -q '^# Costs: [^@]' "$file" || fail "$(basename "$file") does not say what it costs"
	shipped=$((shipped + 1))
done
[ $shipped -ge 8 ] || fail "$shipped ready-made sessions"
guest flyrecd --check-config >"$T/check" 2>&1 || fail "the ready-made sessions: $(cat "$T/check")"
instances=("$TRACEFS/instances/$PREFIX"*)
[ ${#instances[@]} = 0 ] || fail "recorded unasked: ${instances[*]}"
for unit in "${OTHERS[@]}"; do
	[ "$(guest systemctl is-enabled "$unit")" = disabled ] || fail "$unit is enabled"
done

# --- each of them records; one is kept
for name in blackbox block irq latency offcpu oom slow-syscalls; do
	guest flyrecctl start $name || fail "start $name: $(guest journalctl --unit=flyrecd | tail -n 3)"
	guest flyrecctl stop $name || fail "stop $name"
done
guest systemctl stop flyrecd
guest systemctl --quiet enable --now "${OTHERS[@]}" || fail "cannot enable ${OTHERS[*]}"
guest systemctl start flyrecd
others_are active "enabled"
prom=$T/root/var/lib/prometheus/node-exporter/flyrec.prom
mkdir -p "${prom%/*}"
guest systemctl start flyrec-metrics.service
[ -s "$prom" ] || fail "no metrics: $(guest systemctl status flyrec-metrics.service)"
guest flyrecctl start --persist sched || fail "start sched"
wait_for 10 records || fail "sched does not record"
"$TOOLS/markers" "--instance=${PREFIX}sched" --rate=2000 >"$T/expect" &
MARKERS=$!
CHILDREN+=("$MARKERS")
sleep 0.5

# --- an upgrade hands over
pid=$(guest systemctl show --property=MainPID --value flyrecd)
install next.deb
wait_for 20 is_active || fail "not active after the upgrade: $(guest systemctl status flyrecd)"
[ "$(guest systemctl show --property=MainPID --value flyrecd)" != "$pid" ] || fail "not restarted"
guest journalctl --sync
guest journalctl --quiet --unit=flyrecd >"$T/journal"
grep -q 'handed over' "$T/journal" || fail "the upgrade has not handed over: $(cat "$T/journal")"
records || fail "no longer recorded after the upgrade"
others_are active "after the upgrade"
sleep 0.5

# --- so does a downgrade
pid=$(guest systemctl show --property=MainPID --value flyrecd)
install flyrec.deb
wait_for 20 is_active || fail "not active after the downgrade: $(guest systemctl status flyrecd)"
[ "$(guest systemctl show --property=MainPID --value flyrecd)" != "$pid" ] || fail "not restarted"
records || fail "no longer recorded after the downgrade"
others_are active "after the downgrade"
sleep 0.5

# --- removed: recording ends, configuration and recordings stay, whoever wrote them; installed
# again it goes on
kill -TERM "$MARKERS"
wait "$MARKERS"
printf '# mine\n[Storage]\nMaxUse=3G\n' >>"$CONFIG/flyrecd.conf"
find "$CONFIG" -type f -exec md5sum {} + | sort >"$T/config"
guest dpkg --remove flyrec >"$T/dpkg" 2>&1 </dev/null || fail "dpkg --remove: $(cat "$T/dpkg")"
[ ! -e "$(instance sched)" ] || fail "remove has left the instance"
[ ! -e "$T/root/usr/sbin/flyrecd" ] || fail "remove has left flyrecd"
others_are inactive "after the removal"
[ "$(guest systemctl is-active flyrecd)" = inactive ] || fail "flyrecd is $(guest systemctl is-active flyrecd)"
[ ! -e "$prom" ] || fail "remove has left figures that will not change any more"
[ ! -e "$STATE/sched/record/current.dat" ] || fail "remove has not finished the file"
guest systemctl daemon-reload
! guest systemctl cat flyrecd >/dev/null 2>&1 || fail "remove has left the unit"
segments=("$STATE"/sched/record/2*.dat)
install flyrec.deb
wait_for 20 records || fail "installed again it does not record: $(guest systemctl status flyrecd)"
after=("$STATE"/sched/record/2*.dat)
[ "${segments[*]}" = "${after[*]}" ] || fail "recordings are not as before: ${after[*]}"
diff "$T/config" <(find "$CONFIG" -type f -exec md5sum {} + | sort) ||
	fail "upgrade, removal or installation has changed the configuration"
echo keep >"$CONFIG/notes"

# --- purged, without a question
guest env DEBIAN_FRONTEND=readline dpkg --purge flyrec >"$T/dpkg" 2>&1 </dev/null ||
	fail "dpkg --purge: $(cat "$T/dpkg")"
grep -q 'recordings in /var/lib/flyrec are left' "$T/dpkg" || fail "purge does not say what is left"
[ ! -e "$(instance sched)" ] || fail "purge has left the instance"
verify "$STATE/sched/record"
markers_check sched
left=$(find "$CONFIG" -mindepth 1)
[ "$left" = "$CONFIG/notes" ] || fail "purge has left or removed other things: $left"
[ ! -e "$T/root/usr/lib/flyrec" ] || fail "purge has left /usr/lib/flyrec"

install flyrec.deb
guest env FLYREC_PURGE_RECORDINGS=yes dpkg --purge flyrec >"$T/dpkg" 2>&1 ||
	fail "dpkg --purge: $(cat "$T/dpkg")"
[ -z "$(ls -A "$STATE")" ] || fail "recordings are left that were to go: $(ls "$STATE")"
container_stop
