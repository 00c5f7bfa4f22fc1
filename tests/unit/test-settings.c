/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What becomes of SubBufferSize=auto where the kernel refuses: tracedir_write() is a kernel that
 * has only so much memory in pieces of more than a page.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "recorder/settings.h"

static struct kernel {
	unsigned long subbuf_kb, buffer_kb; /* what was set */
	unsigned long large_kb;		    /* of memory in large pieces */
	int subbuf_error;		    /* of setting the sub-buffer size */
} kernel;

int __wrap_tracedir_write(const struct tracedir *dir, const char *file, const char *text, int flags,
			  struct fault *why, const char *what, ...);

int __wrap_tracedir_write(const struct tracedir *dir, const char *file, const char *text, int flags,
			  struct fault *why, const char *what, ...)
{
	unsigned long n = strtoul(text, NULL, 10);

	if (strcmp(file, "buffer_subbuf_size_kb") == 0) {
		if (kernel.subbuf_error)
			return fault_errno(why, kernel.subbuf_error, "%s", file);
		kernel.subbuf_kb = n;
	}
	if (strcmp(file, "buffer_size_kb") == 0) {
		if (kernel.subbuf_kb > 4 && n > kernel.large_kb)
			return fault_errno(why, -ENOMEM, "%s", file);
		kernel.buffer_kb = n;
	}
	return 0;
}

static int apply(struct kernel k, uint64_t subbuf_size, uint64_t auto_subbuf_size)
{
	const struct trace_config config = {
		.clock = (char *)"mono",
		.buffer_size = 4 * MIB,
		.subbuf_size = subbuf_size,
		.auto_subbuf_size = auto_subbuf_size,
	};
	const struct tracedir dir = {.fd = -EBADF, .path = (char *)"/nowhere"};
	struct fault why;

	kernel = k;
	return settings_apply(&dir, &config, 1, &why);
}

static void assert_kernel(unsigned long subbuf_kb, unsigned long buffer_kb)
{
	assert_int_equal(kernel.subbuf_kb, subbuf_kb);
	assert_int_equal(kernel.buffer_kb, buffer_kb);
}

static void test_auto(void **state)
{
	assert_int_equal(apply((struct kernel){.subbuf_kb = 4}, SUBBUF_SIZE_AUTO, 0), 0);
	assert_kernel(4, 4096);
	assert_int_equal(apply((struct kernel){.large_kb = 4096}, SUBBUF_SIZE_AUTO, 16 * KIB), 0);
	assert_kernel(16, 4096);
}

static void test_auto_falls_back(void **state)
{
	/* an older kernel, or one that will not */
	assert_int_equal(apply((struct kernel){.subbuf_kb = 4, .subbuf_error = -ENOENT},
			       SUBBUF_SIZE_AUTO, 16 * KIB),
			 0);
	assert_kernel(4, 4096);
	/* a small ring buffer can be had, the whole one cannot */
	assert_int_equal(apply((struct kernel){.large_kb = 4095}, SUBBUF_SIZE_AUTO, 16 * KIB), 0);
	assert_kernel(4, 4096);
}

/* What was asked for is had, or it is an error */
static void test_explicit(void **state)
{
	assert_int_equal(apply((struct kernel){.large_kb = 4096}, 16 * KIB, 0), 0);
	assert_kernel(16, 4096);
	assert_int_equal(apply((struct kernel){.large_kb = 4095}, 16 * KIB, 0), -ENOMEM);
	assert_int_equal(apply((struct kernel){.subbuf_error = -EINVAL}, 16 * KIB, 0), -EINVAL);
	assert_kernel(0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_auto),
		cmocka_unit_test(test_auto_falls_back),
		cmocka_unit_test(test_explicit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
