/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzz target: any bytes from a peer of the control socket, after its greeting. Must not crash,
 * leak, or keep the connection. tests/unit/test-control-fuzz --write-seeds=DIR makes a corpus.
 */
#include <stdbool.h>

#include "tests/fuzz/control-target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;

	if (!begun)
		begun = atexit(control_target_done) == 0; /* its directory is not left behind */
	(void)control_target_feed(data, size);
	return 0;
}
