#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 240
#
# Units of a real systemd: services, instances of templates with escapes, scopes and slices that it makes, seen by
# a flyrecd beside its container; short ones of which nobody could look at a task, too. What flyrecctl names is
# what systemd calls them.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command jq
need_event sched:sched_switch sched:sched_process_fork cgroup:cgroup_attach_task
# shellcheck source=tests/integration/container.sh
. "$(dirname "$0")/container.sh"

session rec <<-END
	[Trace]
	Event=sched:sched_switch
	Event=sched:sched_process_fork
	Event=sched:sched_process_exec
	Event=cgroup
	BufferSize=4M
	[Storage]
	FlushSec=200ms
	SyncIntervalSec=2s
	KeepFree=0
END
mkdir -p "$T/upper/etc/systemd/system"
cat >"$T/upper/etc/systemd/system/who-long@.service" <<-END
	[Service]
	ExecStart=/bin/sh -c 'while :; do sleep 0.01; done'
	Slice=who-slices-deep.slice
END
container_start
flyrecd_start

echo "== services that live, with escapes"
long='who-long@dev-disk\x2dby.service'
guest systemctl start "$long" || fail "$long does not start"
guest systemctl start who-long@plain.service || fail "who-long@plain.service does not start"

echo "== services that do not, each with a program of its own"
cp "$(command -v sleep)" "$T/sleep"
for i in {1..20}; do
	cp "$T/sleep" "$T/root/usr/local/bin/whoshort$i"
	# as systemd has it: the main process, a child of that, and a grandchild
	guest systemd-run --quiet --wait "--unit=short-$i" sh -c "whoshort$i 0.01; (whoshort$i 0.01; :)" ||
		fail "short-$i failed"
done
guest systemd-run --quiet --scope --unit=in-scope \
	sh -c "/usr/local/bin/whoshort1 0.01; exec /usr/local/bin/whoshort2 0.01" || fail "no scope"
pause 3
segment=$(ctl rotate rec)
flyrecd_stop
container_stop

"$FLYRECCTL" export --format=json -o "$T/events.json" "$segment" || fail "export"
# events of these programs once they run, by unit
jq -r 'select(.process != null and (.process | startswith("whoshort"))) | .process + " " + (.unit // "-")' \
	"$T/events.json" | sort | uniq -c >"$T/found"
awk '{ n = substr($2, 9); all += $1 }
	$3 == "short-" n ".service" || (n <= 2 && $3 == "in-scope.scope") { right += $1 }
	END { printf "%d events of short services: %.2f %% right\n", all, all ? 100 * right / all : 0
		exit !(all > 100 && right >= 0.99 * all) }' "$T/found" || fail "wrong data: $(cat "$T/found")"
for unit in "$long" who-long@plain.service; do
	jq -c --arg unit "$unit" 'select(.unit == $unit) | .tgid' "$T/events.json" | sort -u >"$T/tgids"
	[ "$(wc -l <"$T/tgids")" -gt 10 ] || fail "only $(wc -l <"$T/tgids") processes of $unit"
done
"$FLYRECCTL" view units --json --top=0 "$segment" >"$T/units.json" || fail "view units"
jq -e --arg unit "$long" '.rows[] | select(.unit == $unit) | .slice == "who-slices-deep.slice"' "$T/units.json" >"$T/jq" ||
	fail "view units: $(cat "$T/units.json")"
n=$("$FLYRECCTL" export --format=text --unit='who-long@dev-disk\x2dby' "$segment" | wc -l)
[ "$n" -gt 10 ] || fail "--unit= with an escape: $n lines"
