/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "config/config.h"
#include "daemon/manager/check-config.h"
#include "recorder/probe-place.h"

static void print_complaint(enum config_severity severity, const char *file, unsigned line,
			    const char *text, void *userdata)
{
	(void)fprintf(stderr, "%s:%u: %s\n", file, line, text);
}

static int check_probe(const char *key, const char *text, struct fault *why)
{
	enum probe_kind kind = strcmp(key, "Usdt") == 0 ? PROBE_USDT : PROBE_UPROBE;
	_cleanup_(probe_lines_done) struct probe_lines lines = {};

	return probe_place_resolve(kind, text, &lines, why);
}

int check_config(const char *config_dir)
{
	unsigned n_faults = 0;
	int r;

	r = config_check(config_dir, VENDOR_DIR, check_probe, print_complaint, NULL, &n_faults);
	if (r == -ENOMEM)
		(void)fprintf(stderr, "%s:0: %s\n", config_dir, strerror(-r));
	return r < 0 || n_faults > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
