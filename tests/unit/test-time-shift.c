/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How far a KVM guest's clock is from its host's, by what trace-cmd wrote into the guest's file */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decode/decoder.h"
#include "formats/time-shift.h"
#include "tests/unit/craft-formats.h"

#define FORMAT                                                         \
	"name: print\nID: 5\n" CRAFT_COMMON_FIELDS "\nprint fmt: \"\"" \
	"\n"

/* What is right is written first, and what is wrong over it */
struct file {
	struct craft options, c;
	int fd;
	struct trace_dat *dat;
	struct decoder *decoder;
};

/* Of two CPUs, of which the first has two samples */
static void put_shift(struct craft *o, bool fractions)
{
	craft_number(o, 2, 12);
	craft_number(o, 4, 16 + (4 + 2 * 24) + (4 + 24) + (fractions ? 16 : 0));
	craft_number(o, 8, 0x1234567890abcdef); /* at 6 */
	craft_number(o, 4, 0);
	craft_number(o, 4, 2); /* at 18 */
	craft_number(o, 4, 2); /* at 22 */
	craft_number(o, 8, 1000);
	craft_number(o, 8, 2000);
	craft_number(o, 8, (uint64_t)-5); /* at 42 */
	craft_number(o, 8, (uint64_t)-5);
	craft_number(o, 8, 3); /* at 58 */
	craft_number(o, 8, 3);
	craft_number(o, 4, 1); /* at 74 */
	craft_number(o, 8, 1000);
	craft_number(o, 8, 7); /* at 86 */
	craft_number(o, 8, 1);
	if (fractions) {
		craft_number(o, 8, 1); /* at 102 */
		craft_number(o, 8, 0);
	}
}

static void file_open(struct file *f, const struct craft *options)
{
	static const struct craft_format format = {"ftrace", FORMAT};
	const struct craft_file file = {
		.formats = &format, .n_formats = 1, .clock = "[x86-tsc]\n", .options = &f->options};

	f->options = *options;
	f->c = (struct craft){.big_endian = options->big_endian,
			      .commit_size = options->commit_size};
	craft_file(&f->c, &file);
	craft_open(&f->c, &f->fd, &f->dat, &f->decoder);
}

static void file_close(struct file *f)
{
	craft_close(f->fd, f->dat, f->decoder);
	craft_done(&f->options);
}

static void test_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < CRAFT_KINDS; i++) {
		struct craft o = craft_kinds[i];
		struct time_shift shift;
		struct time_rate one;
		struct fault why;
		struct file f;

		put_shift(&o, true);
		file_open(&f, &o);
		assert_int_equal(time_shift_read(f.dat, &shift, &why), 0);
		assert_true(shift.host == 0x1234567890abcdef);
		assert_int_equal(shift.n_cpus, 2);
		assert_int_equal(time_rate_apply(&shift.cpus[0], 1001), 1501 - 5);
		assert_int_equal(time_rate_apply(&shift.cpus[1], 1001), 1008);
		/* more than 64 bits on the way */
		assert_true(time_rate_apply(&shift.cpus[0], UINT64_C(1) << 63) ==
			    (UINT64_C(3) << 62) - 5);
		assert_false(time_shift_one(&shift, &one));
		assert_false(one.on);
		time_shift_done(&shift);
		/* one time for all CPUs: there is none */
		assert_int_equal(decoder_time(f.decoder, 1001), 1001);
		assert_non_null(strstr(decoder_warnings(f.decoder)[0], "TSC offsets"));
		file_close(&f);
	}
}

/* Of trace-cmd 3.1, whose CPUs are equal, with how long a cycle is */
static void test_old(void **state)
{
	struct craft o = craft_kinds[0];
	struct time_shift shift;
	struct time_rate one;
	struct fault why;
	struct file f;

	(void)state;
	put_shift(&o, false);
	craft_set(&o, 86, 8, (uint64_t)-5);
	craft_set(&o, 94, 8, 3);
	craft_number(&o, 2, 14);
	craft_number(&o, 4, 16);
	craft_number(&o, 4, 1);
	craft_number(&o, 4, 2);
	craft_number(&o, 8, 99);
	file_open(&f, &o);
	assert_int_equal(time_shift_read(f.dat, &shift, &why), 0);
	assert_true(time_shift_one(&shift, &one));
	assert_int_equal(time_rate_apply(&one, 1001), 3003 - 5);
	assert_true(time_rate_grows(&one));
	time_shift_done(&shift);
	assert_int_equal(decoder_time(f.decoder, 1001), (3003 - 5) / 4);
	assert_true(decoder_facts(f.decoder)->in_usecs);
	assert_null(decoder_warnings(f.decoder));
	assert_false(time_rate_grows(&decoder_facts(f.decoder)->rate));
	file_close(&f);
}

static void test_none(void **state)
{
	struct craft o = craft_kinds[0];
	struct time_shift shift;
	struct time_rate one;
	struct fault why;
	struct file f;

	(void)state;
	file_open(&f, &o);
	assert_int_equal(time_shift_read(f.dat, &shift, &why), 0);
	assert_int_equal(shift.n_cpus, 0);
	assert_true(time_shift_one(&shift, &one));
	assert_false(one.on);
	assert_int_equal(time_rate_apply(&one, 1001), 1001);
	assert_int_equal(decoder_time(f.decoder, 1001), 1001);
	file_close(&f);
}

static void test_damaged(void **state)
{
	static const struct {
		size_t at;
		unsigned n;
		uint64_t value;
		const char *text;
	} damages[] = {
		{2, 4, 15, "is too short"},
		{2, 4, 16, "has more CPUs than there is room for"},
		{2, 4, 95, "is too short"},
		{2, 4, 97, "is too short"},
		{18, 4, UINT32_MAX, "has more CPUs than there is room for"},
		{18, 4, 0, "has no CPUs (trace-cmd attach -c says how many)"},
		{22, 4, UINT32_MAX, "is too short"},
		{22, 4, 0, "has a CPU without an offset"},
		{42, 8, 4, "has offsets that change with time"},
		{58, 8, 4, "has a scaling that changes with time"},
		{94, 8, 0, "has a scaling of 0"},
		{102, 8, 64, "has a fraction of more than 63 bits"},
		{102, 8, UINT64_MAX, "has a fraction of more than 63 bits"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct craft o = craft_kinds[0];
		struct time_shift shift;
		struct fault why;
		struct file f;

		put_shift(&o, true);
		craft_set(&o, damages[i].at, damages[i].n, damages[i].value);
		/* no option is behind it that would be read from a wrong place */
		if (damages[i].at == 2)
			o.size = 6 + damages[i].value;
		file_open(&f, &o);
		assert_int_equal(time_shift_read(f.dat, &shift, &why), -EBADMSG);
		if (!strstr(why.text, damages[i].text))
			fail_msg("%s, not: %s", why.text, damages[i].text);
		/* the file can be read, with the times that were recorded */
		assert_int_equal(decoder_time(f.decoder, 1001), 1001);
		assert_string_equal(decoder_warnings(f.decoder)[0], why.text);
		file_close(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_old),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
