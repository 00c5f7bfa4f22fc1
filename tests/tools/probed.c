/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probed [COUNT]: a program to be probed. Calls its functions and passes its USDT probes COUNT
 * times, then prints how often the semaphore of demo:request was up. Whoever changes it changes
 * what test-program and test-probes.sh expect.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

/* As <sys/sdt.h> of systemtap makes them, which not every machine has */
#define NOTE(provider, name, semaphore, arguments)                              \
	"990: nop\n"                                                            \
	".pushsection .note.stapsdt,\"\",\"note\"\n"                            \
	".balign 4\n"                                                           \
	".4byte 992f-991f, 994f-993f, 3\n"                                      \
	"991: .asciz \"stapsdt\"\n"                                             \
	"992: .balign 4\n"                                                      \
	"993: .8byte 990b\n"                                                    \
	".8byte _.stapsdt.base\n"                                               \
	".8byte " semaphore "\n"                                                \
	".asciz \"" provider "\"\n"                                             \
	".asciz \"" name "\"\n"                                                 \
	".asciz \"" arguments "\"\n"                                            \
	"994: .balign 4\n"                                                      \
	".popsection\n"                                                         \
	".ifndef _.stapsdt.base\n"                                              \
	".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	".weak _.stapsdt.base\n"                                                \
	".hidden _.stapsdt.base\n"                                              \
	"_.stapsdt.base: .space 1\n"                                            \
	".size _.stapsdt.base, 1\n"                                             \
	".popsection\n"                                                         \
	".endif\n"

/* "%n" is the negative of a number: a negative size is of a signed one */
#define ONE   "%n[s1]@%[a1]"
#define TWO   ONE " %n[s2]@%[a2]"
#define THREE TWO " %n[s3]@%[a3]"

uint16_t probed_semaphore __attribute__((section(".probes"), used));
int probed_data[4] = {11, 22, 33, 44};
int probed_number = -7;

NOINLINE int probed_add(int a, int b)
{
	__asm__ volatile("" ::: "memory");
	return a + b;
}

NOINLINE int probed_one(int n)
{
	__asm__ volatile(NOTE("demo", "twice", "0", ONE)::[s1] "n"(4), [a1] "nr"(n));
	return n;
}

NOINLINE int probed_two(int n)
{
	__asm__ volatile(NOTE("demo", "twice", "0", ONE)::[s1] "n"(4), [a1] "nr"(n));
	return n + 1;
}

NOINLINE void probed_request(int number, uint64_t bytes, const char *name)
{
	__asm__ volatile(
		NOTE("demo", "request", "probed_semaphore", THREE)::[s1] "n"(4), [a1] "nr"(number),
		[s2] "n"(-8), [a2] "nr"(bytes), [s3] "n"(-8), [a3] "nr"(name));
	__asm__ volatile(NOTE("demo", "none", "0", "")::);
	__asm__ volatile(NOTE("demo", "constant", "0", ONE)::[s1] "n"(4), [a1] "n"(-5));
#if defined(__x86_64__)
	__asm__ volatile(
		NOTE("demo", "variable", "0", "-4@probed_number(%%rip) -4@probed_data+8(%%rip)")::);
	__asm__ volatile(NOTE("demo", "odd", "0", "4@%%eax 8@(%%rax,%%rbx,8) 8f@%%xmm0")::);
#endif
}

static int probed_slow(int n)
{
	return n;
}

static int (*choose(void))(int)
{
	return probed_slow;
}

int probed_chosen(int n) __attribute__((ifunc("choose")));

int main(int argc, char *argv[])
{
	static const char *const names[] = {"alpha", "bravo", "charlie"};
	int count = argc > 1 ? atoi(argv[1]) : 1, up = 0, sum = 0;

	for (int i = 0; i < count; i++) {
		up += probed_semaphore > 0;
		sum += probed_add(i, 100) + probed_one(i) + probed_two(i) + probed_chosen(i);
		probed_request(i - 1, UINT64_C(0x100000000) + (unsigned)i, names[i % 3]);
	}
	printf("%d\n", up);
	return sum < 0;
}
