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
