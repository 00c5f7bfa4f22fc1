#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 300
# may-fail: what else runs on the machine may have waited for longer than the victims here
#
# flyrecctl analyze: of recordings of real culprits the first or second finding names victim and cause: a
# real-time hog, a fork storm, a CPU quota, an fsync convoy, a slow device, a vfork whose child takes its
# time, an out-of-memory kill. The same victim on its own has no finding that comes near. Options, sessions,
# what is not recorded.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd python3 taskset chrt
need_event sched:sched_switch sched:sched_waking irq:softirq_entry
cd "$T"
# whatever the caller's: findings about tasks with a nice value weigh less
renice -n 0 -p $$ >/dev/null
name=${PREFIX}a
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')

# task NAME CPU|- CODE: CODE in Python, in a task of this name
cat >task.py <<-'END'
	import ctypes, os, platform, sys, time
	name, cpu, code = sys.argv[1:]
	open("/proc/self/comm", "w").write(name)
	if cpu != "-":
	    os.sched_setaffinity(0, {int(cpu)})
	def spin(seconds):
	    end = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) + seconds
	    while time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) < end:
	        pass
	def turns(n):
	    for i in range(n):
	        time.sleep(0.005)
	        spin(float(os.environ["WORK"]))
	exec(code)
END
cat >functions <<-'END'
	task() {
		python3 "$T/task.py" "$@"
	}
	# it wakes up 200 times a second and works for $WORK seconds, until the file "stop" is there; after a
	# second "ready" is
	begin() {
		rm -f stop ready
		task victim "$cpu" 'turns(200); open("ready", "w"); turns(1)
	while not os.path.exists("stop"): turns(1)' &
		victim=$!
		until [ -e ready ]; do sleep 0.05; done
	}
	end() {
		sleep 0.2
		touch stop
		wait $victim
	}
END
export T TOOLS cpu WORK=0

# culprit NAME [EVENT...]: what of standard input happens is recorded, beside a victim
culprit() {
	local file=$1 events=()
	shift
	for event in sched irq block "$@"; do
		events+=(-e "$event")
	done
	{
		echo 'set -eu; . ./functions; begin'
		cat
		echo 'end'
	} >"work-$file"
	peer_record "$file.dat" "$name" -b 30000 "${events[@]}" -- bash "./work-$file"
}

# named NAME VICTIM CAUSE [RULE]: among the first two findings is one whose text has both; the least score
# of all is in "least"
least=
named() {
	local score
	"$FLYRECCTL" analyze --json "$1.dat" >"$1.json" 2>err || fail "analyze $1: $(cat err)"
	score=$(python3 - "$1.json" "$2" "$3" "${4:-}" 2>err <<-'END'
		import json, re, sys
		report = json.load(open(sys.argv[1]))
		findings = report["findings"]
		assert all(a["score"] >= b["score"] for a, b in zip(findings, findings[1:]))
		for f in findings[:2]:
		    assert report["from_usec"] <= f["start_usec"] <= report["to_usec"], f
		    if re.search(sys.argv[2], f["text"]) and re.search(sys.argv[3], f["text"]) and re.search(sys.argv[4], f["rule"]):
		        print(f["score"])
		        break
		else:
		    raise SystemExit("\n".join(f["rule"] + ": " + f["text"] for f in findings[:5]))
	END
	) || fail "$1: not named: $2, $3: $(cat err)"
	echo "$1: $((score / 1000000)) ms: $(python3 -c 'import json, sys
print("; ".join(f["text"] for f in json.load(open(sys.argv[1]))["findings"][:2]))' "$1.json")"
	[ -n "$least" ] && [ "$least" -le "$score" ] || least=$score
}

echo "== a real-time hog"
culprit hog <<-'END'
	chrt -f 50 python3 "$T/task.py" fifo-hog "$cpu" 'spin(0.4)'
END
named hog 'victim\[' 'fifo-hog\[' realtime

echo "== a fork storm"
ln -s "$(command -v bash)" stormer
WORK=0.001 culprit storm <<-'END'
	for i in 1 2 3 4 5 6 7 8; do
		taskset -c "$cpu" ./stormer -c 'for ((i = 0; i < 150; i++)); do (: $(echo {1..2000})); done' &
		storms="${storms:-} $!"
	done
	wait $storms
END
named storm 'victim\[' 'stormer'

echo "== a CPU quota"
if [ -w /sys/fs/cgroup/cpu/cpu.cfs_quota_us ] && mkdir "/sys/fs/cgroup/cpu/$name"; then
	at_end rmdir "/sys/fs/cgroup/cpu/$name"
	echo 100000 >"/sys/fs/cgroup/cpu/$name/cpu.cfs_period_us"
	echo 20000 >"/sys/fs/cgroup/cpu/$name/cpu.cfs_quota_us"
	export group=/sys/fs/cgroup/cpu/$name/cgroup.procs
	culprit quota <<-'END'
		task limited "$cpu" 'open(os.environ["group"], "w").write("0"); spin(0.25)'
	END
	named quota 'limited\[' 'quota' kept-off
fi

echo "== fsync"
# on a disk, not in memory
image_dir() {
	echo "$T"
}
mkfs_mount ext4 256M "$T/disk"
culprit convoy <<-'END'
	for i in 1 2 3 4 5 6; do
		task writer - 'with open("disk/'$i'", "wb") as f:
	    for n in range(3):
	        f.write(bytes(6 << 20)); f.flush(); os.fsync(f.fileno())' &
		writers="${writers:-} $!"
	done
	wait $writers
END
named convoy 'writer\[' 'jbd2|loop|kworker|write on device' 'convoy|blocked'

echo "== vfork"
culprit vfork <<-'END'
	task parent - 'number, args = {"x86_64": (56, (0x4011, 0, 0, 0, 0)), "aarch64": (220, (0x4011, 0, 0, 0, 0))}[platform.machine()]
	pid = ctypes.CDLL(None).syscall(number, *args)
	if pid == 0:
	    open("/proc/self/comm", "w").write("slow-child"); time.sleep(0.3); os._exit(0)
	os.waitpid(pid, 0)'
END
named vfork 'parent\[' 'slow-child\[' blocked

if [ -w /sys/fs/cgroup/memory/memory.limit_in_bytes ] && mkdir "/sys/fs/cgroup/memory/$name"; then
	echo "== an out-of-memory kill"
	at_end rmdir "/sys/fs/cgroup/memory/$name"
	echo 40M >"/sys/fs/cgroup/memory/$name/memory.limit_in_bytes"
	export group=/sys/fs/cgroup/memory/$name/cgroup.procs
	culprit oom oom <<-'END'
		task eater - 'open(os.environ["group"], "w").write("0"); bytearray(100 << 20)' || true
	END
	named oom 'eater\[' 'memory' oom
fi

echo "== a slow device"
if dmsetup targets 2>/dev/null | grep -q '^delay'; then
	mkfs_mount ext4 64M "$T/under"
	umount "$T/under"
	echo "0 $(blockdev --getsz "${LOOPS[-1]}") delay ${LOOPS[-1]} 0 0 ${LOOPS[-1]} 0 200" | dmsetup create "$name"
	at_end dmsetup remove "$name"
	culprit delay <<-'END'
		task reader - 'f = os.open("/dev/mapper/'"$name"'", os.O_WRONLY | os.O_SYNC); os.write(f, bytes(4096))'
	END
	named delay 'reader\[' 'write on device'
else
	echo "no dm-delay here"
fi

echo "== quiet"
echo : | culprit quiet
"$FLYRECCTL" analyze --json --task=victim quiet.dat >quiet.json 2>err || fail "analyze: $(cat err)"
score=$(python3 -c 'import json
print(max([f["score"] for f in json.load(open("quiet.json"))["findings"]], default=0))')
echo "the least of all scores: $least, quiet: $score"
[ "$score" -lt "$least" ] || fail "a quiet recording has a finding: $(cat quiet.json)"

echo "== commands"
# each finding's own shows something
mkdir bin
ln -s "$FLYRECCTL" bin/flyrecctl
python3 -c 'import glob, json
for file in glob.glob("*.json"):
    for f in json.load(open(file))["findings"][:3]:
        print(f["command"])' >commands
[ "$(wc -l <commands)" -ge 8 ] || fail "only $(wc -l <commands) commands"
while read -r line; do
	PATH=$T/bin:$PATH bash -c "$line" >out 2>err </dev/null || fail "$line: $(cat err)"
	[ -s out ] || fail "$line: nothing"
done <commands

echo "== as text"
"$FLYRECCTL" analyze --top=2 hog.dat >out 2>err || fail "analyze: $(cat err)"
grep -q '^1\. .* realtime: ' out || fail "no finding: $(cat out)"
grep -q '^   flyrecctl why --at=' out || fail "no command: $(cat out)"
grep -q '^no raw_syscalls:sys_enter events: Event=raw_syscalls would tell' out || fail "no word of what is missing: $(cat out)"
grep -qE "^$cpu"$'\t' out || fail "no CPU $cpu: $(cat out)"
# busy, and who ran, as view has it
"$FLYRECCTL" view --json --top=0 tasks hog.dat >tasks.json || fail "view"
python3 - <<-'END' || fail "wrong data: analyze and view differ"
	import json
	report, rows = json.load(open("hog.json")), json.load(open("tasks.json"))["rows"]
	busy = sum(c["busy_nsec"] for c in report["cpus"])
	assert busy >= sum(r["run_nsec"] for r in rows) > 0.98 * busy, (busy, sum(r["run_nsec"] for r in rows))
	longest = max(r["runqueue_max_nsec"] for r in rows)
	assert max(c["runqueue_max_nsec"] for c in report["cpus"]) >= longest
	ran = [t["run_nsec"] for t in report["tasks"]]
	assert ran == sorted(ran, reverse=True) and 0 < sum(ran) <= busy, ran
END

echo "== options"
count() {
	"$FLYRECCTL" analyze --json "$@" >count.json 2>err || fail "analyze $*: $(cat err)"
	python3 -c 'import json; print(len(json.load(open("count.json"))["findings"]))'
}
all=$(count --top=0 --min=20us hog.dat)
[ "$(count --top=0 hog.dat)" -lt "$all" ] || fail "--min=20us shows no more"
[ "$(count --top=1 hog.dat)" = 1 ] || fail "--top=1"
[ "$(count --min=10s --task=victim hog.dat)" = 0 ] || fail "--min=10s"
[ "$(count --task=nobody-has-this hog.dat)" = 0 ] || fail "--task=: $(cat count.json)"
[ "$(count --top=0 --cpu="$cpu" hog.dat)" -gt 0 ] || fail "--cpu="
[ "$(count --last=1us hog.dat)" = 0 ] || fail "--last=1us: $(cat count.json)"
refused 'not-there.dat: cannot open' "$FLYRECCTL" analyze not-there.dat
for option in --min=long --top=many --last=long --cpu=x; do
	status=0
	"$FLYRECCTL" analyze "$option" hog.dat >out 2>err || status=$?
	[ $status = 2 ] || fail "status $status, not 2: $option"
done

echo "== lost events, and events that are not there"
peer_record lossy.dat "$name" -b 16 -e sched -e syscalls -- "$TOOLS/storm" --count=300000
"$FLYRECCTL" analyze --json --top=0 lossy.dat >lossy.json 2>err || fail "analyze: $(cat err)"
grep -q '"rule":"loss"' lossy.json || fail "no finding of losses: $(head -c 1000 lossy.json)"
peer_record irq.dat "$name" -e irq -- sleep 0.2
"$FLYRECCTL" analyze irq.dat >out 2>err || fail "analyze: $(cat err)"
grep -q '^no sched:sched_switch events: Event=sched would tell' out || fail "no word of sched: $(cat out)"

echo "== a session"
session all <<-EOF
	[Trace]
	Event=sched:sched_switch
	Event=sched:sched_waking
	Event=irq
	BufferSize=16M
	[Storage]
	FlushSec=200ms
EOF
flyrecd_start
(
	# shellcheck disable=SC1091 # made above
	. ./functions
	begin
	chrt -f 50 python3 "$T/task.py" fifo-hog "$cpu" 'spin(0.4)'
	end
)
ctl stop all || fail "stop"
ctl analyze --top=0 all >out 2>err || fail "analyze of a session: $(cat err)"
grep -q 'fifo-hog\[' out || fail "a session's hog: $(head -n 8 out)"
flyrecd_stop

echo "== the manual"
# has each rule
n=0
while read -r rule; do
	sed 's/\\-/-/g' "$SRC/man/flyrec-analysis.7" | grep -q "^$rule  " || fail "flyrec-analysis(7) has no $rule"
	n=$((n + 1))
done < <(sed -n 's/^\t\[RULE_[A-Z_]*\] = {{"\([a-z-]*\)", .*/\1/p' "$SRC/analysis/findings-rules.c")
[ $n -ge 14 ] || fail "only $n rules"
