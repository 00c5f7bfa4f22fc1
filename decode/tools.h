/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What printing an event takes besides the event. One thread's.
 */
#pragma once

#include "decode/kallsyms.h"
#include "decode/printk-formats.h"
#include "decode/text.h"

struct decode_tools {
	struct kallsyms_cache symbols;
	const struct printk_formats *printk; /* may be NULL */
	struct text scratch;
};
