# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the tests of finishing, rotation, retention and full disks share; read after lib.sh.
# A session is called "s" here.

# faulty_flyrecd: from now on flyrecd stops itself at the place that is named in $T/fault
faulty_flyrecd() {
	cat >"$T/flyrecd-faulty" <<-EOF
		#!/bin/bash
		[ ! -s "$T/fault" ] || export FLYREC_FAULT_POINT=\$(cat "$T/fault")
		exec "$BUILD/flyrecd" "\$@"
	EOF
	chmod +x "$T/flyrecd-faulty"
	: >"$T/fault"
	# shellcheck disable=SC2034 # lib.sh starts it
	FLYRECD=$T/flyrecd-faulty
}

flyrecd_stopped_itself() {
	[ "$(process_state "$FLYRECD_PID")" = T ]
}

# storage LINE...: write session "s", its [Storage] section from the arguments; EVENT and BUFFER
# are of its [Trace]
storage() {
	session s <<-EOF
		[Trace]
		Event=${EVENT:-sched:sched_process_exec}
		BufferSize=${BUFFER:-8M}
		[Storage]
		$(printf '%s\n' "$@")
	EOF
}

REC() { # the files' directory
	echo "$STATE/s/record"
}

# write_markers COUNT [OPTION...]: so many a CPU, after those written before
write_markers() {
	local count=$1
	shift
	[ -s "$T/expect.last" ] && set -- "--continue=$T/expect.last" "$@"
	"$TOOLS/markers" "--instance=${PREFIX}s" "--count=$count" "$@" >"$T/expect.new"
	cp "$T/expect.new" "$T/expect.$((++N_EXPECT))"
	mv "$T/expect.new" "$T/expect.last"
}
N_EXPECT=0

# markers_begin [OPTION...]: in the background until markers_end
markers_begin() {
	[ -s "$T/expect.last" ] && set -- "--continue=$T/expect.last" "$@"
	"$TOOLS/markers" "--instance=${PREFIX}s" "$@" >"$T/expect.running" &
	MARKERS=$!
	CHILDREN+=("$MARKERS")
}

markers_end() {
	kill -TERM "$MARKERS"
	wait "$MARKERS" || fail "markers"
	cp "$T/expect.running" "$T/expect.$((++N_EXPECT))"
	mv "$T/expect.running" "$T/expect.last"
}

# all_right WHAT [OPTION-OF-CHECK-MARKERS...]: after a stop: every file is clean, has the markers that
# were written, and nothing else lies about
all_right() {
	local what=$1 expect=() e left
	shift
	for e in "$T"/expect.[0-9]*; do
		expect+=("--expect=$e")
	done
	verify "$(REC)"
	markers_are "$what" "$@" "${expect[@]}" "$(REC)"/2*.dat
	left=$(find "$(REC)" -mindepth 1 ! -name '2*Z.dat')
	[ -z "$left" ] || fail "$what: left behind: $left"
}

# forget: the files and the markers so far
forget() {
	rm -rf "${STATE:?}"/s "$T"/expect.*
	N_EXPECT=0
}

# is_dense FILE: what it takes on the disk is what it is long, but for the last allocation unit of
# each region
is_dense() {
	local length blocks
	length=$(stat -c %s "$1")
	blocks=$(stat -c %b "$1")
	[ $((blocks * 512)) -le $((length + ${2:-262144})) ] && [ $((blocks * 512 + ${2:-262144})) -ge "$length" ]
}

n_segments() {
	local files=("$(REC)"/2*.dat)
	echo ${#files[@]}
}

# has_segments N: that many are finished
has_segments() {
	[ "$(n_segments)" -ge "$1" ]
}

log_has() {
	grep -qs -e "$1" "$FLYRECD_LOG"
}

# cpustat FILE KEY: of each CPU, "CPU NUMBER"
cpustat() {
	trace-cmd report --stat "$1" 2>/dev/null | stat_value "$2"
}

# stat_value KEY: of what trace-cmd report --stat prints
stat_value() {
	awk -v key="$1" -F': ' '$1 == "CPU" { cpu = $2 + 0 } $1 == key { print cpu, $2 + 0 }'
}

# What verify counted in each file, as "FILE CPU EVENTS LOST"
recount() {
	"$FLYRECCTL" --json verify "$(REC)" >"$T/verify.json" || verify "$(REC)"
	jq -r '.files[] | .path as $p | .cpus[] | "\($p) \(.cpu) \(.events) \(.lost_events)"' \
		"$T/verify.json"
}

# mount_anew FS DIRECTORY: unmount and mount again. Another mount namespace may hold the old mount for a
# while: then it is the same dead file system again.
mount_anew() {
	# shellcheck disable=SC2317 # called by wait_for
	mounted_anew() {
		umount "$2" && mount -t "$1" "${LOOPS[-1]}" "$2" && touch "$2/alive" 2>/dev/null
	}
	wait_for 60 mounted_anew "$1" "$2" || fail "cannot mount $1 again"
	rm "$2/alive"
}
