/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrec-fleet VERB: what an administrator of many hosts does. Verbs are functions, or programs of
 * their own in the folder of the package. Main thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/strv.h"
#include "fleet/check.h"
#include "fleet/program.h"

typedef int verb_function(struct fleet *fleet, int argc, char *argv[]);

static int verb_config(struct fleet *fleet, int argc, char *argv[])
{
	int r = fleet_load(fleet);

	if (r >= 0 && argc == 1)
		r = fleet_config_print(fleet->config, NULL, stdout);
	for (int i = 1; i < argc && r >= 0; i++) {
		r = fleet_config_print(fleet->config, argv[i], stdout);
		if (r == -ENOENT)
			(void)log_error("config: \"%s\" is no SECTION.KEY of fleet.conf", argv[i]);
	}
	return r;
}

static const struct verb {
	const char *name, *arguments, *summary;
	verb_function *run; /* NULL: a program flyrec-fleet-NAME */
} verbs[] = {
	{"check", "", "Say what is right, and what is wrong", verb_check},
	{"config", "[SECTION.KEY...]", "Print what fleet.conf says, checked", verb_config},
	{"load", "[OPTION...] FILE...", "Load recordings into ClickHouse", NULL},
	{"pull", "[OPTION...] ID", "Get what hosts have of a moment", NULL},
	{"ship", "[--once]", "Send snapshots to the store", NULL},
};

static char *usage_text(void)
{
	_cleanup_free_ char *lines = strdup("");

	for (size_t i = 0; lines && i < ARRAY_SIZE(verbs); i++) {
		char *more = strf("%s  %s %-*s %s\n", lines, verbs[i].name,
				  (int)(30 - strlen(verbs[i].name)), verbs[i].arguments,
				  verbs[i].summary);

		free(lines);
		lines = more;
	}
	return strf("flyrec-fleet [OPTIONS...] VERB ...\n\n"
		    "Have many hosts keep the same moment, and ask them.\n\n%s\n" FLEET_OPTIONS_HELP
		    "\n"
		    "See flyrec-fleet(7).\n",
		    lines ? lines : "");
}

static int run_program(const struct fleet *fleet, const char *name, char *argv[])
{
	_cleanup_free_ char *path = fleet_program_path(fleet, name);

	if (!path)
		return log_error_errno(-ENOMEM, "Cannot start flyrec-fleet-%s: %m", name);
	argv[0] = path;
	(void)execv(path, argv);
	return log_error_errno(-errno, "Cannot start %s: %m", path);
}

int main(int argc, char *argv[])
{
	_cleanup_(fleet_done) struct fleet fleet = {.name = "flyrec-fleet"};
	_cleanup_free_ char *usage = usage_text();
	int first = usage ? fleet_options(&fleet, argc, argv, usage) : -ENOMEM, r;

	if (first <= 0)
		return first < 0 ? 2 : 0;
	if (first == argc) {
		(void)fputs(usage, stderr);
		return 2;
	}
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (strcmp(verbs[i].name, argv[first]) != 0)
			continue;
		r = verbs[i].run ? verbs[i].run(&fleet, argc - first, argv + first)
				 : run_program(&fleet, verbs[i].name, argv + first);
		return r < 0 ? 1 : 0;
	}
	(void)log_error("flyrec-fleet: there is no verb \"%s\", see --help", argv[first]);
	return 2;
}
