#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 600
#
# On Debian 12: the text is what Debian 13's trace-cmd and libtraceevent print, when these are installed;
# in a tree of its packages, below which flyrecctl runs as it was built here. On Debian 13 itself
# test-export.sh says so. What that trace-cmd records and converts as version 7 is read, converted and cut;
# at night also what that of sid does.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/tools/debian-tree.sh
. "$SRC/tests/tools/debian-tree.sh"
need_tracefs
need_command mmdebstrap trace-cmd zstd python3 jq
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}:${VERSION_ID:-}" = debian:12 ] || skip "for Debian 12"
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || skip "needs debian-archive-keyring"
no_sanitizers "they are of Debian 12"

# enter SUITE: the root is from now on a tree of it
enter() {
	ROOT=$T/$1
	debian_cached "decode-$1" "" debian_make "$1" minbase \
		libelf1,libtracecmd1,libtraceevent1-plugin,libtracefs1,libjson-c5,libsqlite3-0,libedit2,libsystemd0,trace-cmd
	mkdir "$ROOT" "$ROOT".{upper,work}
	mount -t overlay -o "lowerdir=$CACHED,upperdir=$ROOT.upper,workdir=$ROOT.work" overlay "$ROOT" ||
		skip "cannot mount an overlay"
	MOUNTS=("$ROOT" "${MOUNTS[@]}")
	mkdir -p "$ROOT/files" "$ROOT/sys/kernel/tracing"
	cp "$FLYRECCTL" "$TOOLS/decode-compare" "$TOOLS/forkstorm" "$TOOLS/storm" "$SRC/tests/tools/peer-trace-cmd" \
		"$ROOT/usr/bin"
	mount --rbind /sys/kernel/tracing "$ROOT/sys/kernel/tracing"
	MOUNTS=("$ROOT/sys/kernel/tracing" "${MOUNTS[@]}")
	mount -t proc proc "$ROOT/proc"
	MOUNTS=("$ROOT/proc" "${MOUNTS[@]}")
	there trace-cmd --help | head -n 3 | grep version
}
there() {
	chroot "$ROOT" "$@"
}

# same FILE: of this name in the root's files
same() {
	there trace-cmd report "/files/$1" 2>"$T/err" | without_flags >"$T/theirs" || fail "trace-cmd: $(cat "$T/err")"
	there flyrecctl export --format=text "/files/$1" >"$T/ours" || fail "export $1"
	cmp -s "$T/ours" "$T/theirs" || {
		diff --text "$T/theirs" "$T/ours" | head -n 10
		fail "$1: not what trace-cmd report prints"
	}
	[ "$(wc -l <"$T/ours")" -gt "${2:-100}" ] || fail "$1: too little in it"
	echo "$1: $(wc -l <"$T/ours") lines"
}

enter trixie
echo "== each of this kernel's formats, with random numbers"
there decode-compare --rounds=20 || fail "compiled formats print other things than libtraceevent"
there decode-compare --threads=4 --rounds=20 || fail "libtraceevent does not print the same in several threads"

echo "== recordings"
record() { # FILE EVENT...
	local options=() event
	for event in "${@:2}"; do
		options+=(-e "$event")
	done
	# shellcheck disable=SC2016 # for the inner shell
	peer_record "$ROOT/files/$1" "${PREFIX}x" -b 8192 "${options[@]}" -- \
		sh -c '"$0" --count=100; sleep 0.5' "$TOOLS/forkstorm"
}
record sched.dat sched
same sched.dat
grep -q '\] I ==> ' "$T/ours" || fail "no idle task of the kernel's: nothing proved"
record kinds.dat irq timer block writeback signal task
same kinds.dat

# record7 FILE OPTION... COMMAND...: by the trace-cmd there
record7() {
	local file=$1 path word before=''
	shift
	for word in "$@"; do # peer-trace-cmd wants to see them
		[ "$before" != -B ] || mkdir "$TRACEFS/instances/$word"
		before=$word
	done
	there env PEER_NAMES=still peer-trace-cmd record --file-version 7 -o "/files/$file" -b 8192 "$@" \
		>"$T/record.log" 2>&1 || fail "trace-cmd: $(cat "$T/record.log")"
	for path in "$TRACEFS/instances/$PREFIX"*; do
		rmdir "$path"
	done
}

# version FILE: as verify says
version() {
	there flyrecctl verify "/files/$1" >"$T/verify" 2>&1 || fail "verify $1: $(head -n 3 "$T/verify")"
	sed -n 's/^.*: ok, version \([67]\),.*/\1/p' "$T/verify" | head -n 1
}

# sections FILE: ids of those that version 6 has not, but for ours
sections() {
	python3 - "$ROOT/files/$1" <<-'END'
		import struct, sys
		data, at, ids = open(sys.argv[1], "rb").read(), 18, []
		for _ in range(2):
		    at = data.index(b"\0", at) + 1
		at += 8
		while at < len(data):
		    id, size = struct.unpack_from("<HxxxxxxQ", data, at)
		    if id > 21 and id != 0x4652:
		        ids.append(id)
		    at += 16 + size
		print(*sorted(ids))
	END
}

# round FILE: read, and converted in all ways to what is read as the same
round() {
	local to
	[ "$(version "$1")" = 7 ] || fail "$1: $(cat "$T/verify")"
	same "$1"
	mv "$T/theirs" "$T/before"
	for to in --version=6 --compress=zstd "--version=7 --compress=no"; do
		# shellcheck disable=SC2086 # words
		there flyrecctl convert $to -o /files/to.dat "/files/$1" || fail "convert $to $1"
		[ "$(version to.dat)" = "$([ "$to" = --version=6 ] && echo 6 || echo 7)" ] || fail "$to: $(cat "$T/verify")"
		same to.dat
		cmp "$T/before" "$T/theirs" || fail "convert $to $1: trace-cmd report prints something else"
		[ "$to" = --version=6 ] || [ "$(sections to.dat)" = "$(sections "$1")" ] ||
			fail "convert $to $1: sections $(sections to.dat), not $(sections "$1")"
	done
	echo "$1: sections that version 6 has not: $(sections "$1")"
}

versions_7() {
	for compression in none zstd; do
		record7 "$compression.dat" --compression "$compression" -B "${PREFIX}x" -e sched -e irq \
			forkstorm --count=100
		round "$compression.dat"
	done
	record7 buffers.dat -B "${PREFIX}x" -e sched -B "${PREFIX}y" -e raw_syscalls -B "${PREFIX}z" -e timer \
		storm --count=2000
	round buffers.dat
	there trace-cmd convert --file-version 7 --compression zstd -i /files/sched.dat -o /files/converted.dat >/dev/null
	round converted.dat
}
echo "== version 7"
versions_7

echo "== snapshots of segments that it has converted"
small_segments load "sched:sched_process_exec if pid == 0"
# cut_to FILE: the middle of what is recorded, as text
cut_to() {
	local path
	path=$(ctl snapshot load "--since=@${from::-6}.${from: -6}" "--until=@${to::-6}.${to: -6}") || fail "snapshot"
	verify "$path"
	"$FLYRECCTL" export --format=text "$path" >"$1"
}
flyrecd_start
markers_start load 30000
wait_for 30 list_segments load || fail "no segments"
markers_stop
ctl rotate load >/dev/null
list_segments load
ctl --json list load >"$T/list"
from=$(jq '.files[0] | (.start_usec + .end_usec) / 2 | floor' "$T/list")
to=$(jq '.files[2] | (.start_usec + .end_usec) / 2 | floor' "$T/list")
cut_to "$T/six"
for file in "${SEGMENTS[@]}"; do
	cp "$file" "$ROOT/files/segment.dat"
	there trace-cmd convert --file-version 7 --compression zstd -i /files/segment.dat -o /files/segment7.dat >/dev/null
	cp -p --attributes-only "$file" "$ROOT/files/segment7.dat"
	mv "$ROOT/files/segment7.dat" "$file"
done
cut_to "$T/seven"
flyrecd_stop
[ "$(wc -l <"$T/six")" -gt 10000 ] || fail "only $(wc -l <"$T/six") lines"
cmp "$T/six" "$T/seven" || fail "the snapshot is another one"
echo "$(wc -l <"$T/six") lines"

echo "== without the plugins the same"
there flyrecctl export --format=text /files/sched.dat >"$T/with"
rm -r "$ROOT"/usr/lib/*/traceevent
there flyrecctl export --format=text /files/sched.dat >"$T/without" 2>"$T/err"
cmp "$T/with" "$T/without" || fail "the text depends on the plugins"
grep -q "libtraceevent's plugins .* are not installed" "$T/err" || fail "no word of plugins: $(cat "$T/err")"

if thorough; then
	echo "== version 7 of the newest trace-cmd that Debian has"
	enter sid
	record sched.dat sched
	versions_7
fi
