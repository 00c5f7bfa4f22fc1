#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The power is cut at each fault point of compressing a segment, on ext4 and on xfs in turns; in the long form
# on both, 11 rounds (or ROUNDS). After each cut the file system is clean, and the segment is there under its name,
# as it was or compressed, whole; once flyrecd has started nothing else is, and what was not compressed is
# then. What happens in the machine is in power-cut-compress.guest.
# only: also
# time-limit: 900
# shellcheck source=tests/vm/outside.sh
. "$SRC/tests/vm/outside.sh"
DATA=$T/data.img
truncate -s 1G "$DATA"
done_fs=''

# boot [FS POINT]: look back, and unless it is the last time go on until the power is cut at POINT
boot() {
	{
		echo "DONE=$done_fs NEXT=${1:-} POINT=${2:-} FORCE=$([ "${1:-}" = xfs ] && echo -f || echo -F)"
		echo '. /job/tests/vm/outside/power-cut-compress.guest'
	} >"$T/run"
	vm_start "${MACHINE:-debian13}" "$T/vm" "$T/run"
	if [ $# = 0 ]; then
		vm_wait 400 || true
	else
		vm_said 400 "VM: (FAIL|at $2 )" || true
		# At once, and when the file system has written more of it
		sleep "$((RANDOM % 7)).$((RANDOM % 10))"
		vm_cut || true
	fi
}

# cut_at [FS POINT]
cut_at() {
	local why try
	# One boot in fifty ends in the emulator, before anything was done on the disk
	for try in 1 2 3; do
		boot "$@"
		! grep -aq 'VM: ' "$VM/console" || break
		echo "boot, try $try: $(tr -d '\r' <"$VM/console" | tail -n 1)"
	done
	cp "$VM/console" "$LOGS/vm-power-cut-compress.console$((++n))"
	why=$(tr -d '\r' <"$VM/console" | sed -n 's/.*VM: FAIL //p' | head -n 1)
	[ -z "$why" ] || fail "boot $n: $why"
	[ -z "$done_fs" ] || tr -d '\r' <"$VM/console" | grep -ao 'found .*' ||
		fail "boot $n: $(tail -n 1 "$VM/console")"
	[ $# = 0 ] || tr -d '\r' <"$VM/console" | grep -ao "at $2 .*" || fail "boot $n: not at $2"
	done_fs=${1:-}
}

points=$(grep -oE 'fault_point\("compress-[a-z]+"' "$SRC/writer/compress.c" | cut -d'"' -f2)
[ "$(wc -w <<<"$points")" -ge 5 ] || fail "fault points: $points"
# five points: each round begins with the other file system
n=0 fs=ext4
for ((round = 0; round < ${ROUNDS:-${LONG:+1}1}; round++)); do
	for point in $points; do
		cut_at "$fs" "$point"
		fs=$([ "$fs" = ext4 ] && echo xfs || echo ext4)
	done
done
cut_at
