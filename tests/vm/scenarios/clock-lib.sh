# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scenarios about clocks share; read after guest.sh.

# exec_now PROGRAM: it is executed between AFTER_USEC and BEFORE_USEC, microseconds of the wall clock
exec_now() {
	AFTER_USEC=${EPOCHREALTIME/./}
	"$1"
	BEFORE_USEC=${EPOCHREALTIME/./}
}

# has_exec PROGRAM FILE: it was executed then, to a tenth of a second, by what trace-cmd report shows
has_exec() {
	trace-cmd report "$2" >"$T/report" 2>"$T/errors" || fail "trace-cmd report $2"
	[ ! -s "$T/errors" ] || fail "trace-cmd report $2: $(cat "$T/errors")"
	# "[000] 1.000000: ", of clock boot "[000]1000000000: "
	sed -nE "s|.*\]( *[0-9.]+): .*filename=$1 .*|\1|p" "$T/report" |
		awk -v from="$AFTER_USEC" -v to="$BEFORE_USEC" '{ t = /\./ ? $1 * 1000000 : $1 / 1000
			if (t > from - 100000 && t < to + 100000) found = 1
		} END { exit !found }' ||
		fail "$2: $1 is not at $AFTER_USEC to $BEFORE_USEC: $(grep -F "filename=$1 " "$T/report")"
}
