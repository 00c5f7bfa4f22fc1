#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 120
#
# OnLatency= at its limit, with real waits from 19 ms to 21 ms around one of 20 ms, of each kind that can be made
# here: system call, blocked, for a device. How long each took is computed from the exported recording by
# the manual's definitions alone; the record session tells just those that reached the limit, the flight session those
# above 20.5 ms and none below 19.5. And irq, softirq, unit= and dev=: each fires, and each does not.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command jq python3 losetup
need_event sched:sched_switch sched:sched_waking raw_syscalls:sys_enter raw_syscalls:sys_exit block:block_rq_issue \
	block:block_rq_complete irq:irq_handler_entry irq:softirq_entry
need_tool waits
COUNT=${LIMIT_WAITS:-100}
cd "$T"
NAME=l$$
ln -s "$TOOLS/waits" "$NAME"
ln -s "$TOOLS/waits" "end$$"

CGROUPS=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -w "${CGROUPS:-/nonexistent}" ] || skip "no control groups of version 2 that may be changed"
UNIT=${PREFIX}slow.service
remove_group() {
	[ ! -d "$CGROUPS/$UNIT" ] || rmdir "$CGROUPS/$UNIT"
}
at_end remove_group
mkdir "$CGROUPS/$UNIT"

truncate -s 1M slow other
DEVICE=$(losetup --find --show slow) || skip "no loop devices here"
at_end losetup --detach "$DEVICE"
OTHER=$(losetup --find --show other) || skip "no second loop device here"
at_end losetup --detach "$OTHER"

status() { # SESSION TEXT FIELD: of the trigger
	ctl --json status "$1" | jq -r --arg text "$2" --arg field "$3" \
		'.sessions[0].triggers[] | select(.kind == "latency" and .text == $text) | .[$field]'
}
is_armed() { # SESSION TEXT
	[ "$(status "$1" "$2" state)" = armed ]
}
hits() { # SESSION TEXT: how often the condition was fulfilled
	ctl --json status "$1" | jq --arg text "$2" \
		'.sessions[0].triggers[] | select(.kind == "latency" and .text == $text) | .fired + .suppressed'
}
has_hits() { # SESSION TEXT
	[ "$(hits "$1" "$2")" -ge 1 ]
}

declare -A CONDITIONS=(
	[sleep]="syscall clock_nanosleep 20ms task=$NAME"
	[blocked]="blocked 20ms task=$NAME"
	[block]="block 20ms dev=$(lsblk -dno MAJ:MIN "$DEVICE" | tr -d ' ')"
)
ELSEWHERE="block 20ms dev=$(lsblk -dno MAJ:MIN "$OTHER" | tr -d ' ')"
IN_UNIT="syscall clock_nanosleep 250ms unit=$UNIT"
IN_NO_UNIT="syscall clock_nanosleep 250ms unit=no-$UNIT"
# the last one of all: what it takes comes after all others
LAST="syscall clock_nanosleep 1s task=end$$"

for mode in record flight; do
	session $mode <<-EOF
		[Session]
		Mode=$mode
		[Trace]
		Event=oom:mark_victim
		BufferSize=16M
		[Storage]
		MaxUse=2G
		KeepFree=0
		[Snapshot]
		Last=1s
		Burst=1
		IntervalSec=1h
		Analyze=no
		$(printf 'OnLatency=%s\n' "${CONDITIONS[@]}" "$ELSEWHERE" "$IN_UNIT" "$IN_NO_UNIT" "$LAST")
	EOF
done
# they fire so often that none must be left out for them
session interrupts <<-EOF
	[Trace]
	Event=oom:mark_victim
	[Snapshot]
	Last=1s
	Burst=1
	IntervalSec=1h
	Analyze=no
	OnLatency=irq 1us
	OnLatency=irq 10s
	OnLatency=softirq 1us
	OnLatency=softirq 10s
EOF
flyrecd_start
for s in record flight; do
	wait_for 15 is_armed $s "$LAST" || fail "$s is not armed: $(status $s "$LAST" unavailable)"
done

# many KIND TASKS [WORD...]: COUNT waits of this kind by so many tasks at a time
many() {
	local kind=$1 tasks=$2 pids=() i
	shift 2
	for ((i = 0; i < tasks; i++)); do
		# each has its own share of the microseconds
		background "./$NAME" "$kind" $((19000 + i * 2)) $((21000 + i * 2)) $((COUNT / tasks + 1)) 5000 "$@" >"$kind.$i"
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || { [ $? = 77 ] && echo "$kind: not here"; } || fail "waits $kind"
	done
}
many sleep 8
many blocked 8
many block 1 "$DEVICE"
sync -f . # writes, so that there are interrupts

# shellcheck disable=SC2016 # for the inner shell
background sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$CGROUPS/$UNIT" "$TOOLS/waits" sleep 1000000000 1000000000 1
IN=$!
for s in record flight; do
	wait_for 10 has_hits $s "$IN_UNIT" || fail "$s: no wait in the unit was told"
done
kill -KILL $IN
wait $IN 2>/dev/null || true
"./end$$" sleep 1100000 1100000 1 >/dev/null
for s in record flight; do
	wait_for 10 has_hits $s "$LAST" || fail "$s: the last one was not told"
	for kind in "${!CONDITIONS[@]}"; do
		hits $s "${CONDITIONS[$kind]}" >"$s.$kind"
	done
	[ "$(hits $s "$ELSEWHERE")" = 0 ] || fail "$s: requests of another device were told"
	[ "$(hits $s "$IN_UNIT")" = 1 ] || fail "$s: $(hits $s "$IN_UNIT") waits in the unit"
	[ "$(hits $s "$IN_NO_UNIT")" = 0 ] || fail "$s: a wait in no unit was told"
done
for kind in irq softirq; do
	wait_for 10 has_hits interrupts "$kind 1us" || fail "no $kind of 1 us was told"
	[ "$(hits interrupts "$kind 10s")" = 0 ] || fail "a $kind of 10 s was told"
done
flyrecd_stop
verify "$STATE"/record/record/*.dat
for file in "$STATE"/record/record/*.dat; do
	"$FLYRECCTL" export --format=json "$file" >>record.json || fail "export"
done
"$FLYRECCTL" --json view irq "$STATE"/interrupts/snapshot/*.dat >irq.json || fail "view"
jq -e '[.rows[].max_nsec] | max >= 1000' irq.json >/dev/null || fail "no interrupt of 1 us in the files: $(cat irq.json)"

python3 - "$NAME" "$DEVICE" "$COUNT" <<'END' || fail "what is told is not what there is"
import json, os, sys
comm, device, count = sys.argv[1], os.stat(sys.argv[2]).st_rdev, int(sys.argv[3])
device = os.major(device) << 20 | os.minor(device)
waits = {"sleep": [], "blocked": [], "block": []}
names, calls, blocked, requests = {}, {}, {}, {}
for line in open("record.json"):
    e = json.loads(line)
    ts, event, f = e["ts"], e["event"], e["fields"]
    if event == "sys_enter":
        calls[e["pid"]] = ts
    elif event == "sys_exit" and e["pid"] in calls:
        begin = calls.pop(e["pid"])
        if e["comm"] == comm:
            waits["sleep"].append(ts - begin)
    elif event == "sched_waking":
        pid = f["pid"]
        names[pid] = f["comm"]
        if pid in blocked:
            begin = blocked.pop(pid)
            if names[pid] == comm:
                waits["blocked"].append(ts - begin)
    elif event == "sched_switch":
        pid, state = f["prev_pid"], int(f["prev_state"])
        names[pid] = f["prev_comm"]
        if state & 2:
            blocked[pid] = ts
    elif event == "block_rq_issue" and f["dev"] == device:
        requests[f["sector"]] = ts
    elif event == "block_rq_complete" and f["dev"] == device and f["sector"] in requests:
        waits["block"].append(ts - requests.pop(f["sector"]))
bad = 0
for kind, all in waits.items():
    at = {msec: sum(w >= msec * 1000000 for w in all) for msec in (19, 19.5, 20, 20.5)}
    told = {s: int(open(f"{s}.{kind}").read()) for s in ("record", "flight")}
    print(f"{kind}: of {at[19]} waits of 19 ms {at[19.5]} took 19.5, {at[20]} 20, {at[20.5]} 20.5 ms; told: {told}")
    made = kind in ("sleep", "blocked") or os.path.getsize(f"{kind}.0") > 0
    bad += made and (at[19] < count or not 0 < at[20] < at[19])
    bad += told["record"] != at[20] or not at[20.5] <= told["flight"] <= at[19.5]
sys.exit(bad)
END
