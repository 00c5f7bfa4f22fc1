#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 480
#
# flyrec-fleet ship and pull: names first, then the data of this host's triggers, once and never over another;
# what others want when they ask, by sampling, what was removed; stores that are down, slow, full; SIGKILL in
# the middle; names of others that are not to be trusted. Files are compared with sha256sum and trace-cmd.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ship-lib.sh"
need_tracefs
need_fleet
need_command python3 trace-cmd
need_event sched:sched_process_fork
cd "$T"

session demo <<-EOF
	[Trace]
	Event=sched:sched_process_fork
	Event=sched:sched_switch
	BufferSize=512K
	[Storage]
	FlushSec=300ms
	[Snapshot]
	Last=5s
	Burst=1000
	Analyze=no
EOF
flyrecd_start
"$TOOLS/forkstorm" --count=200
metric() { # NAME
	sed -n "s/^flyrec_fleet_$1 //p" "$T/$HOST/fleet/ship/metrics.prom" 2>/dev/null
}
once() { # what it says is in "said"
	fleet ship --once 2>"$T/said"
}
files_in_store() {
	find "$STORE" -type f -printf '%P %T@ %i\n' | sort
}

echo "== everything is in the manual and the completion"
man=$SRC/man/flyrec-fleet-ship.8
"$BUILD/flyrec-fleet" --help | sed -n 's/^  \([a-z]\+\) .*/\1/p' >verbs
[ "$(wc -l <verbs)" -ge 5 ] || fail "verbs: $(cat verbs)"
while read -r verb; do
	grep -qw "$verb" "$SRC/completion/flyrec-fleet" || fail "the completion has no $verb"
	grep -qE "^\.BR? \"?$verb\b" "$SRC/man/flyrec-fleet.1" || fail "flyrec-fleet(1) has no $verb"
done <verbs
for verb in ship pull; do
	for option in $(fleet $verb --help | grep -oE -e '--[a-z]+' | sort -u); do
		grep -q -e "$option" "$SRC/completion/flyrec-fleet" || fail "the completion has no $option of $verb"
		grep -qF -e "${option/--/\\-\\-}" "$man" || fail "the manual has no $option of $verb"
	done
done
fleet_config
for key in $("$FLYREC_FLEET" "--config=$T/h1/fleet.conf" config | sed -n '/^\[Store\]/,$s/=.*//p'); do
	grep -q "^\.BR $key= " "$man" || fail "the manual has no $key="
done

echo "== names, data"
fleet_config
mkdir store
peer=$(ctl snapshot --limited --id=other-1 --last=3s demo 2>said) || fail "no snapshot for another host: $(cat said)"
triggered
once || fail "ship: $(cat said)"
[ ! -s said ] || fail "ship says: $(cat said)"
intact "$SNAPSHOT" "$ID"
[ "$(stat -c %s "$(object "$SNAPSHOT")")" -lt "$(stat -c %s "$SNAPSHOT")" ] || fail "not compressed"
jq -e --arg id "$ID" --arg file "${SNAPSHOT##*/}" --argjson bytes \
	"$(ctl --json list | jq --arg path "$SNAPSHOT" '.files[] | select(.path == $path).bytes')" \
	'.v == 1 and .id == $id and .host == "h1" and .session == "demo" and .file == $file and .bytes == $bytes and
	.start_usec > 1.7e15 and .end_usec > .start_usec' "$(record have "$SNAPSHOT" "$ID")" >/dev/null ||
	fail "index: $(cat "$(record have "$SNAPSHOT" "$ID")")"
[ -e "$(record have "$peer" other-1)" ] || fail "nobody knows of $peer"
[ ! -e "$(object "$peer")" ] || fail "$peer was sent though nobody asked"
files_in_store >before
once || fail "ship again: $(cat said)"
files_in_store | cmp - before || fail "wrong data: done twice"

echo "== the same after its state is lost"
rm -r h1/fleet
once || fail "ship: $(cat said)"
[ ! -s said ] || fail "ship says: $(cat said)"
files_in_store | cmp - before || fail "wrong data: written again"

echo "== never over another"
triggered
mkdir -p "$(dirname "$(object "$SNAPSHOT")")"
echo 'of somebody else' >"$(object "$SNAPSHOT")"
once || fail "ship: $(cat said)"
grep -qx "flyrec-fleet: demo/${SNAPSHOT##*/}: not sent, as the store has another file of this name" said ||
	fail "says: $(cat said)"
[ "$(wc -l <said)" = 1 ] || fail "says more: $(cat said)"
[ "$(cat "$(object "$SNAPSHOT")")" = 'of somebody else' ] || fail "wrong data: overwritten"
! stored "$SNAPSHOT" "$ID" || fail "the index says it is there"
[ "$(metric shipping_refused_files_total)" = 1 ] || fail "metrics: $(cat h1/fleet/ship/metrics.prom)"
once || fail "ship: $(cat said)"
[ ! -s said ] || fail "said again: $(cat said)"
echo '{}' >"$(record have "$SNAPSHOT" "$ID")"
rm -r h1/fleet
once || fail "ship: $(cat said)"
[ "$(cat "$(record have "$SNAPSHOT" "$ID")")" = '{}' ] || fail "wrong data: an entry was overwritten"
grep -q 'another host calls itself "h1", too' said || fail "says: $(cat said)"

echo "== pull: asked, sent, here"
prints -x other-1 fleet pull --list || fail "list: $(cat printed)"
prints -P "^have\th1\tdemo\t\d{4}-.*Z\t\d{4}-.*Z\t\d+\t${peer##*/}$" fleet pull --list other-1 || fail "list: $(cat printed)"
mkdir got
status=0
fleet pull other-1 --output=got >out 2>said || status=$?
[ "$status $(cat out)" = "1 " ] || fail "pull: $status, $(cat out)"
grep -qx "flyrec-fleet: h1/demo/${peer##*/}: asked for, and not in the store yet" said || fail "pull: $(cat said)"
prints '^asked' fleet pull --list other-1 || fail "list: $(cat printed)"
once || fail "ship: $(cat said)"
intact "$peer" other-1
[ "$(fleet pull other-1 -o got)" = "got/h1/demo/snapshot/${peer##*/}" ] || fail "pull"
cmp "got/h1/demo/snapshot/${peer##*/}" "$(object "$peer")" || fail "wrong data: pulled"
prints '^stored' fleet pull --list other-1 || fail "list: $(cat printed)"
refused 'no host has anything of other-1' fleet pull other-1 --hosts='db*,h2' -o got
refused 'no host has anything of nothing' fleet pull nothing
for bad in '' -x 'a b' ../x 'x --hosts=a'; do
	status=0
	fleet pull "$bad" >out 2>said || status=$?
	[ $status = 2 ] || fail "pull \"$bad\": status $status"
done

echo "== what others have put into the index is not trusted"
folder=$STORE/web/index/other-1/h9/demo name=20261126T120000.000000Z-event.dat
mkdir -p "$folder" "$STORE/web/data/h9/demo" "$STORE/web/index/other-1/-rf/demo"
echo rows >"$STORE/web/data/h9/demo/$name"
echo '{"sha256":"'"$(sha256sum </dev/null | cut -d ' ' -f 1)"'"}' >"$folder/$name.stored.json"
# shellcheck disable=SC2016 # not to be expanded by anybody
for bad in $'a\nb' '$(touch pwned)' $'\e[2J' .stored.json "$name.else.json"; do
	echo '{}' >"$folder/$bad"
done
echo '{}' >"$STORE/web/index/other-1/-rf/demo/$name.stored.json"
status=0
fleet pull other-1 -o got >out 2>said || status=$?
[ "$status $(cat out)" = "1 got/h1/demo/snapshot/${peer##*/}" ] || fail "pull: $status, $(cat out)"
grep -q "^flyrec-fleet: h9/demo/$name: not what its host has sent" said || fail "pull: $(cat said)"
[ "$(grep -c 'in the index is something else, ignoring' said)" = 6 ] || fail "pull: $(cat said)"
! grep -q $'\e' said || fail "what others wrote reaches the terminal"
[ ! -e "got/h9/demo/snapshot/$name" ] || fail "pulled all the same"
[ ! -e pwned ] || fail "a name was executed"

echo "== the same moments of other hosts, by sampling"
chosen='' left=''
for i in {1..40}; do
	hash=$(printf %s "s-$i" | sha256sum)
	if [ $((16#${hash:0:8})) -lt $((16#100000000 / 2)) ]; then chosen=s-$i; else left=s-$i; fi
done
HOST=h2
fleet_config Sample=50 Compress=no
sleep 1
sampled=$(ctl snapshot --limited "--id=$chosen" --last=1s demo 2>said) || fail "no snapshot: $(cat said)"
sleep 1
unsampled=$(ctl snapshot --limited "--id=$left" --last=1s demo 2>said) || fail "no snapshot: $(cat said)"
[ "$sampled" != "$unsampled" ] || fail "one file for both"
once || fail "ship: $(cat said)"
cmp "$sampled" "$(object "$sampled")" || fail "wrong data: $sampled"
[ ! -e "$(object "$unsampled")" ] || fail "$left was sent"
HOST=h1

echo "== removed: here, what is whole in the store; what nobody asked for, there"
rm "$unsampled"
fleet_config Remove=yes
ctl pin "$SNAPSHOT" || fail "pin"
pinned=$SNAPSHOT
triggered "to be removed"
once || fail "ship: $(cat said)"
[ -e "$SNAPSHOT" ] || fail "removed by itself"
fleet ship --remove || fail "--remove"
[ ! -e "$SNAPSHOT" ] || fail "$SNAPSHOT is still there"
[ -e "$pinned" ] || fail "a pinned snapshot was removed"
[ -e "$sampled" ] || fail "removed what is not in the store"
rm "$sampled"
once || fail "ship: $(cat said)"
[ ! -s said ] || fail "says: $(cat said)"
prints '^stored' fleet pull --list "$ID" || fail "list: $(cat printed)"
prints '^gone' fleet pull --list "$chosen" --hosts=h1 || fail "list: $(cat printed)"
refused 'removed there before it was asked for' fleet pull "$chosen" --hosts=h1

echo "== full: names go on, data waits, said once"
HOST=full STORE=$T/store-full log=$T/full/ship.log
mkfs_mount ext4 16M "$STORE"
fleet_config
dd if=/dev/zero of="$STORE/fill" bs=64k status=none 2>/dev/null || true
truncate -s -192K "$STORE/fill"
triggered
ship_start
is_full() {
	grep -qE 'cannot send it: .*(no space left on device|remaining disk space), trying again$' "$log" && [ "$(metric shipping_failures_total)" -ge 2 ]
}
wait_for 40 is_full || fail "full: $(cat "$log")"
[ -e "$(record have "$SNAPSHOT" "$ID")" ] || fail "full: no name"
[ "$(wc -l <"$log")" = 1 ] || fail "full: says $(cat "$log")"
rm "$STORE/fill"
wait_for 60 stored "$SNAPSHOT" "$ID" || fail "full: not sent: $(cat "$log")"
intact "$SNAPSHOT" "$ID"
ship_stop TERM
[ "$(wc -l <"$log")" = 2 ] || fail "full: says $(cat "$log")"
STORE=$T/store

# goes KIND: what a store of this kind survives
goes() {
	local kind=$1 port peer
	port=$(port_of "$kind")
	HOST=$kind STORE=$T/store-$kind
	mkdir "$STORE"
	REMOTE=$kind:
	[ "$kind" != s3 ] || REMOTE=s3:flyrec
	fleet_config "Rate=$slow"

	echo "== $kind: down"
	ship_start
	triggered
	log=$T/$kind/ship.log
	begun() {
		[ -p "$T/$HOST/fleet-run/wake" ]
	}
	wait_for 20 begun || fail "ship does not start"
	fleet ship --wake
	has_failed() {
		[ -s "$log" ] && [ "$(metric shipping_failures_total)" -ge 2 ] 2>/dev/null
	}
	# an S3 client tries each name for seconds
	wait_for 120 has_failed || fail "$kind: no failure: $(cat "$log")"
	[ "$(wc -l <"$log")" = 1 ] || fail "$kind: says $(cat "$log")"
	grep -q '^flyrec-fleet: cannot add to the index in the store: .*connection refused.*, trying again$' "$log" ||
		fail "$kind: says $(cat "$log")"
	serve "$kind" "$port"
	told() {
		[ -e "$(record have "$1" "$2")" ]
	}
	wait_for 40 told "$SNAPSHOT" "$ID" || fail "$kind: not in the index: $(cat "$log")"
	wait_for 5 grep -q 'added to the index in the store after' "$log" || fail "$kind: says $(cat "$log")"

	echo "== $kind: slow; names do not wait for data"
	first=$SNAPSHOT first_id=$ID
	triggered
	fleet ship --wake
	wait_for 40 told "$SNAPSHOT" "$ID" || fail "$kind: the name waits for data: $(cat "$log")"
	! stored "$first" "$first_id" || fail "$kind: faster than Rate=$slow"

	echo "== $kind: SIGKILL in the middle"
	# whichever comes first; other stores show nothing before it is whole
	half() {
		[ "$kind" != sftp ] || [ -n "$(find "$STORE/web/data" -type f -size +0 2>/dev/null)" ]
	}
	wait_for 60 half || fail "$kind: nothing arrives: $(cat "$log")"
	ship_stop KILL
	half || fail "$kind: nothing is left of the first half"
	fleet_config Rate=100M
	ship_start
	for file in "$first $first_id" "$SNAPSHOT $ID"; do
		# shellcheck disable=SC2086 # two words
		wait_for 60 stored $file || fail "$kind: not sent: $file: $(cat "$log")"
		# shellcheck disable=SC2086
		intact $file
	done
	[ "$(wc -l <"$log")" = 2 ] || fail "$kind: says more: $(cat "$log")"

	echo "== $kind: pulled; also what its host has to be asked for"
	fleet pull "$ID" -o got >out 2>said || fail "$kind: pull: $(cat said)"
	cmp "$(cat out)" "$(object "$SNAPSHOT")" || fail "wrong data: $kind: pulled"
	peer=$(ctl snapshot --limited "--id=other-$kind" --last=3s demo 2>said) || fail "$kind: no snapshot: $(cat said)"
	fleet ship --wake
	wait_for 60 told "$peer" "other-$kind" || fail "$kind: nobody knows of $peer: $(cat "$log")"
	prints '^have' fleet pull --list "other-$kind" || fail "$kind: list: $(cat printed)"
	fleet pull --wait=60 "other-$kind" -o got >out 2>said || fail "$kind: pull: $(cat said)"
	cmp "$(cat out)" "$(object "$peer")" || fail "wrong data: $kind: pulled"
	intact "$peer" "other-$kind"
	ship_stop TERM
	serve_stop
}

remotes "$(free_port)" "$(free_port)" "$(free_port)"
port_of() { # KIND
	awk -v kind="[$1]" '$0 == kind { found = 1 } found && /^port|^url|^endpoint/ { sub(/.*[ :]/, ""); print; exit }' "$RCLONE_CONFIG"
}
slow=$(($(stat -c %s "$STORE/web/data/h1/demo/${peer##*/}") / 200))
goes sftp
! thorough || goes dav
if thorough && [ -e "${FLYREC_NPM:-$BUILD/npm}/node_modules/s3rver" ]; then
	need_command node
	goes s3
fi
