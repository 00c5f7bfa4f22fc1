/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "basic/macro.h"
#include "fleet/window.h"

#define COVERED 95 /* percent, as for flyrecd */

static double seconds(uint64_t usec)
{
	return (double)usec / USEC_PER_SEC;
}

enum window_fault window_judge(const struct fleet_follow_config *c, const struct message *m,
			       uint64_t now, struct window *ret, struct fault *why)
{
	const uint64_t length = m->until_usec - m->since_usec;
	const uint64_t latest = now + c->margin_usec;
	uint64_t margin;

	if (length > c->max_window_usec) {
		(void)fault_set(why, -EINVAL, "%.1f s long, MaxWindowSec=%.1fs", seconds(length),
				seconds(c->max_window_usec));
		return WINDOW_TOO_LONG;
	}
	if (m->since_usec >= latest) {
		(void)fault_set(why, -EINVAL, "begins %.1f s in the future",
				seconds(m->since_usec - now));
		return WINDOW_AHEAD;
	}
	if (m->until_usec > latest + c->max_ahead_usec) {
		(void)fault_set(why, -EINVAL, "ends %.1f s in the future, MaxAheadSec=%.1fs",
				seconds(m->until_usec - now), seconds(c->max_ahead_usec));
		return WINDOW_AHEAD;
	}
	if (now > c->max_age_usec && m->until_usec < now - c->max_age_usec) {
		(void)fault_set(why, -EINVAL, "ended %.1f s ago, MaxAgeSec=%.1fs",
				seconds(now - m->until_usec), seconds(c->max_age_usec));
		return WINDOW_TOO_OLD;
	}
	margin = MIN(c->margin_usec, (c->max_window_usec - length) / 2);
	ret->since_usec = m->since_usec - MIN(margin, m->since_usec);
	ret->until_usec = MIN(m->until_usec + margin, now + c->max_ahead_usec);
	ret->until_usec = MAX(ret->until_usec, ret->since_usec + 1);
	return WINDOW_OK;
}

bool window_covers(const struct window *w, const struct window *of)
{
	const uint64_t since = MAX(w->since_usec, of->since_usec);
	const uint64_t until = MIN(w->until_usec, of->until_usec);

	return since < until &&
	       (until - since) * 100 >= (of->until_usec - of->since_usec) * COVERED;
}
