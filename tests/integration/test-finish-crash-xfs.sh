#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 900
# tests: all
# beside: yes
#
# test-finish-crash.sh on xfs, which takes about as long as all the others together.
command -v mkfs.xfs >/dev/null || {
	echo "SKIP: needs mkfs.xfs"
	exit 77
}
FS=xfs
# shellcheck source=tests/integration/test-finish-crash.sh
. "$(dirname "$0")/test-finish-crash.sh"
