/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * verify's look at the event formats: does libtraceevent, which trace-cmd and KernelShark decode
 * with, read each of them, and which event ids and least lengths follow. Main thread.
 */
#pragma once

#include "ctl/verify-report.h"
#include "formats/trace-dat-read.h"

/**
 * verify_formats() - parse all formats of a file; what does not parse becomes a fault in @report
 * @ret_least: malloc'ed, SUBBUF_EVENT_IDS entries as subbuf_check() wants them
 * Return: 0 or -ENOMEM.
 */
int verify_formats(const struct trace_dat *dat, struct verify_report *report, uint32_t **ret_least);
