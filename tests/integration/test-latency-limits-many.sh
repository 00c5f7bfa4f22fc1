#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# tests: all
# time-limit: 300
#
# The same as test-latency-limits.sh with 1,000 waits of each kind.
LIMIT_WAITS=1000
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/test-latency-limits.sh"
