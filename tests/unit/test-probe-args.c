/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/macro.h"
#include "config/config-session.h"
#include "config/config.h"
#include "config/probe-args.h"

static void expands(const char *machine, const char *text, const char *wanted)
{
	_cleanup_free_ char *got = NULL;
	struct fault why = {};

	if (probe_args_expand(text, machine, &got, &why) < 0)
		fail_msg("%s: %s", text, why.text);
	assert_string_equal(got, wanted);
}

static void refuses(const char *machine, const char *text, const char *wanted)
{
	char *got = NULL;
	struct fault why = {};

	assert_int_equal(probe_args_expand(text, machine, &got, &why), -EINVAL);
	if (!strstr(why.text, wanted))
		fail_msg("%s: \"%s\", not \"%s\"", text, why.text, wanted);
	assert_null(got);
}

static void test_shorthands(void **state)
{
	_cleanup_free_ char *all = NULL;
	struct fault why = {};

	expands("x86_64", "p:a /b:1 n=%di  m=+8(%si):string", "p:a /b:1 n=%di m=+8(%si):string");
	/* what the kernel takes is the kernel's */
	expands("x86_64", "p:regs=all /stack=8:1 regs=%ax stack=$stack mem=%di:u64 %si",
		"p:regs=all /stack=8:1 regs=%ax stack=$stack mem=%di:u64 %si");
	expands("x86_64", "p:a /b:1 stack=520",
		"p:a /b:1 sp=%sp:x64 mem_sp_0=+0(%sp):x64[64] mem_sp_512=+512(%sp):x64[1]");
	expands("aarch64", "p:a /b:1 mem=%x0-16:11 mem=%x0:1",
		"p:a /b:1 x0=%x0:x64 mem_x0_m16=-16(%x0):x64[1] mem_x0_m8=-8(%x0):x8[3] "
		"mem_x0_0=+0(%x0):x8[1]");
	assert_int_equal(probe_args_expand("p:a /b:1 regs=all stack=2K", "x86_64", &all, &why), 0);
	assert_non_null(strstr(all, " ax=%ax:x64 "));
	assert_non_null(strstr(all, " ss=%ss:x64 "));
	assert_non_null(strstr(all, " mem_sp_1536=+1536(%sp):x64[64]"));
	assert_null(strstr(all + 1, " sp=%sp:x64 sp="));
	refuses("x86_64", "p:a /b:1 regs=some", "only regs=all is known");
	refuses("x86_64", "p:a /b:1 stack=0", "1 to 2560 bytes");
	refuses("x86_64", "p:a /b:1 stack=2560 mem=%di:1", "1 to 2560 bytes");
	refuses("x86_64", "p:a /b:1 stack=8x", "not a number of bytes");
	refuses("x86_64", "p:a /b:1 mem=%x0:8", "%x0 is no register");
	refuses("x86_64", "p:a /b:1 mem=%di+x:8", "not an offset");
	refuses("x86_64", "p:a /b:1 regs=all ax=%ax", "two arguments ax=");
	refuses("m68k", "p:a /b:1 regs=all", "this machine (m68k)");
}

#if defined(__x86_64__) || defined(__aarch64__)
/* The kernel's side gets its own syntax, the text is as it was written */
static void test_of_a_session(void **state)
{
	_cleanup_(session_config_freep) struct session_config *config = NULL, *copy = NULL;
	static const char text[] = "[Trace]\nUprobe=p:a /b:1 %si\nUprobe=p:c /b:2 stack=8\n";
	struct config_reader reader = {};

	assert_int_equal(session_config_new("s", NULL, &config), 0);
	assert_int_equal(session_config_read(&reader, "s.conf", text, strlen(text), NULL, config),
			 0);
	assert_int_equal(session_config_finish(&reader, "s.conf", config), 0);
	assert_int_equal(reader.n_errors, 0);
	assert_non_null(strstr(config->trace_text, "Uprobe=p:c /b:2 stack=8\n"));
	assert_int_equal(session_config_copy(config, &copy), 0);
	assert_string_equal(copy->trace.uprobes[0], "p:a /b:1 %si");
	assert_string_equal(copy->trace.uprobes[1], "p:c /b:2 sp=%sp:x64 mem_sp_0=+0(%sp):x64[1]");
	assert_null(copy->trace.uprobes[2]);
	assert_int_equal(session_config_retext(copy), 0);
	assert_string_equal(copy->trace_text, config->trace_text);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shorthands),
#if defined(__x86_64__) || defined(__aarch64__)
		cmocka_unit_test(test_of_a_session),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
