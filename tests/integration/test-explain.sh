#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 180
#
# A snapshot explains itself: the worst finding is in the log, in the file, in `list`, in the signal and on
# the socket for shipping, of record and flight sessions, of a trigger and of a call. Analyze=no; an
# analysis that dies, stands still at the end of the daemon, or finds no room costs itself alone.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/control-lib.sh"
need_tracefs
need_command busctl dbus-daemon python3
need_event sched:sched_switch sched:sched_waking
no_sanitizers "their allocators may be locked for ever after the fork of one of many threads"
cd "$T"
# whatever the caller's: findings about tasks with a nice value weigh less
renice -n 0 -p $$ >/dev/null

for mode in record flight; do
	session $mode <<-EOF
		[Session]
		Mode=$mode
		[Trace]
		Event=sched
		BufferSize=4M
		[Storage]
		FlushSec=200ms
	EOF
done
session silent <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_switch
	[Snapshot]
	Analyze=no
EOF

hog() {
	"$SRC/tests/tools/fifo-hog"
}

# snapshot_of SESSION: in $file; it is there whatever becomes of its analysis
snapshot_of() {
	log_mark
	file=$(ctl snapshot "$1" --reason=test) || fail "snapshot $1"
	[ -s "$file" ] || fail "no file $file"
}

# the worst finding of $file, as list and verify have it
listed() {
	ctl list --json "$1" >list.json || fail "list"
	python3 -c 'import json, sys
print([f["finding"] for f in json.load(open("list.json"))["files"] if f["path"] == sys.argv[1]][0])' "$file"
}
# says TEXT: a line of the log
says() {
	tail -n "+$((LOG_MARK + 1))" "$FLYRECD_LOG" | grep -qF -- "$1"
}

# found FILE: prints its worst finding as analyze has it, and what was made to go wrong here is among them;
# what else runs on the machine may have waited for longer
found() {
	"$FLYRECCTL" analyze --json "$1" >analyze.json || fail "analyze $1"
	python3 - <<-'END' || fail "the hog is not found: $(head -c 3000 analyze.json)"
		import json
		findings = [f["text"] for f in json.load(open("analyze.json"))["findings"]]
		assert any("fifo-hog[" in text for text in findings)
		print(findings[0])
	END
}

explained() { # SESSION
	worst=$(found "$file") || exit 1
	wait_for 20 says "$1: ${file##*/}: $worst" || fail "the log does not say $worst"
	[ "$(listed "$1")" = "$worst" ] || fail "not in the list: $(cat list.json)"
	ctl list "$1" | grep -qF "${worst%%;*}" || fail "not in the table: $(ctl list "$1")"
	verify "$file"
	grep -q '"findings":\["' <("$FLYRECCTL" verify --json "$file") || fail "verify does not show it"
}

python3 - "$RUNTIME" "$T/shipped" <<-'END' &
	import os, socket, sys
	os.makedirs(sys.argv[1], exist_ok=True)
	s = socket.socket(socket.AF_UNIX)
	s.bind(sys.argv[1] + "/ship")
	s.listen(16)
	while True:
	    c = s.accept()[0]
	    data = b""
	    while True:
	        more = c.recv(65536)
	        if not more:
	            break
	        data += more
	    with open(sys.argv[2], "ab") as f:
	        f.write(data)
END
CHILDREN+=($!)
wait_for 10 test -S "$RUNTIME/ship" || fail "nobody listens"
private_system_bus
flyrecd_start
bus_has_name
background busctl --system --json=short monitor org.flyrec.Recorder1 >signals 2>signals.err
wait_for 10 test -s signals.err || fail "no listener"

echo "== asked for"
for mode in record flight; do
	hog # each time: where much is traced a flight session does not reach far back
	snapshot_of $mode
	explained $mode
	echo "$mode: $(listed $mode)"
	wait_for 10 grep -q "^$file$" shipped || fail "not shipped: $file: $(cat shipped)"
	grep -A 1 "^$file$" shipped | grep -qF "$worst" || fail "shipped without a word: $(cat shipped)"
done

echo "== triggered"
log_mark
hog
kill -USR1 "$FLYRECD_PID"
for mode in record flight; do
	must_log "$mode: snapshot .*-signal.dat"
	files=("$STATE/$mode"/snapshot/*-signal.dat)
	worst=$(found "${files[0]}") || exit 1
	wait_for 20 says "$mode: ${files[0]##*/}: $worst" || fail "the log does not say $worst"
done
# The id of the moment, where there is one
id="$(uname -n)-[0-9]{8}T[0-9]{6}\\.[0-9]{6}Z"
shipped_with_id() {
	grep -A 2 -e '-signal.dat$' shipped | grep -qE "^$id$"
}
wait_for 10 shipped_with_id || fail "shipped without an id: $(cat shipped)"
announced_with_id() {
	grep -e '-signal.dat"' signals | grep -qE "\"$id\""
}
wait_for 10 announced_with_id || fail "announced without an id: $(cat signals)"

echo "== Analyze=no"
snapshot_of silent
wait_for 10 grep -q "^$file$" shipped || fail "not shipped: $file: $(cat shipped)"
[ -z "$(listed silent)" ] || fail "it was analysed: $(listed silent)"
! logged "silent: ${file##*/}: " || fail "it was analysed"

echo "== an analysis that dies"
flyrecd_stop
FLYREC_FAULT_POINT=explain-confined flyrecd_start
hog
snapshot_of flight
stopped() {
	worker=$(pgrep -P "$FLYRECD_PID") && [ "$(process_state "$worker")" = T ]
}
wait_for 20 stopped || fail "no analysis: $(tail -n 5 "$FLYRECD_LOG")"
# it has none of the daemon's files
for fd in "/proc/$worker/fd"/*; do
	case $(readlink "$fd") in
	"$file" | pipe:* | /dev/null | */flyrecd.log) ;;
	*) fail "it has $(readlink "$fd")" ;;
	esac
done
[ "$(awk '/^Seccomp:/ { print $2 }' "/proc/$worker/status")" = 2 ] || has_sanitizers || fail "it may do everything"
[ "$(awk '/^Uid:/ { print $2 }' "/proc/$worker/status")" != 0 ] || has_sanitizers || fail "it is root"
# others go on meanwhile, and nobody waits for it for ever
wait_for 20 grep -q "^$file$" shipped || fail "not shipped while it is analysed: $(cat shipped)"
ctl rotate record >path || fail "rotate"
ctl snapshot record >path || fail "snapshot record"
kill -SEGV "$worker"
kill -CONT "$worker"
must_log "flight: cannot analyze $file: its process died by signal 11, ignoring"
[ "$(grep -c "^$file$" shipped)" = 1 ] || fail "shipped twice: $(cat shipped)"
[ -z "$(listed flight)" ] || fail "a finding without an analysis: $(listed flight)"
verify "$file"

echo "== at the end of the daemon"
# the second one, of "record", has come to the same place
wait_for 20 stopped || fail "no second analysis: $(tail -n 5 "$FLYRECD_LOG")"
file=$(cat path)
flyrecd_stop
must_log "record: $file is not analyzed: flyrecd is stopping"
wait_for 10 grep -q "^$file$" shipped || fail "not shipped: $file: $(cat shipped)"
gone() { ! kill -0 "$worker" 2>/dev/null; }
wait_for 10 gone || fail "the process is still there"
verify "$file"

echo "== the signal"
grep '"member":"SnapshotFinished"' signals >finished || fail "no signal: $(head -c 1000 signals)"
grep -qE '"ssss","data":\["record",.* (waited|was blocked) ' finished || fail "the signal has no finding: $(head -n 3 finished)"
