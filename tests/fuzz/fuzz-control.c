/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzz target: any bytes from a peer of the control socket, after its greeting. Must not crash,
 * leak, or keep the connection. tests/unit/test-control-fuzz --write-seeds=DIR makes a corpus.
 */
#include "tests/fuzz/control-target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)control_target_feed(data, size);
	return 0;
}
