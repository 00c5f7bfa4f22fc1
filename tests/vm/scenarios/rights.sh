#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The rights of a stranger, of a member of group flyrec and of root, as real users of the machine, over
# the socket, the system bus and the files; then hostile session files and a state directory full of
# traps: nothing outside is read or written, and a session beside them records.
# machines: debian13
# also: debian12
# time-limit: 400
. "$(dirname "$0")/../guest.sh"
useradd --no-create-home stranger
useradd --no-create-home --groups flyrec member
at_end userdel stranger
at_end userdel member
# where the unit's sandbox lets flyrecd write, so that it must guard itself
outside=/srv/outside
mkdir $outside
at_end rm -r $outside
drop_in outside <<-EOF
	[Service]
	ReadWritePaths=$outside
EOF

# as USER COMMAND...
as() {
	setpriv "--reuid=$1" "--regid=$1" --init-groups "${@:2}"
}

# over_bus USER METHOD
over_bus() {
	as "$1" busctl --system call org.flyrec.Recorder1 /org/flyrec/Recorder1/session/good \
		org.flyrec.Recorder1.Session "$2" >"$T/out" 2>"$T/err"
}

session good <<-EOF
	[Trace]
	Event=sched:sched_process_exec
	BufferSize=64K
	[Storage]
	FlushSec=300ms
EOF
flyrecd_start
[ "$(stat -c '%a %U %G' $RUNTIME/control)" = "660 root flyrec" ] || fail "$(stat -c '%a %U %G' $RUNTIME/control)"
[ "$(stat -c '%a %U %G' $STATE/good/record)" = "750 root flyrec" ] || fail "$(stat -c '%a %U %G' $STATE/good/record)"
[ "$(stat -c '%a %U %G' $STATE/good/record/current.dat)" = "640 root flyrec" ] || fail "rights of current.dat"

# A stranger gets in nowhere
for call in status list stats metrics 'tail good' 'snapshot good' 'rotate good' reload 'cat good current.dat'; do
	# shellcheck disable=SC2086 # words
	refused 'Permission denied: it is for root and group flyrec' as stranger "$FLYRECCTL" $call
done
! over_bus stranger OpenTail || fail "a stranger's tail over the system bus"
grep -q 'Access denied' "$T/err" || fail "$(cat "$T/err")"
! as stranger ls $STATE >/dev/null 2>&1 || fail "a stranger sees the files"
! as stranger cat $STATE/good/record/current.dat >/dev/null 2>&1 || fail "a stranger reads a file"

# A member looks and copies, and changes nothing
for call in status list stats metrics 'cat good current.dat -o /dev/null'; do
	# shellcheck disable=SC2086 # words
	as member "$FLYRECCTL" $call >"$T/out" || fail "a member's $call"
done
snapshot=$(as member "$FLYRECCTL" snapshot good) || fail "a member's snapshot"
as member "$FLYRECCTL" verify "$snapshot" >/dev/null || fail "a member cannot read $snapshot"
for call in 'rotate good' 'stop good' 'pause good' reload 'vacuum --max-use=1K' 'event-enable good irq' \
	'filter good sched:sched_process_exec 0' "pin $snapshot"; do
	# shellcheck disable=SC2086 # words
	refused 'needs root or membership in AdminGroup= .*you are user' as member "$FLYRECCTL" $call
done
over_bus member OpenTail || fail "a member over the system bus: $(cat "$T/err")"
! over_bus member Pause || fail "a member has paused the session"
for file in $STATE/x $STATE/good/record/x $STATE/good/record/current.dat $CONFIG/sessions.d/x.conf; do
	# shellcheck disable=SC2016 # for the inner shell
	! as member sh -c 'exec 2>/dev/null; echo >>"$1"' sh "$file" || fail "a member writes to $file"
done
! as member rm -f "$snapshot" 2>/dev/null || fail "a member removes $snapshot"

# Root does both
over_bus root Pause || fail "root over the system bus: $(cat "$T/err")"
[ "$(cat "$(instance good)/tracing_on")" = 0 ] || fail "not paused"
"$FLYRECCTL" resume good
"$FLYRECCTL" rotate good >/dev/null
flyrecd_stop
verify $STATE

# --- session files that nobody should have written
sessions=$CONFIG/sessions.d
# shellcheck disable=SC2016 # as they are
echo 'swordfish:$y$j9T$hash:20000:0:99999:7:::' >$outside/secret
chmod 600 $outside/secret
ln -s $outside/secret $sessions/link.conf
ln -s $sessions/loop.conf $sessions/loop.conf
ln -s /dev/zero $sessions/device.conf
mkfifo $sessions/fifo.conf
mkdir $sessions/directory.conf
truncate -s 4G $sessions/huge.conf
head -c 100000 /dev/urandom >$sessions/noise.conf
printf '[Trace]\nEvent=sched\n' >$sessions/unreadable.conf
chmod 000 $sessions/unreadable.conf
chown stranger $sessions/unreadable.conf
# shellcheck disable=SC2016 # as they are
for name in ' ' 'a b' -x .. é $'line\nbreak' "$(printf 'x%.0s' $(seq 240))" '$(reboot)' '%n%n'; do
	printf '[Trace]\nEvent=sched:sched_process_exec\n' >"$sessions/$name.conf"
done
# --- a state directory of traps
mkdir $outside/dir
echo precious >$outside/file
for name in dir record snapshot current state fifo zero hidden hard foreign shared; do
	cp $sessions/good.conf $sessions/t-$name.conf
	mkdir -p "$STATE/t-$name/record" "$STATE/t-$name/snapshot"
done
rm -r $STATE/t-dir $STATE/t-record/record $STATE/t-snapshot/snapshot
sed -i '1i [Session]\nMode=flight' $sessions/t-snapshot.conf
ln -s $outside/dir $STATE/t-dir
ln -s $outside/dir $STATE/t-record/record
ln -s $outside/dir $STATE/t-snapshot/snapshot
ln -s $outside/file $STATE/t-current/record/current.dat
ln -s $outside/file $STATE/t-state/state
mkfifo $STATE/t-fifo/state
ln -s /dev/zero $STATE/t-zero/state
ln -s $outside/file $STATE/t-hidden/record/.current.dat.new
ln $outside/file $STATE/t-hard/record/current.dat
chown -R stranger $STATE/t-foreign
chmod 770 $STATE/t-shared
# shellcheck disable=SC2012 # names are ours
before=$(ls -lR --time-style=full-iso $outside && cat $outside/file)

flyrecd_start failing
must_log 't-dir: session failed: .*/t-dir: .*Not a directory'
must_log 't-record: session failed: .*/t-record: .*Not a directory'
must_log 't-snapshot: session failed: .*/t-snapshot: .*Not a directory'
must_log 't-foreign: session failed: .* belongs to user'
must_log 't-shared: session failed: .*can be written by others (mode 0770)'
must_log 't-current: .*damaged'
must_log 't-hard: .*damaged'
for name in link loop device fifo directory huge noise unreadable; do
	must_log "$sessions/$name.conf:.*"
done
for name in good t-current t-state t-fifo t-zero t-hidden t-hard; do
	"$FLYRECCTL" --json status $name | jq -e '.sessions[0].state == "recording"' >/dev/null ||
		fail "$name does not record: $(flyrecd_log | grep -e "$name")"
done
# -x is a name like another one
instances=("$TRACEFS"/instances/*)
[ ${#instances[@]} = 8 ] || fail "other instances: ${instances[*]}"
/usr/bin/true
"$FLYRECCTL" rotate >/dev/null
flyrecd_stop
! flyrecd_log | grep -e swordfish || fail "what is in a file that a link leads to has come into the log"
# shellcheck disable=SC2012
after=$(ls -lR --time-style=full-iso $outside && cat $outside/file)
[ "$before" = "$after" ] || fail "something outside was changed: $(diff <(echo "$before") <(echo "$after"))"
for name in good t-current t-hard t-state t-hidden; do
	verify $STATE/$name/record/2*.dat
done

# --- the state directory itself is somebody else's: the unit makes it root's again
rm -r "$STATE"/t-* $sessions/t-*
chown stranger "$STATE"
chmod 777 "$STATE"
flyrecd_start failing
[ "$(stat -c '%U:%G %a' "$STATE")" = "root:flyrec 750" ] || fail "$STATE: $(stat -c '%U:%G %a' "$STATE")"
"$FLYRECCTL" --json status good | jq -e '.sessions[0].state == "recording"' >/dev/null || fail "good does not record"
flyrecd_stop
