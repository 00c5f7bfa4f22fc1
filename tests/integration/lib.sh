# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Helpers of the integration tests. A test is a script tests/integration/test-NAME.sh:
#
#	#!/bin/bash
#	# time-limit: 120
#	. "$(dirname "$0")/lib.sh"
#	need_tracefs
#	session demo <<-EOF
#	[Trace]
#	Event=sched
#	EOF
#	flyrecd_start
#	…
#	flyrecd_stop
#
# It runs with `set -eu`, ends with status 0 (passed), 77 (skipped: `skip REASON`) or anything else
# (failed: `fail REASON`), and may leave nothing behind: whatever was made through these helpers is
# taken away at the end, also after a failure. Everything a test makes carries $PREFIX or lies
# below $T, and its processes have FLYREC_TEST_PREFIX in their environment, by which `run-all`
# finds what was forgotten.
#
# Set for tests: T (scratch directory on a disk), PREFIX (of instance names), TRACEFS, SRC, BUILD,
# TOOLS (built test tools), CONFIG, STATE, RUNTIME (flyrecd's directories), FLYRECD, FLYRECCTL.

set -eu
shopt -s nullglob

SRC=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=${FLYREC_BUILD:-$SRC/build}
TOOLS=$BUILD/tests/tools
FLYRECD=$BUILD/flyrecd
# shellcheck disable=SC2034 # for the tests
FLYRECCTL=$BUILD/flyrecctl
TRACEFS=/sys/kernel/tracing
# not /tmp, which is in memory on many machines: O_DIRECT and file sizes would be other ones
T=${FLYREC_TEST_DIR:-$(mktemp -d "${TMPDIR:-/var/tmp}/flyrec-test.XXXXXX")}
PREFIX=${FLYREC_TEST_PREFIX:-t-${T##*.}.}
export FLYREC_TEST_DIR=$T FLYREC_TEST_PREFIX=$PREFIX
export LSAN_OPTIONS=suppressions=$SRC/tests/integration/lsan.supp:print_suppressions=0
CONFIG=$T/etc STATE=$T/state RUNTIME=$T/run
FLYRECD_PID='' FLYRECD_MANAGER='' FLYRECD_LOG=$T/flyrecd.log NOTIFY_LOG=$T/notify.log
LOAD_NAME=ld-${T##*.}
# shellcheck disable=SC2034 # for the tests
LOAD_FILTER="comm == \"$LOAD_NAME\""
CHILDREN=() MOUNTS=() LOOPS=() AT_END=() SYSCTLS=()

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

skip() {
	echo "SKIP: $*" >&2
	exit 77
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root"
}

# thorough: in `scripts/test --all`, or on its own with FLYREC_TESTS=all
thorough() {
	[ "${FLYREC_TESTS:-}" = all ]
}

has_sanitizers() {
	ldd "$FLYRECCTL" | grep -qE 'asan|ubsan|tsan'
}

# no_sanitizers WHY: what cannot hold with them
no_sanitizers() {
	! has_sanitizers || skip "with sanitizers: $1"
}

need_tracefs() {
	need_root
	[ -e "$TRACEFS/instances" ] || skip "no tracefs at $TRACEFS"
	mkdir "$TRACEFS/instances/${PREFIX}probe" 2>/dev/null || skip "cannot make tracefs instances here"
	rmdir "$TRACEFS/instances/${PREFIX}probe"
}

need_command() {
	local c
	for c in "$@"; do
		command -v "$c" >/dev/null || skip "needs $c"
	done
}

# need_format gdb|qemu4v|arm: skip where flyrecctl was built without (./configure --disable-FORMAT)
need_format() {
	local out
	case $1 in
	gdb) out=$("$FLYRECCTL" import --format=gdb-tfile -o - "$SRC/README.md" 2>&1) ;;
	qemu4v) out=$("$FLYRECCTL" import --format=qemu4v -o - "$SRC/README.md" 2>&1) ;;
	arm) out=$("$FLYRECCTL" verify "$SRC/tests/fixtures/arm-snapshot" 2>&1) ;;
	esac || true
	[[ $out != *"built without $1"* ]] || skip "$out"
}

# need_tool NAME...: those that are only built with libtracecmd
need_tool() {
	local t
	for t in "$@"; do
		[ -x "$TOOLS/$t" ] || skip "$t is not built (libtracecmd?)"
	done
}

# need_event SYSTEM:EVENT...
need_event() {
	local e
	for e in "$@"; do
		[ -d "$TRACEFS/events/${e/://}" ] || skip "this kernel lacks the event $e"
	done
}

# wait_for SECONDS COMMAND...: until it succeeds; asks each WAIT_PAUSE seconds
WAIT_PAUSE=0.02
pause() { # SECONDS
	sleep "$1"
}
wait_for() {
	local end=$((${EPOCHREALTIME/./} + $1 * 1000000))
	shift
	until "$@"; do
		[ "${EPOCHREALTIME/./}" -lt "$end" ] || return 1
		pause "$WAIT_PAUSE"
	done
}

# refused PATTERN COMMAND...: status 1 and one line that matches
refused() {
	local pattern=$1 status=0
	shift
	"$@" >"$T/out" 2>"$T/err" || status=$?
	[ "$status" = 1 ] || fail "status $status, not 1: $*: $(cat "$T/err")"
	grep -qE -- "$pattern" "$T/err" || fail "\"$(cat "$T/err")\" does not say $pattern: $*"
	[ "$(wc -l <"$T/err")" = 1 ] || fail "more than a line: $*: $(cat "$T/err")"
}

# prints [-x|-F] PATTERN COMMAND...: it ends with status 0, and grep finds PATTERN in what it prints
prints() {
	local options=() pattern
	while [[ $1 == -* ]]; do
		options+=("$1")
		shift
	done
	pattern=$1
	shift
	"$@" >"$T/printed" 2>&1 && grep -q "${options[@]}" -e "$pattern" "$T/printed"
}

# As of trace-cmd 3.1: later ones print flags, "d..1." and the like, between CPU and time
without_flags() {
	sed -E 's/^(.*-[0-9]+ +\[[0-9]+\]) [^ ]{5,8}( +[0-9]+\.?[0-9]*:)/\1\2/'
}
trace-cmd() {
	if [ "$1" = report ]; then
		(set -o pipefail && command trace-cmd "$@" | without_flags)
	else
		command trace-cmd "$@"
	fi
}

# background COMMAND...: as a child that the end of the test stops; its pid is in $!
background() {
	"$@" &
	CHILDREN+=($!)
}

# ended PID: no process of this shell's, or of fdstore-run's, runs under it. Another one may by now: where
# 32768 pids are all there are and tests fork thousands a second, it soon does.
ended() {
	local stat state parent
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
	read -r state parent _ <<<"${stat##*) }"
	[ "$state" = Z ] || { [ "$parent" != "$BASHPID" ] && [ "$parent" != "$FLYRECD_MANAGER" ]; }
}

process_state() {
	sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null
}

# --- flyrecd

# session NAME: write CONFIG/sessions.d/NAME.conf from standard input
session() {
	mkdir -p "$CONFIG/sessions.d"
	cat >"$CONFIG/sessions.d/$1.conf"
}

# daemon_config: add standard input to CONFIG/flyrecd.conf, which has this test's InstancePrefix
daemon_config() {
	mkdir -p "$CONFIG"
	[ -e "$CONFIG/flyrecd.conf" ] ||
		printf '[Daemon]\nInstancePrefix=%s\n' "$PREFIX" >"$CONFIG/flyrecd.conf"
	cat >>"$CONFIG/flyrecd.conf"
}

# instance SESSION: its directory in tracefs
instance() {
	echo "$TRACEFS/instances/$PREFIX$1"
}

flyrecd_command() {
	daemon_config </dev/null
	mkdir -p "$STATE" "$RUNTIME" "$CONFIG/sessions.d"
	FLYRECD_COMMAND=("$FLYRECD" "--config-dir=$CONFIG" "--state-dir=$STATE"
		"--runtime-dir=$RUNTIME" "$@")
}

# Process ids come again: what was said before this start does not count
flyrecd_forget_ready() {
	NOTIFIED=0
	[ ! -e "$NOTIFY_LOG" ] || NOTIFIED=$(wc -l <"$NOTIFY_LOG")
}
NOTIFIED=0

flyrecd_ready() {
	[ -e "$NOTIFY_LOG" ] || return 1
	tail -n "+$((NOTIFIED + 1))" "$NOTIFY_LOG" | grep -q "^$FLYRECD_PID: READY=1"
}

flyrecd_ready_or_dead() {
	flyrecd_ready || ended "$FLYRECD_PID"
}

flyrecd_wait_ready() {
	wait_for 20 flyrecd_ready_or_dead ||
		fail "flyrecd is not ready after 20 s: $(tail -n 5 "$FLYRECD_LOG")"
	flyrecd_ready || fail "flyrecd ended: $(tail -n 5 "$FLYRECD_LOG")"
}

# flyrecd_start [ARGUMENT...]: as a child, without a file descriptor store; waits until it is ready
flyrecd_start() {
	flyrecd_command "$@"
	if [ ! -S "$T/notify.socket" ]; then
		background "$TOOLS/notify-listen" "$T/notify.socket" "$NOTIFY_LOG"
		wait_for 5 test -S "$T/notify.socket" || fail "notify-listen does not start"
	fi
	flyrecd_forget_ready
	NOTIFY_SOCKET=$T/notify.socket background "${FLYRECD_COMMAND[@]}" 2>>"$FLYRECD_LOG"
	FLYRECD_PID=$! FLYRECD_MANAGER=
	flyrecd_wait_ready
}

# flyrecd_start_stored [ARGUMENT...]: under fdstore-run, which starts it again with its stored fds
# when it is killed; STORE_MAX of them at most. flyrecd_restarted after each restart.
flyrecd_start_stored() {
	flyrecd_command "$@"
	mkdir -p "$T/manager"
	NOTIFY_LOG=$T/manager/log
	rm -f "$T/manager/pid"
	NOTIFIED=0 # its log begins anew
	background "$TOOLS/fdstore-run" "--dir=$T/manager" "--max=${STORE_MAX:-512}" \
		"${FLYRECD_COMMAND[@]}" 2>>"$FLYRECD_LOG"
	FLYRECD_MANAGER=$!
	wait_for 5 test -s "$T/manager/pid" || fail "fdstore-run does not start"
	FLYRECD_PID=$(cat "$T/manager/pid")
	flyrecd_wait_ready
}

flyrecd_has_new_pid() {
	[ "$(cat "$T/manager/pid")" != "$FLYRECD_PID" ]
}

# flyrecd_restarted: wait until fdstore-run has started another process and that is ready
flyrecd_restarted() {
	wait_for 20 flyrecd_has_new_pid ||
		fail "flyrecd was not restarted: $(tail -n 5 "$FLYRECD_LOG")"
	FLYRECD_PID=$(cat "$T/manager/pid")
	flyrecd_wait_ready
}

# flyrecd_kill: SIGKILL. Under fdstore-run it comes back with its fds.
flyrecd_kill() {
	flyrecd_forget_ready
	kill -KILL "$FLYRECD_PID"
	if [ -n "$FLYRECD_MANAGER" ]; then
		flyrecd_restarted
	else
		wait "$FLYRECD_PID" 2>/dev/null || true
		FLYRECD_PID=
	fi
}

# ctl ARGUMENT...: flyrecctl, of this test's daemon
ctl() {
	"$FLYRECCTL" "--runtime-dir=$RUNTIME" "$@"
}

# flyrecd_hand_over: end it with the instances left tracing. Under fdstore-run the next one starts
# by itself, else use flyrecd_start.
flyrecd_hand_over() {
	flyrecd_forget_ready
	if [ -n "$FLYRECD_MANAGER" ]; then
		echo restart >"$T/manager/control"
		flyrecd_restarted
	else
		flyrecd_stop RTMIN+1
	fi
}

# flyrecd_stop [SIGNAL]: clean stop; fails unless it ends with status 0 within 30 seconds
flyrecd_stop() {
	local pid=${FLYRECD_MANAGER:-$FLYRECD_PID} status=0
	if [ -n "$FLYRECD_MANAGER" ]; then
		echo "stop ${1:-TERM}" >"$T/manager/control"
	else
		kill -s "${1:-TERM}" "$pid"
	fi
	wait_for 30 ended "$pid" || fail "flyrecd does not stop: $(tail -n 5 "$FLYRECD_LOG")"
	wait "$pid" || status=$?
	FLYRECD_PID='' FLYRECD_MANAGER=''
	[ "$status" = 0 ] ||
		fail "flyrecd ended with status $status: $(tail -n 5 "$FLYRECD_LOG")"
}

# --- figures

# msec MICROSECONDS: milliseconds, with a decimal, from then to now
msec() {
	local took=$((${EPOCHREALTIME/./} - $1))
	echo $((took / 1000)).$((took % 1000 / 100))
}

# median FILE: of its lines' numbers
median() {
	sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# peer_record FILE INSTANCE OPTION... -- COMMAND...: with trace-cmd, from an instance made for it unless
# it is there, and removed afterwards. Tasks that begin meanwhile have the names that events tell.
peer_record() {
	local file=$1 instance=$2 path options=()
	shift 2
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	[ -d "$TRACEFS/instances/$instance" ] || mkdir "$TRACEFS/instances/$instance"
	PEER_NAMES=still "$SRC/tests/tools/peer-trace-cmd" record --file-version 6 -o "$file" -B "$instance" \
		"${options[@]}" "$@" >"$T/peer-record.log" 2>&1 || fail "trace-cmd: $(cat "$T/peer-record.log")"
	# trace-cmd does not always remove them
	for path in "$TRACEFS/instances/$instance" "$TRACEFS/instances/$instance".*; do
		[ ! -d "$path" ] || rmdir "$path"
	done
}

# --- load, markers, and what became of them

# load_start [OPTION...]: `storm` on all CPUs until load_stop, under a name that "$LOAD_FILTER"
# tells from the storms of others on the machine
load_start() {
	ln -sf "$TOOLS/storm" "$T/$LOAD_NAME"
	background "$T/$LOAD_NAME" --duration=600 "$@" >"$T/load"
	LOAD_PID=$!
}

# load_bursts SECONDS PAUSE: `storm` for so long, again and again, until load_stop
load_bursts() {
	ln -sf "$TOOLS/storm" "$T/$LOAD_NAME"
	# shellcheck disable=SC2016 # for the inner shell
	background bash -c 'trap "kill \$!; exit 0" TERM
		while :; do "$0" --duration="$1" >/dev/null & wait $!; sleep "$2" & wait $!; done' \
		"$T/$LOAD_NAME" "$1" "$2"
	LOAD_PID=$!
}

load_stop() {
	kill -TERM "$LOAD_PID"
	wait "$LOAD_PID" || true
}

# markers_start SESSION [RATE [OPTION...]]: numbered markers on each CPU until markers_stop, which
# leaves in $T/expect what was written
markers_start() {
	local session=$1 rate=${2:-5000}
	shift $(($# < 2 ? $# : 2))
	background "$TOOLS/markers" "--instance=$PREFIX$session" "--rate=$rate" "$@" >"$T/expect"
	MARKERS_PID=$!
}

markers_stop() {
	kill -TERM "$MARKERS_PID"
	wait "$MARKERS_PID" || fail "markers: $(cat "$T/expect")"
}

# Events that were overwritten, or not written: on a machine that does not keep up
loss_is_said() {
	grep -q 'events were lost\|overwritten' "$FLYRECD_LOG"
}

# small_segments NAME EVENT: a session for markers, whose segments have 1 MiB
small_segments() {
	session "$1" <<-EOF
		[Trace]
		Event=$2
		BufferSize=8M
		[Storage]
		MaxFileSize=1M
		FlushSec=100ms
		KeepFree=0
	EOF
}

# list_segments NAME: the finished ones, in SEGMENTS. Are there more than three?
list_segments() {
	SEGMENTS=("$STATE/$1"/record/2*.dat)
	[ ${#SEGMENTS[@]} -gt 3 ]
}

# stall_excuses: the daemon has said that it lost events, and the test says at its top that a machine which
# stands still may cost some. Everything else that lacks is wrong data, which is never tried again.
stall_excuses() {
	grep -q '^# may-fail: ' "$0" && loss_is_said
}

# markers_are WHAT ARGUMENT...: check-markers finds nothing wrong, what it says is in $T/check.
# "wrong data": those who run the tests do not try that again. libtracecmd does not free all it has read.
markers_are() {
	local what=$1 status=0
	shift
	"$TOOLS/check-markers" "$@" >"$T/check" 2>&1 || status=$?
	case $status in
	0) ;;
	1) fail "$(stall_excuses || echo "wrong data: ")markers of $what: $(tail -n 5 "$T/check")" ;;
	*) fail "check-markers $*: status $status, $(tail -n 5 "$T/check")" ;;
	esac
}

# markers_check SESSION [OPTION...]: all of them in the session's segments, each once and in order
markers_check() {
	local session=$1 segments
	shift
	segments=("$STATE/$session"/record/2*.dat)
	[ ${#segments[@]} -gt 0 ] ||
		fail "$session has no finished segment: $(ls -lA "$STATE/$session/record" 2>&1; grep " $T" /proc/mounts)"
	markers_are "$session" "--expect=$T/expect" "$@" "${segments[@]}"
}

# verify FILE|DIR...: without a fault
verify() {
	"$FLYRECCTL" verify "$@" >"$T/verify" 2>&1 ||
		fail "wrong data: verify $*: $(grep -v ': ok\|: cpu [0-9]*: ' "$T/verify" | head -n 5)"
}

# functions_are KERNEL FILE LEAST: names of functions, one a line, LEAST at least: those that a file of
# ours shows (FILE) are the kernel's own (KERNEL). Of several names of an address trace-cmd takes another
# one than the kernel. Where a call that does not return is the last of a function, the kernel says
# __pfx_NEXT.
functions_are() {
	[ "$(wc -l <"$1")" = "$(wc -l <"$2")" ] ||
		fail "the kernel shows $(wc -l <"$1") functions, the file $(wc -l <"$2")"
	sort /proc/kallsyms >"$T/symbols"
	paste -d ' ' "$1" "$2" | awk -v least="$3" '
		NR == FNR {
			if ($3 ~ /^__pfx_/)
				caller[$3] = last
			else
				where[last = $3] = where[$3] " " $1
			next
		}
		{
			n++
			if ($1 == $2)
				next
			if ($1 ~ /^__pfx_/ && caller[$1] == $2) {
				calls++
				next
			}
			split(where[$1], at)
			for (i in at)
				if (index(where[$2] " ", " " at[i] " ")) {
					aliases++
					next
				}
			if (bad++ < 5)
				print "wrong: the kernel says " $1 ", the file " $2
		}
		END {
			printf "%d functions, %d by another name of the same address, %d behind a last call\n",
			       n, aliases, calls
			exit bad > 0 || n < least
		}' "$T/symbols" - || fail "names of functions are not the kernel's"
}

# logged TEXT: in flyrecd's log since the last log_mark, as a basic regular expression
logged() {
	tail -n "+$((${LOG_MARK:-0} + 1))" "$FLYRECD_LOG" | grep -q -e "$1"
}

# logged_once TEXT: in exactly one line
logged_once() {
	[ "$(tail -n "+$((${LOG_MARK:-0} + 1))" "$FLYRECD_LOG" | grep -c -e "$1")" = 1 ]
}

log_mark() {
	LOG_MARK=0
	[ ! -e "$FLYRECD_LOG" ] || LOG_MARK=$(wc -l <"$FLYRECD_LOG")
}

must_log() {
	wait_for "${2:-10}" logged "$1" || fail "not in the log: $1: $(tail -n 5 "$FLYRECD_LOG")"
}

# another_boot FILE: what a file says of its boot (both copies of the live block, formats/live-block.h),
# and of the kernel, as if it was of another one
ANOTHER_BOOT=616e6f7468657220626f6f7420696421
another_boot() {
	python3 - "$1" "$ANOTHER_BOOT" "$(uname -s) $(uname -n) $(uname -r)" <<-'EOF' || fail "$1 tells no boot"
		import struct, sys
		path, other, kernel = sys.argv[1:]
		boot = bytes.fromhex(open("/proc/sys/kernel/random/boot_id").read().strip().replace("-", ""))
		data = bytearray(open(path, "rb").read().replace(kernel.encode(), kernel[:-1].encode() + b"?"))
		at, found = data.find(b"flyrec live 1\n"), 0
		while at >= 0:
		    assert data[at + 16:at + 32] == boot
		    data[at + 16:at + 32] = bytes.fromhex(other)
		    data[at + 60:at + 64] = bytes(4)
		    n_cpus, hash = struct.unpack_from("=I", data, at + 56)[0], 2166136261
		    for byte in data[at:at + 64 + 8 * n_cpus]:
		        hash = (hash ^ byte) * 16777619 % 2**32
		    data[at + 60:at + 64] = struct.pack("=I", hash)
		    at, found = data.find(b"flyrec live 1\n", at + 1), found + 1
		open(path, "r+b").write(data)
		sys.exit(found == 0)
	EOF
}

# no_damage: nothing was set aside as damaged
no_damage() {
	local damaged=("$STATE"/*/record/*damaged)
	[ ${#damaged[@]} = 0 ] || fail "damaged files: ${damaged[*]}"
}

# --- file systems

# image_dir: where images of file systems go: memory where there is enough, since a disk that others
# use too may stall for longer than a ring buffer lasts
image_dir() {
	local free
	free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1) || free=0
	if [ "${free:-0}" -gt $((6 * 1024 * 1024)) ] && mkdir -p "/dev/shm/${T##*/}"; then
		echo "/dev/shm/${T##*/}"
	else
		echo "$T"
	fi
}

# state_on FILESYSTEM SIZE: flyrecd's state directory on a file system of its own
state_on() {
	mkfs_mount "$1" "$2" "$T/$1"
	STATE=$T/$1/state
}

# mkfs_mount ext4|xfs|btrfs|tmpfs SIZE DIRECTORY [MKFS-OPTION...]: mounted there, taken away at the end
mkfs_mount() {
	local fs=$1 size=$2 dir=$3 image loop
	shift 3
	need_root
	mkdir -p "$dir"
	if [ "$fs" = tmpfs ]; then
		mount -t tmpfs -o "size=$size,mode=755" tmpfs "$dir" || skip "cannot mount tmpfs"
		MOUNTS+=("$dir")
		return
	fi
	need_command "mkfs.$fs" losetup
	image=$(image_dir)/image.${#LOOPS[@]}
	truncate -s "$size" "$image"
	"mkfs.$fs" -q "$@" "$image" >/dev/null 2>"$T/mkfs.log" ||
		fail "mkfs.$fs: $(cat "$T/mkfs.log")"
	loop=$(losetup --find --show "$image") || skip "no loop devices here"
	LOOPS+=("$loop")
	mount -t "$fs" "$loop" "$dir" || skip "cannot mount $fs"
	MOUNTS+=("$dir")
}

# set_sysctl FILE VALUE: until the end of the test; FILE below /proc/sys. Tests that do so wait for
# each other, else the second would restore what the first had set.
set_sysctl() {
	if [ ${#SYSCTLS[@]} = 0 ]; then
		exec {SYSCTL_LOCK}>/run/lock/flyrec-test.sysctl
		flock --timeout 120 "$SYSCTL_LOCK" || skip "somebody else holds /run/lock/flyrec-test.sysctl"
	fi
	SYSCTLS+=("$1=$(cat "/proc/sys/$1")")
	echo "$2" >"/proc/sys/$1" || skip "cannot set $1"
}

# --- the end

# at_end COMMAND...: when the test is over and its children have ended; what came last goes first
at_end() {
	AT_END=("$*" "${AT_END[@]}")
}

stop_children() {
	local pid
	for pid in "${CHILDREN[@]}"; do
		ended "$pid" || kill -TERM "$pid" 2>/dev/null || true
	done
	for pid in "${CHILDREN[@]}"; do
		wait_for 10 ended "$pid" || {
			echo "process $pid did not stop, killed" >&2
			kill -KILL "$pid" 2>/dev/null || true
		}
		wait "$pid" 2>/dev/null || true
	done
}

# cleanup: take away what the test made, in the order in which things depend on each other
cleanup() {
	local status=$? path
	trap - EXIT
	# A child that is killed before it has forgotten its parent's traps
	[ "$BASHPID" = "$$" ] || exit "$status"
	trap '' INT TERM
	set +e
	stop_children
	for path in "${AT_END[@]}"; do
		$path
	done
	for path in "${SYSCTLS[@]}"; do
		echo "${path#*=}" >"/proc/sys/${path%%=*}"
	done
	[ -z "${SYSCTL_LOCK:-}" ] || exec {SYSCTL_LOCK}>&-
	for path in "${MOUNTS[@]}"; do
		umount "$path"
	done
	for path in "${LOOPS[@]}"; do
		losetup --detach "$path"
	done
	rm -rf "/dev/shm/${T##*/}"
	if [ "$status" != 0 ] && [ "$status" != 77 ]; then
		[ ! -s "$FLYRECD_LOG" ] || { echo "--- flyrecd's log:" && tail -n 50 "$FLYRECD_LOG"; }
		# a test that failed may have left its instances; one that passed must not have
		"$SRC/tests/integration/leftovers" --remove --no-processes "$T" "$PREFIX"
	fi >&2
	# run-all looks at what is left before it removes the directory
	[ -n "${FLYREC_RUN_ALL:-}" ] || rm -rf "$T"
	exit "$status"
}

trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
