/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recorder/usdt.h"

/* What becomes of each argument; one that cannot be read begins with "!" and the reason has it */
static void gives(unsigned machine, const char *text, const char *const *wanted)
{
	const char *p = text;

	for (;; wanted++) {
		struct usdt_argument a;
		struct fault why = {};
		int r = usdt_next_argument(&p, machine, &a, &why);
		char got[200];

		if (r == 0) {
			assert_null(*wanted);
			return;
		}
		assert_non_null(*wanted);
		if (r < 0) {
			assert_int_equal(r, -EOPNOTSUPP);
			if (**wanted != '!' || !strstr(why.text, *wanted + 1))
				fail_msg("%s: \"%s\", not \"%s\"", text, why.text, *wanted);
			continue;
		}
		if (a.variable[0])
			(void)snprintf(got, sizeof(got), "%s%+d:%s", a.variable, (int)a.addend,
				       a.type);
		else
			(void)snprintf(got, sizeof(got), "%s:%s", a.fetch, a.type);
		assert_string_equal(got, *wanted);
	}
}
#define GIVES(machine, text, ...) gives(machine, text, (const char *const[]){__VA_ARGS__, NULL})

static void test_x86(void **state)
{
	gives(EM_X86_64, "", (const char *const[]){NULL});
	gives(EM_X86_64, "  ", (const char *const[]){NULL});
	GIVES(EM_X86_64, "-4@%edi 8@%rsi 1@%al -2@%dx", "%di:s32", "%si:u64", "%ax:u8", "%dx:s16");
	GIVES(EM_X86_64, "4@%r8d 8@%r15 1@%r10b 2@%r9w 1@%sil", "%r8:u32", "%r15:u64", "%r10:u8",
	      "%r9:u16", "%si:u8");
	GIVES(EM_X86_64, "-8@-16(%rbp) 4@8(%rsp) 8@(%rax) -4@0x10(%r12)", "-16(%bp):s64",
	      "+8(%sp):u32", "+0(%ax):u64", "+16(%r12):s32");
	GIVES(EM_X86_64, "-4@$-5 8@$18446744073709551615 %rax", "\\-5:s32", "\\-1:u64", "%ax:u64");
	GIVES(EM_X86_64, "-4@number(%rip) 8@table+24(%rip) 4@old-4", "number+0:s32", "table+24:u64",
	      "old-4:u32");
	GIVES(EM_X86_64, "8@(%rax,%rbx,8) 4@%ecx", "!element of an array", "%cx:u32");
	GIVES(EM_X86_64, "8@table(,%rax,8)", "!element of an array");
	GIVES(EM_X86_64, "8f@%xmm0 -4f@4(%rsp)", "!floating point", "!floating point");
	GIVES(EM_X86_64, "1@%ah 16@%rax 8@%xmm0 8@%r16 8@%r7 8@%r8x", "!this register",
	      "!so many bytes", "!this register", "!this register", "!this register",
	      "!this register");
	GIVES(EM_X86_64, "8@$label 8@ 8@8 8@8( 8@8(%rax 8@8(%rax)x", "!not a constant",
	      "!cannot read that", "!cannot read that", "!cannot read that", "!cannot read that",
	      "!cannot read that");
	GIVES(EM_386, "-4@%eax -4@4(%esp) %ecx", "%ax:s32", "+4(%sp):s32", "%cx:u32");
}

static void test_arm64(void **state)
{
	GIVES(EM_AARCH64, "-4@w0 8@x30 8@sp 4@wzr", "%x0:s32", "%x30:u64", "%sp:u64", "\\0:u32");
	GIVES(EM_AARCH64, "-4@[sp, 60] 8@[x19] -8@[x0,#-8] 1@[x1, 4]", "+60(%sp):s32",
	      "+0(%x19):u64", "-8(%x0):s64", "+4(%x1):u8");
	GIVES(EM_AARCH64, "-4@-5 8@#16", "\\-5:s32", "\\16:u64");
	GIVES(EM_AARCH64, "8@[x0, x1, lsl 3] 4@w2", "!element of an array", "%x2:u32");
	GIVES(EM_AARCH64, "8@x31 8@d0 8@x05 8@[d0] 8@[x0", "!this register", "!this register",
	      "!this register", "!at this register", "!cannot read that");
}

static void test_others(void **state)
{
	GIVES(EM_ARM, "4@r0", "!not known");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86),
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
