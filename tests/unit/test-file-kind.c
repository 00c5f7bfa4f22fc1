/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "formats/file-kind.h"

static void assert_kind(const char *bytes, size_t size, const char *wanted)
{
	const char *kind = file_kind((const uint8_t *)bytes, size);

	if (!wanted)
		assert_null(kind);
	else if (!kind || !strstr(kind, wanted))
		fail_msg("%s, not %s", kind ? kind : "unknown", wanted);
}

#define KIND(bytes, wanted) assert_kind(bytes, sizeof(bytes) - 1, wanted)

static void test_kinds(void **state)
{
	KIND("PERFILE2\x68\0\0\0", "perf.data");
	KIND("\x28\xb5\x2f\xfd\x04", "zstd -d");
	KIND("\x1f\x8b\x08\x00", "gzip -d");
	KIND("\xfd"
	     "7zXZ\0\0\4",
	     "xz -d");
	KIND("\x7f"
	     "ELF\2\1",
	     "ELF");
	KIND("# tracer: nop\n#\n", "ftrace");
	KIND("cpus=2\n", "trace-cmd report");
	KIND("\x7fTRACE0\n", "gdb");
	KIND("\xc1\xfc\x1f\xc1", "CTF");
	/* what tracebox writes first: a packet of 50 bytes with a trace_uuid; one with a
	 * clock_snapshot */
	KIND("\x0a\x32\xca\x05\x12\x09", "Perfetto");
	KIND("\x0a\x81\x01\x32\x7d\x0a", "Perfetto");
	KIND("\x0a\x05\x40\x01\x50\x01", "Perfetto");
}

static void test_unknown(void **state)
{
	KIND("", NULL);
	KIND("PERFILE", NULL);
	KIND("\x1f", NULL);
	KIND("\nsome text\n", NULL);
	KIND("\x0a", NULL);
	KIND("\x0a\xff\xff\xff\xff\xff\xff", NULL);
	KIND("root:x:0:0:root:/root:/bin/bash\n", NULL);
	KIND("\x17\x08\x44tracing", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
