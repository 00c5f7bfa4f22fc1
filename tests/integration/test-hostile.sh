#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 150
#
# Everything that the clients of raw_bus.py can do, by strangers, members and admins, over the control socket
# and over a system bus, at once and again and again, while flyrecd records: it answers within a second,
# takes the snapshots of its triggers within two, loses no marker, and has in the end as many descriptors,
# threads and bytes on the disk as before. FLYREC_HOSTILE_SECONDS: for how long, else 25.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/control-lib.sh"
need_tracefs
need_tool check-markers
need_command setpriv unshare dbus-daemon busctl python3 jq
need_event sched:sched_switch
ATTACK_SECONDS=${FLYREC_HOSTILE_SECONDS:-25}
MEMORY_MAX=$((64 * 1024)) # kB
STRANGER=65534 MEMBER=1 ADMIN=2 # with names, others are hung up by the bus

chmod 755 "$T"
state_on ext4 600M
private_groups
private_system_bus
echo AdminGroup=flyrecadm | daemon_config
session rec <<-END
	[Trace]
	Event=sched:sched_switch if prev_pid == 1
	BufferSize=4M
	[Storage]
	MaxUse=100M
END
session fl <<-END
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_switch
	BufferSize=1M
	[Snapshot]
	MaxUse=60M
	Burst=1000
	IntervalSec=1s
END
mkdir -p "$STATE"
flyrecd_start
chmod 755 "$RUNTIME"
SOCKET=$RUNTIME/control
bus_has_name

# --- what is looked at meanwhile
held() { # by flyrecd: descriptors, threads
	local open=("/proc/$FLYRECD_PID/fd/"*)
	echo "${#open[@]} descriptors, $(sed -n 's/^Threads:[[:space:]]*//p' "/proc/$FLYRECD_PID/status") threads"
}

# until $T/over is there: how long each `status` took, in ms, and flyrecd's memory
watch_status() {
	local begin
	while [ ! -e "$T/over" ]; do
		begin=${EPOCHREALTIME/./}
		timeout 10 "$FLYRECCTL" "--runtime-dir=$RUNTIME" --json status >/dev/null 2>"$T/status.err" ||
			echo "failed $(cat "$T/status.err")"
		echo "took $(((${EPOCHREALTIME/./} - begin) / 1000))"
		sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\).*/memory \1/p' "/proc/$FLYRECD_PID/status"
		sleep 0.1
	done
}

# every three seconds SIGUSR1: how long until there is a snapshot for it, in ms
watch_trigger() {
	local begin
	# shellcheck disable=SC2317 # called by wait_for
	snapshot_is_there() {
		[ -n "$(find "$STATE/fl/snapshot" -name '*-signal.dat' -newer "$T/mark" 2>/dev/null)" ]
	}
	while [ ! -e "$T/over" ]; do
		touch "$T/mark"
		sleep 0.05
		begin=${EPOCHREALTIME/./}
		kill -USR1 "$FLYRECD_PID"
		WAIT_PAUSE=0.05 wait_for 10 snapshot_is_there || echo "failed: no snapshot within 10 s"
		echo "took $(((${EPOCHREALTIME/./} - begin) / 1000))"
		sleep 3
	done
}

most() { # WORD FILE
	sed -n "s/^$1 //p" "$2" | sort -n | tail -n 1
}

# --- who attacks, and how
who() { # NAME
	case $1 in
	stranger) echo $STRANGER:$STRANGER ;;
	member) echo $MEMBER:$MEMBER,$FLYREC_GID ;;
	admin) echo $ADMIN:$ADMIN,$ADMIN_GID ;;
	esac
}

# attack WHO TRANSPORT VERB ARGUMENT...: refused or not, it must end
attack() {
	local as bus=() socket=$SOCKET status=0 words said=$T/said.$1.$2
	as=$(who "$1")
	[ "$2" = socket ] || { bus=(--bus) && socket=$T/bus; }
	shift 2
	words=$*
	timeout 20 python3 "$SRC/tests/tools/raw_bus.py" "--as=$as" "${bus[@]}" "$socket" "$@" \
		>"$said" 2>&1 </dev/null || status=$?
	echo "$as ${bus[*]} ${words:0:60}: status $status, $(tail -n 1 "$said")" >>"$T/attacks"
}

# each kind once, in an order of its own for each attacker
attacks() { # WHO TRANSPORT
	local line manager=org.flyrec.Recorder1.Manager long plan=$T/plan.$1.$2
	long=$(printf 'x%.0s' {1..20000})
	shuf >"$plan" <<-END
		descriptors 100
		declared 4
		signal 3
		pile 2000
		linger call 3
		linger greeting 3
		linger unread 3
		unread 40 127 ListEvents 2
		unread 20 127 GetSession $long 2
		hold 64 nothing 2
		hold 64 greeting 2
		hold 64 hello 2
		hold 64 part 2
		hold 64 refused 2
		flood 3000 ListSessions
		flood 500 ListEvents
		flood 3000 GetSession fl
		connect 2
		call $manager OpenFile ss fl ../../../etc/shadow
		call $manager Vacuum tt 0 0
	END
	while read -r line; do
		[ ! -e "$T/over" ] || break
		# shellcheck disable=SC2086 # words
		attack "$1" "$2" $line
	done <"$plan"
}

# snapshots without end, every other one pinned, for whose answers nobody waits
flood_snapshots() { # WHO TRANSPORT
	local as over_bus=False socket=$SOCKET status=0 said=$T/said.$1.$2
	as=$(who "$1")
	[ "$2" = socket ] || { over_bus=True && socket=$T/bus; }
	PYTHONPATH=$SRC/tests/tools timeout 20 python3 - >"$said" 2>&1 <<-END || status=$?
		import raw_bus
		raw_bus.become("$as")
		for turn in range(15):
		    client = raw_bus.Client("$socket", bus=$over_bus)
		    for call in range(20):
		        client.send(client.make(raw_bus.SESSION, "Snapshot", "ttsb", 0, 2**64 - 1, "", call % 2,
		                                path=raw_bus.PATH + "/session/fl", flags=raw_bus.NO_REPLY))
		    client.close()
	END
	echo "$as $2 snapshots: status $status, $(tail -n 1 "$said")" >>"$T/attacks"
}

attacker() { # WHO TRANSPORT
	while [ ! -e "$T/over" ]; do
		attacks "$1" "$2"
		[ -e "$T/over" ] || flood_snapshots "$1" "$2"
	done
}

# --- all at once
before=$(held)
markers_start rec 2000
background watch_status >"$T/status"
watchers=($!)
background watch_trigger >"$T/trigger"
watchers+=($!)
for transport in socket bus; do
	for name in stranger member admin; do
		background attacker $name $transport
		watchers+=($!)
	done
done
sleep "$ATTACK_SECONDS"
touch "$T/over"
for pid in "${watchers[@]}"; do
	wait "$pid" || fail "an attacker or a watcher ended with $?: $(tail -n 3 "$T/attacks")"
done
markers_stop

echo "$(wc -l <"$T/attacks") attacks; status took at most $(most took "$T/status") ms, a trigger's snapshot" \
	"$(most took "$T/trigger") ms, memory $(most memory "$T/status") kB"
[ "$(wc -l <"$T/attacks")" -ge $((ATTACK_SECONDS / 2)) ] || fail "hardly any attack: $(tail -n 3 "$T/attacks")"
! grep '^failed' "$T/status" || fail "status: $(grep -m 1 '^failed' "$T/status")"
! grep '^failed' "$T/trigger" || fail "trigger: $(grep -m 1 '^failed' "$T/trigger")"
[ "$(most took "$T/status")" -le 1000 ] || fail "status took $(most took "$T/status") ms"
[ "$(most took "$T/trigger")" -le 2000 ] || fail "a trigger's snapshot took $(most took "$T/trigger") ms"
# a sanitizer has memory of its own
[ "$(most memory "$T/status")" -le $MEMORY_MAX ] || grep -qa __asan_init "$BUILD/flyrecd" ||
	fail "$(most memory "$T/status") kB of memory"

# --- and then all is as it was
as_before() {
	[ "$(held)" = "$before" ]
}
wait_for 15 as_before || fail "$(held), not $before: $(ls -l "/proc/$FLYRECD_PID/fd")"
ctl --json status >/dev/null || fail "flyrecd does not answer"
used() { # DIRECTORY MEGABYTES
	local used
	used=$(du -sm "$STATE/$1" | cut -f 1)
	[ "$used" -le "$2" ] || fail "$1 has $used MB, more than MaxUse=$2M: $(ls -l --full-time "$STATE/$1")"
}
# A snapshot is there before what it makes superfluous is removed: this one comes behind all that wait
ctl snapshot fl >/dev/null || fail "no snapshot at the end"
used rec/record 100
used fl/snapshot 60
[ "$(find "$STATE/fl/snapshot" -name '*-signal.dat' | wc -l)" -ge 3 ] || fail "snapshots of triggers are gone"
[ "$(ctl --json list | jq '[.files[] | select(.pinned) | .bytes] | add // 0')" -le $((30 * 1024 * 1024)) ] ||
	fail "more than half of MaxUse= is pinned"
flyrecd_stop
verify "$STATE"
# in ten minutes the oldest segments make way
made_way=()
! grep -q '^flyrecd: rec: retention removed' "$T/flyrecd.log" || made_way=(--allow-lost-at-start)
markers_check rec "${made_way[@]}"
