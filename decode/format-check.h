/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Are the formats of a trace.dat sound, and how much data does each event have at least? A decoder
 * goes on without those that are not; verify has to name them. Nothing is kept; one thread.
 */
#pragma once

#include "formats/trace-dat-read.h"

/**
 * format_check() - parse all formats of a file
 * @on_fault: gets a line "PATH: offset 0x…: what" for each that is not sound
 * @ret_least: malloc'ed, SUBBUF_EVENT_IDS entries as subbuf_check() wants them
 * Return: 0, also with faults, or -ENOMEM.
 */
int format_check(const struct trace_dat *dat, void (*on_fault)(void *userdata, const char *line),
		 void *userdata, uint32_t **ret_least);
