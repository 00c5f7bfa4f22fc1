#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# OnLatency=runqueue beside rtla's timerlat: a real-time task keeps timerlat's thread from its CPU, which stops
# rtla at a threshold of its own. flyrec tells that wait in both ways, as long as rtla says it was (in user space
# perhaps while it goes on), and blames the task that rtla blames. A wait below the threshold is told by none of them. With threads of the kernel, and of rtla.
# machines: none
# time-limit: 500
# only: long
. "$(dirname "$0")/../guest.sh"
need_command rtla
INCIDENT=$TOOLS/incident
ROUNDS=${LONG:+10}
ROUNDS=${ROUNDS:-2}
LIMIT_MS=60

hits() { # SESSION
	"$FLYRECCTL" --json status "$1" | jq '[.sessions[0].triggers[] | select(.kind == "latency") | .fired + .suppressed] | add'
}

is_armed() { # SESSION
	[ "$("$FLYRECCTL" --json status "$1" | jq -r '.sessions[0].triggers[] | select(.kind == "latency") | .state')" = armed ]
}

for way in kernel user; do
	session $way <<-END
		[Trace]
		Event=sched:sched_switch
		Event=sched:sched_waking
		BufferSize=4M
		[Snapshot]
		OnSignal=no
		Burst=1000
		IntervalSec=1s
		PostSec=1s
		OnLatency=runqueue ${LIMIT_MS}ms task=timerlat* way=$way
	END
done
flyrecd_start
for way in kernel user; do
	wait_for 20 is_armed $way || fail "$way: not armed: $("$FLYRECCTL" status $way)"
done

# Its threads are there some seconds before it looks at what they measure
is_measuring() {
	pgrep "^$thread/0$" >/dev/null && [ "$(cat "$TRACEFS/instances/timerlat_top/tracing_on")" = 1 ]
} 2>/dev/null

# told SESSION: of timerlat's thread $thread, milliseconds, in TOLD; "60-" of a wait that went on then
told() {
	TOLD=$(flyrecd_log | sed -nE "s,^$1: OnLatency=.*triggered\, $thread/0 [0-9]+ waited ([0-9.]+)ms for CPU 0.*,\1,p
		s,^$1: OnLatency=.*triggered\, $thread/0 [0-9]+ has been waiting ([0-9.]+)ms for CPU 0.*,\1-,p")
	[ "$(wc -w <<<"$TOLD")" = 1 ]
}

# is_blamed SESSION: the snapshot's analysis names who had the CPU, and the thread, though an earlier one of those
# that are still in the ring buffer may have waited for longer
is_blamed() {
	flyrecd_log | grep "^$1: .*-latency\.dat: .* it ran fifo-hog\[" | grep -q "$thread/0\["
}

# wait_of OPTION: rtla measures with $thread
wait_of() {
	local rtla irq whole way before
	log_mark
	before="$(hits kernel) $(hits user)"
	rtla timerlat top -q "$1" -c 0 -P f:40 -p 10000 -T $((LIMIT_MS * 1000)) -d 100s >"$T/rtla" 2>&1 &
	rtla=$!
	wait_for 90 is_measuring || fail "no $thread/0 that it measures with: $(grep -H . "$TRACEFS"/instances/timerlat*/{tracing_on,current_tracer}; pgrep -a timerlat) $(cat "$T/rtla")"
	pause 1
	"$INCIDENT" hog 0 20
	pause 1
	kill -0 $rtla || fail "rtla stopped at a wait of 20 ms: $(cat "$T/rtla")"
	[ "$(hits kernel) $(hits user)" = "$before" ] || fail "a wait of 20 ms is told: $(flyrecd_log)"
	"$INCIDENT" hog 0 200
	wait $rtla || fail "rtla: $(cat "$T/rtla")"
	# in microseconds: from when the timer should have gone off to its interrupt, and to the thread
	irq=$(sed -nE 's/.*IRQ latency: *([0-9.]+) us.*/\1/p' "$T/rtla" | head -n 1)
	whole=$(sed -nE 's/.*Thread latency: *([0-9.]+) us.*/\1/p' "$T/rtla" | head -n 1)
	[ -n "${irq:+$whole}" ] || fail "rtla says nothing of a wait: $(cat "$T/rtla")"
	grep -qE 'fifo-hog:[0-9]+ ' "$T/rtla" || fail "rtla blames somebody else: $(cat "$T/rtla")"
	for way in kernel user; do
		wait_for 20 told $way || fail "$way: told \"$TOLD\": $(flyrecd_log)"
		wait_for 30 is_blamed $way || fail "$way: fifo-hog is not blamed: $(flyrecd_log)"
		awk -v way=$way -v limit=$LIMIT_MS -v told="$TOLD" -v whole="$whole" -v irq="$irq" -v thread="$thread" 'BEGIN {
			waited = (whole - irq) / 1000
			printf "%s: rtla %.3f ms, of it until the interrupt %.3f; flyrec, way=%s, %s ms\n",
				thread, whole / 1000, irq / 1000, way, told
			least = told ~ /-$/ ? limit : waited - 2
			exit !(told + 0 >= least && told + 0 < waited + 2)
		}' || fail "$way: told another time than rtla: $(cat "$T/rtla")"
	done
}
for ((round = 0; round < ROUNDS; round++)); do
	thread=timerlat && wait_of -k
	thread=timerlatu && wait_of -u
done
flyrecd_stop
