/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * import --format=gdb-tfile: the frames of a trace file of gdb as events, see gdb-record.h. The
 * file is read twice: formats come before events, and which there are only all frames tell. Main
 * thread.
 */
#pragma once

#include "ctl/import.h"

/**
 * import_gdb_tfile() - the format's row in import.c
 */
int import_gdb_tfile(struct import *import, struct fault *why);
