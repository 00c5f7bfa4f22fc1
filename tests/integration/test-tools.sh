#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# The test tools judge the recorder, so they are tested on files of trace-cmd's, and each must be
# able to say no.
# time-limit: 120
# tests: fast
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd
need_tool check-markers libtracecmd-open
cd "$T"

must_fail() {
	! "$@" >"$T/out" 2>&1 || fail "should have failed: $*"
}

in_output() {
	grep -q "$1" "$T/out" || fail "not in the output: $1: $(cat "$T/out")"
}

record() { # FILE INSTANCE COMMAND...
	peer_record "$1" "$2" -e sched:sched_wakeup -b 8192 -- "${@:3}"
}

echo "== markers and check-markers"
name=${PREFIX}m
record a.dat "$name" "$TOOLS/markers" --instance="$name" --count=20000
grep '^cpu=' peer-record.log >a.txt
"$TOOLS/check-markers" --expect=a.txt a.dat
record b.dat "$name" "$TOOLS/markers" --instance="$name" --rate=2000 --duration=0.5 --continue=a.txt
grep '^cpu=' peer-record.log >b.txt
"$TOOLS/check-markers" --expect=a.txt --expect=b.txt b.dat a.dat
grep -q 'first=20000' b.txt || fail "markers --continue did not continue"

must_fail "$TOOLS/check-markers" --expect=a.txt b.dat
in_output 'found=0 lost='
must_fail "$TOOLS/check-markers" --expect=a.txt --expect=b.txt a.dat
"$TOOLS/check-markers" --expect=a.txt --expect=b.txt --allow-lost-at-end a.dat >/dev/null
must_fail "$TOOLS/check-markers" --expect=a.txt --expect=b.txt b.dat
"$TOOLS/check-markers" --expect=a.txt --expect=b.txt --allow-lost-at-start b.dat >/dev/null
must_fail "$TOOLS/check-markers" --expect=a.txt a.dat a.dat
in_output 'doubled=20000'
# the same two files in the wrong order of names
ln a.dat 2.dat
ln b.dat 1.dat
must_fail "$TOOLS/check-markers" --expect=a.txt --expect=b.txt 1.dat 2.dat
in_output 'out_of_order=20000'
sed 's/last=19999/last=20002/' a.txt >c.txt
cpus=$(wc -l <a.txt)
must_fail "$TOOLS/check-markers" --expect=c.txt --max-lost=$((3 * cpus - 1)) a.dat
"$TOOLS/check-markers" --expect=c.txt --max-lost=$((3 * cpus)) a.dat >/dev/null
must_fail "$TOOLS/markers" --instance="${PREFIX}missing" --count=1

echo "== markers --retry waits for a missing instance"
background "$TOOLS/markers" --instance="$name" --count=3 --retry >retry.txt
sleep 0.2
mkdir "$TRACEFS/instances/$name"
wait_for 5 ended $! || fail "markers --retry does not end"
grep -q '^cpu=0 first=0 last=2$' retry.txt || fail "markers --retry: $(cat retry.txt)"
grep -q 'seq=2$' "$TRACEFS/instances/$name/trace" || fail "the markers are not in the trace"
background "$TOOLS/markers" --instance="$name" --rate=100 >term.txt
sleep 0.3
kill -TERM $!
wait_for 5 ended $! || fail "markers does not end on SIGTERM"
grep -q '^cpu=0 first=0 last=[1-9]' term.txt || fail "markers on SIGTERM: $(cat term.txt)"
rmdir "$TRACEFS/instances/$name"

echo "== libtracecmd-open counts what trace-cmd report counts"
"$TOOLS/libtracecmd-open" a.dat >open.txt
records=$(sed -n 's/^total records=//p' open.txt)
lines=$(trace-cmd report a.dat 2>/dev/null | grep -c ' \[[0-9]*\] ')
[ "$records" = "$lines" ] || fail "libtracecmd-open: $records records, trace-cmd: $lines lines"
head -c 1000 a.dat >cut.dat
must_fail "$TOOLS/libtracecmd-open" cut.dat

echo "== seed-reader agrees with tracefs, and finds changed bytes"
PEER_NAMES=still "$SRC/tests/tools/peer-trace-cmd" record --file-version 6 -o s.dat -e sched \
	"$TOOLS/storm" --count=1000 >out 2>&1 || fail "trace-cmd: $(cat out)"
"$TOOLS/seed-reader" --compare-tracefs=/ s.dat
flip() { # STRING: a copy with the first byte of its first occurrence changed
	local at
	at=$(grep -abo -m 1 -- "$1" s.dat | head -n 1 | cut -d: -f1)
	cp s.dat flipped.dat
	printf '~' | dd of=flipped.dat bs=1 seek="$at" conv=notrunc status=none
}
for string in 'local_t commit' 'type_len' 'common_preempt_count' 'prev_comm' ' T _stext' \
	'tracing' 'flyrecord'; do
	flip "$string"
	must_fail "$TOOLS/seed-reader" --compare-tracefs=/ flipped.dat
	in_output '^FAULT at '
done
for size in 5 20 1000 100000; do
	head -c "$size" s.dat >cut.dat
	must_fail "$TOOLS/seed-reader" cut.dat
done
head -c -4096 s.dat >cut.dat
must_fail "$TOOLS/seed-reader" cut.dat
in_output 'beyond the end of the file'
PEER_NAMES=still "$SRC/tests/tools/peer-trace-cmd" record --file-version 6 -o p.dat -e sched:sched_switch \
	sleep 0.5 >out 2>&1 || fail "trace-cmd: $(cat out)"
"$TOOLS/seed-reader" --compare-tracefs=/ --allow-partial-systems p.dat >out || fail "$(cat out)"

echo "== live-reader"
"$SRC/tests/tools/live-reader" s.dat 1 "$TOOLS/seed-reader"
must_fail "$SRC/tests/tools/live-reader" cut.dat 1 "$TOOLS/seed-reader"
in_output '^runs=.* failures=[1-9]'

echo "== storm and forkstorm"
"$TOOLS/storm" --duration=0.2 --cpus=0 | grep -q '^cpu=0 calls=[1-9]' || fail "storm"
"$TOOLS/forkstorm" --count=200 --list=tasks.txt | grep -q '^tasks=200 ' || fail "forkstorm"
[ "$(cut -d' ' -f2 tasks.txt | sort -u | wc -l)" = 200 ] || fail "forkstorm: $(head tasks.txt)"
"$TOOLS/forkstorm" --count=50 --exec --prefix=x- | grep -q '^tasks=50 ' || fail "forkstorm --exec"
must_fail "$TOOLS/forkstorm" --count=1 --prefix=sixteen-letters-

echo "== fdstore-run keeps fds over SIGKILL, as systemd does"
mkdir manager
background "$TOOLS/fdstore-run" --dir=manager "$TOOLS/fdstore-client" >client.txt
manager=$!
started() {
	[ "$(grep -cs 'READY=1' manager/log)" = "$1" ]
}
wait_for 5 started 1 || fail "fdstore-client does not start: $(cat client.txt)"
first=$(cat manager/pid)
kill -KILL "$first"
wait_for 5 started 2 || fail "fdstore-run did not restart it: $(cat manager/log)"
grep -q "^pid=$first$" client.txt || fail "the pipe's content was lost: $(cat client.txt)"
grep -q '^fds=2$' client.txt || fail "wrong number of fds: $(cat client.txt)"
grep -q '^removed broken$' manager/log || fail "a broken pipe stayed in the store"
[ "$(grep -c '^stored .* pipe$' manager/log)" = 2 ] || fail "stored twice: $(cat manager/log)"
# restarted on command: SIGHUP ends it by a signal that is not SIGKILL, so it ends for good
echo 'stop HUP' >manager/control
wait_for 5 ended "$manager" || fail "fdstore-run does not stop"
status=0
wait "$manager" || status=$?
[ "$status" = 129 ] || fail "fdstore-run ended with $status"
status=0
"$TOOLS/fdstore-run" --dir=manager sh -c 'exit 3' || status=$?
[ "$status" = 3 ] || fail "fdstore-run does not pass the status on: $status"

echo "== notify-listen"
background "$TOOLS/notify-listen" "$T/socket" "$T/notified"
listener=$!
wait_for 5 test -S socket || fail "notify-listen does not start"
NOTIFY_SOCKET=$T/socket background "$TOOLS/fdstore-client" >/dev/null
wait_for 5 grep -qs "^$!: READY=1" notified || fail "notify-listen: $(cat notified)"
kill -TERM "$listener" $!

echo "== file systems on loop devices"
for fs in ext4 xfs btrfs tmpfs; do
	(command -v "mkfs.$fs" || [ $fs = tmpfs ]) >/dev/null || continue
	mkfs_mount $fs 400M "$T/$fs"
	mount | grep -q " $T/$fs type $fs " || fail "not $fs"
	echo data >"$T/$fs/file"
done
