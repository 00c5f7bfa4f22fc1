#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# scenarios/incidents.sh in a machine that has its own time: what the host takes away from an emulated
# processor would look like a wait or a long interrupt inside.
# time-limit: 400
# shellcheck source=tests/vm/outside.sh
. "$SRC/tests/vm/outside.sh"
LEAPS=1 scenarios debian13 300 incidents -- clocksource=tsc tsc=reliable
