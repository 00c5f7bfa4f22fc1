#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# flyrec-fleet check says what is right, and for each thing that can be wrong - broker, certificates, rights,
# flyrecd, clock, configuration - what it is.
# time-limit: 120
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fleet-lib.sh"
need_tracefs
need_command jq mosquitto openssl python3
need_event sched:sched_process_exit
[ -x "$BUILD/flyrec-fleet" ] || skip "built without mosquitto"

fleet_pki h1 h2
broker_start
host_new h1 </dev/null
on h1
session rec <<-EOF
	[Trace]
	Event=sched:sched_process_exit
	BufferSize=256K
EOF
flyrecd_start
fleet_start announce

check() { # [CONFIG]: its lines are in "said", its status in STATUS
	STATUS=0
	FLYREC_FLEET_DIR=$T/nothing "$BUILD/flyrec-fleet" "--config=${1:-$T/h1/fleet.conf}" "--runtime-dir=$RUNTIME" check \
		>"$T/said" 2>&1 || STATUS=$?
}
right() { # WHAT PATTERN
	grep -qE "^ok +$1 +.*$2" "$T/said" || fail "not right: $1 $2: $(cat "$T/said")"
}
wrong() { # WHAT PATTERN: and the status says so
	grep -qE "^FAIL +$1 +.*$2" "$T/said" || fail "not found wrong: $1 $2: $(cat "$T/said")"
	[ "$STATUS" = 1 ] || fail "status $STATUS: $(cat "$T/said")"
}
with_certificate() { # CERTIFICATE KEY
	sed -e "s,^Certificate=.*,Certificate=$PKI/$1.crt," -e "s,^Key=.*,Key=$PKI/$2.key," "$T/h1/fleet.conf" >"$T/other.conf"
	check "$T/other.conf"
}

echo "== all is right"
check
cat "$T/said"
[ $STATUS = 0 ] || fail "status $STATUS"
right config 'host h1 of group web'
right certificate 'is of h1'
right certificate 'is signed by'
right broker 'has a certificate of'
right rights "may write to flyrec/snapshot/web/h1, and read it"
right rights 'may not speak for other hosts'
right flyrecd answers
right sessions '^?rec take'
right notices 'is there'
grep -qE '^(ok|WARN) +clock +is ' "$T/said" || fail "nothing of the clock"

echo "== certificates"
fleet_certificate expired h1 20200101000000Z 20200102000000Z
fleet_certificate early h1 20400101000000Z 20410101000000Z
openssl_quiet req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=h1 \
	-keyout "$PKI/stranger.key" -out "$PKI/stranger.crt"
with_certificate expired expired
wrong certificate 'expired at 2020-01-02 00:00:00 UTC'
wrong broker 'certificate expired'
with_certificate early early
wrong certificate 'not valid before 2040-01-01 00:00:00 UTC'
with_certificate stranger stranger
wrong certificate 'self.signed certificate'
with_certificate h1 h2
wrong certificate 'is not that of Certificate='
with_certificate h2 h2
wrong certificate 'is of "h2", Host= is "h1"'
wrong rights 'does not let this host write'
with_certificate nothing h1
wrong certificate 'nothing.crt: No such file'
echo hello >"$PKI/text.crt"
with_certificate text h1
wrong certificate 'no certificate in PEM form'
chmod 644 "$PKI/h1.key"
check
grep -qE '^WARN +certificate +.*all users may read it' "$T/said" || fail "a key for all: $(cat "$T/said")"
[ $STATUS = 0 ] || fail "a warning is status $STATUS"
chmod 600 "$PKI/h1.key"

echo "== the broker"
sed -i 's,^pattern write.*,&\npattern write flyrec/snapshot/web/+,' "$T/broker/acl"
kill -HUP "$BROKER_PID"
lax() {
	check
	grep -qE '^FAIL +rights +.*speak for others' "$T/said"
}
wait_for 10 lax || fail "an ACL that is too lax: $(cat "$T/said")"
wrong rights 'speak for others'
broker_stop
check
wrong broker 'localhost:[0-9]*: Connection refused'
fleet_certificate elsewhere elsewhere.example.com
broker_start elsewhere
check
wrong broker 'ostname mismatch'
broker_stop
fleet_certificate old localhost 20200101000000Z 20200102000000Z
broker_start old
check
wrong broker 'certificate has expired'
broker_stop
broker_start
sed 's,^Host=localhost,Host=there.is.no.such.host.invalid,' "$T/h1/fleet.conf" >"$T/other.conf"
check "$T/other.conf"
wrong broker 'there.is.no.such.host.invalid: '

echo "== flyrecd"
printf '[Follow]\nSessions=nosuch\n' | cat "$T/h1/fleet.conf" - >"$T/other.conf"
check "$T/other.conf"
wrong sessions 'Sessions=nosuch'
sed -i 's/^BufferSize=.*/&\n[Snapshot]\nPeerMaxSec=0/' "$CONFIG/sessions.d/rec.conf"
ctl reload || fail "reload"
check
wrong sessions 'none records and takes'
fleet_stop announce
check
wrong notices 'nobody listens'
flyrecd_stop
check
wrong flyrecd 'systemctl start flyrecd'

echo "== the configuration"
printf '[Broker]\nHosts=x\nPort=0\n[Follow]\nMaxWindowSec=-1\nSessions=a/b\n[Fleet]\nGroup=a b\nHost=-x\n[Foo]\nX=1\n' >"$T/other.conf"
check "$T/other.conf"
[ "$STATUS" = 1 ] || fail "status $STATUS"
for pattern in ":2: there is no key Hosts= in \[Broker\], did you mean 'Host'" ':3: Port=0: out of range' ':5: MaxWindowSec=-1: ' \
	':6: Sessions=a/b: ' ':8: Group=a b: not a name' ':9: Host=-x: not a name' ':11: there is no section \[Foo\]'; do
	grep -qE -- "other.conf$pattern" "$T/said" || fail "not said: $pattern: $(cat "$T/said")"
done
