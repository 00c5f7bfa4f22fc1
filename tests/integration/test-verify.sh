#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# flyrecctl verify on real recordings of trace-cmd's: clean where trace-cmd report reads them, with the
# same number of events on each CPU; then, with bytes changed, a fault at just that offset.
# time-limit: 240
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd
[ "$(printf '\1\0' | od -An -d | tr -d ' ')" = 1 ] || skip "writes little endian numbers"
cd "$T"
name=${PREFIX}v

record() { # FILE OPTION... -- COMMAND...
	peer_record "$1" "$name" "${@:2}"
}

# The events of each CPU that has some, as "BUFFER CPU EVENTS": what report prints, what verify counts.
# The event after a line "BUFFER: CPU:N [M EVENTS DROPPED]" comes without its buffer's name.
reported() {
	trace-cmd report "$1" 2>/dev/null |
		sed -nE -e 's/^ *([^ ]+): +CPU:[0-9]+ \[.*DROPPED\].*/\1/p' \
			-e 's/^ *(([^ ]+): +)?.*-[0-9]+ +\[([0-9]+)\] +[0-9]+\.[0-9]+: .*/event \3 \2/p' |
		awk '$1 != "event" { name = $1; next }
			{ n[(NF == 3 ? $3 : name) " " ($2 + 0)]++ }
			END { for (k in n) print k, n[k] }' | sort
}
counted() {
	"$FLYRECCTL" verify "$1" |
		sed -nE 's/^[^:]+: buffer ([^ ]+) cpu ([0-9]+): .* ([1-9][0-9]*) events.*/\1 \2 \3/p' | sort
}

# clean FILE: right, and as trace-cmd sees it
clean() {
	"$FLYRECCTL" verify "$1" >out || fail "$1: $(head -n 5 out)"
	reported "$1" >reported.txt
	counted "$1" >counted.txt
	[ -s reported.txt ] || fail "$1: trace-cmd report prints nothing"
	diff reported.txt counted.txt || fail "$1: verify counts other events than trace-cmd report"
	echo "$1: $(awk '{ n += $3 } END { print n }' counted.txt) events"
}

echo "== loads"
record sched.dat -e sched -e raw_syscalls -e syscalls -- ls -R /usr/share/doc
clean sched.dat
record storm.dat -b 16384 -e raw_syscalls -- "$TOOLS/storm" --count=50000
clean storm.dat
mkdir "$TRACEFS/instances/$name"
record markers.dat -e sched -- "$TOOLS/markers" --instance="$name" --count=5000
clean markers.dat
record stack.dat -e sched:sched_switch -e sched:sched_wakeup -O stacktrace -- "$TOOLS/storm" --duration=0.5
clean stack.dat
prints '^ *=>' trace-cmd report stack.dat || fail "no stack traces recorded"
# interrupts inside of system calls: events reserved inside of others, absolute times, discarded ones
record nested.dat -b 16384 -e irq -e irq_vectors -e timer -e raw_syscalls -e sched -e kmem \
	-- "$TOOLS/forkstorm" --count=500
clean nested.dat
record filter.dat -b 8192 -e raw_syscalls:sys_enter -f 'id & 1' -- ls -R /usr/share/doc
clean filter.dat

echo "== several instances"
mkdir "$TRACEFS/instances/$name.b"
record two.dat -e sched -B "$name.b" -e raw_syscalls -- ls -R /usr/share/doc
clean two.dat
[ "$(cut -d' ' -f1 counted.txt | sort -u | wc -l)" = 2 ] || fail "not two buffers: $(cat counted.txt)"

echo "== lost events"
for _ in 1 2 3 4 5; do
	record lost.dat -b 8 -e raw_syscalls -- "$TOOLS/storm" --duration=0.2
	[ "$(trace-cmd report lost.dat 2>/dev/null | grep -c 'EVENTS DROPPED')" = 0 ] || break
done
clean lost.dat
dropped=$(trace-cmd report lost.dat 2>/dev/null |
	sed -nE 's/.*CPU:[0-9]+ \[([0-9]+) EVENTS DROPPED\].*/\1/p' | awk '{ n += $1 } END { print n + 0 }')
lost=$(sed -nE '1s/.* ([0-9]+) lost.*/\1/p' out)
[ "$lost" -gt 0 ] || fail "nothing lost with a tiny buffer"
[ "$lost" = "$dropped" ] || fail "verify counts $lost lost events, trace-cmd $dropped"
echo "lost: $lost"

# --- changing bytes

# poke FILE OFFSET SIZE NUMBER, little endian
poke() {
	local bytes='' i
	for ((i = 0; i < $3; i++)); do
		bytes+=$(printf '\\x%02x' $((($4 >> 8 * i) & 255)))
	done
	# shellcheck disable=SC2059 # the escapes are meant
	printf "$bytes" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

peek() { # FILE OFFSET SIZE
	od -An -t "u$3" -j "$2" -N "$3" "$1" | tr -d ' '
}

# The entry of a CPU in the last table, that of the instance
entry() { # FILE CPU
	local word
	word=$(grep -abo flyrecord "$1" | tail -n 1 | cut -d: -f1)
	echo $((word + 10 + 16 * $2))
}

# faulty OFFSET TEXT: bad.dat has a fault there that says so
faulty() {
	local status=0
	"$FLYRECCTL" verify bad.dat >out 2>err || status=$?
	[ "$status" = 1 ] || fail "status $status, not 1, with a fault at $1: $2"
	grep -qF "bad.dat: offset $(printf '0x%x' "$1"): $2" out ||
		fail "no fault at $(printf '0x%x' "$1") \"$2\": $(head -n 5 out)"
	[ "$(wc -l <err)" = 1 ] || fail "not one line on stderr: $(cat err)"
}

fresh() {
	cp --sparse=never storm.dat bad.dat
}

echo "== changed bytes"
cpu=0
[ "$(peek storm.dat $(($(entry storm.dat 0) + 8)) 8)" -gt 8192 ] || cpu=1
at=$(entry storm.dat $cpu)
start=$(peek storm.dat "$at" 8)
size=$(peek storm.dat $((at + 8)) 8)
who="buffer $name cpu $cpu:"
[ "$size" -ge 16384 ] || fail "too little recorded"

fresh && poke bad.dat 0 1 0 && faulty 0 "not a trace.dat"
fresh && poke bad.dat 10 1 $((0x37)) && faulty 18 "compressed with header_page, which is not supported"
fresh && poke bad.dat 14 4 12345 && faulty 14 "page size is 12345"
fresh && poke bad.dat "$at" 8 $((1 << 50)) && faulty "$at" "cpu $cpu: the region at 0x4000000000000"
fresh && poke bad.dat "$at" 8 $((start + 8)) && faulty "$at" "cpu $cpu: the region at"
fresh && poke bad.dat $((at + 8)) 8 $((size - 1)) && faulty "$at" "cpu $cpu: the region at"
fresh && truncate -s -4096 bad.dat && faulty "$(entry storm.dat 1)" "cpu 1: the region at"
fresh && truncate -s $((at + 3)) bad.dat && faulty $((at - 16 * cpu)) "the file ends inside the CPU table"
fresh && truncate -s 1000 bad.dat
"$FLYRECCTL" verify bad.dat >out 2>err && fail "a file of 1000 bytes is not right"
grep -qE '^bad.dat: offset 0x[0-9a-f]+: .*(ends inside|follow in the file)' out || fail "$(cat out)"

page=$((start + 4096))
fresh && poke bad.dat $page 8 0 && faulty $page "$who the sub-buffer has no timestamp"
fresh && poke bad.dat $page 8 1 && faulty $page "$who time runs backwards"
fresh && poke bad.dat $((page + 8)) 4 4081 && faulty $((page + 8)) "$who a commit of 4081 bytes"
fresh && dd if=/dev/zero of=bad.dat bs=4096 seek=$((page / 4096)) count=1 conv=notrunc status=none
faulty $page "$who 1 sub-buffers before others were never written"
fresh && poke bad.dat $page 16 0 && faulty $page "$who the header of a sub-buffer is zero"
# the last event: longer than what is left
fresh && poke bad.dat $((page + 8)) 4 4 && faulty $((page + 16)) "$who an event of"
fresh && poke bad.dat $((page + 16)) 4 0 && poke bad.dat $((page + 20)) 4 60000 &&
	faulty $((page + 16)) "$who an event of 59996 bytes runs past"
fresh && poke bad.dat $((page + 16)) 4 0 && poke bad.dat $((page + 20)) 4 0 &&
	faulty $((page + 16)) "$who an event length of 0 is below"
fresh && poke bad.dat $((page + 16)) 4 31 && poke bad.dat $((page + 20)) 4 0 &&
	faulty $((page + 16)) "$who time runs backwards"
fresh && poke bad.dat $((page + 20)) 2 65000 &&
	faulty $((page + 16)) "$who the file has no format for event id 65000"
id=$(grep -abo -m 1 'ID: ' storm.dat | tail -n 1 | cut -d: -f1)
fresh && poke bad.dat "$id" 1 $((0x78))
"$FLYRECCTL" verify bad.dat >out 2>err && fail "a broken format is not right"
grep -q 'does not parse' out || fail "a broken format: $(cat out)"

echo "== sub-buffers of 16 KiB"
# trace-cmd 3.1.6 takes them from the kernel, but describes the file as one of 4 KiB: mend that
mkdir "$TRACEFS/instances/$name"
if echo 16 >"$TRACEFS/instances/$name/buffer_subbuf_size_kb" 2>/dev/null; then
	record large.dat -e raw_syscalls -- "$TOOLS/storm" --count=20000
	"$FLYRECCTL" verify large.dat >out 2>err && fail "16 KiB read as 4 KiB are not right"
	field=$(grep -abo 'field: char data;' large.dat | head -n 1 | cut -d: -f1)
	printf 'field: char data;\toffset:16;\tsize:16368;' |
		dd of=large.dat bs=1 seek=$((field - 1)) conv=notrunc status=none
	poke large.dat 14 4 16384
	for ((cpu = 0; ; cpu++)); do # move the regions to multiples of 16 KiB
		at=$(entry large.dat $cpu)
		start=$(peek large.dat "$at" 8) size=$(peek large.dat $((at + 8)) 8)
		[ $cpu -lt "$(getconf _NPROCESSORS_CONF)" ] || break
		to=$((($(stat -c %s large.dat) + 16383) / 16384 * 16384))
		dd if=large.dat of=region bs=4096 skip=$((start / 4096)) count=$((size / 4096)) status=none
		dd if=region of=large.dat bs=4096 seek=$((to / 4096)) conv=notrunc status=none
		poke large.dat "$at" 8 $to
	done
	# the file's own, empty, regions must be aligned for trace-cmd as well
	clean large.dat
else
	rmdir "$TRACEFS/instances/$name"
	echo "this kernel has sub-buffers of one page only"
fi

echo "== directories"
mkdir -p dir/sub
cp storm.dat dir/sub/b.dat
cp sched.dat dir/a.dat
cp storm.dat dir/.half.dat
echo text >dir/note.txt
"$FLYRECCTL" verify dir >out || fail "dir: $(cat out)"
[ "$(grep -c ': ok, ' out)" = 2 ] || fail "not two files: $(cat out)"
[ "$(grep ': ok, ' out | head -n 1 | cut -d: -f1)" = dir/a.dat ] || fail "not sorted: $(cat out)"
fresh
poke bad.dat $page 8 0
cp bad.dat dir/sub/c.dat
"$FLYRECCTL" verify --json dir >out 2>err && fail "a fault in a directory is overlooked"
grep -q '"path":"dir/sub/b.dat","ok":true,"version":6,"errors":\[\],' out || fail "json: $(cat out)"
grep -q '"path":"dir/sub/c.dat","ok":false,"version":6,"errors":\["dir/sub/c.dat: offset ' out ||
	fail "json: $(cat out)"

echo "== command line"
status=0
"$FLYRECCTL" verify >/dev/null 2>&1 || status=$?
[ $status = 2 ] || fail "verify without a file: status $status"
status=0
"$FLYRECCTL" --frobnicate verify storm.dat >/dev/null 2>&1 || status=$?
[ $status = 2 ] || fail "unknown option: status $status"
status=0
"$FLYRECCTL" verify missing.dat >out 2>&1 || status=$?
[ $status = 1 ] || fail "missing file: status $status"
grep -q '^missing.dat: cannot open: No such file' out || fail "$(cat out)"
mkfifo fifo
status=0
timeout 5 "$FLYRECCTL" verify fifo >out 2>&1 || status=$?
[ $status = 1 ] || fail "a FIFO: status $status"
