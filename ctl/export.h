/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl export --format=F [-o OUT] FILE: offline, needs no daemon. What the formats share: the
 * file is opened and the filter understood for them; each has a row in a table in export.c. Main
 * thread.
 */
#pragma once

#include "ctl/ctl.h"
#include "ctl/out-file.h"
#include "decode/filter.h"

/* One export, for the function of its format. Borrowed. */
struct export
{
	const struct ctl *ctl; /* options */
	const struct trace_dat *dat;
	struct decoder *decoder;
	const struct export_filter *filter; /* prepared for dat */
	const struct out_file *output;	    /* open, its owner publishes it; NULL: not yet */
	bool *ret_complete;		    /* with output: all is written */
};

/**
 * export_output_open() - --output=, or standard output; logs what is wrong
 */
int export_output_open(const struct export *export, struct out_file *ret);

/**
 * export_output_close() - @r: how the export ended: 0, EXPORT_E_PIPE (they have seen enough), or
 * negative errno: then no file is left. Logs only what goes wrong here. Return: CTL_DONE or
 * CTL_FAILED.
 */
enum ctl_status export_output_close(const struct export *export, struct out_file *output, int r);

/* The names of all, for people */
const char *export_formats(void);

/**
 * verb_export() - see flyrecctl(1)
 * Return: CTL_DONE, also if the reader of a pipe has enough; CTL_FAILED, CTL_USAGE.
 */
enum ctl_status verb_export(const struct ctl *ctl, int argc, char **argv);
