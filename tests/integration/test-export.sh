#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# flyrecctl export: the text is trace-cmd report's, line for line, of recordings of many kinds,
# trace-cmd's and flyrecd's; the JSON has what libtracecmd reads; filters, output files, bad input.
# time-limit: 400
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd
need_tool json-compare
cd "$T"
name=${PREFIX}x

record() { # FILE OPTION... -- COMMAND...
	peer_record "$1" "$name" "${@:2}"
	! grep -q 'libtracecmd: Invalid' "$T/peer-record.log" || fail "trace-cmd: $(cat "$T/peer-record.log")"
}

# same FILE: text as trace-cmd report's, JSON as libtracecmd reads it
same() {
	trace-cmd report "$1" >theirs.txt 2>theirs.err || fail "trace-cmd report $1: $(cat theirs.err)"
	"$FLYRECCTL" export --format=text -o ours.txt "$1" || fail "export $1"
	if ! cmp -s ours.txt theirs.txt; then
		diff --text theirs.txt ours.txt | head -n 10
		fail "$1: not what trace-cmd report prints"
	fi
	[ "$(wc -l <theirs.txt)" -gt "${2:-10}" ] || fail "$1: too little in it"
	echo "$1: $(wc -l <theirs.txt) lines"
	"$FLYRECCTL" export --format=json "$1" >ours.json || fail "export --format=json $1"
	"$TOOLS/json-compare" "$1" <ours.json || fail "$1: JSON"
}

# some work of many kinds; $1: a trace_marker file
cat >work <<-'END'
	#!/bin/sh
	marker=$1
	for i in 1 2 3; do
		echo "marker $i" >"$marker"
		printf 'without newline %d' $i >"$marker"
		printf 'bytes \377\200\001 \303\244 "%d\\"\n' $i >"$marker"
		ls -R /usr/share/doc | tail -n 1
		dd if=/dev/zero of=junk bs=64k count=20 conv=fsync status=none
	done
	"$TOOLS/forkstorm" --count=100
	"$TOOLS/storm" --count=3000
END
chmod +x work
export TOOLS
work=(./work "$TRACEFS/instances/$name/trace_marker")

echo "== kinds of events"
record sched.dat -e sched -- "${work[@]}"
same sched.dat
cp sched.dat keep.dat
record calls.dat -b 8192 -e syscalls -e raw_syscalls -- "${work[@]}"
same calls.dat
record irq.dat -e irq -e timer -e ipi -e irq_vectors -- "${work[@]}"
same irq.dat
record disk.dat -e block -e writeback -e ext4 -e xfs -e jbd2 -e filemap -- "${work[@]}"
same disk.dat
record stack.dat -b 8192 -e sched:sched_switch -R stacktrace -e kmem:kmalloc -- "${work[@]}"
same stack.dat
record all.dat -b 8192 -e all -- "${work[@]}"
same all.dat

echo "== uprobes"
group=export_$$
at=0x$(nm "$TOOLS/storm" | awk '$3 == "main" { print $1 }')
base=$(readelf -lW "$TOOLS/storm" | awk '$1 == "LOAD" && / E / { print $2, $3 }' | head -n 1)
offset=$(printf '0x%x' $((at - ${base#* } + ${base% *})))
if echo "p:$group/hit $TOOLS/storm:$offset n=%di:s32 v=%si:x64 c=\$comm low=%di:u8 s=+0(+0(%si)):ustring l=+0(%si):x64[2]" \
	>>"$TRACEFS/uprobe_events"; then
	failed=false
	(record uprobe.dat -e "$group" -e sched:sched_process_exec -- "${work[@]}") || failed=true
	echo "-:$group/hit" >>"$TRACEFS/uprobe_events"
	! $failed || fail "uprobes"
	same uprobe.dat 3
	grep -q ' hit: ' ours.txt || fail "the uprobe was not hit"
else
	echo "no uprobes here"
fi

echo "== losses, clocks, several buffers, functions"
record overrun.dat -b 64 -s 500000 -e raw_syscalls -- "$TOOLS/storm" --count=100000
same overrun.dat
grep -q 'EVENTS DROPPED' ours.txt || fail "nothing was lost"
grep -q '"lost_before":[1-9]' ours.json || fail "no loss in the JSON"
for clock in boot counter mono tai x86-tsc; do
	grep -qw "$clock" "$TRACEFS/trace_clock" || continue
	record "$clock.dat" -C "$clock" -e sched -- "${work[@]}"
	same "$clock.dat"
done
record shifted.dat --ts-offset 123456789 -e sched:sched_switch -- "${work[@]}"
same shifted.dat
mkdir "$TRACEFS/instances/$name.more"
record two.dat -e sched:sched_switch -B "$name.more" -e raw_syscalls -- "${work[@]}"
same two.dat
for seed in 1 2 3; do
	"$TOOLS/graph-dat" --seed=$seed graph.dat
	same graph.dat
done
# after a message of trace_printk() that does not parse no other one is printed: whatever thread does it
"$TOOLS/graph-dat" --odd --events=60000 odd.dat
for _ in {1..6}; do
	same odd.dat >/dev/null
done
grep -q 'bprint: .*FAILED TO PARSE' ours.txt || fail "odd.dat: all parses"
grep -q 'bprint: .*number [0-9]* string' ours.txt || fail "odd.dat: nothing parses"
# each of this kernel's formats, with random numbers
"$TOOLS/decode-compare" --rounds=20 || fail "compiled formats print other things than libtraceevent"
"$TOOLS/decode-compare" --threads=4 --rounds=20 || fail "libtraceevent does not print the same in several threads"

echo "== without the plugins of libtraceevent the same"
# no_plugins OUT FORMAT FILE
no_plugins() {
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --propagation private sh -eu -c '
		find /usr/lib* -path "*/traceevent/plugins" -type d | while read -r dir; do
			mount -t tmpfs tmpfs "$dir"
		done
		"$0" export --format="$2" -o "$1" "$3"' "$FLYRECCTL" "$@" 2>err || fail "without plugins: $(cat err)"
}
for file in sched.dat stack.dat; do
	for format in text json; do
		"$FLYRECCTL" export --format=$format -o with "$file"
		no_plugins without $format "$file"
		cmp with without || fail "$file: $format depends on the plugins"
	done
done
no_plugins without text sched.dat
grep -q "libtraceevent's plugins .* are not installed" err || fail "no word of plugins: $(cat err)"

echo "== flyrecd's files: live, finished, with sub-buffers of 16 KiB"
# only what this script does: others may storm
session small <<-END
	[Trace]
	Pid=$$
	Event=sched
	Event=raw_syscalls:sys_enter
	[Storage]
	FlushSec=200ms
	SyncIntervalSec=200ms
END
session large <<-END
	[Trace]
	Pid=$$
	Event=raw_syscalls
	Event=sched:sched_switch
	SubBufferSize=16K
	[Storage]
	FlushSec=200ms
	SyncIntervalSec=200ms
END
begin=$(date '+%F %T.%6N')
flyrecd_start
sleep 0.2
./work "$(instance small)/trace_marker" >/dev/null
# Until a sync has brought the names: of a pid that has come again trace-cmd takes the one or the other
sleep 1
for s in small large; do
	# while it is written it can only be looked at, a copy stays as it is
	"$FLYRECCTL" export --format=text "$STATE/$s/record/current.dat" >live.txt || fail "live $s"
	[ "$(wc -l <live.txt)" -gt 100 ] || fail "live $s: too little in it"
	# not half of the old task names and half of the new
	kill -STOP "$FLYRECD_PID"
	cp --sparse=always "$STATE/$s/record/current.dat" "live-$s.dat"
	kill -CONT "$FLYRECD_PID"
	same "live-$s.dat"
done
sleep 0.2
middle=$(date '+%F %T.%6N')
sleep 0.2
./work "$(instance small)/trace_marker" >/dev/null
flyrecd_stop
for s in small large; do
	files=("$STATE/$s/record"/2*.dat)
	same "${files[0]}"
done
files=("$STATE/small/record"/2*.dat)
cp "${files[0]}" ours.dat

echo "== filters"
# nameless FILE: without the names of the tasks, which may have been told by what is left out
nameless() {
	sed -E 's/^.*(-[0-9]+ +\[[0-9]+\] )/\1/' "$1"
}

# export_is EXPECTED-FILE OPTION...: of ours.dat the lines and no others
export_is() {
	local expected=$1
	shift
	"$FLYRECCTL" export --format=text "$@" ours.dat >part.txt || fail "export $*"
	nameless part.txt >part.cut
	nameless "$expected" >expected.cut
	cmp -s part.cut expected.cut || {
		diff --text expected.cut part.cut | head -n 5
		fail "export $*: $(wc -l <part.txt) lines, not $(wc -l <"$expected")"
	}
	[ "$(wc -l <part.txt)" -gt 3 ] || fail "export $*: too little left"
}

# lines PATTERN: the first line and those that fit
lines() {
	head -n 1 all.txt
	grep --text -E -e "$1" all.txt
}

"$FLYRECCTL" export --format=text ours.dat >all.txt
lines '[0-9]: (sched_switch|sched_wakeup): ' >expected.txt
export_is expected.txt --event=sched:sched_switch,sched:sched_wakeup
export_is expected.txt --event=sched_switch --event=sched_wakeup
lines '[0-9]: sched_wake[a-z_]*: ' >expected.txt
export_is expected.txt '--event=sched:sched_wake*'
lines '[0-9]: sched_' >expected.txt
export_is expected.txt --event=sched
lines '\[000\] +[0-9]+\.' >expected.txt
export_is expected.txt --cpu=0
# With --cpu it does not learn the names that events of other CPUs tell
without_names() {
	sed -E 's/^ *.{1,16}-([0-9]+ +\[)/\1/' "$@"
}
diff <(trace-cmd report --cpu 0 ours.dat 2>/dev/null | without_names) <(without_names part.txt) >diff.txt ||
	fail "--cpu=0: $(head -n 4 diff.txt)"
pid=$(sed -nE 's/.*-([0-9]+) +\[[0-9]+\].* sys_enter: .*/\1/p' all.txt | sort | uniq -c | sort -rn |
	awk 'NR == 1 { print $2 }')
lines "-$pid +\[" >expected.txt
export_is expected.txt "--pid=$pid,999999999"

# between FROM TO: the lines whose times are in between
between() {
	awk -v from="$1" -v to="$2" 'NR == 1 { print; next }
		match($0, /\] +[0-9]+\.[0-9]+: /) {
			t = substr($0, RSTART + 1, RLENGTH - 3); sub(/^ +/, "", t)
			wanted = t >= from "" && t <= to ""
		}
		wanted' all.txt
}
shown() {
	sed -nE 's/.*\] +([0-9]+\.[0-9]{6}): .*/\1/p' all.txt | sed -n "$1p"
}
from=$(shown 200) to=$(shown 1500)
between "$from" "$to" >expected.txt
export_is expected.txt --since="$from" --until="$to"
# times of day are not rounded as those in the text are: one event more or less
from=$(date -d "$middle" +%s.%6N)
between "$from" 9999999999 >expected.txt
for since in "$middle" "@$from" "$(date -u -d "$middle" '+%F %T.%6N') UTC"; do
	"$FLYRECCTL" export --format=text --since="$since" ours.dat >part.txt
	a=$(wc -l <part.txt) b=$(wc -l <expected.txt)
	{ [ "$a" -gt 100 ] && [ $((a - b)) -le 2 ] && [ $((b - a)) -le 2 ]; } ||
		fail "--since=$since: $a lines, not $b"
done
"$FLYRECCTL" export --format=text --until="$begin" ours.dat >part.txt
[ "$(wc -l <part.txt)" = 1 ] || fail "--until=$begin"
"$FLYRECCTL" export --format=text --since=-1h --until=now ours.dat | cmp - all.txt || fail "--since=-1h"

echo "== output"
# status STATUS COMMAND...: ends so, with one line on standard error if that is 1
status() {
	local expected=$1 got=0
	shift
	"$@" >out 2>err || got=$?
	[ "$got" = "$expected" ] || fail "$*: status $got, not $expected: $(cat err)"
	[ "$expected" != 1 ] || [ "$(wc -l <err)" = 1 ] || fail "$*: $(cat err)"
}
mkdir folder
echo old >folder/out.txt
status 0 "$FLYRECCTL" export --format=text --output=folder/out.txt keep.dat
trace-cmd report keep.dat 2>/dev/null | cmp - folder/out.txt || fail "--output"
status 1 "$FLYRECCTL" export --format=text -o folder keep.dat
status 1 "$FLYRECCTL" export --format=text -o missing/out keep.dat
status 1 "$FLYRECCTL" export --format=text -o keep.dat keep.dat
status 0 "$FLYRECCTL" export --format=json -o /dev/null keep.dat
status 1 "$FLYRECCTL" export --format=json -o /dev/full keep.dat
[ "$(ls -A folder)" = out.txt ] || fail "left in the folder: $(ls -A folder)"
got=0
"$FLYRECCTL" export --format=text keep.dat 2>err >/dev/full || got=$?
{ [ $got = 1 ] && grep -q 'No space' err; } || fail "a full disk: $got $(cat err)"
{ "$FLYRECCTL" export --format=text all.dat 2>err || echo $? >failed; } | head -n 2 >/dev/null
{ [ ! -e failed ] && [ ! -s err ]; } || fail "a broken pipe: $(cat err)"

echo "== bad input"
status 2 "$FLYRECCTL" export keep.dat
status 2 "$FLYRECCTL" export --format=xml keep.dat
status 2 "$FLYRECCTL" export --format=text
status 2 "$FLYRECCTL" export --format=text keep.dat keep.dat
for option in --event=a/b --event= --cpu=x --pid=x --pid=-1 --since=soon --until=1.x --frobnicate; do
	status 2 "$FLYRECCTL" export --format=text $option keep.dat
done
status 1 "$FLYRECCTL" export --format=text missing.dat
grep -q '^flyrecctl: missing.dat: cannot open: No such file' err || fail "$(cat err)"
status 1 "$FLYRECCTL" export --format=text work
grep -q 'not a trace.dat' err || fail "$(cat err)"
status 1 "$FLYRECCTL" export --format=text --event=no_such_event keep.dat
grep -q 'no_such_event' err || fail "$(cat err)"
status 1 "$FLYRECCTL" export --format=text --since=yesterday keep.dat
grep -q 'no times of day' err || fail "$(cat err)"
status 0 "$FLYRECCTL" export --help
for option in format output event cpu pid since until; do
	grep -q -e "--$option=" out || fail "--help does not tell of --$option="
done
# a sub-buffer that is broken: said, left out, the rest is there
size=$(stat -c %s graph.dat)
cp graph.dat bad.dat
printf '\377\377\0\0' | dd of=bad.dat bs=1 seek=$((size - 16384 + 8)) conv=notrunc status=none
status 1 "$FLYRECCTL" export --format=text bad.dat
grep -q '^flyrecctl: bad.dat: offset 0x[0-9a-f]*: cpu 0: a commit of 65535 bytes' err ||
	fail "$(cat err)"
a=$("$FLYRECCTL" export --format=text graph.dat | wc -l) b=$(wc -l <out)
{ [ "$b" -lt "$a" ] && [ "$b" -gt $((a - 300)) ]; } || fail "bad.dat: $b lines of $a"
# cut off anywhere: refused or exported in part, with a word about it
for ((at = 1; at < size; at += size / 40)); do
	head -c $at graph.dat >cut.dat
	status 1 "$FLYRECCTL" export --format=json cut.dat
done
