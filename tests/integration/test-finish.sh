#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 700
#
# A finished file is dense where the file system can make it so, complete, and opens in trace-cmd; who
# reads while files are finished is never hurt; a file that is held open is made dense later.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
need_tool check-markers
need_command trace-cmd jq dbus-monitor
FINISHES=${FINISHES:-$(thorough && echo 200 || echo 50)}

opens() { # FILE WHAT
	trace-cmd report "$1" >"$T/report" 2>"$T/report.err" || fail "$2: trace-cmd: $(head -n 3 "$T/report.err")"
	[ ! -s "$T/report.err" ] || fail "$2: trace-cmd: $(head -n 3 "$T/report.err")"
	grep -q 'flyrec-test cpu=' "$T/report" || fail "$2: trace-cmd shows no marker"
}

# --- file systems, by rotation and by stop
on() { # NAME FS SIZE SLACK [MKFS-OPTION...]: SLACK: bytes that may differ: holes in the header, last units
	local name=$1 slack=$4 file
	mkfs_mount "$2" "$3" "$T/$1" "${@:5}"
	STATE=$T/$1/state
	# 64 MiB chunks of preallocation are what has to be given back
	storage MaxUse=300M FlushSec=200ms
	flyrecd_start
	write_markers 100000
	kill -USR2 "$FLYRECD_PID"
	wait_for 60 has_segments 1 || fail "$name: no rotation"
	write_markers 100000
	flyrecd_stop
	all_right "$name"
	for file in "$(REC)"/2*.dat; do
		opens "$file" "$name"
		if [ "$slack" = sparse ]; then
			[ $(($(stat -c %b "$file") * 512)) -lt $(($(stat -c %s "$file") / 2)) ] ||
				fail "$name: $(stat -c '%s bytes long, %b blocks' "$file")"
		else
			is_dense "$file" "$slack" ||
				fail "$name: not dense: $(stat -c '%s bytes long, %b blocks' "$file")"
		fi
	done
	echo "$name: $(stat -c '%s bytes long, %b blocks' "$file")"
	forget
	umount "$T/$name"
	unset 'MOUNTS[-1]'
}

on ext4 ext4 600M 98304
on ext4-1k ext4 600M 98304 -b 1024
on ext4-64k-clusters ext4 600M 262144 -O bigalloc -C 65536
on xfs xfs 600M 98304
on xfs-1k xfs 600M 98304 -b size=1024
command -v mkfs.btrfs >/dev/null && on btrfs btrfs 600M 262144
on tmpfs tmpfs 600M sparse

# --- held open: sparse under its archive name; dense after the holder has closed it, with the
# time of its last data
held_open() { # FS
	local mtime
	storage MaxUse=300M FlushSec=200ms SyncIntervalSec=300ms
	flyrecd_start
	write_markers 20000
	sleep 0.5
	exec 9<"$(REC)/current.dat"
	kill -USR2 "$FLYRECD_PID"
	wait_for 60 has_segments 1 || fail "held open, $1: no rotation"
	file=$(echo "$(REC)"/2*.dat)
	opens "$file" "held open, $1"
	is_dense "$file" && fail "held open, $1: $file was collapsed under its reader"
	ctl pin "$file"
	mtime=$(stat -c %Y "$file")
	write_markers 2000
	sleep 1.5
	is_dense "$file" && fail "still held open, $1: $file was collapsed under its reader"
	exec 9<&-
	for _ in 1 2 3 4 5 6 7 8 9 10; do # a sync is made only where something was recorded
		write_markers 1000
		sleep 0.3
		! dense || break
	done
	dense || fail "closed again, $1: $file stays sparse"
	[ "$(stat -c %Y "$file")" -le $((mtime + 1)) ] || fail "made dense later, $1: $file looks younger than it is"
	ctl --json list s | jq -e --arg f "$file" '.files[] | select(.path == $f) | .pinned' >/dev/null ||
		fail "made dense later, $1: $file is no longer pinned"
	opens "$file" "made dense later, $1"
	flyrecd_stop
	all_right "held open, $1"
	forget
}

dense() { is_dense "$file" 2>/dev/null; } # it has no name for a moment
for fs in btrfs ext4; do
	command -v "mkfs.$fs" >/dev/null || continue
	mkfs_mount $fs 600M "$T/hold-$fs"
	STATE=$T/hold-$fs/state
	held_open $fs
done

# --- held open at the stop: the next run makes it dense
storage MaxUse=300M FlushSec=200ms SyncIntervalSec=300ms
flyrecd_start
write_markers 20000
exec 9<"$(REC)/current.dat"
flyrecd_stop
exec 9<&-
file=$(echo "$(REC)"/2*.dat)
is_dense "$file" && fail "held open at the stop: collapsed under its reader"
flyrecd_start
write_markers 1000
wait_for 10 dense || fail "the next run leaves $file sparse"
flyrecd_stop
all_right "held open at the stop"
forget

# --- a file that cannot be finished is when that is possible, without a restart
faulty_flyrecd
storage MaxUse=300M FlushSec=200ms SyncIntervalSec=300ms
echo finish-rename >"$T/fault"
flyrecd_start
background dbus-monitor --address "unix:path=$RUNTIME/control" "member='SegmentFinished'" >"$T/signals" 2>&1
write_markers 5000
kill -USR2 "$FLYRECD_PID"
wait_for 20 flyrecd_stopped_itself || fail "it does not come to finishing"
hidden=$(find "$(REC)" -name '.*.finishing')
name=${hidden##*/.}
mkdir "$(REC)/${name%.finishing}"
kill -CONT "$FLYRECD_PID"
wait_for 10 log_has "s: cannot rename .*; what is left to do is tried again" || fail "it has been finished: $(ls -la "$(REC)")"
rmdir "$(REC)/${name%.finishing}"
for _ in 1 2 3 4 5 6 7 8 9 10; do
	write_markers 1000
	sleep 0.3
	! has_segments 1 || break
done
has_segments 1 || fail "it is not tried again: $(ls -A "$(REC)")"
file=$(echo "$(REC)"/2*.dat)
announced() { grep -q "string \"$file\"" "$T/signals"; }
wait_for 5 announced || fail "it is not announced: $(cat "$T/signals")"
flyrecd_stop
all_right "finished later"
forget
FLYRECD=$BUILD/flyrecd

# --- readers in a loop. A name may be gone when they come to it, nothing else may happen.
reader() { # WHICH LOG
	local file status n=0
	trap 'echo "$n reads" >>"$2.n"; exit 0' TERM
	while [ ! -e "$T/enough" ]; do
		if [ "$1" = live ]; then
			file=$(REC)/current.dat
		else
			file=$(find "$(REC)" -name '2*.dat' 2>/dev/null | sort | tail -n $((RANDOM % 3 + 1)) | head -n 1)
			[ -n "$file" ] || continue
		fi
		status=0
		trace-cmd report "$file" >"$2.out" 2>"$2.err" || status=$?
		n=$((n + 1))
		! grep -q 'No such file' "$2.err" || continue
		if [ $status != 0 ] || grep -qi 'truncated\|error\|unexpected' "$2.err"; then
			echo "$file: status $status: $(head -n 3 "$2.err")" >>"$2"
		fi
	done
	echo "$n reads" >>"$2.n"
}

storage MaxUse=400M MaxFiles=20 KeepFree=0 FlushSec=100ms SyncIntervalSec=300ms
flyrecd_start
markers_begin --rate=3000
for which in live archive archive; do
	background reader "$which" "$T/reader.$which.$RANDOM"
done
never_missing() { # current.dat is there at every look
	while [ ! -e "$T/enough" ]; do
		[ -e "$(REC)/current.dat" ] || echo "current.dat was missing" >>"$T/reader.missing"
	done
}
background never_missing
rotations=0 before=''
SECONDS=0
while [ $rotations -lt "$FINISHES" ] && [ $SECONDS -lt 400 ]; do
	kill -USR2 "$FLYRECD_PID"
	sleep 0.05
	now=$(stat -c %i "$(REC)/current.dat" 2>/dev/null) || continue
	[ "$now" = "$before" ] || rotations=$((rotations + 1))
	before=$now
done
touch "$T/enough"
markers_end
[ $rotations -ge "$FINISHES" ] || fail "only $rotations of $FINISHES rotations in $SECONDS s"
for pid in "${CHILDREN[@]:(-4)}"; do
	wait "$pid" || true
done
for log in "$T"/reader.*; do
	case $log in
	*.n) echo "$(basename "$log" .n): $(cat "$log")" ;;
	*.out | *.err) ;;
	*) fail "a reader was hurt: $(head -n 5 "$log")" ;;
	esac
done
flyrecd_stop
all_right "read all the time" --allow-lost-at-start
echo "$rotations finishes in $SECONDS s"
