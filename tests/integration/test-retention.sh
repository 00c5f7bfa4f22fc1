#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 200
# beside: yes
#
# Retention over many rotations: limits are honoured, the live file and files of others stay.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/finish-lib.sh"
need_tracefs
mkfs_mount ext4 400M "$T/mnt"
STATE=$T/mnt/state
EVENT=raw_syscalls

# what lies beside the segments, and looks a little like them
foreign() {
	mkdir -p "$(REC)"
	local f
	for f in notes.txt 20200101T000000.000000Z.dat.bak x20200101T000000.000000Z.dat important.dat; do
		head -c 100000 /dev/urandom >"$(REC)/$f"
		touch -d '2 years ago' "$(REC)/$f"
	done
	mkdir -p "$(REC)/20200101T000000.000000Z.dat"
}

foreign_there() {
	local f
	for f in notes.txt 20200101T000000.000000Z.dat.bak x20200101T000000.000000Z.dat important.dat; do
		[ "$(stat -c %s "$(REC)/$f")" = 100000 ] || fail "$1: $f is gone"
	done
	[ -d "$(REC)/20200101T000000.000000Z.dat" ] || fail "$1: a directory is gone"
	[ -e "$(REC)/current.dat" ] || fail "$1: current.dat is gone"
}

used() { # bytes of everything, others' files too
	du -s --block-size=1 "$(REC)" | cut -f1
}

free() {
	df --output=avail --block-size=1 "$T/mnt" | tail -n 1
}

clean() {
	mapfile -t files < <(find "$(REC)" -maxdepth 1 -type f -name "2*Z.dat" | sort)
	verify "${files[@]}"
}

burst() {
	"$TOOLS/storm" --count=60000 >/dev/null
}

rotate() { # wait for a rotation, or for the lack of data for one
	local before
	before=$(stat -c %i "$(REC)/current.dat")
	kill -USR2 "$FLYRECD_PID"
	rotated() { [ "$(stat -c %i "$(REC)/current.dat")" != "$before" ]; }
	wait_for 20 rotated || fail "no rotation"
	finished() { [ -z "$(find "$(REC)" -name '.*.finishing')" ]; }
	wait_for 20 finished || fail "not finished"
}

# --- MaxUse: never beyond it by more than one preallocation (a sixteenth) and what came in meanwhile
max_use=$((240 << 20))
storage MaxUse=240M MaxFileSize=24M FlushSec=100ms SyncIntervalSec=500ms KeepFree=0 MaxFiles=0
daemon_config <<-EOF
	LogLevel=debug
EOF
foreign
flyrecd_start
# at full speed a busy machine gets more between two looks than is allowed for
background "$TOOLS/storm" --rate=300000 --duration=100 >/dev/null
storm=$!
peak=0
for ((i = 0; i < 150; i++)); do
	u=$(used)
	[ "$u" -le "$peak" ] || peak=$u
	sleep 0.1
done
kill -TERM "$storm"
wait "$storm" || true
# and on a busy machine what comes in varies
slack=$((max_use / 8))
[ "$peak" -le $((max_use + slack + 500000)) ] || fail "MaxUse=240M, used $((peak >> 20)) MiB"
[ "$peak" -ge $((max_use / 2)) ] || fail "the test did not come near MaxUse ($((peak >> 20)) MiB)"
log_has 'retention removed' || fail "retention removed nothing"
foreign_there MaxUse
flyrecd_stop
clean MaxUse
echo "MaxUse=240M: peak $((peak >> 20)) MiB, $(n_segments) segments left"

# --- MaxFiles: the live one counts; the oldest go
forget
storage MaxUse=300M MaxFiles=4 FlushSec=100ms KeepFree=0
foreign
flyrecd_start
for i in 1 2 3 4 5 6; do
	burst
	rotate
	[ "$i" != 3 ] || newer=("$(REC)"/2*Z.dat)
done
live() { [ "$(find "$(REC)" -name '2*Z.dat' -type f | wc -l)" = 3 ]; }
wait_for 5 live || fail "MaxFiles=4: $(ls "$(REC)")"
[ ! -e "${newer[1]}" ] || fail "MaxFiles: ${newer[1]} should be gone, newer ones are"
foreign_there MaxFiles
flyrecd_stop

# --- MaxRetentionSec: by the time of the last write
forget
storage MaxUse=300M MaxRetentionSec=1h FlushSec=100ms SyncIntervalSec=300ms KeepFree=0
foreign
flyrecd_start
for i in 1 2 3; do
	burst
	rotate
done
files=()
for f in "$(REC)"/2*Z.dat; do
	[ ! -f "$f" ] || files+=("$f")
done
touch -d '61 minutes ago' "${files[1]}"
touch -d '59 minutes ago' "${files[2]}"
touch -d '2 hours ago' "$(REC)/current.dat"
burst
gone() { [ ! -e "${files[1]}" ]; }
wait_for 10 gone || fail "MaxRetentionSec: ${files[1]} is still there"
if [ ! -e "${files[0]}" ] || [ ! -e "${files[2]}" ]; then
	fail "MaxRetentionSec: too much is gone"
fi
foreign_there MaxRetentionSec
flyrecd_stop

# --- KeepFree: somebody else fills the disk, segments make way
forget
storage MaxUse=300M MaxFileSize=20M KeepFree=150M FlushSec=100ms SyncIntervalSec=300ms
foreign
flyrecd_start
for i in 1 2 3 4 5 6; do
	burst
	rotate
done
n=$(n_segments)
fallocate -l $(($(free) - (140 << 20))) "$T/mnt/other"
before=$(free)
burst
enough() { [ "$(free)" -ge $((150 << 20)) ]; }
wait_for 10 enough || fail "KeepFree=150M: $(($(free) >> 20)) MiB are free"
[ "$(n_segments)" -lt "$n" ] || fail "KeepFree: $before bytes were free and nothing is gone"
[ "$(n_segments)" -ge 1 ] || fail "KeepFree: more is gone than had to"
rm "$T/mnt/other"
foreign_there KeepFree
flyrecd_stop
clean KeepFree

# --- *.damaged: at most a quarter of MaxUse, the oldest go
forget
storage MaxUse=80M FlushSec=100ms SyncIntervalSec=300ms KeepFree=0
mkdir -p "$(REC)"
for i in 1 2 3 4; do
	head -c 8M /dev/urandom >"$(REC)/$i-20200101T000000.000000Z.damaged"
	touch -d "$((9 - i)) hours ago" "$(REC)/$i-20200101T000000.000000Z.damaged"
done
sync -f "$T/mnt"
flyrecd_start
burst
capped() { [ ! -e "$(REC)/1-20200101T000000.000000Z.damaged" ] && [ ! -e "$(REC)/2-20200101T000000.000000Z.damaged" ]; }
wait_for 10 capped || fail "damaged files are not capped: $(ls -s "$(REC)")"
for i in 3 4; do
	[ -e "$(REC)/$i-20200101T000000.000000Z.damaged" ] || fail "more damaged files are gone than had to"
done
flyrecd_stop
