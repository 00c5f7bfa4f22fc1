#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# OnLatency= in both ways at once, way=kernel and way=user: injected waits around the limit, measured by a
# third instance of our own; none clearly longer is missed, none clearly shorter is told, and both ways tell
# alike. Then a flood, a daemon that is killed, and a file of the histograms' instance that is held open.
# machines: debian12 debian13 backports
# time-limit: 150
# only: long
. "$(dirname "$0")/../guest.sh"
need_tool waits
N=${LONG:+1000}
N=${N:-20}
NAME=w-vm
ln -s "$TOOLS/waits" "$T/$NAME"
WATCH=$TRACEFS/instances/vm-truth
CALL=syscalls/sys_enter_clock_nanosleep

# status SESSION TEXT FIELD: of the trigger
status() {
	"$FLYRECCTL" --json status "$1" | jq -r --arg text "$2" ".sessions[0].triggers[] | select(.text == \$text) | .$3"
}

hits() { # SESSION TEXT
	"$FLYRECCTL" --json status "$1" |
		jq --arg text "$2" '.sessions[0].triggers[] | select(.text == $text) | .fired + .suppressed'
}

has_hits() { # SESSION TEXT NUMBER
	[ "$(hits "$1" "$2")" -ge "$3" ]
}

is_armed() { # SESSION TEXT
	[ "$(status "$1" "$2" state)" = armed ]
}

truth_end() {
	echo 0 >"$WATCH/events/enable"
	rmdir "$WATCH"
}
mkdir "$WATCH"
at_end truth_end
echo mono >"$WATCH/trace_clock"
echo 4096 >"$WATCH/buffer_size_kb"
echo "prev_comm == \"$NAME\" || next_comm == \"$NAME\"" >"$WATCH/events/sched/sched_switch/filter"
echo "comm == \"$NAME\"" >"$WATCH/events/sched/sched_waking/filter"
for event in sched/sched_switch sched/sched_waking $CALL ${CALL/enter/exit} block/block_rq_issue block/block_rq_complete; do
	echo 1 >"$WATCH/events/$event/enable"
done

# truth KIND: milliseconds of each wait, by the text of the trace alone
truth() {
	sed -nE 's/^ *(.*)-([0-9]+) +\[([0-9]+)\] .{4,5} +([0-9.]+): ([a-z_]+)(: |\(| -> )(.*)/\2\t\4\t\5\t\7\t\1/p' "$WATCH/trace" |
		awk -F '\t' -v "kind=$1" -v "name=$NAME" '
		function field(key, to,    at) {
			at = index(" " $4, " " key "=")
			if (!at) return ""
			to = substr($4, at + length(key) + 1)
			sub(/ .*/, "", to)
			return to
		}
		function out(who) {
			if (who in since)
				printf "%.3f\n", ($2 - since[who]) * 1000
			delete since[who]
		}
		kind == "syscall" && $5 == name && $3 == "sys_clock_nanosleep" {
			if ($4 ~ /^which_clock/) since[$1] = $2
			else out($1)
		}
		kind == "blocked" && $3 == "sched_switch" && field("prev_comm") == name && field("prev_state") ~ /^D/ {
			since[field("prev_pid")] = $2
		}
		kind == "blocked" && $3 == "sched_waking" { out(field("pid")) }
		kind == "runqueue" && $3 == "sched_waking" { since[field("pid")] = $2 }
		kind == "runqueue" && $3 == "sched_switch" && field("next_comm") == name { out(field("next_pid")) }
		kind == "runqueue" && $3 == "sched_switch" && field("prev_comm") == name {
			delete since[field("prev_pid")]
			if (field("prev_state") ~ /^R/) since[field("prev_pid")] = $2
		}'
}

at_least() { # MILLISECONDS: how many of those in T/truth
	awk -v "least=$1" '$1 >= least { n++ } END { print n + 0 }' "$T/truth"
}

configure() { # NAME WAY
	session "$1" <<-END
		[Trace]
		Event=sched:sched_process_exit
		BufferSize=4M
		[Storage]
		FlushSec=1h
		[Snapshot]
		OnSignal=no
		Burst=3
		Analyze=no
		OnLatency=syscall clock_nanosleep 20ms task=$NAME way=$2
		OnLatency=blocked 20ms task=$NAME way=$2
		OnLatency=runqueue 20ms task=$NAME way=$2
		OnLatency=irq 10s way=$2
		OnLatency=softirq 10s way=$2
		OnLatency=block 10s dev=8:0 way=$2
		OnLatency=syscalls:sys_enter_clock_nanosleep syscalls:sys_exit_clock_nanosleep key=common_pid 20ms way=$2
	END
}
configure k kernel
configure u user
flyrecd_start
"$FLYRECCTL" status k
for kind in "syscall clock_nanosleep" blocked runqueue; do
	for s in k u; do
		way=$([ $s = k ] && echo kernel || echo user)
		wait_for 20 is_armed $s "$kind 20ms task=$NAME way=$way" ||
			fail "$kind, $way: $(status $s "$kind 20ms task=$NAME way=$way" unavailable)"
		[ "$(status $s "$kind 20ms task=$NAME way=$way" way)" = "$way" ] || fail "$kind: not the way"
	done
done

# inject KIND WAITS-KIND: N waits; both ways tell those that were too long
inject() {
	local by_kernel="$1 20ms task=$NAME way=kernel" by_user="$1 20ms task=$NAME way=user" before_k before_u k u
	before_k=$(hits k "$by_kernel") before_u=$(hits u "$by_user")
	echo >"$WATCH/trace"
	"$T/$NAME" "$2" 19000 21000 "$N" >"$T/took" || fail "waits $2"
	truth "${1%% *}" >"$T/truth"
	wait_for 20 has_hits k "$by_kernel" $((before_k + $(at_least 20.1))) ||
		fail "$1: kernel told $(($(hits k "$by_kernel") - before_k)) of $(at_least 20.1)"
	wait_for 20 has_hits u "$by_user" $((before_u + $(at_least 20.1))) ||
		fail "$1: user told $(($(hits u "$by_user") - before_u)) of $(at_least 20.1)"
	k=$(($(hits k "$by_kernel") - before_k)) u=$(($(hits u "$by_user") - before_u))
	echo "$1: $N waits, $(wc -l <"$T/truth") seen, $(at_least 19.5) of 19.5 ms or more, $(at_least 19.9) of 19.9," \
		"$(at_least 20.1) of 20.1, $(at_least 20.5) of 20.5; kernel told $k, user $u"
	[ "$(wc -l <"$T/truth")" -ge "$N" ] || fail "$1: a poor test: $(wc -l <"$T/truth") waits seen"
	[ "$(at_least 20.5)" -gt 0 ] || fail "$1: a poor test: none was too long"
	[ $k -le "$(at_least 19.9)" ] || fail "$1: kernel told $k, of $(at_least 19.9): $(sort -n "$T/truth" | xargs)"
	[ $u -le "$(at_least 19.9)" ] || fail "$1: user told $u, of $(at_least 19.9): $(sort -n "$T/truth" | xargs)"
}
inject "syscall clock_nanosleep" sleep
inject blocked blocked
inject runqueue runqueue
for s in k u; do
	[ "$("$FLYRECCTL" --json status $s | jq '.sessions[0].snapshots')" -gt 0 ] || fail "$s: no snapshot"
done
for text in "clock_nanosleep of $NAME [0-9]* took" "$NAME [0-9]* was blocked [0-9.]*ms, woken by [^ ]* [0-9]" \
	"$NAME [0-9]* waited [0-9.]*ms for CPU [01], woken by"; do
	logged "k: OnLatency=.*way=kernel triggered, $text" || fail "not told by the kernel: $text"
done

# synthetic: what there is in the kernel of session k
synthetic() {
	grep -c '^flyrec_k_lat' "$TRACEFS/synthetic_events" || true
}
[ "$(synthetic)" = 7 ] || fail "$(synthetic) synthetic events, not 7"
[ -d "$TRACEFS/instances/flyrec.k.latency" ] || fail "no instance of the histograms"

echo "== the snapshot has the kernel's own event of it"
files=("$STATE"/k/snapshot/*-latency.dat)
trace-cmd report "${files[0]}" 2>/dev/null >"$T/report"
trace-cmd report --stat "${files[0]}" 2>/dev/null | sed -n '/^flyrec snapshot/,/^ /p' >"$T/stat"
grep -q 'flyrec_k_lat1: *nsec=[0-9]*' "$T/report" || fail "not recorded: $(head -n 5 "$T/report")"
grep -q '^latency: clock_nanosleep of' "$T/stat" || fail "the file does not say it: $(cat "$T/stat")"

SLEEP="syscall clock_nanosleep 20ms task=$NAME way=kernel"
[ -z "${LONG:-}" ] || {
	echo "== histograms that are half full begin anew, and go on telling"
	inode_of() {
		stat -c %i "$TRACEFS/instances/flyrec.k.latency"
	}
	is_anew() {
		[ "$(inode_of)" != "$FIRST" ]
	} 2>/dev/null
	FIRST=$(inode_of)
	for ((i = 0; i < 2300; i++)); do (:); done
	wait_for 90 is_anew || fail "not begun anew: $(tail -n 4 "$TRACEFS/instances/flyrec.k.latency/events/sched/sched_waking/hist")"
	wait_for 20 is_armed k "$SLEEP" || fail "not armed after that: $(status k "$SLEEP" unavailable)"
	before=$(hits k "$SLEEP")
	"$T/$NAME" sleep 30000 30000 1 >/dev/null
	wait_for 20 has_hits k "$SLEEP" $((before + 1)) || fail "nothing is told any more"
}

echo "== killed: the next process begins anew, and tells"
flyrecd_kill
wait_for 20 is_armed k "$SLEEP" || fail "not armed after a kill: $(status k "$SLEEP" unavailable)"
[ "$(synthetic)" = 7 ] || fail "$(synthetic) synthetic events after a kill, not 7"
before=$(hits k "$SLEEP")
"$T/$NAME" sleep 30000 30000 1 >/dev/null
wait_for 20 has_hits k "$SLEEP" $((before + 1)) || fail "nothing is told after a kill"

echo "== killed, and no longer wanted: nothing is left after the next start"
is_down() {
	[ "$(property ActiveState)" = failed ]
}
drop_in once <<-EOF
	[Service]
	Restart=no
EOF
kill -KILL "$FLYRECD_PID"
wait_for 20 is_down || fail "it is not down"
systemctl reset-failed flyrecd
[ "$(synthetic)" = 7 ] || fail "a poor test: nothing was left"
rm "$CONFIG/sessions.d/k.conf"
flyrecd_start
left_nothing() {
	[ "$(synthetic)" = 0 ] && [ ! -d "$TRACEFS/instances/flyrec.k" ] && [ ! -d "$TRACEFS/instances/flyrec.k.latency" ]
}
wait_for 20 left_nothing || fail "left: $(ls "$TRACEFS/instances") $(cat "$TRACEFS/synthetic_events")"

echo "== a file of that instance is held open: said at the stop, and the next start goes on"
configure k kernel
"$FLYRECCTL" reload >/dev/null
wait_for 20 is_armed k "$SLEEP" || fail "not armed again"
exec 7<"$TRACEFS/instances/flyrec.k.latency/per_cpu/cpu0/trace_pipe_raw"
flyrecd_stop
# Without rights to look into other processes it cannot say who that is
must_log 'flyrec.k.latency: one of its files is open or mapped somewhere'
[ "$(synthetic)" = 0 ] || fail "$(synthetic) synthetic events are left beside a file held open"
flyrecd_start
wait_for 20 logged 'Trigger latency syscall .* is unavailable, continuing without it: .*one of its files is open' ||
	fail "not said at the start"
[ "$(status k "$SLEEP" state)" = unavailable ] || fail "not unavailable"
exec 7<&-
flyrecd_hand_over
wait_for 20 is_armed k "$SLEEP" || fail "not armed once it is closed"
flyrecd_stop
left_nothing || fail "left at the end: $(ls "$TRACEFS/instances") $(cat "$TRACEFS/synthetic_events")"
