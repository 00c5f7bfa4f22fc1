# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scenarios about clocks share; read after guest.sh.

# is_another_file SESSION INODE: it has begun another segment
is_another_file() {
	[ "$(stat -c %i "$STATE/$1/record/current.dat")" != "$2" ]
}

# exec_now PROGRAM: it is executed between AFTER_USEC and BEFORE_USEC, microseconds of the wall clock
exec_now() {
	AFTER_USEC=${EPOCHREALTIME/./}
	"$1"
	BEFORE_USEC=${EPOCHREALTIME/./}
}

# has_exec PROGRAM FILE [USEC]: it was executed then, to a tenth of a second or USEC, by what trace-cmd
# report shows
has_exec() {
	trace-cmd report "$2" >"$T/report" 2>"$T/errors" || fail "trace-cmd report $2"
	[ ! -s "$T/errors" ] || fail "trace-cmd report $2: $(cat "$T/errors")"
	# "[000] 1795336334.134253: ", of clock boot "[000]1795336334134253268: ", flags before it
	sed -nE "s/.*[^0-9]([0-9]+\.[0-9]{6}|[0-9]{12,}): +sched_process_exec: .*filename=${1//\//\\/} .*/\1/p" "$T/report" |
		awk -v from="$AFTER_USEC" -v to="$BEFORE_USEC" -v by="${3:-100000}" '{
			t = /\./ ? $1 * 1000000 : $1 / 1000
			if (t > from - by && t < to + by) found = 1
		} END { exit !found }' ||
		fail "$2: $1 is not at $AFTER_USEC to $BEFORE_USEC: $(grep -F "filename=$1 " "$T/report")"
}
