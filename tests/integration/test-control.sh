#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 240
# tests: fast
#
# The control socket and flyrecctl on a real daemon: every verb, its JSON, what is refused, what is
# kept; busctl; ssh. Rights are in test-control-rights.sh.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command busctl python3
need_event sched:sched_switch sched:sched_wakeup irq:softirq_entry

# refused STATUS PATTERN COMMAND...: that exit status, and stderr that matches
refused() {
	local want=$1 pattern=$2 status=0
	shift 2
	"$@" >"$T/out" 2>"$T/err" || status=$?
	[ "$status" = "$want" ] || fail "status $status, not $want: $*: $(cat "$T/err")"
	grep -qE -- "$pattern" "$T/err" || fail "\"$(cat "$T/err")\" does not say $pattern: $*"
}

# json CONDITION: a python expression on the document d
json() {
	python3 -c "import json,sys; d=json.load(sys.stdin); sys.exit(0 if ($1) else 1)" ||
		fail "JSON: not $1"
}

state_is() { # SESSION STATE
	prints "\"state\":\"$2\",\"instance\"" ctl --json status "$1"
}

changes_are() { # SESSION PYTHON-LIST
	ctl --json status "$1" | json "d['sessions'][0]['runtime_changes'] == $2"
}

traces() { # SESSION EVENT
	grep -qx "$2" "$(instance "$1")/set_event"
}

refused 1 'no flyrecd listens' ctl status
session sched <<-EOF
	[Session]
	Description=Scheduler
	[Trace]
	Event=sched:sched_switch
	[Storage]
	FlushSec=200ms
EOF
session off <<-EOF
	[Session]
	Enabled=no
	[Trace]
	Event=irq
EOF
session broken <<-EOF
	[Trace]
	Event=sched:no_such_event
EOF
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$T/no-bus
flyrecd_start
SOCKET=$RUNTIME/control

# --- status, list, stats
ctl --json status | json "d['version'] and d['pid'] == $FLYRECD_PID and d['uptime_usec'] > 0 and
	[s['name'] for s in d['sessions']] == ['broken', 'off', 'sched'] and
	[s['state'] for s in d['sessions']] == ['failed', 'stopped', 'recording']"
ctl --json status sched | json "d['sessions'][0]['instance'] == '${PREFIX}sched' and
	d['sessions'][0]['mode'] == 'record' and d['sessions'][0]['segments'] == 1"
prints $'^sched\trecord\trecording\t' ctl status || fail "plain status: $(ctl status)"
prints '^broken: failed: .*no_such_event' ctl status || fail "status does not say why it failed"
prints 'State: recording (enabled)' ctl status sched || fail "status of one"
refused 1 'there is no session shed, did you mean sched' ctl status shed
refused 2 'one session or none' ctl status a b
refused 2 'is not an option of this verb .start, ' ctl status --persist
sleep 1
ctl --json stats sched | json "sum(c['subbufs'] for c in d['sessions'][0]['cpus']) > 0 and
	all(set(c) == {'cpu','subbufs','bytes','overrun','commit_overrun','dropped_events',
	'lost_events','torn','evicted','not_written'} for c in d['sessions'][0]['cpus'])"
ctl --json list | json "len(d['files']) == 1 and d['files'][0]['path'] == '$STATE/sched/record/current.dat'
	and set(d['files'][0]) == {'session','kind','path','bytes','start_usec','end_usec','cpus','pinned',
	'raw_bytes','finding','ids'}
	and abs(d['files'][0]['end_usec'] / 1e6 - $EPOCHSECONDS) < 30
	and d['files'][0]['start_usec'] < d['files'][0]['end_usec']"

# --- rotate, cat, pin, vacuum
finished=$(ctl rotate)
[[ $finished == "$STATE"/sched/record/* && -e $finished ]] || fail "rotate printed $finished"
verify "$finished"
ctl cat sched "${finished##*/}" >"$T/copy.dat"
cmp "$finished" "$T/copy.dat" || fail "cat differs"
ctl cat sched "$finished" | cmp - "$finished" || fail "cat into a pipe differs"
ctl cat sched current.dat -o "$T/live.dat"
verify "$T/live.dat"
ctl cat sched current.dat | cat >"$T/live2.dat"
verify "$T/live2.dat"
[ "$(stat -c %s "$T/live2.dat")" -lt 1000000000 ] || fail "the holes came too"
refused 1 'cannot open nothing.dat: No such file' ctl cat sched nothing.dat
refused 1 'is not a file of session' ctl cat sched ../state
refused 1 'is not a file of session' ctl cat sched record/../../off/state
refused 1 'there is no session' ctl cat ../../etc passwd
ctl pin "$finished"
ctl --json list | json "[f['pinned'] for f in d['files']] == [True, False]"
sleep 0.3
second=$(ctl --json rotate sched | sed 's/.*"path":"\([^"]*\)".*/\1/')
[ -e "$second" ] || fail "rotate --json: $second"
ctl --json vacuum --max-use=1K | json "d['files'] == 1 and d['bytes'] > 0"
[[ -e $finished && ! -e $second ]] || fail "vacuum took the pinned one"
ctl --json stats sched | json "sum(c['evicted'] for c in d['sessions'][0]['cpus']) > 0"
ctl unpin "$finished"
prints 'Removed 0 files' ctl vacuum --older-than=1h || fail "vacuum --older-than=1h"
sleep 0.1
prints 'Removed 1 files' ctl vacuum --older-than=1ms || fail "vacuum --older-than=1ms"
[ ! -e "$finished" ] || fail "unpinned, but still there"
refused 1 'is not a finished file' ctl pin "$STATE/sched/record/current.dat"
refused 1 'not below' ctl pin /etc/passwd
refused 2 'needed' ctl vacuum
refused 2 'takes a size' ctl vacuum --max-use=lots

# --- snapshot
snap=$(ctl snapshot sched --last=30s --reason=test --pin)
case $snap in
"$STATE"/sched/snapshot/*-test.dat) ;;
*) fail "snapshot printed $snap" ;;
esac
verify "$snap"
ctl --json list | json "[f['pinned'] for f in d['files'] if f['kind'] == 'snapshot'] == [True]"
ctl snapshot sched --output="$T/snap.dat" >/dev/null
verify "$T/snap.dat"
refused 2 'ends before it begins' ctl snapshot sched --since=now --until=yesterday
refused 2 'the first word may have' ctl snapshot sched --reason='no/way'
refused 1 'does not record' ctl snapshot off

# --- pause, resume
ctl pause sched
[ "$(cat "$(instance sched)/tracing_on")" = 0 ] || fail "pause: tracing_on"
state_is sched paused || fail "not paused"
sleep 0.7 # the flush timer must not take it for meddling
[ "$(cat "$(instance sched)/tracing_on")" = 0 ] || fail "somebody switched tracing on again"
changes_are sched "['paused']"
ctl resume sched
[ "$(cat "$(instance sched)/tracing_on")" = 1 ] || fail "resume: tracing_on"

# --- events: in the same instance, with their formats in the file's header
inode=$(stat -c %i "$(instance sched)")
ctl event-enable sched sched:sched_wakeup "irq:softirq_entry if vec == 1 || vec == 7 || vec == 9"
traces sched sched:sched_wakeup || fail "event-enable"
grep -q 'vec == 1' "$(instance sched)/events/irq/softirq_entry/filter" || fail "event-enable with a filter"
sleep 0.5
ctl filter sched sched:sched_switch 'prev_pid == 0'
grep -q 'prev_pid == 0' "$(instance sched)/events/sched/sched_switch/filter" || fail "filter"
ctl filter sched sched:sched_switch 0
grep -qx none "$(instance sched)/events/sched/sched_switch/filter" || fail "filter 0"
ctl filter sched irq:softirq_entry ""
sleep 0.7
traces sched irq:softirq_entry || fail "an event was taken for meddling"
refused 1 'did you mean sched:sched_switch' ctl event-enable sched sched:sched_swich
refused 1 'Field not found' ctl filter sched sched:sched_switch 'no_field == 1'
grep -qx none "$(instance sched)/events/sched/sched_switch/filter" || fail "a refused filter stayed"
refused 1 'does not trace' ctl event-disable sched irq:irq_handler_entry
refused 1 'would trace nothing' ctl event-disable sched sched irq
refused 1 'does not record' ctl event-enable off sched:sched_switch
ctl --json status sched | json "'+Event=sched:sched_wakeup' in d['sessions'][0]['runtime_changes']"
finished=$(ctl rotate sched)
verify "$finished"
if command -v trace-cmd >/dev/null; then
	trace-cmd report "$finished" 2>/dev/null >"$T/report"
	grep -q softirq_entry: "$T/report" || fail "no softirq_entry recorded"
fi
ctl event-disable sched irq
! grep -q ^irq: "$(instance sched)/set_event" || fail "event-disable of a system"

# --- kept or not
# A session that fails is named, and the others are as configured all the same
refused 1 'reload: session broken has failed: .*no_such_event' ctl reload
refused 1 'session broken has failed' ctl --json reload
! traces sched sched:sched_wakeup || fail "--runtime outlived a reload"
sed -i '1i [Session]\nEnabled=no' "$CONFIG/sessions.d/broken.conf"
ctl reload
ctl event-enable --persist sched sched:sched_wakeup
grep -qx Event=sched:sched_wakeup "$CONFIG/sessions.d/sched.conf.d/50-flyrecctl.conf" || fail "--persist"
changes_are sched "[]"
ctl reload
traces sched sched:sched_wakeup || fail "--persist did not outlive a reload"
[ "$(stat -c %i "$(instance sched)")" = "$inode" ] || fail "the instance was made anew for events"

# --- start, stop
ctl start off
state_is off recording || fail "start"
changes_are off "['started']"
ctl event-disable off irq:softirq_entry
! traces off irq:softirq_entry || fail "event-disable out of a system"
traces off irq:softirq_exit || fail "the rest of the system went too"
ctl stop off
[ ! -e "$(instance off)" ] || fail "stop left the instance"
ctl stop sched
state_is sched stopped || fail "stop"
changes_are sched "['stopped']"
[ ! -e "$STATE/sched/record/current.dat" ] || fail "stop left current.dat"
refused 1 'does not record' ctl pause sched
refused 1 'does not record' ctl rotate sched
ctl start sched
ctl stop --persist sched
ctl reload
ctl --json status sched | json "d['sessions'][0]['state'] == 'stopped' and not d['sessions'][0]['enabled']"
ctl start --persist sched
state_is sched recording || fail "start after stop --persist"
grep -qx Event=sched:sched_wakeup "$CONFIG/sessions.d/sched.conf.d/50-flyrecctl.conf" ||
	fail "start --persist forgot the events"
refused 1 'no_such_event' ctl start broken

# --- reload says what is wrong
session bad <<-EOF
	[Trace]
	Event=irq
	BufferSize=much
EOF
refused 1 'bad.conf:3: BufferSize=much' ctl reload
session bad <<-EOF
	[Session]
	Enabled=no
	Descriptoin=x
	[Trace]
	Event=irq
EOF
prints "bad.conf:3: .*did you mean 'Description'" ctl reload || fail "reload does not warn"
rm "$CONFIG/sessions.d/bad.conf"
ctl reload

# --- metrics
ctl metrics >"$T/metrics"
[ "$(tail -n 1 "$T/metrics")" = '# EOF' ] || fail "metrics do not end with # EOF"
grep -q '^flyrec_recorded_bytes_total{session="sched",cpu="0"} [0-9]' "$T/metrics" || fail "metrics"
if command -v promtool >/dev/null; then
	promtool check metrics <"$T/metrics" >"$T/err" 2>&1 || ! grep -q 'error while' "$T/err" ||
		fail "promtool: $(cat "$T/err")"
fi

# --- busctl, introspection as shipped
bus() {
	busctl "--address=unix:path=$SOCKET" "$@"
}
prints /org/flyrec/Recorder1/session/sched bus tree org.flyrec.Recorder1 || fail "busctl tree"
check_interface() { # INTERFACE PATH
	bus --xml-interface introspect org.flyrec.Recorder1 "$2" |
		sed -n "/<interface name=\"$1\">/,/<\/interface>/p" >"$T/is.xml"
	sed -n "/<interface name=\"$1\">/,/<\/interface>/p" "$SRC/doc/dbus/$1.xml" >"$T/shipped.xml"
	[ -s "$T/is.xml" ] || fail "busctl introspect"
	diff -u "$T/shipped.xml" "$T/is.xml" || fail "doc/dbus/$1.xml is not what is served"
}
check_interface org.flyrec.Recorder1.Manager /org/flyrec/Recorder1
check_interface org.flyrec.Recorder1.Session /org/flyrec/Recorder1/session/sched
bus call org.flyrec.Recorder1 /org/flyrec/Recorder1 org.flyrec.Recorder1.Manager GetStatistics s '' |
	grep -q '"sched"' || fail "busctl call"
[ "$(bus get-property org.flyrec.Recorder1 /org/flyrec/Recorder1/session/sched \
	org.flyrec.Recorder1.Session State)" = 's "recording"' ] || fail "busctl get-property"

# --- another machine, with an ssh that goes nowhere
mkdir "$T/far"
cat >"$T/far/ssh" <<-'EOF'
	#!/bin/sh
	[ "$1 $2 $3" = "-xT -- user@far" ] || exit 3
	shift 3
	exec sh -c "$*"
EOF
chmod +x "$T/far/ssh"
ln -s "$FLYRECCTL" "$T/far/flyrecctl"
far() {
	PATH=$T/far:$PATH "$FLYRECCTL" -H user@far "--runtime-dir=$RUNTIME" "$@"
}
far --json status sched | json "d['sessions'][0]['state'] == 'recording'"
prints /sched/record/ far rotate sched || fail "-H rotate"
far cat sched current.dat >"$T/far.dat"
verify "$T/far.dat"
refused 1 'no connection to nowhere: ssh' env PATH="$T/far:$PATH" "$FLYRECCTL" -H nowhere status

# --- the words of the shell's completion
prints -x sched ctl complete sessions || fail "complete sessions"
ctl complete events >"$T/events"
grep -qx sched:sched_switch "$T/events" || fail "complete events"
prints -x sched:sched_wakeup ctl complete events sched || fail "complete events of a session"
prints -x current.dat ctl complete files sched || fail "complete files"

# --- what sends rubbish is cut off
cat >"$T/rubbish.py" <<-'EOF'
	import socket, struct, sys
	s = socket.socket(socket.AF_UNIX)
	s.settimeout(20)
	s.connect(sys.argv[1])
	hello = b"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n"
	try:
	    s.sendall({"noise": b"GET / HTTP/1.0\r\n" * 4096,
	               "huge": hello + struct.pack("<BBBBIII", 108, 1, 0, 1, 1 << 26, 1, 16),
	               "nonsense": hello + b"\xff" * 64}[sys.argv[2]])
	    while s.recv(4096):
	        pass
	except (ConnectionResetError, BrokenPipeError):
	    pass
EOF
for kind in noise huge nonsense; do
	python3 "$T/rubbish.py" "$SOCKET" $kind || fail "was not cut off: $kind"
done
ctl --json status >/dev/null || fail "flyrecd no longer answers"

# --- whoever only asks does not notice that flyrecd ends between two of his calls
cat >"$T/restarts.py" <<-'EOF'
	import os, select, socket, sys
	listener = socket.socket(socket.AF_UNIX)
	listener.bind(sys.argv[2])
	listener.listen(8)
	for turn in range(2):
	    client, server = listener.accept()[0], socket.socket(socket.AF_UNIX)
	    server.connect(sys.argv[1])
	    while True:
	        source = select.select([client, server], [], [])[0][0]
	        data = source.recv(1 << 16)
	        if not data or turn == 0 and (b"GetManagedObjects" in data or b"GetAll" in data):
	            break
	        (server if source is client else client).sendall(data)
	    client.close()
	    server.close()
	    print("cut off" if turn == 0 else "served", flush=True)
EOF
mkdir "$T/restarts"
background python3 "$T/restarts.py" "$SOCKET" "$T/restarts/control" >"$T/restarts/said"
wait_for 10 test -S "$T/restarts/control" || fail "no socket of the test's own"
"$FLYRECCTL" "--runtime-dir=$T/restarts" status >"$T/out" 2>&1 || fail "cut off between two calls: $(cat "$T/out")"
grep -qw off "$T/out" || fail "no session after flyrecd had ended: $(cat "$T/out")"
wait_for 10 grep -q served "$T/restarts/said" || fail "it was not asked again: $(cat "$T/restarts/said")"
flyrecd_stop
[ ! -e "$SOCKET" ] || fail "the socket is still there"
