#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# scenarios/day.sh in a machine whose clock goes on at once when it has nothing to do: a day of it takes
# half an hour.
# only: long
# time-limit: 3000
# shellcheck source=tests/vm/outside.sh
. "$SRC/tests/vm/outside.sh"
LEAPS=1 scenarios debian13 9000 day -- clocksource=tsc tsc=reliable
