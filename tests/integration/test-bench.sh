#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# time-limit: 300
# tests: all
#
# The bench runs, all files that it has recorded are right, and no ratio is far from its goal.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command losetup mkfs.ext4 fincore trace-cmd
for tool in floor measure; do
	[ -x "$BUILD/bench/$tool" ] || skip "bench/$tool is not built"
done
trap - EXIT # the bench's own
BENCH_QUICK=1 exec "$SRC/bench/run"
