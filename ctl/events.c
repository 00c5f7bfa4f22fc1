/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "basic/log.h"
#include "basic/strv.h"
#include "ctl/events.h"

static bool understood(int r, const char *verb, const char *option, const char *value)
{
	if (r < 0)
		(void)fprintf(stderr, "flyrecctl: %s: %s: %s: \"%s\"\n", verb, option,
			      r == -ENOMEM ? "out of memory" : "not understood", value);
	return r >= 0;
}

bool events_filter(struct event_filter *filter, const struct ctl *ctl, const char *verb)
{
	STRV_FOREACH (e, ctl->events)
		if (!understood(event_filter_event(filter, *e), verb, "--event=", *e))
			return false;
	STRV_FOREACH (p, ctl->pids)
		if (!understood(event_filter_pids(filter, *p), verb, "--pid=", *p))
			return false;
	return (!ctl->cpus ||
		understood(event_filter_cpus(filter, ctl->cpus), verb, "--cpu=", ctl->cpus)) &&
	       (!ctl->since || understood(event_filter_time(&filter->since, ctl->since), verb,
					  "--since=", ctl->since)) &&
	       (!ctl->until || understood(event_filter_time(&filter->until, ctl->until), verb,
					  "--until=", ctl->until));
}

void events_warn(const struct decoder *decoder)
{
	STRV_FOREACH (line, decoder_warnings(decoder))
		log_warning("%s: %s", decoder_dat(decoder)->path, *line);
}
