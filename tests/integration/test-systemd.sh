#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 420
#
# flyrecd.service under a real systemd, in a container on this machine's kernel: start, journal,
# status, sandbox; numbered markers come out exactly once and in order over reload, restart, SIGKILL
# and the watchdog; stop leaves nothing. (The time limit includes making the container's tree, once.)
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/integration/container.sh"
need_tracefs
need_tool check-markers
need_event sched:sched_switch
need_command ps trace-cmd

property() {
	guest systemctl show --property="$1" --value flyrecd
}

is_active() {
	[ "$(property ActiveState)" = active ]
}

is_another() {
	local pid
	pid=$(property MainPID)
	[ "$pid" != 0 ] && [ "$pid" != "$OLD_PID" ] && is_active
}

# again COMMAND...: by which the service comes back in another process, and is ready
again() {
	OLD_PID=$(property MainPID)
	"$@" || fail "$*: $(guest systemctl status flyrecd)"
	wait_for 40 is_another || fail "$*: no new process: $(guest systemctl status flyrecd)"
}

# message MESSAGE-NAME [FIELD=VALUE...]: there is such a line in the journal
message() {
	local id
	id=$(sed -nE "s/^#define $1[[:space:]]+\"(.*)\"/\1/p" "$SRC/basic/log.h")
	shift
	[ -n "$(guest journalctl --quiet --output=cat "MESSAGE_ID=${id:?}" \
		_SYSTEMD_UNIT=flyrecd.service "$@")" ]
}

journal_has() {
	guest journalctl --sync
	guest journalctl --quiet --unit=flyrecd >"$T/journal"
	grep -qE "$1" "$T/journal"
}

drop_in() { # from standard input
	mkdir -p "$T/root/etc/systemd/system/flyrecd.service.d"
	cat >"$T/root/etc/systemd/system/flyrecd.service.d/test.conf"
	guest systemctl daemon-reload
}

# A session with an event of its own, and a size by which one sees that a reload is through
other() {
	session other <<-EOF
		[Trace]
		Uprobe=p:truth /usr/bin/true:0x2000
		BufferSize=$1K
	EOF
}

# The ring buffer must take all that happens until the watchdog is heard, also on a busy machine
session load <<-EOF
	[Trace]
	Event=sched:sched_switch
	BufferSize=64M
	[Storage]
	FlushSec=500ms
	MaxUse=10G
EOF
other 1024
set_sysctl kernel/kptr_restrict 1 # as Debian sets it
container_start flyrecd.service
guest journalctl --update-catalog

# --- the unit itself
guest systemd-analyze --man=no verify flyrecd.service >"$T/verify" 2>&1 || fail "$(cat "$T/verify")"
[ ! -s "$T/verify" ] || fail "systemd-analyze verify: $(cat "$T/verify")"
guest systemd-analyze security --no-pager flyrecd.service >"$T/security"
grep '✗' "$T/security" || true
exposure=$(sed -n 's/.*exposure level for flyrecd.service: \([0-9.]*\).*/\1/p' "$T/security")
echo "systemd-analyze security: $exposure"
awk -v x="$exposure" 'BEGIN { exit !(x != "" && x <= 1.6) }' || fail "exposure $exposure is above 1.6"

# --- started in the boot, by sysinit.target
# systemd 252 sometimes cannot set up /dev for it just after boot in a container (226/NAMESPACE), and starts it
# again a moment later
wait_for 20 is_active || fail "not active: $(guest journalctl --quiet --unit=flyrecd --lines=20)"
guest journalctl --boot >"$T/journal"
! grep 'ordering cycle' "$T/journal" || fail "an ordering cycle"
[[ $(property StatusText) == "2 recording, 0 failed"* ]] ||
	fail "status is '$(property StatusText)': $(guest systemctl status flyrecd)"
[ "$(property NFileDescriptorStore)" -gt 4 ] || fail "hardly anything is in the FD store"
guest journalctl --sync
message MESSAGE_STARTED || fail "no message that it has started"
message MESSAGE_SESSION_STARTED FLYREC_SESSION=load || fail "no message that the session has"
guest journalctl --catalog --unit=flyrecd >"$T/journal"
grep -q 'Subject: Session load records' "$T/journal" || fail "no text of the catalog"
for dir in "" load load/record; do
	owner=$(guest stat -c '%U:%G %a' "/var/lib/flyrec/$dir")
	[ "$owner" = "root:flyrec 750" ] || fail "/var/lib/flyrec/$dir is $owner"
done
owner=$(guest stat -c '%U:%G %a' /var/lib/flyrec/load/record/current.dat)
[ "$owner" = "root:flyrec 640" ] || fail "current.dat is $owner"

# --- sandbox: nothing of tracefs but its own, and one capability, by which there are symbols
main=$(property MainPID)
guest grep -qE '^CapEff:\s*0000000400000000$' "/proc/$main/status" || fail "other capabilities"
for file in /etc/passwd /usr/bin/true /tmp /var/tmp /var/lib/systemd /root /home; do
	[ "$(guest nsenter --target "$main" --mount sh -c "[ -w $file ] || echo no")" = no ] ||
		fail "the service could write to $file"
done
have_addresses() {
	trace-cmd dump --kallsyms -i "$STATE/load/record/current.dat" 2>/dev/null |
		grep -qE '^[[:space:]]*0*[1-9a-f][0-9a-f]* [Tt] '
}
have_addresses || fail "symbols have no addresses"

# --- what the kernel enforces is what the unit says
if has_capability "/proc/$GUEST_PID/status" 24; then # CAP_SYS_RESOURCE, which raising takes
	guest grep -qE '^Max open files +65536 +65536 ' "/proc/$main/limits" || fail "LimitNOFILE"
	[ "$(guest cat "/proc/$main/oom_score_adj")" = -800 ] || fail "OOMScoreAdjust"
fi
[ "$(property FileDescriptorStoreMax)" = 4096 ] || fail "FileDescriptorStoreMax"
cgroup=/sys/fs/cgroup$(guest sed -n 's/^0:://p' "/proc/$main/cgroup")
for weight in cpu.weight io.weight; do
	! guest test -e "$cgroup/$weight" || [[ $(guest cat "$cgroup/$weight") =~ ^(default )?20$ ]] ||
		fail "$weight: $(guest cat "$cgroup/$weight")"
done

# --- with /sys and /proc/sys writable outside, from inside nothing of the kernel's is but its own
# files in tracefs (and pressure, where anybody may ask to be told)
writable() { # [COMMAND...]: by whose mounts
	guest "$@" find /proc /sys -path '/proc/[0-9]*' -prune -o -path '/proc/*self' -prune -o \
		-type f -perm /222 -writable -print 2>/dev/null | sort
}
guest mount -o remount,bind,rw /proc/sys
guest mount -o remount,bind,rw /sys
guest systemctl restart flyrecd
main=$(property MainPID)
writable >"$T/outside"
writable nsenter --target "$main" --mount >"$T/inside" || true
guest mount -o remount,bind,ro /proc/sys
guest mount -o remount,bind,ro /sys
for file in /proc/sys/kernel/printk /proc/sys/kernel/kptr_restrict /sys/kernel/tracing/tracing_on; do
	grep -qx "$file" "$T/outside" || fail "$file is not writable outside: a poor test"
done
grep -vE '^/proc/pressure/|^/sys/kernel/tracing/(instances/|dynamic_events$|saved_cmdlines_size$)' \
	"$T/inside" >"$T/others" || true
[ ! -s "$T/others" ] || fail "the service could write to $(wc -l <"$T/others"): $(head "$T/others")"
[ "$(grep -c tracing "$T/inside")" -gt 10 ] || fail "hardly anything of tracefs: a poor test"
echo "files of the kernel writable: $(wc -l <"$T/outside") outside, $(wc -l <"$T/inside") inside"

# --- markers over everything
"$TOOLS/markers" "--instance=${PREFIX}load" --rate=5000 >"$T/expect" &
MARKERS=$!
CHILDREN+=("$MARKERS")
sleep 0.3

# reload_waits SIZE: it ends when the new size is in force, however long the daemon takes to begin
reload_waits() {
	local reload now
	other "$1"
	guest systemctl kill --signal=STOP flyrecd
	background guest systemctl reload flyrecd
	reload=$!
	sleep 0.5
	! ended "$reload" || fail "reload has not waited for the daemon to begin"
	guest systemctl kill --signal=CONT flyrecd
	wait "$reload" || fail "reload: $(guest systemctl status flyrecd)"
	now=$(sed 's/ .*//' "$(instance other)/per_cpu/cpu0/buffer_size_kb" || true)
	[ "${now:-0}" -ge "$1" ] || fail "reload has not waited: ${now:-no instance} instead of $1"
	[ "$(property MainPID)" = "$main" ] || fail "reload has restarted it"
}

reload_waits 2048
reload_waits 3072
reload_waits 4096
echo 'Bogus=1' >>"$CONFIG/sessions.d/other.conf"
! guest systemctl reload flyrecd 2>/dev/null || fail "reload with a fault has not failed"
journal_has 'sessions.d/other.conf:4: ' || fail "nothing says where the fault is"
is_active || fail "not active after a bad reload"
other 4096
printf '[Trace]\nEvent=nosuch:event\n' >"$CONFIG/sessions.d/failing.conf"
! guest systemctl reload flyrecd 2>/dev/null || fail "reload has not failed with a session"
journal_has 'failing: session failed: .*nosuch:event' || fail "nothing says which session has failed"
is_active || fail "not active after a session failed in a reload"
rm "$CONFIG/sessions.d/failing.conf"
guest systemctl reload flyrecd || fail "reload: $(guest systemctl status flyrecd)"
[ "$(property MainPID)" = "$main" ] || fail "a bad reload has restarted it"

for _ in 1 2 3; do
	again guest systemctl restart flyrecd
	sleep 0.2
done
journal_has 'handed over' || fail "restart has not handed over"

for _ in 1 2 3 4 5; do
	again guest systemctl kill --signal=KILL flyrecd
	sleep "0.$((RANDOM % 6 + 2))"
done

printf '[Service]\nWatchdogSec=2s\n' | drop_in
again guest systemctl restart flyrecd
again guest systemctl kill --signal=STOP flyrecd
journal_has 'Watchdog timeout' || fail "it was not the watchdog"
sleep 0.5

kill -TERM "$MARKERS"
wait "$MARKERS"
echo "restarts: $(property NRestarts), CPU: $(property CPUUsageNSec) ns"
guest grep -E '^(VmHWM|VmRSS|RssAnon):' "/proc/$(property MainPID)/status"

# --- without CAP_SYSLOG, all goes on but symbols lose their addresses
has_segment() { # that is not the one that was written
	[ "$(stat -c %i "$STATE/load/record/current.dat")" != "$inode" ]
}
inode=$(stat -c %i "$STATE/load/record/current.dat")
printf '[Service]\nCapabilityBoundingSet=\nCapabilityBoundingSet=CAP_SETUID CAP_SETGID\n' | drop_in
again guest systemctl restart flyrecd
guest systemctl kill --signal=USR2 flyrecd
wait_for 10 has_segment || fail "no rotation"
guest grep -qE '^CapEff:\s*0000000000000000$' "/proc/$(property MainPID)/status" || fail "capabilities"
! have_addresses || fail "addresses of symbols without CAP_SYSLOG: it is not needed"

# --- stop
guest systemctl stop flyrecd
[ "$(property Result)" = success ] || fail "stop: $(property Result)"
[ "$(property NFileDescriptorStore)" = 0 ] || fail "the FD store is not empty"
guest journalctl --sync
message MESSAGE_STOPPED || fail "no message that it has stopped"
message MESSAGE_SESSION_FAILED FLYREC_SESSION=failing || fail "no message that a session has failed"
! message MESSAGE_SESSION_FAILED FLYREC_SESSION=load FLYREC_SESSION=other || fail "a session has failed"
! message MESSAGE_EVENTS_LOST || fail "events were lost"
! journal_has 'denied|not permitted|Read-only|SYS' ||
	fail "the sandbox is too narrow: $(cat "$T/journal")"
for name in load other; do
	[ ! -e "$(instance $name)" ] || fail "stop has left the instance of $name"
done
! grep flyrec_other "$TRACEFS/dynamic_events" || fail "stop has left a dynamic event"
container_stop

verify "$STATE/load/record"
markers_check load
left=("$STATE"/*/record/*damaged "$STATE"/*/record/current.dat)
[ ${#left[@]} = 0 ] || fail "left: ${left[*]}"
