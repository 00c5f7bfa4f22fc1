#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What includes.sh cannot see: who calls whom, by the symbols of the objects in the build directory
# (FLYREC_BUILD, or build). An object may need symbols only of folders that its own one sees, and no
# circle of files that need each other has more than six. What a folder sees is in the file rooms;
# files of others, and objects whose source is no longer there, do not count.
#
#   symbols.sh            check the checker on three made-up objects, then the tree
#   symbols.sh --circles  list all circles, the largest first, with what closes them
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
build=${FLYREC_BUILD:-$top/build}

check() { # SOURCES OBJECTS [--circles]
	python3 - "$top/tests/meta/rooms" "$@" <<'PYTHON'
import os, re, subprocess, sys

rooms, sources, objects, *options = sys.argv[1:]
sees = {}
for line in open(rooms):
    if not line.startswith("#"):
        folder, seen = line.split(":")
        sees[folder] = [folder, *seen.split()]
CIRCLE_MAX = 6


def room(path):
    folder = os.path.dirname(path)
    while folder and folder not in sees:
        folder = os.path.dirname(folder)
    return folder

files = {}
for folder, _, names in os.walk(objects):
    at = os.path.relpath(folder, objects)
    for name in names:
        # the name of an object in a library of its own flags: LIBRARY_a-STEM.o
        stem = re.fullmatch(r"(?:\w+_a-|[\w-]*flyrec\w*-)?(.+)\.o", name)
        path = stem and os.path.normpath(f"{at}/{stem[1]}.c")
        if path and room(path) and os.path.exists(f"{sources}/{path}"):
            files[path] = f"{folder}/{name}"
if not files:
    sys.exit(f"FAIL: no objects in {objects}")

defines, needs = {}, {path: set() for path in files}
for path, name in files.items():
    for line in subprocess.run(["nm", name], check=True, capture_output=True, text=True).stdout.splitlines():
        kind, symbol = line.split()[-2:]
        if kind in "Uwv":
            needs[path].add(symbol)
        elif kind in "TDBRCVW":
            defines[symbol] = path

calls = {path: {} for path in files}
for path in files:
    for symbol in sorted(needs[path]):
        other = defines.get(symbol)
        if other and other != path:
            calls[path].setdefault(other, []).append(symbol)

bad = False
for path in sorted(files):
    for other, symbols in sorted(calls[path].items()):
        if room(other) not in sees[room(path)] and os.path.splitext(other)[0] not in sees[room(path)]:
            print(f"{path} needs {', '.join(symbols)} of {other}")
            bad = True

# Tarjan, without recursion
index, low, stack, circles = {}, {}, [], []
for start in sorted(files):
    work = [] if start in index else [(start, iter(sorted(calls[start])))]
    if work:
        index[start] = low[start] = len(index)
        stack.append(start)
    while work:
        at, rest = work[-1]
        for to in rest:
            if to not in index:
                index[to] = low[to] = len(index)
                stack.append(to)
                work.append((to, iter(sorted(calls[to]))))
                break
            if to in stack:
                low[at] = min(low[at], index[to])
        else:
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[at])
            if low[at] == index[at]:
                cut = stack.index(at)
                circles.append(sorted(stack[cut:]))
                del stack[cut:]
circles = sorted((c for c in circles if len(c) > 1), key=len, reverse=True)
for circle in circles:
    if len(circle) <= CIRCLE_MAX and "--circles" not in options:
        continue
    bad |= len(circle) > CIRCLE_MAX
    print(f"a circle of {len(circle)} files:")
    for path in circle:
        inside = [f"{os.path.basename(o)} ({', '.join(s)})" for o, s in sorted(calls[path].items()) if o in circle]
        print(f"  {path} needs {'; '.join(inside) if '--circles' in options else ''}".removesuffix(" needs "))
sys.exit(1 if bad else 0)
PYTHON
}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

make_object() { # FILE TEXT
	mkdir -p "$tree/${1%/*}"
	printf '%s\n' "$2" >"$tree/$1"
	"${CC:-cc}" -c -o "$tree/${1%.c}.o" "$tree/$1"
}

make_object basic/a.c 'int a(void) { return 0; }'
make_object writer/b.c 'int a(void); int b(void) { return a(); }'
make_object daemon/session/c.c 'int b(void); int c(void) { return b(); }'
check "$tree" "$tree" || {
	echo "FAIL: the check itself finds a fault where there is none"
	exit 1
}
make_object formats/d.c 'int b(void); int d(void) { return b(); }'
if found=$(check "$tree" "$tree") || [ "$found" != "formats/d.c needs b of writer/b.c" ]; then
	echo "FAIL: the check itself does not find who needs a folder that it does not see"
	exit 1
fi
rm "$tree"/formats/d.*
for i in 1 2 3 4 5 6 7; do
	make_object "recorder/e$i.c" "int e$((i % 7 + 1))(void); int e$i(void) { return e$((i % 7 + 1))(); }"
done
if found=$(check "$tree" "$tree") || [ "${found%%:*}" != "a circle of 7 files" ]; then
	echo "FAIL: the check itself does not find a circle"
	exit 1
fi

check "$top" "$build" "$@" || {
	echo "FAIL: symbols of folders that are not seen, or circles of more than six files"
	exit 1
}
