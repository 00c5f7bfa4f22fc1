#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 60
#
# The alerts and the dashboard of doc/examples: each metric that they name is one of flyrecd's or of flyrec-fleet ship's, each
# alert has a case in which it fires and one in which it does not, and promtool agrees.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command jq python3
examples=$SRC/doc/examples

# A recording session and a flight session have all metrics between them
session rec <<-END
	[Trace]
	Event=sched:sched_process_exec
	[Storage]
	KeepFree=0
	Compress=zstd
END
session flight <<-END
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_process_exec
	BufferSize=256K
	[Snapshot]
	OnSignal=yes
	OnPressure=memory some 150ms 1s
END
flyrecd_start
ctl metrics >"$T/metrics" || fail "metrics"
flyrecd_stop
sed -En 's/^(flyrec_[a-z_]+)[{ ].*/\1/p' "$T/metrics" | sort -u >"$T/known"
# and of flyrec-fleet ship
sed -En 's/^\t+metric ([a-z_]+) (gauge|counter) .*/flyrec_fleet_\1/p' "$SRC/fleet/flyrec-fleet-ship" >>"$T/known"
sort -o "$T/known" "$T/known"
grep -qx flyrec_fleet_shipped_files_total "$T/known" || fail "no metrics of flyrec-fleet ship"
grep -qx flyrec_shed_events "$T/known" || fail "no flyrec_shed_events"

# named FILE: all that it names
named() { grep -oE '\bflyrec_[a-z_]+' "$1" | sort -u; }

for file in flyrec.rules.yml flyrec.rules.test.yml flyrec-dashboard.json; do
	echo "== $file"
	named "$examples/$file" >"$T/named"
	[ "$(wc -l <"$T/named")" -ge 5 ] || fail "$file names $(wc -l <"$T/named") metrics"
	comm -23 "$T/named" "$T/known" >"$T/unknown"
	[ ! -s "$T/unknown" ] || fail "flyrecd has no $(cat "$T/unknown")"
done

echo "== the dashboard"
jq -e '[.panels[].id] | length == (unique | length)' "$examples/flyrec-dashboard.json" >/dev/null ||
	fail "panels with the same number"
jq -e '.uid == "flyrec" and ([.panels[] | .targets[] | .expr] | all(test("^[a-z]+ by")))' \
	"$examples/flyrec-dashboard.json" >/dev/null || fail "a panel without a query"
# Grafana's variable is no PromQL
jq -r '.panels[].targets[].expr, .annotations.list[].expr' "$examples/flyrec-dashboard.json" |
	sed 's/[$]__rate_interval/5m/g' >"$T/queries"

echo "== each alert is tested both ways"
sed -n 's/^ *- alert: //p' "$examples/flyrec.rules.yml" | sort >"$T/alerts"
[ "$(wc -l <"$T/alerts")" = "$(sort -u "$T/alerts" | wc -l)" ] || fail "an alert twice"
sed -n 's/.*alertname: \(Flyrec[A-Za-z]*\)}$/\1/p' "$examples/flyrec.rules.test.yml" | sort -u >"$T/quiet"
sed -n "s/.*labels: '{alertname=\"\(Flyrec[A-Za-z]*\)\"}'.*/\1/p" "$examples/flyrec.rules.test.yml" | sort -u >"$T/fires"
diff "$T/alerts" "$T/quiet" || fail "alerts that are not seen to be quiet"
diff "$T/alerts" "$T/fires" || fail "alerts that are not seen to fire"

command -v promtool >/dev/null || skip "no promtool (package prometheus): rules and queries are not run"
echo "== promtool"
promtool check rules "$examples/flyrec.rules.yml" >"$T/out" 2>&1 || fail "$(cat "$T/out")"
promtool test rules "$examples/flyrec.rules.test.yml" >"$T/out" 2>&1 || fail "$(cat "$T/out")"
# Queries as rules, which promtool can check
python3 - "$T/queries" >"$T/queries.yml" <<-'END'
	import json, sys
	rules = [{"record": "query:%d" % i, "expr": line.rstrip("\n")} for i, line in enumerate(open(sys.argv[1]))]
	print(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
END
promtool check rules "$T/queries.yml" >"$T/out" 2>&1 || fail "$(cat "$T/out")"
