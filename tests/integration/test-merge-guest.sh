#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
#
# A host and its KVM guests, recorded by the clock x86-tsc, merged by the offsets of the guests' TSCs. The
# guests are copies of the host's file with another TSC; what that is the trace-cmd of Debian 13 writes into
# their files, as it would for real ones. The same event is at the same nanosecond then, and where that
# trace-cmd shows it. Damaged offsets, hosts that are missing, and cycles of which nobody knows how long
# they are, are refused.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/tools/debian-tree.sh
. "$SRC/tests/tools/debian-tree.sh"
need_tracefs
need_command mmdebstrap trace-cmd python3 jq protoc chroot
need_event sched:sched_switch kvm:kvm_entry
grep -qw x86-tsc "$TRACEFS/trace_clock" || skip "there is no clock x86-tsc"
# shellcheck source=/dev/null
. /etc/os-release
[ "${ID:-}:${VERSION_ID:-}" = debian:12 ] || skip "for Debian 12"
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || skip "needs debian-archive-keyring"

ROOT=$T/trixie
debian_cached decode-trixie "" debian_make trixie minbase \
	libelf1,libtracecmd1,libtraceevent1-plugin,libtracefs1,libjson-c5,libsqlite3-0,libedit2,libsystemd0,trace-cmd
mkdir "$ROOT" "$ROOT".{upper,work}
mount -t overlay -o "lowerdir=$CACHED,upperdir=$ROOT.upper,workdir=$ROOT.work" overlay "$ROOT" ||
	skip "cannot mount an overlay"
MOUNTS=("$ROOT" "${MOUNTS[@]}")
mkdir -p "$ROOT/files"
mount -t proc proc "$ROOT/proc"
MOUNTS=("$ROOT/proc" "${MOUNTS[@]}")
cd "$T"

# options FILE ID=HEX...: more options for a file of version 7
# guest IN OUT ID TSC HOST: what a guest of this name would have recorded, whose TSC is TSC behind the host's
cat >"$T/dat.py" <<-'END'
	import os, struct, sys
	def options(path, *more):
	    data = bytearray(open(path, "rb").read())
	    at = 18
	    for _ in range(2): # compression: name, version
	        at = data.index(b"\0", at) + 1
	    place, = struct.unpack_from("<Q", data, at)
	    while place: # the last options end with a zero where others have the place of the next
	        at = place + 16
	        id, size = struct.unpack_from("<HI", data, at)
	        while id:
	            at += 6 + size
	            id, size = struct.unpack_from("<HI", data, at)
	        at += 6
	        place, = struct.unpack_from("<Q", data, at)
	    body = b""
	    for word in more:
	        id, text = word.split("=")
	        body += struct.pack("<HI", int(id), len(text) // 2) + bytes.fromhex(text)
	    body += struct.pack("<HIQ", 0, 8, 0)
	    struct.pack_into("<Q", data, at, len(data))
	    data += struct.pack("<HHIQ", 0, 0, 0, len(body)) + body
	    open(path, "wb").write(data)
	def guest(path, to, id, tsc, name):
	    data = open(path, "rb").read()
	    old = b"Linux " + os.uname().nodename.encode() + b" "
	    assert data.count(old) == 1
	    data = bytearray(data.replace(old, b"Linux " + name.encode()[:1] * (len(old) - 7) + b" "))
	    page, = struct.unpack_from("<I", data, 14)
	    at = data.index(struct.pack("<HI", 11, 8)) + 6 # TRACEID
	    struct.pack_into("<Q", data, at, int(id))
	    table = data.index(b"flyrecord\0") + 10
	    n_cpus, = struct.unpack_from("<I", data, data.index(b"options  \0") - 4)
	    for cpu in range(n_cpus):
	        offset, size = struct.unpack_from("<QQ", data, table + 16 * cpu)
	        for at in range(offset, offset + size, page):
	            ts, = struct.unpack_from("<Q", data, at)
	            struct.pack_into("<Q", data, at, ts - int(tsc))
	    open(to, "wb").write(data)
	def shift(path, tsc, n_cpus):
	    data = open(path, "rb").read()
	    at = data.index(struct.pack("<HI", 11, 8)) + 6
	    one = struct.pack("<IQqQ", 1, 0, int(tsc), 1)
	    print((data[at:at + 8] + struct.pack("<II", 0, int(n_cpus)) + one * int(n_cpus)).hex())
	globals()[sys.argv[1]](*sys.argv[2:])
END
dat() { python3 "$T/dat.py" "$@"; }

# refused TEXT FILE...: by merge
refused() {
	local text=$1
	shift
	if "$FLYRECCTL" merge -o no.dat "$@" >out 2>err; then fail "not refused: $*"; fi
	grep -qF -- "$text" err || fail "$*: $(cat err), not: $text"
	[ ! -e no.dat ] || fail "$* was refused, but made a file"
}

# times: "PID CPU SECONDS EVENT" of what trace-cmd prints
times() {
	sed -nE 's/^.*-([0-9]+) +\[([0-9]+)\] +([^ ]+ +)?([0-9]+\.[0-9]{9}): ([a-z_]+):.*/\1 \2 \4 \5/p'
}
there() { chroot "$ROOT" "$@"; }

session host <<-END
	[Trace]
	Event=sched:sched_switch
	Event=kvm:kvm_entry
	Clock=x86-tsc
	BufferSize=256K
	[Storage]
	FlushSec=100ms
	KeepFree=0
END
session dated <<-END
	[Trace]
	Event=sched:sched_switch
	Clock=mono
	BufferSize=256K
	[Storage]
	FlushSec=100ms
	KeepFree=0
END
flyrecd_start
for _ in {1..50}; do "$(type -P true)"; done
flyrecd_stop
six=$(echo "$STATE"/host/record/2*.dat)
cp "$STATE"/dated/record/2*.dat dated.dat
cpus=$("$FLYRECCTL" --json verify "$six" | jq '[.files[0].cpus[].cpu] | max + 1')
# 2.5 GHz: 0.4 * 2^31
nsec=14=$(python3 -c 'import struct; print(struct.pack("<IIQ", 858993459, 31, 0).hex())')
"$FLYRECCTL" convert --version=7 --compress=no -o host.dat "$six"
dat options host.dat "$nsec"

# attach NAME TSC: NAME.dat is of a guest of this name, whose TSC is so much behind the host's
attach() {
	dat guest "$six" six.dat "$2" "$2" "$1"
	"$FLYRECCTL" convert --version=7 --compress=no -o "$1.dat" six.dat
	cp "$1.dat" "$1-alone.dat"
	cp host.dat "$1.dat" "$ROOT/files"
	there trace-cmd attach -c "$cpus" -s "$2,1,0" /files/host.dat "/files/$1.dat" 1 >log 2>&1 ||
		fail "trace-cmd attach: $(cat log)"
	cp "$ROOT/files/$1.dat" .
}
attach first 1000000000001
attach second 77
# The host's has the option GUEST now. It names no task, as there is no real guest, which trace-cmd report does
# not understand
mkdir attached
mv "$ROOT/files/host.dat" attached/host.dat
cp host.dat "$ROOT/files"

echo "== merged"
"$FLYRECCTL" merge -o all.dat host=attached/host.dat first=first.dat second=second.dat >said 2>err || fail "merge: $(cat err)"
cat said
cat >expected <<-END
	flyrec merge: times by the clock of host:host (tsc2nsec)
	host:host: not moved, not known how right its clock was
	first:first: not moved, by TSC offset the clock of host:host
	second:second: not moved, by TSC offset the clock of host:host
END
diff expected said || fail "merge says something else"
verify all.dat
trace-cmd report -t all.dat >lines 2>err
[ ! -s err ] || fail "trace-cmd warns: $(cat err)"
for name in host first second; do
	sed -n "s/^ *$name:$name: //p" lines >"$name.lines"
	cmp host.lines "$name.lines" || fail "events of $name are at other times"
	there trace-cmd report -t "/files/$name.dat" 2>/dev/null | times >"$name.theirs"
	times <"$name.lines" >"$name.ours"
	diff "$name.theirs" "$name.ours" >"$name.diff" || fail "$name: not what trace-cmd shows: $(head -n 4 "$name.diff")"
done
[ "$(wc -l <host.ours)" -ge 100 ] || fail "no more than $(wc -l <host.ours) events"
echo "$(wc -l <host.ours) events of each of three"

echo "== a guest's file by itself"
trace-cmd report first.dat >theirs 2>/dev/null
"$FLYRECCTL" export --format=text first.dat >ours || fail "export"
cmp theirs ours || fail "not what trace-cmd shows: $(diff theirs ours | head -n 4)"

echo "== pictures of the files"
"$FLYRECCTL" merge -o both.dat host.dat first.dat >/dev/null 2>&1 || fail "merge of two"
"$FLYRECCTL" export --format=json -o both.json both.dat || fail "export --format=json"
"$FLYRECCTL" export --format=perfetto -o both.pb host.dat first.dat || fail "export of two files"
name=$(uname -n)
"$SRC/tests/tools/check-perfetto" both.pb both.json "$cpus" "$name" "${name//?/f}" >checked 2>&1 ||
	fail "wrong data: Perfetto: $(tail -n 3 checked)"
head -n 1 checked

echo "== cycles: the same without a word of how long they are"
"$FLYRECCTL" convert --version=7 --compress=no -o cycles.dat "$six"
"$FLYRECCTL" merge -o cycles-both.dat host=cycles.dat first=first.dat >said || fail "merge"
grep -qx 'flyrec merge: times by the clock of host:cycles (tsc2nsec)' said || fail "the guest does not tell: $(cat said)"
cp first-alone.dat given-first.dat
dat options first-alone.dat "12=$(dat shift "$six" 1000000000001 "$cpus")"
"$FLYRECCTL" merge -o cycles-both.dat host=cycles.dat first=first-alone.dat >said || fail "merge of cycles"
grep -qx 'flyrec merge: times by the clock of host:cycles (x86-tsc)' said || fail "not in cycles: $(cat said)"
"$FLYRECCTL" export --format=json "$six" | jq -r '"\(.ts) \(.cpu) \(.event)"' >expected
for name in host:cycles first:first-alone; do
	"$FLYRECCTL" export --format=json cycles-both.dat |
		jq -r --arg name "$name" 'select(.buffer == $name) | "\(.ts) \(.cpu) \(.event)"' >got
	cmp expected got || fail "$name: not the cycles of the host"
done

echo "== an offset that is given is the one that the host has for the guest"
"$FLYRECCTL" merge -o given.dat --tsc-offset=first:-1000000000001 host=cycles.dat first=given-first.dat >said || fail "merge"
grep -qx 'first:given-first: not moved, by TSC offset the clock of host:cycles' said || fail "$(cat said)"
for name in host:cycles first:given-first; do
	"$FLYRECCTL" export --format=json given.dat |
		jq -r --arg name "$name" 'select(.buffer == $name) | "\(.ts) \(.cpu) \(.event)"' >got
	cmp expected got || fail "$name: not the cycles of the host"
done

echo "== what is refused"
refused "is to be that of its host, with the same clock" --tsc-offset=first:1 host=dated.dat first=first-alone.dat
refused "there is no third=FILE" --tsc-offset=third:1 host=cycles.dat first=first-alone.dat
refused 'not understood: "first:x"' --tsc-offset=first:x host=cycles.dat first=first-alone.dat
refused "x86-tsc does not count nanoseconds, nor says option TSC2NSEC how long" host=cycles.dat other=dated.dat
refused "is of a KVM guest; when it was, only the file of its host tells" first=first.dat other=dated.dat
for wrong in \
	"has more CPUs than there is room for:00000000000000000000000000ffffff" \
	"has no CPUs (trace-cmd attach -c says how many):00000000000000000000000000000000" \
	"is too short:0000000000000000"; do
	cp first.dat damaged.dat
	dat options damaged.dat "12=${wrong##*:}"
	refused "damaged.dat: option TIME_SHIFT ${wrong%:*}" host=host.dat first=damaged.dat
	if "$FLYRECCTL" verify damaged.dat >out 2>&1; then fail "verify takes it for whole: ${wrong%:*}"; fi
	grep -qF "damaged.dat: option TIME_SHIFT ${wrong%:*}" out || fail "verify: $(cat out)"
	"$FLYRECCTL" export --format=text damaged.dat >out 2>err || fail "export: $(cat err)"
	grep -qF "option TIME_SHIFT ${wrong%:*}" err || fail "export: $(cat err)"
	[ "$(wc -l <out)" = "$(wc -l <ours)" ] || fail "export of a damaged option: $(wc -l <out) lines"
done
