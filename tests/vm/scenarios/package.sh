#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The package on a machine of its own: started early in the boot, confined as it says on a kernel
# whose tunables it could otherwise reach, its socket starts it and lets nobody wait in vain;
# markers come out once over reload, restart and an upgrade; removed and purged, it leaves what was
# recorded, finished.
# machines: debian13
# also: debian12
# time-limit: 300
. "$(dirname "$0")/../guest.sh"

# since_boot TEXT: when the journal has it first, in ms; before there is a journal it has texts only
since_boot() {
	journalctl --boot --output=short-monotonic |
		sed -nE "s/^\\[ *([0-9]+)\\.([0-9]{3})[0-9]*\\] .*$1.*/\\1\\2/p" | head -n 1
}

reinstall() {
	dpkg --install /root/flyrec.deb >"$T/dpkg" 2>&1
	systemctl stop flyrecd
	systemctl disable --quiet flyrecd
}

in_sandbox() { # COMMAND...: where flyrecd sees the file systems
	nsenter --target "$FLYRECD_PID" --mount "$@"
}

echo "== early in the boot"
begun=$(since_boot "Starting flyrecd.service") reached=$(since_boot "Reached target multi-user.target")
echo "$begun ms after the kernel's start, sysinit.target after $(since_boot "Reached target sysinit.target") ms," \
	"multi-user.target after $reached ms"
[ "$begun" -gt 0 ] || fail "not started in the boot"
[ "$begun" -lt "$reached" ] || fail "started $begun ms after the kernel, after multi-user.target ($reached ms)"
systemctl list-dependencies --after --plain flyrecd.service >"$T/after"
! grep -E 'network|basic\.target|dbus' "$T/after" || fail "it waits for these"

echo "== nothing is changed before there is a session"
names() {
	cat "$TRACEFS/saved_cmdlines_size"
}
systemctl start flyrecd
[ "$(names)" -lt 32768 ] || fail "the kernel keeps $(names) names of tasks"
systemctl stop flyrecd

echo "== confined"
session keep <<-EOT
	[Trace]
	Event=sched:sched_process_exec
	BufferSize=4M
EOT
flyrecd_start
[ "$(names)" -ge 32768 ] || fail "the kernel keeps $(names) names of tasks only"
systemd-analyze --man=no verify flyrecd.service flyrecd.socket >"$T/analyzed" 2>&1 || fail "$(cat "$T/analyzed")"
[ ! -s "$T/analyzed" ] || fail "systemd-analyze verify: $(cat "$T/analyzed")"
exposure=$(systemd-analyze security --no-pager flyrecd.service |
	sed -n 's/.*exposure level for flyrecd.service: \([0-9.]*\).*/\1/p')
echo "systemd-analyze security: $exposure"
awk -v x="$exposure" 'BEGIN { exit !(x != "" && x <= 1.6) }' || fail "exposure $exposure is above 1.6"
grep -q '^CapEff:[[:space:]]*0000000400000000$' "/proc/$FLYRECD_PID/status" || fail "other capabilities"
for file in /proc/sys/kernel/printk /proc/sysrq-trigger /sys/kernel/mm/ksm/run /etc/passwd /usr/bin/true \
	$TRACEFS/{tracing_on,trace_marker,set_event,events/enable,current_tracer,kprobe_events,buffer_size_kb}; do
	[ -w "$file" ] || fail "$file: a poor test"
	! in_sandbox test -w "$file" || fail "flyrecd could write to $file"
done
# the test is a root that may read a file of mode 0; it is an empty one
[ "$(head -c 1 /proc/kcore | wc -c)" = 1 ] || fail "/proc/kcore: a poor test"
for file in /proc/kcore /proc/kmsg /dev/kmsg; do
	[ "$(in_sandbox timeout 5 head -c 1 "$file" 2>/dev/null | wc -c)" = 0 ] || fail "flyrecd could read $file"
done
in_sandbox mkdir "$TRACEFS/instances/vm-probe" || fail "flyrecd cannot make instances"
rmdir "$TRACEFS/instances/vm-probe"
for file in "$TRACEFS/dynamic_events" "$TRACEFS/saved_cmdlines_size" /etc/flyrec "$STATE" "$RUNTIME"; do
	in_sandbox test -w "$file" || fail "flyrecd cannot write to $file"
done
trace-cmd dump --kallsyms -i "$STATE/keep/record/current.dat" 2>/dev/null |
	grep -qE '^[[:space:]]*f[0-9a-f]{15} [Tt] ' || fail "symbols have no addresses"
limit=$(cat /sys/fs/cgroup/system.slice/flyrecd.service/memory.max)
[ "$limit" = $((512 << 20)) ] || fail "MemoryMax= is $limit in the kernel"

echo "== markers over reload, restart and upgrade"
markers_start keep 300
sleep 0.5
session other <<-EOT
	[Trace]
	Event=sched:sched_process_fork
	BufferSize=256K
EOT
systemctl reload flyrecd || fail "reload: $(flyrecd_log | tail -n 5)"
[ "$(property MainPID)" = "$FLYRECD_PID" ] || fail "reload has restarted it"
flyrecd_hand_over
dpkg-deb --raw-extract /root/flyrec.deb "$T/next"
sed -i 's/^Version: .*/&+next/' "$T/next/DEBIAN/control"
dpkg-deb -Znone --root-owner-group --build "$T/next" "$T/next.deb" >/dev/null
at_end reinstall
dpkg --install "$T/next.deb" >"$T/dpkg" 2>&1 || fail "upgrade: $(cat "$T/dpkg")"
flyrecd_restarted
logged_twice() {
	[ "$(flyrecd_log | grep -c 'handed over')" = 2 ]
}
logged_twice || fail "the upgrade has not handed over"
sleep 0.5
markers_stop

echo "== the socket"
systemctl stop flyrecd
systemctl start flyrecd.socket
"$FLYRECCTL" status keep >/dev/null || fail "the socket does not start it"
wait_for 60 is_active || fail "not started by the socket"
background systemctl restart flyrecd
restart=$!
for i in 1 2 3; do
	"$FLYRECCTL" status keep >/dev/null 2>"$T/refused" || fail "call $i in a restart: $(cat "$T/refused")"
done
wait "$restart" || fail "restart"
verify "$STATE/keep"

echo "== removed and purged"
dpkg --purge flyrec >"$T/dpkg" 2>&1 || fail "purge: $(cat "$T/dpkg")"
[ ! -e "$(instance keep)" ] || fail "the instance is left"
[ ! -e "$STATE/keep/record/current.dat" ] || fail "a segment is not finished"
[ "$(systemctl is-active flyrecd.socket)" = inactive ] ||
	fail "flyrecd.socket is $(systemctl is-active flyrecd.socket)"
! systemctl cat flyrecd >/dev/null 2>&1 || fail "the unit is left"
grep -q 'recordings in /var/lib/flyrec are left' "$T/dpkg" || fail "purge does not say what is left"
[ ! -e "$CONFIG/sessions.d/keep.conf" ] || fail "dead configuration is left"
[ ! -e /usr/lib/flyrec ] || fail "/usr/lib/flyrec is left"
markers_check keep
