#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Follows flyrec-fleet(7), "Setting up ten hosts", to the letter: its commands run as they are printed, on ten
# hosts that have a name, /etc/flyrec, /run/flyrec, users and a flyrecd of their own, by namespaces. Only
# apt-get and systemctl are not those of the machine: they do what the units say, with their users.
# tests: all
# time-limit: 400
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/fleet-lib.sh"
need_tracefs
need_command jq mosquitto openssl unshare nsenter setpriv systemd-socket-activate
need_event sched:sched_process_exit
[ -x "$BUILD/flyrec-fleet" ] || skip "built without mosquitto"
getent group mosquitto >/dev/null || skip "there is no group mosquitto"
cd "$T"
chmod 755 "$T"
WHO=61201 WHO_ELSE=61202 # flyrec-fleet, flyrec

mkdir bin
cp "$BUILD"/flyrec-fleet "$BUILD"/flyrec-announce "$BUILD"/flyrec-follow "$BUILD"/flyrecctl bin
cat >bin/systemctl <<-END
	#!/bin/bash
	set -eu
	as() { # UNIT COMMAND...
		unit=\$1
		shift
		"\$@" >>"$T/\$(uname -n).\$unit.log" 2>&1 </dev/null &
		echo \$! >>"$T/pids"
	}
	user=(setpriv --reuid=$WHO --regid=$WHO --groups=$WHO,$WHO_ELSE)
	case "\${0##*/} \$*" in
	"apt-get install "*) ;;
	"systemctl restart mosquitto")
		printf 'user mosquitto\\nlog_dest stderr\\npersistence false\\n' | cat - /etc/mosquitto/conf.d/*.conf >"$T/mosquitto.conf"
		as mosquitto mosquitto -c "$T/mosquitto.conf"
		;;
	"systemctl enable --now flyrec-announce.socket flyrec-announce.service flyrec-follow.service")
		as flyrec-announce systemd-socket-activate --setenv=FLYREC_TEST_PREFIX --datagram --listen=/run/flyrec/trigger "\${user[@]}" "$T/bin/flyrec-announce"
		as flyrec-follow "\${user[@]}" "$T/bin/flyrec-follow"
		until [ -S /run/flyrec/trigger ]; do sleep 0.05; done
		;;
	*)
		echo "\${0##*/}: what is \$*?" >&2
		exit 1
		;;
	esac
END
chmod 755 bin/systemctl
ln bin/systemctl bin/apt-get
# What systemctl has started are no children of this shell
is_ours() { # PID
	grep -qsxz "FLYREC_TEST_PREFIX=$PREFIX" "/proc/$1/environ"
}
is_gone() {
	! is_ours "$1"
}
end_all() {
	local pid
	while read -r pid; do
		is_gone "$pid" || kill -TERM "$pid" 2>/dev/null || true
	done <"$T/pids"
	while read -r pid; do
		wait_for 30 is_gone "$pid" || echo "process $pid does not end" >&2
	done <"$T/pids"
}
: >pids
at_end end_all

# machine NAME: one of its own
declare -A MACHINE=()
machine() {
	local d=$T/$1
	mkdir -p "$d"/{etc,work,run/flyrec,state,here}
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --uts --propagation=private bash -euc '
		hostname "$2"
		mount -t overlay -o "lowerdir=/etc,upperdir=$1/etc,workdir=$1/work" overlay /etc
		mount --bind "$1/run" /run
		mount -t tmpfs tmpfs /usr/share/doc
		mkdir -p /etc/flyrec /usr/share/doc/flyrec/examples
		mount --bind "$3/doc/examples" /usr/share/doc/flyrec/examples
		sed -i "/^flyrec/d" /etc/passwd /etc/group
		echo "flyrec-fleet:x:$4:$4::/:/usr/sbin/nologin" >>/etc/passwd
		printf "flyrec-fleet:x:%s:\nflyrec:x:%s:flyrec-fleet\n" "$4" "$5" >>/etc/group
		echo "127.0.0.1 localhost broker.example.com" >/etc/hosts
		touch "$1/made"
		exec sleep infinity' "$1" "$d" "$1" "$SRC" "$WHO" "$WHO_ELSE" </dev/null &
	MACHINE[$1]=$!
	CHILDREN+=("$!")
}
made() {
	[ -e "$T/$1/made" ]
}
# at NAME COMMAND...: there, in the directory that has what was copied to it
at() {
	of "$1"
	"${THERE[@]}" "${@:2}"
}
# of NAME: THERE, by which a command runs there as the same process. A function in the background would be a shell
# that waits for it, and is all that a signal reaches.
of() {
	THERE=(nsenter "--target=${MACHINE[$1]}" --mount --uts "--wd=$T/$1/here" env "PATH=$T/bin:$PATH")
}
# follow_page NAME PART
follow_page() {
	page_commands "$2" >"$T/$1.sh"
	at "$1" bash -eu "$T/$1.sh" >"$T/$1.out" 2>&1 || fail "$1: $2: $(cat "$T/$1.out")"
}

hosts=(web1 web2 web3 web4 web5 web6 web7 web8 web9 web10)
for name in "${hosts[@]}" broker.example.com; do
	machine "$name"
done
for name in "${hosts[@]}" broker.example.com; do
	wait_for 20 made "$name" || fail "no machine $name"
done

echo "== the CA"
page_commands ca >ca.sh
bash -eu ca.sh >ca.out 2>&1 || fail "the CA: $(cat ca.out)"

echo "== the broker"
cp fleet-ca/{ca.crt,broker.example.com.crt,broker.example.com.key} broker.example.com/here
follow_page broker.example.com broker
listens() {
	(: </dev/tcp/127.0.0.1/8883) 2>/dev/null
}
wait_for 10 listens || fail "no broker: $(cat broker.example.com.mosquitto.log)"

echo "== each host"
for name in "${hosts[@]}"; do
	mkdir -p "$name.conf/sessions.d"
	printf '[Daemon]\nInstancePrefix=%s%s.\n' "$PREFIX" "$name" >"$name.conf/flyrecd.conf"
	printf '[Trace]\nEvent=sched:sched_process_exit\nBufferSize=128K\n[Snapshot]\nLast=5s\nAnalyze=no\n[Storage]\nFlushSec=200ms\n' \
		>"$name.conf/sessions.d/sched.conf"
	of "$name"
	background "${THERE[@]}" "$FLYRECD" "--config-dir=$T/$name.conf" "--state-dir=$T/$name/state" 2>"$name.flyrecd.log" </dev/null
done
records() {
	at "$1" flyrecctl --json status 2>/dev/null | jq -e '.sessions[0].state == "recording"' >/dev/null
}
for name in "${hosts[@]}"; do
	wait_for 60 records "$name" || fail "$name: $(cat "$name.flyrecd.log")"
	cp fleet-ca/{ca.crt,"$name.crt","$name.key"} "$name/here"
	follow_page "$name" host
	grep -qE '^ok +rights +may not speak' "$name.out" || fail "$name: $(cat "$name.out")"
	! grep -q '^FAIL' "$name.out" || fail "$name: $(cat "$name.out")"
done
cat web10.out

echo "== to try it"
follow_page web3 try
has_peer() {
	at "$1" flyrecctl --json list | jq -e '.files[] | select(.path | endswith("-peer.dat"))' >/dev/null
}
for name in "${hosts[@]}"; do
	[ "$name" = web3 ] || wait_for 30 has_peer "$name" || fail "$name has no snapshot: $(cat "$name".*.log)"
	[ "$name" = web3 ] || grep -q ' of web3 is in ' "$name.flyrec-follow.log" || fail "$name: $(cat "$name.flyrec-follow.log")"
done
! has_peer web3 || fail "web3 asks itself"
