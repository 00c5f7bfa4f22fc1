/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz-query - SQL made of what the grammar has, over a file that is sound, given twice. It is
 * opened once: what is asked may leave nothing behind in it. libFuzzer target.
 */
#include <stdlib.h>

#include "tests/fuzz/query-target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct query_target *target;

	if (!target)
		target = query_target_open(query_target_sound(), true);
	if (!target)
		abort();
	query_target_ask(target, data, size);
	return 0;
}
