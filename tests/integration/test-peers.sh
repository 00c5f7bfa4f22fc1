#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# Snapshots of the same moment on several hosts: the notice of a trigger, and what --limited gets:
# a file with the id, one for all who ask for the same, within bounds and a budget of its own.
# time-limit: 200
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/control-lib.sh"
need_tracefs
need_command jq trace-cmd python3 setpriv unshare busctl
need_event sched:sched_process_fork
cd "$T"

for name in demo flight; do
	mode=record
	[ $name = demo ] || mode=flight
	session $name <<-EOF
		[Session]
		Mode=$mode
		[Trace]
		Event=sched:sched_process_fork
		BufferSize=512K
		[Storage]
		FlushSec=300ms
		[Snapshot]
		Burst=3
		IntervalSec=1h
		Analyze=no
		PeerMaxSec=30s
	EOF
done
session none <<-EOF
	[Trace]
	Event=sched:sched_process_fork
	BufferSize=512K
	[Snapshot]
	PeerMaxSec=0
EOF

ago() { # SECONDS: a time, as a message has it
	echo "@$(date -d "$1 seconds ago" +%s.%6N)"
}
ask() { # SESSION ID [ARGUMENT...]: from SINCE on
	ctl snapshot --limited "--id=$2" "--since=$SINCE" "${@:3}" "$1"
}
files() { # SESSION REASON: how many
	find "$STATE/$1/snapshot" -name "*-$2.dat" 2>/dev/null | wc -l
}
newest() { # SESSION REASON
	find "$STATE/$1/snapshot" -name "*-$2.dat" 2>/dev/null | sort | tail -n 1
}
more_files_than() { # NUMBER SESSION REASON
	[ "$(files "$2" "$3")" -gt "$1" ]
}
budget() { # SESSION: "FIRED SUPPRESSED"
	ctl --json status "$1" |
		jq -r '.sessions[0].triggers[] | select(.kind == "peer") | "\(.fired) \(.suppressed)"'
}
used() { # SESSION: files, and budget
	echo "$(files "$1" peer): $(budget "$1")"
}
ids() { # FILE
	ctl --json list | jq -r --arg path "$1" '.files[] | select(.path == $path) | .ids | join(" ")'
}
change() { # SED-COMMAND: of demo
	sed -i "$1" "$CONFIG/sessions.d/demo.conf"
	ctl reload || fail "reload"
}
member_of() { # FILE: whose it counts as
	python3 -c 'import os, sys; print(os.getxattr(sys.argv[1], "user.flyrec.member_uid").decode())' "$1"
}
# listen: what comes on RUNTIME/trigger goes to notices
listen() {
	python3 - "$RUNTIME/trigger" "$T/notices" <<-'END' &
		import socket, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind(sys.argv[1])
		while True:
		    data = s.recv(65536)
		    with open(sys.argv[2], "ab") as f:
		        f.write(data)
	END
	LISTENER=$!
	CHILDREN+=("$LISTENER")
	wait_for 10 test -S "$RUNTIME/trigger" || fail "nobody listens"
}
notice() { # KEY
	sed -n "s/^$1=//p" "$T/notices"
}

echo "== the notice of a trigger"
flyrecd_start
/bin/true
ctl trigger demo "nobody listens" || fail "without a listener"
wait_for 10 more_files_than 0 demo control || fail "no snapshot"
[ -n "$(ids "$(newest demo control)")" ] || fail "no id"
listen
change 's/^Burst=/PostSec=2s\nLast=20s\n&/'
ctl trigger demo 'the p99 is bad' || fail "trigger"
wait_for 1 test -s notices || fail "no notice of a trigger before its snapshot"
[ "$(files demo control)" = 1 ] || fail "the notice came with the file"
cat notices
id=$(notice ID)
[[ $id =~ ^$(uname -n | tr -c 'A-Za-z0-9._:\n-' _)-[0-9]{8}T[0-9]{6}\.[0-9]{6}Z$ ]] || fail "ID=$id"
[ $(($(notice TRIGGER_USEC) - $(notice SINCE_USEC))) = 20000000 ] || fail "SINCE_USEC"
[ $(($(notice UNTIL_USEC) - $(notice TRIGGER_USEC))) = 2000000 ] || fail "UNTIL_USEC"
[ "$(notice REASON) $(notice SESSION) $(notice TEXT)" = "control demo the p99 is bad" ] || fail "what is said"
wait_for 10 more_files_than 1 demo control || fail "no snapshot"
path=$(newest demo control)
[ "$(ids "$path")" = "$id" ] || fail "the file has ids $(ids "$path"), not $id"
trace-cmd report --stat "$path" >"$T/stat" 2>/dev/null
grep -qx "id: $id" "$T/stat" || fail "the file does not say so: $(tail -n 12 "$T/stat")"
verify "$path"

echo "== one that is gone holds nobody up"
kill -TERM "$LISTENER"
wait "$LISTENER" || true
change '/^PostSec/d'
ctl trigger demo "nobody listens any more" || fail "trigger"
wait_for 10 more_files_than 2 demo control || fail "no snapshot"
! grep -q 'cannot tell other hosts' "$FLYRECD_LOG" || fail "complains"

echo "== asked from outside"
for name in demo flight; do
	begin=${EPOCHREALTIME/./} SINCE=$(ago 5) until=$(ago -1)
	path=$(ask $name web1-1 "--until=$until" --reason='event too slow') || fail "$name: no snapshot"
	took=$((${EPOCHREALTIME/./} - begin))
	[[ $path == "$STATE/$name/snapshot/"*-peer.dat && -f $path ]] || fail "$name: $path"
	[ $took -ge 900000 ] || fail "$name: the window had not ended after $took us"
	[ "$(ids "$path")" = web1-1 ] || fail "$name: ids $(ids "$path")"
	trace-cmd report --stat "$path" >"$T/stat" 2>/dev/null
	for line in 'reason: peer' 'id: web1-1' 'for: event too slow'; do
		grep -qx "$line" "$T/stat" || fail "$name: the file does not say '$line': $(tail -n 12 "$T/stat")"
	done
	verify "$path"

	echo "-- $name: once more, and another one of the same moment"
	ctl --json snapshot --limited --id=web1-1 "--since=$(ago 20)" $name >again || fail "$name: again"
	jq -e --arg path "$path" '.sessions[0] | .path == $path and .had and .id == "web1-1"' again >/dev/null ||
		fail "$name: again: $(cat again)"
	[ "$(ask $name web2-1 "--until=$until")" = "$path" ] || fail "$name: another file for web2"
	[ "$(ids "$path")" = "web1-1 web2-1" ] || fail "$name: ids $(ids "$path")"
	verify "$path"
	[ "$(used $name)" = "1: 1 0" ] || fail "$name: $(used $name)"
done
prints -P '\tweb1-1$' ctl list demo || fail "list: $(ctl list demo)"

echo "== bounds"
refused 'demo: .*up to PeerMaxSec=30s, not' ctl snapshot --limited --id=a "--since=$(ago 100)" demo
refused 'in the future, 60 s are allowed' ctl snapshot --limited --id=a "--since=$(ago 1)" "--until=$(ago -100)" demo
refused 'none: PeerMaxSec=0' ask none a
refused nosuch ask nosuch a
refused 'nothing was recorded' ctl snapshot --limited --id=a "--since=$(ago 1000)" "--until=$(ago 990)" demo
for id in '' -a .a 'a b' a/b "$(printf 'a%.0s' {1..97})" $'a\nb' 'a;b' ä; do
	status=0
	ask demo "$id" 2>"$T/err" || status=$?
	[ $status = 2 ] || fail "id \"$id\": status $status: $(cat "$T/err")"
	! busctl --address="unix:path=$RUNTIME/control" call org.flyrec.Recorder1 /org/flyrec/Recorder1/session/demo \
		org.flyrec.Recorder1.Session SnapshotLimited ttss -- 0 1 x "$id" 2>"$T/err" || fail "flyrecd takes the id \"$id\""
	grep -q 'an id is' "$T/err" || fail "id \"$id\": $(cat "$T/err")"
done
for arguments in --limited --id=a '--limited --id=a' '--limited --id=a --last=1s --pin' '--limited --id=a --last=1s --together'; do
	status=0
	# shellcheck disable=SC2086 # words
	ctl snapshot $arguments 2>"$T/err" || status=$?
	[ $status = 2 ] || fail "status $status: snapshot $arguments"
done
# One came as far as to look, and was given back
[ "$(used demo)" = "1: 2 0" ] || fail "what is refused has cost something: $(used demo)"

echo "== a storm"
"$TOOLS/peer-storm" "$RUNTIME/control" flight h 1000 2 300 >answers || fail "storm"
cat answers
[[ $(cat answers) =~ ^1000\ [^[:space:]]*-peer.dat$ ]] || fail "not one file for all"
path=$(cut -d ' ' -f 2 answers)
[ "$(used flight)" = "2: 2 0" ] || fail "$(used flight)"
[ "$(ids "$path" | wc -w)" = 16 ] || fail "ids: $(ids "$path")"
verify "$path"

echo "== after a restart: the files are known"
flyrecd_kill
flyrecd_start
first=$(ids "$path" | cut -d ' ' -f 1)
[ "$(ctl snapshot --limited "--id=$first" "--since=$(ago 2)" flight)" = "$path" ] || fail "another file after a restart"
[ "$(used flight)" = "2: 0 0" ] || fail "it costs something: $(used flight)"

echo "== the budget"
for i in 1 2 3; do
	ctl snapshot --limited --id=one-$i --last=1s flight >/dev/null || fail "no snapshot $i"
	sleep 0.2
done
[ "$(used flight)" = "5: 3 0" ] || fail "$(used flight)"
refused 'flight: Burst=3 is used up by earlier calls of other hosts, no snapshot' ctl snapshot --limited --id=one-4 --last=1s flight
[ "$(used flight)" = "5: 3 1" ] || fail "$(used flight)"
ctl snapshot --limited --id=one-1 --last=1s flight >/dev/null || fail "a file that is there costs something"
rm "$path"
refused 'Burst=3 is used up' ctl snapshot --limited "--id=$first" --last=1s flight
ctl trigger flight "of its own" || fail "other triggers are refused"
ctl snapshot flight >/dev/null || fail "root is refused"
# None named: those that take part; demo still has some, and no file of flight's has the last second
sleep 1
ctl snapshot --limited --id=all-1 "--since=$(ago 2)" >all 2>"$T/err" || fail "status of all: $(cat "$T/err")"
[[ $(cat all) =~ ^[^[:space:]]*/demo/[^[:space:]]*$ ]] || fail "of all: $(cat all)"
! grep -q none "$T/err" || fail "none is asked: $(cat "$T/err")"

echo "== the moment is in a trigger's file"
change 's/^Burst=.*/PostSec=1s\n&/'
SINCE=$(ago 5) until=$(ago 0)
ctl trigger demo "here, too" || fail "trigger"
path=$(ask demo web3-1 "--until=$until") || fail "web3"
[[ $path == *-control.dat ]] || fail "$path"
[[ $(ids "$path") == *Z\ web3-1 ]] || fail "ids $(ids "$path")"
verify "$path"

echo "== a session that stops answers"
ctl snapshot --limited --id=late --last=1s "--until=$(ago -40)" demo 2>"$T/late" && fail "--last= and --until="
background ctl snapshot --limited --id=late "--since=$(ago 0.5)" "--until=$(ago -20)" demo 2>"$T/late"
late=$!
must_log 'demo: Peer triggered, late, taking snapshot'
ctl stop demo || fail "stop"
wait_for 20 ended $late || fail "late is not answered"
ctl start demo || fail "start"
flyrecd_stop

echo "== rights: as of a snapshot, and no more than a member's room"
chmod 755 "$T"
cp "$FLYRECCTL" "$T/flyrecctl"
private_groups
member() {
	setpriv --reuid=65534 --regid=65534 --groups="$1" "$T/flyrecctl" "--runtime-dir=$RUNTIME" "${@:2}"
}
flyrecd_start
/bin/true
path=$(member "$FLYREC_GID" snapshot --limited --id=m-1 --last=2s demo) || fail "a member is refused"
[ "$(member_of "$path")" = 65534 ] || fail "not marked as a member's"
path=$(ctl snapshot --limited --id=m-2 --last=20s demo) || fail "root is refused"
[ "$(member_of "$path")" = 0 ] || fail "root's for other hosts is not marked"
refused 'denied|refused|may not' member 65534 snapshot --limited --id=s-1 --last=1s demo
flyrecd_stop
