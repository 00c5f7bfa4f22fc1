#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 300
#
# The recipes of flyrec(7), as they are printed there, in a container with systemd: each session file
# is accepted, each command ends with 0, and the files that they lead to say what the recipe promises.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/integration/container.sh"
need_tracefs
need_event sched:sched_switch raw_syscalls:sys_enter syscalls:sys_enter_openat oom:mark_victim
need_command ps trace-cmd

# examples SECTION: its blocks, an empty line between them, without roff's escapes
examples() {
	sed -n "/^\.SS $1/,/^\.S[SH] [^${1:0:1}]/p" "$SRC/man/flyrec.7" |
		sed -n '/^\.EX/,/^\.EE/{s/^\.EE//;/^\.EX/d;s/\\-/-/g;p}'
}

# session_file FILE SECTION: in sessions.d, from the block that begins with [
session_file() {
	mkdir -p "$(dirname "$CONFIG/sessions.d/$1")"
	examples "$2" | awk -v RS= '/^\[/' >"$CONFIG/sessions.d/$1"
	grep -q '^\[Trace\]' "$CONFIG/sessions.d/$1" || fail "no session file below $2"
}

# here LINE, there LINE: run it by this test's daemon, or in the container
here() {
	PATH=$T/bin:$PATH sh -c "$1"
}
there() {
	guest env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/bin sh -c "$1"
}

# commands WHERE SECTION NUMBER: runs them; FILE is what the snapshot before has printed
commands() {
	local line file='' n=0
	while read -r line; do
		case $line in
		trace-cmd*) sh -c "${line/FILE/$STATE${file##*"$LIBRARY"}}" >"$T/out" 2>"$T/err" ;;
		*) "$1" "${line/FILE/$file}" >"$T/out" 2>"$T/err" </dev/null ;;
		esac || fail "$2: $line: $(cat "$T/err")$([ "$1" = here ] || guest journalctl --quiet --unit=flyrecd --lines=9)"
		case $line in
		*" start "*) ;;
		# so that there is something for a snapshot
		*reload) sleep 2 ;;
		*" snapshot "*) file=$(grep -o '/[^ ]*\.dat' "$T/out") || fail "$2: $line: prints no file" ;;
		*) [ -s "$T/out" ] || fail "$2: $line: prints nothing" ;;
		esac
		n=$((n + 1))
	done < <(examples "$2" | awk -v RS= '!/^\[/' | sed 's/^flyrecctl tail -f .*/{ &; } \& sleep 2; kill $!/')
	[ $n = "$3" ] || fail "$2: $n commands"
}

# --- of a service, which in the container has other process IDs
LIBRARY=$STATE
CGROUPS=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
mkdir "$CGROUPS/${PREFIX}shop.service" 2>/dev/null || skip "no control groups that may be changed"
at_end rmdir "$CGROUPS/${PREFIX}shop.service"
background sh -c 'while true; do cat /etc/hostname >/dev/null; sleep 0.1; done'
shop=$!
echo "$shop" >"$CGROUPS/${PREFIX}shop.service/cgroup.procs"
mkdir "$T/bin"
printf '#!/bin/sh\nexec "%s" "--runtime-dir=%s" "$@"\n' "$FLYRECCTL" "$RUNTIME" >"$T/bin/flyrecctl"
chmod +x "$T/bin/flyrecctl"
daemon_config </dev/null
flyrecd_start
session_file shop.conf "Trace the system calls of one service"
sed -i "s/shop.service/$PREFIX&/" "$CONFIG/sessions.d/shop.conf"
commands here "Trace the system calls of one service" 3
grep -q 'cat-.*sys_enter_openat' "$T/out" || fail "the service's open() is not there: $(head -n 3 "$T/out")"
flyrecd_stop
kill "$shop"
wait "$shop" || true
rm "$CONFIG/sessions.d/shop.conf"

LIBRARY=/var/lib/flyrec
container_start flyrecd.service
# systemd 252 sometimes cannot set up /dev for it just after boot in a container (226/NAMESPACE), and starts
# it again a moment later: all is up before that
wait_for 20 guest systemctl --quiet is-active flyrecd || fail "flyrecd is not active: $(guest journalctl --quiet --unit=flyrecd --lines=9)"
commands there "Record the scheduler all the time" 5
grep -q 'sched_switch' "$T/out" || fail "trace-cmd report --profile shows no switch"
guest journalctl --quiet --unit=flyrecd | grep -q 'sched: recording' || fail "sched does not record"

session_file blackbox.conf.d/50-local.conf "Keep a black box in memory"
printf '[Service]\nExecStart=/bin/false\n' >"$T/root/etc/systemd/system/fails.service"
guest systemctl daemon-reload
commands there "Keep a black box in memory" 3
prints 'unit \*.service: armed' there 'flyrecctl status blackbox' || fail "the black box: $(cat "$T/printed")"
guest systemctl start fails.service
has_snapshot() {
	SNAPSHOTS=("$STATE"/blackbox/snapshot/*-unit.dat)
	[ ${#SNAPSHOTS[@]} = 1 ]
}
wait_for 20 has_snapshot || fail "no snapshot of a unit that failed"
prints 'sched_switch' trace-cmd report "${SNAPSHOTS[0]}" || fail "no events in the black box"

container_stop
