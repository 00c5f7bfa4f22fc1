#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# overhead.sh [--loads=LOAD,...] [--rates=N,...] [--rounds=N] [--seconds=N] [--variants=NAME,...] - what tracing
# takes from a program, with MaxOverhead=1% and without, and what that of others does
#
# Loads (bench/load.c): calls pairs network compile, on each CPU, at rates of so many a second on each, 0 being as
# fast as possible; without --rates= at five rates each. Variants:
#   none       nothing is traced
#   kept       flyrecd, MaxOverhead=1%
#   record     flyrecd without that
#   flight     flyrecd, Mode=flight, MaxOverhead=1%
#   trace-cmd  trace-cmd record
#   perf       perf record -a
# All trace the same: raw_syscalls, sched, irq and net, all of each. The load begins when the recorder is there; the
# first two seconds do not count, the next N (3) do. Variants take turns for N (1) rounds. Prints of each rate a line:
# how often a second the load did it without tracing, then of each variant how often by that, in percent, and how much
# of the machine's CPU time was not idle; medians of the rounds. Then what an event costs on this machine.
# Wants root, tracefs, 4 GB below TMPDIR (/var/tmp), and perf and trace-cmd, whose columns are empty without.

# functions are called by name
# shellcheck disable=SC2317
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
loads=calls,pairs,network,compile rates='' rounds=1 seconds=3 variants=none,kept,record,trace-cmd,perf
options loads rates rounds seconds variants build -- "$@"
[ ${#words[@]} = 0 ] || usage
export FLYREC_BUILD=$build TMPDIR=${TMPDIR:-/var/tmp}
# shellcheck source-path=SCRIPTDIR/../tests/integration
. "$(dirname "$0")/../tests/integration/lib.sh"
need_tracefs
need_command python3 gcc
cd "$T"

declare -A rates_of=([calls]="10000,50000,200000,500000,0" [pairs]="1000,5000,20000,50000,0"
	[network]="1000,5000,20000,40000,0" [compile]="1,2,4,8,0")
SYSTEMS=(raw_syscalls sched irq net)
# a file that takes some hundredths of a second
COMPILE=(gcc -std=gnu11 -O1 -I"$SRC" -include "$BUILD/config.h" -c -o /dev/null "$SRC/basic/ini.c")

flyrecd_with() { # LINE...
	session load <<-EOF
		$(printf '%s\n' "$@")
		[Trace]
		$(printf 'Event=%s\n' "${SYSTEMS[@]}")
		[Storage]
		MaxUse=2G
		KeepFree=0
	EOF
	flyrecd_start
}
begin_none() { :; }
end_none() { :; }
begin_kept() {
	flyrecd_with "[Trace]" "MaxOverhead=1%"
}
end_kept() {
	flyrecd_stop
	rm -rf "$STATE"
}
begin_record() {
	flyrecd_with
}
end_record() {
	end_kept
}
begin_flight() {
	flyrecd_with "[Session]" "Mode=flight" "[Trace]" "MaxOverhead=1%"
}
end_flight() {
	end_kept
}
begin_peer() { # COMMAND...
	"$@" >peer.log 2>&1 &
	PEER=$!
	CHILDREN+=("$PEER")
	sleep 1
	kill -0 "$PEER" || fail "$1: $(cat peer.log)"
}
end_peer() {
	kill -INT "$PEER"
	wait "$PEER" || true
	rm -f peer.data*
}
begin_trace-cmd() {
	begin_peer "$SRC/tests/tools/peer-trace-cmd" record -o peer.data "${SYSTEMS[@]/#/-e}"
}
end_trace-cmd() {
	end_peer
}
begin_perf() {
	local all=("${SYSTEMS[@]/%/:*}")
	begin_peer perf record -a -o peer.data "${all[@]/#/-e}"
}
end_perf() {
	end_peer
}

# turn LOAD RATE VARIANT: a line of results
turn() {
	local command=()
	[ "$1" != compile ] || command=("${COMPILE[@]}")
	"begin_$3"
	echo "$1 $2 $3 $("$BUILD/bench/load" --rate="$2" --skip=2 --seconds="$seconds" "$1" "${command[@]}")" >>results ||
		fail "load $1"
	"end_$3"
}

for load in ${loads//,/ }; do
	of=${rates:-${rates_of[$load]}}
	for rate in ${of//,/ }; do
		for ((round = 0; round < rounds; round++)); do
			IFS=, read -ra order <<<"$variants"
			for ((i = 0; i < ${#order[@]}; i++)); do # each begins once
				variant=${order[(i + round) % ${#order[@]}]}
				case $variant in
				trace-cmd | perf) command -v "$variant" >/dev/null || continue ;;
				esac
				turn "$load" "$rate" "$variant"
			done
		done
	done
done
flyrecd_with "[Session]" "Mode=flight"
nsec=$(ctl --json cost load | python3 -c 'import json, sys; print(round(json.load(sys.stdin)["event_nsec"]))') ||
	fail "cost"
flyrecd_stop

python3 - "$variants" <<'END'
import statistics, sys
variants = sys.argv[1].split(",")
results = {}
for line in open("results"):
    load, rate, variant, *figures = line.split()
    results.setdefault((load, rate), {}).setdefault(variant, []).append([float(f) for f in figures])
print("| load | a second, each CPU | without tracing |" + "".join(f" {v} | busy |" for v in variants if v != "none"))
print("|---|---:|---:|" + "---:|---:|" * (len(variants) - 1))
def percent(of, none):
    ratios = [100 * a[0] / b[0] for a, b in zip(of, none)]
    text = f"{statistics.median(ratios):.1f} %"
    return text + (f" ({min(ratios):.1f}–{max(ratios):.1f})" if len(ratios) > 1 else "")
for (load, rate), of in results.items():
    none = of["none"]
    row = f"| {load} | {rate if rate != '0' else 'as many as go'} | {statistics.median(n[0] for n in none):,.0f}, " \
          f"{statistics.median(n[1] for n in none):.0f} % busy |"
    for v in variants:
        if v == "none":
            continue
        if v not in of:
            row += " | |"
            continue
        row += f" {percent(of[v], none)} | {statistics.median(a[1] for a in of[v]):.0f} % |"
    print(row)
END
echo
echo "$(uname -r), $(nproc) CPUs, $nsec ns an event; load average $(cut -d ' ' -f 1 /proc/loadavg)"
