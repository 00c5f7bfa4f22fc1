#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A kernel dies, twice, while a session with Persistent=yes traces: after each warm reboot its trace
# is a -boot.dat, unattended, with the last markers before the panic and its symbols. Whole with the
# kernel of backports; with 6.12 (long form), which often does not take over all it finds, what there is.
# only: also
# may-fail: a kernel that the boot loader put over the old ring buffer (KASLR) finds nothing of it
# time-limit: 1000
# shellcheck source=tests/vm/outside.sh
. "$SRC/tests/vm/outside.sh"

machines=(backports)
[ -z "$LONG" ] || machines+=(debian13)
for machine in "${machines[@]}"; do
	# As flyrecctl boot-parameters says there. Much memory: the kernel itself is less likely to lie
	# where the ring buffer was.
	MEMORY=3072 REBOOT=1 PANIC=1 vm_start "$machine" "$T/$machine" "$SRC/tests/vm/outside/persistent.guest" \
		'reserve_mem=9M:2M:flyrec1 trace_instance=flyrec.oom^traceoff@flyrec1'
	status=0
	vm_wait 900 || status=$?
	cp "$T/$machine/console" "$LOGS/vm-persistent-$machine.console"
	cp "$T/$machine/out/journal" "$LOGS/vm-persistent-$machine.journal" || :
	sed "s/^/$machine: /" "$T/$machine/out/log" || :
	[ "$status" = 0 ] || fail "$machine: $(grep -a '^FAIL: ' "$T/$machine/out/log" ||
		tail -n 1 "$T/$machine/console")"
done
