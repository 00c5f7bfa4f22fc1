#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
# tests: fast
#
# What flyrecctl says of sessions: how far back they reach, how long their budget lasts, whose
# snapshot lacks what, times for people; and what it says when something cannot be had.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command jq trace-cmd taskset
need_event sched:sched_switch raw_syscalls:sys_enter

session rec <<-EOF
	[Trace]
	Event=sched:sched_switch
	[Storage]
	MaxUse=512M
	FlushSec=200ms
EOF
session fl <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=raw_syscalls:sys_enter
	EventTrigger=sched:sched_process_exit stacktrace
	BufferSize=64K
	Clock=mono
EOF
session empty <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_switch if prev_pid == 4000000
	BufferSize=64K
EOF
session quiet <<-EOF
	[Trace]
	Event=sched:sched_switch if prev_pid == 4000000
	BufferSize=64K
EOF
session unit <<-EOF
	[Trace]
	Event=sched:sched_switch
	Unit=no-such-thing.service
EOF
flyrecd_start

# said STATUS PATTERN COMMAND...: with one line that matches
said() {
	local wanted=$1 pattern=$2 status=0
	shift 2
	"$@" >"$T/out" 2>"$T/err" || status=$?
	[ "$status" = "$wanted" ] || fail "status $status, not $wanted: $*: $(cat "$T/err")"
	grep -qE -- "$pattern" "$T/err" || fail "\"$(cat "$T/err")\" does not say $pattern: $*"
	[ "$(wc -l <"$T/err")" = 1 ] || fail "more than a line: $*: $(cat "$T/err")"
}
of() { # SESSION JQ
	ctl --json status "$1" | jq -r ".sessions[0] | $2"
}

# --- how far back
for cpu in $(seq 0 $(($(nproc) - 1))); do
	taskset -c "$cpu" dd if=/dev/zero of=/dev/null bs=1 count=100000 2>/dev/null
done
[ "$(ctl --json stats fl | jq '[.sessions[0].cpus[].overrun] | min')" -gt 1000 ] ||
	fail "the ring buffers do not overwrite: $(ctl --json stats fl)"
background sh -c 'while :; do sleep 0.01; done'
sleep 2
history=$(of fl .history_usec)
now=${EPOCHREALTIME/./}
started=$(of fl .started_usec)
[ "$history" -gt 0 ] || fail "no history: $(ctl --json status fl)"
[ "$history" -lt $((now - started)) ] || fail "reaches back $history us, of $((now - started)) since it was started"
kernel=$(awk '/^oldest event ts/ { old = $4 } /^now ts/ { printf "%d\n", ($3 - old) * 1000000 }' \
	"$(instance fl)"/per_cpu/cpu*/stats | sort -n | head -n 1)
again=$(of fl .history_usec)
[[ $((kernel - again)) -lt 2000000 && $((again - kernel)) -lt 2000000 ]] ||
	fail "reaches back $again us, the kernel says $kernel"
[ "$(of fl '.history_per_cpu | length')" = "$(nproc)" ] || fail "$(ctl --json status fl)"
ctl status fl >"$T/status"
for line in '^   Reaches: [0-9.a-z ]+ back \(cpu0 [0-9]' '^ On events: sched:sched_process_exit stacktrace' \
	'^     Clock: mono' '^    Buffer: 64.0K for each CPU, in sub-buffers of 4.0K' '^ Snapshots: 0, 0B' '^     Since: 20'; do
	grep -qE "$line" "$T/status" || fail "no $line: $(cat "$T/status")"
done
grep -q $'^SESSION\tMODE\tSTATE\tSEGMENTS\tSNAPSHOTS\tDISK\tREACHES\tLOST\tDESCRIPTION$' < <(ctl status) ||
	fail "$(ctl status)"
# what it overwrites is no loss
[ "$(of fl .lost_events)" = 0 ] || fail "lost: $(ctl status fl)"
ctl stats >"$T/stats"
grep -qE $'^fl\t0\t[0-9]+\t[^\t]*\t-\t' "$T/stats" || fail "$(cat "$T/stats")"
grep -qE $'^rec\t0\t[0-9]+\t[^\t]*\t[0-9]+\t' "$T/stats" || fail "$(cat "$T/stats")"
ctl metrics >"$T/metrics"
! grep -q 'flyrec_overrun_events_total{session="fl"' "$T/metrics" || fail "an alarm for nothing"
grep -q 'flyrec_overwritten_events_total{session="fl",cpu="0"} [1-9]' "$T/metrics" || fail "$(cat "$T/metrics")"
grep -qE 'flyrec_history_seconds\{session="fl"\} [0-9]+\.[0-9]{6}$' "$T/metrics" || fail "$(cat "$T/metrics")"

# --- asked for more than there is
said 0 '^flyrecctl: snapshot: fl: asked for 30min, has [0-9.a-z ]+, from 20' ctl snapshot --last=30min fl
[ -s "$(cat "$T/out")" ] || fail "no file"
ctl --json snapshot fl >"$T/json"
path=$(jq -r '.sessions[0].path' "$T/json")
[ "$(jq '.sessions[0].bytes > 4096 and .sessions[0].start_usec > 1700000000000000 and
	.sessions[0].end_usec >= .sessions[0].start_usec' "$T/json")" = true ] || fail "$(cat "$T/json")"
[ "$(ctl --json list fl | jq "[.files[] | select(.path == \"$path\") | .start_usec][0]")" = \
	"$(jq '.sessions[0].start_usec' "$T/json")" ] || fail "not what list says: $(cat "$T/json")"
[ "$(of fl .snapshots)" = 2 ] || fail "$(ctl status fl)"
ctl snapshot rec >"$T/path" 2>"$T/err"
[ ! -s "$T/err" ] || fail "nothing was asked for: $(cat "$T/err")"
[ "$(of rec .snapshots)" = 1 ] || fail "a snapshot of rec: $(ctl status rec)"
[ "$(of rec .snapshot_bytes)" -gt 4096 ] || fail "$(ctl --json status rec)"

# --- one that has nothing yet
said 1 'snapshot: empty: no events yet \(recording since 20[-0-9: .]+\)' ctl snapshot empty
ctl snapshot >"$T/paths" 2>"$T/err" || fail "one empty session fails all: $(cat "$T/err")"
[ "$(wc -l <"$T/paths")" -ge 2 ] || fail "$(cat "$T/paths")"
grep -q '^flyrecctl: snapshot: empty: no events yet' "$T/err" || fail "$(cat "$T/err")"
said 1 'snapshot: rec: nothing was recorded from 20[-0-9: .]* to 20[-0-9: .]*; it reaches back to 20' \
	ctl snapshot --since=2001-01-01 --until=2020-01-01 rec
said 2 'since=tomorrow is in the future: 20' ctl snapshot --since=tomorrow fl
said 2 'not a time span such as 30s; 0, or no --last=, is all' ctl snapshot --last=soon fl
ctl snapshot --last=0 fl >"$T/path" 2>"$T/err" || fail "--last=0: $(cat "$T/err")"
[ ! -s "$T/err" ] || fail "--last=0: $(cat "$T/err")"
said 2 '"Stall": the first word may have a-z, 0-9 and "-", at most 28' ctl snapshot --reason=Stall fl
said 2 '"": the first word' ctl snapshot --reason= fl
said 2 'needs one SESSION or --together$' ctl snapshot --output="$T/x" fl rec
said 2 'would be on nohost: .*use flyrecctl -H nohost cat' ctl -H nohost snapshot fl --output="$T/x"
said 2 'run it on nohost: ssh nohost flyrecctl verify' ctl -H nohost verify x

# --- a host that cannot be reached is no daemon that hung up
mkdir "$T/bin"
printf '#!/bin/sh\nexit 255\n' >"$T/bin/ssh"
chmod +x "$T/bin/ssh"
said 1 '^flyrecctl: status: no connection to nohost: ssh' \
	env "PATH=$T/bin:$PATH" "$FLYRECCTL" -H nohost status
said 1 '^flyrecctl: cat: no connection to nohost: ssh ended with status 255' \
	env "PATH=$T/bin:$PATH" "$FLYRECCTL" -H nohost cat fl x

# --- standard output, everywhere
cd "$T"
ctl cat fl "$path" -o - >"$T/copy.dat"
verify "$T/copy.dat"
ctl snapshot rec --output=- >"$T/now.dat" 2>"$T/err" || fail "$(cat "$T/err")"
verify "$T/now.dat"
[ ! -e "$T/-" ] || fail "a file called -"
ctl cat fl "$path" -o "$T/mode.dat"
cmp "$T/mode.dat" "$T/copy.dat" || fail "cat -o FILE"
[ "$(stat -c %a "$T/mode.dat")" = 600 ] || fail "everybody may read the copy: $(stat -c %A "$T/mode.dat")"
said 1 'none.dat' ctl cat fl none.dat -o "$T/kept.dat"
[ ! -e "$T/kept.dat" ] || fail "half a file"
cd /

# --- tail that has nothing to print says why
said 1 'session fl is in flight mode' ctl tail fl
said 0 'session quiet: no events yet' ctl tail quiet
said 0 'session rec: none of its events is one that was asked for' ctl tail --pid=4000001 rec

# --- Unit= without a process
ctl status unit >"$T/status"
grep -q '^      Unit: no-such-thing.service' "$T/status" || fail "$(cat "$T/status")"
grep -q '^ Processes: none: is no-such-thing.service running?' "$T/status" || fail "$(cat "$T/status")"
[ "$(of unit '.units[0]')" = no-such-thing.service ] || fail "$(ctl --json status unit)"

# --- the last hour: not less than is in finished files, not more than is in these and the next ones
graph_events() { # SESSION
	of_graph "$1" '[.last_hour[].events] | add'
}
of_graph() { # SESSION JQ
	ctl --json status --graph "$1" | jq -r ".sessions[0] | $2"
}
in_files() {
	ctl rotate rec >/dev/null
	ctl --json stats rec >"$T/stats"
	[ "$(jq '[.sessions[].cpus[].lost_events] | add' "$T/stats")" = 0 ] || fail "lost: $(cat "$T/stats")"
	"$FLYRECCTL" --json verify "$STATE"/rec/record/2*.dat | jq '[.files[].cpus[].events] | add'
}
before=$(in_files)
graph=$(graph_events rec)
after=$(in_files)
[[ $before -gt 0 && $graph -ge $before && $graph -le $after ]] ||
	fail "the graph has $graph events, the files had $before and have $after"
before=$(of fl .events_traced)
graph=$(graph_events fl)
after=$(of fl .events_traced)
[[ $before -gt 0 && $graph -ge $before && $graph -le $after ]] ||
	fail "the graph of fl has $graph events, there were $before and are $after"
[ "$(of_graph fl '.last_hour[-1] | .usec > 0 and .lost_events == 0 and .end_usec > 1700000000000000')" = true ] ||
	fail "$(ctl --json status --graph fl)"
[ "$(of fl 'has("last_hour")')" = false ] || fail "nobody asked for it: $(ctl --json status fl)"
LC_ALL=C.UTF-8 ctl status --graph >"$T/graph"
grep -qE '^rec: [0-9]+ events/s, at most [0-9]+; [0-9]+ lost$' "$T/graph" || fail "$(cat "$T/graph")"
[ "$(grep -cE '^events .*[▁▂▃▄▅▆▇█·]$' "$T/graph")" = 5 ] || fail "$(cat "$T/graph")"
LC_ALL=C ctl status --graph fl >"$T/graph"
grep -qE '^events {60}@$' "$T/graph" || fail "$(cat "$T/graph")"
said 2 'is not an option of this verb \(status has it\)' ctl list --graph

# --- times: the file's own, of day, of the trace clock, from the trigger on
export_text() { # ARGUMENT...
	"$FLYRECCTL" export --format=text "$@" "$path"
}
export_text >"$T/default"
export_text --time=epoch | cmp - "$T/default" || fail "--time=epoch is the default"
trace-cmd report "$path" 2>/dev/null | cmp - "$T/default" || fail "not what trace-cmd report prints"
line=$(grep -m1 '\] *[0-9]*\.[0-9]*: ' "$T/default")
epoch=$(sed -E 's/.*\] +([0-9]+)\.[0-9]+: .*/\1/' <<<"$line")
rest=$(sed -E 's/.*\] +[0-9]+(\.[0-9]+): .*/\1/' <<<"$line")
first() { # FILE: its first event
	grep -m1 '\] ' "$1"
}
export_text --time=utc >"$T/utc"
[ "$(sed -n 2p "$T/utc")" = "$(date -u -d "@$epoch" '+%F UTC')" ] || fail "the date: $(head -n 3 "$T/utc")"
[[ $(first "$T/utc") == *"] $(date -u -d "@$epoch" +%H:%M:%S)$rest: "* ]] || fail "$(first "$T/utc"), not $line"
TZ=CET-1 export_text --time=local >"$T/local"
[[ $(first "$T/local") == *"] $(TZ=CET-1 date -d "@$epoch" +%H:%M:%S)$rest: "* ]] ||
	fail "$(first "$T/local"), not $line"
# all but the times is the same
same_but_times() { # FILE
	cmp <(sed -E -e '/^20[0-9-]* UTC$/d' -e 's/\] +[-+:.0-9]+(ms)?: /] TIME: /' "$1") \
		<(sed -E 's/\] +[0-9.]+: /] TIME: /' "$T/default")
}
same_but_times "$T/utc" || fail "--time=utc changes more"
export_text --time=trigger >"$T/trigger"
same_but_times "$T/trigger" || fail "--time=trigger changes more"
ms=$(tail -n 1 "$T/trigger" | sed -E 's/.*\] +([-+0-9.]+)ms: .*/\1/')
awk -v ms="$ms" 'BEGIN { exit !(ms > -2000 && ms < 2000) }' || fail "the last event is $ms ms from the trigger"
export_text --time=trace >"$T/trace"
same_but_times "$T/trace" || fail "--time=trace changes more"
trace=$(first "$T/trace" | sed -E 's/.*\] +([0-9]+)\..*/\1/')
[ "$trace" -le "$(cut -d. -f1 /proc/uptime)" ] || fail "mono is $trace s"
said 1 'not a snapshot that says' "$FLYRECCTL" export --format=text --time=trigger "$STATE/rec/record/current.dat"
said 2 'none of epoch, local, utc, trace' ctl tail --time=now rec
said 2 'is for snapshots' ctl tail --time=trigger rec
said 1 'CPUs 0-[0-9]* only' "$FLYRECCTL" export --format=text --cpu=999 "$path"
ctl tail -n 5 rec >"$T/tail"
[ "$(grep -cE '\] [0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{6}: ' "$T/tail")" = 5 ] || fail "$(cat "$T/tail")"

# --- files of other programs
other() { # WHAT BYTES
	printf '%b' "$2" >"$T/other"
	! "$FLYRECCTL" verify "$T/other" >"$T/out" 2>"$T/err" || fail "verify: $1"
	grep -q "$1" "$T/out" || fail "verify does not say $1: $(cat "$T/out")"
	said 1 "$1" "$FLYRECCTL" export --format=text "$T/other"
}
other 'perf.data of perf record' 'PERFILE2xxxxxxxxxx'
other 'gzip -d' '\x1f\x8b\x08xxxxxxxxxx'
other 'zstd -d' '\x28\xb5\x2f\xfdxxxxxxx'
other 'empty file' ''
said 1 'is a directory, not a trace.dat' "$FLYRECCTL" export --format=text "$T"
printf 'root:x:0:0\ndaemon:x:1\n' >"$T/passwd"
said 1 'not a trace of QEMU4V or Tarmac' "$FLYRECCTL" import --format=qemu4v -o "$T/q.dat" "$T/passwd"
[ ! -e "$T/q.dat" ] || fail "a file of nothing"

# --- the words of the command line
said 2 'unknown option --formt, did you mean --format\?' "$FLYRECCTL" export --formt=json x
said 2 'export: --pin is not an option of this verb \(snapshot has it\)' "$FLYRECCTL" export --pin x
said 2 'unknown verb "exprot", did you mean export\?' "$FLYRECCTL" exprot
said 2 'snapshot: option --last needs an argument' "$FLYRECCTL" snapshot --last

# --- while a segment ends it counts: how far back the files reach does not shrink
rotate_often() {
	for _ in $(seq 8); do
		ctl rotate rec || return
	done
}
rotate_often >"$T/rotated" &
rotating=$!
history=0 files=0
while kill -0 $rotating 2>/dev/null; do
	read -r now_history now_files < <(of rec '"\(.history_usec) \(.segments)"')
	[[ $now_history -ge $history && $now_files -ge $files ]] ||
		fail "reaches back $now_history us in $now_files files, before that $history in $files"
	history=$now_history files=$now_files
done
[ "$(wc -l <"$T/rotated")" = 8 ] || fail "rotate: $(cat "$T/rotated")"

# --- the budget, once there is a rate; history of what is stopped
knows_budget() {
	[ "$(of rec .budget_usec)" -gt 0 ]
}
wait_for 30 knows_budget || fail "$(ctl --json status rec)"
[ "$(of rec .max_use)" = 536870912 ] || fail "$(ctl --json status rec)"
ctl status rec >"$T/status"
grep -q '^    Budget: MaxUse=512M lasts .* at the rate of the last day' "$T/status" || fail "$(cat "$T/status")"
ctl stop rec
[ "$(of rec .history_usec)" -gt 8000000 ] || fail "$(ctl --json status rec)"
said 0 'rec does not record, it is stopped; these are the last events' ctl tail rec
[ "$(wc -l <"$T/out")" = 10 ] || fail "$(cat "$T/out")"
ctl stop quiet
rm -f "$STATE"/quiet/record/*.dat
said 1 'quiet does not record, it is stopped' ctl tail quiet

# --- 0 removes all
ctl vacuum --max-use=0 >"$T/out"
grep -q '^Removed [1-9]' "$T/out" || fail "$(cat "$T/out")"
[ "$(of fl .snapshots)" = 0 ] || fail "after vacuum: $(ctl status fl)"
flyrecd_stop
