#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 300
#
# Two sessions with different clocks as if they were of two hosts, merged: trace-cmd, libtracecmd and
# KernelShark show the events of both, with the text that each file has by itself; what both have
# recorded is at the same time; each table and query says of a host what it says of that host's file.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_tool libtracecmd-open
need_command trace-cmd jq python3 protoc
need_event sched:sched_switch sched:sched_process_exec

# refused TEXT ARGUMENT...
refused() {
	local text=$1
	shift
	if "$FLYRECCTL" "$@" >"$T/out" 2>"$T/err"; then fail "not refused: $*"; fi
	grep -qF -- "$text" "$T/err" || fail "$*: $(cat "$T/err"), not: $text"
	[ ! -e "$T/no.dat" ] || fail "$* was refused, but made a file"
}

# report FILE [BUFFER]: "TIME REST" of its events, or of a ring buffer's, without the names of tasks
report() {
	trace-cmd report "$1" 2>"$T/stderr" >"$T/report" || fail "trace-cmd: $(cat "$T/stderr")"
	[ ! -s "$T/stderr" ] || fail "trace-cmd warns: $(cat "$T/stderr")"
	# The buffer's name is in front of what was lost, not of the event behind that
	sed -E '/EVENTS DROPPED\]$/ { N; s/CPU:[0-9]+ \[[^]]*\]\n// }' "$T/report" |
		grep -E "^ *${2:+$2:} .*\] +[0-9]+\.[0-9]+: " |
		sed -E 's/^.*-([0-9]+) +(\[[0-9]+\]) +([0-9]+\.[0-9]+): (.*)$/\3 \1 \2 \4/'
}

session web <<-END
	[Trace]
	Event=sched:sched_switch
	Event=sched:sched_waking
	Event=sched:sched_process_exec
	Clock=mono
	BufferSize=4M
	[Storage]
	FlushSec=100ms
	KeepFree=0
END
session db <<-END
	[Trace]
	Event=sched:sched_process_exec
	Event=sched:sched_switch
	Clock=tai
	BufferSize=4M
	[Storage]
	FlushSec=100ms
	KeepFree=0
END
session more <<-END
	[Trace]
	Event=sched:sched_process_exit
	Clock=mono
	BufferSize=4M
	[Storage]
	FlushSec=100ms
	KeepFree=0
END
flyrecd_start
cp "$(type -P true)" "$T/marker"
for _ in {1..20}; do "$T/marker"; done
ctl snapshot --together --output="$T/together.dat" web more >/dev/null || fail "snapshot"
flyrecd_stop
web=$(echo "$STATE"/web/record/2*.dat)
db=$(echo "$STATE"/db/record/2*.dat)
both=$T/both.dat

echo "== merged"
"$FLYRECCTL" merge -o "$both" "one=$web" "two=$db" >"$T/said" || fail "merge"
cat "$T/said"
grep -qx 'flyrec merge: times by the clock of two:db (tai)' "$T/said" || fail "not by the clock of db"
grep -qE '^one:web: moved by [0-9]+\.[0-9]{9} s, its clock was right to ' "$T/said" || fail "one is not moved"
"$FLYRECCTL" --json verify "$both" | jq -e '.files[0].errors == []' >/dev/null || fail "verify"
grep -qE '^two:db: not moved, its clock was right to ' "$T/said" || fail "two is moved"
verify "$both"
trace-cmd report --stat "$both" >"$T/stat" 2>/dev/null
grep -qxF "$(sed -n 2p "$T/said")" "$T/stat" || fail "the file does not say how its times were moved"
"$TOOLS/libtracecmd-open" "$both" >"$T/open" 2>&1 || fail "$(cat "$T/open")"
if [ -x "$TOOLS/kshark-names" ]; then
	"$TOOLS/kshark-names" "$both" >"$T/names" 2>"$T/err" || fail "KernelShark: $(cat "$T/names" "$T/err")"
	entries=$(sed -n 's/ entries, .*//p' "$T/names")
	events=$("$FLYRECCTL" --json verify "$both" | jq '[.files[0].cpus[].events] | add')
	[ "$entries" -ge "$events" ] || fail "KernelShark shows $entries events of $events"
fi

echo "== the text of each file"
report "$db" >"$T/db.alone"
report "$both" two:db >"$T/db.merged"
[ -s "$T/db.alone" ] || fail "no events"
diff -q "$T/db.alone" "$T/db.merged" >/dev/null ||
	fail "two:db differs: $(diff "$T/db.alone" "$T/db.merged" | head -n 5)"
report "$web" >"$T/web.alone"
report "$both" one:web >"$T/web.merged"
# The file's date and the readings of its clocks were taken one after the other, each while something
# else may have run: all times are off by the same, and by no more than that
paste -d '\n' "$T/web.alone" "$T/web.merged" | awk '
	{ time = $1; sub(/^[0-9.]+ /, "") }
	NR % 2 { first = time; rest = $0; next }
	NR == 2 { off = time - first }
	$0 != rest || off > 0.0005 || off < -0.0005 || time - first - off > 0.0000015 || off - (time - first) > 0.0000015 {
		print first, rest " became " time, $0
		exit 1
	}' || fail "one:web has another text"

echo "== one moment in both"
for host in one:web two:db; do
	report "$both" "$host" | grep "sched_process_exec: .*$T/marker" | sed -E 's/ .* pid=([0-9]+).*/ \1/' >"$T/exec.$host"
done
[ "$(wc -l <"$T/exec.one:web")" -ge 20 ] || fail "markers of $(wc -l <"$T/exec.one:web") tasks only"
awk 'NR == FNR { at[$2] = $1; next }
	!($2 in at) { print $2 " is on one only"; exit 1 }
	at[$2] - $1 > 0.0005 || $1 - at[$2] > 0.0005 { print $2 ": " at[$2] " and " $1; exit 1 }' \
	"$T/exec.one:web" "$T/exec.two:db" || fail "the same event at different times"

echo "== each host by itself"
# alone FILE HOST VERB...: what it says of the host is what it says of the file
alone() {
	local file=$1 host=$2 only=$3
	shift 3
	"$FLYRECCTL" --json "$@" "$file" 2>/dev/null | jq -S "$only" >"$T/expected"
	"$FLYRECCTL" --json "$@" "$both" 2>/dev/null |
		jq -S ".hosts[] | select(.host == \"$host\") | .result | $only" >"$T/got"
	[ -s "$T/expected" ] || fail "$*: nothing"
	diff "$T/expected" "$T/got" >"$T/diff" || fail "$* of $host: $(head -n 5 "$T/diff")"
}
rows='[.rows[] | del(.max_at_usec)]'
alone "$web" one "$rows" view runqueue --top=0
alone "$db" two "$rows" view runqueue --top=0
alone "$web" one "$rows" view events --top=0
alone "$web" one '.events, [.cpus[].busy_nsec]' analyze
alone "$web" one '[.waits[].duration_nsec]' why "$("$FLYRECCTL" --json view runqueue "$web" 2>/dev/null | jq '.rows[0].pid')"
"$FLYRECCTL" view runqueue "$both" 2>/dev/null | grep '^==' >"$T/headings"
[ "$(cat "$T/headings")" = $'== one\n== two' ] || fail "headings: $(cat "$T/headings")"

echo "== as a Perfetto trace"
"$FLYRECCTL" export --format=perfetto -o "$T/both.pb" "$both" || fail "export --format=perfetto"
"$FLYRECCTL" export --format=json -o "$T/both.json" "$both" || fail "export --format=json"
cpus=$("$FLYRECCTL" --json verify "$both" | jq '[.files[0].cpus[].cpu] | max + 1')
"$SRC/tests/tools/check-perfetto" "$T/both.pb" "$T/both.json" "$cpus" one two >"$T/checked" 2>&1 ||
	fail "wrong data: Perfetto: $(tail -n 3 "$T/checked")"
head -n 1 "$T/checked"
for host in one two; do
	grep -aq "flyrec $host, its clock may be wrong by [0-9]* ns" "$T/both.pb" || fail "no track of $host"
done

# query SQL FILE...
query() { "$FLYRECCTL" query --csv "$@" | tr -d '\r'; }

echo "== as rows for ClickHouse"
for table in events tasks clocks; do
	"$FLYRECCTL" export --format=clickhouse --table=$table -o "$T/$table.native" "$both" || fail "export of $table"
done
# rows TABLE HOST: in the lines of JSON in $T/theirs, and no others
rows() {
	"$SRC/tests/tools/check-clickhouse" "$SRC/fleet/schema.sql" "$1@$2" "$T/$1.native" "$T/theirs" >"$T/checked" 2>&1 ||
		fail "wrong data: $1 of $2: $(tail -n 4 "$T/checked")"
	echo "$1 of $2: $(head -n 1 "$T/checked")"
}
cat >"$T/move.py" <<-'END'
	import json, sys
	for line in sys.stdin:
	    event = json.loads(line)
	    print(json.dumps(event | {"ts": event["ts"] + int(sys.argv[1]), "buffer": sys.argv[2]}))
END
for name in one:web two:db; do
	file=$web
	[ $name = one:web ] || file=$db
	moved=$(($(query "SELECT min(ts) AS t FROM events WHERE host = '${name%:*}'" "$both" | tail -n 1) - \
		$(query "SELECT min(ts) AS t FROM events" "$file" | tail -n 1)))
	[ "${moved#-}" -lt 500000 ] || fail "$name is off by $moved ns"
	"$FLYRECCTL" export --format=json "$file" | python3 "$T/move.py" "$moved" "${name#*:}" >"$T/theirs"
	rows events "${name%:*}"
	[ "$(tail -n 1 "$T/checked" | jq -c '[.session, .file]')" = "[[\"${name#*:}\"],[\"both.dat ($name)\"]]" ] ||
		fail "whose: $(tail -n 1 "$T/checked")"
	"$FLYRECCTL" query --json "SELECT at, ts, coalesce(maxerror, 4294967295) AS maxerror FROM clocks" "$file" >"$T/theirs"
	rows clocks "${name%:*}"
	"$FLYRECCTL" query --json "SELECT pid, coalesce(comm, '') AS comm, coalesce(cgroup, '') AS cgroup
		FROM tasks WHERE tgid IS NOT NULL" "$file" >"$T/theirs"
	rows tasks "${name%:*}"
done
"$FLYRECCTL" merge -o "$T/alone.dat" "one=$web" "one=$db" >/dev/null || fail "merge of one host"
"$FLYRECCTL" export --format=clickhouse --table=snapshots -o "$T/snapshots.native" "$T/alone.dat"
"$FLYRECCTL" query --json "SELECT 'one' AS host, 'web' AS session, cpus FROM files" "$web" |
	jq '.rows += [["one", "db", .rows[0][2]]]' >"$T/theirs"
rows snapshots one

echo "== in SQL"
for table in events sched_sched_switch runqueue tasks; do
	{
		echo "host,n"
		echo "one,$(query "SELECT count(*) AS n FROM $table" "$web" | tail -n 1)"
		echo "two,$(query "SELECT count(*) AS n FROM $table" "$db" | tail -n 1)"
	} >"$T/expected"
	query "SELECT host, count(*) AS n FROM $table GROUP BY host" "$both" >"$T/got"
	diff "$T/expected" "$T/got" || fail "$table of hosts"
	total=$(query "SELECT sum(n) FROM (SELECT comm, count(*) AS n FROM $table GROUP BY comm)" "$both" | tail -n 1)
	[ "$total" = "$(awk -F , 'NR > 1 { n += $2 } END { print n }' "$T/expected")" ] || fail "$table in groups: $total"
	rows=$(query "SELECT count(DISTINCT rowid) FROM $table" "$both" | tail -n 1)
	[ "$rows" = "$total" ] || fail "$table: $rows different rows of $total"
done
query "SELECT ts FROM events ORDER BY ts" "$both" | tail -n +2 | sort -nc || fail "not in the order of time"
query "SELECT * FROM files" "$web" | head -n 1 | grep -q host && fail "a host where there is one only"

echo "== several files alike"
# the same file of another host: its name in the file is as long
name=$(uname -n)
python3 - "$db" "$T/other.dat" "Linux $name " <<-'END'
	import sys
	data = open(sys.argv[1], 'rb').read()
	old = sys.argv[3].encode()
	new = old[:6] + b'x' * (len(old) - 7) + b' '
	assert data.count(old) == 1 and old != new
	open(sys.argv[2], 'wb').write(data.replace(old, new))
END
"$FLYRECCTL" view runqueue "$web" "$T/other.dat" 2>/dev/null | grep '^==' >"$T/headings"
[ "$(cat "$T/headings")" = "== $name"$'\n'"== ${name//?/x}" ] || fail "headings: $(cat "$T/headings")"
"$FLYRECCTL" --json view runqueue --top=0 "$web" "$T/other.dat" 2>/dev/null | jq -S '.hosts[1].result.rows' >"$T/got"
"$FLYRECCTL" --json view runqueue --top=0 "$T/other.dat" 2>/dev/null | jq -S '.rows' >"$T/expected"
cmp "$T/got" "$T/expected" || fail "files of two hosts were mixed up"

echo "== pictures of several files are those of the merged one"
"$FLYRECCTL" merge -o "$T/same.dat" "$web" "$T/other.dat" >/dev/null || fail "merge"
times="SELECT host, min(ts) AS first, max(ts) AS last, count(*) AS n FROM events GROUP BY host ORDER BY host"
query "$times" "$T/same.dat" >"$T/expected" || fail "query of the merged file"
query "$times" "$web" "$T/other.dat" >"$T/got" || fail "query of two files"
diff "$T/expected" "$T/got" || fail "query of two files has other times than of the merged one"
"$FLYRECCTL" export --format=json -o "$T/same.json" "$T/same.dat" || fail "export --format=json"
"$FLYRECCTL" export --format=perfetto -o "$T/several.pb" "$web" "$T/other.dat" || fail "export of two files"
"$SRC/tests/tools/check-perfetto" "$T/several.pb" "$T/same.json" "$cpus" "$name" "${name//?/x}" >"$T/checked" 2>&1 ||
	fail "wrong data: Perfetto: $(tail -n 3 "$T/checked")"
head -n 1 "$T/checked"
"$FLYRECCTL" export --format=html -o "$T/same.html" "$T/same.dat" || fail "export --format=html"
"$FLYRECCTL" export --format=html -o "$T/several.html" "$web" "$T/other.dat" || fail "export of two files"
title="$(basename "$web") and 1 more"
grep -qF "<title>$title - flyrec</title>" "$T/several.html" || fail "another title than $title"
sed "s/$title/same.dat/; s/ $(basename "$web") other.dat</ same.dat</" "$T/several.html" >"$T/several.same"
grep -q '<code>flyrecctl .* same.dat<' "$T/same.html" || fail "no command in the page"
cmp "$T/several.same" "$T/same.html" || fail "another page"

echo "== what is refused"
refused "are the same recording" merge -o "$T/no.dat" "one=$web" "two=$web"
"$FLYRECCTL" convert --version=7 -o "$T/copy.dat" "$web"
refused "are the same recording" merge -o "$T/no.dat" "one=$web" "two=$T/copy.dat"
refused "is merged already" merge -o "$T/no.dat" "$both" "$db"
refused "two FILEs are wanted" merge -o "$T/no.dat" "$web"
refused "not a trace.dat" merge -o "$T/no.dat" "$web" "$T/report"
refused "is the file to merge" merge -o "$db" "$web" "$db"
refused "a file is wanted" merge -o - "$web" "$db"
refused "is merged from other files" convert --version=7 -o "$T/no.dat" "$both"
refused "is merged, and says" export --format=clickhouse --host-name=x -o "$T/no.dat" "$both"
refused "is merged, and says" export --format=clickhouse --session=x -o "$T/no.dat" "$both"
refused "one FILE is wanted" export --format=clickhouse -o "$T/no.dat" "$web" "$db"
refused "one FILE is wanted" export --format=json -o "$T/no.dat" "$web" "$db"
refused "is the file to export" export --format=perfetto -o "$db" "$web" "$db"
refused "not a trace.dat" export --format=html -o "$T/no.dat" "$web" "$T/report"
head -c 100000 "$web" >"$T/cut.dat"
refused "cut.dat" merge -o "$T/no.dat" "$T/cut.dat" "$db"

echo "== a file that has ring buffers of its own"
"$FLYRECCTL" merge -o "$T/three.dat" "three=$T/together.dat" "two=$db" >/dev/null || fail "merge"
verify "$T/three.dat"
for name in web more; do
	report "$T/together.dat" $name | cut -d ' ' -f 2- >"$T/expected"
	report "$T/three.dat" three:$name | cut -d ' ' -f 2- >"$T/got"
	[ -s "$T/expected" ] || fail "no events of $name"
	cmp "$T/expected" "$T/got" || fail "three:$name has other events"
done
[ "$(query "SELECT count(*) AS n FROM events WHERE host = 'three'" "$T/three.dat")" = \
	"$(query "SELECT count(*) AS n FROM events" "$T/together.dat")" ] || fail "events of three"

echo "== of version 7, and damaged"
"$FLYRECCTL" merge -o "$T/seven.dat" "one=$T/copy.dat" "two=$db" >"$T/said" || fail "merge of version 7"
report "$T/seven.dat" one:copy >"$T/got"
cmp "$T/got" "$T/web.merged" || fail "a file of version 7 has other events"
python3 - "$web" "$T/damaged.dat" <<-'END'
	import struct, sys
	data = bytearray(open(sys.argv[1], 'rb').read())
	at = data.index(b'flyrecord\0') + 10
	offset, size = struct.unpack_from('=QQ', data, at)
	assert size > 0
	data[offset + 8:offset + 12] = struct.pack('=I', 0xfffff) # more bytes than a sub-buffer has
	open(sys.argv[2], 'wb').write(data)
END
status=0
"$FLYRECCTL" merge -o "$T/damaged-both.dat" "one=$T/damaged.dat" "two=$db" >/dev/null 2>"$T/err" || status=$?
[ $status = 1 ] || fail "status $status of a damaged file"
grep -q "damaged.dat: offset 0x" "$T/err" || fail "$(cat "$T/err")"
verify "$T/damaged-both.dat"
