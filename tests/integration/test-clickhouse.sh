#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 600
#
# flyrecctl export --format=clickhouse: a reader of its own finds the rows of the JSON in ClickHouse's blocks, of all
# kinds of events, of several sessions in a file, compressed, filtered; the other tables are what query and analyze
# say, and who ran while a task waited for a CPU is what the switches say. flyrec-fleet-load gives each table to the client, says what failed, and knows the session. With chdb and
# DuckDB (scripts/test --all): loaded twice it is there once; who ran while late.service waited is told; nothing is said
# to be first that clocks 300 ms apart cannot tell; and both answer each of the ten queries alike.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/late-lib.sh"
need_tracefs
need_command python3 jq
need_event sched:sched_switch sched:sched_waking raw_syscalls:sys_enter irq:softirq_entry block:block_rq_issue
cd "$T"
check=$SRC/tests/tools/check-clickhouse
schema=$SRC/fleet/schema.sql
load=$SRC/fleet/flyrec-fleet-load

# same FILE [OPTION...]: as the JSON; what the reader says is in checked
same() {
	"$FLYRECCTL" export --format=clickhouse -o ours.native "$@" 2>err || fail "export $*: $(cat err)"
	"$FLYRECCTL" export --format=json -o theirs.json "$@" || fail "export --format=json $*"
	"$check" "$schema" events ours.native theirs.json >checked 2>&1 || fail "wrong data: $*: $(tail -n 4 checked)"
	echo "$*: $(head -n 1 checked)"
}

# same_table FILE TABLE [EVENTS [OPTION...]]: as the lines of JSON in theirs.json, and in EVENTS
same_table() {
	"$FLYRECCTL" export --format=clickhouse --table="$2" -o ours.native "$1" "${@:4}" 2>err || fail "export of $2: $(cat err)"
	"$check" "$schema" "$2" ours.native theirs.json ${3:+"$3"} >checked 2>&1 || fail "wrong data: $2: $(tail -n 4 checked)"
	echo "$2: $(head -n 1 checked)"
}

session rec <<-EOF
	[Trace]
	BufferSize=2M
	Event=sched:sched_switch
	Event=sched:sched_waking
	Event=sched:sched_wakeup_new
	Event=sched:sched_process_fork
	Event=irq
	Event=block:block_rq_issue
	Event=block:block_rq_complete
	Event=raw_syscalls:sys_enter if comm == "dd"
	Event=raw_syscalls:sys_exit if comm == "dd"
	[Storage]
	FlushSec=100ms
	KeepFree=0
	Compress=no
EOF
session fly <<-EOF
	[Session]
	Mode=flight
	[Trace]
	BufferSize=128K
	Event=sched:sched_switch
	Event=timer:hrtimer_expire_entry
EOF
flyrecd_start
if thorough; then
	late_start
	# until it is known whose task that is
	waited() {
		late_hog 25
		ctl snapshot rec --reason=before --last=3s -o probe.dat >/dev/null
		[ "$("$FLYRECCTL" query --csv "SELECT count(*) > 2 FROM runqueue WHERE unit = 'late.service' AND
			nsec > 10000000" probe.dat | tail -n 1)" = 1 ]
	}
	wait_for 30 waited || fail "nobody waited for a CPU"
fi
for _ in 1 2 3; do
	dd if=/dev/zero of=junk bs=64k count=5 conv=fsync status=none
	"$TOOLS/forkstorm" --count=30
done
# waits of 1 ms and longer: in D state; and for CPU 0, which two tasks want at the same time
"$TOOLS/waits" blocked 2000 9000 5 >/dev/null
want_cpu() {
	taskset -c 0 bash -c 'for ((i = 0; i < 30000; i++)); do :; done'
}
want_cpu &
want_cpu
wait "$!"
snapshot=$(ctl snapshot rec --last=10s --reason=mine) || fail "snapshot"
together=$(ctl snapshot --together --last=1s) || fail "snapshot --together"
! thorough || late_stop
flyrecd_stop
segments=("$STATE"/rec/record/*.dat)
segment=${segments[0]}

echo "== events"
same "$snapshot"
for column in args fields irq_name next_comm nr prev_state rwbs sector target_pid vec; do
	grep -qw "$column" checked || fail "no column $column: $(cat checked)"
done
jq -e '.boot_id == [$id] and .host == [$host]' --arg id "$(cat /proc/sys/kernel/random/boot_id)" \
	--arg host "$(uname -n)" < <(tail -n 1 checked) >/dev/null || fail "whose: $(tail -n 1 checked)"
cp ours.native first.native
"$FLYRECCTL" export --format=clickhouse "$snapshot" | cmp - first.native || fail "other bytes in a pipe"
mkdir seven
"$FLYRECCTL" convert --version=7 -o "seven/$(basename "$snapshot")" "$snapshot"
same "seven/$(basename "$snapshot")"
cmp ours.native first.native || fail "other bytes of version 7"
same "$snapshot" --event=sched:sched_switch --cpu=0
same "$snapshot" --until=1
[ ! -s ours.native ] || fail "bytes without rows"
same "$together"
jq -e '.session == ["fly", "rec"]' < <(tail -n 1 checked) >/dev/null || fail "sessions: $(tail -n 1 checked)"
"$FLYRECCTL" export --format=clickhouse --host-name=h17 --session=s17 -o named.native "$snapshot"
"$FLYRECCTL" export --format=json "$snapshot" | sed 's/^{/{"buffer":"s17",/' >theirs.json
"$check" "$schema" events named.native theirs.json >checked || fail "--session: $(cat checked)"
jq -e '.host == ["h17"]' < <(tail -n 1 checked) >/dev/null || fail "--host-name: $(tail -n 1 checked)"

echo "== losses"
peer_record lost.dat "${PREFIX}x" -b 64 -s 500000 -e raw_syscalls -- "$TOOLS/storm" --count=20000
same lost.dat
grep -qw lost_before checked || fail "no losses: $(cat checked)"

echo "== the other tables"
query() { # SQL
	"$FLYRECCTL" query --json "$1" "$snapshot" >theirs.json || fail "query $1"
}
query "SELECT pid, coalesce(tgid, 0) AS tgid, coalesce(comm, '') AS comm, coalesce(unit, '') AS unit,
	coalesce(container, '') AS container, coalesce(cgroup, '') AS cgroup, coalesce(from_ts, 0) AS from_ts,
	coalesce(to_ts, 9223372036854775807) AS to_ts FROM tasks WHERE tgid IS NOT NULL"
same_table "$snapshot" tasks
# waits TABLE KIND PREEMPTED CONDITION: as the table waits has them; names of tasks the query may have from later on
waits() {
	echo "SELECT ts, nsec, '$2' AS kind, $3 AS preempted, cpu, coalesce(pid, 0) AS pid, coalesce(tgid, 0) AS tgid,
		coalesce(unit, '') AS unit, coalesce(container, '') AS container, coalesce(waker, '') AS waker,
		coalesce(waker_pid, 0) AS waker_pid FROM $1 WHERE nsec >= 1000000 $4"
}
# checked_waits [CONDITION [OPTION...]]
checked_waits() {
	local where=${1:-}
	query "$(waits runqueue runqueue preempted "$where") UNION ALL $(waits blocked blocked 0 "$where")"
	same_table "$snapshot" waits events.json "${@:2}"
}
"$FLYRECCTL" export --format=json -o events.json "$snapshot"
checked_waits
cp ours.native first.waits
[ "$(jq '[.rows[] | select(.[2] == "blocked" and .[1] >= 2000000)] | length' theirs.json)" -ge 5 ] ||
	fail "waits of what was blocked: $(head -c 500 theirs.json)"
[ "$(jq '[.rows[] | select(.[2] == "runqueue" and .[3] == 1)] | length' theirs.json)" -ge 2 ] ||
	fail "no waits of who was preempted: $(head -c 500 theirs.json)"
checked_waits "AND cpu = 0" --cpu=0
"$FLYRECCTL" export --format=clickhouse --table=waits "$snapshot" --event=sched:sched_switch | cmp - first.waits ||
	fail "other waits if events are chosen"
query "SELECT at, ts, trace, mono_raw, boot, width, coalesce(maxerror, 4294967295) AS maxerror,
	coalesce(status, 0) AS status, tai FROM clocks"
same_table "$snapshot" clocks
query "SELECT from_ts, to_ts, cpus, 'mine' AS reason FROM files"
same_table "$snapshot" snapshots
# of a file that nobody has analysed yet
"$FLYRECCTL" analyze --json "$segment" >theirs.json || fail "analyze"
same_table "$segment" findings
[ ! -s ours.native ] || grep -qw rule checked || fail "findings without a rule: $(cat checked)"

echo "== what is refused"
status=0
"$FLYRECCTL" export --format=clickhouse --table=nothing "$snapshot" >out 2>err || status=$?
[ "$status $(cat out)" = "2 " ] || fail "--table=nothing: $status"
grep -q 'events waits tasks clocks findings snapshots' err || fail "--table=nothing: $(cat err)"
status=0
"$FLYRECCTL" export --format=json --table=tasks "$snapshot" >out 2>err || status=$?
[ "$status" = 2 ] || fail "--table= for JSON: $status"

echo "== flyrec-fleet-load"
cat >client <<-'END'
	#!/bin/bash
	# Keeps what it is given; refuses the table $REFUSE
	table=$(sed -n 's/.*--query=INSERT INTO flyrec\.\([a-z]*\) .* FORMAT Native$/\1/p' <<<"$*")
	echo "${table:-$*}" >>"$GOT/calls"
	[ "$table" != "${REFUSE:-}" ] || { echo "client: no" >&2; exit 3; }
	[ -z "$table" ] || cat >"$GOT/$table.native"
END
chmod +x client
export FLYRECCTL GOT=$T/got REFUSE=none
mkdir got
"$load" --create --client="$T/client" "$snapshot" 2>err || fail "load: $(cat err)"
# a table without rows is left out: there may be no findings
[ "$(grep -v findings got/calls | paste -sd' ')" = "--queries-file=$schema events waits tasks clocks snapshots" ] ||
	fail "calls: $(cat got/calls)"
for table in events waits clocks snapshots; do
	"$FLYRECCTL" export --format=clickhouse --table=$table --session=rec "$snapshot" | cmp - got/$table.native ||
		fail "load: other $table"
done
rm got/*
status=0
REFUSE=waits "$load" --client="$T/client" "$snapshot" 2>err || status=$?
[ "$status" = 1 ] || fail "refused: $status"
grep -q "^flyrec-fleet: $snapshot: not loaded: table waits" err || fail "refused: $(cat err)"
[ "$(paste -sd' ' got/calls)" = "events waits" ] || fail "calls after one failed: $(cat got/calls)"
head -c 100 "$snapshot" >broken.dat
status=0
"$load" --client="$T/client" broken.dat 2>err || status=$?
[ "$status" = 1 ] || fail "a broken file: $status"
grep -q "broken.dat: not loaded" err || fail "a broken file: $(cat err)"

export NODE_PATH=${FLYREC_NPM:-$BUILD/npm}/node_modules
sql=$SRC/tests/tools/fleet-sql
if ! thorough || [ ! -d "$NODE_PATH/chdb" ]; then
	echo "not on chdb and DuckDB: scripts/test --all"
	exit 0
fi

echo "== chdb and DuckDB"
need_command node
client="$sql client $T/data"
count() {
	$client --query="SELECT count() FROM flyrec.events"
}
"$load" --create --client="$client" "$snapshot" || fail "load into chdb"
n=$(count)
[ "$n" = "$("$FLYRECCTL" export --format=json "$snapshot" | wc -l)" ] || fail "wrong data: $n rows"
"$load" --client="$client" "$snapshot" || fail "load it again"
[ "$(count)" = "$n" ] || fail "wrong data: loaded twice it is there twice"
"$load" --host=h2 --client="$client" "$snapshot" || fail "load it as of another host"
[ "$(count)" = $((2 * n)) ] || fail "wrong data: $(count) rows of two hosts"
mkdir other
cp "$together" "other/$(basename "$snapshot")"
"$load" --client="$client" "other/$(basename "$snapshot")" || fail "load another file of this name"
m=$("$FLYRECCTL" export --format=json "$together" | wc -l)
[ "$(count)" = $((2 * n + m)) ] || fail "wrong data: $(count) rows, with $m of another file of the same name"
$client --query="ALTER TABLE flyrec.events DELETE WHERE host != 'h2' SETTINGS mutations_sync = 2"
cp "$snapshot" "other/it's \\ one.dat"
"$load" --host=h3 --session=rec --client="$client" "other/it's \\ one.dat" || fail "load a file with a quote in its name"
[ "$(count)" = $((2 * n)) ] || fail "wrong data: $(count) rows of h2 and h3"
"$FLYRECCTL" query --json "SELECT min(from_ts) / 1000000000 AS a, max(to_ts) / 1000000000 + 3 AS b FROM files" "$snapshot" >seconds
since=$(date -ud "@$(jq '.rows[0][0]' seconds)" '+%F %T')
until=$(date -ud "@$(jq '.rows[0][1]' seconds)" '+%F %T')

# clock_errors H2 H3: microseconds
clock_errors() {
	$client --query="ALTER TABLE flyrec.clocks UPDATE maxerror = if(host = 'h2', $1, $2) WHERE true SETTINGS mutations_sync = 2"
}
# ask NUMBER [PARAMETER]...: rows as lines of JSON
ask() {
	local query=("$SRC"/fleet/queries/"$1"-*.sql) options=()
	# of a busy machine there may be more rows
	sed '/^LIMIT/d' "${query[0]}" >query.sql
	shift
	for word; do options+=("--param_$word"); done
	$client --queries-file=query.sql --format=JSONEachRow "${options[@]}" >asked || fail "query ${query[0]}"
}
# relations: of 09
relations() {
	ask 09 since="$since" until="$until"
	jq -r '.host + ": " + .relation' asked | paste -sd,
}

echo "== clocks that are 300 ms apart"
# h3's is ahead of that of h2: all else that they tell of is the very same
$client --query="CREATE TABLE flyrec.moved AS flyrec.events;
	INSERT INTO flyrec.moved SELECT * REPLACE(ts + toIntervalMillisecond(300) AS ts) FROM flyrec.events WHERE host = 'h3';
	ALTER TABLE flyrec.events DELETE WHERE host = 'h3' SETTINGS mutations_sync = 2;
	INSERT INTO flyrec.events SELECT * FROM flyrec.moved; DROP TABLE flyrec.moved;
	ALTER TABLE flyrec.snapshots DELETE WHERE host NOT IN ('h2', 'h3') SETTINGS mutations_sync = 2;
	ALTER TABLE flyrec.snapshots UPDATE ts = ts + toIntervalMillisecond(300) WHERE host = 'h3' SETTINGS mutations_sync = 2;
	TRUNCATE TABLE flyrec.findings"
clock_errors 200000 110000
[ "$(relations)" = "h2: cannot tell,h3: cannot tell" ] || fail "errors of 310 ms: $(cat asked)"
[ "$(jq -c '[.host, .error_us, .after_first_ms]' asked | paste -sd' ')" = '["h2",200000,0] ["h3",110000,300]' ] ||
	fail "which errors: $(cat asked)"
clock_errors 200000 90000
[ "$(relations)" = "h2: first,h3: after" ] || fail "errors of 290 ms: $(cat asked)"
clock_errors 0 4294967295
[ "$(relations)" = "h2: cannot tell,h3: cannot tell" ] || fail "an unknown error: $(cat asked)"
clock_errors 200000 110000
ask 01 unit=late.service at="$until"
jq -es '(map(select(.host == "h2")) | map(del(.host, .worst_at, .error_us))) as $a |
	(map(select(.host == "h3")) | map(del(.host, .worst_at, .error_us))) as $b | $a == $b and ($a | length) > 0 and
	all(.[]; .host == "h2" and .error_us == 200000 or .host == "h3" and .error_us == 110000 or
		.host != "h2" and .host != "h3")' asked >/dev/null || fail "01: $(cat asked)"
# who ran, and for how long, as flyrecctl has it of the file, which leaves out what had not ended
worst=$("$FLYRECCTL" query --csv "SELECT max(nsec) AS n FROM runqueue WHERE unit = 'late.service'" "$snapshot" | tail -n 1)
open=$($client --query="SELECT max(nsec) FROM flyrec.waits WHERE host = 'h2' AND unit = 'late.service' AND open = 1")
jq -es --argjson worst $((worst > open ? worst : open)) 'map(select(.host == "h2")) |
	(map(.worst_ms) | max) as $most | ($most - $worst / 1e6 | fabs) < 0.001 and
	any(.[]; .ran_comm == "fifo-hog" and .worst_task == "victim" and .waits >= 3)' asked >/dev/null ||
	fail "01: fifo-hog, $worst ns: $(cat asked)"
at=$($client --query="SELECT toString(max(ts) - toIntervalMillisecond(301)) FROM flyrec.events WHERE host = 'h3'")
ask 08 at="$at"
jq -es 'map(select(.host == "h2" or .host == "h3")) | length > 0 and
	all(.[]; .error_us >= 110000 and (.certain == 0 or .ran_for_ms * 1000 > .error_us)) and any(.[]; .certain == 0)' \
	asked >/dev/null || fail "08: $(cat asked)"
ask 10 since="$since" until="$until"
[ "$(jq -c 'select(.host == "h2" or .host == "h3") | [.host, .error_us]' asked | paste -sd' ')" = \
	'["h2",200000] ["h3",110000]' ] || fail "10: $(cat asked)"

echo "== the ten queries on both"
"$load" --host=h4 --client="$client" "$snapshot" "$segment" || fail "load as of another host"
"$sql" compare "$T/data" since="$since" until="$until" at="$until" unit=late.service "$SRC"/fleet/queries/*.sql ||
	fail "queries"
