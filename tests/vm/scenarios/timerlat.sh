#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# OnLatency=runqueue beside rtla's timerlat: a real-time task keeps timerlat's thread from its CPU, which stops
# rtla at its own threshold; flyrec tells the same wait in both ways, as long as rtla says it was, and blames
# the task that rtla blames. Waits below the threshold are told by neither.
# machines: built
# time-limit: 200
# only: long
. "$(dirname "$0")/../guest.sh"
need_command rtla
INCIDENT=$TOOLS/incident
ROUNDS=${LONG:+5}
ROUNDS=${ROUNDS:-2}
LIMIT_MS=60

hits() { # SESSION
	"$FLYRECCTL" --json status "$1" | jq '[.sessions[0].triggers[] | select(.kind == "latency") | .fired + .suppressed] | add'
}

has_hits() { # SESSION NUMBER
	[ "$(hits "$1")" -ge "$2" ]
}

is_armed() { # SESSION
	[ "$("$FLYRECCTL" --json status "$1" | jq -r '.sessions[0].triggers[] | select(.kind == "latency") | .state')" = armed ]
}

for way in kernel user; do
	session "$way" <<-END
		[Trace]
		Event=sched:sched_switch
		Event=sched:sched_waking
		BufferSize=4M
		[Snapshot]
		OnSignal=no
		Burst=100
		IntervalSec=1s
		PostSec=1s
		OnLatency=runqueue ${LIMIT_MS}ms task=timerlat* way=$way
	END
done
flyrecd_start
for way in kernel user; do
	wait_for 20 is_armed $way || fail "$way: not armed: $("$FLYRECCTL" status $way)"
done

threads() { # NAME: there are such
	pgrep "^$1/0$" >/dev/null
}

# both KIND NAME: rtla measures with its own threads, kernel's (-k) or user's (-u)
both() {
	local rtla thread irq way before_kernel before_user
	before_kernel=$(hits kernel) before_user=$(hits user)
	# a period of 50 ms: an emulated processor has other things to do as well
	rtla timerlat top -q "$1" -c 0 -P f:40 -p 50000 -T $((LIMIT_MS * 1000)) -d 100s >"$T/rtla" 2>&1 &
	rtla=$!
	wait_for 20 threads "$2" || fail "no $2/0: $(cat "$T/rtla")"
	pause 1
	"$INCIDENT" hog 0 20 # too short for either
	pause 0.5
	kill -0 $rtla || fail "rtla stopped at a wait of 20 ms: $(cat "$T/rtla")"
	[ "$(hits kernel) $(hits user)" = "$before_kernel $before_user" ] || fail "told a wait of 20 ms"
	"$INCIDENT" hog 0 200
	wait "$rtla" || fail "rtla: $(cat "$T/rtla")"
	cat "$T/rtla"
	# rtla's own words, in microseconds: from the timer's time to the thread
	irq=$(sed -nE 's/.*IRQ latency: *([0-9.]+) us.*/\1/p;s/.*IRQ handler delay: .* ([0-9.]+) us.*/\1/p' "$T/rtla" | head -n 1)
	thread=$(sed -nE 's/.*Thread latency: *([0-9.]+) us.*/\1/p' "$T/rtla" | head -n 1)
	[ -n "$thread" ] || fail "rtla says no latency of a thread"
	for way in kernel user; do
		wait_for 20 has_hits $way $(($(eval echo \$before_$way) + 1)) || fail "$way: not told"
	done
	pause 2
	echo "$2: rtla $thread us, its interrupt ${irq:-?}; told by kernel and user: $(($(hits kernel) - before_kernel)), $(($(hits user) - before_user))"
	grep -i latency "$FLYRECD_LOG" | tail -n 4
}
for ((round = 0; round < ROUNDS; round++)); do
	both -k timerlat
	both -u timerlatu
done
"$FLYRECCTL" latency user "runqueue ${LIMIT_MS}ms task=timerlat*"
"$FLYRECCTL" latency kernel "runqueue ${LIMIT_MS}ms task=timerlat*"
ls -l "$STATE"/*/snapshot
for f in "$STATE"/*/snapshot/*-latency.dat; do
	"$FLYRECCTL" analyze "$f"
done
flyrecd_stop
