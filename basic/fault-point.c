/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "basic/fault-point.h"
#include "basic/macro.h"

void fault_point(const char *name)
{
	static _Atomic unsigned passed;
	const char *wanted = getenv("FLYREC_FAULT_POINT");
	size_t n = strlen(name);

	if (!wanted || strncmp(wanted, name, n) != 0 || (wanted[n] != '\0' && wanted[n] != ':'))
		return;
	if (++passed == (wanted[n] ? strtoul(wanted + n + 1, NULL, 10) : 1))
		(void)raise(SIGSTOP);
}
