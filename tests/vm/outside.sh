# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the tests tests/vm/outside/*.sh begin with, which drive machines of their own from outside.
# Set by run-all: SRC, BUILD, T (scratch directory), LOGS, LONG ("1": the long form) and
# FLYREC_VM_PACKAGE. A test ends with status 0, 77 (`skip REASON`) or `fail REASON`.

set -eu
VM_PID=''
trap '[ -z "$VM_PID" ] || kill -KILL "$VM_PID"' EXIT
trap 'exit 143' TERM

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

skip() {
	echo "SKIP: $*" >&2
	exit 77
}

# shellcheck source=tests/vm/lib.sh
. "$SRC/tests/vm/lib.sh"
vm_package

# scenarios MACHINE SECONDS SCENARIO... -- APPEND...: in a machine of its own, see vm_start
scenarios() {
	local machine=$1 limit=$2 dir name names=()
	shift 2
	while [ "$1" != -- ]; do
		names+=("$1")
		shift
	done
	shift
	dir=$T/$machine-${CPUS:-2}
	mkdir -p "$dir"
	printf '. /job/tests/vm/guest.sh\ntrap - EXIT\nset +eu\nLONG=%s MINUTES=%s run_scenarios %s\n' \
		"${LONG:-}" "${MINUTES:-0}" "${names[*]}" >"$dir.run"
	vm_start "$machine" "$dir" "$dir.run" "$@"
	vm_wait "$limit" || true
	cp "$dir/console" "$LOGS/vm-$machine-${CPUS:-2}.console"
	for name in "${names[@]}"; do
		cat "$dir/out/$name.log" || true
		grep -a "VM: .* $name " "$dir/console" || true
		grep -aq "VM: PASS $name " "$dir/console" ||
			fail "${CPUS:-2} CPUs: $(tr -d '\r' <"$dir/console" | sed -n "s/.*VM: //p" | tail -n 1)"
	done
}
