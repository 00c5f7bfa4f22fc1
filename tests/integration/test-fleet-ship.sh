#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 240
#
# flyrec-fleet ship and pull: names first, then the data of this host's triggers, once and never over another;
# what others want when they ask, by sampling, what was removed; stores that are down, slow, full; SIGKILL in
# the middle; names of others that are not to be trusted. Files are compared with sha256sum and trace-cmd.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fleet-lib.sh"
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
	sed -n "s/^flyrec_fleet_$1 //p" "$T/$HOST/fleet/ship/metrics.prom"
}
said() { # PATTERN: how many times
	grep -c -e "$1" "$T/$HOST/ship.log"
}
once() { # what it says is in "said"
	fleet ship --once 2>"$T/said"
}
files_in_store() {
	find "$STORE" -type f -printf '%P %T@ %i\n' | sort
}

echo "== names, data"
fleet_config
mkdir store
triggered
peer=$(ctl snapshot --limited --id=other-1 --last=3s demo) || fail "no snapshot for another host"
once || fail "ship: $(cat said)"
[ ! -s said ] || fail "ship says: $(cat said)"
intact "$SNAPSHOT" "$ID"
[ "$(stat -c %s "$(object "$SNAPSHOT")")" -lt "$(stat -c %s "$SNAPSHOT")" ] || fail "not compressed"
jq -e --arg id "$ID" --arg file "${SNAPSHOT##*/}" --argjson bytes "$(stat -c %s "$SNAPSHOT")" \
	'.v == 1 and .id == $id and .host == "h1" and .session == "demo" and .file == $file and .bytes == $bytes and
	.start_usec > 1.7e15 and .end_usec > .start_usec' "$(record have "$SNAPSHOT" "$ID")" >/dev/null || fail "index"
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
