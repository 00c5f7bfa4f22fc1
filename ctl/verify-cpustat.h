/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * verify's comparison of flyrec's accounting, kept in the CPUSTAT options, with the recount. Main
 * thread.
 */
#pragma once

#include "ctl/verify-report.h"
#include "formats/trace-dat-read.h"

/**
 * verify_cpustat() - compare each CPUSTAT text that says "flyrec final: yes" with report->cpus
 *
 * A text without that line is trace-cmd's, or a file's that is still being written: no comparison.
 * Return: 0 or -ENOMEM; disagreement is a fault in @report.
 */
int verify_cpustat(const struct trace_dat *dat, struct verify_report *report);
