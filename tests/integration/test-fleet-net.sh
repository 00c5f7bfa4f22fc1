#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Three hosts, each with a network of its own, the broker on the first one: how soon the others ask for the moment of a
# trigger, and what their files have of it; the cable of one is pulled, the broker is killed. With scripts/test --all
# the cable is out for more than a minute, so that both ends of each connection have given it up, and the broker is
# killed meanwhile: whatever is still of use is taken once, and said once.
# beside: yes
# time-limit: 300
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fleet-lib.sh"
. "$(dirname "$0")/net-lib.sh"
need_tracefs
need_command jq mosquitto mosquitto_pub openssl python3
need_event sched:sched_switch
[ -x "$BUILD/flyrec-follow" ] || skip "built without mosquitto"
ASKS=${FLEET_ASKS:-10}
cd "$T"

net_new h1 h2 h3
net_of h1
IN_BROKER_NET=("${IN_NET[@]}") BROKER_HOST=${NET_ADDRESS[h1]} BROKER_ADDRESS=${NET_ADDRESS[h1]}
fleet_pki h1 h2 h3 h9
broker_start
for host in h1 h2 h3; do
	host_new $host <<-EOF
		[Follow]
		MarginSec=200ms
	EOF
	on $host
	session rec <<-EOF
		[Trace]
		Event=sched:sched_switch
		BufferSize=1M
		[Storage]
		FlushSec=200ms
		KeepFree=0
		[Snapshot]
		Last=1s
		Burst=1000
		Analyze=no
		PeerMaxSec=20s
	EOF
	flyrecd_start
	fleet_start announce follow
done
[ "$(readlink "/proc/${HOST_PROGRAM[h3.follow]}/ns/net")" != "$(readlink /proc/self/ns/net)" ] ||
	fail "follow of h3 is on this machine's network"

echo "== how soon others ask, and what they have"
watch_asks h2 h3
for ((i = 1; i <= ASKS; i++)); do
	trigger "number $i"
	have_it "$ID" h2 h3
done
wait_for 5 asked $((2 * ASKS)) || fail "$(wc -l <asked) requests, not $((2 * ASKS))"
asks_took
[ "$(median took | cut -d . -f 1)" -le 500 ] || fail "more than 500 ms from the trigger to most requests"
for host in h2 h3; do
	on $host
	percent=$(covered "$ID" 1)
	echo "$host: $percent %"
	[ "$percent" -ge 95 ] || fail "$host has $percent % of the window: $(ctl list rec)"
done

# once HOST ID...: one file has it, and it was said once
once() {
	local id
	on "$1"
	for id in "${@:2}"; do
		have_it "$id" "$1"
		[ "$(peer_files "$id")" = 1 ] || fail "$1: $(peer_files "$id") files of $id"
		said_once follow "$id of [a-z0-9]* is (also )?in "
	done
}
away=() # ids of moments
echo "== a cable is pulled for a moment"
net_unplug h3
trigger "without h3"
away+=("$ID")
have_it "$ID" h2
on h3
! has_id "$ID" || fail "h3 has what it cannot know of"
net_plug h3
once h3 "$ID"

echo "== the broker is killed while a cable is out"
pulled=$EPOCHSECONDS
net_unplug h3
trigger "without h3, before the broker is killed"
away+=("$ID")
have_it "$ID" h2
publish h9 h9 -D publish message-expiry-interval 10 -m "$(message h9 h9-expired 2 0)" || fail "publish"
have_it h9-expired h2
if thorough; then
	given_up() { [ "$(grep -cE 'Client flyrec-(announce|follow)-h3 has exceeded timeout' "$BROKER_LOG")" = 2 ]; }
	wait_for 90 given_up || fail "the broker has not noticed: $(grep h3 "$BROKER_LOG")"
fi
broker_stop KILL
for host in h1 h2; do
	on $host
	said_once announce 'is away, trying again'
	said_once follow 'is away, trying again'
done
trigger "without h3 and a broker"
away+=("$ID")
broker_start
have_it "$ID" h2
for host in h1 h2; do
	on $host
	said_once announce 'is back'
	said_once follow 'is back'
done
# and what happens on the host that is away
on h3
ctl trigger rec "on h3" || fail "trigger"
h3_has_id() { h3_id=$(ctl --json list rec | jq -r '[.files[] | select(.path | endswith("-control.dat"))] | last | .ids[0] // empty') && [ -n "$h3_id" ]; }
wait_for 10 h3_has_id || fail "no id of h3's trigger"
if thorough; then
	for ((i = 1; i <= 5; i++)); do
		trigger "without h3, number $i"
		away+=("$ID")
	done
	on h3
	for program in announce follow; do
		wait_for 120 says $program 'is away, trying again' || fail "h3: $program has not noticed: $(cat "$(fleet_log $program)")"
	done
	minute() { [ $((EPOCHSECONDS - pulled)) -ge 61 ]; }
	wait_for 70 minute
	trigger "without h3, after a minute"
	away+=("$ID")
fi
echo "after $((EPOCHSECONDS - pulled)) s"
net_plug h3
on h3
# A connection that was begun without the cable is given up after 20 s, the next one begun 15 s later at most
is_back() { says announce 'is back' && says follow 'is back'; }
wait_for 60 is_back || fail "h3 has not come back: $(cat "$(fleet_log announce)" "$(fleet_log follow)")"
once h2 "${away[@]}"
once h3 "${away[@]}"
on h3
said_once announce "Told other hosts of $h3_id"
for program in announce follow; do
	said_once_each_time $program # a connection may be made to a cable that is just plugged in, and fail
done
once h1 "$h3_id"
once h2 "$h3_id"
if thorough; then
	on h3
	! has_id h9-expired || fail "h3 has taken what was no longer of use"
fi

for host in h1 h2 h3; do
	on $host
	! says follow 'Refused|dropped' || fail "$host: $(cat "$(fleet_log follow)")"
	! says announce 'dropped' || fail "$host: $(cat "$(fleet_log announce)")"
	verify "$STATE"/rec/snapshot/*-peer.dat
	flyrecd_stop
done
