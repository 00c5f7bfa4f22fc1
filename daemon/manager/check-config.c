/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "config/config.h"
#include "daemon/manager/check-config.h"

static void print_complaint(enum config_severity severity, const char *file, unsigned line,
			    const char *text, void *userdata)
{
	(void)fprintf(stderr, "%s:%u: %s\n", file, line, text);
}

int check_config(const char *config_dir)
{
	_cleanup_(config_freep) struct daemon_config *config = NULL;
	unsigned n_faults = 0;
	int r;

	r = config_load(config_dir, VENDOR_DIR, print_complaint, NULL, &config, &n_faults);
	if (r == -ENOMEM)
		(void)fprintf(stderr, "%s:0: %s\n", config_dir, strerror(-r));
	return r < 0 || n_faults > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
