/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine as a whole: tracefs mounted, permitted, locked down? how many CPUs? See also
 * tracefs_usable() in recorder/instance.h. No state (libtracefs remembers the mount point). Main
 * thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

/**
 * tracefs_locked_down() - does this text of /sys/kernel/security/lockdown forbid tracefs?
 * Only "confidentiality" does (LOCKDOWN_TRACEFS in security/security.c); "integrity" does not.
 */
bool tracefs_locked_down(const char *text);

/**
 * kptr_restricted() - are the addresses in /proc/kallsyms zeros even for us?
 * True with /proc/sys/kernel/kptr_restrict at 2, where no capability helps. With 0 or 1 CAP_SYSLOG
 * shows them. Traces then have no symbol names.
 */
bool kptr_restricted(void);

/**
 * possible_cpus() - how many CPUs this machine may have: the highest number plus one
 */
int possible_cpus(unsigned *ret, struct fault *why);
