#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 300
#
# flyrecctl view and why: waits are, to the nanosecond, what another program computes from the exported
# events, and what trace-cmd report --profile says; of recordings of trace-cmd, of several segments of
# a session as one, compressed ones, ones with losses, and foreign files. Options and bad input.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd zstd python3 taskset chrt
need_event sched:sched_switch sched:sched_waking
cd "$T"
name=${PREFIX}v
check=$SRC/tests/tools/check-waits

cat >work <<-'END'
	#!/bin/sh
	exec >storm.out
	"$TOOLS/forkstorm" --count=600
	for i in 1 2 3 4 5 6; do
		dd if=/dev/zero of=junk$i bs=64k count=40 conv=fsync status=none &
	done
	"$TOOLS/storm" --count=20000
	wait
	sync -f .
END
chmod +x work
export TOOLS

view() { # NAME FILE...
	"$FLYRECCTL" view --json --top=0 "$@" >"$1.json" 2>err || fail "view $*: $(cat err)"
}

# waits_are_right FILE... -- CHECK-OPTION...
waits_are_right() {
	local files=()
	while [ "$1" != -- ]; do
		files+=("$1")
		shift
	done
	shift
	view runqueue "${files[@]}"
	view blocked "${files[@]}"
	for file in "${files[@]}"; do
		"$FLYRECCTL" export --format=json "$file" 2>err || fail "export $file: $(cat err)"
	done >events.json
	"$check" --view=runqueue.json --blocked=blocked.json "$@" <events.json >checked 2>&1 ||
		fail "wrong data: ${files[*]}: $(tail -n 5 checked)"
	sed "s,^,${files[0]##*/}: ," checked
}

echo "== trace-cmd's"
peer_record sched.dat "$name" -b 20000 -e sched -- ./work
waits_are_right sched.dat -- --least=100 --least-blocked=1
cp runqueue.json first.json
peer_record lossy.dat "$name" -b 16 -e sched -e syscalls -- "$TOOLS/storm" --count=300000
waits_are_right lossy.dat -- --least=1
python3 -c 'import json; r = json.load(open("runqueue.json")); assert r["gaps"] > 0, r' ||
	fail "nothing was lost"
"$FLYRECCTL" view runqueue lossy.dat >out 2>err || fail "view: $(cat err)"
grep -q 'events were lost in' err || fail "no word of losses: $(cat err)"
peer_record switch.dat "$name" -e sched:sched_switch -- ./work
"$FLYRECCTL" view runqueue switch.dat >out 2>err || fail "view: $(cat err)"
grep -q 'not recorded: sched:sched_waking' err || fail "no word of what was not recorded: $(cat err)"
waits_are_right switch.dat -- --least=1

echo "== compressed"
"$FLYRECCTL" convert --version=7 -o sched7.dat sched.dat || fail "convert"
view runqueue sched7.dat
cmp runqueue.json first.json || fail "wrong data: a compressed file has other waits"

echo "== all tables"
peer_record all.dat "$name" -b 20000 -e sched -e irq -e block -e raw_syscalls -T -- ./work
"$FLYRECCTL" view --help >help || fail "--help"
for table in $("$FLYRECCTL" view | cut -f 1 | tail -n +2); do
	grep -qE "(^|[ ,])${table}[,;]" help || fail "--help has no table $table"
	grep -q "tables='.*\<$table\>" "$SRC/completion/flyrecctl" || fail "completion has no table $table"
	view "$table" all.dat
	python3 - "$table" <<-'END' || fail "view $table: $(head -c 500 "$table.json")"
		import json, sys
		view = json.load(open(sys.argv[1] + ".json"))
		assert view["view"] == sys.argv[1]
		assert view["from_usec"] <= view["to_usec"]
		for row in view["rows"]:
		    assert row.get("total_nsec", 0) >= row.get("max_nsec", 0), row
		    at = row.get("max_at_usec", view["from_usec"])
		    assert view["from_usec"] <= at <= view["to_usec"], row
		# in a container there may be no device of its own
		assert view["rows"] or sys.argv[1] == "block", "no rows"
	END
done
# counted by another program
view events all.dat
"$FLYRECCTL" export --format=json all.dat >all.json
python3 - <<-'END' || fail "wrong data: events, system calls or softirqs"
	import collections, json
	want, calls, soft, enter, begun = collections.Counter(), {}, {}, {}, {}
	for line in open("all.json"):
	    e = json.loads(line)
	    want[e["system"] + ":" + e["event"]] += 1
	    if "lost_before" in e:
	        raise SystemExit("lost events: no check")
	    if e["system"] == "raw_syscalls" and e["pid"]:
	        nr = e["fields"]["id"]
	        if e["event"] == "sys_enter":
	            enter[e["pid"]] = nr, e["ts"]
	        elif enter.get(e["pid"], (None,))[0] == nr:
	            calls.setdefault(nr, []).append(e["ts"] - enter.pop(e["pid"])[1])
	        else:
	            enter.pop(e["pid"], None)
	    if e["event"] == "softirq_entry":
	        begun[e["cpu"]] = e["fields"]["vec"], e["ts"]
	    elif e["event"] == "softirq_exit" and begun.get(e["cpu"], (None,))[0] == e["fields"]["vec"]:
	        soft.setdefault(e["fields"]["vec"], []).append(e["ts"] - begun.pop(e["cpu"])[1])
	assert {r["event"]: r["count"] for r in json.load(open("events.json"))["rows"]} == want
	for name, key, mine in ("syscalls", "number", calls), ("softirq", "vector", soft):
	    rows = {r[key]: (r["count"], r["total_nsec"], r["max_nsec"]) for r in json.load(open(name + ".json"))["rows"]}
	    mine = {n: (len(v), sum(v), max(v)) for n, v in mine.items()}
	    assert rows == mine, (name, rows, mine)
END
"$FLYRECCTL" view --top=0 syscalls all.dat >out || fail "view syscalls"
grep -qE '^(write|read)\b' out || fail "system calls have no names: $(head -n 3 out)"
"$FLYRECCTL" view --folded blocked all.dat >folded || fail "view --folded"
grep -qE '^[^;]+(;[^; ]+)+ [0-9]+$' folded || fail "no stacks: $(head -n 3 folded)"

echo "== a session"
session sched <<-EOF
	[Trace]
	Event=sched
	BufferSize=4M
	[Storage]
	FlushSec=200ms
EOF
# trace-cmd's profile knows neither sched_waking nor instances in trace-cmd's own files
session wakeup <<-EOF
	[Trace]
	Event=sched:sched_switch
	Event=sched:sched_wakeup
	Event=sched:sched_wakeup_new
	BufferSize=4M
EOF
session none <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_switch
EOF
flyrecd_start
mkdir sched # is no recording
for i in 1 2 3; do
	./work
	ctl rotate sched >path || fail "rotate"
	ctl view --json --top=0 tasks sched >live.json 2>err || fail "view of a session: $(cat err)"
	grep -q '"task":"storm"' live.json || fail "round $i: no storm: $(head -c 500 live.json)"
done
# a segment that is finished between two looks at the session is not lost; its task is in no other one
cp "$TOOLS/storm" between
background ./between --count=2000
wait "$!" || fail "between"
FLYREC_FAULT_POINT=source-opened "$FLYRECCTL" "--runtime-dir=$RUNTIME" view --json --top=0 tasks sched >live.json 2>err &
viewer=$!
CHILDREN+=("$viewer")
is_stopped() { [ "$(process_state $viewer)" = T ]; }
wait_for 10 is_stopped || fail "view does not come to its fault point: $(cat err)"
ctl rotate sched >path || fail "rotate"
kill -CONT $viewer
wait $viewer || fail "view of a session that is rotated: $(cat err)"
grep -q '"task":"between"' live.json || fail "wrong data: a segment is lost when it is finished"
# and a list waits, not for ever, for one that has no name yet
finishing=$STATE/sched/record/.20200101T000000.000000Z.dat.finishing
: >"$finishing"
begin=${EPOCHREALTIME/./}
ctl list sched >out || fail "list"
[ $((${EPOCHREALTIME/./} - begin)) -ge 1900000 ] || fail "a list does not wait for what is being finished"
rm "$finishing"
refused 'has no segments' ctl view tasks none
refused nobody ctl view tasks nobody
ctl stop sched wakeup || fail "stop"
mapfile -t segments < <(ls "$STATE"/sched/record/*.dat)
[ ${#segments[@]} -ge 3 ] || fail "only ${#segments[@]} segments"
# in any order
waits_are_right "${segments[@]:1}" "${segments[0]}" -- --sort --least=100
mv runqueue.json files.json
ctl view --json --top=0 runqueue sched >session.json || fail "view of a stopped session"
cmp session.json files.json || fail "wrong data: a session is not its segments"
trace-cmd report --profile "$STATE"/wakeup/record/*.dat >profile 2>err || fail "trace-cmd: $(cat err)"
waits_are_right "$STATE"/wakeup/record/*.dat -- --least=1000 --profile=profile --least-profile=10
# of a time: the segments that have nothing of it are not even read
refused 'has no segments of that time' ctl view --until=2000-01-01 tasks sched
ctl view --json --since=-10min runqueue sched >since.json || fail "view --since"
grep -q '"rows":\[{' since.json || fail "view --since: $(head -c 300 since.json)"
flyrecd_stop

echo "== options"
view runqueue sched.dat
worst=$(python3 -c 'import json; print(json.load(open("runqueue.json"))["rows"][0]["pid"])')
"$FLYRECCTL" view --top=0 --task="$worst" runqueue sched.dat >out || fail "--task="
[ "$(wc -l <out)" = 2 ] || fail "--task=$worst: $(cat out)"
"$FLYRECCTL" view --top=3 runqueue sched.dat >out || fail "--top="
[ "$(wc -l <out)" = 4 ] || fail "--top=3: $(cat out)"
"$FLYRECCTL" view --json --top=0 --task='stor*' runqueue sched.dat >out || fail "--task="
python3 -c 'import json; t = {x["task"] for x in json.load(open("out"))["rows"]}
assert "storm" in t and all(x.startswith("stor") for x in t), t' || fail "--task=stor*: $(head -c 500 out)"
# the CPUs one by one are all of them
python3 - "$FLYRECCTL" "$(nproc --all)" <<-'END' || fail "wrong data: --cpu="
	import json, subprocess, sys
	def count(*options):
	    out = subprocess.run([sys.argv[1], "view", "--json", "--top=0", *options, "runqueue", "sched.dat"],
	                         check=True, capture_output=True).stdout
	    return sum(r["count"] for r in json.loads(out)["rows"])
	whole = count()
	assert whole == sum(count(f"--cpu={cpu}") for cpu in range(int(sys.argv[2]))) > 0
	assert 0 < count("--last=50ms") < whole
	view = json.load(open("runqueue.json"))
	middle = (view["from_usec"] + view["to_usec"]) // 2
	half = f"{middle // 1000000}.{middle % 1000000:06}"
	# what waits at that moment is in neither
	assert 0 < count(f"--since={half}") + count(f"--until={half}") <= whole
END

echo "== why"
"$FLYRECCTL" why --json --top=5 'dd' sched.dat >why.json 2>err || fail "why: $(cat err)"
python3 - <<-'END' || fail "wrong data: why: $(head -c 1000 why.json)"
	import json
	why = json.load(open("why.json"))
	waits = why["waits"]
	assert why["task"] == "dd" and 0 < len(waits) <= 5
	assert [w["duration_nsec"] for w in waits] == sorted((w["duration_nsec"] for w in waits), reverse=True)
	for w in waits:
	    runs, ran = w["runs"], lambda key: sum(b["nsec"] for b in w[key])
	    assert all(a["start_usec"] <= b["start_usec"] for a, b in zip(runs, runs[1:])), w
	    if w["kind"] == "runqueue":
	        assert ran("blame") + w["others_nsec"] + w["unknown_nsec"] == w["duration_nsec"], w
	        assert ran("runs") + w["shorter_nsec"] == ran("blame") + w["others_nsec"], w
	        assert all(b["pid"] != w["pid"] for b in runs + w["blame"]), w
	        assert sum(b["runs"] for b in w["blame"]) >= len(runs) or w["others_nsec"], w
END
# the longest one of all is the table's, and is found by its time
"$FLYRECCTL" why --json --top=0 "$worst" sched.dat >why.json || fail "why $worst"
"$FLYRECCTL" view --json --task="$worst" runqueue sched.dat >one.json || fail "view --task=$worst"
at=$(python3 - <<-'END'
	import json
	row = json.load(open("one.json"))["rows"][0]
	wait = [w for w in json.load(open("why.json"))["waits"] if w["kind"] == "runqueue"][0]
	assert (row["max_nsec"], row["max_at_usec"]) == (wait["duration_nsec"], wait["start_usec"]), (row, wait)
	print(f"{row['max_at_usec'] // 1000000}.{row['max_at_usec'] % 1000000:06}")
END
) || fail "wrong data: why and view differ"
"$FLYRECCTL" why --json --at="$at" "$worst" sched.dat >at.json || fail "why --at=$at"
python3 -c 'import json; a, b = (json.load(open(f))["rows" if f == "one.json" else "waits"] for f in ("one.json", "at.json"))
assert any(w["duration_nsec"] == a[0]["max_nsec"] for w in b), b' || fail "wrong data: --at=$at"
"$FLYRECCTL" why "$worst" sched.dat >out || fail "why $worst"
grep -q " waited .* for CPU " out || fail "why: $(head -c 500 out)"
grep -qE '^\[[-.+A-P]{60}\]$' out || fail "why: no time line: $(head -c 500 out)"
refused 'no such task' "$FLYRECCTL" why nobody-has-this sched.dat

echo "== who is to blame"
cpu=$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')
mkfifo nothing
cat >victim <<-'END'
	#!/bin/bash
	exec 3<>nothing
	while [ ! -e done ]; do
		read -t 0.005 -u 3
		: >ready
	done
END
# it is switched in once more, after chrt
cat >culprit <<-'END'
	#!/bin/bash
	sleep 0.02
	until=$((${EPOCHREALTIME/./} + 300000))
	while [ "${EPOCHREALTIME/./}" -lt $until ]; do :; done
END
cat >both <<-END
	#!/bin/bash
	taskset -c $cpu ./victim &
	until [ -e ready ]; do :; done
	taskset -c $cpu chrt -f 10 ./culprit
	: >done
	wait
END
chmod +x victim culprit both
peer_record blame.dat "$name" -b 20000 -e sched -- ./both
"$FLYRECCTL" why --json --top=5 victim blame.dat >why.json 2>err || fail "why victim: $(cat err)"
middle=$(python3 - <<-'END'
	import json
	# others may have gone on where the culprit stopped
	waits = [w for w in json.load(open("why.json"))["waits"] if w["blame"] and w["blame"][0]["task"] == "culprit"]
	wait, share = waits[0], waits[0]["blame"][0]
	assert wait["kind"] == "runqueue" and share["nsec"] > 100e6, wait
	run = max(wait["runs"], key=lambda r: r["nsec"])
	assert (run["task"], run["pid"], run["prio"]) == ("culprit", share["pid"], 99 - 10), run
	at = run["start_usec"] + run["nsec"] // 2000
	print(f"{at // 1000000}.{at % 1000000:06}")
END
) || fail "wrong data: why victim: $(cat "$T/peer-record.log") $(head -c 1000 why.json)"
"$FLYRECCTL" why --at="$middle" victim blame.dat >out || fail "why --at=$middle"
grep -q '^\[.*AAAA.*\]$' out || fail "why --at=$middle: no time line: $(head -c 500 out)"
grep -qE '^A\b.*\bculprit\b' out || fail "why --at=$middle: $(head -c 500 out)"

echo "== what is refused"
usage() { # PATTERN ARGUMENT...
	local status=0
	"$FLYRECCTL" view "${@:2}" >out 2>err || status=$?
	[ $status = 2 ] || fail "status $status, not 2: view ${*:2}: $(cat err)"
	grep -qE -- "$1" err || fail "\"$(cat err)\" does not say $1"
}
usage 'unknown table' waits sched.dat
usage 'a SOURCE is missing' tasks
usage '--top=' --top=many tasks sched.dat
usage '--last=' --last=long tasks sched.dat
usage '--folded' --folded tasks sched.dat
usage '--cpu=' --cpu=x tasks sched.dat
refused 'not-there.dat: cannot open' "$FLYRECCTL" view tasks not-there.dat
cp work work.dat
refused 'work.dat' "$FLYRECCTL" view tasks sched.dat work.dat
# a sub-buffer, not the last one: what can be read is shown, the damage is said
size=$(stat -c %s sched.dat)
cp sched.dat damaged.dat
printf '\377\377\377\377\377\377\377\377' |
	dd of=damaged.dat bs=1 seek=$((size / 4096 * 4096 - 16384 + 8)) conv=notrunc status=none
status=0
"$FLYRECCTL" view runqueue damaged.dat >out 2>err || status=$?
[ $status = 1 ] || fail "a damaged file: status $status"
grep -q 'damaged.dat: offset' err || fail "a damaged file: $(cat err)"
[ "$(wc -l <out)" -gt 5 ] || fail "a damaged file: $(cat out)"

echo "== other people's"
DATA=$SRC/../shared/data/trace-dat
[ -d "$DATA" ] || skip "the rest is not here: $DATA"
n=0
for file in "$DATA"/*.dat "$DATA"/*.dat.zst; do
	base=$(basename "$file" .zst)
	case $file in
	*.zst) zstd -qd -o "$T/$base" "$file" ;;
	*) cp "$file" "$T/$base" ;;
	esac
	options=()
	# it does not know instances
	trace-cmd report --profile "$base" >profile 2>&1 &&
		! grep -q 'Handle not found' profile && options=(--profile=profile --least-profile=0)
	waits_are_right "$base" -- --least=0 "${options[@]}"
	n=$((n + 1))
done
[ $n -ge 7 ] || fail "only $n files"
