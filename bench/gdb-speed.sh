#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# gdb-speed.sh [--build=DIR] [--rounds=N] [--size=MB] [FILE] - how fast gdb's trace files are
# imported, and exported again: the best of N (default 3) rounds each, in memory (/dev/shm). FILE: a
# trace file whose frames are repeated up to --size= (default 400); default: one of the fuzzer's
# corpus, of 20 registers, 2 KiB of stack and 11 variables a frame, as a uprobe makes them.
#
# Goals: import 500 MB/s; export 100,000 frames in a second.
set -eu
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
rounds=3 size=400
options build rounds size -- "$@"
file=${words[0]:-$src/tests/fuzz/corpus/gdb/flyrec}
place /dev/shm
frames=$(python3 - "$file" "$dir/in.tf" "$size" <<'END'
import struct, sys
data = open(sys.argv[1], "rb").read()
at = begin = data.index(b"\n\n") + 2
frames = 0
while data[at:at + 2] not in (b"", b"\0\0"):
    at += 6 + struct.unpack("<I", data[at + 2:at + 6])[0]
    frames += 1
body = data[begin:at]
times = max(1, int(sys.argv[3]) * 1000000 // len(body))
with open(sys.argv[2], "wb") as out:
    out.write(data[:begin])
    for i in range(0, times, 1000):
        out.write(body * min(1000, times - i))
    out.write(b"\0\0\0\0")
print(frames * times)
END
)
bytes=$(stat -c %s "$dir/in.tf")

# best COMMAND...: milliseconds of the fastest round, and the least CPU time of any
TIMEFORMAT='%3R %3U %3S'
best() {
	local i
	for ((i = 0; i < rounds; i++)); do
		{ time "$@" 2>/dev/null; } 2>&1
	done | awk '{ wall = $1; cpu = $2 + $3 }
		NR == 1 || wall < least { least = wall }
		NR == 1 || cpu < least_cpu { least_cpu = cpu }
		END { print int(least * 1000 + .5), int(least_cpu * 1000 + .5) }'
}

read -r wall cpu < <(best "$build/flyrecctl" import --format=gdb-tfile -o "$dir/out.dat" "$dir/in.tf")
echo "import: $frames frames, $bytes bytes in $wall ms ($cpu ms of CPU time): $((bytes / wall / 1000)) MB/s"
rm "$dir/in.tf"
read -r wall cpu < <(best "$build/flyrecctl" export --format=gdb-tfile --max-frames=0 -o "$dir/out.tf" "$dir/out.dat")
echo "export: $frames frames in $wall ms ($cpu ms of CPU time): 100,000 in $((wall * 100000 / frames)) ms"
