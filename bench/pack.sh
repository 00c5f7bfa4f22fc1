#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# pack.sh [--build=DIR] [--seconds=N] [--runs=N] [--dir=DIR] [FILE...] - what compressing costs, and saves
#
# Without FILE, records N (30) seconds each of a compile, of files that are written and read, of TCP
# connections, and of all of these at once, with sched, irq, block, net and raw_syscalls; each is
# refused if it is not what it says. Then N (3) times in turns: flyrecctl convert to version 7, and
# trace-cmd's own; flyrecctl verify of both versions; trace-cmd report of version 6, of ours and of its
# own version 7. Prints for each file the sizes, and the medians of CPU seconds per GB of trace data;
# convert reads what it wrote again and compares. Wants root and tracefs, unless there are FILEs.
set -eu
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
seconds=30 runs=3 dir=${TMPDIR:-/var/tmp}
options build seconds runs dir -- "$@"
place "$dir"

compile() {
	local file
	while :; do
		for file in "$src"/writer/*.c "$src"/formats/*.c; do
			cc -O1 -I"$src" -include "$build/config.h" -c -o "$dir/compile.o" "$file" 2>/dev/null || true
		done
	done
}

disk() {
	while :; do
		dd if=/dev/zero of="$dir/disk" bs=16k count=8192 oflag=direct status=none
		dd if="$dir/disk" of=/dev/null bs=16k iflag=direct status=none
		find /usr/share -type f >/dev/null
	done
}

net() {
	exec python3 - <<-'EOF'
		import socket, threading

		server = socket.create_server(("127.0.0.1", 0))

		def answer():
		    while True:
		        with server.accept()[0] as s:
		            while data := s.recv(65536):
		                s.sendall(data)

		threading.Thread(target=answer, daemon=True).start()
		while True:
		    with socket.create_connection(server.getsockname()) as s:
		        for size in (1, 100, 1400, 60000) * 50:
		            s.sendall(bytes(size))
		            left = size
		            while left > 0:
		                left -= len(s.recv(left))
	EOF
}

# events FILE EVENT: how many of it
events() {
	"$build/flyrecctl" export --format=text --event="$2" "$1" | wc -l
}

# least FILE EVENT NUMBER: of each second
least() {
	local n
	n=$(events "$1" "$2")
	[ "$n" -ge $(($3 * seconds)) ] || {
		echo "$1: only $n events $2: not the load it should be" >&2
		exit 1
	}
}

# load NAME FILE: recorded
load() {
	local pids=() load
	for load in ${1/mix/compile disk net}; do
		"$load" &
		pids+=($!)
	done
	record "$2" -b 32768 -e sched -e irq -e block -e net -e raw_syscalls sleep "$seconds"
	# with the command that it is waiting for
	for load in "${pids[@]}"; do
		pkill -P "$load" || true
		kill "$load" 2>/dev/null || true
		wait "$load" 2>/dev/null || true
	done
	case $1 in compile | mix) least "$2" sched:sched_process_exec 2 ;; esac
	case $1 in disk | mix) least "$2" block:block_rq_issue 100 ;; esac
	case $1 in net | mix) least "$2" net:net_dev_xmit 500 ;; esac
}

# cpu NAME COMMAND...: its CPU seconds are added to $dir/NAME
cpu() {
	local name=$1 TIMEFORMAT='%U %S'
	shift
	{ time "$@" >"$dir/out" 2>"$dir/errors"; } 2>"$dir/time" || {
		echo "$*: $(tail -n 2 "$dir/errors")" >&2
		exit 1
	}
	tail -n 1 "$dir/time" | awk '{ print $1 + $2 }' >>"$dir/$name"
}

# per_gb NAME: median
per_gb() {
	sort -n "$dir/$1" | awk -v b="$bytes" '{ v[NR] = $1 } END { printf "%.2f", v[int((NR + 1) / 2)] / b * 1e9 }'
}

measure() { # NAME FILE
	local run six=$dir/six.dat ours=$dir/ours.dat theirs=$dir/theirs.dat bytes
	rm -f "$dir"/cpu.*
	"$build/flyrecctl" convert -o "$six" "$2"
	bytes=$("$build/flyrecctl" --json verify "$six" | grep -o '"subbufs":[0-9]*' | cut -d: -f2 |
		awk -v subbuf="$(od -An -t u4 -j 14 -N 4 "$six")" '{ n += $1 } END { print n * subbuf }')
	for ((run = 0; run < runs; run++)); do
		cpu cpu.pack "$build/flyrecctl" convert --compress=zstd -o "$ours" "$six"
		rm -f "$theirs"
		cpu cpu.their-pack trace-cmd convert --file-version 7 --compression zstd -i "$six" -o "$theirs"
		cpu cpu.verify6 "$build/flyrecctl" verify "$six"
		cpu cpu.verify7 "$build/flyrecctl" verify "$ours"
		cpu cpu.report6 trace-cmd report "$six"
		cpu cpu.report7 trace-cmd report "$ours"
		cpu cpu.report7-theirs trace-cmd report "$theirs"
	done
	echo "$1: $(stat -c %s "$six") bytes, $bytes of data; compressed $(stat -c %s "$ours") ($(
		ratio "$six" "$ours")), by trace-cmd $(stat -c %s "$theirs") ($(ratio "$six" "$theirs"))"
	echo "$1: CPU s/GB: convert $(per_gb cpu.pack), trace-cmd's $(per_gb cpu.their-pack); verify" \
		"$(per_gb cpu.verify6), compressed $(per_gb cpu.verify7); report $(per_gb cpu.report6)," \
		"compressed $(per_gb cpu.report7), by trace-cmd $(per_gb cpu.report7-theirs)"
}

ratio() {
	awk -v a="$(stat -c %s "$1")" -v b="$(stat -c %s "$2")" 'BEGIN { printf "1/%.2f", a / b }'
}

for file in "${words[@]}"; do
	measure "$(basename "$file")" "$file"
done
[ ${#words[@]} = 0 ] || exit 0
for load in compile disk net mix; do
	load "$load" "$dir/recorded.dat"
	measure "$load" "$dir/recorded.dat"
	rm "$dir/recorded.dat"
done
