#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# That files have no symbols __pfx_… changes no name: of one and the same ring buffer, with functions and their
# callers, stack traces, %ps and %pS, trace-cmd report prints the same of a file without and of one with all of
# the kernel's symbols; but where a call that does not return is the last of a function, __pfx_ and the name of
# the next one are the wrong name. The second file is made after a restart, with symbols __PFX_ in their place.
# machines: debian13
# also: backports
# time-limit: 240
. "$(dirname "$0")/../guest.sh"

session names <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Tracer=function
	FunctionFilter=vfs_*
	FunctionFilter=ext4_*
	FunctionFilter=*_work
	Event=timer:timer_start
	Event=workqueue:workqueue_execute_start
	Event=kmem:kmalloc
	EventTrigger=sched:sched_switch stacktrace
	BufferSize=512K
EOF

# names FILE TO: what is printed of it, but for the tasks, as the kernel's threads change their names, and for
# the times: each file has read the clocks anew, and may round another way
names() {
	trace-cmd report -O parent "$1" >"$T/report" 2>"$T/errors" || fail "trace-cmd report $1"
	[ ! -s "$T/errors" ] || fail "trace-cmd report $1: $(cat "$T/errors")"
	sed -E 's/^[^[]+-[0-9]+ +\[([0-9]+)\] +[0-9]+\.[0-9]+:/[\1]:/' "$T/report" >"$2"
}

symbols() { # FILE: bytes of them
	"$TOOLS/seed-reader" "$1" | sed -n 's/^kallsyms \([0-9]*\)/\1/p'
}

# at_least NUMBER PATTERN: lines of the report
at_least() {
	local n
	n=$(grep -cE "$2" "$T/without.txt")
	echo "$n: $2"
	[ "$n" -ge "$1" ] || fail "only $n lines, not $1: $2"
}

flyrecd_start
for _ in 1 2 3; do
	find /usr/share /etc -type f | head -n 500 | xargs cat >/dev/null
	sync
done
"$FLYRECCTL" pause names
without=$("$FLYRECCTL" snapshot names)
sed 's/ __pfx_/ __PFX_/' /proc/kallsyms >"$T/whole"
drop_in whole <<-EOF
	[Service]
	BindReadOnlyPaths=$T/whole:/run/whole
	Environment=FLYREC_KALLSYMS=/run/whole
EOF
flyrecd_hand_over
[ "$(cat "$(instance names)/tracing_on")" = 0 ] || fail "not paused any more"
whole=$("$FLYRECCTL" snapshot names)
flyrecd_stop

echo "symbols: $(symbols "$without") bytes, all of them $(symbols "$whole")"
[ $(($(symbols "$whole") * 10)) -gt $(($(symbols "$without") * 13)) ] ||
	fail "not the whole symbols, or nothing is left out"
names "$without" "$T/without.txt"
names "$whole" "$T/whole.txt"
at_least 5000 ': function: +[^ ]+ <-- [^ ]+$'
at_least 500 '^=> [^ ]+'
at_least 20 ' timer_start: .* function=[a-z_]'
at_least 20 ' kmalloc: .*call_site=[a-z_][^ ]*\+0x'
! grep -m 1 '__pfx_' "$T/without.txt" || fail "a name of padding"
awk '
	NR == FNR { line[FNR] = $0; n = FNR; next }
	$0 == line[FNR] { equal++; next }
	/__PFX_/ { calls++; next }
	bad++ < 5 { print "wrong: " line[FNR] "\n  not: " $0 }
	END {
		printf "%d lines are equal, %d have a last call\n", equal, calls
		exit bad > 0 || n != FNR || calls * 100 > n
	}' "$T/without.txt" "$T/whole.txt" || fail "other names with all symbols"
