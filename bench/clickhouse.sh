#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# clickhouse.sh [--build=DIR] [--npm=DIR] [--runs=N] [--seconds=N] [--pause=N] [--hosts=N] [--unit=UNIT] [--queries=GLOB]
#	[FILE] - what it costs to have FILE, a trace.dat with the scheduler's events, in ClickHouse, and to ask there
#
# Without FILE N (60) seconds are recorded first: system calls and the scheduler's, interrupt and block events of
# tasks that pass messages, fork and write files, with pauses of N (10) seconds, and of a task of late.service that
# wants CPU 0 each 5 ms, where a real-time task keeps it from that for 5 to 40 ms, 25 times. Wants root, tracefs and
# perf for that.
#
# ClickHouse is chdb, in DIR/node_modules (build/npm): npm install --prefix DIR chdb. Prints CPU time, user and system
# together, the least and the most of N (3) runs: of the export, of the insert, less what an empty program takes;
# the bytes an event then takes on the disk; and for N (50) hosts, made of the one by other names, wall and CPU time
# of the queries in one thread. Goals: 2 M events/s a core for export and insert together, 8 bytes an event, 1 s for
# 01-runqueue-who, about UNIT (late.service). Wants ten times FILE below TMPDIR (/var/tmp).

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
npm='' runs=3 seconds=60 pause=10 hosts=50 unit=late.service queries='*'
options build npm runs seconds pause hosts unit queries -- "$@"
[ ${#words[@]} -le 1 ] || usage
file=${words[0]:+$(realpath "${words[0]}")}
export NODE_PATH=${npm:-$build/npm}/node_modules FLYREC_BUILD=$build TMPDIR=${TMPDIR:-/var/tmp}
# shellcheck source-path=SCRIPTDIR/../tests/integration
. "$(dirname "$0")/../tests/integration/lib.sh"
need_command node
# shellcheck source-path=SCRIPTDIR/../tests/integration
. "$SRC/tests/integration/late-lib.sh"
dir=$T sql=$src/tests/tools/fleet-sql
client="$sql client $dir/data"

# load: until it is stopped. Only its system calls are recorded: what waits, and what it waits for, read the clock at
# full speed
load() {
	while :; do
		perf bench sched messaging -p -g 1 -l 20 >/dev/null 2>&1
		"$TOOLS/forkstorm" --count=50 >/dev/null
		dd if=/dev/zero of="$dir/junk" bs=64k count=40 conv=fsync status=none
		sleep "$pause"
	done
}

if [ -z "$file" ]; then
	need_tracefs
	need_command perf
	session bench <<-EOF
		[Trace]
		Event=sched:sched_switch
		Event=sched:sched_waking
		Event=sched:sched_wakeup_new
		Event=sched:sched_process_fork
		Event=irq
		Event=block:block_rq_issue
		Event=block:block_rq_complete
		Event=raw_syscalls:sys_enter if comm == "sched-messaging" || comm == "forkstorm" || comm == "dd"
		Event=raw_syscalls:sys_exit if comm == "sched-messaging" || comm == "forkstorm" || comm == "dd"
		BufferSize=128M
		[Storage]
		MaxFileSize=4G
		MaxUse=8G
		Compress=no
	EOF
	flyrecd_start
	late_start
	background load
	loading=$!
	for ((i = 0; i < 25; i++)); do
		sleep "$(awk -v n="$seconds" 'BEGIN { print n / 25 }')"
		late_hog $((5 + i * 35 / 24))
	done
	late_stop
	kill "$loading"
	wait "$loading" || true
	flyrecd_stop
	segments=("$STATE"/bench/record/*.dat)
	[ ${#segments[@]} = 1 ] || fail "${#segments[@]} files"
	file=${segments[0]}
fi

# cpu COMMAND...: seconds of CPU time, the least and the most of $runs
cpu() {
	local run
	for ((run = 0; run < runs; run++)); do
		/usr/bin/time -f '%U %S' -o "$dir/took" -a "$@" >/dev/null || fail "$*"
	done
	awk '{ print $1 + $2 }' "$dir/took" | sort -n | sed -n '1p;$p' | paste -sd' '
	rm "$dir/took"
}

$client --queries-file="$src/fleet/schema.sql"
cat "$file" >/dev/null
export=$(cpu "$FLYRECCTL" export --format=clickhouse --session=bench -o "$dir/events.native" "$file")
empty=$(cpu "$sql" client "$dir/data" --query="SELECT 1")
cat >"$dir/insert.sql" <<-EOF
	TRUNCATE TABLE flyrec.events;
	SYSTEM STOP MERGES flyrec.events;
	INSERT INTO flyrec.events SETTINGS insert_deduplication_token = 'bench' FORMAT Native
EOF
insert=$(cpu sh -c "'$sql' client '$dir/data' --queries-file='$dir/insert.sql' <'$dir/events.native'")
for table in waits tasks clocks findings snapshots; do
	"$FLYRECCTL" export --format=clickhouse --session=bench --table=$table "$file" >"$dir/rows"
	[ ! -s "$dir/rows" ] || $client --query="INSERT INTO flyrec.$table FORMAT Native" <"$dir/rows"
done
events=$($client --query="SELECT count() FROM flyrec.events")
$client --query="OPTIMIZE TABLE flyrec.events FINAL"
bytes=$($client --query="SELECT sum(bytes_on_disk) FROM system.parts WHERE table = 'events' AND active")
awk -v n="$events" -v export="$export" -v insert="$insert" -v empty="$empty" -v bytes="$bytes" \
	-v file="$(stat -c %s "$file")" -v native="$(stat -c %s "$dir/events.native")" '
	function line(name, least, most) {
		printf "%-16s %.2f to %.2f s  %.2f to %.2f M events/s\n", name, least, most, n / most / 1e6, n / least / 1e6
	}
	BEGIN {
		split(export, e)
		split(insert, i)
		split(empty, nothing)
		printf "%d events, %.1f bytes each in the file, %.1f in blocks\n", n, file / n, native / n
		line("export", e[1], e[2])
		line("insert", i[1] - nothing[1], i[2] - nothing[1])
		line("both", e[1] + i[1] - nothing[1], e[2] + i[2] - nothing[1])
		printf "on the disk      %.2f bytes an event\n", bytes / n
	}'

for table in events waits clocks findings snapshots; do
	$client --query="INSERT INTO flyrec.$table SELECT t.* REPLACE(concat('h', toString(n.number)) AS host)
		FROM flyrec.$table AS t CROSS JOIN numbers(2, $((hosts - 1))) AS n"
done
times=$($client --query="SELECT toString(min(ts)), toString(max(ts)) FROM flyrec.events")
echo "$hosts hosts, $($client --query="SELECT count() FROM flyrec.events") events; $unit; wall and CPU time in one thread:"
# shellcheck disable=SC2086 # a pattern
"$sql" bench "$dir/data" since="${times%%$'\t'*}" until="${times##*$'\t'}" at="${times##*$'\t'}" unit="$unit" \
	"$src"/fleet/queries/$queries.sql
