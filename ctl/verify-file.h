/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Verifying one trace.dat, ours or trace-cmd's: frame, formats, regions, every sub-buffer and every
 * event, and our own loss accounting. Memory is bounded whatever the file says; holes are not read;
 * the CPU tables are taken once, so a file that is being written is fine. Main thread.
 */
#pragma once

#include "ctl/verify-report.h"
#include "formats/trace-dat-read.h"

/**
 * verify_dat() - check all of an opened file
 * @report: gets the CPUs and the faults
 * Return: 0 (also with faults) or -ENOMEM.
 */
int verify_dat(const struct trace_dat *dat, struct verify_report *report);
