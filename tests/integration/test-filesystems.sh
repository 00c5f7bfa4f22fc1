#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# A session on each kind of file system: the live file opens while it is written, and numbered
# markers come out once each over a hand-over, a SIGKILL with stored fds, a rotation and a clean stop.
# O_DIRECT where the log says so.
# may-fail: a disk that stands still for longer than the ring buffers last costs events
# time-limit: 500
# tests: all
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd
need_tool check-markers

config() { # DIRECT
	session fs <<-EOF
		[Trace]
		Event=raw_syscalls:sys_enter if $LOAD_FILTER
		BufferSize=32M
		[Storage]
		Direct=$1
		FlushSec=200ms
		SyncIntervalSec=500ms
		MaxUse=1G
		MaxFileSize=256M
		KeepFree=1M
	EOF
}

# Is flyrecd writing this file with O_DIRECT, by the flags of its fds?
is_direct() {
	local fd flags
	for fd in "/proc/$FLYRECD_PID/fd"/*; do
		[ "$(readlink "$fd")" = "$STATE/fs/record/current.dat" ] || continue
		flags=$(sed -n 's/^flags:[[:space:]]*//p' "/proc/$FLYRECD_PID/fdinfo/${fd##*/}")
		[ $((flags & O_DIRECT)) = 0 ] || return 0
	done
	return 1
}
case $(uname -m) in
aarch64 | arm*) O_DIRECT=0200000 ;;
ppc*) O_DIRECT=0400000 ;;
*) O_DIRECT=040000 ;;
esac

# as_logged WAY: the log says how it writes, and it does
as_logged() {
	must_log "fs: recording ($1)"
	if is_direct; then [ "$1" = O_DIRECT ]; else [ "$1" = "page cache" ]; fi ||
		fail "the log says $1, the fds say otherwise"
}

opens() { # WHEN
	trace-cmd report "$STATE/fs/record/current.dat" >"$T/report" 2>"$T/complaints" ||
		fail "trace-cmd report $1: $(head -n 3 "$T/complaints")"
	[ ! -s "$T/complaints" ] || fail "trace-cmd report $1: $(head -n 3 "$T/complaints")"
	grep -q 'flyrec-test cpu=' "$T/report" || fail "trace-cmd report $1 shows no markers"
}

# as_installed ROOT: with the state directory that the package's tmpfiles.d makes there
as_installed() {
	need_command systemd-tmpfiles lsattr
	STATE=$1/var/lib/flyrec
	mkdir -p "$1/etc" "$1/var/lib"
	echo 'root:x:0:0::/:' >"$1/etc/passwd"
	printf 'root:x:0:\nflyrec:x:987:\n' >"$1/etc/group"
	systemd-tmpfiles "--root=$1" --create - <"$SRC/systemd/flyrec.tmpfiles" ||
		fail "systemd-tmpfiles"
	[ "$(stat -c '%u:%g %a' "$STATE")" = "0:987 750" ] ||
		fail "state directory: $(stat -c '%u:%g %a' "$STATE")"
	[[ $(lsattr -d "$STATE") =~ ^[^/]*C ]] || fail "copied on write: $(lsattr -d "$STATE")"
}

# try NAME FS WAY [MKFS-OPTION...]
try() {
	local name=$1 fs=$2 way=$3 at
	shift 3
	echo "== $name"
	mkfs_mount "$fs" 3G "$T/$name" "$@"
	STATE=$T/$name/state
	[ "$name" != btrfs-in-place ] || as_installed "$T/$name"
	log_mark
	flyrecd_start_stored
	as_logged "$way"
	markers_start fs 3000
	load_bursts 0.02 0.4
	sleep 0.5
	opens "of the live file"
	flyrecd_hand_over
	as_logged "$way"
	sleep 0.3
	opens "after a hand-over"
	for _ in 1 2; do
		flyrecd_kill
		sleep 0.3
		opens "after SIGKILL"
	done
	kill -USR2 "$FLYRECD_PID"
	sleep 0.5
	load_stop
	markers_stop
	flyrecd_stop
	verify "$STATE/fs/record"
	markers_check fs
	no_damage
	for at in "$STATE"/fs/record/2*.dat; do
		trace-cmd report "$at" 2>&1 >/dev/null | grep . && fail "trace-cmd report $at"
		stat -c '%n: %s bytes, %b blocks' "$at"
	done
	[ ! -e "$STATE/fs/record/current.dat" ] || fail "current.dat is still there"
	umount "$T/$name"
	unset "MOUNTS[$((${#MOUNTS[@]} - 1))]"
}

config auto
try ext4 ext4 O_DIRECT
try ext4-1k ext4 O_DIRECT -b 1024
try xfs xfs O_DIRECT
try btrfs btrfs O_DIRECT
try btrfs-in-place btrfs O_DIRECT
# tmpfs takes O_DIRECT since Linux 6.6, without doing it
if mkdir "$T/probe" && mount -t tmpfs none "$T/probe"; then
	way="page cache"
	dd if=/dev/zero of="$T/probe/f" bs=4k count=1 oflag=direct 2>/dev/null && way=O_DIRECT
	umount "$T/probe"
	try tmpfs tmpfs "$way"
fi

echo "== Direct=no, Direct=yes"
mkfs_mount ext4 1G "$T/direct"
STATE=$T/direct/state
for direct in no yes; do
	config $direct
	log_mark
	flyrecd_start
	if [ $direct = yes ]; then as_logged O_DIRECT; else as_logged "page cache"; fi
	markers_start fs 3000
	sleep 0.5
	opens "with Direct=$direct"
	markers_stop
	flyrecd_stop
	verify "$STATE/fs/record"
	markers_check fs
	rm -r "$STATE/fs"
done

echo "== Direct=yes, but what a killed flyrecd left is where there is no O_DIRECT"
mkdir "$T/ramfs"
mount -t ramfs none "$T/ramfs" || skip "cannot mount ramfs"
MOUNTS+=("$T/ramfs")
STATE=$T/ramfs/state
without_limits() {
	config "$1"
	sed -i 's/^KeepFree=.*/KeepFree=0/' "$CONFIG/sessions.d/fs.conf"
}
without_limits auto
flyrecd_start
as_logged "page cache"
markers_start fs 3000
is_noted() { [ -s "$RUNTIME/synced/fs/state" ]; }
wait_for 20 is_noted || fail "nothing is synced"
flyrecd_kill
without_limits yes
log_mark
flyrecd_start
must_log "fs: session failed: .*Direct=yes, but this file system has no O_DIRECT"
sleep 0.5
without_limits no
ctl reload
must_log "fs: recording (page cache)"
markers_stop
flyrecd_stop
verify "$STATE/fs/record"
! logged "were synced but are missing" || fail "$(grep 'were synced but are missing' "$FLYRECD_LOG")"
left=$(find "$STATE/fs/record" -mindepth 1 ! -name '2*Z.dat')
[ -z "$left" ] || fail "left behind: $left"
markers_check fs
