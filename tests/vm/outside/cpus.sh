#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# scenarios/clocks.sh where 64 CPUs are possible, of which two are there, and the TSC counts as unstable;
# scenarios/many-cpus.sh where 256 are; the long form where there are 64 CPUs, which record markers as well.
# only: also
# time-limit: 400
# shellcheck source=tests/vm/outside.sh
. "$SRC/tests/vm/outside.sh"
scenarios debian12 200 clocks -- possible_cpus=64 tsc=unstable
scenarios debian12 300 many-cpus -- possible_cpus=256 tsc=reliable
[ -z "${LONG:-}" ] || CPUS=64 MEMORY=4096 scenarios debian12 600 clocks record -- tsc=reliable
