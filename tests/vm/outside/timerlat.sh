#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# scenarios/timerlat.sh in a machine that has its own time: else the timer's interrupt is late whenever the host
# takes an emulated processor away, which rtla counts, too.
# only: long
# time-limit: 700
# shellcheck source=tests/vm/outside.sh
. "$SRC/tests/vm/outside.sh"
LEAPS=1 scenarios built 900 timerlat -- clocksource=tsc tsc=reliable
