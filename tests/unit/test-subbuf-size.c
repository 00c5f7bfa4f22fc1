/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SubBufferSize=auto: each condition by itself */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "daemon/session/subbuf-size.h"

static const struct subbuf_size_input large = {
	.page_size = 4 * KIB,
	.settable = true,
	.buffer_size = 4 * MIB,
	.n_cpus = 2,
	.flush_usec = 5 * USEC_PER_SEC,
	.max_use = 5 * GIB,
};

/* What @large becomes with one thing different */
#define WITH(...)                                    \
	({                                           \
		struct subbuf_size_input in = large; \
		__VA_ARGS__;                         \
		subbuf_size_auto(&in);               \
	})

static void test_large(void **state)
{
	assert_int_equal(subbuf_size_auto(&large), 16 * KIB);
	assert_int_equal(WITH(in.buffer_size = GIB), 16 * KIB);
}

static void test_kernel(void **state)
{
	assert_int_equal(WITH(in.settable = false), 0);
	assert_int_equal(WITH(in.page_size = 64 * KIB), 0);
	assert_int_equal(WITH(in.page_size = 16 * KIB), 0);
}

static void test_session(void **state)
{
	assert_int_equal(WITH(in.persistent = true), 0);
	assert_int_equal(WITH(in.buffer_size = 4 * MIB - 1), 0);
}

/* One sub-buffer a CPU and flush: 17280 flushes a day, 566 MB on two CPUs */
static void test_quiet_day(void **state)
{
	const uint64_t least = 8 * 17280ULL * 2 * 16 * KIB;

	assert_int_equal(WITH(in.max_use = least), 16 * KIB);
	assert_int_equal(WITH(in.max_use = least - 8), 0);
	assert_int_equal(WITH(in.n_cpus = 3), 0);
	assert_int_equal(WITH(in.flush_usec = USEC_PER_SEC), 0);
	assert_int_equal(WITH(in.n_cpus = 64, in.flush_usec = 200 * USEC_PER_SEC), 16 * KIB);
	/* compressed, or never flushed, it costs nothing */
	assert_int_equal(WITH(in.n_cpus = 64, in.max_use = MIB, in.compress = true), 16 * KIB);
	assert_int_equal(WITH(in.n_cpus = 64, in.max_use = MIB, in.flush_usec = 0), 16 * KIB);
	/* which makes nothing else possible */
	assert_int_equal(WITH(in.settable = false, in.compress = true), 0);
	assert_int_equal(WITH(in.persistent = true, in.flush_usec = 0), 0);
}

/* As many CPUs as there can be, flushed as often as can be */
static void test_no_overflow(void **state)
{
	assert_int_equal(WITH(in.n_cpus = 8192, in.flush_usec = 10000), 0);
	assert_int_equal(WITH(in.n_cpus = 8192, in.flush_usec = 10000, in.max_use = UINT64_MAX),
			 16 * KIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large),	    cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_session),	    cmocka_unit_test(test_quiet_day),
		cmocka_unit_test(test_no_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
