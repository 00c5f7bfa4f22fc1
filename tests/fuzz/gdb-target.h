/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What fuzz-gdb and the unit test do with any bytes as a trace file of gdb: import, and export of
 * what came of it. Aborts if a file that was taken is not given back.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * gdb_target() - Return: 1 if the file was taken, 0 if it was refused
 */
int gdb_target(const uint8_t *data, size_t size);
