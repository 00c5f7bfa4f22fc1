#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# range-snapshot.sh [--size=MIB] [--runs=N] [--fs="ext4 xfs"] [--dir=DIR] [--compress] - what ten seconds
# out of a large archive cost
#
# Records half of MIB (10240) of system calls at full speed, eleven seconds of a quiet machine, and the
# other half; all in segments of 1 GiB, which --compress has converted to version 7. Then takes N (5) snapshots of ten of the quiet seconds, and of
# half a second of the loud ones. Prints the medians of milliseconds from the call of flyrecctl to its
# end, of a plain O_DIRECT copy with fsync of the snapshot, and of
# `flyrecctl status`, which is a call that does nothing; and what `trace-cmd split` needs for the
# quiet seconds out of the one segment. Wants root, tracefs and a quarter more than the size
# free below DIR (/var/tmp). Uses build/ or FLYREC_BUILD.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
size=10240 runs=5 fs="ext4 xfs" dir=${TMPDIR:-/var/tmp} compress=''
options size runs fs dir 'compress?' -- "$@"
[ ${#words[@]} = 0 ] || usage
export TMPDIR=$dir filesystems=$fs
# shellcheck source-path=SCRIPTDIR/../tests/integration
. "$(dirname "$0")/../tests/integration/lib.sh"
need_tracefs
need_command trace-cmd

image_dir() { # memory is too small for it
	echo "$T"
}

recorded() { # MiB on the disk
	[ "$(du -sm "$STATE/load/record" 2>/dev/null | cut -f1)" -ge "$1" ] # files come and go
}

loud_until() { # MIB
	load_start
	wait_for 600 recorded "$1" || fail "too slow"
	load_stop
}

# now, as --since= and --until= take it
stamp() {
	echo "@$EPOCHREALTIME"
}

# timed NAME COMMAND...: its milliseconds are added to $T/NAME
timed() {
	local begin=${EPOCHREALTIME/./} name=$1
	shift
	"$@" >"$T/out" 2>"$T/errors" || fail "$*: $(tail -n 2 "$T/errors")"
	msec "$begin" >>"$T/$name"
}

plain_copy() { # FILE
	dd if="$1" of="$T/$fs/plain" bs=4M iflag=direct oflag=direct conv=fsync status=none
}

# All segments but the live one, with their times
compress_all() {
	local file
	for file in "$STATE"/load/record/2*.dat; do
		"$FLYRECCTL" convert --version=7 --compress=zstd -o "$STATE/load/new.dat" "$file" >/dev/null ||
			fail "cannot convert $file"
		touch -r "$file" "$STATE/load/new.dat"
		mv "$STATE/load/new.dat" "$file"
	done
}

# cut_out NAME SINCE UNTIL
cut_out() {
	local run path
	rm -f "$T/$1" "$T/$1.plain" "$T/call"
	for ((run = 0; run < runs; run++)); do
		timed call "$FLYRECCTL" "--runtime-dir=$RUNTIME" status load
		timed "$1" "$FLYRECCTL" "--runtime-dir=$RUNTIME" snapshot load "--since=$2" "--until=$3"
		path=$(cat "$T/out")
		bytes=$(stat -c %s "$path")
		timed "$1.plain" plain_copy "$path"
		rm "$path" "$T/$fs/plain"
	done
	echo "$fs: $1 out of $(du -sm "$STATE/load/record" | cut -f1) MiB: $((bytes >> 20)) MiB in" \
		"$(median "$T/$1") ms; a plain copy of as much $(median "$T/$1.plain") ms, a call of flyrecctl $(median "$T/call") ms"
}

split_one() {
	local file range
	for file in "$STATE"/load/record/2*.dat; do
		break
	done
	range=$(trace-cmd report --nodate "$file" 2>/dev/null | awk '$3 ~ /^[0-9.]+:$/ { print $3 + 0; exit }')
	timed split trace-cmd split -i "$file" -o "$T/$fs/split.dat" "$range" "$(awk -v t="$range" 'BEGIN { print t + 0.1 }')"
	echo "$fs: trace-cmd split of 0.1 s out of one segment of $(($(stat -c %s "$file") >> 20)) MiB: $(median "$T/split") ms"
	rm -f "$T/$fs"/split.dat* "$T/split"
}

for fs in $filesystems; do
	state_on "$fs" "$((size + size / 4))M"
	session load <<-EOF
		[Trace]
		Event=raw_syscalls
		BufferSize=16M
		[Storage]
		MaxFileSize=1G
		MaxUse=$((size * 2))M
		KeepFree=0
		FlushSec=200ms
	EOF
	flyrecd_start
	loud_until $((size / 2))
	sleep 0.5
	quiet=$(stamp)
	sleep 11
	loud_until "$size"
	begin=${quiet#@}
	loud=$((${EPOCHREALTIME%.*} - 1))
	if [ -n "$compress" ]; then
		compress_all
		loud=$((${begin%.*} - 2)) # not of the live file
	fi
	cut_out "ten quiet seconds" "$quiet" "@$((${begin%.*} + 10)).${begin#*.}"
	cut_out "half a loud second" "@$loud.0" "@$loud.5"
	flyrecd_stop
	if [ -z "$compress" ]; then
		split_one
	fi
	umount "$T/$fs"
	unset 'MOUNTS[-1]'
	rm -f "$T"/image.*
done
