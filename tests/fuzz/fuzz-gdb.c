/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz-gdb - any bytes as a trace file of gdb, in both byte orders. libFuzzer target;
 * tests/fuzz/corpus/gdb has small real files and what was found, which tests/unit/test-gdb runs.
 */
#include "tests/fuzz/gdb-target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)gdb_target(data, size);
	return 0;
}
