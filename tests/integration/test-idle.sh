#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# An idle session: no wake-ups beyond what the flush timer explains, little memory, and nothing said.
# time-limit: 150
. "$(dirname "$0")/lib.sh"
need_tracefs
FLUSH=5 WATCHED=15

session idle <<-EOF
	[Trace]
	Event=raw_syscalls:sys_enter if id == 99999
	BufferSize=4M
	[Storage]
	FlushSec=${FLUSH}s
EOF

# voluntary context switches of each of its threads, "NAME N" a line
switches() {
	local task
	for task in "/proc/$FLYRECD_PID/task"/*; do
		echo "$(cat "$task/comm").${task##*/}" \
			"$(sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "$task/status")"
	done
}

memory() { # FIELD
	sed -n "s/^$1:[[:space:]]*\([0-9]*\) kB/\1/p" "/proc/$FLYRECD_PID/status"
}

flyrecd_start
sleep 1
switches >"$T/before"
sleep "$WATCHED"
switches >"$T/after"
paste -d' ' "$T/before" "$T/after" |
	awk '$1 != $3 { exit 1 } { print $1, $4 - $2 }' >"$T/wakeups" ||
	fail "threads came and went: $(cat "$T/before" "$T/after")"
threads=$(wc -l <"$T/wakeups")
total=$(awk '{ n += $2 } END { print n }' "$T/wakeups")
# The timer wakes the main thread, and that wakes each worker: once each, in each interval begun
allowed=$((threads * (WATCHED / FLUSH + 1)))
echo "threads=$threads wakeups=$total allowed=$allowed in $WATCHED s"
cat "$T/wakeups"
[ "$total" -gt 0 ] || fail "no flush at all"
! logged 'does not answer' || fail "$(cat "$FLYRECD_LOG")"
[ "$total" -le "$allowed" ] || fail "$total wake-ups in $WATCHED s, not $allowed"

# Beside the symbols, whose text is kept once for all sessions
kallsyms=$(($(grep -v ' __pfx_' /proc/kallsyms | wc -c) / 1024))
other=$(($(memory VmRSS) - kallsyms))
echo "VmRSS=$(memory VmRSS) RssAnon=$(memory RssAnon) symbols=$kallsyms KiB: $other KiB beside them"
[ "$other" -lt 8192 ] || fail "$other KiB of memory, not 8192"
flyrecd_stop

# Where the workers come later than the main thread looks for what they have done
echo "== on one CPU, with others"
taskset -p -c 0 $$ >/dev/null
for _ in 1 2; do
	background bash -c 'while :; do :; done'
done
log_mark
flyrecd_start
sleep $((3 * FLUSH + 1))
! logged 'does not answer' || fail "$(cat "$FLYRECD_LOG")"
flyrecd_stop
