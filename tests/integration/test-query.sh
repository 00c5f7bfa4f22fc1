#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 300
#
# flyrecctl query: fifty queries give what SQLite gives over exported rows, of recordings of trace-cmd,
# compressed ones, ones with losses, several segments, by the extension, too; waits are those of view; a
# session with segments and snapshots has each event once; the examples; the shell; what SQL may not do,
# time, memory, and Ctrl-C; damaged files.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd sqlite3
need_event sched:sched_switch sched:sched_waking
cd "$T"
if [ ! -e "$BUILD/flyrec.so" ]; then
	! "$FLYRECCTL" query 'SELECT 1' none.dat 2>err || fail "query, without SQLite"
	grep -q 'was built without SQLite' err || fail "without SQLite: $(cat err)"
	skip "built without SQLite"
fi
name=${PREFIX}q
check=$SRC/tests/tools/check-queries
library=$BUILD/flyrec.so

# of a sanitizer that is not in Python
! nm -D "$library" | grep -q __asan_init || library=''

query() { # SQL FILE...: prints rows as CSV without the heading
	"$FLYRECCTL" query --csv "$@" >out 2>err || fail "query $*: $(cat err)"
	tail -n +2 out
}

is() { # EXPECTED SQL FILE...
	local got
	got=$(query "${@:2}") || exit 1
	[ "$got" = "$1" ] || fail "wrong data: ${*:2}: $got, not $1"
}

echo "== fifty queries"
peer_record all.dat "$name" -b 20000 -e sched -e irq -e block -e raw_syscalls -- "$TOOLS/storm" --count=5000
"$check" "$FLYRECCTL" all.dat ${library:+"$library"} >checked 2>&1 || fail "wrong data: $(cat checked)"
cat checked
"$FLYRECCTL" convert --version=7 -o all7.dat all.dat || fail "convert"
"$check" "$FLYRECCTL" all7.dat >checked 2>&1 || fail "wrong data: compressed: $(cat checked)"
peer_record lossy.dat "$name" -b 16 -e sched -e irq -e raw_syscalls -- "$TOOLS/storm" --count=60000
"$check" "$FLYRECCTL" lossy.dat >checked 2>&1 || fail "wrong data: with losses: $(cat checked)"
[ "$(query 'SELECT count(*) FROM events WHERE lost_before IS NOT 0' lossy.dat)" -gt 0 ] || fail "nothing was lost"
grep -qE '^flyrecctl: query: events were lost in [1-9][0-9]* places?$' err || fail "no word of losses: $(cat err)"
"$FLYRECCTL" view runqueue lossy.dat >view.text 2>view.notes || fail "view"
query 'SELECT count(*), count(unit) FROM runqueue' lossy.dat >out
diff <(sed -n 's/^flyrecctl: query: //p' err) <(sed -n 's/^flyrecctl: view: //p' view.notes) || fail "not as view says"
query 'SELECT count(*) FROM tasks' lossy.dat >out
[ ! -s err ] || fail "no events were asked for: $(cat err)"

echo "== waits are those of view"
compare_with_view() { # VIEW KEY SQL
	"$FLYRECCTL" view --json --top=0 "$1" all.dat >view.json 2>err || fail "view $1: $(cat err)"
	"$FLYRECCTL" query --json "$3" all.dat >query.json 2>err || fail "query $3: $(cat err)"
	python3 - "$2" <<-'END' || fail "wrong data: $1"
		import json, sys
		view = {tuple(r[k] for k in sys.argv[1].split()): (r["count"], r["total_nsec"], r["max_nsec"])
		        for r in json.load(open("view.json"))["rows"]}
		query = {tuple(r[:-3]): tuple(r[-3:]) for r in json.load(open("query.json"))["rows"]}
		assert view == query, (len(view), len(query), set(view.items()) ^ set(query.items()))
	END
}
sums="count(*), sum(nsec), max(nsec)"
compare_with_view runqueue pid "SELECT pid, $sums FROM runqueue GROUP BY pid"
compare_with_view blocked pid "SELECT pid, $sums FROM blocked GROUP BY pid"
compare_with_view softirq vector "SELECT number, $sums FROM irqs WHERE kind = 'softirq' GROUP BY number"
compare_with_view irq "irq name" "SELECT number, name, $sums FROM irqs WHERE kind = 'irq' GROUP BY number, name"
compare_with_view syscalls "syscall number" "SELECT name, number, $sums FROM syscalls GROUP BY name, number"
compare_with_view block "device operation" "SELECT device, operation, $sums FROM block GROUP BY device, operation"
# the sum of both kinds, too
"$FLYRECCTL" view --json --top=0 runqueue all.dat >view.json || fail "view"
is "$(python3 -c 'import json; r = json.load(open("view.json"))["rows"]
print(sum(x["wakeup_nsec"] for x in r), sum(x["preempted_nsec"] for x in r), sep=",")')" \
	'SELECT sum(nsec) FILTER (WHERE NOT preempted), sum(nsec) FILTER (WHERE preempted) FROM runqueue' all.dat

echo "== several files, and a session with snapshots of its segments"
session sched <<-EOF
	[Trace]
	Event=sched
	BufferSize=4M
	[Storage]
	FlushSec=200ms
EOF
session flight <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_switch
	BufferSize=1M
EOF
flyrecd_start
for _ in 1 2 3; do
	"$TOOLS/forkstorm" --count=100
	ctl rotate sched >path || fail "rotate"
	ctl snapshot sched flight >path || fail "snapshot"
done
ctl stop sched flight || fail "stop"
mapfile -t segments < <(ls "$STATE"/sched/record/*.dat)
mapfile -t snapshots < <(ls "$STATE"/sched/snapshot/*.dat)
{ [ ${#segments[@]} -ge 3 ] && [ ${#snapshots[@]} = 3 ]; } || fail "${#segments[@]} segments, ${#snapshots[@]} snapshots"
sum="SELECT count(*), sum(ts % 1000003), sum(pid) FROM events"
whole=$(query "$sum" "${segments[@]}")
is "$whole" "$sum" "${segments[@]:1}" "${segments[0]}"
# A snapshot may have a date that was read better than that of a segment before it: other times, by microseconds
sum="SELECT count(*), sum(pid), sum(length(fields)) FROM events"
whole=$(query "$sum" "${segments[@]}")
ctl query --csv "$sum" sched >out 2>err || fail "query of a session: $(cat err)"
[ "$(tail -n 1 out)" = "$whole" ] || fail "wrong data: a session with snapshots: $(cat out), not $whole"
ctl query --csv "SELECT count(*) > 100, count(*) = count(DISTINCT ts || ' ' || cpu || fields) FROM events" flight >out 2>err ||
	fail "query of a flight session: $(cat err)"
[ "$(tail -n 1 out)" = 1,1 ] || fail "wrong data: a flight session's snapshots have events twice: $(cat out)"
if [ -n "$library" ]; then
	got=$(FLYREC_SOURCES="$STATE/sched/record" sqlite3 -cmd ".load $library" :memory: "$sum" 2>err) || fail "sqlite3: $(cat err)"
	[ "$got" = "${whole//,/|}" ] || fail "wrong data: sqlite3 over a directory: $got"
	mkdir both
	ln "${segments[@]}" both
	for file in "${snapshots[@]}"; do ln "$file" "both/snapshot-${file##*/}"; done
	got=$(sqlite3 -cmd ".load $library" -cmd "SELECT flyrec_open('both') > 20" :memory: "$sum" 2>err | tr '\n' ' ') ||
		fail "sqlite3: $(cat err)"
	[ "$got" = "1 ${whole//,/|} " ] || fail "wrong data: a directory of segments and snapshots: $got"
	! sqlite3 -cmd ".load $library" :memory: "SELECT flyrec_open('none.dat')" >out 2>&1 || fail "opened none.dat"
	grep -q 'none.dat: cannot open' out || fail "flyrec_open: $(cat out)"
fi
is "${#segments[@]}" 'SELECT count(*) FROM files WHERE from_ts <= to_ts' "${segments[@]}"
[ "$(query "SELECT count(*) FROM clocks WHERE at = 'begin' AND ts > 1e18" "${segments[@]}")" -ge 3 ] || fail "no clocks"
[ "$(query "SELECT count(*) FROM tasks WHERE comm = 'systemd' OR tgid = pid" "${segments[@]}")" -ge 1 ] || fail "no tasks"

echo "== a file that grows"
ctl start sched || fail "start"
count_now() {
	ctl query --csv 'SELECT count(*) FROM events' sched >now 2>err || fail "query of a running session: $(cat err)"
	tail -n 1 now
}
before=$(count_now)
"$TOOLS/forkstorm" --count=100
has_grown() { [ "$(count_now)" -gt "$before" ]; }
wait_for 10 has_grown || fail "no more events than $before"
flyrecd_stop

echo "== examples"
"$FLYRECCTL" query --examples >examples.sql || fail "--examples"
[ "$(grep -c '^-- ' examples.sql)" = 10 ] || fail "not ten examples"
"$FLYRECCTL" query --csv all.dat <examples.sql >out 2>err || fail "examples: $(cat err)"
[ "$(wc -l <out)" -gt 60 ] || fail "examples: $(cat out)"
"$FLYRECCTL" query "${segments[@]}" <examples.sql >out 2>err || fail "examples without events: $(cat err)"

echo "== forms"
row="SELECT 1 AS a, 2.5 AS b, NULL AS c, '' AS d, 'x,\"y' AS e, x'00ff' AS f, 'a' || char(10) || 'b' AS g, 9e999 AS h"
"$FLYRECCTL" query --csv "$row" all.dat >out || fail "--csv"
[ "$(cat out)" = "$(printf 'a,b,c,d,e,f,g,h\n1,2.5,,"","x,""y",00ff,"a\nb",Inf')" ] || fail "--csv: $(cat out)"
"$FLYRECCTL" query --json "$row" all.dat >out || fail "--json"
python3 -c 'import json; assert json.load(open("out")) == {"columns": list("abcdefgh"),
"rows": [[1, 2.5, None, "", "x,\"y", "00ff", "a\nb", None]]}' || fail "--json: $(cat out)"
"$FLYRECCTL" query "$row" all.dat >out || fail "columns"
[ "$(cat out)" = "$(printf 'A\tB\tC\tD\tE\tF\tG\tH\n1\t2.5\t-\t\tx,"y\t00ff\ta\\nb\tInf')" ] || fail "columns: $(cat out)"
"$FLYRECCTL" query --top=3 --csv 'SELECT ts FROM events' all.dat >out || fail "--top="
[ "$(wc -l <out)" = 4 ] || fail "--top=3: $(cat out)"
printf '.mode csv\n.tables irq*\n.schema files\nSELECT 1,\n2;\n.quit\nSELECT 3;\n' |
	"$FLYRECCTL" query all.dat >out 2>err || fail "shell: $(cat err)"
grep -qx irq_softirq_entry out || fail "shell: $(cat out)"
grep -q '^CREATE TABLE "files"("file" TEXT, ' out || fail "shell: $(cat out)"
[ "$(tail -n 1 out)" = 1,2 ] || fail "shell: $(cat out)"
! printf 'SELECT nothing;\n' | "$FLYRECCTL" query all.dat >out 2>err || fail "shell: status 0"

echo "== options"
all=$(query 'SELECT count(*) FROM events' all.dat)
sum=0
for ((cpu = 0; cpu < $(nproc --all); cpu++)); do
	sum=$((sum + $(query --cpu=$cpu 'SELECT count(*) FROM events' all.dat)))
done
[ "$sum" = "$all" ] || fail "wrong data: --cpu=: $sum, not $all"
IFS=, read -r pid comm < <(query 'SELECT pid, comm FROM events WHERE pid > 0 AND comm IS NOT NULL
	GROUP BY pid, comm ORDER BY count(*) DESC LIMIT 1' all.dat)
is "$(query "SELECT count(*) FROM events WHERE comm GLOB '${comm%?}*'" all.dat)" \
	'SELECT count(*) FROM events' --task="${comm%?}*" all.dat
is "$(query "SELECT count(*) FROM events WHERE pid = $pid" all.dat)" 'SELECT count(*) FROM events' --task="$pid" all.dat
is "$(query "SELECT count(*) FROM runqueue WHERE pid = $pid" all.dat)" \
	'SELECT count(*) FROM runqueue' --task="$pid" all.dat
last=$(query --last=2ms 'SELECT count(*) FROM events' all.dat)
{ [ "$last" -gt 0 ] && [ "$last" -lt "$all" ]; } || fail "--last=2ms: $last of $all"

echo "== what is refused"
for sql in "ATTACH 'x.db' AS x" "CREATE TABLE x(y)" "CREATE TEMP TABLE x(y)" "DELETE FROM events" \
	"UPDATE sqlite_master SET name = 'x'" "INSERT INTO events(ts) VALUES(1)" "PRAGMA writable_schema=1" \
	"PRAGMA hard_heap_limit=0" "VACUUM INTO 'x.db'" "SELECT load_extension('$library')" "BEGIN" \
	"CREATE VIRTUAL TABLE x USING dbstat" "SELECT readfile('/etc/passwd')" \
	"SELECT 1; SELECT nothing" "SELECT" "SELECT * FROM events WHERE"; do
	refused query "$FLYRECCTL" query "$sql " all.dat
done
[ ! -e x.db ] || fail "a query has made a file"
usage() { # PATTERN ARGUMENT...
	local status=0
	"$FLYRECCTL" query "${@:2}" >out 2>err || status=$?
	[ $status = 2 ] || fail "status $status, not 2: query ${*:2}: $(cat err)"
	grep -qE -- "$1" err || fail "\"$(cat err)\" does not say $1"
}
usage 'a SOURCE is missing'
usage 'a SOURCE is missing' 'SELECT 1'
usage 'timeout' --timeout=soon 'SELECT 1' all.dat
usage 'max-memory' --max-memory=1 'SELECT 1' all.dat
usage 'only one' --csv --json 'SELECT 1' all.dat
refused 'one statement' "$FLYRECCTL" query --json 'SELECT 1; SELECT 2' all.dat
forever="WITH RECURSIVE f(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM f)"
refused 'timeout=' timeout 20 "$FLYRECCTL" query --timeout=300ms "$forever SELECT count(*) FROM f" all.dat
refused 'timeout=' timeout 20 "$FLYRECCTL" query --timeout=300ms \
	'SELECT count(*) FROM events a, events b, events c WHERE a.cpu > 5000 OR b.cpu > 5000 OR c.cpu > 5000' all.dat
refused 'more memory' "$FLYRECCTL" query --max-memory=8M \
	"$forever, g AS MATERIALIZED (SELECT x, hex(randomblob(100)) FROM f LIMIT 1000000) SELECT count(*) FROM g a, g b" all.dat
refused 'more memory|too big' "$FLYRECCTL" query 'SELECT length(randomblob(1000000000))' all.dat

echo "== Ctrl-C ends what the shell runs, not the shell"
mkfifo lines
setsid "$FLYRECCTL" query --csv all.dat <lines >shell.out 2>shell.err &
shell=$!
at_end "kill -KILL -- -$shell 2>/dev/null || true"
exec 7>lines
echo 'SELECT 41 + 1;' >&7
answered() { grep -qx 42 shell.out; }
wait_for 10 answered || fail "the shell says $(cat shell.out shell.err)"
echo "$forever SELECT count(*) FROM f;" >&7
# the one that reads recordings; the other one may still be at its prompt
reader=$(pgrep -P $shell) || fail "one process"
interrupted() {
	kill -INT "$reader"
	grep -q interrupted shell.err
}
wait_for 10 interrupted || fail "not interrupted: $(cat shell.err)"
echo 'SELECT 6 * 8;' >&7
exec 7>&-
status=0
wait $shell || status=$?
[ $status = 1 ] || fail "status $status of a shell in which a query failed: $(cat shell.err)"
grep -qx 48 shell.out || fail "the shell did not go on: $(cat shell.out shell.err)"

echo "== damaged"
size=$(stat -c %s all.dat)
cp all.dat damaged.dat
printf '\377\377\377\377\377\377\377\377' |
	dd of=damaged.dat bs=1 seek=$((size / 4096 * 4096 - 16384 + 8)) conv=notrunc status=none
status=0
"$FLYRECCTL" query --csv 'SELECT count(*) FROM events' damaged.dat >out 2>err || status=$?
[ $status = 1 ] || fail "a damaged file: status $status"
grep -q 'damaged.dat: offset' err || fail "a damaged file: $(cat err)"
[ "$(tail -n 1 out)" -gt $((all / 2)) ] || fail "a damaged file: $(cat out)"
cp "$check" no.dat
refused 'no.dat' "$FLYRECCTL" query 'SELECT 1 ' no.dat
