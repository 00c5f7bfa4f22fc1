#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# clickhouse.sh [--build=DIR] [--npm=DIR] [--runs=N] [--hosts=N] [--unit=UNIT] [--queries=GLOB] FILE - what it costs to have FILE, a
# trace.dat with the scheduler's events, in ClickHouse, and to ask there
#
# ClickHouse is chdb, in DIR/node_modules (build/npm): npm install --prefix DIR chdb. Prints CPU time, user and system
# together, the least of N (3) runs: of the export, of the insert, less what an empty program takes; the bytes an
# event then takes on the disk; and for N (50) hosts, made of the one by other names, wall and CPU time of the
# queries in one thread. Goals: 2 M events/s a core for export and insert together, 8 bytes an event, 1 s for
# 01-runqueue-who, about UNIT (that with most runs). Wants ten times FILE below TMPDIR (/var/tmp).

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
npm='' runs=3 hosts=50 unit='' queries='*'
options build npm runs hosts unit queries -- "$@"
[ ${#words[@]} = 1 ] || usage
file=$(realpath "${words[0]}")
export NODE_PATH=${npm:-$build/npm}/node_modules
place "${TMPDIR:-/var/tmp}"
set -eu
sql=$src/tests/tools/fleet-sql
client="$sql client $dir/data"

# cpu COMMAND...: the least seconds of CPU time of $runs
cpu() {
	local run
	for ((run = 0; run < runs; run++)); do
		/usr/bin/time -f '%U %S' -o "$dir/took" -a "$@" >/dev/null
	done
	awk '{ print $1 + $2 }' "$dir/took" | sort -n | head -n 1
	rm "$dir/took"
}

$client --queries-file="$src/fleet/schema.sql"
cat "$file" >/dev/null
export=$(cpu "$build/flyrecctl" export --format=clickhouse --session=bench -o "$dir/events.native" "$file")
empty=$(cpu "$sql" client "$dir/data" --query="SELECT 1")
insert=$(cpu sh -c "'$sql' client '$dir/data' --query='TRUNCATE TABLE flyrec.events; SYSTEM STOP MERGES flyrec.events;
	INSERT INTO flyrec.events FORMAT Native' <'$dir/events.native'")
for table in tasks clocks findings snapshots; do
	"$build/flyrecctl" export --format=clickhouse --session=bench --table=$table "$file" >"$dir/rows"
	[ ! -s "$dir/rows" ] || $client --query="INSERT INTO flyrec.$table FORMAT Native" <"$dir/rows"
done
events=$($client --query="SELECT count() FROM flyrec.events")
$client --query="OPTIMIZE TABLE flyrec.events FINAL"
bytes=$($client --query="SELECT sum(bytes_on_disk) FROM system.parts WHERE table = 'events' AND active")
awk -v n="$events" -v export="$export" -v insert="$insert" -v empty="$empty" -v bytes="$bytes" \
	-v file="$(stat -c %s "$file")" -v native="$(stat -c %s "$dir/events.native")" 'BEGIN {
	printf "%d events, %.1f bytes each in the file, %.1f in blocks\n", n, file / n, native / n
	printf "export           %.2f s  %.2f M events/s\n", export, n / export / 1e6
	printf "insert           %.2f s  %.2f M events/s\n", insert - empty, n / (insert - empty) / 1e6
	printf "both             %.2f s  %.2f M events/s\n", export + insert - empty, n / (export + insert - empty) / 1e6
	printf "on the disk      %.2f bytes an event\n", bytes / n
}'

for table in events clocks findings snapshots; do
	$client --query="INSERT INTO flyrec.$table SELECT t.* REPLACE(concat('h', toString(n.number)) AS host)
		FROM flyrec.$table AS t CROSS JOIN numbers(2, $((hosts - 1))) AS n"
done
unit=${unit:-$($client --query="SELECT unit FROM flyrec.events WHERE name = 'sched_switch' AND unit != ''
	GROUP BY unit ORDER BY count() DESC LIMIT 1")}
times=$($client --query="SELECT toString(min(ts)), toString(max(ts)) FROM flyrec.events")
echo "$hosts hosts, $($client --query="SELECT count() FROM flyrec.events") events; $unit; wall and CPU time in one thread:"
# shellcheck disable=SC2086 # a pattern
"$sql" bench "$dir/data" since="${times%%$'\t'*}" until="${times##*$'\t'}" at="${times##*$'\t'}" unit="$unit" \
	"$src"/fleet/queries/$queries.sql
