#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the host of the other tests may lack: tracers of functions, probes of the kernel, event
# triggers, synthetic events, larger sub-buffers. trace-cmd reads in the files what tracefs shows, and
# the export is the same text; what a kernel has not fails by name, alone.
# machines: debian12
# also: debian13
# time-limit: 240
. "$(dirname "$0")/../guest.sh"
old=false
case $(uname -r) in 6.1.*) old=true ;; esac
# where a program begins: e_entry of its ELF header; Debian's segments are at their offsets
begin=$(printf '0x%x' "$(od -An -t u8 -j 24 -N 8 /usr/bin/true | tr -d ' ')")

for tracer in function function_graph; do
	session $tracer <<-EOF
		[Session]
		Mode=flight
		[Trace]
		Tracer=$tracer
		FunctionFilter=user_statfs
		FunctionFilter=vfs_statfs
		FunctionFilter=ext4_statfs
		BufferSize=64K
	EOF
done
session probes <<-EOF
	[Trace]
	Kprobe=p:enter user_statfs path=+0(%di):ustring
	Kprobe=r:leave user_statfs ret=\$retval
	Uprobe=p:begin /usr/bin/true:$begin
	SyntheticEvent=statfs_time u64 lat
	Event=syscalls:sys_enter_statfs
	Event=syscalls:sys_exit_statfs
	EventTrigger=syscalls:sys_enter_statfs hist:keys=common_pid:begin=common_timestamp.usecs
	EventTrigger=syscalls:sys_exit_statfs hist:keys=common_pid:lat=common_timestamp.usecs-\$begin:onmatch(syscalls.sys_enter_statfs).trace(statfs_time,\$lat)
	EventTrigger=syscalls:sys_exit_statfs stacktrace:1
	BufferSize=64K
	[Storage]
	FlushSec=300ms
	[Snapshot]
	OnEvent=synthetic:statfs_time
	# flyrecd itself asks for the state of the disk then, which is in the traces of functions
	Burst=1
	IntervalSec=1h
EOF
session typed <<-EOF
	[Trace]
	Kprobe=p:typed user_statfs \$arg*
	BufferSize=64K
EOF
session near <<-EOF
	[Trace]
	Kprobe=p:near user_statf
EOF
session until <<-EOF
	[Trace]
	Event=sched:sched_process_exec
	EventTrigger=sched:sched_process_exec traceoff if filename ~ "*/sync"
	BufferSize=64K
EOF
session swapped <<-EOF
	[Session]
	Mode=flight
	[Trace]
	EventTrigger=sched:sched_process_exec snapshot if filename ~ "*/sync"
	BufferSize=256K
EOF
session large <<-EOF
	[Trace]
	Event=sched:sched_process_exec
	SubBufferSize=16K
	BufferSize=256K
EOF

# same FILE: report and export are the same text
same() {
	trace-cmd report "$1" >"$T/report" 2>"$T/errors" || fail "trace-cmd report $1"
	[ ! -s "$T/errors" ] || fail "trace-cmd report $1: $(cat "$T/errors")"
	"$FLYRECCTL" export --format=text -o "$T/export" "$1"
	diff "$T/report" "$T/export" >"$T/diff" ||
		fail "export and trace-cmd report of $1 differ: $(head -n 4 "$T/diff")"
}

count() { # PATTERN NUMBER
	[ "$(grep -cE "$1" "$T/report")" = "$2" ] ||
		fail "$(grep -cE "$1" "$T/report") times, not $2: $1: $(tail -n 3 "$T/report")"
}

flyrecd_start failing
must_log "near: session failed: Kprobe=p:near user_statf: no function 'user_statf' in the kernel, did you mean 'user_statfs'"
# hist triggers that take times set it to global
grep -qF '[mono]' "$(instance probes)/trace_clock" || fail "clock: $(cat "$(instance probes)/trace_clock")"
if $old; then
	must_log 'function_graph: session failed: cannot set the tracer to function_graph: .*available_tracers'
	must_log 'large: session failed: cannot set the sub-buffer size to 16 KiB: .*buffer_subbuf_size_kb'
	must_log "typed: session failed: cannot make the event .*typed"
	[ "$(flyrecd_log | grep -c 'session failed')" = 4 ] || fail "$(flyrecd_log | grep 'session failed')"
else
	[ "$(flyrecd_log | grep -c 'session failed')" = 1 ] || fail "$(flyrecd_log | grep 'session failed')"
	[ "$(cat "$(instance large)/buffer_subbuf_size_kb")" = 16 ] || fail "not 16 K"
	markers_start large 500
fi
background "$TOOLS/markers" "--instance=${PREFIX}swapped" --rate=200 >"$T/swapped"
swapped=$!
for _ in 1 2 3 4 5; do
	taskset -c 0 stat -f / >/dev/null
	/usr/bin/true
done
sync
wait_for 10 grep -qx 0 "$(instance until)/tracing_on" || fail "no traceoff"
/usr/bin/true
by_synthetic() {
	SNAPSHOTS=("$STATE"/probes/snapshot/*-event.dat)
	[ ${#SNAPSHOTS[@]} -ge 1 ]
}
wait_for 20 by_synthetic || fail "no snapshot by a synthetic event: $(flyrecd_log | tail -n 5)"
trace-cmd report --stat "${SNAPSHOTS[0]}" >"$T/stat" 2>/dev/null
grep -qE '^event: synthetic:statfs_time lat=[0-9]+' "$T/stat" || fail "the file does not say so: $(tail -n 12 "$T/stat")"
! logged 'had been' || fail "$(flyrecd_log | grep 'had been')"
hits=$(sed -n 's/^ *Hits: //p' "$(instance probes)/events/syscalls/sys_enter_statfs/hist")
# "stat-300 [000] ..... 1.0: vfs_statfs <-user_statfs"
"$FLYRECCTL" pause function
sed -nE '/^#/d; s/.*: +(.*) <-.*/\1/p' "$(instance function)/per_cpu/cpu0/trace" >"$T/functions"
functions=$("$FLYRECCTL" snapshot function)
if ! $old; then
	"$FLYRECCTL" pause function_graph
	sed -n '/^#/d; s/.*| *//p' "$(instance function_graph)/per_cpu/cpu0/trace" >"$T/graph"
	graph=$("$FLYRECCTL" snapshot function_graph)
	markers_stop
fi
kill -TERM "$swapped"
wait "$swapped" || fail "markers: $(cat "$T/swapped")"
# What the trigger has taken away is in it, where it belongs
swapped=$("$FLYRECCTL" snapshot swapped)
flyrecd_stop

markers_are swapped --expect="$T/swapped" "$swapped"
verify "$swapped"
same "$swapped"
same "$functions"
trace-cmd report --cpu 0 "$functions" 2>/dev/null |
	sed -nE 's/.*: function: +([^ ]+).*/\1/p' >"$T/theirs"
diff "$T/functions" "$T/theirs" >"$T/diff" || fail "functions: $(head -n 4 "$T/diff")"
[ "$(grep -c ^user_statfs "$T/theirs")" -ge 5 ] || fail "too few functions: $(wc -l <"$T/theirs")"
if ! $old; then
	same "$graph"
	trace-cmd report --cpu 0 "$graph" 2>/dev/null | sed -n 's/.*| *//p' >"$T/theirs"
	diff "$T/graph" "$T/theirs" >"$T/diff" || fail "functions entered and left: $(head -n 4 "$T/diff")"
	[ "$(grep -c '^user_statfs() {' "$T/theirs")" -ge 5 ] || fail "too few functions: $(wc -l <"$T/theirs")"
	[ "$(grep -c '{$' "$T/theirs")" = "$(grep -c '^}' "$T/theirs")" ] || fail "entered and not left"
	markers_check large
	same "$(echo "$STATE"/large/record/2*.dat)"
	# by the kernel's BTF: the arguments' own names and types
	same "$(echo "$STATE"/typed/record/2*.dat)"
	[ "$(grep -cE ' typed: .* pathname=' "$T/report")" -ge 5 ] ||
		fail "arguments by BTF: $(tail -n 3 "$T/report")"
fi
same "$(echo "$STATE"/probes/record/2*.dat)"
calls=$(grep -c ' sys_enter_statfs: ' "$T/report")
# others, systemctl among them, go on until the end
[ "$hits" -ge 5 ] || fail "hist: $hits hits"
[ "$calls" -ge "$hits" ] || fail "hist: $hits hits, $calls events"
count ' sys_exit_statfs: ' "$calls"
count ' statfs_time: .*lat=[0-9]+' "$calls"
count ' enter: .*path="' "$calls"
count ' leave: ' "$calls"
count ' begin: ' 6
count ' kernel_stack: ' 1
same "$(echo "$STATE"/until/record/2*.dat)"
tail -n 1 "$T/report" | grep -q 'filename=.*/sync ' || fail "not the last: $(tail -n 1 "$T/report")"
verify "$STATE" "$functions"
