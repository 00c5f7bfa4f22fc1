#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A thousand hosts, each with a connection of its own, have a trigger at the same time: one snapshot on each
# host that follows.
# tests: all
# time-limit: 300
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fleet-lib.sh"
need_tracefs
need_command jq mosquitto openssl python3
need_event sched:sched_switch
[ -x "$BUILD/flyrec-follow" ] || skip "built without mosquitto"
HOSTS=${FLEET_HOSTS:-1000}
ulimit -n $((4 * HOSTS + 1024)) 2>/dev/null || skip "cannot have that many connections"

fleet_pki h1 h2
broker_start
for host in h1 h2; do
	host_new $host </dev/null
	on $host
	session rec <<-END
		[Trace]
		Event=sched:sched_switch
		BufferSize=1M
		[Snapshot]
		Burst=3
		IntervalSec=1h
		Analyze=no
	END
	flyrecd_start
	fleet_start follow
done
sleep 3 # of which there is something in all buffers
host_new admin </dev/null
"$TOOLS/fleet-storm" "$T/admin/fleet.conf" "$HOSTS" || fail "storm"
grep VmHWM "/proc/$BROKER_PID/status"
all_counted() {
	sed -n 's/.*: \([0-9]*\) more messages are of moments.*/\1/p; s/.* of c[0-9]* is \(also \)*in .*/1/p' "$(fleet_log follow)" |
		awk -v all="$HOSTS" '{ n += $1 } END { exit n != all }'
}
for host in h1 h2; do
	on $host
	# What comes in several seconds is said in several lines
	wait_for 60 all_counted || fail "$host: $(cat "$(fleet_log follow)")"
	[ "$(peer_files)" = 1 ] || fail "$host: $(peer_files) files: $(ctl list)"
	! says follow 'too many' || fail "$host drops some"
	path=$(ctl --json list | jq -r '.files[] | select(.path | endswith("-peer.dat")) | .path')
	verify "$path"
	flyrecd_stop
done
