#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# latency.sh [--seconds=N] [--rounds=N] [--modes="record flight"] [--loads="calls switches"] [--waits=N]
#	[--kinds="sleep blocked runqueue"] [--dir=DIR] [--build=DIR]
#	[cost|storm|waits|delay]... - what OnLatency= costs, and finds
#
# cost: system calls that make 100,000 events a second for N (20) seconds, and pairs of tasks that make as many
# of switches and wake-ups, in a record and in a flight session, without and with OnLatency=, in turns, N (1)
# rounds; per cent of a core that flyrecd and its process take, and for each 100,000 events that came, those of
# the rest of the machine among them.
# storm: system calls at full speed, 16 MiB a CPU, without and with OnLatency=; are all markers there?
# waits: N (1000) waits of 19 to 21 ms of each kind around a limit of 20 ms: how many of those above
# 20.5 were missed, how many below 19.5 told.
# delay: of a wait that does not end, from the limit to the complete snapshot.
# Wants root and tracefs; files below DIR (/var/tmp). Uses build/ or FLYREC_BUILD.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
seconds=20 rounds=1 modes="record flight" loads="calls switches" waits=1000 kinds="sleep blocked runqueue"
dir=${TMPDIR:-/var/tmp} build=${FLYREC_BUILD:-$src/build}
options seconds rounds modes loads waits kinds dir build -- "$@"
export FLYREC_BUILD=$build
[ ${#words[@]} != 0 ] || words=(cost storm waits delay)
export TMPDIR=$dir
# shellcheck source-path=SCRIPTDIR/../tests/integration
. "$(dirname "$0")/../tests/integration/lib.sh"
need_tracefs
need_command python3
need_tool storm waits markers check-markers

# configure MODE CONDITION...: session s
configure() {
	local mode=$1
	shift
	session s <<-END
		[Session]
		Mode=$mode
		[Trace]
		Event=raw_syscalls
		BufferSize=16M
		[Storage]
		MaxUse=20G
		KeepFree=0
		[Snapshot]
		Burst=0
		Analyze=no
		$(printf 'OnLatency=%s\n' "$@")
	END
	sed -i '/^OnLatency=$/d' "$CONFIG/sessions.d/s.conf"
}

latency_state() { # FIELD: of all conditions
	ctl --json status s | python3 -c 'import json, sys
for t in json.load(sys.stdin)["sessions"][0]["triggers"]:
    if t["kind"] == "latency": print(t[sys.argv[1]])' "$1"
}

is_watching() {
	! latency_state state | grep -qv armed
}

# CPU time of flyrecd's threads, and of its process, in nanoseconds
cpu_nsec() {
	cat /proc/"$FLYRECD_PID"/task/*/schedstat | awk '{ n += $1 } END { print n }'
}
process_nsec() {
	local pid
	pid=$(pgrep -P "$FLYRECD_PID" -x flyrec-latency) && cut -d' ' -f1 "/proc/$pid/schedstat" || echo 0
}

events() { # of session s, since it began
	cat "$TRACEFS/instances/${PREFIX}s"/per_cpu/cpu*/stats |
		awk '/^(entries|overrun|read events):/ { n += $NF } END { printf "%.0f\n", n }'
}

# cost_of MODE LOAD CONDITION: a turn; without a condition where that is empty
cost_of() {
	local mode=$1 load=$2 condition=$3 before own begin n
	configure "$mode" "$condition"
	if [ "$load" = switches ]; then
		sed -i 's/^Event=raw_syscalls$/Event=sched:sched_switch\nEvent=sched:sched_waking/' "$CONFIG/sessions.d/s.conf"
	fi
	flyrecd_start
	wait_for 10 is_watching || fail "not armed"
	case $load in
	calls) load_start --rate=$((50000 / $(nproc))) ;;
	# each is two wake-ups and two switches
	switches)
		"$BUILD/bench/load" --rate=$((25000 / $(nproc))) --seconds=$((seconds + 10)) pairs >/dev/null &
		CHILDREN+=("$!")
		;;
	esac
	sleep 3
	before=$(cpu_nsec) own=$(process_nsec) n=$(events) begin=${EPOCHREALTIME/./}
	sleep "$seconds"
	n=$(($(events) - n))
	awk -v mode="$mode" -v load="$load" -v condition="${condition:-without}" -v n="$n" \
		-v usec=$((${EPOCHREALTIME/./} - begin)) -v flyrecd=$(($(cpu_nsec) - before)) \
		-v process=$(($(process_nsec) - own)) 'BEGIN {
		printf "%-7s %-8s %-17s %.0f events/s, flyrecd %.2f %%, its process %.2f %% of a core", mode, load, condition,
			n / usec * 1e6, flyrecd / usec / 10, process / usec / 10
		printf "; for 100,000 a second: %.2f and %.2f %%\n", flyrecd / n / 100, process / n / 100 }'
	case $load in
	calls) load_stop ;;
	switches)
		kill -KILL -- "-$!"
		wait "$!" 2>/dev/null || true
		;;
	esac
	flyrecd_stop
	rm -rf "${STATE:?}"
}

cost() {
	local mode load round
	local -A conditions=([calls]="syscall fsync 1s" [switches]="runqueue 1s")
	for ((round = 0; round < rounds; round++)); do
		for load in $loads; do
			for mode in $modes; do
				cost_of "$mode" "$load" ""
				cost_of "$mode" "$load" "${conditions[$load]}"
			done
		done
	done
}

storm() {
	local condition
	for condition in '' 'syscall fsync 1s'; do
		configure record "$condition"
		flyrecd_start
		wait_for 10 is_watching || fail "not armed"
		load_start
		markers_start s 5000
		sleep "$seconds"
		markers_stop
		load_stop
		flyrecd_stop
		echo "storm ${condition:-without}: $(tail -n 1 "$T/load")"
		if (markers_check s); then echo "no marker lost"; else tail -n 3 "$T/check"; fi
		du -sm "$STATE/s/record" | cut -f1 | sed 's/$/ MiB/'
		grep -i 'lost\|overwritten\|behind' "$FLYRECD_LOG" | tail -n 3 || true
		rm -rf "${STATE:?}"
	done
}

told() {
	latency_state fired >"$T/told"
	latency_state suppressed >>"$T/told"
	awk '{ n += $1 } END { print n }' "$T/told"
}

# narrow: in session s no more than waits need
narrow() {
	sed -i '/^Event=raw_syscalls$/d; s/^\[Trace\]/&\nEvent=sched:sched_switch/; s/^Burst=.*/Burst=5\nLast=1s/' \
		"$CONFIG/sessions.d/s.conf"
}

condition_of() { # KIND
	if [ "$1" = sleep ]; then
		echo 'syscall clock_nanosleep 20ms task=waits'
	else
		echo "$1 20ms task=waits"
	fi
}

waits() {
	local mode kind
	for kind in $kinds; do
		for mode in record flight; do
			configure "$mode" "$(condition_of "$kind")"
			narrow
			flyrecd_start
			wait_for 10 is_watching || fail "not armed"
			"$TOOLS/waits" "$kind" 19000 21000 "$waits" >"$T/took"
			sleep 3
			awk -v told="$(told)" -v what="$mode $kind" '
				{ a += $1 >= 20500; b += $1 >= 20000; c += $1 >= 19500 }
				END { print what ": of " NR " waits " a " took 20.5 ms, " b " 20 ms, " c " 19.5 ms; told: " told }' \
				"$T/took"
			flyrecd_stop
			rm -rf "${STATE:?}"
		done
	done
}

snapshots() {
	local files=("$STATE"/s/snapshot/*-latency.dat)
	[ ${#files[@]} -ge "$1" ]
}

# From the limit to the file, of a wait that does not end
delay() {
	local mode i begin
	for mode in record flight; do
		configure "$mode" "$(condition_of sleep)"
		narrow
		sed -i 's/^Burst=.*/Burst=0/' "$CONFIG/sessions.d/s.conf"
		flyrecd_start
		wait_for 10 is_watching || fail "not armed"
		rm -f "$T/delays"
		for i in $(seq 10); do
			sleep 1.$((RANDOM % 10))
			begin=$((${EPOCHREALTIME/./} + 20000))
			background "$TOOLS/waits" sleep 1000000000 1000000000 1
			until snapshots "$i"; do sleep 0.01; done
			msec "$begin" >>"$T/delays"
			kill -KILL $!
		done
		echo "$mode: ms from the limit to the file: $(sort -n "$T/delays" | tr '\n' ' ')"
		flyrecd_stop
		rm -rf "${STATE:?}"
	done
}

for what in "${words[@]}"; do
	"$what"
done
