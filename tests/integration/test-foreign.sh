#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 300
#
# Files by other programs and from other kernels, of both versions, which lie beside the source tree:
# they verify, and their text is what the trace-cmd that is installed reports, each time.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_command trace-cmd zstd
DATA=$SRC/../shared/data/trace-dat
[ -d "$DATA" ] || skip "not here: $DATA"
n=0
for file in "$DATA"/*.dat "$DATA"/*.dat.zst; do
	name=$(basename "$file" .zst)
	case $file in
	*.zst) zstd -qd -o "$T/$name" "$file" ;;
	*) cp "$file" "$T/$name" ;;
	esac
	"$FLYRECCTL" verify "$T/$name" >"$T/verify" 2>&1 || fail "$name: $(head -n 3 "$T/verify")"
	trace-cmd report "$T/$name" >"$T/theirs" 2>/dev/null || fail "$name: trace-cmd"
	for i in 1 2 3 4; do
		"$FLYRECCTL" export --format=text "$T/$name" >"$T/ours" 2>"$T/err" || fail "$name: $(cat "$T/err")"
		cmp -s "$T/ours" "$T/theirs" || {
			diff --text "$T/theirs" "$T/ours" | head -n 6
			fail "$name: not what trace-cmd report prints, time $i"
		}
	done
	echo "$name: $(wc -l <"$T/ours") lines"
	n=$((n + 1))
done
[ $n -ge 7 ] || fail "only $n files"
