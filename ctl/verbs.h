/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verbs, by the files that have them; flyrecctl(1) says what each does. argv[0] is the verb.
 * Return: CTL_DONE; CTL_FAILED or CTL_USAGE, after a line on standard error. Main thread.
 */
#pragma once

#include "ctl/ctl.h"

typedef enum ctl_status verb_function(const struct ctl *ctl, int argc, char **argv);

/* show.c */
verb_function verb_status, verb_list, verb_stats, verb_metrics, verb_boot_parameters;
/* change.c */
verb_function verb_rotate, verb_start, verb_stop, verb_pause, verb_resume, verb_event_enable,
	verb_event_disable, verb_filter, verb_vacuum, verb_reload, verb_pin, verb_unpin;
/* a file each */
verb_function verb_cat, verb_complete, verb_export, verb_import, verb_snapshot, verb_stdio_bridge,
	verb_tail, verb_verify;

/* All that --format= takes; NULL-terminated */
extern const char *const export_formats[], *const import_formats[];
