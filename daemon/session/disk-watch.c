/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "basic/macro.h"
#include "daemon/session/disk-watch.h"

#define PATIENCE_USEC (10 * USEC_PER_SEC) /* an error may pass */
#define HANG_USEC     (5 * USEC_PER_SEC)

void disk_watch_begin(struct disk_watch *w, uint64_t now_usec)
{
	*w = (struct disk_watch){.trouble_usec = now_usec};
}

int disk_watch_look(struct disk_watch *w, int trouble, bool idle, uint64_t bytes, uint64_t now_usec)
{
	if (trouble < 0)
		return trouble;
	if (idle || bytes != w->bytes || w->progress_usec == 0) {
		w->progress_usec = now_usec;
		w->bytes = bytes;
	}
	return now_usec - w->progress_usec >= HANG_USEC ? -ETIMEDOUT : 0;
}

bool disk_watch_observe(struct disk_watch *w, int trouble, uint64_t now_usec)
{
	if (trouble == 0 || trouble == -ETIMEDOUT || disk_watch_is_full(trouble))
		w->trouble_usec = now_usec;
	return now_usec - w->trouble_usec >= PATIENCE_USEC;
}

bool disk_watch_is_full(int trouble)
{
	return trouble == -ENOSPC || trouble == -EDQUOT;
}
