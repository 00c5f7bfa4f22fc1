#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Who made it slow: of eight kinds of incidents, each recorded beside a task that wakes up 200 times a second,
# the first or second finding of a snapshot names victim and cause, in 19 of 20 times; of quiet snapshots none
# comes near the least of these. Without the long form it is two of three: where the host has more to do, an
# emulated processor that it takes away looks like a long interrupt.
# machines: none
# priority: high
# also: debian12
# time-limit: 300
. "$(dirname "$0")/../guest.sh"
INCIDENT=$TOOLS/incident
ROUNDS=${LONG:+20}
ROUNDS=${ROUNDS:-3}
NEEDED=$((ROUNDS - 1))

session box <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_switch
	Event=sched:sched_waking
	Event=sched:sched_process_fork
	Event=irq
	Event=-block
	Event=-oom
	BufferSize=16M
EOF

modprobe -q dm-delay || skip "no dm-delay"
modprobe -q loop || skip "no loop devices"
group() { # NAME CONTROLLER FILE VALUE
	echo "+$2" >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p "/sys/fs/cgroup/$1"
	at_end rmdir "/sys/fs/cgroup/$1"
	echo "$4" >"/sys/fs/cgroup/$1/$3"
}
group quota cpu cpu.max "20000 100000"
group memory memory memory.max 16M
echo 0 >/sys/fs/cgroup/memory/memory.swap.max 2>/dev/null || :
# slow NAME MS: a device that takes so long to write
slow() {
	local loop
	truncate -s 64M "$T/$1"
	loop=$(losetup --find --show "$T/$1")
	at_end losetup --detach "$loop"
	[ "$1" != convoy ] || mkfs.ext4 -q -E lazy_itable_init=0 "$loop"
	echo "0 $(blockdev --getsz "$loop") delay $loop 0 0 $loop 0 $2" | dmsetup create "$1"
	at_end dmsetup remove --retry "$1"
}
slow delay 200
slow convoy 60
mkdir "$T/disk"

hog() { "$INCIDENT" hog 0 400; }
quota() { "$INCIDENT" quota 0 150 /sys/fs/cgroup/quota/cgroup.procs; }
storm() { "$INCIDENT" storm 0 3; }
convoy() { "$INCIDENT" fsync "$T/disk" 6; }
delay() { "$INCIDENT" write /dev/mapper/delay; }
vfork() { "$INCIDENT" vfork 300; }
flood() { "$INCIDENT" flood 0 800; }
oom() { "$INCIDENT" eat 64 /sys/fs/cgroup/memory/cgroup.procs || :; }
quiet() { pause 0.5; }

# begin/end KIND: the convoy's file system is mounted for its incident only, as its journal is written each
# five seconds and would be a cause in the others, too
begin() { [ "$1" != convoy ] || mount /dev/mapper/convoy "$T/disk"; }
end() { [ "$1" != convoy ] || umount "$T/disk"; }

# victim and cause, as a finding's text has them
declare -A VICTIM=([hog]='victim\[' [quota]='limited\[' [storm]='victim\[' [convoy]='writer\['
	[delay]='reader\[' [vfork]='parent\[' [flood]='CPU 0' [oom]='eater\[')
declare -A CAUSE=([hog]='fifo-hog\[' [quota]='quota' [storm]='stormer' [convoy]='woken by (jbd2|kworker|writer)|device'
	[delay]='device' [vfork]='slow-child\[' [flood]='NET_RX' [oom]='memory')

# score KIND: of the first two findings, if one names it, and as more than the usual; else what they say
score() {
	jq -e --arg victim "${VICTIM[$1]}" --arg cause "${CAUSE[$1]}" \
		'[.findings[:2][] | select((.text | test($victim)) and (.text | test($cause)) and .score > 0)][0].score // empty' \
		"$T/report" && return
	jq -r '.findings[:3][] | "\(.score) \(.text)"' "$T/report" >&2
	return 1
}

# incident KIND: a snapshot of it is analysed
incident() {
	local victim path since
	begin "$1" || fail "$1: no mount"
	"$INCIDENT" victim 0 60000 "$([ "$1" = storm ] && echo 1 || echo 0)" &
	victim=$!
	pause 0.3
	since=$EPOCHREALTIME
	pause 0.3
	"$1" >/dev/null
	pause 0.2
	path=$(ctl snapshot box "--since=@$since") || fail "$1: no snapshot"
	kill "$victim"
	wait "$victim" 2>/dev/null || :
	end "$1" || fail "$1: no umount"
	"$FLYRECCTL" analyze --json --top=3 "$path" >"$T/report" || fail "analyze $path"
	rm "$path"
}

flyrecd_start
for kind in hog quota storm convoy delay vfork flood oom; do
	named=0 least=
	for ((round = 0; round < ROUNDS && (ROUNDS > 3 || named < NEEDED); round++)); do
		incident "$kind"
		if n=$(score "$kind"); then
			named=$((named + 1))
			[ -n "$least" ] && [ "$least" -le "$n" ] || least=$n
		fi
	done
	echo "$kind: named $named of $round times, the least score ${least:-none}: $(jq -r '.findings[0].text' "$T/report")"
	[ "$named" -ge "$NEEDED" ] || fail "$kind: named $named of $round times"
	[ -n "${all:-}" ] && [ "$all" -le "$least" ] || all=$least
done
NEEDED=${LONG:+$ROUNDS} # all of 20
NEEDED=${NEEDED:-2} quiet=0
for ((round = 0; round < ROUNDS && (ROUNDS > 3 || quiet < NEEDED); round++)); do
	incident quiet
	n=$(jq '[.findings[].score] | max // 0' "$T/report")
	echo "quiet: $n, of $all: $(jq -r '.findings[0].text' "$T/report")"
	[ "$n" -ge "$all" ] || quiet=$((quiet + 1))
done
[ "$quiet" -ge "$NEEDED" ] || fail "quiet: $quiet of $round snapshots are"
flyrecd_stop
