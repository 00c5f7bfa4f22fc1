#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 300
#
# flyrecctl export --format=perfetto: protoc reads it by Perfetto's own declarations and by the descriptors in it,
# and it has each event of the JSON with its fields, losses, processes and units; of kernels' events and ftrace's own,
# of several ring buffers, compressed, and filtered; findings and the cause of a snapshot; the same bytes each time.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command protoc python3 trace-cmd jq
need_event sched:sched_switch sched:sched_waking raw_syscalls:sys_enter
cd "$T"
name=${PREFIX}x
check=$SRC/tests/tools/check-perfetto

export_both() { # FILE [OPTION...]
	"$FLYRECCTL" export --format=perfetto -o ours.pb "$@" 2>err || fail "export $*: $(cat err)"
	"$FLYRECCTL" export --format=json -o theirs.json "$@" || fail "export --format=json $*"
}

# same FILE [OPTION...]: as the JSON; what check-perfetto says is in checked
same() {
	export_both "$@"
	"$check" ours.pb theirs.json >checked 2>&1 || fail "wrong data: $*: $(tail -n 3 checked)"
	echo "$*: $(head -n 1 checked)"
}

# has PATTERN: in the first line of checked
has() {
	head -n 1 checked | grep -qE -- "$1" || fail "no $1: $(head -n 1 checked)"
}

cat >work <<-'END'
	#!/bin/sh
	for i in 1 2 3; do
		printf 'bytes \377\200\001 \303\244 "%d\\"\n' $i >"$1"
		ls -R /usr/share/doc/a* | tail -n 1
		dd if=/dev/zero of=junk bs=64k count=5 conv=fsync status=none
	done
	"$TOOLS/forkstorm" --count=30
END
chmod +x work
export TOOLS

echo "== kinds of events"
peer_record kinds.dat "$name" -b 8192 -e sched -e task -e irq -e timer -e workqueue -e block -e power \
	-e raw_syscalls:sys_exit -f 'ret < 0' -e syscalls:sys_enter_openat -e signal \
	-- ./work "$TRACEFS/instances/$name/trace_marker"
same kinds.dat
has ' [1-9][0-9]* columns, [1-9][0-9]* described, [1-9][0-9]* typed'
grep -q '"event":"print"' theirs.json || fail "no marker"
grep -q '"symbols":{' theirs.json || fail "no symbols in the JSON"
has ' [1-9][0-9]* symbols'
# the same file as systrace, which Perfetto imports, too, as text: by a program that is not ours
trace-cmd report -t -N kinds.dat >systrace.txt 2>/dev/null || fail "trace-cmd report"
"$check" --systrace=systrace.txt ours.pb theirs.json >checked 2>&1 || fail "wrong data: systrace: $(tail -n 3 checked)"
has ' [1-9][0-9]* rows of systrace'
head -n 1 checked
for seed in 1 2; do
	"$TOOLS/graph-dat" --seed=$seed graph.dat
	same graph.dat
done
[ "$(jq -r .event theirs.json | sort -u | wc -l)" -gt 3 ] || fail "few kinds of ftrace's own events"

echo "== losses"
peer_record lost.dat "$name" -b 64 -s 500000 -e raw_syscalls -- "$TOOLS/storm" --count=20000
same lost.dat
has ' [1-9][0-9]* losses of [1-9]'

echo "== filters"
export_both kinds.dat
from=$(sed -n '1000s/^{"ts":\([0-9]*\)\([0-9]\{9\}\),.*/\1.\2/p' theirs.json)
for option in --cpu=0 --event=sched:sched_switch --event=irq,sched_waking "--since=$from" "--until=$from" \
	"--pid=$(sed -n 's/.*"pid":\([1-9][0-9]*\),.*/\1/p' theirs.json | sort | uniq -c | sort -n | awk 'END { print $2 }')"; do
	same kinds.dat "$option"
done
same kinds.dat --until=1
has '^0 events'

echo "== the same bytes, also in a pipe, and none on a terminal"
export_both kinds.dat
"$FLYRECCTL" export --format=perfetto kinds.dat | cmp - ours.pb || fail "other bytes"
script -qec "'$FLYRECCTL' export --format=perfetto kinds.dat" terminal >/dev/null </dev/null && fail "writes to a terminal"
grep -q 'terminal' terminal || fail "on a terminal: $(head -n 2 terminal)"

echo "== a flight session and one that records, with units and a snapshot of both"
unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
own=$(awk '$3 == "cgroup" && $4 ~ /name=systemd/ { print $2; exit }' /proc/mounts)
group=${own:-$unified}/${PREFIX//./_}.slice
remove_groups() {
	[ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} +
}
at_end remove_groups
mkdir -p "$group/pf.service" 2>/dev/null || skip "no control groups that may be changed"
session fly <<-EOF
	[Session]
	Mode=flight
	[Trace]
	BufferSize=256K
	Event=sched:sched_switch
	Event=irq
EOF
session rec <<-EOF
	[Trace]
	BufferSize=4M
	Event=sched:sched_switch
	Event=sched:sched_waking
	Event=timer:hrtimer_expire_entry
	[Storage]
	FlushSec=100ms
	KeepFree=0
EOF
in_group() {
	echo "$BASHPID" >"$group/pf.service/cgroup.procs"
	exec python3 -c 'import time
while True: time.sleep(0.005)'
}
background in_group
flyrecd_start
has_unit() {
	ctl snapshot rec --reason=before -o probe.dat >/dev/null
	"$FLYRECCTL" export --format=json probe.dat | grep '"unit":"pf.service"' >/dev/null
}
wait_for 30 has_unit || fail "no unit in the JSON"
file=$(ctl snapshot fly --reason=mine) || fail "snapshot"
together=$(ctl snapshot --together --reason=both) || fail "snapshot --together"
flyrecd_stop
same "$file"
grep -q '^flyrec INSTANT [0-9]* cause ' checked || fail "no cause: $(cat checked)"
protoc --decode=perfetto.protos.Trace -I"$SRC/tests/tools" perfetto.proto <ours.pb >text
grep -q 'cmdline: ".* (pf.service)"' text || fail "no unit in the trace"
grep -q '"unit":"pf.service"' theirs.json || fail "no unit in the JSON"
same "$file" --unit=pf
[ "$(jq -r .unit theirs.json | sort -u)" = pf.service ] || fail "--unit"
same "$together"
grep -q '"buffer":"rec"' theirs.json || fail "one ring buffer only"
[ "$(jq -r 'select(.event == "sched_switch").buffer' theirs.json | sort -u | wc -l)" = 2 ] ||
	fail "sched_switch in one of two"

echo "== a segment: compressed, and its findings"
segments=("$STATE"/rec/record/*.dat)
segment=${segments[0]}
same "$segment"
"$FLYRECCTL" convert --version=7 -o seven.dat "$segment"
cp ours.pb six.pb
same seven.dat
cmp six.pb ours.pb || fail "other bytes of version 7"
"$FLYRECCTL" analyze --json "$segment" | jq -r '.findings[].text' >theirs
sed -n 's/^findings \(SLICE_BEGIN\|INSTANT\) [0-9]* [^ ]* //p' checked >ours
diff theirs ours >&2 || fail "other findings than analyze"
