#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 420
#
# The services of flyrec-fleet as units, with their users and sandboxes: two hosts and a broker, set up by the commands
# of flyrec-fleet(7) under systemd in containers, each with a network of its own; a trigger on either, and the other
# one has the same moment; its file comes into the store once, and is removed here; nothing is refused by a sandbox.
# (The time limit includes making the containers' tree, once.)
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$SRC/tests/integration/container.sh"
. "$(dirname "$0")/fleet-lib.sh"
. "$(dirname "$0")/net-lib.sh"
need_tracefs
need_command jq openssl ps rclone
need_event sched:sched_process_exit
[ -x "$BUILD/flyrec-fleet" ] || skip "built without mosquitto"
cd "$T"

CONTAINER_TREE=container-fleet CONTAINER_PACKAGES+=,jq,libmosquitto1,mosquitto,openssl,rclone,zstd
declare -A GUESTS=() NSPAWNS=()
PATHS=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

at() { # NAME: the host that is meant from now on
	CONTAINER=$T/$1 CONFIG=$T/$1/etc STATE=$T/$1/state GUEST_PID=${GUESTS[$1]:-} NSPAWN=${NSPAWNS[$1]:-}
	# shellcheck disable=SC2034 # for container.sh
	NSPAWN_BINDS=("--bind=$CONFIG:/etc/flyrec" "--bind=$STATE:/var/lib/flyrec")
}
run() { # COMMAND...: as its administrator
	guest env "PATH=$PATHS" "$@"
}
journal() { # UNIT
	guest journalctl --sync
	guest journalctl --quiet --output=cat "--unit=$1"
}
boot() { # NAME
	at "$1"
	mkdir -p "$CONFIG" "$CONTAINER/upper/etc"
	echo "$1" >"$CONTAINER/upper/etc/hostname"
	printf '[Daemon]\nInstancePrefix=%s%s.\n' "$PREFIX" "$1" >"$CONFIG/flyrecd.conf"
	session sched <<-EOF
		[Trace]
		Event=sched:sched_process_exit
		BufferSize=256K
		[Storage]
		FlushSec=200ms
		[Snapshot]
		Last=5s
		Analyze=no
	EOF
	# shellcheck disable=SC2034 # for container.sh
	NSPAWN_NETWORK=("--network-namespace-path=/proc/${NET_PID[$1]}/ns/net")
	container_start flyrecd.service
	GUESTS[$1]=$GUEST_PID NSPAWNS[$1]=$NSPAWN
	echo "${NET_ADDRESS[web1]} broker.example.com" >>"$CONTAINER/root/etc/hosts"
	# What the package would have brought is there, at another place
	ln -s /bin/true "$CONTAINER/root/usr/local/bin/apt-get"
	mkdir -p "$CONTAINER/root/usr/share/doc"
	ln -s /usr/local/share/doc/flyrec "$CONTAINER/root/usr/share/doc/flyrec"
}
# follow_page PART FILE...: in a directory that has copies of these files
follow_page() {
	page_commands "$1" >"$CONTAINER/root/root/$1.sh"
	[ $# = 1 ] || cp "${@:2}" "$CONTAINER/root/root"
	run bash -euc "cd /root; . ./$1.sh" >"$CONTAINER/$1.out" 2>&1 || fail "$CONTAINER: $1: $(cat "$CONTAINER/$1.out")"
}
records() {
	run flyrecctl --json status 2>/dev/null | jq -e '.sessions[] | select(.name == "sched").state == "recording"' >/dev/null
}
property() { # UNIT PROPERTY
	guest systemctl show "--property=$2" --value "$1"
}
files() { # REASON: paths of its snapshots
	run flyrecctl --json list | jq -r --arg why "-$1.dat" '.files[] | select(.path | endswith($why)) | .path'
}
of_id() { # ID
	run flyrecctl --json list | jq -r --arg id "$1" '.files[] | select(.ids | index($id)) | .path'
}
has() { # ID
	[ -n "$(of_id "$1")" ]
}
# triggered TEXT: here; ID is its id
triggered() {
	local n
	n=$(files control | wc -l)
	run flyrecctl trigger sched "$1" || fail "trigger"
	more_files() { [ "$(files control | wc -l)" -gt "$n" ]; }
	wait_for 20 more_files || fail "no snapshot: $(journal flyrecd | tail -n 3)"
	ID=$(run flyrecctl --json list | jq -r '[.files[] | select(.path | endswith("-control.dat"))] | sort_by(.path) | last.ids[0]')
}
must_have() { # ID NAME...
	local name
	for name in "${@:2}"; do
		at "$name"
		wait_for 20 has "$1" || fail "$name does not have $1: $(journal flyrec-follow; journal flyrec-announce; journal flyrecd | tail -n 3)"
	done
}
# all_well: as the services' user; what it prints is in "said"
all_well() {
	run runuser -u flyrec-fleet -- env "PATH=$PATHS" flyrec-fleet check >said 2>&1 || fail "check: $(cat said)"
	! grep '^FAIL' said || fail "check: $(cat said)"
}

echo "== two hosts"
net_new web1 web2 store
for name in web1 web2; do
	boot $name
done
page_commands ca >ca.sh
bash -eu ca.sh >ca.out 2>&1 || fail "the CA: $(cat ca.out)"
at web1
follow_page broker fleet-ca/{ca.crt,broker.example.com.crt,broker.example.com.key}
for name in web1 web2; do
	at $name
	wait_for 20 records || fail "$name does not record: $(journal flyrecd | tail -n 5)"
	follow_page host fleet-ca/{ca.crt,"$name.crt","$name.key"}
	! grep '^FAIL' "$CONTAINER/host.out" || fail "$name: $(cat "$CONTAINER/host.out")"
	all_well
	grep -qE "^ok +rights +may write to flyrec/snapshot/all/$name, and read it" said || fail "$name: $(cat said)"
	grep -qE '^ok +sessions +sched take' said || fail "$name: $(cat said)"
done
cat said

echo "== the units"
at web1
guest systemd-analyze --man=no verify flyrec-{announce,follow,fleet-ship,fleet-remove,ship@x}.service flyrec-announce.socket \
	flyrec-fleet-remove.path >said 2>&1 || fail "systemd-analyze verify: $(cat said)"
[ ! -s said ] || fail "systemd-analyze verify: $(cat said)"

echo "== who the services are"
for name in web1 web2; do
	at $name
	for program in announce follow; do
		pid=$(property flyrec-$program MainPID)
		[ "$(guest stat -c %U "/proc/$pid")" = flyrec-fleet ] || fail "$program runs as $(guest stat -c %U "/proc/$pid")"
		guest grep -qE '^CapEff:\s*0000000000000000$' "/proc/$pid/status" || fail "$program has capabilities"
		[ -z "$(guest nsenter --target "$pid" --mount ls -A /var/lib/flyrec)" ] || fail "$program sees recordings"
		! guest nsenter --target "$pid" --mount test -w /etc/flyrec/fleet || fail "$program could write to /etc"
	done
done

echo "== a trigger on either one"
at web1
follow_page try
at web2
has_peers() { [ -n "$(files peer)" ]; }
wait_for 20 has_peers || fail "web2 has no snapshot: $(journal flyrec-follow)"
for name in web2:web1 web1:web2; do
	at "${name%:*}"
	triggered "on ${name%:*}"
	must_have "$ID" "${name#*:}"
	path=$(of_id "$ID")
	[[ $path = *-peer.dat ]] || fail "$name: the snapshot is $path"
	journal flyrec-follow | grep -qF "$ID of ${name%:*} is in $path" || fail "$name: $(journal flyrec-follow)"
	verify "$STATE/${path#/var/lib/flyrec/}"
	[ "$(stat -c '%U:%a' "$STATE/${path#/var/lib/flyrec/}")" = root:640 ] || fail "$name: $(stat "$STATE/${path#/var/lib/flyrec/}")"
done

echo "== the broker is away, announce is restarted"
at web1
guest systemctl stop mosquitto
at web2
triggered "while the broker is away"
state=$CONTAINER/root/var/lib/flyrec-fleet/announce
wait_for 10 test -s "$state/$ID.json" || fail "what the broker has not got is not stored: $(journal flyrec-announce)"
guest systemctl restart flyrec-announce
at web1
guest systemctl start mosquitto
must_have "$ID" web1
at web2
all_told() { [ -z "$(ls "$state")" ]; }
wait_for 20 all_told || fail "left: $(ls "$state")"

echo "== flyrecd is restarted"
for name in web1 web2; do
	at $name
	guest systemctl restart flyrecd
	wait_for 20 records || fail "$name does not record: $(journal flyrecd | tail -n 5)"
done
at web1
triggered "after a restart"
must_have "$ID" web2

echo "== the store"
mkdir store-files
net_of store
background "${IN_NET[@]}" rclone serve webdav "--addr=${NET_ADDRESS[store]}:8080" "$T/store-files" >serve.log 2>&1
# shellcheck disable=SC2016 # for the inner shell
wait_for 10 "${IN_NET[@]}" bash -c ': 2>/dev/null <"/dev/tcp/$1/8080"' listens "${NET_ADDRESS[store]}" ||
	fail "no store: $(cat serve.log)"
for name in web1 web2; do
	at $name
	printf '[store]\ntype = webdav\nurl = http://%s:8080\nvendor = other\n' "${NET_ADDRESS[store]}" >"$CONFIG/rclone.conf"
	guest sh -c 'chgrp flyrec-fleet /etc/flyrec/rclone.conf && chmod 640 /etc/flyrec/rclone.conf'
	printf '[Store]\nRemote=store:flyrec\nRate=100M\nPollSec=1s\nRetrySec=1s\nRemove=yes\n' >>"$CONFIG/fleet.conf"
	all_well
	grep -qE '^ok +store +store:flyrec/all: written and read back' said || fail "$name: $(cat said)"
	# Else it gets nothing of a machine that is busy with other tests
	mkdir -p "$CONTAINER/root/etc/systemd/system/flyrec-fleet-ship.service.d"
	printf '[Service]\nNice=0\nCPUSchedulingPolicy=other\nIOSchedulingClass=best-effort\n' \
		>"$CONTAINER/root/etc/systemd/system/flyrec-fleet-ship.service.d/test.conf"
	guest systemctl daemon-reload
	guest systemctl --quiet enable --now flyrec-shipping.socket flyrec-fleet-ship.service flyrec-fleet-remove.path
done
# in_store NAME: its files there
in_store() {
	find "store-files/flyrec/all/data/$1" -name '*.dat' 2>/dev/null | sort
}
at web2
triggered "to be shipped"
path=$(of_id "$ID")
shipped=store-files/flyrec/all/data/web2/sched/${path##*/}
is_shipped() { [ -e "$(find "store-files/flyrec/all/index/$ID/web2" -name "${path##*/}.stored.json" 2>/dev/null)" ]; }
wait_for 120 is_shipped || fail "not shipped: $(journal flyrec-fleet-ship; journal 'flyrec-ship@*'; tail -n 3 serve.log)"
verify "$shipped"
[[ $(head -c 11 "$shipped" | tr -d '\027\010\104') == tracing7 ]] || fail "not compressed: $(journal flyrec-fleet-ship)"
is_removed() { [ ! -e "$STATE/${path#/var/lib/flyrec/}" ]; }
wait_for 20 is_removed || fail "not removed here: $(journal flyrec-fleet-remove; ls -la "$CONTAINER/root/var/lib/flyrec-fleet/ship/remove")"
woken() { [ -n "$(guest journalctl --quiet "--unit=flyrec-ship@*")" ]; }
wait_for 10 woken || fail "no unit was started for the snapshot"

echo "== once"
figure() { sed -n "s/^flyrec_fleet_$1 //p" "$CONTAINER/root/var/lib/flyrec-fleet/ship/metrics.prom"; }
all_shipped() { [ "$(figure shipping_backlog_files) $(figure shipping_entries_backlog)" = "0 0" ]; }
wait_for 120 all_shipped || fail "backlog: $(cat "$CONTAINER/root/var/lib/flyrec-fleet/ship/metrics.prom")"
[ "$(figure shipped_files_total)" = "$(in_store web2 | wc -l)" ] || fail "$(figure shipped_files_total) sent, there are $(in_store web2)"
before=$(in_store web2 | xargs stat -c '%n %i %y %s')
guest systemctl restart flyrec-fleet-ship
triggered "after a restart of ship"
path=$(of_id "$ID")
wait_for 120 is_shipped || fail "not shipped after a restart: $(journal flyrec-fleet-ship)"
[ "$(in_store web2 | grep -vF "${path##*/}" | xargs stat -c '%n %i %y %s')" = "$before" ] || fail "wrong data: sent again: $before"

echo "== pulled"
at web1
must_have "$ID" web1
run flyrec-fleet pull --wait=120 -o /root/pulled "$ID" >pulled 2>&1 || fail "pull: $(cat pulled)"
[ "$(wc -l <pulled)" = 2 ] || fail "pull: $(cat pulled)"
verify "$CONTAINER"/root/root/pulled/web{1,2}/sched/snapshot/*.dat

echo "== nothing is refused, nothing has failed"
for name in web1 web2; do
	at $name
	all_well
	failed=$(guest systemctl list-units --plain --no-legend --failed 'flyrec*')
	[ -z "$failed" ] || fail "$name: $failed"
	guest journalctl --sync
	guest journalctl --quiet --boot '--unit=flyrec*' >"$CONTAINER/journal"
	! grep -iE 'denied|not permitted|Read-only file|status=[0-9]+/SYS|core-dump' "$CONTAINER/journal" || fail "$name: a sandbox is too narrow"
	for program in announce follow fleet-ship; do
		[ "$(property flyrec-$program.service NRestarts)" = 0 ] || fail "$name: $program was restarted"
		[ "$(property flyrec-$program.service ActiveState)" = active ] || fail "$name: $program is not active"
	done
done
for name in web2 web1; do
	at $name
	guest systemctl stop flyrec-announce.socket flyrec-announce flyrec-follow flyrec-fleet-ship
	for program in announce follow fleet-ship; do
		[ "$(property flyrec-$program.service Result)" = success ] || fail "$name: $program: $(property flyrec-$program.service Result)"
	done
	container_stop
done
