#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 300
#
# The units beside flyrecd.service, under a real systemd in a container: flyrecd.socket starts a daemon
# that was stopped, no call is refused over a restart, and AdminGroup= may connect; flyrec-metrics.timer
# writes whole files for node_exporter and takes them away with the daemon; the drop-ins grant what
# they say and no more. Under the unit as it is, segments are compressed by a thread that gets the CPU and the
# disk only when nobody else wants them.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/integration/container.sh"
need_tracefs
need_event sched:sched_process_exec
need_command ps

ctl() {
	guest env PATH=/usr/local/bin:/usr/bin:/bin flyrecctl "$@"
}

state() { # UNIT
	guest systemctl show --property=ActiveState --value "$1"
}

is_active() {
	[ "$(state flyrecd)" = active ]
}

# drop_in UNIT NAME: from standard input
drop_in() {
	mkdir -p "$T/root/etc/systemd/system/$1.d"
	cat >"$T/root/etc/systemd/system/$1.d/$2.conf"
	guest systemctl daemon-reload
}

analyze() { # UNIT...
	guest systemd-analyze --man=no verify "$@" >"$T/verify" 2>&1 || fail "$(cat "$T/verify")"
	[ ! -s "$T/verify" ] || fail "systemd-analyze verify: $(cat "$T/verify")"
}

session units <<-EOF
	[Trace]
	Event=sched:sched_process_exec
EOF
container_start
analyze flyrecd.socket flyrec-metrics.timer flyrec-metrics.service

# --- the socket: a call starts the daemon, also one that was stopped
guest systemctl start flyrecd.socket
[ "$(state flyrecd)" = inactive ] || fail "started without a call: $(state flyrecd)"
owner=$(guest stat -c '%U:%G %a' /run/flyrec/control)
[ "$owner" = "root:flyrec 660" ] || fail "/run/flyrec/control is $owner"
ctl status units >"$T/status" || fail "the call that starts the daemon: $(cat "$T/status")"
grep -q units "$T/status" || fail "status: $(cat "$T/status")"
wait_for 10 is_active || fail "a call has not started it: $(state flyrecd)"
guest systemctl stop flyrecd 2>"$T/stop"
[ "$(state flyrecd)" = inactive ] || fail "not stopped: $(state flyrecd)"
guest test -S /run/flyrec/control || fail "the socket is gone"
ctl status >"$T/status" || fail "the call after a stop: $(cat "$T/status")"
wait_for 10 is_active || fail "a call has not started it again: $(state flyrecd)"

# --- and calls wait while it is restarted
calls() {
	local n=0
	while [ ! -e "$T/enough" ]; do
		ctl status >/dev/null 2>>"$T/refused" || true
		n=$((n + 1))
	done
	echo $n >"$T/calls"
}
background calls
caller=$!
for _ in 1 2 3; do
	guest systemctl restart flyrecd || fail "restart: $(guest systemctl status flyrecd)"
	sleep 0.2
done
touch "$T/enough"
wait "$caller" || fail "calls"
# one that the old daemon had already taken may be cut off; none is refused
! grep -v ' flyrecd has hung up: ' "$T/refused" || fail "calls during restarts"
echo "calls over three restarts: $(cat "$T/calls"), cut off: $(wc -l <"$T/refused")"
[ "$(cat "$T/calls")" -ge 3 ] || fail "hardly a call was made"

# --- compressing: flyrecd is stopped while it does so, and its threads are looked at
main_pid() {
	guest systemctl show --property=MainPID --value flyrecd
}

stops_at() { # FAULT-POINT: another process than before
	local before
	before=$(main_pid)
	printf '[Service]\nEnvironment=FLYREC_FAULT_POINT=%s\n' "$1" | drop_in flyrecd.service fault
	guest systemctl kill --signal=KILL flyrecd
	stopped() {
		local pid
		pid=$(main_pid)
		[ "$pid" != "$before" ] && guest grep -q '^State:[[:space:]]*T' "/proc/$pid/status" 2>/dev/null
	}
	wait_for 30 stopped || fail "does not come to $1: $(guest systemctl status flyrecd)"
	guest grep -q /flyrecd.service "/proc/$(main_pid)/cgroup" || fail "not in the unit's cgroup"
	guest sh -c "for task in /proc/$(main_pid)/task/*; do
		chrt -p \${task##*/} | sed -n 's/.*policy: //p'
		ionice -p \${task##*/}
	done" | paste -d ' ' - - | sort | uniq -c >"$T/threads"
	cat "$T/threads"
}

for _ in 1 2; do
	guest /usr/bin/true
	ctl rotate units >/dev/null || fail "rotate"
done
# The next process does it
printf '[Storage]\nKeepFree=0\nMaxUse=1G\nCompress=zstd\n' >>"$CONFIG/sessions.d/units.conf"
stops_at compress-packed
grep -q '^ *1 SCHED_IDLE idle$' "$T/threads" || fail "no thread has the lowest priority"
[ "$(grep -c 'SCHED_IDLE\|idle$' "$T/threads")" = 1 ] || fail "others have it, too"
stops_at compress-replaced # others may wait for the directory
# systemd gives it LimitNICE= only where it may do that itself
if guest grep -q '^Max nice priority *20 ' "/proc/$(main_pid)/limits"; then
	! grep -q SCHED_IDLE "$T/threads" || fail "a priority is not what it was"
fi
! grep -q 'idle$' "$T/threads" || fail "a priority for the disk is not what it was"
rm "$T/root/etc/systemd/system/flyrecd.service.d/fault.conf"
guest systemctl daemon-reload
guest systemctl kill --signal=KILL flyrecd
ctl status units >/dev/null || fail "flyrecd does not come back"
guest journalctl --quiet --unit=flyrecd >"$T/journal"
! grep 'not permitted' "$T/journal" || fail "the sandbox is too narrow"

# --- with AdminGroup= everybody may connect, as long as it is set
rights_are() { # MODE WHEN
	local rights
	rights=$(guest stat -c '%U:%G %a' /run/flyrec/control)
	[ "$rights" = "root:flyrec $1" ] || fail "$2: /run/flyrec/control is $rights"
}
admin() {
	guest setpriv --reuid=nobody --regid=adm --clear-groups \
		env PATH=/usr/local/bin:/usr/bin:/bin flyrecctl "$@"
}
refused 'Permission denied' admin status
echo AdminGroup=adm | daemon_config
guest systemctl reload flyrecd
rights_are 666 "a reload with AdminGroup="
admin pause units || fail "AdminGroup= may not pause"
admin resume units || fail "AdminGroup= may not resume"
sed -i '/^AdminGroup=/d' "$CONFIG/flyrecd.conf"
guest systemctl reload flyrecd
rights_are 660 "a reload without AdminGroup="
guest systemctl stop flyrecd.socket flyrecd
! guest test -e /run/flyrec/control || fail "the socket has left its file"
echo AdminGroup=adm | daemon_config
guest systemctl start flyrecd.socket flyrecd
rights_are 666 "a start with AdminGroup="
guest systemctl stop flyrecd 2>"$T/stop"
rights_are 666 "after a stop"
sed -i '/^AdminGroup=/d' "$CONFIG/flyrecd.conf"
guest systemctl start flyrecd
rights_are 660 "a start without AdminGroup="
guest journalctl --sync
! guest journalctl --quiet --unit=flyrecd | grep -E 'cannot (give|set)' || fail "rights of the socket"
guest systemctl stop flyrecd.socket flyrecd
guest systemctl start flyrecd

# --- metrics for node_exporter
directory=/var/lib/prometheus/node-exporter
prom=$T/root$directory/flyrec.prom
printf '[Timer]\nOnActiveSec=\nOnUnitActiveSec=\nOnActiveSec=500ms\nOnUnitActiveSec=500ms\nAccuracySec=10ms\n' |
	drop_in flyrec-metrics.timer quick
guest systemctl start flyrec-metrics.timer
sleep 1
[ ! -e "$T/root/var/lib/prometheus" ] || fail "makes the directory of a node_exporter that is not there"
mkdir -p "$T/root$directory"
wait_for 10 test -s "$prom" || fail "no metrics: $(guest systemctl status flyrec-metrics.service)"
[ "$(stat -c '%U:%G %a' "$prom")" = "root:root 644" ] || fail "flyrec.prom is $(stat -c '%U:%G %a' "$prom")"
grep -q '^flyrec_.*session="units"' "$prom" || fail "nothing of the session: $(head "$prom")"
inodes=''
for _ in $(seq 200); do
	# opened once, as a reader does
	text=$(cat "$prom") || fail "flyrec.prom was not there"
	[ "$(tail -n 1 <<<"$text")" = "# EOF" ] || fail "not whole: $(tail -n 3 <<<"$text")"
	inodes+=" $(stat -c %i "$prom")"
	sleep 0.01
done
[ "$(tr ' ' '\n' <<<"$inodes" | sort -u | wc -l)" -gt 2 ] || fail "written once only: $inodes"
guest systemctl stop flyrecd
gone() { [ ! -e "$prom" ]; }
wait_for 10 gone || fail "old figures are left after the daemon"
guest systemctl start flyrecd
wait_for 10 test -s "$prom" || fail "no metrics after the daemon came back"
guest systemctl stop flyrec-metrics.timer flyrec-metrics.service
[ "$(ls "$T/root$directory")" = flyrec.prom ] || fail "left: $(ls "$T/root$directory")"
exposure=$(guest systemd-analyze security --no-pager flyrec-metrics.service |
	sed -n 's/.*exposure level for flyrec-metrics.service: \([0-9.]*\).*/\1/p')
echo "systemd-analyze security flyrec-metrics.service: $exposure"
awk -v x="$exposure" 'BEGIN { exit !(x != "" && x <= 1.3) }' || fail "exposure $exposure"

# --- drop-ins: probed by a command inside the same sandbox
probe() { # SHELL-COMMAND...: each one's result, yes or no, in $T/probe
	local text='' command
	for command in "$@"; do
		text+="if $command; then echo yes; else echo no; fi; "
	done
	printf "[Service]\nExecStartPost=!/bin/sh -c '{ %s } >/run/flyrec/probe 2>/dev/null'\n" "$text" |
		drop_in flyrecd.service probe
	guest systemctl restart flyrecd || fail "restart: $(guest systemctl status flyrecd)"
	guest cat /run/flyrec/probe | tr '\n' ' ' >"$T/probe"
}

misc=$(awk '$2 == "loop-control" { print $1 }' /proc/misc)
guest mknod /dev/tmc_test c 10 "${misc:-237}"
guest mknod /dev/disk_test b 7 0
tests=("head -c 4 /proc/kcore | grep -q ELF" "true </dev/tmc_test" "true >>/dev/tmc_test"
	"head -c 1 /dev/disk_test >/dev/null" "test -r /proc/kmsg" "test -e /sys/kernel/debug/tracing")
probe "${tests[@]}"
echo "without a drop-in: $(cat "$T/probe")"
[ "$(cat "$T/probe")" = "no no no no no no " ] || fail "the sandbox is too wide: $(cat "$T/probe")"
drop_in flyrecd.service coresight <"$SRC/systemd/coresight.conf"
probe "${tests[@]}"
echo "with coresight.conf: $(cat "$T/probe")"
read -r kcore read write disk kmsg debug <<<"$(cat "$T/probe")"
has_capability "/proc/$GUEST_PID/status" 17 && [ -e /proc/kcore ] && [ "$kcore" != yes ] &&
	fail "coresight.conf does not give /proc/kcore"
[ -z "$misc" ] || [ "$read" = yes ] || fail "coresight.conf does not let its devices be read"
[ "$kmsg $debug" = "no no" ] || fail "coresight.conf gives more than it says"
# a rule for devices takes a BPF program, which not every machine lets a container load
printf '[Service]\nType=oneshot\nDevicePolicy=closed\nExecStart=/bin/sh -c "true </dev/disk_test"\n' \
	>"$T/root/etc/systemd/system/closed.service"
guest systemctl daemon-reload
if guest systemctl start closed.service 2>/dev/null; then
	echo "devices are not controlled here: DeviceAllow= not tried"
else
	[ "$write $disk" = "no no" ] || fail "coresight.conf gives other devices, or more than reading"
fi
capabilities() {
	guest sed -n 's/^CapEff:[[:space:]]*//p' \
		"/proc/$(guest systemctl show --property=MainPID --value flyrecd)/status"
}
[ "$(capabilities)" = 0000000400020000 ] || fail "coresight.conf: capabilities $(capabilities)"
rm "$T/root/etc/systemd/system/flyrecd.service.d/coresight.conf"

# --- real-time priority for the copy of flight sessions
probe "chrt --fifo 1 true"
[ "$(cat "$T/probe")" = "no " ] || fail "real-time priority without a drop-in"
drop_in flyrecd.service realtime <"$SRC/systemd/realtime.conf"
probe "chrt --fifo 1 true" "chrt --fifo 2 true"
if has_capability "/proc/$GUEST_PID/status" 24; then
	[ "$(cat "$T/probe")" = "yes no " ] || fail "realtime.conf: priority 1 and 2: $(cat "$T/probe")"
else
	echo "no CAP_SYS_RESOURCE, by which limits are raised: realtime.conf not tried"
fi
rm "$T/root/etc/systemd/system/flyrecd.service.d/realtime.conf"

# --- short windows of pressure
if [ -e /proc/pressure/memory ] && has_capability "/proc/$GUEST_PID/status" 24; then
	session units <<-EOF
		[Trace]
		Event=sched:sched_process_exec
		[Snapshot]
		OnPressure=memory some 100ms 500ms
	EOF
	guest systemctl restart flyrecd
	ctl status units >"$T/status"
	grep -q 'memory some 100ms 500ms: unavailable' "$T/status" || fail "armed without: $(cat "$T/status")"
	drop_in flyrecd.service pressure <"$SRC/systemd/pressure.conf"
	guest systemctl restart flyrecd
	ctl status units >"$T/status"
	grep -q 'memory some 100ms 500ms: armed' "$T/status" || fail "not armed: $(cat "$T/status")"
	[ "$(capabilities)" = 0000000401000000 ] || fail "pressure.conf: capabilities $(capabilities)"
	rm "$T/root/etc/systemd/system/flyrecd.service.d/pressure.conf"
else
	echo "no pressure, or this machine has no CAP_SYS_RESOURCE to give: pressure.conf not tried"
fi
guest systemctl stop flyrecd
container_stop
