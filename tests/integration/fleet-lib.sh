# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Several hosts on one machine: each has a flyrecd with directories and an instance prefix of its own,
# flyrec-announce and flyrec-follow; and a broker with certificates. Read after lib.sh.
#
#	fleet_pki h1 h2 h3       # certificates
#	broker_start
#	host_new h1 <<-EOF       # [Follow] and so on; sessions: on h1; session NAME
#	on h1                    # whose ctl, CONFIG, STATE, RUNTIME, FLYRECD_LOG are meant from now on
#	flyrecd_start; fleet_start announce follow
#
# Programs of hosts that net-lib.sh, read after this one, has given a network run there. BROKER_HOST, BROKER_ADDRESS
# and IN_BROKER_NET, if set before fleet_pki, are where the broker is.

PKI=$T/pki BROKER_PID='' BROKER_PORT='' BROKER_LOG=$T/broker.log FLEET_HOST=''
BROKER_HOST=localhost BROKER_ADDRESS=127.0.0.1 IN_BROKER_NET=() IN_NET=()
declare -A HOST_FLYRECD=() HOST_PROGRAM=() NET_PID=()

# openssl_quiet ARGUMENT...: says something only if it fails
openssl_quiet() {
	openssl "$@" >"$T/openssl.log" 2>&1 || fail "openssl $1: $(cat "$T/openssl.log")"
}

# fleet_pki NAME...: a CA, the broker's certificate, and those of hosts NAME and of "admin"
fleet_pki() {
	local name
	mkdir -p "$PKI/new"
	: >"$PKI/index"
	echo 01 >"$PKI/serial"
	cat >"$PKI/ca.conf" <<-EOF
		[ca]
		default_ca = fleet
		[fleet]
		database = $PKI/index
		serial = $PKI/serial
		new_certs_dir = $PKI/new
		default_md = sha256
		policy = any
		copy_extensions = copy
		unique_subject = no
		[any]
		commonName = supplied
	EOF
	openssl_quiet req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=fleet \
		-keyout "$PKI/ca.key" -out "$PKI/ca.crt"
	fleet_certificate broker localhost
	for name in "$@" admin; do
		fleet_certificate "$name" "$name"
	done
}

# fleet_certificate FILE NAME [BEGIN END [CA]]: PKI/FILE.crt and .key for NAME; times as in openssl-ca(1)
fleet_certificate() {
	openssl_quiet req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" \
		-addext "subjectAltName=DNS:$2,IP:$BROKER_ADDRESS" -keyout "$PKI/$1.key" -out "$PKI/$1.csr"
	openssl_quiet ca -batch -config "$PKI/ca.conf" -cert "$PKI/${5:-ca}.crt" -keyfile "$PKI/${5:-ca}.key" \
		-startdate "${3:-$(date -u -d yesterday +%Y%m%d%H%M%SZ)}" -enddate "${4:-$(date -u -d tomorrow +%Y%m%d%H%M%SZ)}" \
		-notext -in "$PKI/$1.csr" -out "$PKI/$1.crt"
}

# broker_start [CERTIFICATE]: mosquitto, on the loopback unless said otherwise, always on the same port
broker_start() {
	[ -n "$BROKER_PORT" ] ||
		BROKER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	mkdir -p "$T/broker"
	sed "s,flyrec/snapshot/all/,flyrec/snapshot/web/," "$SRC/doc/examples/fleet-acl" >"$T/broker/acl"
	sed -e "s,^listener .*,listener $BROKER_PORT $BROKER_ADDRESS," -e "s,/etc/mosquitto/fleet/ca.crt,$PKI/ca.crt," \
		-e "s,/etc/mosquitto/fleet/broker\.,$PKI/${1:-broker}.," -e "s,/etc/mosquitto/fleet/acl,$T/broker/acl," \
		-e /^message_size_limit/d \
		"$SRC/doc/examples/fleet-mosquitto.conf" >"$T/broker/mosquitto.conf"
	printf 'user root\npersistence true\npersistence_location %s/\nlog_dest stderr\n' \
		"$T/broker" >>"$T/broker/mosquitto.conf"
	background "${IN_BROKER_NET[@]}" mosquitto -c "$T/broker/mosquitto.conf" 2>>"$BROKER_LOG"
	BROKER_PID=$!
	wait_for 10 broker_listens || fail "no broker: $(tail -n 3 "$BROKER_LOG")"
}
broker_listens() {
	# shellcheck disable=SC2016 # for the inner shell
	"${IN_BROKER_NET[@]}" bash -c ': <"/dev/tcp/$1/$2"' listens "$BROKER_ADDRESS" "$BROKER_PORT" 2>/dev/null || ended "$BROKER_PID"
}
broker_stop() { # [SIGNAL]
	kill "-${1:-TERM}" "$BROKER_PID"
	wait "$BROKER_PID" 2>/dev/null || true
}

# host_new NAME: a host whose fleet.conf has standard input, too
host_new() {
	mkdir -p "$T/$1/etc/sessions.d" "$T/$1/run" "$T/$1/state" "$T/$1"/{announce,follow}
	printf '[Daemon]\nInstancePrefix=%s%s.\n' "$PREFIX" "$1" >"$T/$1/etc/flyrecd.conf"
	{
		printf '[Fleet]\nGroup=web\nHost=%s\n[Broker]\nHost=%s\nPort=%s\nCA=%s/ca.crt\nCertificate=%s/%s.crt\nKey=%s/%s.key\n' \
			"$1" "$BROKER_HOST" "$BROKER_PORT" "$PKI" "$PKI" "$1" "$PKI" "$1"
		cat
	} >"$T/$1/fleet.conf"
}

# on NAME: the host that is meant from now on
on() {
	[ -z "$FLEET_HOST" ] || HOST_FLYRECD[$FLEET_HOST]=$FLYRECD_PID
	FLEET_HOST=$1 FLYRECD_PID=${HOST_FLYRECD[$1]:-}
	# shellcheck disable=SC2034 # for lib.sh
	CONFIG=$T/$1/etc STATE=$T/$1/state RUNTIME=$T/$1/run FLYRECD_LOG=$T/$1/flyrecd.log
	IN_NET=()
	[ -z "${NET_PID[$1]:-}" ] || IN_NET=(nsenter "--net=/proc/${NET_PID[$1]}/ns/net")
}

# fleet_start PROGRAM...: announce, follow; their lines are in fleet_log
fleet_start() {
	local program
	for program in "$@"; do
		STATE_DIRECTORY=$T/$FLEET_HOST/$program background "${IN_NET[@]}" "$BUILD/flyrec-$program" \
			"--config=$T/$FLEET_HOST/fleet.conf" "--runtime-dir=$RUNTIME" 2>>"$(fleet_log "$program")"
		HOST_PROGRAM[$FLEET_HOST.$program]=$!
	done
	for program in "$@"; do
		wait_for 10 fleet_connected "$program" || fail "$FLEET_HOST: $program: $(cat "$(fleet_log "$program")")"
	done
}
fleet_log() { # PROGRAM
	echo "$T/$FLEET_HOST/$1.log"
}
# The broker says so: "New client connected from 127.0.0.1:40000 as flyrec-announce-h1 (p4, c0, k20, u'h1').";
# of who listens it does not say when it has begun to
fleet_connected() { # PROGRAM
	case $1 in
	follow) says follow 'Following ' ;;
	*) grep -q " as flyrec-$1-$FLEET_HOST (" "$BROKER_LOG" ;;
	esac
}
# fleet_stop PROGRAM: with SIGTERM, and status 0
fleet_stop() {
	local pid=${HOST_PROGRAM[$FLEET_HOST.$1]} status=0
	kill -TERM "$pid"
	wait_for 10 ended "$pid" || fail "$FLEET_HOST: $1 does not stop"
	wait "$pid" || status=$?
	[ "$status" = 0 ] || fail "$FLEET_HOST: $1 ended with status $status: $(tail -n 3 "$(fleet_log "$1")")"
}

# says PROGRAM PATTERN: in a line of its log, by now
says() {
	grep -qE -- "$2" "$(fleet_log "$1")"
}
# said_once PROGRAM PATTERN: it comes to that, and not more
said_once() {
	wait_for 20 says "$1" "$2" || fail "$FLEET_HOST: $1 does not say \"$2\": $(cat "$(fleet_log "$1")")"
	[ "$(grep -cE -- "$2" "$(fleet_log "$1")")" = 1 ] || fail "$FLEET_HOST: $1 says more than once: $2"
}
# said_once_each_time PROGRAM: that the broker is away, and that it is back, however often it was
said_once_each_time() {
	wait_for 20 says "$1" 'is away, trying again' || fail "$FLEET_HOST: $1 does not say that the broker is away"
	wait_for 20 says "$1" 'is back' || fail "$FLEET_HOST: $1 does not say that the broker is back"
	[ -z "$(grep -oE 'is away, trying again|is back' "$(fleet_log "$1")" | uniq -d)" ] ||
		fail "$FLEET_HOST: $1 says more than once: $(cat "$(fleet_log "$1")")"
}

# publish CERTIFICATE TOPIC-HOST ARGUMENT...: as mosquitto_pub(1)
publish() {
	"${IN_BROKER_NET[@]}" mosquitto_pub -V 5 -q 1 -h "$BROKER_HOST" -p "$BROKER_PORT" --cafile "$PKI/ca.crt" --cert "$PKI/$1.crt" --key "$PKI/$1.key" \
		-t "flyrec/snapshot/web/$2" "${@:3}"
}

# message HOST ID SINCE UNTIL [JQ-EXPRESSION]: as host HOST would send it; seconds before now
message() {
	jq -cn --arg host "$1" --arg id "$2" --argjson since "$3" --argjson until "$4" \
		"(now * 1000000 | floor) as \$now | { v: 1, id: \$id, host: \$host, trigger: \$now,
		since: (\$now - \$since * 1000000 | floor), until: (\$now - \$until * 1000000 | floor),
		reason: \"event\", session: \"rec\", text: \"\" } | ${5:-.}"
}

# peer_files [ID]: how many snapshots the host has that others asked for, or that have the ID
peer_files() {
	ctl --json list | jq --arg id "${1:-}" \
		'[.files[] | select(if $id == "" then .path | endswith("-peer.dat") else .ids | index($id) end)] | length'
}
has_id() {
	[ "$(peer_files "$1")" -ge 1 ]
}

# watch_asks HOST...: when the line of a request comes to flyrecd's log of one of these hosts; into $T/asked
watch_asks() {
	local logs=("${@/#/$T/}")
	: >"$T/asked"
	python3 - "$T/asked" "${logs[@]/%//flyrecd.log}" <<-'END' &
		import re, sys, time
		logs = [open(path) for path in sys.argv[2:]]
		with open(sys.argv[1], "w", buffering=1) as out:
		    while True:
		        for log in logs:
		            while line := log.readline():
		                if asked := re.search(r"Peer triggered, ([^,]*Z),", line):
		                    print(asked[1], int(time.time() * 1000000), file=out)
		        time.sleep(0.001)
	END
	CHILDREN+=($!)
}
asked() { # COUNT: there were so many
	[ "$(wc -l <"$T/asked")" -ge "$1" ]
}
# asks_took: milliseconds from the trigger to each request, in $T/took
asks_took() {
	python3 - "$T/asked" <<-'END' >"$T/took" || fail "times: $(cat "$T/asked")"
		import calendar, sys, time
		for line in open(sys.argv[1]):
		    moment, asked = line.split()
		    at, usec = moment[moment.rindex("-") + 1:-1].split(".")
		    print((int(asked) - calendar.timegm(time.strptime(at, "%Y%m%dT%H%M%S")) * 1000000 - int(usec)) / 1000)
	END
	sort -n "$T/took" | awk '{ v[NR] = $1 } END { printf "%d requests after %.1f to %.1f ms, median %.1f ms\n", NR, v[1], v[NR], v[int((NR + 1) / 2)] }'
}

# trigger TEXT: of session rec on h1; its id is in ID
ID='' LAST_ID=''
trigger() {
	on h1
	ctl trigger rec "$1" || fail "trigger"
	wait_for 10 new_id || fail "no id of $1: $(cat "$(fleet_log announce)")"
}
new_id() {
	ID=$(ctl --json list rec | jq -r '[.files[] | select(.path | endswith("-control.dat"))] | last | .ids[0] // empty')
	[ -n "$ID" ] && [ "$ID" != "$LAST_ID" ] && LAST_ID=$ID
}
have_it() { # ID HOST...
	local host
	for host in "${@:2}"; do
		on "$host"
		wait_for 20 has_id "$1" || fail "$host does not have $1: $(cat "$(fleet_log follow)"; tail -n 3 "$FLYRECD_LOG")"
	done
}

# covered ID SECONDS: percent of the last SECONDS of h1's window that this host's file has
covered() {
	local window
	window=$(on h1; ctl --json list rec | jq --arg id "$1" --argjson s "$2" \
		'.files[] | select(.ids | index($id)) | [.end_usec - $s * 1000000, .end_usec]')
	ctl --json list rec | jq --arg id "$1" --argjson w "$window" \
		'.files[] | select(.ids | index($id)) | (([.end_usec, $w[1]] | min) - ([.start_usec, $w[0]] | max)) * 100 / ($w[1] - $w[0]) | floor'
}

# page_commands NAME: those between ".\" run: NAME" and ".\" end" of flyrec-fleet(7), as a reader sees them
page_commands() {
	sed -n "/^\.\\\\\" run: $1\$/,/^\.\\\\\" end\$/p" "$SRC/man/flyrec-fleet.7" | sed '/^\./d; s/\\-/-/g; s/\\e/\\/g' >"$T/commands"
	[ -s "$T/commands" ] || fail "the page has no commands of $1"
	cat "$T/commands"
}
