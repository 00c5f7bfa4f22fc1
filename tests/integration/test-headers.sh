#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 240
# beside: yes
#
# What a file has beside its events is as small as it can be: the hour of a quiet session is less than
# 4 MB on two CPUs, and less than 1 MB compressed, symbols that name nothing are left out and all names stay
# right, there is room for the names of tasks that came, and segments share what they have in common where
# the file system can.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command trace-cmd filefrag awk jq
need_event oom:mark_victim sched:sched_switch timer:timer_start

on_disk() { # FILE: bytes, preallocated ones too
	echo $(($(stat -c %b "$1") * 512))
}

# symbols FILE, names_room FILE: bytes of these sections
symbols() {
	"$TOOLS/seed-reader" "$1" | sed -n 's/^kallsyms \([0-9]*\)/\1/p'
}
names_room() {
	"$TOOLS/seed-reader" "$1" | sed -n 's/^task names [0-9]* in \([0-9]*\)/\1/p'
}

# quiet: a session with an event now and then, segments in $segments. The flush timer takes what a CPU
# has, each time a sub-buffer.
quiet() { # SEGMENTS [EVENTS A CPU, each by a flush of its own]
	local i
	segments=()
	flyrecd_start
	for ((i = 1; i <= $1; i++)); do
		"$TOOLS/markers" "--instance=${PREFIX}quiet" "--count=${2:-3}" ${2:+--rate=4} "${next[@]}" >"$T/expect"
		cp "$T/expect" "$T/last"
		next=("--continue=$T/last")
		segments+=("$(ctl rotate quiet)")
		[ -s "${segments[-1]}" ] || fail "no segment"
	done
	flyrecd_stop
	verify "${segments[@]}"
	! logged 'cannot\|Failed' || fail "$(grep 'cannot\|Failed' "$FLYRECD_LOG")"
}

session quiet <<-EOF
	[Trace]
	Event=oom:mark_victim
	BufferSize=1M
	[Storage]
	FlushSec=100ms
	KeepFree=0
	MaxUse=100M
EOF

# least_subbufs FILE: of the CPU that has the fewest
least_subbufs() {
	"$FLYRECCTL" --json verify "$1" | jq '[.files[0].cpus[].subbufs] | min'
}

is_compressed() { # FILE
	[ "$(od -An -c -j 10 -N 1 "$1" | tr -d ' ')" = 7 ]
}

echo "== a quiet hour, with 48 events on each CPU"
next=()
quiet 2 48
for segment in "${segments[@]}"; do
	bytes=$(on_disk "$segment")
	n=$(least_subbufs "$segment")
	echo "$bytes bytes: symbols $(symbols "$segment"), room for names $(names_room "$segment"), $n sub-buffers a CPU"
	[ "$n" -ge 36 ] || fail "only $n sub-buffers, which is no hour of flushes"
	[ "$bytes" -lt $((3500000 + $(nproc) * 250000)) ] || fail "the segment of a quiet session is $bytes bytes"
	# what is allocated ahead of the data is given back
	length=$(stat -c %s "$segment")
	[ "$bytes" -lt $((length + 65536)) ] || fail "the segment of $length bytes takes $bytes on the disk"
done
# of which the later ones know how few tasks come
[ "$(names_room "${segments[1]}")" -le "$(names_room "${segments[0]}")" ] ||
	fail "room for names grows: $(names_room "${segments[0]}"), $(names_room "${segments[1]}")"

echo "== compressed"
echo Compress=zstd >>"$CONFIG/sessions.d/quiet.conf"
flyrecd_start
wait_for 60 is_compressed "${segments[0]}" || fail "not compressed: $(tail -n 3 "$FLYRECD_LOG")"
flyrecd_stop
bytes=$(on_disk "${segments[0]}")
echo "$bytes bytes"
[ "$bytes" -lt 1000000 ] || fail "the segment of a quiet session is $bytes bytes, compressed"
[ "$(least_subbufs "${segments[0]}")" -ge 36 ] || fail "sub-buffers are missing"
rm -r "$STATE"

echo "== names of functions"
session names <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=sched:sched_switch
	Event=timer:timer_start
	Event=-workqueue:workqueue_execute_start
	EventTrigger=sched:sched_switch stacktrace:2000
	BufferSize=4M
EOF
rm "$CONFIG/sessions.d/quiet.conf"
flyrecd_start
for _ in {1..20}; do
	sh -c 'sleep 0.01; cat /proc/stat >/dev/null; sync -d /proc/self/exe'
done
ctl pause names
for ((cpu = 0; cpu < $(nproc --all); cpu++)); do
	sed -nE "s/^ => ([^ ]+).*/\1/p; s/.* function[= ]([^ ]+).*/\1/p" "$(instance names)/per_cpu/cpu$cpu/trace"
done >"$T/kernel"
snapshot=$(ctl snapshot names)
flyrecd_stop
for ((cpu = 0; cpu < $(nproc --all); cpu++)); do
	trace-cmd report --cpu "$cpu" "$snapshot" 2>/dev/null |
		sed -nE "s/^=> ([^ ]+).*/\1/p; s/.* function[= ]([^ ]+).*/\1/p"
done >"$T/report"
! grep -q __pfx_ "$T/report" || fail "$(grep -m 1 __pfx_ "$T/report")"
functions_are "$T/kernel" "$T/report" 500
"$FLYRECCTL" export --format=text -o "$T/export" "$snapshot"
trace-cmd report "$snapshot" 2>/dev/null | cmp - "$T/export" || fail "export differs from trace-cmd report"
if [ -x "$TOOLS/kshark-names" ]; then
	trace-cmd report "$snapshot" 2>/dev/null | sed -nE 's/^=> ([^ ]+).*/\1/p' | sort >"$T/theirs"
	"$TOOLS/kshark-names" "$snapshot" ftrace/kernel_stack | sed -nE 's/^=> ([^ ]+).*/\1/p' | sort >"$T/kshark"
	diff "$T/theirs" "$T/kshark" >"$T/diff" || fail "KernelShark has other names: $(head -n 4 "$T/diff")"
	echo "KernelShark: $(wc -l <"$T/kshark") names"
fi
rm "$CONFIG/sessions.d/names.conf"
rm -r "$STATE"

# shared FILE: bytes of it that are in another file as well
shared() {
	# "   0:        0..     658:      3328..      3986:    659:             shared"
	filefrag -b4096 -v "$1" | awk '/^ *[0-9]+:.*shared/ { gsub(/[.:]+/, " "); n += $6 }
		END { printf "%d\n", 4096 * n }'
}

echo "== shared"
session quiet <<-EOF
	[Trace]
	Event=oom:mark_victim
	BufferSize=1M
	[Storage]
	FlushSec=200ms
	KeepFree=0
	MaxUse=1G
EOF
home=$STATE
for fs in btrfs xfs ext4; do
	state_on $fs 600M
	next=()
	quiet 4
	symbols=$(symbols "${segments[0]}")
	for segment in "${segments[@]}"; do
		bytes=$(shared "$segment")
		echo "$fs: $bytes of $(on_disk "$segment") bytes are shared"
		case $fs in
		ext4) [ "$bytes" = 0 ] || fail "shared on $fs" ;;
		*) [ "$bytes" -gt $((symbols - 4096)) ] || fail "only $bytes bytes are shared, the symbols are $symbols" ;;
		esac
		[ "$(trace-cmd report "$segment" 2>/dev/null | grep -c 'flyrec-test cpu=')" -gt 0 ] || fail "no markers"
	done
	# one goes, the others stay whole
	rm "${segments[0]}"
	verify "${segments[@]:1}"
	STATE=$home
	umount "$T/$fs"
	unset "MOUNTS[$((${#MOUNTS[@]} - 1))]"
done
