/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "basic/log.h"
#include "basic/strv.h"
#include "fleet/program.h"

int fleet_options(struct fleet *fleet, int argc, char *argv[], const char *usage)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"runtime-dir", required_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{},
	};
	int option;

	log_open(LOG_INFO);
	fleet->config_path = FLEET_CONFIG_FILE;
	fleet->runtime_dir = "/run/flyrec";
	while ((option = getopt_long(argc, argv, "+h", options, NULL)) >= 0)
		switch (option) {
		case 'c':
			fleet->config_path = optarg;
			break;
		case 'r':
			fleet->runtime_dir = optarg;
			break;
		case 'h':
			(void)fputs(usage, stdout);
			return 0;
		case 'V':
			printf("%s %s\n", fleet->name, PACKAGE_VERSION);
			return 0;
		default:
			return -EINVAL;
		}
	return optind;
}

static void on_complaint(void *userdata, const char *text)
{
	(void)log_error("%s", text);
}

int fleet_load(struct fleet *fleet)
{
	int r = fleet_config_load(fleet->config_path, on_complaint, NULL, &fleet->config);

	return r == -ENOMEM ? log_error_errno(r, "Cannot read %s: %m", fleet->config_path) : r;
}

char *fleet_program_path(const struct fleet *fleet, const char *name)
{
	const char *dir = secure_getenv("FLYREC_FLEET_DIR"); /* of tests */

	if (setenv("FLYREC_FLEET_CONFIG", fleet->config_path, 1) < 0 ||
	    setenv("FLYREC_RUNTIME_DIR", fleet->runtime_dir, 1) < 0)
		return NULL;
	return strf("%s/flyrec-fleet-%s", dir ? dir : VENDOR_DIR, name);
}

int fleet_program(struct fleet *fleet, int argc, char *argv[], const char *what)
{
	_cleanup_free_ char *usage =
		strf("%s [OPTIONS...]\n\n%s\n\n" FLEET_OPTIONS_HELP "\nSee flyrec-fleet(7).\n",
		     fleet->name, what);
	int first = usage ? fleet_options(fleet, argc, argv, usage) : -ENOMEM;

	if (first <= 0)
		return first;
	if (first < argc)
		return log_error_errno(-EINVAL, "%s: unexpected argument \"%s\", see --help",
				       fleet->name, argv[first]);
	return 1;
}

int fleet_run_begin(struct fleet *fleet, sd_event **ret)
{
	static const int signals[] = {SIGTERM, SIGINT};
	sd_event *event = NULL;
	sigset_t set;
	int r = fleet_load(fleet);

	if (r < 0)
		return r == -EINVAL ? -EBADMSG : r; /* 2 is of the command line */
	if (!fleet->config->broker.host)
		return log_error_errno(-ENOENT, "%s: Host= is missing in [Broker]",
				       fleet->config_path);
	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		(void)sigaddset(&set, signals[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	r = sd_event_new(&event);
	for (size_t i = 0; i < ARRAY_SIZE(signals) && r >= 0; i++)
		r = sd_event_add_signal(event, NULL, signals[i], NULL, NULL); /* which ends it */
	if (r < 0) {
		(void)sd_event_unref(event);
		return log_error_errno(r, "Cannot begin: %m");
	}
	*ret = event;
	return 0;
}

int fleet_run(sd_event *event)
{
	int r;

	(void)sd_notify(false, "READY=1");
	r = sd_event_loop(event);
	(void)sd_notify(false, "STOPPING=1");
	return r < 0 ? log_error_errno(r, "The event loop failed: %m") : 0;
}

void fleet_done(struct fleet *fleet)
{
	fleet_config_free(fleet->config);
}
