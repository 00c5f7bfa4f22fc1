#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 300
# beside: yes
#
# Real captures of real boards, turned into what Linux would have shown of those machines, exported
# again: OpenCSD decodes the same packets and elements from both. And what OpenCSD says nothing of
# when it decodes less, verify names.
. "$(dirname "$0")/lib.sh"
need_command trc_pkt_lister
need_format arm
DATA=$SRC/../shared/data/arm-snapshot
[ -d "$DATA" ] || skip "no real captures in $DATA"

# decode SNAPSHOT LOG [BUFFER]: packets and elements, without what names the directory
decode() {
	rm -f "$2.all" # it would add to it
	trc_pkt_lister -ss_dir "$1/" -decode -logfilename "$2.all" ${3:+-src_name "$3"} >/dev/null ||
		fail "trc_pkt_lister $1"
	grep '^Idx' "$2.all" >"$2" || true
}

buffers() { # SNAPSHOT: their names
	awk -F= '/^\[/ { on = /^\[buffer/ } on && $1 == "name" { print $2 }' "$1/trace.ini" | tr -d '\r'
}

captures=("$DATA"/*/snapshot.ini)
[ ${#captures[@]} -ge 4 ] || fail "only ${#captures[@]} captures in $DATA"
for capture in "${captures[@]}"; do
	capture=${capture%/snapshot.ini} name=$(basename "${capture%/snapshot.ini}")
	verify "$capture"
	"$SRC/tests/tools/coresight-tree" "$capture" "$T/tree" 2>"$T/err" || fail "$(cat "$T/err")"
	"$FLYRECCTL" export --format=arm-snapshot "--sysroot=$T/tree" -o "$T/$name" 2>"$T/err" ||
		fail "$name: $(cat "$T/err")"
	[ ! -s "$T/err" ] || [[ $name == *stm_only* ]] || fail "$name: left out: $(cat "$T/err")"
	verify "$T/$name"
	mapfile -t ours < <(buffers "$T/$name")
	mapfile -t theirs < <(buffers "$capture")
	[ ${#ours[@]} = ${#theirs[@]} ] || fail "$name: ${#ours[@]} buffers, not ${#theirs[@]}"
	for i in "${!ours[@]}"; do
		decode "$capture" "$T/expected" "${theirs[i]}"
		decode "$T/$name" "$T/found" "${ours[i]}"
		[ -s "$T/expected" ] || fail "$name: nothing to decode in ${theirs[i]}"
		cmp "$T/expected" "$T/found" || fail "$name: ${ours[i]} is decoded to something else"
		echo "$name ${theirs[i]}: $(wc -l <"$T/found") lines are the same"
	done
	rm -rf "$T/tree"
done

# a trace.dat beside it disturbs nobody
"$SRC/tests/tools/coresight-tree" "$DATA/csal-tc2" "$T/tree" 2>/dev/null
DAT=$SRC/tests/fuzz/corpus/trace-dat/little-64
"$FLYRECCTL" export --format=arm-snapshot "--sysroot=$T/tree" -o "$T/both" "$DAT"
grep -A1 '^\[ftrace\]' "$T/both/snapshot.ini" | grep -qx file=trace.dat || fail "no [ftrace]"
cmp "$DAT" "$T/both/trace.dat" || fail "another trace.dat"
verify "$T/both"
[ "$(grep -c ': ok' "$T/verify")" = 2 ] || fail "not both are checked: $(cat "$T/verify")"
decode "$DATA/csal-tc2" "$T/expected"
decode "$T/both" "$T/found"
cmp "$T/expected" "$T/found" || fail "decoded to something else with a trace.dat beside"

# what trc_pkt_lister ends with status 0 over: it decodes less, or nothing, and verify says why
decode "$T/csal-juno" "$T/expected"
right=$(wc -l <"$T/expected")
passed_over() { # FILE SED-SCRIPT FAULT
	local lines=0
	rm -rf "$T/bad"
	cp -r "$T/csal-juno" "$T/bad"
	sed -i "$2" "$T/bad/$1"
	rm -f "$T/found.all"
	if { trc_pkt_lister -ss_dir "$T/bad/" -decode -logfilename "$T/found.all"; } >/dev/null 2>&1; then
		lines=$(grep -c '^Idx' "$T/found.all") || true
	fi
	! "$FLYRECCTL" verify "$T/bad" >"$T/out" 2>/dev/null || fail "verify finds no fault: $2"
	grep -qF -- "$T/bad/$3" "$T/out" || fail "verify says nothing of \"$3\": $(cat "$T/out")"
	echo "$2: $lines of $right lines"
	LESS=$((LESS + (lines < right)))
}
LESS=0
passed_over trace.ini 's/^\[core_trace_sources\]/[core trace sources]/' "trace.ini:18: section [core trace"
passed_over trace.ini 's/^etm0=tmc_etb0/&,tmc_etb0/' "trace.ini:10: a list of buffers"
passed_over trace.ini 's/^file=.*/&,kernel.bin/' "trace.ini:6: a list of files"
passed_over trace.ini 's/^file=.*/file=none.bin/' "trace.ini:6: file none.bin: No such file"
passed_over trace.ini 's/$/\r/' "trace.ini:1: the line ends in CR LF"
passed_over trace.ini '/^\[source_buffers\]/,/^$/d' "trace.ini: no [source_buffers]"
passed_over etm0.ini 's/^type=.*/type=ETM9/' "etm0.ini:4: unknown type of a trace source: ETM9"
passed_over etm0.ini '/^TRCIDR0(/d' "etm0.ini:6: no TRCIDR0"
passed_over cpu_0.ini 's/^type=.*/type=Cortex-Z1/' "cpu_0.ini:4: unknown type of a core: Cortex-Z1"
passed_over snapshot.ini 's/=etm0.ini/=none.ini/' "snapshot.ini:12: file none.ini cannot be read"
passed_over snapshot.ini 's/^version=.*/version=2.0/' "snapshot.ini:2: version 2.0"
[ "$LESS" -ge 8 ] || fail "only $LESS of 11 faults matter to trc_pkt_lister"
