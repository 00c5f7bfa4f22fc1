#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The power is cut while two sessions record, one on ext4 and one on xfs, again and again. After each
# cut both file systems are clean, every file opens in trace-cmd and is as verify wants it, also
# before flyrecd has seen it, and no more is lost than SyncIntervalSec allows. What happens in the
# machine is in power-cut.guest.
# may-fail: a machine that stood still at a cut makes its loss say nothing
# time-limit: 900
# shellcheck source=tests/vm/outside.sh
. "$SRC/tests/vm/outside.sh"
CUTS=${CUTS:-${LONG:+50}}
CUTS=${CUTS:-3}
DATA=$T/data.img
truncate -s 1G "$DATA"
written=''

# boot CUT: the machine until its power is cut, or to its end where it has been for the last time
boot() {
	{
		echo "BOOT=$1 WRITTEN='$written'"
		[ "$1" -lt "$CUTS" ] || echo LAST=1
		echo '. /job/tests/vm/outside/power-cut.guest'
	} >"$T/run"
	vm_start "${MACHINE:-debian13}" "$T/vm" "$T/run"
	if [ "$1" = "$CUTS" ]; then
		vm_wait 400 || true
	else
		vm_said 400 'VM: (FAIL|at [2-9][0-9] )' || true
		# Anywhere between two syncs, in a rotation or not
		sleep "$((RANDOM % 3)).$((RANDOM % 10))"
		vm_cut || true
	fi
}

# The guest says how many markers each session has on each CPU, and how it found the last boot's
for ((cut = 0; cut <= CUTS; cut++)); do
	# One boot in fifty ends in the emulator, before anything was done on these disks: int3 out of nowhere
	# where the kernel is changing its own code, or qemu itself
	for try in 1 2 3; do
		boot "$cut"
		! grep -aq 'VM: ' "$VM/console" || break
		echo "boot $cut, try $try: $(tr -d '\r' <"$VM/console" | tail -n 1)"
	done
	cp "$VM/console" "$LOGS/vm-power-cut.console$cut"
	tr -d '\r' <"$VM/console" | sed -n 's/.*VM: \(found .*\)/\1/p'
	why=$(tr -d '\r' <"$VM/console" | sed -n 's/.*VM: FAIL //p' | head -n 1)
	[ -z "$why" ] || fail "boot $cut: $why"
	[ "$cut" = 0 ] || [ "$(grep -ac 'VM: found' "$VM/console")" = 2 ] ||
		fail "boot $cut: $(tail -n 1 "$VM/console")"
	# A line that is not complete does not count
	written=$(tr -d '\r' <"$VM/console" | sed -n 's/.*VM: at [0-9]* \(.*\) \.$/\1/p' | tail -n 1)
	[ -n "$written" ] || [ "$cut" = "$CUTS" ] || fail "boot $cut: nothing was recorded"
done
