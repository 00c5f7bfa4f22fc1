/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Probes of programs by name: "PATH:SYMBOL+OFFSET" of Uprobe= and "PATH:PROVIDER:NAME" of Usdt=
 * become the kernel's "PATH:0x…" and, for a USDT probe with a semaphore, "PATH:0x…(0x…)", by what
 * the file at PATH says now. Any thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"

enum probe_kind {
	PROBE_UPROBE,
	PROBE_USDT,
};

/* What is to be written to dynamic_events */
struct probe_lines {
	char **lines;	/* NULL-terminated; one a place of a USDT probe */
	char *build_id; /* "HEX PATH", or NULL: the file has none, or it was not needed and cannot
			   be read */
};

/**
 * probe_place_resolve() - a probe in the kernel's syntax
 * @definition: "p:GROUP/NAME PLACE ARGUMENTS", where PLACE may be in the kernel's syntax. Arguments
 * of a USDT probe may have $arg1, $arg2 …; without arguments all are recorded that the kernel can
 * read.
 * @ret: undo with probe_lines_done()
 * Return: 0 or negative errno with the file and the reason in @why.
 */
int probe_place_resolve(enum probe_kind kind, const char *definition, struct probe_lines *ret,
			struct fault *why);
void probe_lines_done(struct probe_lines *lines);
