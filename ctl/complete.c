/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Words for the shell's completion, one a line; what cannot be had is nothing
 */
#include <string.h>

#include "basic/strv.h"
#include "ctl/verbs.h"
#include "ctl/view.h"

static enum ctl_status complete_files(sd_bus *bus, const char *session)
{
	struct view_files files;

	if (view_read_files(bus, "complete", session, &files) < 0)
		return CTL_FAILED;
	for (size_t i = 0; i < files.n; i++)
		printf("%s\n",
		       session ? strrchr(files.files[i].path, '/') + 1 : files.files[i].path);
	view_files_done(&files);
	return CTL_DONE;
}

static enum ctl_status complete_sessions(sd_bus *bus, const char *events_of)
{
	struct view_status status;

	if (view_read_status(bus, "complete", events_of, &status) < 0)
		return CTL_FAILED;
	for (size_t i = 0; i < status.n_sessions; i++) {
		if (!events_of)
			printf("%s\n", status.sessions[i].name);
		STRV_FOREACH (event, events_of ? status.sessions[i].events : NULL)
			printf("%.*s\n", (int)strcspn(*event, " "), *event + (**event == '-'));
	}
	view_status_done(&status);
	return CTL_DONE;
}

static enum ctl_status complete_events(sd_bus *bus)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	_cleanup_(strv_freep) char **events = NULL;

	if (bus_call(bus, "complete", BUS_PATH, BUS_MANAGER, "ListEvents", &reply, NULL) < 0 ||
	    sd_bus_message_read_strv(reply, &events) < 0)
		return CTL_FAILED;
	STRV_FOREACH (event, events)
		printf("%s\n", *event);
	return CTL_DONE;
}

enum ctl_status verb_complete(const struct ctl *ctl, int argc, char **argv)
{
	_cleanup_bus_ sd_bus *bus = NULL;
	const char *what = argc > 1 ? argv[1] : "", *session = argc > 2 ? argv[2] : NULL;

	if (bus_connect(ctl, argv[0], &bus) < 0)
		return CTL_FAILED;
	if (strcmp(what, "sessions") == 0)
		return complete_sessions(bus, NULL);
	if (strcmp(what, "files") == 0)
		return complete_files(bus, session);
	if (strcmp(what, "events") == 0)
		return session ? complete_sessions(bus, session) : complete_events(bus);
	return CTL_USAGE;
}
