/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecd: the command line, and the control socket beside the manager.
 */
#include <getopt.h>
#include <malloc.h>
#include <string.h>

#include "basic/log.h"
#include "daemon/control/control.h"
#include "daemon/manager/check-config.h"
#include "daemon/manager/manager.h"

static void show_help(void)
{
	(void)printf(
		"Usage: %s [OPTION…]\n"
		"Record the kernel's trace into files that are valid at every moment.\n\n"
		"  --config-dir=DIR   read flyrecd.conf and sessions.d here (/etc/flyrec)\n"
		"  --state-dir=DIR    keep traces here ($STATE_DIRECTORY or /var/lib/flyrec)\n"
		"  --runtime-dir=DIR  control socket here ($RUNTIME_DIRECTORY or /run/flyrec)\n"
		"  --check-config     say what is wrong with the configuration, and exit\n"
		"  --version          show the version, and exit\n"
		"  --help             show this, and exit\n\n"
		"Signals: TERM, INT stop and finish; RTMIN+1 hand over to the next process; HUP reload;\n"
		"USR1 snapshot; USR2 begin new segments. See flyrecd(8).\n",
		program_invocation_short_name);
}

/* systemd passes a list where a unit has several directories: the first is ours */
static const char *dir_or(const char *variable, const char *otherwise)
{
	char *dir = getenv(variable), *colon;

	if (!dir || !*dir)
		return otherwise;
	colon = strchr(dir, ':');
	if (colon)
		*colon = '\0';
	return dir;
}

static int run(const struct manager_options *options)
{
	_cleanup_(manager_freep) struct manager *manager = NULL;
	_cleanup_(control_freep) struct control *control = NULL;
	int r = manager_new(options, &manager);

	if (r < 0)
		return r;
	/* Without it nobody can ask, but what is recorded is recorded */
	if (control_new(manager, &control) < 0)
		log_warning("going on without a control socket");
	return manager_run(manager);
}

int main(int argc, char **argv)
{
	enum {
		OPT_CONFIG_DIR = 256,
		OPT_STATE_DIR,
		OPT_RUNTIME_DIR,
		OPT_CHECK,
		OPT_VERSION,
		OPT_HELP
	};
	static const struct option options[] = {
		{"config-dir", required_argument, NULL, OPT_CONFIG_DIR},
		{"state-dir", required_argument, NULL, OPT_STATE_DIR},
		{"runtime-dir", required_argument, NULL, OPT_RUNTIME_DIR},
		{"check-config", no_argument, NULL, OPT_CHECK},
		{"version", no_argument, NULL, OPT_VERSION},
		{"help", no_argument, NULL, OPT_HELP},
		{},
	};
	struct manager_options o = {
		.config_dir = "/etc/flyrec",
		.state_dir = dir_or("STATE_DIRECTORY", "/var/lib/flyrec"),
		.runtime_dir = dir_or("RUNTIME_DIRECTORY", "/run/flyrec"),
	};
	bool check = false;
	int c;

	/* Each job has its thread: what one has freed is for all of them */
	(void)mallopt(M_ARENA_MAX, 1);
	log_open(LOG_INFO);
	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case OPT_CONFIG_DIR:
			o.config_dir = optarg;
			break;
		case OPT_STATE_DIR:
			o.state_dir = optarg;
			break;
		case OPT_RUNTIME_DIR:
			o.runtime_dir = optarg;
			break;
		case OPT_CHECK:
			check = true;
			break;
		case OPT_VERSION:
			(void)puts(PACKAGE_STRING);
			return 0;
		case OPT_HELP:
			show_help();
			return 0;
		default:
			return 2;
		}
	}
	if (optind < argc) {
		(void)fprintf(stderr, "%s: unexpected argument '%s', see --help\n",
			      program_invocation_short_name, argv[optind]);
		return 2;
	}
	if (check)
		return check_config(o.config_dir);
	return run(&o) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
