#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# scenarios/clocks.sh where 64 CPUs are possible, of which two are there, and the TSC counts as unstable;
# the long form where there are 64 CPUs, which record markers as well.
# time-limit: 400
# shellcheck source=tests/vm/outside.sh
. "$SRC/tests/vm/outside.sh"
set +e

# run MACHINE SECONDS SCENARIO... -- APPEND...
run() {
	local machine=$1 limit=$2 dir name names=()
	shift 2
	while [ "$1" != -- ]; do
		names+=("$1")
		shift
	done
	shift
	dir=$T/$machine-${CPUS:-2}
	mkdir -p "$dir"
	printf '. /job/tests/vm/guest.sh\ntrap - EXIT\nset +eu\nLONG=%s run_scenarios %s\n' \
		"${LONG:-}" "${names[*]}" >"$dir.run"
	vm_start "$machine" "$dir" "$dir.run" "$@"
	vm_wait "$limit" || true
	cp "$dir/console" "$LOGS/vm-cpus-${CPUS:-2}.console"
	for name in "${names[@]}"; do
		cat "$dir/out/$name.log"
		grep -a "VM: .* $name " "$dir/console"
		grep -aq "VM: PASS $name " "$dir/console" ||
			fail "${CPUS:-2} CPUs: $(tr -d '\r' <"$dir/console" | sed -n "s/.*VM: //p" | tail -n 1)"
	done
}

run debian12 200 clocks -- possible_cpus=64 tsc=unstable
[ -z "${LONG:-}" ] || CPUS=64 MEMORY=4096 run debian12 600 clocks record -- tsc=reliable
