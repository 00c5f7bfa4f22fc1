#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 240
#
# What a member of group flyrec may cost: room for snapshots, others' snapshots, their turn; and what
# AdminGroup= may not put into a file of configuration.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/control-lib.sh"
need_tracefs
need_command setpriv unshare python3 busctl dbus-daemon
need_event sched:sched_process_exec

USER_ID=65534
chmod 755 "$T"
cp "$FLYRECCTL" "$T/flyrecctl" # where other users can reach it
private_groups

as() { # GROUP COMMAND...
	setpriv "--reuid=$USER_ID" "--regid=$USER_ID" "--groups=$1" "${@:2}"
}

member() {
	as $FLYREC_GID "$T/flyrecctl" "--runtime-dir=$RUNTIME" "$@"
}

admin() {
	as $ADMIN_GID "$T/flyrecctl" "--runtime-dir=$RUNTIME" "$@"
}

# flood ADDRESS NAME CONNECTIONS CALLS [FILE]: Snapshot of session fl, then hang up without waiting for an
# answer; NAME: of flyrecd on a bus, '' for its own socket; FILE: be connected, then wait until it is there
cat >"$T/flood.py" <<-'EOT'
	import os, socket, struct, sys, time
	uid, group, connections, calls = (int(sys.argv[i]) for i in (1, 2, 5, 6))
	address, name = sys.argv[3:5]
	go = sys.argv[7] if len(sys.argv) > 7 else None
	os.setgroups([group])
	os.setgid(uid)
	os.setuid(uid)

	def pad(data, to):
	    return data + bytes(-len(data) % to)

	def text(value):
	    return struct.pack("<I", len(value)) + value.encode() + b"\0"

	def call(serial, path, interface, member, to, signature="", body=b"", flags=0):
	    fields = b""
	    for code, kind, value in ((1, "o", path), (2, "s", interface), (3, "s", member), (6, "s", to)):
	        if value:
	            fields = pad(fields, 8) + bytes([code, 1]) + kind.encode() + b"\0" + text(value)
	    if signature:
	        fields = pad(fields, 8) + b"\x08\x01g\0" + bytes([len(signature)]) + signature.encode() + b"\0"
	    header = struct.pack("<4BIII", ord("l"), 1, flags, 1, len(body), serial, len(fields)) + fields
	    return pad(header, 8) + body

	def snapshot(serial):
	    body = struct.pack("<QQ", 0, 2**64 - 1) + pad(text("flood"), 4) + struct.pack("<I", 0)
	    return call(serial, "/org/flyrec/Recorder1/session/fl", "org.flyrec.Recorder1.Session",
	                "Snapshot", name, "ttsb", body, 1 if name else 0) # no answer, please

	for _ in range(connections):
	    s = socket.socket(socket.AF_UNIX)
	    s.connect(address)
	    s.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
	    assert s.recv(256).startswith(b"OK")
	    s.sendall(b"BEGIN\r\n")
	    if name:
	        s.sendall(call(1, "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello",
	                       "org.freedesktop.DBus"))
	        s.recv(4096)
	        s.sendall(call(2, "/org/flyrec/Recorder1", "org.flyrec.Recorder1.Manager", "ListSessions", name))
	        while b"rec" not in s.recv(4096):
	            pass
	    if go:
	        open(go + ".ready", "w").close()
	        while not os.path.exists(go):
	            time.sleep(0.01)
	    s.sendall(b"".join(snapshot(serial) for serial in range(3, calls + 3)))
	    s.close()
EOT
flood() {
	python3 "$T/flood.py" $USER_ID $FLYREC_GID "$@" || fail "the flood ended"
}

state_on ext4 400M
KEEP=$((60 << 20)) MAX=$((200 << 20))
configure() { # MAXUSE
	session fl <<-EOT
		[Session]
		Mode=flight
		[Trace]
		Event=sched:sched_process_exec
		Event=sched:sched_switch if prev_comm == "nobody"
		[Storage]
		KeepFree=$KEEP
		[Snapshot]
		MaxUse=$1
		Burst=1000
	EOT
}
configure $MAX
session rec <<-EOT
	[Trace]
	Event=sched:sched_process_exec
	[Storage]
	MaxUse=100M
	KeepFree=$KEEP
	FlushSec=100ms
EOT
echo "AdminGroup=$ADMIN_GID" | daemon_config
flyrecd_start
chmod 755 "$RUNTIME"
SNAPSHOTS=$STATE/fl/snapshot

files() { # PATTERN DIRECTORY: their names
	find "$2" -name "$1" -printf '%f\n' | sort
}

count() { # PATTERN: of snapshots
	files "$1" "$SNAPSHOTS" | wc -l
}

used() { # PATTERN: bytes on the disk
	find "$SNAPSHOTS" -name "$1" -printf '%b\n' | awk '{ n += $1 } END { print n * 512 }'
}

room() {
	df --output=avail --block-size=1 "$T/ext4" | tail -n 1
}

has_signal() { # N: so many snapshots by signal
	[ "$(count '2*-signal.dat')" -ge "$1" ]
}

stopped_itself() { [ "$(process_state "$FLYRECD_PID")" = T ]; }

# on_bus ADDRESS: how many are connected, this one among them
on_bus() { busctl "--address=unix:path=$1" list --unique --no-legend | wc -l; }
as_before() { [ "$(on_bus "$1")" = "$2" ]; }

# no_snapshot_for_the_gone WHAT ADDRESS NAME: while one is under way another one is asked for, by somebody
# who goes then; to be started with FLYREC_FAULT_POINT=flight-captured
no_snapshot_for_the_gone() {
	local before first gone connected
	before=$(count '2*-flood.dat')
	[ -z "$3" ] || connected=$(on_bus "$2")
	rm -rf "$T/open"
	mkdir -m 777 "$T/open"
	flood "$2" "$3" 1 1 "$T/open/go" &
	gone=$!
	wait_for 10 test -e "$T/open/go.ready" || fail "$1: cannot connect"
	ctl snapshot fl --reason=first >"$T/first" &
	first=$!
	wait_for 10 stopped_itself || fail "$1: no snapshot is begun"
	: >"$T/open/go"
	wait $gone || fail "$1: not asked for"
	# the bus tells of it what it has noticed
	[ -z "$3" ] || wait_for 10 as_before "$2" "$connected" || fail "$1: still connected"
	kill -CONT "$FLYRECD_PID"
	wait $first || fail "$1: the first one"
	# had that still been wanted it would have come before this
	member snapshot fl --reason=last >"$T/out"
	[ "$(count '2*-flood.dat')" = "$before" ] || fail "$1: a snapshot for somebody who had gone"
}

signal_soon() { # WHAT: a trigger's snapshot is there within two seconds
	local n begun=${EPOCHREALTIME/./}
	n=$(count '2*-signal.dat')
	kill -USR1 "$FLYRECD_PID"
	wait_for 2 has_signal $((n + 1)) || fail "$1: no snapshot by signal within 2 s"
	echo "$1: a trigger's snapshot after $(msec "$begun") ms"
}

# --- texts: a line's end in a filter would be a line of configuration
sched="sched:sched_switch"
refused 'filter refused: a control character' admin filter --persist fl $sched \
	$'prev_pid != 1\n|| prev_comm == "a\nUprobe=p:peek (scratch):0x2600\n#"'
refused 'event refused: a control character' admin event-enable --persist fl \
	"$sched if prev_comm == \"a"$'\n'"\""
refused 'filter refused: a backslash at its end' admin filter --persist fl $sched $'prev_pid == 1 \\'
[ -z "$(find "$CONFIG" -name '*flyrecctl*')" ] || fail "something was kept"
admin filter --persist fl $sched 'prev_pid == 1' || fail "AdminGroup= may not set a filter"
override=$CONFIG/sessions.d/fl.conf.d/50-flyrecctl.conf
grep -qx "Event=$sched if prev_pid == 1" "$override" || fail "not kept: $(cat "$override")"
printf '[Trace]\nhello\n' >"$override"
refused "fl.conf.d/50-flyrecctl.conf:2: missing '='" admin filter --persist fl $sched 'prev_pid == 2'
refused "fl.conf.d/50-flyrecctl.conf:2: missing '='" admin start --persist fl
[ "$(cat "$override")" = $'[Trace]\nhello' ] || fail "written over: $(cat "$override")"
kill -0 "$FLYRECD_PID" || fail "flyrecd has ended"
rm -r "${override%/*}"

# --- pins: not by members, and not without end
for ((i = 0; i < 40; i++)); do
	refused 'pinning is for root or membership in AdminGroup=.*, not for user 65534' \
		member snapshot fl --pin
done
refused 'pinning is for root or membership in AdminGroup=' member snapshot --together fl rec --pin
[ "$(count '2*')" = 0 ] || fail "refused, but made: $(files '2*' "$SNAPSHOTS")"
configure 40M
ctl reload
n=0
while admin snapshot fl --pin >"$T/out" 2>"$T/err"; do
	[ $((n += 1)) -lt 20 ] || fail "$n are pinned, $(used '2*') bytes"
done
[ $n -ge 2 ] || fail "only $n can be pinned: $(cat "$T/err")"
grep -q 'is there, but cannot be pinned: session fl: .* of \[Snapshot\] MaxUse=, 20.0M: unpin some' "$T/err" ||
	fail "$(cat "$T/err")"
[ "$(count '2*')" = $((n + 1)) ] || fail "it is not there: $(cat "$T/err")"
last=$(files '2*' "$SNAPSHOTS" | tail -n 1)
refused 'session fl: .* unpin some first' ctl pin "$SNAPSHOTS/$last"
[ "$(ctl --json list fl | grep -o '"pinned":true' | wc -l)" = $n ] || fail "$(ctl --json list fl)"
# no room at all: known before
configure 20M
ctl reload
refused 'which is half of \[Snapshot\] MaxUse=, 10.0M: unpin some first' ctl snapshot fl --pin
[ "$(count '2*')" = $((n + 1)) ] || fail "refused, but made: $(files '2*' "$SNAPSHOTS")"
ctl unpin "$SNAPSHOTS"/2*
rm "$SNAPSHOTS"/2*
echo "$n of 20M could be pinned"

# --- room: members have a quarter, and what is not theirs stays
configure $MAX
ctl reload
ctl rotate rec >"$T/out"
for i in 1 2 3; do
	signal_soon "trigger $i"
done
boss=$(ctl snapshot fl --reason=boss)
others=$(files '2*' "$SNAPSHOTS") recorded=$(files '2*.dat' "$STATE/rec/record")
for ((i = 0; i < 20; i++)); do
	file=$(member snapshot fl) || fail "snapshot $i of a member"
	[ -e "$file" ] || fail "snapshot $i of a member is gone"
	[ "$(used '2*-control.dat')" -le $((MAX / 4)) ] ||
		fail "after $i a member's snapshots are $(used '2*-control.dat') bytes"
done
[ "$(count '2*-control.dat')" -ge 4 ] || fail "members have only $(count '2*-control.dat')"
[ "$(python3 -c 'import os, sys; print(os.getxattr(sys.argv[1], "user.flyrec.member_uid").decode())' "$file")" = \
	$USER_ID ] || fail "it does not say whose it is"
comm -23 <(echo "$others") <(files '2*' "$SNAPSHOTS") >"$T/gone"
[ ! -s "$T/gone" ] || fail "gone for a member's: $(cat "$T/gone")"
echo "$(count '2*-control.dat') of a member's 20 are left"
# too little for one more: refused to members; for others members' ones make way
fallocate -l $(($(room) - KEEP - (2 << 20))) "$T/ext4/other"
mine=$(count '2*-control.dat')
refused 'session fl: a snapshot of .*M would leave less than KeepFree=60.0M free' member snapshot fl
refused 'session rec: a snapshot of .*M would leave less than KeepFree=60.0M free' member snapshot rec
[ "$(count '2*-control.dat')" = "$mine" ] || fail "refused, but older ones are gone"
ctl snapshot fl --reason=boss >"$T/out" || fail "no snapshot for root"
signal_soon "little room"
[ "$(count '2*-control.dat')" -lt "$mine" ] || fail "no snapshot of a member's made way"
comm -23 <(echo "$others") <(files '2*' "$SNAPSHOTS") >"$T/gone"
[ ! -s "$T/gone" ] || fail "gone, although there were members' ones: $(cat "$T/gone")"
[ "$recorded" = "$(files '2*.dat' "$STATE/rec/record")" ] || fail "segments made way"
[ "$(room)" -ge $KEEP ] || fail "only $(room) bytes are free"
[ -e "$boss" ] || fail "root's snapshot is gone"
rm "$T/ext4/other"

# --- how often: as triggers, by a count of their own
for ((i = 1; i < 5; i++)); do # one has been refused for room
	member snapshot rec >"$T/out" || fail "snapshot $i of rec"
done
refused 'session rec: group flyrec has had the 5 snapshots that it may have in 60 s; the next one in' \
	member snapshot rec
refused 'session rec: group flyrec has had' member snapshot --together fl rec
ctl snapshot rec >"$T/out" || fail "root is counted with members"
last_signal() { files '2*-signal.dat' "$STATE/rec/snapshot" | tail -n 1; }
rec_signal() { [ "$(last_signal)" != "$rec_last" ]; } # an older one may have made way for it
rec_last=$(last_signal)
kill -USR1 "$FLYRECD_PID"
wait_for 20 rec_signal || fail "triggers are counted with members"

# --- turns: neither a trigger nor root waits for a crowd that has hung up
flood "$RUNTIME/control" '' 300 16
signal_soon "flood"
begun=${EPOCHREALTIME/./}
timeout 20 "$FLYRECCTL" "--runtime-dir=$RUNTIME" snapshot fl >"$T/out" || fail "root waits for the flood"
echo "root's snapshot after $(msec "$begun") ms"
# what waits for an answer: four of a user
: >"$T/crowd"
for ((i = 0; i < 12; i++)); do
	member snapshot fl --reason=crowd >>"$T/crowd" 2>&1 &
	crowd[i]=$!
done
for ((i = 0; i < 12; i++)); do
	wait "${crowd[i]}" || true # its line is in the file
done
[ "$(grep -c '^/\|at most 16 may, 4 of one user other than root$' "$T/crowd")" = 12 ] ||
	fail "not answered: $(cat "$T/crowd")"
grep -q '^/' "$T/crowd" || fail "none was taken: $(cat "$T/crowd")"
flyrecd_stop
rm "$SNAPSHOTS"/2*
FLYREC_FAULT_POINT=flight-captured flyrecd_start
chmod 755 "$RUNTIME"
no_snapshot_for_the_gone socket "$RUNTIME/control" ''
flyrecd_stop

# --- the same over the system bus
private_system_bus
FLYREC_FAULT_POINT=flight-captured flyrecd_start
chmod 755 "$RUNTIME"
bus_has_name
refused 'pinning is for root|Access denied' as $FLYREC_GID busctl --system call org.flyrec.Recorder1 \
	/org/flyrec/Recorder1/session/fl org.flyrec.Recorder1.Session Snapshot ttsb 0 18446744073709551615 '' true
no_snapshot_for_the_gone bus "$T/bus" org.flyrec.Recorder1
flood "$T/bus" org.flyrec.Recorder1 1 3000
signal_soon "flood of the bus"
timeout 20 "$FLYRECCTL" "--runtime-dir=$RUNTIME" snapshot fl >"$T/out" || fail "root waits for the bus' flood"
flyrecd_stop
