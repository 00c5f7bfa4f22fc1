/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "basic/log.h"
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

void fleet_done(struct fleet *fleet)
{
	fleet_config_free(fleet->config);
}
