#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# header-size.sh [--sessions="sched oom"] - what a segment holds beside its events
#
# Records each of the ready-made sessions for a moment and prints the bytes of each part of its second
# segment, as the first one does not know yet how many tasks come; beside them what they were with all
# of the kernel's symbols and with room for a name of each pid there can be, and what is left of it all
# by zstd -1. Wants root, tracefs and 100 MB below /var/tmp. Uses build/ or FLYREC_BUILD.

# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
sessions="sched oom"
options sessions -- "$@"
[ ${#words[@]} = 0 ] || usage
wanted=$sessions
# shellcheck source-path=SCRIPTDIR/../tests/integration
. "$(dirname "$0")/../tests/integration/lib.sh"
need_tracefs
need_command zstd

# As trace_file and file_plan did it: 24 bytes for each pid, 4 MiB at most
pids=$(cat /proc/sys/kernel/pid_max)
[ "$pids" -le 174762 ] || pids=174762
all_symbols=$(wc -c </proc/kallsyms)

for name in $wanted; do
	rm -rf "$STATE" "$CONFIG/sessions.d"
	sed "s/^Enabled=no/Enabled=yes/" "$SRC/sessions/$name.conf" | session "$name"
	flyrecd_start
	for _ in 1 2; do
		"$TOOLS/markers" "--instance=$PREFIX$name" --count=3 >/dev/null
		file=$(ctl rotate "$name")
	done
	flyrecd_stop
	"$TOOLS/seed-reader" "$file" >"$T/seed"
	header=$(sed -nE 's/^  cpu 0 offset ([0-9]+) .*/\1/p' "$T/seed")
	packed=$(head -c "$header" "$file" | zstd -1 -c | wc -c)
	echo "== $name"
	awk -v header="$header" -v all_symbols="$all_symbols" -v pids="$pids" -v packed="$packed" '
		function row(part, now, before) {
			printf "%-26s %9d %9d\n", part, now, before
			sum += before
			rest -= now
		}
		BEGIN { rest = header; printf "%-26s %9s %9s\n", "part", "bytes", "before" }
		$1 == "kallsyms" { symbols = $2 }
		$1 == "printk_formats" { printk = $2 }
		/^task names/ { names = $5; used = $3 }
		/^  option/ { opts += $4 + 6 }
		END {
			row("symbols", symbols, all_symbols)
			row("printk formats", printk, printk)
			row("room for names", names, pids * 24)
			row("options", opts, opts)
			row("formats and the rest", rest, rest)
			printf "%-26s %9d %9d\n%-26s %9d\n(names of %d tasks)\n", "all", header, sum,
			       "all, zstd -1", packed, used
		}' "$T/seed"
done
