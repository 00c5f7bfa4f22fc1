#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 600
#
# On Debian 12: the text is what Debian 13's trace-cmd and libtraceevent print, when these are installed;
# in a tree of its packages, below which flyrecctl runs as it was built here. On Debian 13 itself
# test-export.sh says so.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/tools/debian-tree.sh
. "$SRC/tests/tools/debian-tree.sh"
need_tracefs
need_command mmdebstrap trace-cmd zstd
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}:${VERSION_ID:-}" = debian:12 ] || skip "for Debian 12"
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || skip "needs debian-archive-keyring"
no_sanitizers "they are of Debian 12"

PACKAGES=libtracecmd1,libtraceevent1-plugin,libtracefs1,libjson-c5,libsystemd0,trace-cmd
debian_cached decode-trixie "" debian_make trixie minbase "$PACKAGES"
mkdir "$T"/{upper,work,root}
mount -t overlay -o "lowerdir=$CACHED,upperdir=$T/upper,workdir=$T/work" overlay "$T/root" ||
	skip "cannot mount an overlay"
MOUNTS+=("$T/root")
mkdir -p "$T/root/files" "$T/root/sys/kernel/tracing"
cp "$FLYRECCTL" "$TOOLS/decode-compare" "$T/root/usr/bin"
mount --rbind /sys/kernel/tracing "$T/root/sys/kernel/tracing"
MOUNTS=("$T/root/sys/kernel/tracing" "${MOUNTS[@]}")
mount -t proc proc "$T/root/proc"
MOUNTS=("$T/root/proc" "${MOUNTS[@]}")
there() {
	chroot "$T/root" "$@"
}
there trace-cmd --help | head -n 3 | grep version

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
	peer_record "$T/root/files/$1" "${PREFIX}x" -b 8192 "${options[@]}" -- \
		sh -c '"$0" --count=100; sleep 0.5' "$TOOLS/forkstorm"
}
record sched.dat sched
same sched.dat
grep -q '\] I ==> ' "$T/ours" || fail "no idle task of the kernel's: nothing proved"
record kinds.dat irq timer block writeback signal task
same kinds.dat

echo "== without the plugins the same"
there flyrecctl export --format=text /files/sched.dat >"$T/with"
rm -r "$T"/root/usr/lib/*/traceevent
there flyrecctl export --format=text /files/sched.dat >"$T/without" 2>"$T/err"
cmp "$T/with" "$T/without" || fail "the text depends on the plugins"
grep -q "libtraceevent's plugins .* are not installed" "$T/err" || fail "no word of plugins: $(cat "$T/err")"
