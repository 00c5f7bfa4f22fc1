#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 240
#
# The whole of it: three hosts, something is slow on one of them, which has a trigger; the others keep the same
# time, their files come into the store when somebody asks, and one SQL query over the three names the host, the
# unit that waited and who ran instead: with flyrecctl query, and (scripts/test --all) in ClickHouse's engine.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fleet-lib.sh"
. "$(dirname "$0")/ship-lib.sh"
need_tracefs
need_fleet
need_command jq mosquitto openssl python3 taskset unshare
need_event sched:sched_switch sched:sched_waking
[ "$(nproc)" -ge 2 ] || skip "needs two CPUs"
cd "$T"

# Units are below a folder of cgroups of this test
unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
own=$(awk '$3 == "cgroup" && $4 ~ /name=systemd/ { print $2; exit }' /proc/mounts)
group=${own:-$unified}/${PREFIX//./_}.slice
remove_groups() {
	[ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} +
}
at_end remove_groups
in_unit() { # UNIT COMMAND...
	mkdir -p "$group/$1"
	echo "$BASHPID" >"$group/$1/cgroup.procs"
	shift
	exec "$@"
}

fleet_pki h1 h2 h3
broker_start
# Hosts have names of their own, and h2 the CPU on which it happens
for host in h1 h2 h3; do
	host_new $host <<-EOF
		[Follow]
		MaxWindowSec=1min
		[Store]
		Remote=$STORE
		Rate=100M
		PollSec=1s
		RetrySec=1s
	EOF
	on $host
	cpu=1
	[ $host != h2 ] || cpu=0
	session rec <<-EOF
		[Trace]
		Event=sched:sched_switch
		Event=sched:sched_waking
		Event=sched:sched_wakeup_new
		Event=sched:sched_process_fork
		CPUs=$cpu
		BufferSize=2M
		[Storage]
		FlushSec=200ms
		KeepFree=0
		[Snapshot]
		Last=3s
		PeerMaxSec=1min
	EOF
	printf '#!/bin/sh\nexec unshare --uts sh -c '\''hostname %s && exec "$@"'\'' sh %s "$@"\n' $host "$FLYRECD" >"$T/$host/flyrecd"
	chmod +x "$T/$host/flyrecd"
	real=$FLYRECD FLYRECD=$T/$host/flyrecd
	flyrecd_start
	FLYRECD=$real
	fleet_start announce follow
done
mkdir -p "$STORE"

echo "== something is slow, a trigger, and the others have it, too"
# shellcheck disable=SC2016 # of the inner shell
busy='while :; do :; done'
# Before all others, however busy the machine is; the victim has a fifteenth of what the hog has, so that it waits
# some fifty milliseconds again and again
background in_unit hog.service taskset -c 0 nice -n -20 sh -c "$busy"
hog=$!
background in_unit victim.service taskset -c 0 nice -n -8 sh -c "$busy"
victim=$!
on h2
waited() {
	ctl snapshot rec --reason=before --last=3s -o probe.dat >/dev/null 2>&1 &&
		[ "$("$FLYRECCTL" query --csv "SELECT count(*) > 0 FROM runqueue WHERE unit = 'victim.service' AND
			nsec > 20000000" probe.dat | tail -n 1)" = 1 ]
}
wait_for 40 waited || fail "nobody waited for a CPU"
ctl trigger rec "p99 of victim.service" || fail "trigger"
trigger_id() {
	ID=$(ctl --json list rec | jq -r '[.files[] | select(.path | endswith("-control.dat"))] | last | .ids[0] // empty')
	[ -n "$ID" ]
}
wait_for 20 trigger_id || fail "no snapshot"
kill "$hog" "$victim"
[[ $ID == h2-* ]] || fail "the id is $ID"
for host in h1 h3; do
	on $host
	wait_for 20 has_id "$ID" || fail "$host does not have $ID: $(cat "$(fleet_log follow)")"
done

echo "== the host with the trigger sends its file, the others say what they have"
for host in h1 h2 h3; do
	on $host
	HOST=$host
	fleet ship --once || fail "$host: ship"
done
fleet pull --list "$ID" | cut -f 1-3 | sort >list
printf 'have\th1\trec\nhave\th3\trec\nstored\th2\trec\n' | cmp - list || fail "list: $(cat list)"

echo "== three files of the same time, when somebody asks"
status=0
fleet pull "$ID" -o got >out 2>err || status=$?
[ "$status $(wc -l <out) $(wc -l <err)" = "1 1 2" ] || fail "pull: $status, $(cat out err)"
for host in h1 h3; do
	on $host
	HOST=$host
	fleet ship --once || fail "$host: ship"
done
fleet pull "$ID" -o got >files || fail "pull"
[ "$(wc -l <files)" = 3 ] || fail "pull: $(cat files)"
mapfile -t files <files
verify "${files[@]}"
"$FLYRECCTL" query --json "SELECT host, from_ts / 1000, to_ts / 1000 FROM files ORDER BY host" "${files[@]}" >windows || fail "query files"
jq -e '.rows | map(.[0]) == ["h1", "h2", "h3"]' windows >/dev/null || fail "hosts: $(cat windows)"

echo "== one query over all of them: host, unit, culprit"
# who ran on that CPU during the longest wait, and how long
cat >query.sql <<-'END'
	WITH w AS (SELECT host, ts, ts + nsec AS till, cpu, unit FROM runqueue
		WHERE unit = 'victim.service' ORDER BY nsec DESC LIMIT 1),
	ran AS (SELECT s.unit AS unit, s.ts - max(w.ts, lag(s.ts, 1, w.ts) OVER (ORDER BY s.ts)) AS nsec
		FROM w JOIN sched_sched_switch s ON s.host = w.host AND s.cpu = w.cpu AND s.ts > w.ts AND s.ts <= w.till)
	SELECT w.host, w.unit, ran.unit AS culprit, sum(ran.nsec) / 1000000 AS ran_ms
	FROM w, ran GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT 1
END
"$FLYRECCTL" query --csv "$(cat query.sql)" "${files[@]}" >answer || fail "query"
cat answer
[ "$(tail -n 1 answer | cut -d , -f 1-3)" = "h2,victim.service,hog.service" ] || fail "wrong data: the query says: $(cat answer)"
"$FLYRECCTL" merge -o all.dat "${files[@]}" || fail "merge"
verify all.dat
[ "$("$FLYRECCTL" query --csv "$(cat query.sql)" all.dat)" = "$(cat answer)" ] || fail "wrong data: of the merged file it says other things"

export NODE_PATH=${FLYREC_NPM:-$BUILD/npm}/node_modules
if ! thorough || [ ! -d "$NODE_PATH/chdb" ]; then
	echo "not in ClickHouse's engine: scripts/test --all"
	exit 0
fi
echo "== the same in ClickHouse's engine"
need_command node
sql=$SRC/tests/tools/fleet-sql
"$SRC/fleet/flyrec-fleet-load" --create --client="$sql client $T/data" "${files[@]}" || fail "load"
at=$(jq '.rows | map(.[2]) | max / 1000000 + 1' windows)
"$sql" client "$T/data" "--queries-file=$SRC/fleet/queries/01-runqueue-who.sql" --param_unit=victim.service \
	"--param_at=$(date -ud "@$at" '+%F %T')" >answer || fail "query"
cat answer
[ "$(head -n 1 answer | cut -f 1,3)" = $'h2\thog.service' ] || fail "wrong data: the query says: $(cat answer)"
