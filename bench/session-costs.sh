#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# session-costs.sh [--seconds=N] [--loads=LOAD,...] [SESSION...] - what the ready-made sessions cost, as
# flyrecctl cost says, as root; a table for README.md. All of them trace at the same time, each in
# an instance of its own, during N seconds (default 60) of each load:
#   idle       nothing but what else runs on the machine
#   compile    two gcc at a time, of this tree's own files
#   hackbench  perf bench sched messaging, 400 processes that write to each other's sockets
# MB are those of an hour at that rate, before compression. The share of CPU time is that of the whole
# machine: events times what one takes on it, and the recorder.
# functions are called by name
# shellcheck disable=SC2317
. "$(dirname "$0")/../tests/integration/lib.sh"
. "$SRC/bench/lib.sh"
seconds=60 loads=idle,compile,hackbench
options seconds loads -- "$@"
need_tracefs
need_command python3 gcc

[ ${#words[@]} -gt 0 ] || for file in "$SRC"/sessions/*.conf; do
	words+=("$(basename "$file" .conf)")
done
for name in "${words[@]}"; do
	session "$name" <"$SRC/sessions/$name.conf"
done

load_idle() {
	sleep "$seconds"
}

compile() {
	local file
	while :; do
		for file in "$SRC"/basic/*.c "$SRC"/formats/*.c; do
			gcc -std=gnu11 -O2 -I"$SRC" -include "$BUILD/config.h" -c -o "$T/$1.o" "$file" || return
		done
	done
}
load_compile() {
	background compile a
	background compile b
	sleep "$seconds"
	stop_last_two
}

load_hackbench() {
	local end=$((SECONDS + seconds))
	while [ $SECONDS -lt $end ]; do
		perf bench sched messaging -l 1000 >/dev/null 2>&1 || return
	done
}

# the compilers
stop_last_two() {
	local pid
	for pid in "${CHILDREN[@]: -2}"; do
		kill "$pid" || fail "no compiler"
		wait "$pid" 2>/dev/null || true
	done
}

daemon_config <<-EOF
	[Storage]
	KeepFree=0
EOF
flyrecd_start
for load in ${loads//,/ }; do
	[ "$load" != hackbench ] || command -v perf >/dev/null || continue
	ctl start "${words[@]}"
	"load_$load" || fail "$load"
	ctl --json cost >"$T/$load.json"
	ctl stop "${words[@]}"
	for name in "${words[@]}"; do
		rm -f "$STATE/$name"/record/*.dat
	done
done
flyrecd_stop
! grep -i 'lost' "$FLYRECD_LOG" >&2 || echo "session-costs: events were lost" >&2

python3 - "$T" "$loads" "${words[@]}" <<'END'
import json, os, sys
where, loads, names = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
cost = {l: json.load(open(f"{where}/{l}.json")) for l in loads if os.path.exists(f"{where}/{l}.json")}
nsec = ", ".join(f"{c['event_nsec']:.0f}" for c in list(cost.values())[:1] if c["event_nsec"])
print(f"{next(iter(cost.values()))['cpus']} CPUs, {nsec} ns an event\n")
print("| session |" + "".join(f" {l}: events/s | MB/h | CPU |" for l in cost))
print("|---|" + "---:|---:|---:|" * len(cost))
for name in names:
    row = f"| {name} |"
    for load, c in cost.items():
        # since it was started: flight sessions may hold less than a minute
        s = [s["hour"] for s in c["sessions"] if s["name"] == name][0]
        row += f" {s['events_per_sec']:,.0f} | {s['bytes_per_hour'] / 1e6:,.0f} | {s['overhead_percent']:.3f} % |"
    print(row)
END
