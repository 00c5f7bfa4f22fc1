#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A daemon that stands still: systemd hears nothing of it, ends it and starts another one, which
# goes on with what the ring buffer has.
# also: debian13 debian12
# time-limit: 90
. "$(dirname "$0")/../guest.sh"
session watchdog <<-EOT
	[Trace]
	Event=sched:sched_process_exit
	BufferSize=4M
EOT
drop_in watchdog <<-EOT
	[Service]
	WatchdogSec=4s
EOT

flyrecd_start
markers_start watchdog 300
sleep 1
stopped=$FLYRECD_PID
kill -STOP "$stopped"
begin=$SECONDS
flyrecd_restarted
echo "restarted after $((SECONDS - begin)) s"
must_log 'Watchdog timeout'
[ ! -d "/proc/$stopped" ] || fail "the stopped process is still there"
must_log 'watchdog: continuing record/current.dat'
sleep 1
markers_stop
flyrecd_stop
verify "$STATE/watchdog"
no_damage
markers_check watchdog
