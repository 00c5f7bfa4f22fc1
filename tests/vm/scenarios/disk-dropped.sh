#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A disk that takes writes and forgets them, then flyrecd and the mounts are gone as in a power cut: what
# had been finished before is there, what comes after too, and all files are whole. What the disk had
# confirmed and has not is said, and counted.
# also: debian13
# time-limit: 300
. "$(dirname "$0")/../guest.sh"
. "$(dirname "$0")/disk-lib.sh"
disk ext4 ext4 100
disk xfs xfs 320
recorder ext4
recorder xfs
drop_in no-restart <<-EOF
	[Service]
	Restart=no
EOF
flyrecd_start
count ext4 1 --rate=1000 --count=1000
count xfs 1 --rate=1000 --count=1000
"$FLYRECCTL" rotate >/dev/null || fail "rotate"
table ext4 drop_writes
table xfs drop_writes
begin_count ext4 2 --rate=500 --count=1000
count xfs 2 --rate=500 --count=1000
wait "${COUNTING[ext4]}"
kill -KILL "$FLYRECD_PID"
is_over() { [ "$(property ActiveState)" = failed ]; }
wait_for 20 is_over || fail "flyrecd lives"
for fs in ext4 xfs; do
	umount "$STATE/$fs"
	table $fs linear
	mount "/dev/mapper/flyrec-$fs" "$STATE/$fs" || fail "$fs: cannot mount"
done
flyrecd_start
for fs in ext4 xfs; do
	must_log "$fs: [0-9]* bytes of record/current.dat were synced but are missing now"
done
count ext4 3 --count=200
count xfs 3 --count=200
for fs in ext4 xfs; do
	"$FLYRECCTL" --json stats "$fs" | jq '[.sessions[0].cpus[].not_written] | add' >"$T/$fs.not_written" ||
		fail "stats"
	"$FLYRECCTL" status "$fs" >"$T/$fs.status" || fail "status"
	cat "$T/$fs.status"
	grep -q "^$fs: 0 events lost, $(cat "$T/$fs.not_written") sub-buffers not written, first " "$T/$fs.status" ||
		fail "status does not say what $fs has lost"
done
flyrecd_stop
for fs in ext4 xfs; do
	verify "$STATE/$fs"
	markers_are "$fs" "--expect=$T/$fs.1" "--expect=$T/$fs.2" "--expect=$T/$fs.3" --max-lost=2000 \
		"$STATE/$fs"/record/2*.dat
	cat "$T/check"
	grep -q ' lost [0-9]' "$T/check" || fail "$fs: nothing was dropped: a poor test"
	# Half of them had been synced; a sub-buffer holds at most 113
	missing=$(sed -n 's/^cpu=.* lost=\([0-9]*\) .*/\1/p' "$T/check" | paste -sd +)
	missing=$((missing))
	echo "$fs: $missing missing, $(cat "$T/$fs.not_written") sub-buffers not written"
	[ $(($(cat "$T/$fs.not_written") * 113)) -ge $((missing / 2)) ] ||
		fail "wrong data: $fs: $missing markers are missing, $(cat "$T/$fs.not_written") sub-buffers are accounted for"
	! grep -E 'lost ([0-9]{1,3}\.\.|[0-9]+\.\.([2-9][0-9]{3,}))' "$T/check" ||
		fail "wrong data: $fs: markers are missing that the disk had"
	trace-cmd report "$STATE/$fs"/record/2*.dat >/dev/null 2>"$T/errors" || fail "$fs: trace-cmd report"
	[ ! -s "$T/errors" ] || fail "$fs: trace-cmd report: $(head -n 2 "$T/errors")"
done
