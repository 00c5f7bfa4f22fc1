/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whose files this thread makes and may open: flyrecd runs as one user and has the files of
 * another, see daemon/manager/privileges.h. No state, any thread.
 */
#pragma once

#include <sys/fsuid.h>
#include <unistd.h>

/**
 * owner_uid() - owner of what is made here: the user ID for file systems, of setfsuid(2)
 */
static inline uid_t owner_uid(void)
{
	/* No such user: only tells. A seccomp filter may refuse the call. */
	int uid = setfsuid((uid_t)-1);

	return uid < 0 ? geteuid() : (uid_t)uid;
}
