#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 300
#
# flyrecd.service in the boot, in a container with a read-only root: it records before local file
# systems, the rest of the boot and the network are there, only what is at its state directory it
# waits for, and nothing waits for it; at shutdown it is done before that is unmounted.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/integration/container.sh"
need_tracefs
need_event sched:sched_switch
need_command ps trace-cmd

session early <<-EOF
	[Trace]
	Event=sched:sched_switch
EOF
# The state directory is on a disk that comes late: bound from here by a unit of the guest's
# shellcheck disable=SC2034 # container.sh's
NSPAWN_OPTIONS=(--read-only --tmpfs=/var/tmp)
# shellcheck disable=SC2034
NSPAWN_BINDS=("--bind=$CONFIG:/etc/flyrec" "--bind=$STATE:/mnt" --tmpfs=/var/log
	--tmpfs=/var/lib/systemd)

unit() { # NAME, from standard input
	cat >"$T/root/etc/systemd/system/$1"
}

# slow NAME UNIT BEFORE: what is not done until UNIT is up, and holds up something else
slow() {
	unit "$1.service" <<-EOF
		[Unit]
		DefaultDependencies=no
		$3
		[Service]
		Type=oneshot
		RemainAfterExit=yes
		TimeoutStartSec=60
		ExecStart=/bin/sh -c 'until systemctl --quiet is-active $2; do sleep 0.1; done'
	EOF
}

# since UNIT: microseconds after the boot at which it was up
since() {
	guest systemctl show --property=ActiveEnterTimestampMonotonic --value "$1"
}

before() { # UNIT UNIT
	local a b
	a=$(since "$1") b=$(since "$2")
	echo "$1 at $a, $2 at $b"
	[ "$a" -gt 0 ] || fail "$1 is not up: $(guest systemctl status "$1")"
	[ "$b" -gt 0 ] || fail "$2 is not up: $(guest systemctl status "$2")"
	[ "$a" -lt "$b" ] || fail "$1 was not up before $2"
}

records() {
	[ "$(guest systemctl is-active flyrecd)" = active ] &&
		[ -s "$STATE/early/record/current.dat" ]
}

boot() {
	container_boot
	wait_for 30 records || fail "does not record: $(guest systemctl status flyrecd)"
	guest journalctl --sync
	guest journalctl --quiet --boot >"$T/journal"
	! grep 'ordering cycle' "$T/journal" || fail "an ordering cycle"
	! guest touch /etc/x 2>/dev/null || fail "the root is not read-only: a poor test"
	# the first start has succeeded, not the fifth one
	[ "$(guest systemctl show --property=NRestarts --value flyrecd)" = 0 ] ||
		fail "started in vain: $(guest journalctl --quiet --unit=flyrecd)"
}

# stopped: and the disk was let go after that, with finished files on it
stopped() {
	local n=$1 files
	container_stop
	files=("$STATE"/early/record/2*.dat)
	[ ${#files[@]} = "$n" ] || fail "$n finished files expected: ${files[*]}"
	[ ! -e "$STATE/early/record/current.dat" ] || fail "shutdown has not finished the file"
	verify "$STATE/early/record"
	[ ! -e "$(instance early)" ] || fail "shutdown has left the instance"
}

container_make
make -C "$BUILD" --no-print-directory -s install "DESTDIR=$T/root" >"$T/install.log" 2>&1 ||
	fail "make install: $(tail -n 5 "$T/install.log")"
systemd-sysusers --root="$T/root" "$SRC/systemd/flyrec.sysusers" >"$T/sysusers" 2>&1 ||
	fail "systemd-sysusers: $(cat "$T/sysusers")"
mkdir -p "$T"/root/{etc,var/lib}/flyrec
unit var-lib-flyrec.mount <<-EOF
	[Unit]
	Before=local-fs.target
	[Mount]
	What=/mnt
	Where=/var/lib/flyrec
	Type=none
	Options=bind
	[Install]
	WantedBy=local-fs.target
EOF
systemctl --quiet --root="$T/root" enable flyrecd.service var-lib-flyrec.mount ||
	fail "cannot enable units"

# --- other file systems are slow: it does not wait for them, nor for what comes after them
slow other-disk flyrecd.service Before=local-fs.target
ln -s ../other-disk.service "$T/root/etc/systemd/system/local-fs.target.wants/"
boot
before flyrecd.service local-fs.target
before flyrecd.service sysinit.target
guest systemctl list-dependencies --after --plain flyrecd.service >"$T/after"
! grep -E '(network|basic|sysinit|local-fs|dbus).*(target|service|socket)' "$T/after" ||
	fail "waits for more than it needs"
stopped 1

# --- its own disk is slow: it waits for that, and nobody for it
rm "$T/root/etc/systemd/system/local-fs.target.wants/other-disk.service"
slow own-disk multi-user.target Before=var-lib-flyrec.mount
sed -i '/^Before=/d; /^\[Mount\]/i DefaultDependencies=no\nConflicts=umount.target\nBefore=umount.target' \
	"$T/root/etc/systemd/system/var-lib-flyrec.mount"
mkdir -p "$T/root/etc/systemd/system/var-lib-flyrec.mount.requires" \
	"$T/root/etc/systemd/system/sysinit.target.wants"
ln -s ../own-disk.service "$T/root/etc/systemd/system/var-lib-flyrec.mount.requires/"
rm "$T/root/etc/systemd/system/local-fs.target.wants/var-lib-flyrec.mount"
boot
before own-disk.service flyrecd.service
before var-lib-flyrec.mount flyrecd.service
before multi-user.target flyrecd.service
before sysinit.target flyrecd.service
stopped 2
