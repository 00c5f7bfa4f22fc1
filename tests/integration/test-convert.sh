#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 600
#
# flyrecctl convert: version 6 → 7 → 6 and 7 → 7, compressed and not, with the same text by trace-cmd
# report at each step; full disks, kills, damaged files; and cat of a compressed segment.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd zstd python3
cd "$T"
name=${PREFIX}x

convert() { # OUT FILE OPTION...
	"$FLYRECCTL" convert -o "$1" "${@:3}" "$2" >convert.out 2>convert.err ||
		fail "convert ${*:3} $2: $(cat convert.err)"
	[ ! -s convert.out ] || fail "convert ${*:3} $2 prints something: $(head -n 1 convert.out)"
	[ ! -s convert.err ] || fail "convert ${*:3} $2: $(cat convert.err)"
}

# usage PATTERN ARGUMENT...: refused as wrong usage, in one line
usage() {
	local pattern=$1 status=0
	shift
	"$FLYRECCTL" "$@" >out 2>err || status=$?
	[ "$status" = 2 ] || fail "status $status, not 2: $*: $(cat err)"
	grep -qE -- "$pattern" err || fail "\"$(cat err)\" does not say $pattern: $*"
	[ "$(wc -l <err)" = 1 ] || fail "more than a line: $*: $(cat err)"
}

# What trace-cmd makes of it: its events, the names of tasks in it, its statistics
report() { # FILE TO
	trace-cmd report "$1" >"$2" 2>report.err || fail "trace-cmd report $1: $(head -n 3 report.err)"
	trace-cmd report --stat "$1" 2>/dev/null | grep -v "data recorded at offset=\|bytes in size" >"$2.stat"
}

version_of() {
	"$FLYRECCTL" verify "$1" | sed -n "1s/^.*: ok, version \([67]\),.*/\1/p"
}

# same FILE VERSION: as theirs.txt is
same() {
	local version
	version=$(version_of "$1")
	[ "$version" = "$2" ] || fail "$1: $("$FLYRECCTL" verify "$1" 2>&1 | head -n 3)"
	report "$1" ours.txt
	cmp -s theirs.txt ours.txt || {
		diff --text theirs.txt ours.txt | head -n 10
		fail "$1: trace-cmd report prints something else"
	}
	diff theirs.txt.stat ours.txt.stat >&2 || fail "$1: other statistics"
}

# round FILE: all ways. What trace-cmd cannot read as it is has no text to compare.
round() {
	local at
	report "$1" theirs.txt
	convert zstd.dat "$1" --compress=zstd
	same zstd.dat 7
	convert none.dat zstd.dat --version=7 --compress=no
	same none.dat 7
	convert six.dat none.dat
	same six.dat 6
	# the same bytes need no second look
	convert again.dat six.dat --version=7
	cmp -s again.dat none.dat || same again.dat 7
	convert six-again.dat "$1" --version=6
	cmp -s six-again.dat six.dat || same six-again.dat 6
	# chunks of whole sub-buffers, 1 MiB at most, each with a checksum
	at=$(LC_ALL=C grep -obUaP '\x28\xb5\x2f\xfd' zstd.dat | cut -d: -f1 | tail -n 1)
	[ $(($(od -An -t u1 -j $((at + 4)) -N 1 zstd.dat) & 4)) = 4 ] || fail "$1: no checksum"
	echo "$1: $(wc -l <theirs.txt) lines, $(stat -c %s six.dat) bytes, compressed $(stat -c %s zstd.dat)"
}

echo "== usage"
"$TOOLS/graph-dat" --seed=1 graph.dat
usage "one FILE is wanted" convert -o x
usage "output= is missing" convert graph.dat
usage "6 or 7 is wanted: \"5\"" convert --version=5 -o x graph.dat
usage "no or zstd is wanted: \"lz4\"" convert --compress=lz4 -o x graph.dat
usage "version 6 cannot be compressed" convert --version=6 --compress=zstd -o x graph.dat
usage "not an option of this verb" verify --version=7 graph.dat
usage "not an option of this verb" verify --compress=zstd graph.dat
usage "not with -H" -H nowhere convert -o x graph.dat
refused "graph.dat: is the file to convert" "$FLYRECCTL" convert -o graph.dat graph.dat
refused "none.dat: cannot open" "$FLYRECCTL" convert -o x none.dat
refused "not a trace.dat" "$FLYRECCTL" convert -o x "$SRC/README.md"
refused "standard input: not a trace.dat" "$FLYRECCTL" convert -o x - </dev/zero
refused "standard input: empty" "$FLYRECCTL" convert -o x - </dev/null
cp graph.dat copy.dat
exec 5<copy.dat
refused "copy.dat: is the file to convert" "$FLYRECCTL" convert -o copy.dat - <&5
exec 5<&-
[ ! -e x ] || fail "something was made"

echo "== files of all kinds"
mkdir in
mv graph.dat in
gzip -dc "$SRC/tests/fixtures/qemu4v/ids-60001.dat.gz" >in/ids.dat
cat >work <<-'END'
	#!/bin/sh
	"$TOOLS/storm" --count="$1"
	ls -R /usr/share/doc >/dev/null
END
chmod +x work
export TOOLS
peer_record in/load.dat "$name" -b 8192 -e sched -e raw_syscalls -- ./work 6000
mkdir "$TRACEFS/instances/$name.more"
peer_record in/two.dat "$name" -e sched:sched_switch -B "$name.more" -e raw_syscalls -- ./work 500
peer_record in/counter.dat "$name" -C counter -e sched -- ./work 10
peer_record in/seven.dat "$name" --file-version 7 --compression zstd -e sched -- ./work 1000
for file in "$SRC"/../shared/data/trace-dat/*; do
	case $file in
	*.dat.zst) zstd -qd -o "in/$(basename "$file" .zst)" "$file" ;;
	*.dat) cp "$file" in/ ;;
	esac
done
for file in in/*.dat; do
	round "$file"
done

echo "== task names whose last line was cut off"
python3 -c 'import sys
data = bytearray(open("in/load.dat", "rb").read())
end = data.index(b"options  \0") - 4 # of the names; the number of CPUs follows
assert data[end - 1] == ord("\n")
data[end - 1] = ord("x")
open("cut-name.dat", "wb").write(data)' || fail "in/load.dat"
report cut-name.dat theirs.txt
convert zstd.dat cut-name.dat --compress=zstd
same zstd.dat 7
convert six.dat zstd.dat
same six.dat 6
convert again.dat six.dat --compress=zstd
cmp zstd.dat again.dat || fail "version 7 of version 6 of it"

echo "== a large file, in little memory, to files and pipes"
peer_record large.dat "$name" -b 65536 -e raw_syscalls -- ./work 100000
(
	# kB; sanitizers take more than there is
	has_sanitizers || ulimit -d $((40 * 1024))
	"$FLYRECCTL" convert --compress=zstd -o zstd.dat large.dat
	"$FLYRECCTL" convert -o six.dat zstd.dat
) || fail "large.dat"
report large.dat theirs.txt
same zstd.dat 7
same six.dat 6
at=$(($(stat -c %s zstd.dat) * 4))
[ "$at" -lt "$(stat -c %s large.dat)" ] || fail "only to $(stat -c %s zstd.dat) of $(stat -c %s large.dat)"
"$FLYRECCTL" convert -o - zstd.dat | cmp - six.dat || fail "version 6 through a pipe"
"$FLYRECCTL" convert --compress=zstd -o - six.dat | cmp - zstd.dat || fail "version 7 through a pipe"
# a pipe is read to its end before anything of it is converted; a file is read where it is
"$FLYRECCTL" convert --compress=zstd -o - - < <(cat six.dat) | cmp - zstd.dat || fail "version 6 from a pipe"
"$FLYRECCTL" convert -o - - < <(cat zstd.dat) | cmp - six.dat || fail "version 7 from a pipe"
TMPDIR=/nowhere "$FLYRECCTL" convert -o again.dat - <zstd.dat || fail "a file on standard input"
cmp six.dat again.dat
head -c $((at / 8)) zstd.dat >cut.dat
! "$FLYRECCTL" convert -o cut.file.dat cut.dat 2>cut.file || fail "convert of a cut file succeeds"
! "$FLYRECCTL" convert -o cut.pipe.dat - < <(cat cut.dat) 2>cut.pipe || fail "convert of a cut pipe succeeds"
cmp cut.file.dat cut.pipe.dat || fail "from a pipe that was cut"
sed 's/standard input: /cut.dat: /' cut.pipe | cmp - cut.file || fail "a cut pipe: $(head -n 3 cut.pipe)"
# a sparse file, as it is recorded, becomes a dense one
"$FLYRECCTL" convert -o again.dat six.dat
cmp six.dat again.dat
[ "$(stat -c %a zstd.dat)" = 600 ] || fail "others may read what was converted"

echo "== full disks"
mkfs_mount tmpfs 1M small
for to in --version=6 --compress=zstd; do
	refused "cannot write: No space left" "$FLYRECCTL" convert "$to" -o small/x.dat six.dat
	[ -z "$(ls -A small)" ] || fail "left: $(ls -A small)"
done
mkdir small/temporary
TMPDIR=small/temporary refused "cannot write: No space left" \
	"$FLYRECCTL" convert --version=7 --compress=no -o - six.dat
TMPDIR=small/temporary refused "cannot write a temporary file: No space left" \
	"$FLYRECCTL" convert -o x - < <(cat six.dat 2>/dev/null)
[ -z "$(ls -A small/temporary)" ] || fail "left: $(ls -A small/temporary)"
[ -z "$(ls -A small/temporary)" ] || fail "left: $(ls -A small/temporary)"

echo "== killed"
mkdir dir
if ! nm -D "$FLYRECCTL" | grep -q __asan_init; then
	FLYREC_FAULT_POINT=file-confined background "$FLYRECCTL" convert --compress=zstd -o dir/x.dat six.dat
	pid=$!
	reader=''
	stopped() {
		reader=$(pgrep -P "$pid") && [ "$(process_state "$reader")" = T ]
	}
	writes() {
		[ "$(sed -n 's/^wchar: //p' "/proc/$reader/io")" -gt 0 ]
	}
	wait_for 10 stopped || fail "does not begin"
	kill -CONT "$reader"
	wait_for 10 writes || fail "writes nothing"
	kill -STOP "$reader" # as metadata alone takes longer than this did
	kill -KILL "$pid"
	wait_for 10 ended "$pid"
	gone() { ! kill -0 "$reader" 2>/dev/null; }
	wait_for 10 gone || fail "the process that reads goes on"
	[ -z "$(ls -A dir)" ] || fail "left: $(ls -A dir)"
fi
# a file that was not finished: its options are written last
cp zstd.dat bad.dat
place=$((18 + 5 + $(tail -c +24 zstd.dat | head -c 16 | tr '\0' '\n' | head -n 1 | wc -c)))
at=$(od -An -t u8 -j "$place" -N 8 zstd.dat | tr -d ' ')
head -c 8 /dev/zero | dd of=bad.dat bs=1 seek="$place" conv=notrunc status=none
! "$FLYRECCTL" verify bad.dat >out 2>&1 || fail "verify finds nothing"
grep -q "the file was not finished" out || fail "$(cat out)"
[ "$(od -An -t u2 -j "$at" -N 2 zstd.dat | tr -d ' ')" = 0 ] || fail "no options at $at"

echo "== damaged"
# damaged FILE PATTERN: told, with the place, and the rest is written
damaged() {
	local to status
	for to in --version=6 --compress=zstd; do
		status=0
		rm -f out.dat
		"$FLYRECCTL" convert "$to" -o out.dat "$1" >out 2>err || status=$?
		[ "$status" = 1 ] || fail "convert $to $1: status $status: $(cat err)"
		grep -qE "^(flyrecctl: )?$1: offset 0x[0-9a-f]+( \(unpacked 0x[0-9a-f]+\))?: .*$2" err ||
			fail "convert $to $1 does not say \"$2\": $(head -n 3 err)"
		[ -s out.dat ] || fail "convert $to $1: nothing is written"
		verify out.dat
		trace-cmd report out.dat >rest.txt 2>/dev/null || fail "trace-cmd report of what is left of $1"
		[ "$(wc -l <rest.txt)" -gt $(($(wc -l <theirs.txt) / 10)) ] ||
			fail "$1: only $(wc -l <rest.txt) of $(wc -l <theirs.txt) lines"
		[ "$(wc -l <rest.txt)" -lt "$(wc -l <theirs.txt)" ] || fail "$1: not damaged at all"
		grep -v "EVENTS\|^cpus=" rest.txt | sed -E 's/^[^[]*//' | LC_ALL=C sort >rest.sorted
		LC_ALL=C comm -13 theirs.sorted rest.sorted >new.txt
		[ ! -s new.txt ] || fail "$1: $(wc -l <new.txt) lines that are not in the file: $(head -n 3 new.txt); its: $(head -n 3 theirs.sorted)"
	done
}
report in/load.dat theirs.txt
convert zstd.dat in/load.dat --compress=zstd
convert six.dat in/load.dat
grep -v "EVENTS\|^cpus=" theirs.txt | sed -E 's/^[^[]*//' | LC_ALL=C sort >theirs.sorted
# the place of a whole chunk's frame: 1048576 bytes, as its head says
chunk=''
while read -r at; do
	[ "$(od -An -t u4 -j $((at - 4)) -N 4 zstd.dat | tr -d ' ')" != 1048576 ] || chunk=${chunk:-$at}
done < <(LC_ALL=C grep -obUaP '\x28\xb5\x2f\xfd' zstd.dat | cut -d: -f1)
[ -n "$chunk" ] || fail "no chunk of 1 MiB"
cp zstd.dat bad.dat
printf '\0' | dd of=bad.dat bs=1 seek="$chunk" conv=notrunc status=none
damaged bad.dat "wrong magic of zstd"
grep -q "EVENTS\|LOST" rest.txt || fail "nothing says that events are missing"
head -c $(((chunk + $(stat -c %s zstd.dat)) / 2)) zstd.dat >bad.dat
damaged bad.dat "the file ends|was not finished|past the end|behind the end"
head -c $(($(stat -c %s six.dat) * 9 / 10)) six.dat >bad.dat
damaged bad.dat "past the end of the file|behind the end"
head -c 1000 zstd.dat >bad.dat
! "$FLYRECCTL" convert -o x bad.dat >out 2>err || fail "convert of a file without formats succeeds"
[ ! -e x ] || fail "something was made"

echo "== cat"
session load <<-EOF
	[Trace]
	Event=sched:sched_process_exit
	BufferSize=4M
	[Storage]
	FlushSec=100ms
	KeepFree=0
EOF
flyrecd_start
markers_start load 20000
sleep 1 # of markers
ctl rotate load >rotated
markers_stop
file=$(cat rotated)
cp "$file" was.dat
report was.dat theirs.txt
convert six.dat was.dat
convert zstd.dat was.dat --compress=zstd
cat zstd.dat >"$file"
ctl cat load "$file" >cat.dat
cmp cat.dat six.dat || fail "cat of a compressed segment is not what convert makes of it"
same cat.dat 6
ctl cat load "$(basename "$file")" -o cat.dat
cmp cat.dat six.dat || fail "cat -o of a compressed segment"
ctl cat --raw load "$file" >cat.dat
cmp cat.dat zstd.dat || fail "cat --raw"
printf '\0' | dd of="$file" bs=1 seek="$(LC_ALL=C grep -obUaP '\x28\xb5\x2f\xfd' zstd.dat | cut -d: -f1 |
	awk -v n="$(stat -c %s zstd.dat)" '$1 > n / 2 { print; exit }')" conv=notrunc status=none
rm cat.dat
refused "wrong magic" ctl cat load "$file" -o cat.dat
verify cat.dat
flyrecd_stop
