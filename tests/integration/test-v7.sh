#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 400
#
# trace.dat files of version 7: those of the installed trace-cmd, recorded and converted (others are in
# test-foreign.sh). verify finds nothing, the text is what trace-cmd report prints. Of files that were
# cut or damaged verify tells where, and the rest is read, with little memory.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd
need_tool json-compare
cd "$T"
name=${PREFIX}x

# same FILE [LINES]: nothing is wrong, text as trace-cmd report's
same() {
	"$FLYRECCTL" verify "$1" >verify.txt 2>&1 || fail "verify $1: $(head -n 3 verify.txt)"
	grep -q "^$1: ok, version 7," verify.txt || fail "verify $1: $(head -n 1 verify.txt)"
	trace-cmd report "$1" >theirs.txt 2>theirs.err || fail "trace-cmd report $1: $(cat theirs.err)"
	"$FLYRECCTL" export --format=text -o ours.txt "$1" || fail "export $1"
	cmp -s ours.txt theirs.txt || {
		diff --text theirs.txt ours.txt | head -n 10
		fail "$1: not what trace-cmd report prints"
	}
	[ "$(wc -l <ours.txt)" -gt "${2:-10}" ] || fail "$1: too little in it"
	"$FLYRECCTL" export --format=json "$1" >ours.json || fail "export --format=json $1"
	"$TOOLS/json-compare" "$1" <ours.json || fail "$1: JSON"
	echo "$1: $(wc -l <ours.txt) lines"
}

# convert COMPRESSION FROM TO
convert() {
	trace-cmd convert --file-version 7 --compression "$1" -i "$2" -o "$3" >convert.log 2>&1 ||
		fail "trace-cmd convert: $(cat convert.log)"
}

peek() { # FILE OFFSET SIZE: a number
	od -An -t "u$3" -j "$2" -N "$3" "$1" | tr -d ' '
}

poke() { # FILE OFFSET SIZE NUMBER
	local n=$4
	for _ in $(seq "$3"); do
		# shellcheck disable=SC2059
		printf "\\x$(printf %x $((n & 255)))"
		n=$((n >> 8))
	done | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# faulty FILE TEXT: verify names it, with a place in the file
faulty() {
	! "$FLYRECCTL" verify "$1" >verify.txt 2>&1 || fail "verify of $1 finds nothing"
	grep -Eq "^$1: offset 0x[0-9a-f]+( \(unpacked 0x[0-9a-f]+\))?: .*$2" verify.txt ||
		fail "verify $1 does not say \"$2\": $(grep offset verify.txt | head -n 4)"
}

# Without the tasks, whose names are those that events before tell
events() { # FILE
	sed -E 's/^[^[]*//' "$1" | LC_ALL=C sort
}

# rest FILE LEAST MOST: so many lines of it can still be exported, each of them one of the whole file
rest() {
	local n
	! "$FLYRECCTL" export --format=text "$1" >rest.txt 2>rest.err || fail "export of $1 succeeds"
	events rest.txt | LC_ALL=C comm -13 whole.sorted - >rest.new
	[ ! -s rest.new ] || fail "$1: lines that are not in the file: $(head -n 3 rest.new)"
	n=$(wc -l <rest.txt)
	if [ "$n" -lt "$2" ] || [ "$n" -gt "$3" ]; then
		fail "$1: $n lines, not $2 to $3"
	fi
	echo "$1: $n of $(wc -l <whole.txt) lines"
}

# --- what trace-cmd writes

cat >work <<-'END'
	#!/bin/sh
	"$TOOLS/storm" --count="$1"
	ls -R /usr/share/doc >/dev/null
END
chmod +x work
export TOOLS

echo "== recorded"
for compression in none zstd; do
	peer_record "rec-$compression.dat" "$name" --file-version 7 --compression "$compression" \
		-b 8192 -e sched -e raw_syscalls -- ./work 5000
	same "rec-$compression.dat"
done
peer_record clock.dat "$name" --file-version 7 -C counter -e sched -- ./work 10
same clock.dat
mkdir "$TRACEFS/instances/$name.more"
peer_record two.dat "$name" --file-version 7 -e sched:sched_switch -B "$name.more" -e raw_syscalls \
	-- ./work 1000
same two.dat

echo "== converted"
"$TOOLS/graph-dat" --seed=1 graph.dat
for compression in none zstd; do
	convert $compression graph.dat "graph-$compression.dat"
	same "graph-$compression.dat"
done

echo "== a large file, in little memory"
peer_record large6.dat "$name" -b 65536 -e raw_syscalls -- ./work 200000
convert zstd large6.dat large.dat
"$FLYRECCTL" export --format=text --output=large6.txt large6.dat
(
	# kB: threads' stacks and what formats take included; sanitizers take more than there is
	has_sanitizers || ulimit -d $((64 * 1024))
	"$FLYRECCTL" verify large.dat >verify.txt
	"$FLYRECCTL" export --format=text --output=large.txt large.dat
) || fail "large.dat: $(cat verify.txt)"
cmp large6.txt large.txt
echo "$(wc -l <large.txt) events, $(stat -c %s large6.dat) bytes, compressed $(stat -c %s large.dat)"
at=$(tail -n 1 large.txt | sed -E 's/^.*\] +([0-9]+\.[0-9]+):.*/\1/')
"$FLYRECCTL" export --format=text --since="$at" large.dat >late.txt 2>&1
[ "$(tail -n 1 late.txt)" = "$(tail -n 1 large.txt)" ] || fail "since $at: $(tail -n 1 late.txt)"
[ "$(wc -l <late.txt)" -lt 1000 ] || fail "since $at: $(wc -l <late.txt) lines"
rm large6.txt large.txt large6.dat large.dat

# --- what is wrong

echo "== cut"
cp rec-zstd.dat whole.dat
"$FLYRECCTL" export --format=text whole.dat >whole.txt
events whole.txt >whole.sorted
lines=$(wc -l <whole.txt)
size=$(stat -c %s whole.dat)
place=$(peek whole.dat 29 8) # behind "zstd", its version of 5 digits
[ "$place" -lt "$size" ] || fail "options at $place?"
middle=$(((place + size) / 2)) # they are in front of the data
head -c $((size - 200)) whole.dat >cut.dat
faulty cut.dat "the section runs past the end of the file|behind the end of the file"
head -c $middle whole.dat >cut.dat
faulty cut.dat "the file ends before"
! "$FLYRECCTL" export --format=text cut.dat >rest.txt 2>rest.err || fail "export of a cut file succeeds"
[ "$(wc -l <rest.txt)" -gt $((lines / 10)) ] || fail "only $(wc -l <rest.txt) of $lines lines"
head -c 3000 whole.dat >cut.dat
faulty cut.dat "compressed bytes do not fit"

echo "== never finished"
cp whole.dat bad.dat
poke bad.dat 29 8 0
faulty bad.dat "the file was not finished"
! "$FLYRECCTL" export --format=text bad.dat >rest.txt 2>rest.err || fail "export of $1 succeeds"
[ "$(wc -l <rest.txt)" = "$lines" ] || fail "$(wc -l <rest.txt) of $lines lines: $(cat rest.err)"

echo "== damaged chunks"
# the first magic of zstd behind the middle of the data is that of a chunk
damage() { # NAME OFFSET SIZE NUMBER: written so far from it
	local at
	at=$(LC_ALL=C grep -obUaP '\x28\xb5\x2f\xfd' whole.dat | cut -d: -f1 |
		awk -v least=$middle '$1 > least { print; exit }')
	cp whole.dat bad.dat
	poke bad.dat $((at + $2)) "$3" "$4"
	where=$(printf '0x%x' "$at")
	head=$(printf '0x%x' $((at - 8)))
}
damage magic 0 1 0
faulty bad.dat "wrong magic of zstd: 00 b5 2f fd"
grep -q "offset $where: wrong magic" verify.txt || fail "not at $where: $(cat verify.txt)"
rest bad.dat $((lines / 3)) $((lines - 1))
damage unpacked -4 4 4096
faulty bad.dat "compressed here.* 4096 .*it says"
rest bad.dat $((lines / 3)) $((lines - 1))
damage packed -8 4 $((1 << 30))
faulty bad.dat "a chunk of 1073741824 bytes"
grep -q "offset $head: " verify.txt || fail "not at $head: $(cat verify.txt)"
rest bad.dat $((lines / 3)) $((lines - 1))

echo "== other compression"
cp whole.dat bad.dat
printf zlib | dd of=bad.dat bs=1 seek=18 conv=notrunc status=none
faulty bad.dat "compressed with zlib, which is not supported"

# --- segments of a session

echo "== list, tail and snapshots of segments that became version 7"
small_segments load "sched:sched_process_exit"

# look WHERE: what flyrecd and flyrecctl say of the segments
look() {
	mkdir "$1"
	# without the live one and snapshots
	ctl list --json load | jq -S '[.. | objects | select(.path? | strings | test("/record/2")) |
		del(.bytes, .raw_bytes)]' >"$1/list"
	ctl tail "--since=@$since" "--until=@$until" load >"$1/tail" 2>"$1/errors"
	ctl snapshot load "--since=@$since" "--until=@$until" >"$1/snapshot"
	verify "$(cat "$1/snapshot")"
	"$FLYRECCTL" export --format=text "$(cat "$1/snapshot")" >"$1/events"
	[ ! -s "$1/errors" ] || fail "tail: $(cat "$1/errors")"
	[ -s "$1/tail" ] || fail "tail prints nothing"
}

need_command jq
flyrecd_start
since=$(date +%s)
markers_start load 30000
wait_for 30 list_segments load || fail "no segments"
until=$(date +%s)
markers_stop
ctl rotate load >/dev/null # what is still being finished would come into the list between the two looks
list_segments load
look six
for file in "${SEGMENTS[@]}"; do
	convert zstd "$file" new.dat
	cp -p --attributes-only "$file" new.dat
	mv new.dat "$file"
	[ "$(peek "$file" 10 1)" = 55 ] || fail "$file is not of version 7"
done
verify "${SEGMENTS[@]}"
look seven
for file in "${SEGMENTS[@]}"; do # the same with an index, and larger chunks
	"$FLYRECCTL" convert --version=7 -o new.dat "$file" || fail "convert $file"
	cp -p --attributes-only "$file" new.dat
	mv new.dat "$file"
done
verify "${SEGMENTS[@]}"
look index
flyrecd_stop
grep -q /record/ six/list || fail "nothing is listed"
for what in list tail events; do
	for with in seven index; do
		cmp "six/$what" "$with/$what" || fail "$what: $(diff six/$what $with/$what | head -n 5)"
	done
done
echo "${#SEGMENTS[@]} segments, $(wc -l <six/events) events"
