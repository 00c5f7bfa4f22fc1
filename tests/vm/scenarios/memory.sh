#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Lack of memory: the cgroup's limits, which hold; killed for want of memory by its own limit and by
# the global OOM killer, flyrecd comes back, and nothing is lost; with a ring buffer that is too small
# for that, what is lost is what was overwritten, to the event, by each of those that count it.
# machines: debian13
# also: debian12
# time-limit: 240
. "$(dirname "$0")/../guest.sh"
CGROUP=/sys/fs/cgroup/system.slice/flyrecd.service

oom_session() { # BUFFERSIZE: with no other events than the markers
	session memory <<-EOT
		[Trace]
		Event=sched:sched_process_exit if pid == 99999999
		BufferSize=$1
		[Storage]
		FlushSec=500ms
	EOT
}

memory_events() { # KEY
	awk -v key="$1" '$1 == key { print $2 }' "$CGROUP/memory.events"
}

# Its memory is more than that: it is killed. The next process gets the unit's limit again.
oom_by_limit() {
	local killed=$FLYRECD_PID
	log_mark
	echo 0 >"$CGROUP/memory.max"
	flyrecd_restarted
	must_log "result 'oom-kill'"
	[ ! -d "/proc/$killed" ] || fail "the process is still there"
	[ "$(cat "$CGROUP/memory.max")" = $((512 << 20)) ] || fail "no MemoryMax=: $(cat "$CGROUP/memory.max")"
}

global_oom() {
	echo f >/proc/sysrq-trigger
}

echo "== memory.high far below what it has"
oom_session 4M
flyrecd_start
markers_start memory 300
sleep 1
high=$(memory_events high)
echo 256K >"$CGROUP/memory.high"
# Every page that it asks for makes it wait: an answer takes a minute. What it records takes none.
background "$FLYRECCTL" status >"$T/status"
asked=$!
sleep 3
pressed=$(($(memory_events high) - high))
echo max >"$CGROUP/memory.high"
wait_for 60 ended "$asked" || fail "no answer when memory was no longer short"
echo "$pressed times beyond memory.high"
[ "$pressed" -gt 0 ] || fail "no pressure: a poor test"
[ "$(property MainPID)" = "$FLYRECD_PID" ] || fail "not the same process"

echo "== killed by its own limit"
oom_by_limit
must_log 'memory: continuing record/current.dat'

echo "== the global OOM killer"
# not a child of this: systemd ends the whole unit of which a process was killed
systemd-run --quiet --service-type=exec --unit=vm-victim \
	--property=OOMScoreAdjust=300 sleep 300
global_oom
wait_for 20 systemctl --quiet is-failed vm-victim || fail "nothing was killed"
[ "$(property MainPID)" = "$FLYRECD_PID" ] || fail "killed with a better victim about"
log_mark
echo 1000 >"/proc/$FLYRECD_PID/oom_score_adj"
global_oom
flyrecd_restarted
must_log 'memory: continuing record/current.dat'
sleep 1
markers_stop
flyrecd_stop
verify "$STATE/memory"
no_damage
markers_check memory

echo "== a ring buffer too small for the time that it takes"
rm -rf "${STATE:?}"/*
oom_session 64K
drop_in memory <<-EOT
	[Service]
	RestartSec=4s
EOT
flyrecd_start
markers_start memory 1000
sleep 2 # so that some are in the file before
oom_by_limit
sleep 1
markers_stop
sleep 0.1 # counters that were read just now are not read anew
"$FLYRECCTL" --json stats memory >"$T/stats"
flyrecd_stop
verify "$STATE/memory"
no_damage
markers_check memory --max-lost=1000000000
"$FLYRECCTL" --json verify "$STATE/memory" >"$T/verify"
for cpu in 0 1; do
	# of the markers by their numbers, by the data, by the daemon, by the files' statistics
	missing=$(sed -nE "s/^cpu=$cpu .* lost=([0-9]+) .*/\1/p" "$T/check")
	in_data=$(jq "[.files[].cpus[] | select(.cpu == $cpu) | .lost_events] | add" "$T/verify")
	counted=$(jq "[.sessions[].cpus[] | select(.cpu == $cpu) | .overrun] | add" "$T/stats")
	overwritten=$(trace-cmd report --stat "$STATE"/memory/record/2*.dat 2>/dev/null |
		awk -F': ' -v cpu="$cpu" '$1 == "CPU" { c = $2 + 0 } $1 == "overrun" && c == cpu { print $2 }')
	echo "cpu $cpu: $missing markers missing, $overwritten overwritten, $in_data by the data, stats: $counted"
	[ "$missing" -gt 0 ] || fail "cpu $cpu: nothing was overwritten: a poor test"
	[ "$missing" = "$overwritten" ] || fail "wrong data: cpu $cpu: $missing markers are missing, $overwritten overwritten"
	[ "$missing" = "$in_data" ] || fail "wrong data: cpu $cpu: $missing markers are missing, $in_data by the data"
	[ "$missing" = "$counted" ] || fail "wrong data: cpu $cpu: $missing markers are missing, $counted by stats"
done
