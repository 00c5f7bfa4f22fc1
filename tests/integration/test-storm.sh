#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A full storm of system calls on all CPUs with 16 MiB of ring buffer each: nothing is lost, and the
# counts of the kernel, of verify and of trace-cmd report agree.
# may-fail: a disk that stands still for longer than the ring buffers last costs events
# time-limit: 180
. "$(dirname "$0")/lib.sh"
need_tracefs
need_tool libtracecmd-open
DURATION=5

session storm <<-EOF
	[Trace]
	Event=raw_syscalls:sys_enter
	Event=raw_syscalls:sys_exit
	BufferSize=16M
	[Storage]
	MaxUse=40G
	MaxFileSize=20G
	KeepFree=1G
EOF

# stat FILE WORD: the sum over all CPUs of a number in the CPUSTAT options
stat_sum() {
	tr '\0' '\n' <"$1" | head -c 33554432 |
		awk -v w="$2: " 'index($0, w) == 1 { n += substr($0, length(w) + 1) } END { print n + 0 }'
}

# once: a storm; false if events were overwritten
once() {
	local file lost overrun read counted
	rm -rf "$STATE"
	flyrecd_start
	"$TOOLS/storm" --duration=$DURATION >"$T/load"
	flyrecd_stop
	file=$(echo "$STATE"/storm/record/2*.dat)
	verify "$file"
	counted=$(sed -nE '1s/.* ([0-9]+) events.*/\1/p' "$T/verify")
	lost=$(sed -nE '1s/.* ([0-9]+) lost.*/\1/p' "$T/verify")
	overrun=$(stat_sum "$file" overrun)
	read=$(stat_sum "$file" "read events")
	echo "$(stat -c %s "$file") bytes, events: kernel $read, verify $counted, lost $lost, overrun $overrun"
	[ "$counted" -gt 1000000 ] || fail "no storm"
	[ "$read" = "$counted" ] || fail "the kernel gave $read events, verify counts $counted"
	[ "$lost" = "$overrun" ] || fail "overrun $overrun, verify says $lost lost"
	[ "$overrun" = 0 ]
}

once || fail "events were overwritten: $(cat /proc/loadavg)"
file=$(echo "$STATE"/storm/record/2*.dat)
"$TOOLS/libtracecmd-open" "$file" >"$T/open"
[ "$(sed -n 's/^total records=//p' "$T/open")" = "$(sed -nE '1s/.* ([0-9]+) events.*/\1/p' "$T/verify")" ] ||
	fail "libtracecmd reads other events than verify: $(tail -n 1 "$T/open"), $(head -n 1 "$T/verify")"
