#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# What is in the file beside the events: each section is byte for byte what tracefs says, the options
# are those trace-cmd knows, and with every clock that counts time report shows the wall clock.
# time-limit: 180
# tests: fast
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd
need_event sched:sched_waking sched:sched_switch irq:softirq_entry raw_syscalls:sys_enter

# as_text OPTION FILE: what trace-cmd dump prints, without the spaces that fill reserved room
dumped() {
	trace-cmd dump "$1" "$2" 2>/dev/null | sed 's/[[:space:]]*$//'
}

in_file() { # TEXT
	grep -q -e "$1" "$T/dump" || fail "trace-cmd dump does not show $1: $(head -n 60 "$T/dump")"
}

echo "== every section"
# Events enabled one by one, by a trigger, by a probe and, where the kernel can, synthetic ones
synthetic=''
if grep -q 'onmatch(' "$TRACEFS/README"; then
	lat=t${PREFIX//[^A-Za-z0-9]/_}lat
	synthetic="SyntheticEvent=$lat u64 lat; pid_t pid
EventTrigger=sched:sched_waking hist:keys=pid:ts0=common_timestamp.usecs
EventTrigger=sched:sched_switch hist:keys=next_pid:lat=common_timestamp.usecs-\$ts0:onmatch(sched.sched_waking).trace($lat,\$lat,next_pid)"
fi
bash=$(readlink -f "$(command -v bash)")
offset=$(nm -D "$bash" 2>/dev/null | sed -n 's/^0*\([0-9a-f]*\) T echo_builtin$/0x\1/p')
# Of system calls those that begin a program (x86-64, arm64): all of a busy machine, with those of who reads the
# file, are a GB in the time that this takes
session all <<-EOF
	[Trace]
	Event=sched:sched_switch
	Event=raw_syscalls:sys_enter if id == 59 || id == 221
	Event=raw_syscalls:sys_exit if id == 59 || id == 221
	Event=irq:softirq_entry
	EventTrigger=sched:sched_process_exit enable_event:timer:timer_start
	Uprobe=p:builtin $bash:${offset:-0x1000}
	$synthetic
	BufferSize=8M
	[Storage]
	FlushSec=200ms
	SyncIntervalSec=500ms
	MaxUse=8G
EOF
flyrecd_start
! logged "failed" || fail "$(tail -n 3 "$FLYRECD_LOG")"
for i in 1 2 3 4 5; do
	echo "flyrec-test sections $i" >"$(instance all)/trace_marker"
	bash -c "echo uprobe $i" >/dev/null
done
sleep 1
file=$STATE/all/record/current.dat
"$TOOLS/seed-reader" --without-prefix-symbols "--compare-tracefs=${PREFIX}all" "$file" >"$T/seed" ||
	fail "sections differ from tracefs: $(grep FAULT "$T/seed" | head -n 5)"
trace-cmd report "$file" >"$T/report" 2>"$T/complaints" || fail "report: $(cat "$T/complaints")"
[ ! -s "$T/complaints" ] || fail "report: $(cat "$T/complaints")"
for event in sched_switch: sys_enter: sys_exit: softirq_entry: timer_start: ${synthetic:+"$lat:"} 'flyrec-test sections 5'; do
	grep -q "$event" "$T/report" || fail "no $event in the report"
done
[ -z "$offset" ] || grep -q ' builtin: ' "$T/report" || fail "no uprobe in the report"
! grep -q 'UNKNOWN\|FAILED TO PARSE' "$T/report" || fail "report: $(grep -m 3 'UNKNOWN\|FAILED' "$T/report")"

echo "== options"
dumped --options "$file" >"$T/dump"
dumped --summary "$file" >>"$T/dump"
dumped --flyrecord "$file" >>"$T/dump"
in_file "Option TRACECLOCK"
in_file '\[mono\]'
in_file "Option UNAME"
in_file "$(uname -r)"
in_file "Option VERSION"
in_file "flyrec"
in_file "Option CPUCOUNT"
in_file "Option TRACEID"
in_file "Option CPUSTAT"
in_file "Option DATE"
cpus=$(($(sed 's/.*-//' /sys/devices/system/cpu/possible) + 1))
[ "$(grep -c '^CPU: [0-9]*$' "$T/dump")" = "$cpus" ] || fail "CPUSTAT of not all CPUs: $(cat "$T/dump")"
grep -A 1 'Option CPUCOUNT' "$T/dump" | grep -qw "$cpus" || fail "CPUCOUNT: $(grep -A 1 CPUCOUNT "$T/dump")"
for word in entries overrun 'commit overrun' bytes 'oldest event ts' 'now ts' 'dropped events' 'read events'; do
	[ "$(grep -c "^$word: [0-9]" "$T/dump")" = "$cpus" ] || fail "CPUSTAT lacks $word"
done
grep -q '^read events: [1-9]' "$T/dump" || fail "CPUSTAT is not refreshed: $(grep '^read' "$T/dump")"

flyrecd_stop
echo "== the finished file"
file=$(echo "$STATE"/all/record/2*.dat)
verify "$file"
dumped --options "$file" >"$T/dump"
in_file 'flyrec final: yes'
trace-cmd dump --all "$file" >"$T/dump" 2>"$T/complaints" || fail "trace-cmd dump: $(cat "$T/complaints")"
[ "$(trace-cmd report --nodate "$file" 2>/dev/null | grep -c 'flyrec-test sections')" = 5 ] ||
	fail "markers are missing in the finished file"

echo "== clocks"
clocks=$(tr -d '[]' <"$TRACEFS/trace_clock")
# shellcheck disable=SC2086 # words
for clock in $clocks; do
	session "c-$clock" <<-EOF
		[Trace]
		Event=sched:sched_process_exec
		Clock=$clock
		BufferSize=256K
		[Storage]
		FlushSec=200ms
	EOF
done
rm "$CONFIG/sessions.d/all.conf"
flyrecd_start
! logged "session failed" || fail "$(grep failed "$FLYRECD_LOG")"
before=$EPOCHREALTIME
for clock in $clocks; do
	echo "flyrec-test clock" >"$(instance "c-$clock")/trace_marker"
done
after=$EPOCHREALTIME
# all there is can be had of any clock, a time only of those that count it
counts_time() {
	case $1 in
	counter | uptime | x86-tsc | ppc-tb | s390-tod) return 1 ;;
	esac
}
for clock in $clocks; do
	file=$(ctl snapshot "c-$clock") || fail "no snapshot of $clock"
	verify "$file"
	prints 'flyrec-test clock' trace-cmd report "$file" ||
		fail "$clock: no marker in the snapshot: $(trace-cmd report "$file" 2>&1)"
	if counts_time "$clock"; then
		ctl snapshot "c-$clock" --last=1min >"$T/out" ||
			fail "no last minute of $clock"
	else
		refused "its clock counts no time" \
			ctl snapshot "c-$clock" --last=1min
	fi
done
flyrecd_stop

# seconds FILE [OPTION]: the marker's timestamp; of some clocks trace-cmd prints nanoseconds
seconds() {
	trace-cmd report "${@:2}" "$1" 2>"$T/complaints" |
		sed -nE 's/.*\] *([0-9.]+): print: .*flyrec-test clock.*/\1/p' |
		awk '{ printf "%.6f", /\./ || $1 < 1e9 ? $1 : $1 / 1e9 }'
	[ ! -s "$T/complaints" ] || fail "report: $(cat "$T/complaints")"
}
# The instances are gone, their header files are those of the top level
"$TOOLS/seed-reader" --without-prefix-symbols --compare-tracefs=/ "$STATE"/c-mono/record/2*.dat >"$T/seed" ||
	fail "sections of the finished file differ from tracefs: $(grep FAULT "$T/seed" | head -n 5)"
for clock in $clocks; do
	file=$(echo "$STATE/c-$clock"/record/2*.dat)
	verify "$file"
	dated=$(seconds "$file")
	plain=$(seconds "$file" --nodate)
	echo "$clock: $dated, plain $plain"
	[ -n "$dated$plain" ] || fail "$clock: no marker in the report: $(trace-cmd report "$file" 2>&1)"
	prints -F "[$clock]" dumped --options "$file" || fail "$clock is not in TRACECLOCK"
	if ! counts_time "$clock"; then
		[ "$dated" = "$plain" ] || fail "$clock counts no time, but is shown as a date"
		continue
	fi
	awk -v t="$dated" -v from="$before" -v to="$after" 'BEGIN { exit !(t > from - 0.5 && t < to + 0.5) }' ||
		fail "$clock: report says $dated, it was between $before and $after"
	# tai counts from 1970, the others from the boot (those of the CPU a little earlier or later)
	now=$(cut -d' ' -f1 /proc/uptime)
	[ "$clock" != tai ] || now=$EPOCHREALTIME
	awk -v t="$plain" -v now="$now" 'BEGIN { exit !(t < now + 60 && t > now - 60) }' ||
		fail "$clock: report --nodate says $plain, the machine runs for $now s"
done

if [ -e "$TRACEFS/buffer_subbuf_size_kb" ]; then
	echo "== sub-buffers of 16K"
	rm "$CONFIG/sessions.d"/*.conf
	session big <<-EOF
		[Trace]
		Event=raw_syscalls:sys_enter if $LOAD_FILTER
		SubBufferSize=16K
		BufferSize=64M
		[Storage]
		FlushSec=200ms
		MaxUse=8G
	EOF
	flyrecd_start
	load_bursts 0.1 0.1
	markers_start big 5000
	sleep 1
	"$TOOLS/seed-reader" --without-prefix-symbols "--compare-tracefs=${PREFIX}big" "$STATE/big/record/current.dat" >"$T/seed" ||
		fail "sections differ from tracefs: $(grep FAULT "$T/seed" | head -n 5)"
	flyrecd_hand_over
	flyrecd_start
	sleep 0.5
	markers_stop
	load_stop
	flyrecd_stop
	file=$(echo "$STATE"/big/record/2*.dat)
	verify "$file"
	markers_check big
	[ "$(od -An -j14 -N4 -td4 "$file" | tr -d ' ')" = 16384 ] || fail "the file's page size is not 16384"
	trace-cmd report "$file" 2>"$T/complaints" | tail -n 1
	[ ! -s "$T/complaints" ] || fail "report: $(cat "$T/complaints")"
fi
