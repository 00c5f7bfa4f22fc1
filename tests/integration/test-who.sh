#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 300
#
# Which unit and container an event's task belongs to, in control groups that are made here, in systemd's own
# hierarchy and in the unified one: of tasks that live through a look, of short ones in a storm of forks, of
# ones that are moved, of a pid that is used twice; in segments, after a kill, in snapshots of all kinds,
# compressed and converted. --unit= and --container=. What files say that do not know.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command jq python3 trace-cmd
need_event sched:sched_switch sched:sched_process_fork cgroup:cgroup_attach_task
cd "$T"
check=$SRC/tests/tools/check-who
id=$(printf 'fly%s' "$$" | sha256sum | cut -c 1-64)

unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
own=$(awk '$3 == "cgroup" && $4 ~ /name=systemd/ { print $2; exit }' /proc/mounts)
[ -n "$own" ] || own=$unified
[ -w "${own:-/nonexistent}" ] || skip "no control groups that may be changed"
slice=${PREFIX//./_}.slice

remove_groups() {
	local root
	for root in "$own" "$unified"; do
		[ ! -d "$root/$slice" ] || find "$root/$slice" -depth -type d -exec rmdir {} +
	done
}
at_end remove_groups

group() { # ROOT NAME: made if need be; its path is in GROUP
	GROUP=$1/$slice/$2
	mkdir -p "$GROUP"
}

# in_group GROUP COMMAND...: as a child of ours
in_group() {
	echo "$BASHPID" >"$1/cgroup.procs"
	shift
	exec "$@"
}

# A thread that only reads the clock, and one that sleeps, both in turns
cat >busy <<-'END'
	import threading, time
	def turns():
	    while True:
	        time.sleep(0.002)
	for _ in range(2):
	    threading.Thread(target=turns).start()
END

# busy_in GROUP UNIT: its threads go to tasks
busy_in() {
	background in_group "$1" python3 busy
	BUSY=$!
	wait_for 10 has_threads "$BUSY" || fail "no threads"
	for tid in /proc/"$BUSY"/task/*; do
		echo "${tid##*/} $2"
	done >>tasks
}
has_threads() {
	[ "$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l)" = 3 ]
}

export_json() { # FILE [OPTION...]
	"$FLYRECCTL" export --format=json -o events.json "$@" 2>err || fail "export $*: $(cat err)"
}
check_who() { # FILE TASKS [OPTION...]
	export_json "$1"
	"$check" --tasks="$2" "${@:3}" <events.json >checked 2>&1 || fail "wrong data: $1: $(cat checked)"
	sed "s,^,${1##*/}: ," checked
}

session rec <<-END
	[Trace]
	Event=sched:sched_switch
	Event=sched:sched_wakeup
	Event=sched:sched_process_fork
	Event=sched:sched_process_exec
	Event=cgroup:cgroup_attach_task
	BufferSize=4M
	[Storage]
	FlushSec=200ms
	SyncIntervalSec=1s
	KeepFree=0
END
session fly <<-END
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_switch
	Event=sched:sched_process_fork
	Clock=local
	BufferSize=1M
END

session beside <<-END
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_wakeup
	BufferSize=256K
END

echo "== tasks that live through a look"
units=()
for i in 1 2 3 4; do
	group "$own" "${PREFIX}s$i.service"
	busy_in "$GROUP" "${PREFIX}s$i.service"
	units+=("$BUSY")
done
group "$unified" "docker-$id.scope"
busy_in "$GROUP" "docker-$id.scope"
contained=$BUSY
flyrecd_start
pause 1
segment=$(ctl rotate rec)
check_who "$segment" tasks --least=1000
jq -e -s --arg id "$id" --argjson pid "$contained" 'map(select(.tgid == $pid)) |
	length > 100 and all(.container == $id and .process == "python3")' events.json >jq.out ||
	fail "$contained is not in its container: $(grep -m 1 "\"tgid\":$contained" events.json)"

echo "== a flight session, several sessions, a snapshot of segments, and a file that is being written"
check_who "$(ctl snapshot fly)" tasks --least=300
check_who "$(ctl snapshot --together rec beside)" tasks --least=300
check_who "$(ctl snapshot --last=1s rec)" tasks --least=300
check_who "$STATE/rec/record/current.dat" tasks

echo "== filters"
export_json "$segment" "--unit=${PREFIX}s1,${PREFIX}s2.service"
pids=$(jq -s -c '[.[].tgid] | unique' events.json)
[ "$pids" = "[${units[0]},${units[1]}]" ] || fail "--unit=: $pids, not ${units[0]}, ${units[1]}"
export_json "$segment" "--container=${id:0:12}"
pids=$(jq -s -c '[.[].tgid] | unique' events.json)
[ "$pids" = "[$contained]" ] || fail "--container=: $pids, not $contained"
n=$("$FLYRECCTL" export --format=text "--unit=${PREFIX}s1" "$segment" | grep -c python3)
[ "$n" -gt 100 ] || fail "text with --unit=: $n lines"
# what a tail shows comes from the file, and of new tasks from the kernel
group "$own" "${PREFIX}new.service"
background in_group "$GROUP" python3 busy
new=$!
tail_has_new() {
	ctl tail --json -n 20 "--unit=${PREFIX}new*" rec >tail.json 2>err &&
		jq -e -s --argjson pid "$new" 'length == 20 and all(.tgid == $pid)' tail.json >jq.out
}
wait_for 20 tail_has_new || fail "tail: $(head -n 2 tail.json) $(cat err)"
kill "$new"

echo "== view and why"
"$FLYRECCTL" view units --json --top=0 "$segment" >view.json || fail "view units"
jq -e --arg unit "${PREFIX}s1.service" --arg slice "$slice" \
	'.rows[] | select(.unit == $unit) | .tasks == 2 and .run_nsec > 0 and .slice == $slice and .container == null' \
	view.json >jq.out || fail "view units: $(cat view.json)"
jq -e --arg id "$id" '.rows[] | select(.container == $id) | .unit == "docker-" + $id + ".scope"' view.json >jq.out ||
	fail "view units has no container: $(cat view.json)"
"$FLYRECCTL" view runqueue --json --top=0 "--unit=${PREFIX}s2" "$segment" >view.json || fail "view runqueue"
jq -e --arg unit "${PREFIX}s2.service" '.rows | length == 2 and all(.unit == $unit)' view.json >jq.out ||
	fail "view runqueue --unit=: $(cat view.json)"
prints "${PREFIX}s2.service" "$FLYRECCTL" view runqueue "--unit=${PREFIX}s2" "$segment" || fail "$(cat "$T/printed")"
"$FLYRECCTL" view preemptors --by=unit --json --top=0 "--unit=${PREFIX}s1" "$segment" >view.json || fail "by unit"
jq -e --arg unit "${PREFIX}s1.service" '.rows | length > 0 and all(.victim_unit == $unit)' view.json >jq.out ||
	fail "view preemptors --by=unit: $(cat view.json)"
"$FLYRECCTL" why python3 --json "--unit=${PREFIX}s3" --top=5 "$segment" >why.json || fail "why"
jq -e --arg unit "${PREFIX}s3.service" '.unit == $unit and (.waits | length > 0 and all(.unit == $unit))' why.json >jq.out ||
	fail "why --unit=: $(cat why.json)"
"$FLYRECCTL" view events --json "--unit=${PREFIX}s1" "$segment" >view.json || fail "view events"
export_json "$segment" "--unit=${PREFIX}s1"
[ "$(jq '[.rows[].count] | add' view.json)" = "$(wc -l <events.json)" ] || fail "view events counts others"

echo "== compressed and converted"
"$FLYRECCTL" convert --version=7 --compress=zstd -o packed.dat "$segment"
check_who packed.dat tasks --least=1000
"$FLYRECCTL" convert --version=6 -o unpacked.dat packed.dat
check_who unpacked.dat tasks --least=1000
verify packed.dat unpacked.dat
for file in "$segment" packed.dat unpacked.dat; do
	"$FLYRECCTL" --json verify "$file" | jq '.files[0].tasks'
done | uniq >counts
[ "$(wc -l <counts)" = 1 ] || fail "verify counts tasks: $(cat counts)"
[ "$(cat counts)" -ge 10 ] || fail "verify counts only $(cat counts) tasks"

echo "== a killed daemon"
flyrecd_kill
flyrecd_start
pause 0.5
segment=$(ctl rotate rec)
check_who "$segment" tasks
verify "$segment"

echo "== a storm of forks"
: >storm
for i in 1 2 3; do
	group "$own" "${PREFIX}storm$i.service"
	in_group "$GROUP" "$TOOLS/forkstorm" --count=3000 --jobs=4 "--prefix=w$i-" "--list=list$i" >storm.out &
	storms[i]=$!
done
wait "${storms[@]}" || fail "forkstorm failed"
for i in 1 2 3; do
	sed "s/ .*/ ${PREFIX}storm$i.service/" "list$i" >>storm
done
[ "$(wc -l <storm)" = 9000 ] || fail "forkstorm lists $(wc -l <storm) tasks"
segment=$(ctl rotate rec)
check_who "$segment" storm --share=99 --least=9000
# of one CPU, the others tell who its tasks are
export_json "$segment" "--unit=${PREFIX}storm1"
all=$(wc -l <events.json) sum=0
for ((cpu = 0; cpu < $(nproc --all); cpu++)); do
	export_json "$segment" "--unit=${PREFIX}storm1" --cpu=$cpu
	sum=$((sum + $(wc -l <events.json)))
done
[ "$sum" = "$all" ] || fail "--unit= and --cpu=: $sum events of all CPUs, not $all"

echo "== moved"
group "$own" "${PREFIX}first.service"
first=$GROUP
group "$own" "${PREFIX}second.service"
background in_group "$first" python3 busy
moved=$!
wait_for 10 has_threads "$moved" || fail "no threads"
pause 0.3
from=$(date +%s%N)
echo "$moved" >"$GROUP/cgroup.procs"
to=$(date +%s%N)
pause 0.3
for tid in /proc/"$moved"/task/*; do
	echo "${tid##*/} ${PREFIX}first.service 0 $((from - 1000000))"
	echo "${tid##*/} ${PREFIX}second.service $((to + 1000000)) $((to + 1000000000000))"
done >moves
# the shell that it was before it moved itself into the first one was ours
export_json "$(ctl rotate rec)"
begun=$(jq -s --argjson pid "$moved" 'map(select(.event == "cgroup_attach_task" and .fields.pid == $pid)) | .[0].ts' events.json)
sed -i "s/ 0 / $begun /" moves
"$check" --tasks=moves --least=200 <events.json >checked 2>&1 || fail "wrong data: moved: $(cat checked)"
cat checked

echo "== a pid twice"
printf 'import time\nwhile True:\n    time.sleep(0.002)\n' >turns
end_of() {
	kill "$1"
	wait "$1" 2>wait.out || [ $? = 143 ] || fail "$1 ends with another status"
}
twice() { # the next child has that pid, if nobody else is faster
	for _ in {1..200}; do
		echo $((old - 1)) >/proc/sys/kernel/ns_last_pid
		background in_group "$GROUP" python3 turns
		[ $! != "$old" ] || return 0
		end_of $!
	done
	return 1
}
if [ -w /proc/sys/kernel/ns_last_pid ]; then
	group "$own" "${PREFIX}old.service"
	background in_group "$GROUP" python3 turns
	old=$!
	pause 1.2
	end_of "$old"
	until=$(date +%s%N)
	group "$own" "${PREFIX}other.service"
	if twice; then
		pause 0.3
		from=$(date +%s%N)
		pause 0.3
		{
			echo "$old ${PREFIX}old.service $((until - 1000000000)) $((until - 1000000))"
			echo "$old ${PREFIX}other.service $((from + 1000000)) $((from + 1000000000000))"
		} >twice
		check_who "$(ctl rotate rec)" twice
	else
		echo "no pid twice: others were faster"
	fi
fi
flyrecd_stop

echo "== who does not say"
name=${PREFIX}w
peer_record foreign.dat "$name" -e sched:sched_switch -- sleep 0.1
export_json foreign.dat
! grep -q '"unit"\|"tgid"' events.json || fail "trace-cmd's file says who its tasks are"
for command in "export --format=text" "view tasks" "why sleep" "view units"; do
	# shellcheck disable=SC2086 # several words
	refused 'foreign.dat: does not say which units its tasks belong to' \
		"$FLYRECCTL" $command --unit=x foreign.dat
done
"$FLYRECCTL" view units foreign.dat 2>err >out || fail "view units: $(cat err)"
grep -q 'view: the recording does not say which units its tasks belong to' err || fail "view says nothing: $(cat err)"
"$FLYRECCTL" view irq foreign.dat 2>err >out || fail "view irq: $(cat err)"
! grep -q units err || fail "view irq: $(cat err)"
