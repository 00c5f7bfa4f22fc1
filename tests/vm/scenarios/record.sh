#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The package as it is: a session records, markers come out exactly once and in order over reload,
# restart and SIGKILL, trace-cmd reads the file.
# machines: debian12
# also: debian13 backports
# time-limit: 90
. "$(dirname "$0")/../guest.sh"
session demo <<-EOF
	[Trace]
	Event=sched:sched_switch
	BufferSize=4M
EOF
flyrecd_start
# As many in all, however many CPUs there are
markers_start demo $((1000 / $(nproc)))
sleep 1
systemctl reload flyrecd || fail "reload"
flyrecd_hand_over
sleep 1
flyrecd_kill
sleep 1
markers_stop
flyrecd_stop
markers_check demo
verify "$STATE/demo"
for file in "$STATE"/demo/record/2*.dat; do
	trace-cmd report "$file" >"$T/report" 2>"$T/errors" || fail "trace-cmd report $file"
	[ ! -s "$T/errors" ] || fail "trace-cmd report $file: $(cat "$T/errors")"
done
