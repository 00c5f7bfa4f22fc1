/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz-qemu4v - any bytes as a text trace. libFuzzer target; tests/fuzz/corpus/qemu4v has lines of
 * each kind and what was found, which tests/unit/test-qemu4v runs.
 */
#include "tests/fuzz/qemu4v-target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	qemu4v_target(data, size);
	return 0;
}
