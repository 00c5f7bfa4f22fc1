#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 240
#
# Clients that mean harm, over the control socket and over a system bus: descriptors that nobody asked
# for, whose close() waits; answers that nobody reads; all places taken. flyrecd answers root within a
# second meanwhile, does not grow, and has the same descriptors afterwards.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/control-lib.sh"
need_tracefs
need_command python3 unshare busctl dbus-daemon
need_event sched:sched_switch

STRANGER=65534
chmod 755 "$T"
cp "$SRC/tests/tools/raw_bus.py" "$T/raw_bus.py" # where other users can read it
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$T
private_groups
SOCKET=$RUNTIME/control MANAGER=org.flyrec.Recorder1.Manager OPTIONS=() AS=

# hostile UID[:GID] VERB...: over the control socket; over the bus once there is one. In the background as
# `AS='exec' hostile … &`, so that the job is the client itself.
hostile() {
	local who=$1
	shift
	$AS python3 "$T/raw_bus.py" "--as=$who" "${OPTIONS[@]}" "$SOCKET" "$@"
}

rss() { # KiB
	sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\).*/\1/p' "/proc/$FLYRECD_PID/status"
}

open_files() {
	local files=("/proc/$FLYRECD_PID/fd"/*)
	echo ${#files[@]}
}

# Into BEFORE: what a start opens for a moment is closed by then
note_open_files() {
	BEFORE=0
	while [ "$BEFORE" != "$(open_files)" ]; do
		BEFORE=$(open_files)
		sleep 0.5
	done
}

as_before() {
	[ "$(open_files)" = "$BEFORE" ]
}

# A connection that has been hung up takes a moment to be closed
nothing_left() {
	wait_for 5 as_before ||
		fail "$1: $(open_files) open files, $BEFORE before: $(ls -l "/proc/$FLYRECD_PID/fd")"
}

answers_in_time() {
	local begin=${EPOCHREALTIME/./} took
	ctl --json status >/dev/null || fail "$1: root is not answered"
	took=$((${EPOCHREALTIME/./} - begin))
	[ $took -lt 1000000 ] || fail "$1: flyrecctl status takes $took us"
	[ "$(rss)" -le 65536 ] || fail "$1: flyrecd has grown to $(rss) KiB"
}

# holds NAME UID[:GID] VERB...: a hostile client that goes on until let_go; what it says is in $T/held.NAME
holds() {
	local said=$T/held.$1
	shift
	: >"$said"
	AS='exec' hostile "$@" 600 >"$said" 2>&1 &
	CHILDREN+=($!)
	HELD+=($!)
	wait_for 30 test -s "$said" || fail "no word of $*"
	grep -qE '^(sent|refused|connected)' "$said" || fail "$*: $(cat "$said")"
}

let_go() {
	local pid
	for pid in "${HELD[@]}"; do
		kill -TERM "$pid" 2>/dev/null || true # some end by themselves
		wait "$pid" || [ $? = 143 ] || fail "a hostile client ended with $?"
	done
	HELD=()
}
HELD=()

session sched <<-EOF
	[Trace]
	Event=sched:sched_switch
	[Storage]
	FlushSec=200ms
EOF
echo AdminGroup=flyrecadm | daemon_config
flyrecd_start
chmod 755 "$RUNTIME"
answers_in_time 'before'
note_open_files

# --- descriptors: none stays, and none holds the main thread when it is closed
for attack in 'descriptors 200' 'declared 3' 'pile 2000' 'signal 2'; do
	for who in 5001:$FLYREC_GID $STRANGER:$STRANGER; do
		# shellcheck disable=SC2086 # words
		hostile $who $attack >"$T/out" 2>&1 ||
			grep -qE 'hung up|Broken pipe|reset|Operation not permitted' "$T/out" ||
			fail "$attack: $(cat "$T/out")"
		nothing_left "$attack"
	done
done
for how in call greeting oob unread; do
	holds "$how" "5001:$FLYREC_GID" linger "$how"
	answers_in_time "linger $how"
	let_go
	nothing_left "linger $how"
done

# --- answers that nobody reads
long=$(printf '%060000d' 0)
for uid in 5001 5002 5003; do
	holds "unread.$uid" "$uid:$FLYREC_GID" unread 64 100 ListEvents
done
answers_in_time "64 connections of each of three users with unread answers"
echo "unread answers: flyrecd has $(rss) KiB"
let_go
nothing_left "unread answers"
holds unread "5001:$FLYREC_GID" unread 60 100 GetSession "$long"
answers_in_time "names of 60 KB"
let_go
nothing_left "names of 60 KB"
hostile "5001:$FLYREC_GID" call $MANAGER GetSession s "$long" >"$T/out"
[ "$(wc -c <"$T/out")" -lt 300 ] || fail "an answer of $(wc -c <"$T/out") bytes for a long name"

# --- all places
for uid in 5001 5002 5003 5004; do
	holds "places.$uid" "$uid:$FLYREC_GID" hold 64 hello
done
grep -qx 'connected 64' "$T/held.places.5002" || fail "members have no places: $(cat "$T/held.places.5002")"
! grep -qx 'connected 64' "$T/held.places.5004" || fail "members have all places"
holds strangers $STRANGER hold 40 hello
grep -qx 'connected 0' "$T/held.strangers" ||
	fail "strangers take places of administrators: $(cat "$T/held.strangers")"
answers_in_time "four users with 64 connections each"
hostile "6001:$ADMIN_GID" call $MANAGER ListSessions >"$T/out"
grep -q '^ok' "$T/out" || fail "no place for AdminGroup=: $(cat "$T/out")"
let_go
nothing_left "all places"

# of strangers a few are let in, each is refused once, and who says nothing has ten seconds
holds nothing $STRANGER hold 40 nothing
holds others 65533 hold 10 greeting
grep -qx 'connected 16' "$T/held.nothing" || fail "strangers: $(cat "$T/held.nothing")"
grep -qx 'connected 0' "$T/held.others" || fail "more strangers: $(cat "$T/held.others")"
holds greeting "5001:$FLYREC_GID" hold 8 greeting
holds part "5001:$FLYREC_GID" hold 3 part
few_files() { # "part" is in its right
	[ "$(open_files)" -le $((BEFORE + 3 * 4)) ]
}
! few_files || fail "nobody is connected: $(open_files) files, $BEFORE before"
answers_in_time "greetings that do not end"
wait_for 14 few_files || fail "greetings that do not end stay: $(open_files) files, $BEFORE before"
let_go
nothing_left "strangers without a word"
hostile $STRANGER hold 8 refused 0 >"$T/out"
grep -qx 'connected 0' "$T/out" || fail "strangers stay after their refusal: $(cat "$T/out")"
hostile $STRANGER call $MANAGER ListSessions >"$T/out"
grep -q '^error org.freedesktop.DBus.Error.AccessDenied' "$T/out" || fail "a stranger is told $(cat "$T/out")"

# --- connections without end
for uid in 65533 65534; do
	AS='exec' hostile "$uid" connect 3 >"$T/connects.$uid" 2>&1 &
	CHILDREN+=($!)
	HELD+=($!)
done
sleep 0.5
for _ in {1..10}; do
	answers_in_time "connections without end"
done
let_go
cat "$T"/connects.*
nothing_left "connections without end"

# with the queue full, and others waiting for a place in it, flyrecctl waits in line
kill -STOP "$FLYRECD_PID"
for uid in 65533 65534; do
	AS='exec' hostile "$uid" connect 600 >/dev/null 2>&1 &
	CHILDREN+=($!)
	HELD+=($!)
done
waits() { # PID...: for a place
	local pid
	for pid in "$@"; do
		grep -q unix_wait_for_peer "/proc/$pid/wchan" || return
	done
}
wait_for 30 waits "${HELD[@]}" || fail "the queue of connections does not fill"
(
	sleep 1.5
	kill -CONT "$FLYRECD_PID"
) &
CHILDREN+=($!)
ctl --json status >/dev/null || fail "flyrecctl does not wait for a place in the queue of connections"
let_go
nothing_left "a full queue of connections"
flyrecd_stop

# --- passed before flyrecd could refuse: in connections that the service manager's socket already had.
# Before Linux 6.16 all are like these.
cat >"$T/activate.py" <<-'EOF'
	import os, socket, sys, time
	import raw_bus
	path, command = sys.argv[1], sys.argv[2:]
	listener = socket.socket(socket.AF_UNIX)
	listener.bind(path)
	listener.listen(64)
	if os.fork() == 0:
	    clients = []
	    for how in range(3):
	        passed, keep = raw_bus.lingering_socket(60)
	        client = raw_bus.Client(path, greet=False)
	        if how == 1:
	            client.send(b"\0", [passed.fileno()], socket.MSG_OOB)
	        elif how == 2:
	            client.send(b"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n" + b"x" * 16)
	        client.send(b"\0AUTH EXTERNAL\r\n", [passed.fileno()])
	        passed.close()
	        clients += [client, keep]
	    listener.close()
	    open(path + ".sent", "w").close()
	    while not os.path.exists(path + ".end"):
	        time.sleep(0.01)
	    os._exit(0)
	while not os.path.exists(path + ".sent"):
	    time.sleep(0.01)
	os.unlink(path + ".sent")
	os.dup2(listener.fileno(), 3)
	os.set_inheritable(3, True) # if it was the third already
	os.environ.update(LISTEN_FDS="1", LISTEN_FDNAMES="control", LISTEN_PID=str(os.getpid()))
	os.execv(command[0], command)
EOF
cat >"$T/flyrecd-activated" <<-EOF
	#!/bin/sh
	rm -f "$SOCKET"
	exec python3 "$T/activate.py" "$SOCKET" "$BUILD/flyrecd" "\$@"
EOF
chmod +x "$T/flyrecd-activated"
FLYRECD=$T/flyrecd-activated
flyrecd_start
lingering() { # threads that wait in close()
	local n=0 task
	for task in "/proc/$FLYRECD_PID/task"/*; do
		! grep -q stream_wait_close "$task/stack" || n=$((n + 1))
	done
	[ "$n" = "$1" ]
}
for _ in {1..3}; do
	answers_in_time "descriptors passed before"
done
wait_for 5 lingering 3 || fail "none of the descriptors passed before waits: this tests nothing"
touch "$SOCKET.end"
wait_for 5 lingering 0 || fail "threads still wait"
flyrecd_stop
FLYRECD=$T/flyrecd-private

# --- a system bus, which hangs up who has no name
MEMBER=1
private_system_bus
flyrecd_start
bus_has_name
SOCKET=$T/bus OPTIONS=(--bus)
answers_in_time "on the bus"
note_open_files
for who in $STRANGER $MEMBER:$FLYREC_GID; do
	hostile "$who" declared 2 >"$T/out"
	grep -q '^error org.freedesktop.DBus.Error.AccessDenied: Rejected send message' "$T/out" ||
		fail "the bus lets descriptors through: $(cat "$T/out")"
	for how in call signal; do
		holds bus "$who" linger "$how"
		answers_in_time "a descriptor with a $how over the bus"
		let_go
	done
done
nothing_left "descriptors over the bus"
hostile "$MEMBER:$FLYREC_GID" call $MANAGER OpenFile ss sched record/current.dat >"$T/out"
grep -q '^ok .* 1 descriptors$' "$T/out" || fail "no descriptor comes: $(cat "$T/out")"
hostile "$MEMBER:$FLYREC_GID" call $MANAGER GetSession s "$(printf '%0100000d' 0)" >"$T/out"
grep -q '^error .*InvalidArgs' "$T/out" || fail "a call of 100 KB: $(cat "$T/out")"
for uid in 3 4 5 6; do
	AS='exec' hostile "$uid" flood 5000 ListEvents >"$T/out.$uid" 2>&1 &
	CHILDREN+=($!)
	HELD+=($!)
done
for _ in {1..5}; do
	hostile "$MEMBER:$FLYREC_GID" call $MANAGER ListSessions >"$T/out"
	grep -q '^ok' "$T/out" || fail "a member is refused while strangers call: $(cat "$T/out")"
	answers_in_time "strangers' calls over the bus"
done
let_go
nothing_left "the bus"

# while somebody does not read, the bus takes no answers from flyrecd for anybody: they do not pile up there
for how in "unread 40 127 ListEvents 2" "flood 500 ListEvents"; do
	for _ in {1..3}; do
		# shellcheck disable=SC2086 # words
		AS='exec' hostile "$MEMBER:$FLYREC_GID" $how >"$T/out" 2>&1 &
		CHILDREN+=($!)
		HELD+=($!)
	done
	for _ in {1..8}; do
		sleep 0.5
		[ "$(rss)" -le 32768 ] || fail "$how: flyrecd has grown to $(rss) KiB"
	done
	answers_in_time "$how"
	let_go
done
listed() {
	hostile "$MEMBER:$FLYREC_GID" call $MANAGER ListSessions >"$T/out" && grep -q '^ok' "$T/out"
}
wait_for 10 listed || fail "flyrecd is not back on the bus: $(cat "$T/out")"
nothing_left "answers that nobody reads"
flyrecd_stop
