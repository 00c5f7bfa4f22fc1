#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# An application's own events, by user_events: recorded by name in both modes, enabled for the application just as long
# as that, shown as trace-cmd shows them, and those that describe themselves (EventHeader) with their fields.
# machines: built
# time-limit: 120
# only: long
. "$(dirname "$0")/../guest.sh"
need_tool user-events
N=100
TURNS=0

coproc APPLICATION { "$TOOLS/user-events" $N 2>&1; }
at_end kill "$APPLICATION_PID"
exec {TO}>&"${APPLICATION[1]}" {FROM}<&"${APPLICATION[0]}"
# said WORD: the application's next line
said() {
	local line
	read -rt 20 -u "$FROM" line || fail "the application says nothing"
	[ "$line" = "$1" ] || fail "the application says \"$line\", not \"$1\""
}
said ready

# writes ENABLED
writes() {
	echo >&"$TO"
	said "$1"
}
writes "0 0"
TURNS=1

for mode in record flight; do
	session $mode <<-EOF
		[Session]
		Mode=$mode
		[Trace]
		Event=user_events
		[Storage]
		FlushSec=1
	EOF
done
flyrecd_start
writes "1 1"
file=$("$FLYRECCTL" snapshot flight) || fail "snapshot"
flyrecd_stop
writes "0 0"
files=("$STATE"/record/record/*.dat "$file")

for file in "${files[@]}"; do
	echo "== $file"
	trace-cmd report -R "$file" >"$T/raw" 2>/dev/null || fail "trace-cmd report"
	[ "$(grep -c 'flyrec_plain:' "$T/raw")" = $N ] || fail "trace-cmd: $(grep -c flyrec_plain: "$T/raw") events"
	"$FLYRECCTL" export --format=json "$file" >"$T/json" || fail "export --format=json"
	head -n 3 "$T/json"
	jq -s --argjson first $((TURNS * N)) --argjson n $N '
		[.[] | select(.event == "flyrec_plain") | .fields] as $plain |
		[.[] | select(.event == "flyrec_header_L4K1") | .eventheader] as $header |
		($plain | map(.count)) == [range($first; $first + $n)] and
		($plain | map(.text)) == [range($first; $first + $n) | "t\(.)"] and
		($header | map(.name) | unique) == ["Reply"] and
		($header | map(.fields)) == [range($first; $first + $n) | {n: ., minus: -2, text: "t\(.)"}]' \
		"$T/json" >"$T/right" || fail "jq"
	[ "$(cat "$T/right")" = true ] || fail "wrong data: $(head -c 2000 "$T/json")"
	"$FLYRECCTL" export --format=text "$file" >"$T/text" || fail "export --format=text"
	grep -q "flyrec_header_L4K1:.* Reply n=$((TURNS * N)) minus=-2 text=\"t$((TURNS * N))\"" "$T/text" ||
		fail "wrong data: $(grep -m 1 header "$T/text")"
	# trace-cmd knows nothing of what an event says of itself
	trace-cmd report "$file" 2>/dev/null | grep flyrec_plain >"$T/expected"
	grep flyrec_plain "$T/text" | diff - "$T/expected" || fail "other text than trace-cmd's"
	verify "$file"
done
"$FLYRECCTL" query --csv "SELECT sum(count) AS sum, max(text) AS text FROM user_events_flyrec_plain" "${files[0]}" >"$T/rows" || fail "query"
[ "$(tail -n 1 "$T/rows" | tr -d '\r')" = "$((N * (2 * TURNS * N + N - 1) / 2)),t$((TURNS * N + N - 1))" ] || fail "wrong data: query: $(cat "$T/rows")"
exec {TO}>&-
