#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# finish.sh [--size=MIB] [--fs="ext4 xfs"] [--runs=N] [--dir=DIR] - time from stop to finished file
#
# Records so many MiB (1024), waits until the last sync, stops the daemon, and prints milliseconds from
# SIGTERM to the file with its archive name, and to the end of the process; beside it what an fsync of
# a file of 4 KiB takes on the same file system, as a measure of "one sync" there. Wants root, tracefs
# and twice the size free below DIR (/var/tmp). Uses build/ or FLYREC_BUILD.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
size=1024 fs="ext4 xfs" runs=3 dir=${TMPDIR:-/var/tmp}
options size fs runs dir -- "$@"
[ ${#words[@]} = 0 ] || usage
export TMPDIR=$dir filesystems=$fs
# shellcheck source-path=SCRIPTDIR/../tests/integration
. "$(dirname "$0")/../tests/integration/lib.sh"
. "$(dirname "$0")/../tests/integration/finish-lib.sh"
need_tracefs

one_sync() {
	local begin=${EPOCHREALTIME/./}
	dd if=/dev/zero of="$T/mnt/sync" bs=4K count=1 conv=fsync status=none
	msec "$begin"
	rm "$T/mnt/sync"
}

recorded() { # MiB on the disk
	local blocks
	blocks=$(stat -c %b "$(REC)/current.dat")
	[ $((blocks / 2048)) -ge "$1" ]
}

for fs in $filesystems; do
	mkfs_mount "$fs" $((size * 2 + 512))M "$T/mnt"
	STATE=$T/mnt/state
	for ((run = 1; run <= runs; run++)); do
		EVENT=raw_syscalls BUFFER=16M storage MaxUse=$((size * 4))M MaxFileSize=$((size * 2))M \
			KeepFree=0 FlushSec=200ms SyncIntervalSec=500ms
		flyrecd_start
		background "$TOOLS/storm" --duration=120 >/dev/null
		storm=$!
		wait_for 120 recorded "$size" || fail "too slow"
		kill -TERM "$storm"
		wait "$storm" || true
		sleep 1.5
		sync=$(one_sync)
		pid=$FLYRECD_PID
		begin=${EPOCHREALTIME/./}
		kill -TERM "$pid"
		until has_segments 1; do
			[ -e "/proc/$pid" ] || break
		done
		finished=$(msec "$begin")
		wait "$pid" || fail "flyrecd failed"
		gone=$(msec "$begin")
		file=$(echo "$(REC)"/2*.dat)
		mib=$(($(stat -c %s "$file") >> 20))
		is_dense "$file" || fail "$file is not dense"
		echo "$fs run $run: $mib MiB: stop to finished file $finished ms, to the end of the process $gone ms, one sync $sync ms"
		forget
	done
	umount "$T/mnt"
	unset 'MOUNTS[-1]'
done
