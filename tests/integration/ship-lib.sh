# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Helpers for tests of flyrec-fleet ship and pull: hosts that share a store, each a flyrecd with
# directories and an instance prefix of its own. Read after lib.sh.

need_fleet() {
	[ -x "$BUILD/flyrec-fleet" ] || skip "flyrec-fleet is not built (libmosquitto?)"
	need_command rclone jq zstd sha256sum
}

export FLYREC_FLEET=$BUILD/flyrec-fleet FLYRECCTL
# $STORE is where the store's files are here, however it is reached: $REMOTE; HOST whose turn it is
STORE=$T/store REMOTE='' HOST=h1 SHIP_PID='' RCLONE_CONFIG=$T/rclone.conf
fleet_config() { # LINE...: of [Store], for $HOST
	mkdir -p "$T/$HOST"
	printf '%s\n' "[Fleet]" Group=web "Host=$HOST" "[Store]" "Remote=${REMOTE:-$STORE}" "Config=$RCLONE_CONFIG" \
		Rate=100M RetrySec=1s PollSec=1s "$@" >"$T/$HOST/fleet.conf"
}

# fleet VERB ARGUMENT...: as $HOST
fleet() {
	local verb=$1
	shift
	FLYREC_FLEET_CONFIG=$T/$HOST/fleet.conf FLYREC_RUNTIME_DIR=$RUNTIME STATE_DIRECTORY=$T/$HOST/fleet \
		RUNTIME_DIRECTORY=$T/$HOST/fleet-run "$SRC/fleet/flyrec-fleet-$verb" "$@"
}

# ship_start: as a service, a process group of its own, which ends as systemd ends one
ship_start() {
	set -m
	FLYREC_FLEET_CONFIG=$T/$HOST/fleet.conf FLYREC_RUNTIME_DIR=$RUNTIME STATE_DIRECTORY=$T/$HOST/fleet \
		RUNTIME_DIRECTORY=$T/$HOST/fleet-run "$SRC/fleet/flyrec-fleet-ship" 2>>"$T/$HOST/ship.log" &
	SHIP_PID=$!
	set +m
	CHILDREN+=("$SHIP_PID")
}
ship_processes() { # [HOST-PATTERN]: of its cgroup, as it were
	grep -lzxs "STATE_DIRECTORY=$T/${1:-$HOST}/fleet" /proc/[0-9]*/environ | cut -d / -f 3
}
ship_stop() { # SIGNAL
	if [ "$1" = KILL ]; then
		wait_for 10 ship_killed || fail "ship cannot be killed: $(ship_processes)"
	else
		kill -s "$1" "$SHIP_PID"
	fi
	wait_for 20 ended "$SHIP_PID" || fail "ship does not end"
	wait "$SHIP_PID" 2>/dev/null || true
	wait_for 10 no_ship_processes || fail "ship has left processes: $(ship_processes)"
}
# all of them, as systemd does: also those that have begun meanwhile
ship_killed() {
	ship_processes | xargs -r kill -s KILL 2>/dev/null || true
	no_ship_processes
}
no_ship_processes() {
	[ -z "$(ship_processes "$@")" ]
}
# what a service that a test had not stopped was sending
ships_end() {
	wait_for 20 no_ship_processes '[^/]*' || echo "left by ship: $(ship_processes '[^/]*')" >&2
}
at_end ships_end

# serve sftp|dav|s3 PORT: $STORE. Its pid is in SERVER_PID
serve() {
	local options=()
	case $1 in
	# what comes is written at once, as other servers do: so that half of it is there after a failure
	sftp) options=(rclone serve sftp --user=flyrec --pass=secret --streaming-upload-cutoff=0) ;;
	dav) options=(rclone serve webdav) ;;
	s3) options=(node "${FLYREC_NPM:-$BUILD/npm}/node_modules/s3rver/bin/s3rver.js" --configure-bucket flyrec
		--address 127.0.0.1 --port "$2" --directory "$STORE") ;;
	esac
	[ "$1" = s3 ] || options+=("--addr=127.0.0.1:$2" "$STORE")
	background "${options[@]}" >>"$T/serve.log" 2>&1
	SERVER_PID=$!
	wait_for 10 port_open "$2" || fail "the $1 server does not start: $(tail -n 3 "$T/serve.log")"
}
serve_stop() {
	kill "$SERVER_PID"
	wait_for 10 ended "$SERVER_PID" || fail "the server does not end"
}
port_open() {
	(: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}
# a port that nobody has
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
remotes() { # SFTP-PORT WEBDAV-PORT S3-PORT
	cat >"$RCLONE_CONFIG" <<-EOF
		[sftp]
		type = sftp
		host = 127.0.0.1
		port = $1
		user = flyrec
		pass = $(rclone obscure secret)
		[dav]
		type = webdav
		url = http://127.0.0.1:$2
		vendor = other
		[s3]
		type = s3
		provider = Other
		access_key_id = S3RVER
		secret_access_key = S3RVER
		endpoint = http://127.0.0.1:$3
		force_path_style = true
	EOF
}

snapshots() { # REASON [SESSION]: their paths, the newest last
	find "$STATE/${2:-demo}/snapshot" -name "*-$1.dat" 2>/dev/null | sort
}
newest() { # REASON
	snapshots "$1" | tail -n 1
}
more_snapshots() { # COUNT REASON
	[ "$(snapshots "$2" | wc -l)" -gt "$1" ]
}
# triggered: a trigger's snapshot; its path is in SNAPSHOT, its id in ID
triggered() {
	local n
	n=$(snapshots control | wc -l)
	ctl trigger demo "${1:-slow}" || fail "trigger"
	wait_for 20 more_snapshots "$n" control || fail "no snapshot"
	SNAPSHOT=$(newest control)
	wait_for 20 listed "$SNAPSHOT" || fail "$SNAPSHOT has no id"
	# shellcheck disable=SC2034 # for the tests
	ID=$(ids "$SNAPSHOT")
}
listed() {
	[ -n "$(ids "$1")" ]
}
ids() { # FILE
	ctl --json list | jq -r --arg path "$1" '.files[] | select(.path == $path) | .ids[0] // ""'
}
in_store() { # NAME; s3rver has a folder for the bucket, and its own endings
	if [ "$HOST" = s3 ]; then
		echo "$STORE/flyrec/$1._S3rver_object"
	else
		echo "$STORE/$1"
	fi
}
object() { # FILE: where it is in the store
	in_store "web/data/$HOST/demo/${1##*/}"
}
record() { # KIND FILE ID: of the index
	in_store "web/index/$3/$HOST/demo/${2##*/}.$1.json"
}
stored() { # FILE ID
	[ -e "$(record stored "$1" "$2")" ]
}

# intact FILE ID: what the store has is the same recording, and as the index says
intact() {
	local there
	there=$(object "$1")
	[ -e "$there" ] || fail "wrong data: $1 is not in the store: $(find "$STORE" -type f | head -n 20)"
	[ "$(sha256sum <"$there")" = "$(jq -r .sha256 "$(record stored "$1" "$2")")  -" ] || fail "wrong data: checksum of $1"
	"$FLYRECCTL" verify "$there" >"$T/verify" || fail "wrong data: $there: $(cat "$T/verify")"
	trace-cmd report "$1" >"$T/report.here" 2>/dev/null
	trace-cmd report "$there" >"$T/report.there" 2>/dev/null
	[ -s "$T/report.here" ] || fail "wrong data: no events in $1"
	cmp "$T/report.here" "$T/report.there" || fail "wrong data: other events in the store: $1"
}
