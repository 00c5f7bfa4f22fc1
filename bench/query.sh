#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# query.sh [--build=DIR] [--runs=N] [--size=MIB] [--loops=N] [FILE] - `flyrecctl query` beside SQLite after
# loading exported JSON, `trace-cmd report | awk`, and DuckDB over Parquet where node has @duckdb/node-api
# (NODE_PATH)
#
# Without FILE the scheduler's events of `perf bench sched messaging`, N (12000) messages, are recorded
# first. Then MIB (10240) of system calls at full speed are recorded, with a quiet second in their middle,
# of which a window of 100 ms is asked for; 0: without that. Wants root, tracefs, perf, and 1.5 times MIB
# below TMPDIR (/var/tmp).
#
# Prints the least and the most milliseconds of CPU time, user and system together, of N (5) runs, start of the
# program included, from the page cache, and the most memory; peers run once. Goals: count(*) 50 ms a million events, percentiles by unit of ten million
# 2 s, a window of 100 ms out of 10 GB 20 ms, compressed 100 ms, 64 MB.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
runs=5 size=10240 loops=12000
options build runs size loops -- "$@"
file=${words[0]:+$(realpath "${words[0]}")}
export FLYREC_BUILD=$build TMPDIR=${TMPDIR:-/var/tmp}
# shellcheck source-path=SCRIPTDIR/../tests/integration
. "$(dirname "$0")/../tests/integration/lib.sh"
need_command trace-cmd sqlite3
cd "$T"

# timed NAME COMMAND...: "NAME  LEAST to MOST ms, MB"
timed() {
	local name=$1
	shift
	for ((run = 0; run < runs; run++)); do
		/usr/bin/time -f '%U %S %M' -o took -a "$@" >printed 2>errors || fail "$*: $(tail -n 2 errors)"
	done
	awk '{ print $1 + $2, $3 }' took | sort -n | awk -v name="$name" '
		NR == 1 { least = $1 }
		{ most = $1; if ($2 > memory) memory = $2 }
		END { printf "%-44s %d to %d ms, %.1f MB\n", name, 1000 * least, 1000 * most, memory / 1024 }'
	rm took
}

query() { # NAME SQL FILE...
	timed "$1" "$FLYRECCTL" query --csv "${@:2}"
}

if [ -z "$file" ]; then
	need_tracefs
	need_command perf
	session sched <<-EOF
		[Trace]
		Event=sched
		BufferSize=128M
		[Storage]
		MaxFileSize=2G
		MaxUse=4G
		Compress=no
	EOF
	flyrecd_start
	perf bench sched messaging -p -g 4 -l "$loops" >/dev/null 2>&1 || fail "perf bench sched messaging"
	flyrecd_stop
	rm "$CONFIG/sessions.d/sched.conf"
	mv "$STATE/sched/record"/*.dat sched.dat
	file=$T/sched.dat
fi
cat "$file" >/dev/null
events=$("$FLYRECCTL" query --csv 'SELECT count(*) FROM events' "$file" | tail -n 1)
echo "$(basename "$file"): $events events, $(du --apparent-size -m "$file" | cut -f1) MB, load $(cut -d' ' -f1 /proc/loadavg)"
query "count(*)" 'SELECT count(*) FROM events' "$file"
query "count(*) of sched_switch" "SELECT count(*) FROM events WHERE name = 'sched_switch'" "$file"
query "count(*) GROUP BY name" 'SELECT name, count(*) FROM events GROUP BY name' "$file"
query "count(*) GROUP BY comm" 'SELECT comm, count(*) FROM events GROUP BY comm' "$file"
query "top next_comm" 'SELECT next_comm, count(*) FROM sched_sched_switch GROUP BY 1 ORDER BY 2 DESC LIMIT 5' "$file"
query "percentiles of runqueue by unit" \
	'SELECT unit, count(*), percentile(nsec, 50), percentile(nsec, 99), max(nsec) FROM runqueue GROUP BY unit' "$file"

# the peers, once: how often each event was there
runs_before=$runs runs=1
timed "trace-cmd report | awk" sh -c "trace-cmd report '$file' | awk '{ n[\$4]++ } END { for (e in n) print e, n[e] }'"
cat >load.py <<-'END'
	import json, sqlite3, sys
	db = sqlite3.connect(sys.argv[1])
	db.execute("CREATE TABLE events(ts INTEGER, cpu INTEGER, pid INTEGER, comm TEXT, name TEXT, fields TEXT)")
	db.executemany("INSERT INTO events VALUES(?,?,?,?,?,?)", ((e["ts"], e["cpu"], e["pid"], e["comm"], e["event"],
	               json.dumps(e["fields"])) for e in map(json.loads, sys.stdin)))
	db.commit()
END
timed "export --format=json into SQLite" sh -c "rm -f rows.db; '$FLYRECCTL' export --format=json '$file' | python3 load.py rows.db"
runs=$runs_before
timed "then count(*) GROUP BY name there" sqlite3 rows.db 'SELECT name, count(*) FROM events GROUP BY name'
rm -f rows.db
# through Parquet, as who keeps rows for DuckDB has them
cat >duck.js <<-'END'
	const { DuckDBInstance } = require("@duckdb/node-api");
	(async () => {
		const duckdb = await (await DuckDBInstance.create(":memory:")).connect();
		console.log(String((await duckdb.runAndReadAll(process.argv[2])).getRows()));
	})();
END
if node -e 'require("@duckdb/node-api")' 2>/dev/null; then
	"$FLYRECCTL" export --format=json -o rows.json "$file"
	runs=1
	timed "exported JSON into Parquet by DuckDB" node duck.js "COPY (SELECT ts, cpu, pid, comm, event, fields::VARCHAR
		AS fields FROM read_ndjson('rows.json', columns = {ts: 'BIGINT', cpu: 'INT', pid: 'INT', comm: 'VARCHAR',
		event: 'VARCHAR', fields: 'JSON'})) TO 'rows.parquet'"
	runs=$runs_before
	timed "then count(*) GROUP BY event there" node duck.js "SELECT event, count(*) FROM 'rows.parquet' GROUP BY 1"
	rm -f rows.json rows.parquet
else
	echo "DuckDB: not here"
fi
[ "$size" != 0 ] || exit 0

echo
need_tracefs
recorded() { # MIB
	[ "$(du -sm "$STATE/load/record" 2>/dev/null | cut -f1)" -ge "$1" ] # files come and go
}
session load < <(
	printf '[Trace]\nEvent=raw_syscalls\nBufferSize=64M\n[Storage]\nMaxFileSize=1G\nMaxUse=%dM\nCompress=no\n' $((2 * size))
)
flyrecd_start
load_start
wait_for 600 recorded $((size / 2)) || fail "too slow"
load_stop
sleep 1
middle=$(date +%s%N)
sleep 1
load_start
wait_for 600 recorded "$size" || fail "too slow"
load_stop
flyrecd_stop
files=("$STATE"/load/record/*.dat)
window="SELECT count(*) FROM events WHERE ts BETWEEN $middle AND $middle + 100000000"
# of the file that has it, and of all of them
for one in "${files[@]}"; do
	has=$("$FLYRECCTL" query --csv "SELECT from_ts <= $middle AND to_ts > $middle FROM files" "$one" | tail -n 1)
	[ "$has" != 1 ] || found=$one
done
echo "${#files[@]} files, $(du -cm "${files[@]}" | tail -n 1 | cut -f1) MB"
query "100 ms out of the file that has them" "$window" "$found"
query "100 ms out of all files" "$window" "${files[@]}"
"$FLYRECCTL" convert --version=7 -o packed.dat "$found" || fail "convert"
query "100 ms out of one of them, compressed" "$window" packed.dat
