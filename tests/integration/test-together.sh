#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
#
# One snapshot of several sessions, two in flight and one that records, under load: every marker of
# each in the buffer of its name, for trace-cmd, libtracecmd and flyrecctl; what cannot be in one
# file is refused; what goes wrong leaves no half file.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_tool check-markers libtracecmd-open json-compare
need_command trace-cmd jq python3
need_event raw_syscalls:sys_enter sched:sched_switch

UNSEEN="sched:sched_process_exit if pid == 99999999"

flight() { # NAME BUFFERSIZE EVENT [LINE...]
	session "$1" <<-EOT
		[Session]
		Mode=flight
		[Trace]
		BufferSize=$2
		Event=$3
		$(printf '%s\n' "${@:4}")
	EOT
}

state_on ext4 2G
flight quiet 4M "$UNSEEN" Clock=mono "[Snapshot]" MaxFiles=5
flight stormy 2M "raw_syscalls:sys_enter if $LOAD_FILTER" Clock=mono
session rec <<-EOF
	[Trace]
	Event=sched:sched_switch if prev_comm == "$LOAD_NAME"
	Clock=mono
	BufferSize=32M
	[Storage]
	FlushSec=100ms
	MaxFileSize=1M
	KeepFree=0
EOF
SESSIONS=(quiet stormy rec)

nothing_half() {
	local hidden=("$STATE"/*/snapshot/.*.new)
	[ ${#hidden[@]} = 0 ] || fail "left behind: ${hidden[*]}"
}

# refused TEXT ARGUMENT...: with this text, and no file is made
refused() {
	local text=$1 before after
	shift
	before=$(ls -A "$STATE"/*/snapshot 2>/dev/null) || true
	if ctl snapshot "$@" >"$T/out" 2>"$T/err"; then fail "not refused: snapshot $*"; fi
	grep -qF -- "$text" "$T/err" || fail "snapshot $*: $(cat "$T/err"), not: $text"
	after=$(ls -A "$STATE"/*/snapshot 2>/dev/null) || true
	[ "$before" = "$after" ] || fail "snapshot $* was refused, but made: $after"
}

# in_order FILE: what trace-cmd shows is sorted by time, and the markers of each buffer and CPU come
# without a gap, once each
in_order() {
	trace-cmd report --nodate "$1" >"$T/report" 2>"$T/stderr" || fail "trace-cmd: $(cat "$T/stderr")"
	[ ! -s "$T/stderr" ] || fail "trace-cmd warns: $(cat "$T/stderr")"
	awk '
	function bad(what) { print what ": " $0; wrong = 1; exit }
	match($0, /\] +[0-9]+\.[0-9]+:/) {
		time = substr($0, RSTART + 1, RLENGTH - 2) + 0
		if (time < last) bad("not in the order of time")
		last = time
		events[$1]++
	}
	match($0, /flyrec-test cpu=[0-9]+ seq=[0-9]+/) {
		split(substr($0, RSTART, RLENGTH), words, /[ =]/)
		of = $1 words[3]
		if (of in seq && words[5] != seq[of] + 1) bad("a gap after " seq[of])
		seq[of] = words[5] + 0
		markers[$1]++
	}
	END {
		for (b in events) print b, events[b], "events", markers[b] + 0, "markers"
		n = 0
		for (b in markers) n++
		if (n != 3) { print "markers of", n, "sessions"; wrong = 1 }
		exit wrong
	}' "$T/report" || fail "$1: $(head -c 300 "$T/report")"
}

# good FILE [OPTION-OF-CHECK-MARKERS...]
good() {
	local file=$1 s
	shift
	verify "$file"
	for s in "${SESSIONS[@]}"; do
		grep -q ": buffer $s cpu 0: " "$T/verify" || fail "verify does not show $s"
		markers_are "$file, $s" --buffer="$s" --expect="$T/expect.$s" --allow-lost-at-start "$@" "$file"
	done
	"$TOOLS/libtracecmd-open" "$file" >"$T/open" 2>&1 || fail "$(cat "$T/open")"
	in_order "$file"
}

flyrecd_start
# Sub-buffers of two sizes in one file, where the kernel has them
if [ -e "$(instance quiet)/buffer_subbuf_size_kb" ]; then
	sizes=$(cat "$(instance quiet)/buffer_subbuf_size_kb" "$(instance stormy)/buffer_subbuf_size_kb")
	[ "$sizes" = $'16\n4' ] || fail "sub-buffers of $sizes KiB"
fi

# --- while all three trace: each session's markers go on to the last one, without a gap
load_start --rate=20000
for s in "${SESSIONS[@]}"; do
	background "$TOOLS/markers" "--instance=$PREFIX$s" --rate=2000 >"$T/expect.$s"
	MARKERS+=($!)
done
sleep 2
for i in 1 2 3; do
	ctl snapshot --together "${SESSIONS[@]}" >"$T/path.$i"
	sleep 0.2
done
load_stop # first, or it might overwrite all of stormy's markers
kill -TERM "${MARKERS[@]}"
wait "${MARKERS[@]}" || fail "markers"
for i in 1 2 3; do
	good "$(cat "$T/path.$i")" --allow-lost-at-end
done

# --- and when they have ended all of them are there, but for what was overwritten
file=$(ctl snapshot --together "${SESSIONS[@]}")
good "$file"
for s in quiet rec; do
	markers_are "$s" --buffer="$s" --expect="$T/expect.$s" "$file"
done

# --- where it is, and what it says of itself
[[ $file = "$STATE"/quiet/snapshot/*-together.dat ]] || fail "made as $file"
trace-cmd report --stat "$file" >"$T/stat" 2>/dev/null
grep -q "^flyrec snapshot of sessions quiet, stormy, rec$" "$T/stat" || fail "no names in its text"
grep -q "^reason: together$" "$T/stat" || fail "no reason in its text"
# statistics of each CPU behind the name of its session
cpus=$(awk '/^Buffer:/ { b = $2 } /^CPU:/ { if (!b) exit 1; n[b]++ } END { for (b in n) print b, n[b] }' \
	"$T/stat" | sort) || fail "statistics of no session"
possible=$(find "$(instance quiet)/per_cpu" -mindepth 1 -maxdepth 1 | wc -l)
[ "$cpus" = "$(printf '%s\n' "quiet $possible" "rec $possible" "stormy $possible")" ] ||
	fail "statistics: $cpus"
ctl --json list quiet >"$T/list"
jq -e --arg path "$file" '.files[] | select(.path == $path) |
	.kind == "snapshot" and .end_usec - .start_usec > 1500000' <"$T/list" >/dev/null ||
	fail "list: $(cat "$T/list")"

# --- what status counts: of one that records its segments, in flight its snapshots
on_disk() {
	ctl --json status "$1" | jq '.sessions[0].bytes_on_disk'
}
before=$(on_disk rec)
ctl snapshot --together rec quiet >"$T/out"
more=$(($(on_disk rec) - before)) # the last, partial sub-buffers
if [ "${more#-}" -gt 100000 ]; then
	fail "rec has $more bytes more on the disk than the $before before the snapshot"
fi
ctl snapshot --together quiet rec >"$T/out"
used=$(du -c --block-size=1 "$STATE"/quiet/snapshot/*.dat | tail -n 1 | cut -f1)
[ "$(on_disk quiet)" = "$used" ] || fail "quiet has $(on_disk quiet) bytes on the disk, not $used"

# --- flyrecctl reads it as others do
ctl export --format=text "$file" >"$T/text" || fail "export"
command trace-cmd report "$file" 2>/dev/null | cmp - "$T/text" || fail "not what trace-cmd prints"
ctl export --format=json "$file" >"$T/json" || fail "export --format=json"
"$TOOLS/json-compare" "$file" <"$T/json" >"$T/compare" 2>&1 || fail "$(tail -n 3 "$T/compare")"

# --- a copy, JSON, a pin, another reason, the last second
ctl snapshot --together rec quiet --last=1s --pin --output="$T/copy.dat" \
	--reason="stall for the test" >"$T/out"
[ "$(cat "$T/out")" = "$T/copy.dat" ] || fail "prints $(cat "$T/out")"
original=("$STATE"/rec/snapshot/*-stall.dat)
cmp "${original[0]}" "$T/copy.dat" || fail "the copy is different"
ctl --json list rec | jq -e '.files[] | select(.path | endswith("-stall.dat")) | .pinned' >/dev/null ||
	fail "not pinned"
prints "^for: for the test$" trace-cmd report --stat "$T/copy.dat" || fail "no detail"
sleep 1.2
background "$TOOLS/markers" "--instance=${PREFIX}quiet" --rate=1000 --duration=1 \
	--start=1000000 >"$T/expect.last"
wait $!
ended=${EPOCHREALTIME/./}
# whole sub-buffers, so with a little of what was before, but not with all of it
count_events() { # FILE
	ctl --json verify "$1" | jq '[.files[0].cpus[] | select(.buffer == "quiet") | .events] | add'
}
file=$(ctl snapshot --together quiet rec --last=1s)
late=$(((${EPOCHREALTIME/./} - ended) / 1000)) # so many markers later, at most, it began
verify "$file"
[ "$(count_events "$file")" -lt $(($(count_events "$(ctl snapshot --together quiet rec)") / 2)) ] ||
	fail "--last=1s has $(count_events "$file") events"
trace-cmd report "$file" 2>/dev/null | sed -n 's/^ *quiet: .*flyrec-test cpu=\([0-9]*\) seq=/\1 /p' |
	awk -v late=$late 'NR == FNR { split($0, w, /[ =]/); to[w[2]] = w[6]; next }
		$2 >= 1000000 { if (!n[$1]++) first[$1] = $2; last[$1] = $2 }
		END {
			for (c in to) {
				print c, first[c], last[c], n[c], to[c]
				if (last[c] != to[c] || n[c] != last[c] - first[c] + 1 ||
				    first[c] > 1000400 + late) exit 1
			}
		}' "$T/expect.last" - >"$T/check" || fail "the last second: $(cat "$T/check")"
# MaxFiles=5 of the first session
for _ in 1 2 3; do
	file=$(ctl snapshot --together quiet rec --last=1s)
done
snapshots=("$STATE"/quiet/snapshot/*.dat)
[ ${#snapshots[@]} -le 5 ] || fail "retention left ${#snapshots[@]} snapshots"
[ "${snapshots[-1]}" = "$file" ] || fail "retention took the newest"
ctl --json snapshot --together rec quiet |
	jq -e '[.sessions[].name] == ["rec", "quiet"] and .sessions[0].path == .sessions[1].path' \
		>/dev/null || fail "--json"

# --- one that has nothing of that time is an empty buffer; a paused one is as good as any
ctl pause stormy
flight idle 1M "$UNSEEN" Clock=mono
ctl reload
file=$(ctl snapshot --together idle stormy --last=10min)
verify "$file"
grep -q ": buffer idle cpu 0: 0 sub-buffers" "$T/verify" || fail "idle: $(cat "$T/verify")"
grep -q ": buffer stormy cpu 0: [1-9]" "$T/verify" || fail "paused: $(cat "$T/verify")"
prints -x "nothing was recorded in that time" trace-cmd report --stat "$file" ||
	fail "does not say that idle has nothing"
prints "^stormy: " trace-cmd report "$file" || fail "trace-cmd shows no stormy"
ctl resume stormy
flight idle2 1M "$UNSEEN" Clock=mono
ctl reload
refused "nothing was recorded in that time" --together idle idle2

# --- what cannot be
flight local 1M "$UNSEEN" Clock=local
ctl reload
refused "quiet has Clock=mono, local has Clock=local" --together quiet rec local
refused "different clocks" --together
refused "session quiet is named twice" --together quiet rec quiet
refused "there is no session quite, did you mean quiet?" --together rec quite
refused "the range ends before it begins" --together quiet rec --since=-1s --until=-2s
refused "the first word may have" --together quiet rec --reason=No
refused "two SESSIONs or more" --together quiet
refused "exclude each other" --together quiet rec --coresight
ctl stop idle2
refused "session idle2 does not record" --together quiet idle2

# --- no room, and nothing older that could make way: said, and nothing is left
filler() {
	fallocate -l "$(df --output=avail -B1 "$T/ext4" | tail -n 1)" "$T/ext4/filler" 2>/dev/null || true
	dd if=/dev/zero of="$T/ext4/filler2" bs=4k 2>/dev/null || true
}
ctl stop rec
rm -f "$STATE"/*/snapshot/2*.dat
filler
refused "No space left" --together quiet stormy
nothing_half
# more and more room, until there is enough for the parts, but not for the file
rm -f "$T"/ext4/filler*
path=$(ctl snapshot --together quiet stormy)
size=$(($(stat -c '%b * %B' "$path"))) # there are holes in it
rm "$path"
: >"$T/err"
for ((left = size; left < 8 * size; left += size / 4)); do
	rm -f "$T/ext4/filler"
	fallocate -l $(($(stat -f -c '%f * %S' "$T/ext4") - left)) "$T/ext4/filler" 2>/dev/null ||
		true
	refused "No space left" --together quiet stormy
	nothing_half
	grep -q ": session " "$T/err" || break
done
grep -q "No space left" "$T/err" || fail "was never refused"
if grep -q ": session " "$T/err"; then fail "a part has no room, not the file: $(cat "$T/err")"; fi
echo "no room with $left bytes: $(cat "$T/err")"
rm -f "$T"/ext4/filler*
ctl snapshot --together quiet stormy >"$T/out" || fail "not when there is room again"

# --- many at once, in either order: all are answered
for i in 1 2 3 4; do
	ctl snapshot --together quiet stormy >"$T/many.$i" &
	ctl snapshot --together stormy quiet >"$T/many.$i.2" &
done
for job in $(jobs -p); do
	[[ " ${CHILDREN[*]} " = *" $job "* ]] || wait "$job" || fail "not all were answered"
done
nothing_half
flyrecd_stop

# --- killed with the file complete but for its name: it never gets it, and is gone at the next start
stopped_itself() { [ "$(process_state "$FLYRECD_PID")" = T ]; }
for point in flight-data together-rename; do
	FLYREC_FAULT_POINT=$point flyrecd_start
	"$TOOLS/markers" "--instance=${PREFIX}quiet" --count=100 >/dev/null
	before=("$STATE"/*/snapshot/*.dat)
	ctl snapshot --together quiet stormy >"$T/out" 2>&1 &
	WAITING=$!
	wait_for 20 stopped_itself || fail "does not come to $point"
	half=("$STATE"/*/snapshot/.*.new)
	[ ${#half[@]} -ge 1 ] || fail "no half file at $point: the test tests nothing"
	flyrecd_kill
	if wait "$WAITING"; then fail "answered, although killed"; fi
	after=("$STATE"/*/snapshot/*.dat)
	[ "${before[*]}" = "${after[*]}" ] || fail "a half file has its final name"
	flyrecd_start
	nothing_half
	flyrecd_stop
done

# --- of another boot than the others' is what rec has: the file is of this one
session rec <<-EOF
	[Trace]
	Event=$UNSEEN
	Clock=mono
EOF
rm -rf "${STATE:?}"
flyrecd_start
"$TOOLS/markers" "--instance=${PREFIX}rec" --count=100 >/dev/null
flyrecd_stop
another_boot "$STATE"/rec/record/2*.dat
flyrecd_start
"$TOOLS/markers" "--instance=${PREFIX}quiet" --count=100 >"$T/expect.quiet"
log_mark
file=$(ctl snapshot --together rec quiet)
must_log "rec: what it has of that time is of another boot: it is left out"
verify "$file"
grep -q ": buffer rec cpu 0: 0 sub-buffers" "$T/verify" || fail "rec: $(cat "$T/verify")"
markers_are quiet --buffer=quiet --expect="$T/expect.quiet" "$file"
trace-cmd report --stat "$file" >"$T/stat" 2>/dev/null
grep -qx "what was recorded in that time is of another boot" "$T/stat" || fail "it does not say why rec is empty"
grep -qx "boot id: $(tr -d '\n-' </proc/sys/kernel/random/boot_id)" "$T/stat" || fail "it is not of this boot"
file=$(ctl snapshot --together rec idle) # nothing but what is of that one
trace-cmd report --stat "$file" >"$T/stat" 2>/dev/null
grep -qx "boot id: $ANOTHER_BOOT" "$T/stat" || fail "it is not of that boot"
flyrecd_stop
