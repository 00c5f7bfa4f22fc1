/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * In the place of query.c in a build without SQLite
 */
#include "basic/log.h"
#include "ctl/ctl.h"

enum ctl_status verb_query(struct ctl *ctl, int argc, char **argv)
{
	(void)ctl;
	(void)argc;
	(void)argv;
	log_error("this flyrecctl was built without SQLite");
	return CTL_FAILED;
}
