#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 300
#
# Failed units as triggers, under a real systemd in a container: OnUnitFailed= sees services that
# die by themselves and those that do not start, over systemd's own socket, also after
# daemon-reexec; flyrec-snapshot@.service for OnFailure=.
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/integration/container.sh"
need_tracefs
need_event sched:sched_process_exec
need_command jq ps trace-cmd python3

# has_snapshots REASON NUMBER: of session ev; they are in SNAPSHOTS then
has_snapshots() {
	# shellcheck disable=SC2206 # a pattern
	SNAPSHOTS=("$STATE"/ev/snapshot/*-$1.dat)
	[ ${#SNAPSHOTS[@]} -ge "$2" ]
}

must_have() { # NUMBER WHAT
	wait_for 20 has_snapshots unit "$1" || {
		guest journalctl --quiet --unit=flyrecd | tail -n 10 >&2
		fail "$2: ${#SNAPSHOTS[@]} snapshots instead of $1"
	}
}

# unit NAME: from standard input
unit() {
	cat >"$T/root/etc/systemd/system/$1"
}

# Wherever it was installed
status() {
	guest env PATH=/usr/local/bin:/usr/bin:/bin flyrecctl status ev
}

status_has() {
	status | grep -q "$1"
}

session ev <<-EOF
	[Trace]
	Event=sched:sched_process_exec
	[Snapshot]
	OnUnitFailed=fails*.service
	OnUnitFailed=*-too.service
	OnPressure=cpu some 100ms 1s unit=presses.service
	Burst=20
EOF
session why <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=sched
	BufferSize=4M
EOF
container_start flyrecd.service
wait_for 10 status_has 'unit fails\*.service: armed; 0 taken' ||
	fail "not armed: $(status)"
printf '[Service]\nExecStart=/bin/false\n' | unit fails.service
printf '[Service]\nExecStart=/bin/sleep 600\n' | unit fails-later-too.service
printf '[Service]\nExecStart=/bin/false\n' | unit other.service
printf '[Service]\nExecStart=/bin/true\n' | unit fails-not.service
printf '[Unit]\nOnFailure=flyrec-snapshot@%%n.service\n[Service]\nExecStart=/bin/false\n' |
	unit asks.service
guest systemctl daemon-reload

# --- by itself at once; one that nobody asked for and one that succeeds are none
guest systemctl start fails.service
must_have 1 "a service that fails"
trace-cmd report --stat "${SNAPSHOTS[0]}" >"$T/stat" 2>/dev/null
for line in 'reason: unit' 'unit: fails.service'; do
	grep -qx "$line" "$T/stat" || fail "the file does not say '$line': $(tail -n 12 "$T/stat")"
done
guest systemctl start other.service fails-not.service

# --- after a while, killed; two patterns match, one snapshot
guest systemctl start fails-later-too.service
guest systemctl kill --signal=KILL fails-later-too.service
must_have 2 "a service that is killed"

# --- failed long ago is no news: not at a reload of systemd, nor of ourselves
guest systemctl daemon-reload
guest systemctl reload flyrecd
# a connection that ends comes back
guest systemctl daemon-reexec
must_be_back() { ! status_has 'unit fails.*: unavailable'; }
sleep 1
wait_for 20 must_be_back || fail "not watched again: $(status)"
guest systemctl start fails.service
must_have 3 "a service that fails after daemon-reexec"
guest systemctl reset-failed
sleep 1
has_snapshots unit 4 && fail "a snapshot for nothing"
status
status_has 'unit fails\*.service: armed; 3 taken' || fail "counts"

# --- OnFailure=
guest systemd-analyze --man=no verify flyrec-snapshot@x.service >"$T/verify" 2>&1 ||
	fail "$(cat "$T/verify")"
[ ! -s "$T/verify" ] || fail "systemd-analyze verify: $(cat "$T/verify")"
guest systemctl start asks.service
must_have 4 "flyrec-snapshot@.service"
prints -x 'for: asks.service' trace-cmd report --stat "${SNAPSHOTS[3]}" ||
	fail "the file does not say for which unit"
attributes=$(python3 -c 'import os, sys; print(os.listxattr(sys.argv[1]))' "${SNAPSHOTS[3]}")
[[ $attributes = *user.flyrec.reason* && $attributes != *member_uid* ]] ||
	fail "a unit's snapshot counts as a member's: $attributes"
gone() { ! guest systemctl is-active --quiet flyrec-snapshot@asks.service.service; }
wait_for 10 gone || fail "flyrec-snapshot@ does not end"
result=$(guest systemctl show --property=Result --value flyrec-snapshot@asks.service.service)
[ "$result" = success ] || fail "flyrec-snapshot@: $result"
guest journalctl --sync
guest journalctl --quiet --unit=flyrec-snapshot@asks.service.service | grep -q -e '-unit.dat' ||
	fail "the log does not name the file"

# --- flyrec-shipping.socket: each finished snapshot starts a unit with its path
mkdir -p "$T/root/var/lib/shipped"
unit flyrec-ship@.service <<-'EOF'
	[Service]
	Type=oneshot
	EnvironmentFile=-/run/flyrec-shipping/%i.env
	ExecStart=/bin/sh -c 'echo "$FLYREC_FINDING" >>/var/lib/shipped/findings; echo "$FLYREC_ID" >>/var/lib/shipped/ids'
	ExecStart=/bin/cp %f /var/lib/shipped/
EOF
guest systemctl daemon-reload
guest systemd-analyze --man=no verify flyrec-shipping@x.service flyrec-shipping.socket >"$T/verify" 2>&1 ||
	fail "$(cat "$T/verify")"
[ ! -s "$T/verify" ] || fail "systemd-analyze verify: $(cat "$T/verify")"
guest systemctl start flyrec-shipping.socket
path=$(guest env PATH=/usr/local/bin:/usr/bin:/bin flyrecctl snapshot --reason=x-1 ev)
shipped() { [ -s "$T/root/var/lib/shipped/${path##*/}" ]; }
wait_for 20 shipped || {
	guest journalctl --quiet | tail -n 20 >&2
	fail "a snapshot that was asked for is not shipped: $path"
}
guest systemctl start fails.service
must_have 5 "with shipping"
path=${SNAPSHOTS[4]}
wait_for 20 shipped || fail "a snapshot by a trigger is not shipped: $path"
sleep 0.2
cmp "$path" "$T/root/var/lib/shipped/${path##*/}" || fail "what was shipped is another file"
grep -qE '[0-9]{8}T[0-9]{6}\.[0-9]{6}Z$' "$T/root/var/lib/shipped/ids" ||
	fail "the unit does not know the id of the moment: $(cat "$T/root/var/lib/shipped/ids")"
# --- a snapshot explains itself, under this sandbox: in the journal, and to the unit that ships it
"$SRC/tests/tools/fifo-hog"
path=$(guest env PATH=/usr/local/bin:/usr/bin:/bin flyrecctl snapshot --reason=x-3 why)
finding_id=$(sed -nE 's/^#define MESSAGE_FINDING[[:space:]]+"(.*)"/\1/p' "$SRC/basic/log.h")
has_finding() {
	guest journalctl --quiet --sync && guest journalctl --quiet --output=json "MESSAGE_ID=${finding_id:?}" \
		"FLYREC_FILE=$path" >"$T/finding" &&
		[ -s "$T/finding" ]
}
wait_for 40 has_finding || fail "not explained: $(guest journalctl --quiet --unit=flyrecd | tail -n 5)"
# what else runs on the machine may have waited for longer than the victim here
"$FLYRECCTL" analyze --json "$STATE/why/snapshot/${path##*/}" >"$T/report" || fail "analyze $path"
jq -e '[.findings[].text | contains("fifo-hog[")] | any' "$T/report" >/dev/null || fail "the hog is not found: $(cat "$T/report")"
worst=$(jq -r '.findings[0].text' "$T/report")
for field in "\"FLYREC_SESSION\":\"why\"" "\"FLYREC_FILE\":\"$path\"" "\"FLYREC_FINDING\":\"$worst\"" \
	'"FLYREC_RULE":"' '"FLYREC_DURATION_NSEC":"' '"FLYREC_TASK":"'; do
	grep -qF -- "$field" "$T/finding" || fail "the journal has no $field: $(cat "$T/finding")"
done
wait_for 20 shipped || fail "an analysed snapshot is not shipped: $path"
wait_for 20 grep -qF "$worst" "$T/root/var/lib/shipped/findings" ||
	fail "the unit does not know what was found: $(cat "$T/root/var/lib/shipped/findings")"
# and nobody listens any more: not a word
guest systemctl stop flyrec-shipping.socket
guest env PATH=/usr/local/bin:/usr/bin:/bin flyrecctl snapshot --reason=x-2 ev >/dev/null ||
	fail "a snapshot without shipping"
guest journalctl --sync
! guest journalctl --quiet --unit=flyrecd | grep "shipped:" || fail "complains that nobody ships"

# --- the journal can be asked for snapshots of a session
id=$(sed -nE 's/^#define MESSAGE_SNAPSHOT[[:space:]]+"(.*)"/\1/p' "$SRC/basic/log.h")
guest journalctl --quiet --output=cat "MESSAGE_ID=${id:?}" FLYREC_SESSION=ev >"$T/journal"
for line in "ev: OnUnitFailed=.* triggered, fails.service, taking snapshot" "ev: snapshot /.*-unit.dat"; do
	grep -qx "$line" "$T/journal" || fail "the journal lacks '$line': $(cat "$T/journal")"
done

# --- pressure in a unit's control group, which the sandbox may only read
if [ -e /proc/pressure/cpu ]; then
	unit presses.service <<-'EOF'
		[Service]
		CPUAffinity=0
		ExecStart=/bin/sh -c 'while :; do :; done & while :; do :; done'
	EOF
	guest systemctl daemon-reload
	status_has 'pressure cpu some .* unit=presses.service: unavailable' || fail "not said: $(status)"
	guest systemctl start presses.service
	wait_for 20 status_has 'pressure cpu some .* unit=presses.service: armed' || fail "not watched: $(status)"
	wait_for 20 has_snapshots pressure 1 || fail "no snapshot on a unit's pressure: $(status)"
	guest systemctl stop presses.service
fi

# --- nothing was refused by the sandbox
guest journalctl --quiet --unit=flyrecd >"$T/journal"
! grep -E 'denied|not permitted|SYS' "$T/journal" || fail "the sandbox is too narrow"
guest systemctl stop flyrecd
[ ! -e "$(instance ev)" ] || fail "stop has left the instance"
container_stop
