# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the tests of flight sessions share; read after lib.sh. The session is called "f".

# An event that never comes: a session needs one, and markers are what is looked at
UNSEEN="sched:sched_process_exit if pid == 99999999"

# flight [LINE...]: write the session; EVENT and BUFFER are of its [Trace], the arguments of its
# [Snapshot]
flight() {
	session f <<-EOT
		[Session]
		Mode=flight
		[Trace]
		Event=${EVENT:-$UNSEEN}
		BufferSize=${BUFFER:-4M}
		[Snapshot]
		Burst=0
		$(printf '%s\n' "$@")
	EOT
}

# snapshots [REASON]: those there are, oldest first, in SNAPSHOTS
snapshots() {
	SNAPSHOTS=("$STATE"/f/snapshot/*-"${1:-signal}".dat)
}

more_snapshots_than() {
	snapshots
	[ ${#SNAPSHOTS[@]} -gt "$1" ]
}

# take: one by SIGUSR1, and wait until it is there
take() {
	snapshots
	local n=${#SNAPSHOTS[@]}
	kill -USR1 "$FLYRECD_PID"
	wait_for 20 more_snapshots_than "$n" || fail "no snapshot: $(tail -n 3 "$FLYRECD_LOG")"
}

# range FILE: of each CPU's markers the first and the last, "CPU FIRST LAST" a line
range() {
	trace-cmd report "$1" 2>/dev/null |
		sed -n 's/.*flyrec-test cpu=\([0-9]*\) seq=\([0-9]*\).*/\1 \2/p' |
		awk '!($1 in first) { first[$1] = $2 } { last[$1] = $2 }
			END { for (c in first) print c, first[c], last[c] }' | sort -n
}

# good FILE...: verify is clean, trace-cmd opens it without a word, no marker lacks between the
# first and the last
good() {
	local f
	for f in "$@"; do
		verify "$f"
		markers_are "$f" ${EXPECT:+"--expect=$EXPECT"} --allow-lost-at-start --allow-lost-at-end "$f"
		trace-cmd report --stat "$f" >"$T/stat" 2>"$T/stderr" ||
			fail "trace-cmd: $(cat "$T/stderr")"
		[ ! -s "$T/stderr" ] || fail "trace-cmd warns: $(cat "$T/stderr")"
		grep -q "^flyrec snapshot of session f" "$T/stat" || fail "$f does not explain itself"
	done
}

# whole FILE: each CPU's history is as long as the ring buffer, as the sub-buffers' bytes tell
# (BUFFER bytes; a twentieth may lack, partial sub-buffers count as whole ones)
whole() {
	trace-cmd report --stat "$1" 2>/dev/null |
		awk -v least="$(($(numfmt --from=iec "${BUFFER:-4M}") * 19 / 20))" '
		/^flyrec bytes:/ { n++; if ($3 < least) { print "only", $3, "bytes, not", least; bad = 1 } }
		END { exit bad || !n }' || fail "$1: not the whole history"
}

nothing_half() {
	local hidden=("$STATE"/f/snapshot/.*.new)
	[ ${#hidden[@]} = 0 ] || fail "left behind: ${hidden[*]}"
}

# wrapped: the oldest events of each CPU have been overwritten
wrapped() {
	! grep -qx "overrun: 0" "$(instance f)"/per_cpu/cpu*/stats
}
