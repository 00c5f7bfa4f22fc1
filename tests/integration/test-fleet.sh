#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A trigger on one of three hosts, each with a flyrecd of its own, and the others keep the same moment:
# how soon they ask, what their files have; what is made up is refused, a storm makes one file a host; and
# what happens while the broker, a host or flyrecd is away, with certificates that are wrong, and clocks
# that differ.
# time-limit: 240
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fleet-lib.sh"
need_tracefs
need_command jq mosquitto mosquitto_pub openssl python3 trace-cmd
need_event sched:sched_switch
[ -x "$BUILD/flyrec-follow" ] || skip "built without mosquitto"
ASKS=${FLEET_ASKS:-20}
cd "$T"

fleet_pki h1 h2 h3 h9
broker_start
for host in h1 h2 h3; do
	host_new $host <<-EOF
		[Follow]
		MaxWindowSec=20s
		MaxAgeSec=40s
		MarginSec=200ms
		[Announce]
		BeforeSec=2s
	EOF
	on $host
	session rec <<-EOF
		[Trace]
		Event=sched:sched_switch
		BufferSize=1M
		[Storage]
		FlushSec=200ms
		[Snapshot]
		Last=1s
		Burst=1000
		Analyze=no
		PeerMaxSec=20s
	EOF
	# Allows nothing to other hosts
	session own <<-EOF
		[Trace]
		Event=sched:sched_process_exit
		BufferSize=256K
		[Snapshot]
		PeerMaxSec=0
	EOF
	flyrecd_start
	fleet_start announce follow
done

echo "== how soon others ask"
watch_asks h2 h3
for ((i = 1; i <= ASKS; i++)); do
	trigger "number $i"
	have_it "$ID" h2 h3
done
wait_for 5 asked $((2 * ASKS)) || fail "$(wc -l <asked) requests, not $((2 * ASKS))"
asks_took
[ "$(median took | cut -d . -f 1)" -le 500 ] || fail "more than 500 ms from the trigger to most requests"

echo "== the same time in all files"
for host in h2 h3; do
	on $host
	percent=$(covered "$ID" 1)
	echo "$host: $percent %"
	[ "$percent" -ge 95 ] || fail "$host has $percent % of the window: $(ctl list rec)"
	path=$(ctl --json list rec | jq -r --arg id "$ID" '.files[] | select(.ids | index($id)) | .path')
	trace-cmd report --stat "$path" >"$T/stat" 2>/dev/null
	grep -qx "for: control on h1: number $ASKS" "$T/stat" || fail "$host: the file does not say why: $(tail -n 12 "$T/stat")"
	verify "$path"
	! has_id own || fail "a session that allows nothing"
done

echo "== what is made up"
on h2
before=$(peer_files)
for _ in 1 2; do
	publish h9 h9 -m '{"v":1' || fail "publish"
	publish h9 h9 -m "$(message h9 "x\$(touch $T/touched)" 2 0 '.id += "\n" | .session = "\"; rm -r /"')"
	publish h9 h9 -m $'1 h9-1 1 2 event\nflyrec/snapshot/web/h1 1 h1-1 1 2 event'
	publish h9 h9 -m "$(message h9 h9-far 2 0 '.since -= 100000000000')"
	publish h9 h9 -m "$(message h9 h9-future -30 -40)"
	publish h9 h9 -m "$(message h9 h9-old 3000 2990)"
	publish h9 h9 -m "$(message h9 h9-v2 2 0 '.v = 2')"
	publish h9 h9 -m "$(message h1 h1-other 2 0)"
	publish h9 h9 -m "$(message h9 h9-type 2 0 '.since |= tostring')"
	publish h9 h9 -n
	head -c 1000000 /dev/zero | tr '\0' x >big
	publish h9 h9 -f big
	publish admin -x -m "$(message h9 h9-topic 2 0)"
done
# A host speaks for itself only
publish h9 h1 -m "$(message h1 h1-forged 2 0)" 2>&1 | grep -q 'Not authorized' || fail "the broker lets h9 speak for h1"
publish h9 h9 -m "$(message h9 h9-good 2 0 '.text = "the last one"')"
have_it h9-good h2 h3
for pattern in 'no JSON object' '"id" is ' 'MaxWindowSec=20.0s' 'in the future' 'ended .* ago, MaxAgeSec=40.0s' 'version 2, not 1' \
	'of another host' "no host's topic" '1000000 bytes, 1024'; do
	said_once follow "Refused .*$pattern"
done
[ ! -e touched ] || fail "a message was run"
[ "$(peer_files)" = $((before + 1)) ] || fail "$((before + 1)) files, and now $(peer_files)"
[ "$(grep -c Refused "$(fleet_log follow)")" = 9 ] || fail "refusals: $(grep Refused "$(fleet_log follow)")"

# a line a second, of those that came in it
n_covered() { sed -nE 's/.* ([0-9]+) more messages are of moments .*/\1/p' "$(fleet_log follow)" | awk '{ n += $1 } END { print n + 0 }'; }
all_covered() { [ "$(n_covered)" = 984 ]; }

echo "== once more, and a storm"
again=$(message h9 h9-again 6 4)
publish h9 h9 -m "$again"
have_it h9-again h2 h3
publish h9 h9 -m "$again"
on h2
before=$(peer_files)
jq -c 'range(1000) as $i | .id = "h9-s\($i)" | .until += ($i * 10) | .since += ($i * 10)' <<<"$(message h9 x 3 0)" >storm
publish h9 h9 -l <storm || fail "storm"
publish h9 h9 -m "$(message h9 h9-after 13 8)"
have_it h9-after h1 h2 h3
for host in h2 h3; do
	on $host
	[ "$(peer_files)" = $((before + 2)) ] || fail "$host: $before files before the storm, and now $(peer_files)"
	wait_for 20 all_covered || fail "$host: of 984 messages $(n_covered) are said to be covered"
done

echo "== the broker is killed, and comes back"
broker_stop KILL
for host in h1 h2 h3; do
	on $host
	said_once announce 'is away, trying again'
	said_once follow 'is away, trying again'
done
trigger "without a broker"
broker_start
have_it "$ID" h2 h3
on h1
said_once announce "is back"
said_once announce "Told other hosts of $ID"

echo "== announce is restarted meanwhile"
on h1
broker_stop KILL
announce_again() { # it listens before it looks for the broker
	: >"$(fleet_log announce)"
	STATE_DIRECTORY=$T/h1/announce background "$BUILD/flyrec-announce" "--config=$T/h1/fleet.conf" "--runtime-dir=$RUNTIME" \
		2>>"$(fleet_log announce)"
	HOST_PROGRAM[h1.announce]=$!
	said_once announce 'is away, trying again'
}
trigger "before SIGKILL"
first=$ID
wait_for 10 test -s "h1/announce/$first.json" || fail "$first is not stored"
kill -KILL "${HOST_PROGRAM[h1.announce]}"
wait "${HOST_PROGRAM[h1.announce]}" 2>/dev/null || true
announce_again
trigger "before SIGTERM"
fleet_stop announce
jq -c '.id = "h1-expired"' "h1/announce/$first.json" >h1/announce/h1-expired.json
touch -d '-6 min' h1/announce/h1-expired.json
jq -c '.host = "h2"' "h1/announce/$first.json" >h1/announce/h1-forged.json
cp "h1/announce/$first.json" h1/announce/another-name.json
echo '{"v":1,' >h1/announce/h1-half.json
announce_again
for name in h1-forged another-name h1-half; do
	said_once announce "Removing $name.json, which is of no use"
done
broker_start
for id in "$first" "$ID"; do
	have_it "$id" h2 h3
	on h1
	said_once announce "Told other hosts of $id"
done
said_once announce 'h1-expired is no longer of use'
all_told() {
	[ -z "$(ls h1/announce)" ]
}
wait_for 10 all_told || fail "files of announce are left: $(ls h1/announce)"
on h2
for id in h1-expired h1-forged h1-half; do
	! has_id $id || fail "h2 has $id"
done
[ "$(peer_files "$first")" = 1 ] || fail "$(peer_files "$first") files of $first"

echo "== a host is away"
on h3
fleet_stop follow
trigger "without h3"
id=$ID
have_it "$id" h2
publish h9 h9 -m "$(message h9 h9-late 39.9 39 '.')"
on h3
sleep 1.5 # until that one is too old
fleet_start follow
have_it "$id" h3
[ "$(peer_files h9-late)" = 0 ] || fail "what is too old"
says follow 'Refused .*ended' || fail "what is too old is not said: $(cat "$(fleet_log follow)")"

echo "== flyrecd is away"
on h3
flyrecd_kill
trigger "without a flyrecd"
id=$ID
have_it "$id" h2
on h3
said_once follow 'flyrecd is away'
wait_for 10 test -s "h3/follow/$id.json" || fail "$id is not stored"
# and follow is restarted meanwhile
kill -KILL "${HOST_PROGRAM[h3.follow]}"
wait "${HOST_PROGRAM[h3.follow]}" 2>/dev/null || true
: >"$(fleet_log follow)"
jq -c '.id = "h1-ancient" | .since -= 600000000 | .until -= 600000000' "h3/follow/$id.json" >h3/follow/h1-ancient.json
fleet_start follow
said_once follow 'flyrecd is away'
said_once follow 'Removing h1-ancient.json, which is of no use'
flyrecd_start
have_it "$id" h3
said_once follow 'flyrecd is back'
all_asked() { [ -z "$(ls h3/follow)" ]; }
wait_for 10 all_asked || fail "files of follow are left: $(ls h3/follow)"

echo "== certificates"
on h1
fleet_stop announce
: >"$(fleet_log announce)"
fleet_certificate bad h1 20200101000000Z 20200102000000Z
cp "$PKI/h1.crt" "$PKI/h1.good"
cp "$PKI/h1.key" "$PKI/h1.good.key"
cp "$PKI/bad.crt" "$PKI/h1.crt"
cp "$PKI/bad.key" "$PKI/h1.key"
background "$BUILD/flyrec-announce" "--config=$T/h1/fleet.conf" "--runtime-dir=$RUNTIME" 2>>"$(fleet_log announce)"
said_once announce 'away, trying again: .*certificate expired'
trigger "with an expired certificate"
cp "$PKI/h1.good" "$PKI/h1.crt"
cp "$PKI/h1.good.key" "$PKI/h1.key"
have_it "$ID" h2 h3
on h1
said_once announce "Told other hosts of $ID"

echo "== clocks 300 ms apart"
for ahead in -300000 300000; do
	id=h9-clock$ahead
	message h9 "$id" 7 1 ".since += $ahead | .until += $ahead" >sent
	publish h9 h9 -f sent
	have_it "$id" h2 h3
	for host in h2 h3; do
		on $host
		# Of the six seconds that h9 means by a clock that is right
		percent=$(ctl --json list rec | jq --slurpfile sent sent --argjson ahead $ahead '($sent[0].since - $ahead) as $since |
			($sent[0].until - $ahead) as $until | .files[] | select(.ids | index($sent[0].id)) |
			(([.end_usec, $until] | min) - ([.start_usec, $since] | max)) * 100 / ($until - $since) | floor')
		echo "$host: $percent %"
		[ "$percent" -ge 95 ] || fail "$host has $percent % of the window of $id: $(ctl list rec)"
	done
done

for host in h1 h2 h3; do
	on $host
	for program in announce follow; do
		! grep -iE 'fault|sanitizer|assert' "$(fleet_log $program)" || fail "$host: $program"
	done
	flyrecd_stop
done
