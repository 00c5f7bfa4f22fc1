#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
#
# KernelShark's library shows every event of each kind of file that flyrec makes, with a name and a text.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command jq
[ -x "$TOOLS/kshark-names" ] || skip "kshark-names is not built (libkshark-dev?)"
fixtures=$SRC/tests/fixtures

# shown FILE [LEAST]: as many entries as verify counts events, at least LEAST, all with a name
shown() {
	local entries events
	"$TOOLS/kshark-names" "$1" >"$T/names" 2>"$T/err" || fail "$1: $(cat "$T/names" "$T/err")"
	entries=$(sed -n 's/ entries, .*//p' "$T/names")
	events=$("$FLYRECCTL" --json verify "$1" | jq '[.files[0].cpus[].events] | add')
	echo "$1: $entries entries"
	# where events were lost it shows an entry more
	{ [ "$entries" -ge "$events" ] && [ "$events" -ge "${2:-1}" ]; } ||
		fail "$1: KernelShark shows $entries events, verify counts $events"
}

echo "== recordings"
session rec <<-END
	[Trace]
	Event=sched:sched_switch
	Event=sched:sched_process_fork
	Event=raw_syscalls:sys_enter if common_pid == $$
	[Storage]
	FlushSec=200ms
	SyncIntervalSec=400ms
	KeepFree=0
END
for name in one two; do
	session $name <<-END
		[Session]
		Mode=flight
		[Trace]
		Event=sched
		BufferSize=1M
	END
done
flyrecd_start
sleep 1
for _ in {1..20}; do sh -c :; done
sleep 1
cp --sparse=always "$STATE/rec/record/current.dat" "$T/live.dat"
shown "$T/live.dat" 20
ctl snapshot rec --last=1s --output="$T/range.dat" >/dev/null || fail "snapshot"
shown "$T/range.dat"
shown "$(ctl snapshot one)" 20
shown "$(ctl snapshot --together one two rec)" 60
flyrecd_stop
shown "$(echo "$STATE"/rec/record/2*.dat)" 20

echo "== imports"
"$FLYRECCTL" import --format=qemu4v -o "$T/qemu4v.dat" "$fixtures/qemu4v/dialects.txt"
shown "$T/qemu4v.dat" 18
"$FLYRECCTL" import --format=gdb-tfile -o "$T/tfile.dat" "$SRC/tests/fuzz/corpus/gdb/flyrec"
shown "$T/tfile.dat"
