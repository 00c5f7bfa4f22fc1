#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Includes point one way, as the file rooms says, and a header x-internal.h is for the files x*.c of
# its own folder, or for all of folder x. libtraceevent is for decode/ only: elsewhere neither its
# headers nor its names, which come along with libtracefs'. Checks the checker first, on a tree with
# one fault of each kind.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)

check() { # TREE: prints FILE:LINE: TARGET for each include that points the wrong way, or name
	python3 - "$1" "$top/tests/meta/rooms" <<'PYTHON'
import os, re, sys

tree, rooms = sys.argv[1:]
sees = {}
for line in open(rooms):
    if not line.startswith("#"):
        room, seen = line.split(":")
        sees[room] = [room, *seen.split()]

# They finish and join what the other makes
friends = [("writer/compact.c", "writer/trace-file-internal.h"), ("writer/together.c", "writer/cut-internal.h")]

def room_of(path):
    folder = os.path.dirname(path)
    while folder and folder not in sees:
        folder = os.path.dirname(folder)
    return folder

def may_include(path, target):
    room, stem = room_of(path), re.fullmatch(r"(.+)-internal\.h", target)
    if "/" not in target or not os.path.splitext(target)[0] in sees[room] and room_of(target) not in sees[room]:
        return False
    return not stem or path.startswith(stem[1]) or (path, target) in friends or \
        os.path.dirname(target).endswith(os.path.basename(stem[1])) and room_of(path) == room_of(target)

for top in sorted({room.split("/")[0] for room in sees}):
    for folder, _, names in sorted(os.walk(f"{tree}/{top}")):
        for name in sorted(n for n in names if n.endswith((".c", ".h"))):
            path = os.path.relpath(f"{folder}/{name}", tree)
            for number, line in enumerate(open(f"{tree}/{path}", encoding="utf-8"), 1):
                include = re.match(r'\s*#\s*include\s*"([^"]*)"', line)
                if include and not may_include(path, include[1]):
                    print(f"{path}:{number}: {include[1]}")
                theirs = re.search(r"\btep_\w+|<traceevent/[\w.-]+>", line)
                if theirs and room_of(path) != "decode":
                    print(f"{path}:{number}: {theirs[0]}")
PYTHON
}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
include() { # FILE TARGET
	mkdir -p "$tree/${1%/*}"
	printf '#include "%s"\n' "$2" >>"$tree/$1"
}
good=('writer/a.c basic/a.h' 'engine/a.c recorder/a.h' 'daemon/session/a.c engine/a.h'
	'daemon/session/a.c daemon/trigger/a.h' 'daemon/main.c daemon/control/a.h' 'convert/arm/a.c recorder/coresight.h'
	'convert/gdb/a.c convert/qemu4v/a.h' 'engine/flight-take.c engine/flight-internal.h'
	'decode/print/a.c decode/decode-internal.h' 'analysis/a.c decode/a.h' 'ctl/a.c analysis/a.h')
bad=('basic/a.c formats/a.h' 'formats/a.c writer/a.h' 'recorder/a.c writer/a.h' 'writer/a.c recorder/a.h'
	'writer/a.c daemon/plumbing/a.h' 'engine/a.c config/a.h' 'engine/a.c daemon/plumbing/a.h' 'config/a.c engine/a.h'
	'decode/a.c writer/a.h' 'decode/a.c analysis/a.h' 'analysis/a.c writer/a.h' 'daemon/session/a.c analysis/a.h' 'convert/gdb/a.c recorder/coresight.h' 'convert/gdb/a.c ctl/a.h' 'ctl/a.c recorder/a.h'
	'ctl/a.c engine/a.h' 'ctl/a.c daemon/plumbing/a.h' 'daemon/main.c ctl/a.h' 'daemon/plumbing/a.c engine/a.h'
	'daemon/trigger/a.c daemon/session/a.h' 'daemon/session/a.c daemon/manager/a.h'
	'daemon/manager/a.c daemon/control/a.h' 'daemon/session/a.c daemon/a.h' 'basic/a.c io.h'
	'engine/drain.c engine/flight-internal.h' 'convert/gdb/a.c decode/decode-internal.h' 'daemon/manager/a.c daemon/session/session-internal.h')
for pair in "${good[@]}" "${bad[@]}"; do
	include "${pair% *}" "${pair#* }"
done
echo 'struct tep_handle *tep;' | tee "$tree/decode/tep.c" >"$tree/recorder/tep.c"
echo '#include <traceevent/event-parse.h>' | tee "$tree/decode/tep.h" >"$tree/ctl/tep.h"
bad+=('recorder/tep.c tep_handle' 'ctl/tep.h <traceevent/event-parse.h>')
found=$(check "$tree" | sed 's/:[0-9]*: / /' | sort)
[ "$found" = "$(printf '%s\n' "${bad[@]}" | sort)" ] || {
	diff <(printf '%s\n' "${bad[@]}" | sort) <(echo "$found") || true
	echo "FAIL: the check itself does not find what it should"
	exit 1
}

faults=$(check "$top")
[ -z "$faults" ] || {
	echo "$faults"
	echo "FAIL: includes that point the wrong way, or libtraceevent outside of decode/"
	exit 1
}
