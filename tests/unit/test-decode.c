/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/strv.h"
#include "decode/json-printer.h"
#include "decode/printer.h"
#include "decode/symbols.h"
#include "tests/unit/craft-formats.h"

/* Of made-up records of each event; sanitizers take a millisecond for each */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 500
#else
#define ROUNDS 3000
#endif

#define NUMBERS                                             \
	"\tfield:int i;\toffset:8;\tsize:4;\tsigned:1;\n"   \
	"\tfield:u16 h;\toffset:12;\tsize:2;\tsigned:0;\n"  \
	"\tfield:u8 b;\toffset:14;\tsize:1;\tsigned:0;\n"   \
	"\tfield:bool o;\toffset:15;\tsize:1;\tsigned:0;\n" \
	"\tfield:u64 q;\toffset:16;\tsize:8;\tsigned:0;\n"  \
	"\tfield:long l;\toffset:24;\tsize:8;\tsigned:1;\n" \
	"\tfield:void * p;\toffset:32;\tsize:8;\tsigned:0;\n"

/* All kinds of print formats, for the comparison with libtraceevent */
static const struct craft_format formats[] = {
	{"demo",
	 "name: plain\nID: 100\n" CRAFT_COMMON_FIELDS NUMBERS
	 "\nprint fmt: \"%d %u %x %X %o|%5d|%-5d|%05d|%#x|%#010x|%-#8x|%hhd %hd %ld "
	 "%lld %Lu %zu|%.3d|%8.3x|%*d|%-*x|%i%%\\ttab\\n\", REC->i, REC->h, REC->b, REC->i, REC->h, "
	 "REC->b, REC->i, REC->b, REC->q, REC->h, REC->h, REC->i, REC->i, REC->l, "
	 "REC->q, REC->q, REC->l, REC->b, REC->h, REC->b, REC->h, REC->o, REC->h, REC->i\n"},
	{"demo",
	 "name: sums\nID: 101\n" CRAFT_COMMON_FIELDS NUMBERS
	 "\nprint fmt: \"%d,%d %llu %d %d %d %lx %u %u\", ((unsigned int) ((REC->i) >> 20)), "
	 "((unsigned int) ((REC->i) & ((1U << 20) - 1))), (unsigned long long)REC->q / 3, "
	 "REC->h ? REC->b : 7, !REC->o, REC->h == REC->b || REC->i != 0, ~REC->q, "
	 "(u8)REC->i, (REC->q % 10) * 2\n"},
	{"demo", "name: words\nID: 102\n" CRAFT_COMMON_FIELDS NUMBERS
		 "\tfield:char name[16];\toffset:40;\tsize:16;\tsigned:0;\n"
		 "\tfield:__data_loc char[] text;\toffset:56;\tsize:4;\tsigned:0;\n"
		 "\tfield:__rel_loc char[] more;\toffset:60;\tsize:4;\tsigned:0;\n"
		 "\tfield:__data_loc u32[] list;\toffset:64;\tsize:4;\tsigned:0;\n"
		 "\tfield:u8 mac[6];\toffset:68;\tsize:6;\tsigned:0;\n"
		 "\nprint fmt: \"%s|%s|%-8s|%8s|%.3s|%s|%s|%s|%s|%s\", REC->name, __get_str(text), "
		 "__get_str(text), REC->name, REC->name, __get_rel_str(more), "
		 "__print_symbolic(REC->h, { 0, \"ZERO\" }, { 1, \"ONE\" }), "
		 "__print_flags(REC->b, \"|\", { 1, \"A\" }, { 2, \"B\" }, { 8, \"C\" }), "
		 "__print_hex(REC->mac, 6), REC->o ? \"yes\" : \"no\"\n"},
	{"demo", "name: pointers\nID: 103\n" CRAFT_COMMON_FIELDS NUMBERS
		 "\tfield:u8 ip4[4];\toffset:40;\tsize:4;\tsigned:0;\n"
		 "\tfield:u8 ip6[16];\toffset:44;\tsize:16;\tsigned:0;\n"
		 "\tfield:const char * s;\toffset:64;\tsize:8;\tsigned:0;\n"
		 "\nprint fmt: \"%p %ps %pS %pU %pUl %s\", REC->p, (void *)REC->q, "
		 "(void *)REC->q, REC->ip6, REC->ip6, REC->s\n"},
	{"demo", "name: masks\nID: 104\n" CRAFT_COMMON_FIELDS
		 "\tfield:__data_loc unsigned long[] mask;\toffset:8;\tsize:4;\tsigned:0;\n"
		 "\tfield:__data_loc cpumask_t cpus;\toffset:12;\tsize:4;\tsigned:0;\n"
		 "\tfield:unsigned long args[3];\toffset:16;\tsize:24;\tsigned:0;\n"
		 "\nprint fmt: \"%s %s %lx %lx\", __get_bitmask(mask), __get_cpumask(cpus), "
		 "REC->args[0], REC->args[2]\n"},
	{"demo", "name: broken\nID: 105\n" CRAFT_COMMON_FIELDS NUMBERS
		 "\nprint fmt: \"%d\", frobnicate(REC->i)\n"},
	{"demo", "name: addresses\nID: 106\n" CRAFT_COMMON_FIELDS
		 "\tfield:u8 mac[6];\toffset:8;\tsize:6;\tsigned:0;\n"
		 "\tfield:u8 ip4[4];\toffset:16;\tsize:4;\tsigned:0;\n"
		 "\tfield:u8 ip6[16];\toffset:20;\tsize:16;\tsigned:0;\n"
		 "\nprint fmt: \"%pM %pI4 %pI6c\", REC->mac, REC->ip4, REC->ip6\n"},
	{"demo", "name: precise\nID: 107\n" CRAFT_COMMON_FIELDS NUMBERS
		 "\nprint fmt: \"%.0d|%#o\", REC->b, REC->h\n"},
	{"demo", "name: long\nID: 108\n" CRAFT_COMMON_FIELDS NUMBERS
		 "\nprint fmt: \"%.*d\", REC->i, REC->b\n"},
};

static const char kallsyms[] = "0000000000000000 A absolute\n"
			       "ffffffff81000000 T _stext\n"
			       "ffffffff81000000 T first\n"
			       "ffffffff81000100 t middle\n"
			       "ffffffff81000180 t $mapping\n"
			       "ffffffff81000100 t twin\n"
			       "ffffffffc0001000 t of_module\t[module]\n"
			       "ffffffffc0000800 t before\t[module]\n";

static const char printk[] = "0xffffffff82000000 : \"a string\\n\"\n"
			     "0xffffffff82000010 : \"another\"\n";

struct fixture {
	struct trace_dat *dat;
	struct decoder *decoder;
	struct tasks *tasks;
	struct printer *fast, *slow;
	struct json_printer *json;
};

static void setup(struct fixture *f, const struct craft_file *file, bool big_endian)
{
	struct craft c = {.big_endian = big_endian, .commit_size = 8};
	struct printer_config config = {.no_plugins = true};
	struct fault why = {};
	int fd;

	craft_file(&c, file);
	craft_open(&c, &fd, &f->dat, &f->decoder);
	assert_int_equal(decoder_new_tasks(f->decoder, &f->tasks, &why), 0);
	assert_int_equal(json_printer_new(f->decoder, &f->json), 0);
	assert_int_equal(printer_new(f->decoder, &config, &f->fast), 0);
	config.by_libtraceevent = true;
	assert_int_equal(printer_new(f->decoder, &config, &f->slow), 0);
}

static void teardown(struct fixture *f)
{
	printer_free(f->fast);
	printer_free(f->slow);
	json_printer_free(f->json);
	tasks_free(f->tasks);
	craft_close(f->dat->fd, f->dat, f->decoder);
}

static const struct craft_file demo = {
	.formats = formats,
	.n_formats = ARRAY_SIZE(formats),
	.kallsyms = kallsyms,
	.printk = printk,
	.cmdlines = "42 a task\n7 a name longer than 16 bytes\n",
};

static void complete(struct fixture *f, struct decode_event *event)
{
	decoder_identify(f->decoder, event);
	assert_int_equal(decoder_task(f->decoder, f->tasks, event), 0);
}

static char *line(struct fixture *f, struct printer *printer, struct decode_event *event)
{
	struct text out = {};

	complete(f, event);
	assert_int_equal(printer_put(printer, event, true, &out), 0);
	text_char(&out, '\0');
	return out.bytes;
}

/* What is compiled prints what libtraceevent prints */
static void test_compare(void **state)
{
	static uint8_t record[64 * KIB];

	for (unsigned big_endian = 0; big_endian < 2; big_endian++) {
		struct fixture f;
		unsigned seed = 1;

		setup(&f, &demo, big_endian);
		for (unsigned id = 100; id < 108; id += id == 104 ? 2 : 1) {
			struct tep_event *format = NULL;

			/* that has parts which are left to libtraceevent */
			assert_int_equal(printer_how(f.fast, id, &format),
					 id >= 106 ? TEXT_TEP : TEXT_COMPILED);
			for (unsigned i = 0; i < ROUNDS; i++) {
				struct decode_event event = {.ts = 1, .data = record};
				char *a, *b;

				event.size = craft_record(format, big_endian, false, &seed, record);
				a = line(&f, f.fast, &event);
				b = line(&f, f.slow, &event);
				assert_string_equal(a, b);
				free(a);
				free(b);
			}
		}
		teardown(&f);
	}
}

/* Nothing outside the record is read, whatever it holds and however short it is */
static void test_hostile(void **state)
{
	static uint8_t record[64 * KIB];
	struct fixture f;
	unsigned seed = 2;

	setup(&f, &demo, false);
	for (unsigned id = 100; id < 109; id++) {
		struct tep_event *format = NULL;
		enum text_how how = printer_how(f.fast, id, &format);

		/* the fields are shown of what could be formatted for hours */
		assert_true(id == 108 ? how == TEXT_TEP_ORDERED : how != TEXT_UNKNOWN);
		for (unsigned i = 0; i < ROUNDS; i++) {
			uint32_t size = craft_record(format, false, true, &seed, record);
			uint8_t *exact = malloc(size); /* for the sanitizer */
			struct decode_event event = {.ts = 1, .data = exact, .size = size};
			struct text out = {};

			assert_non_null(exact);
			memcpy(exact, record, size);
			free(line(&f, f.fast, &event));
			assert_int_equal(json_printer_put(f.json, &event, &out), 0);
			text_done(&out);
			free(exact);
		}
	}
	teardown(&f);
}

#define BOUNDED                                                                    \
	NUMBERS "\tfield:u8 mac[6];\toffset:40;\tsize:6;\tsigned:0;\n"             \
		"\tfield:__data_loc u32[] list;\toffset:48;\tsize:4;\tsigned:0;\n" \
		"\tfield:__rel_loc u8[] more;\toffset:52;\tsize:4;\tsigned:0;\n"   \
		"\tfield:__data_loc u8[] cut;\toffset:56;\tsize:2;\tsigned:0;\n"   \
		"\tfield:char name[6];\toffset:58;\tsize:6;\tsigned:0;\n"          \
		"\tfield:char rest[];\toffset:80;\tsize:0;\tsigned:0;\n"
#define BOUNDED_SIZE 80U

#define NONE INT32_MIN

/* Print formats that libtraceevent gets for their "%pM", and what it must not do */
static const struct {
	const char *format, *args;
	int i;	   /* of a record that it may print; NONE: there is none */
	int bad_i; /* of one that it may not print; NONE: there is none */
} bounded[] = {
	{"%s", "__print_hex(REC->mac, REC->i)", 40, 41},
	{"%s", "__print_hex(REC->mac, REC->i)", 0, -1},
	{"%s", "__print_hex_str(REC->mac, REC->i)", 40, 0x7fffffff},
	{"%s", "__print_hex(__get_dynamic_array(list), REC->i)", 16, 17},
	{"%s", "__print_array(REC->mac, REC->i, 8)", 5, 6},
	{"%s", "__print_array(REC->mac, REC->i, 3)", 40, 41},
	{"%s", "__print_array(__get_dynamic_array(list), REC->i, 4)", 4, 5},
	{"%s", "__print_array(__get_dynamic_array(list), 2, REC->i)", 8, NONE},
	{"%s", "REC->b ? __print_hex(REC->mac, REC->i) : \"none\"", 0x7fffffff, NONE},
	{"%s", "REC->b ? \"none\" : __print_hex(REC->mac, REC->i)", 40, 41},
	{"%s", "__print_symbolic(REC->mac[REC->i], { 1, \"A\" })", 39, 0x7fffffff},
	{"%s", "__print_flags(7 / REC->i, \"|\", { 1, \"A\" })", 1, 0},
	{"%d", "REC->mac[REC->i]", 39, 40},
	{"%d", "REC->mac[REC->i]", 39, -1000000000},
	{"%d", "((u32 *)__get_dynamic_array(list))[REC->i]", 12, 13},
	{"%d", "((u32 *)__get_dynamic_array(list))[REC->i]", 12, 0x7fffffff},
	{"%d", "7 % REC->i", 3, 0},
	{"%d", "REC->q / (REC->i << 1)", 3, 0},
	{"%d", "REC->b ? 7 / REC->b : REC->i / 7", -5, NONE},
	{"%.*s", "REC->i, REC->name", 3, -1},
	{"%.*s", "REC->i, __get_str(list)", 3, -1},
	{"%ls", "REC->name", NONE, 1},
	{"%s", "__print_hex((u8 *)REC->mac, 3)", NONE, 1},
	{"%s", "__print_array((u8 *)REC->mac, 3, 1)", NONE, 1},
	{"%s", "__get_cpumask(nothing)", NONE, 1},
	{"%d", "__get_rel_dynamic_array_len(more)", NONE, 1},
	{"%s", "REC->rest", 1, NONE},
	{"%*ph", "REC->i, __get_dynamic_array(cut)", 2000000000, NONE},
	{"%s", "__get_bitmask(cut)", 1, NONE},
	{"%s", "__get_cpumask(cut)", 1, NONE},
	{"%s", "__get_bitmask(h)", NONE, 1},
	{"%s", "frobnicate(REC->cut)", NONE, 1},
};

static void put32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static bool by_fields(struct fixture *f, struct decode_event *event)
{
	char *text = line(f, f->fast, event);
	bool failed = strstr(text, "[FAILED TO PARSE]");

	free(text);
	return failed;
}

/* Numbers in a record that libtraceevent would read and write anywhere for */
static void test_bounds(void **state)
{
	struct craft_format list[ARRAY_SIZE(bounded)];
	struct craft_file file = {.formats = list, .n_formats = ARRAY_SIZE(list)};
	static uint8_t record[BOUNDED_SIZE];
	struct fixture f;

	for (size_t i = 0; i < ARRAY_SIZE(bounded); i++) {
		list[i] = (struct craft_format){
			"demo", strf("name: bounded%zu\nID: %zu\n" CRAFT_COMMON_FIELDS BOUNDED
				     "\nprint fmt: \"%%pM %s\", REC->mac, %s\n",
				     i, 100 + i, bounded[i].format, bounded[i].args)};
		assert_non_null(list[i].text);
	}
	setup(&f, &file, false);
	put32(record + 48, 16 << 16 | 64);
	for (size_t i = 0; i < ARRAY_SIZE(bounded); i++) {
		struct decode_event event = {.ts = 1, .data = record, .size = BOUNDED_SIZE};
		struct tep_event *format;

		record[0] = (uint8_t)(100 + i);
		assert_int_equal(printer_how(f.fast, (uint32_t)(100 + i), &format),
				 bounded[i].i == NONE ? TEXT_TEP_ORDERED : TEXT_TEP);
		put32(record + 8, (uint32_t)bounded[i].i);
		/* an offset beyond the record, and one in it */
		for (unsigned k = 0; k < 2; k++) {
			put32(record + 56, k == 0 ? BOUNDED_SIZE + 1 : 1);
			assert_int_equal(by_fields(&f, &event), bounded[i].i == NONE);
		}
		if (bounded[i].bad_i == NONE)
			continue;
		put32(record + 8, (uint32_t)bounded[i].bad_i);
		assert_true(by_fields(&f, &event));
		/* only in order, as all that is printed by its fields */
		assert_int_equal(printer_put(f.fast, &event, false, &(struct text){}),
				 PRINTER_E_ORDER);
	}
	/* shorter than the field that is left to libtraceevent */
	record[0] = 100 + 26;
	assert_string_equal(bounded[26].args, "REC->rest");
	assert_true(by_fields(&f, &(struct decode_event){.ts = 1, .data = record, .size = 60}));
	teardown(&f);
	for (size_t i = 0; i < ARRAY_SIZE(bounded); i++)
		free((char *)list[i].text);
}

static void assert_line(struct fixture *f, struct decode_event *event, const char *expected)
{
	char *text = line(f, f->fast, event);

	assert_string_equal(text, expected);
	free(text);
}

static void test_line(void **state)
{
	uint8_t record[40] = {100};
	struct decode_event event = {.ts = 1234567890123, .data = record, .size = 40, .cpu = 3};
	static const char start[] =
		"          a task-42    [003]  1234.567890: plain:                0 ";
	struct fixture f;
	char *text;

	setup(&f, &demo, false);
	put32(record + 4, 42);
	text = line(&f, f.fast, &event);
	assert_memory_equal(text, start, sizeof(start) - 1);
	free(text);
	record[0] = 101;
	put32(record + 4, 7);
	put32(record + 8, 0x00300005);
	event.missed = 17;
	event.ts = 499;
	assert_line(&f, &event,
		    "CPU:3 [17 EVENTS DROPPED]\n"
		    "a name longer than 16 bytes-7     [003]     0.000000: sums:                 "
		    "3,5 0 7 1 1 ffffffffffffffff 5 0\n");
	event.missed = -1;
	put32(record + 4, (uint32_t)-5);
	assert_line(&f, &event,
		    "CPU:3 [EVENTS DROPPED]\n"
		    "           <...>--5    [003]     0.000000: sums:                 "
		    "3,5 0 7 1 1 ffffffffffffffff 5 0\n");
	/* not in the file */
	record[0] = 99;
	put32(record + 4, 0);
	event.missed = 0;
	assert_line(&f, &event, "          <idle>-0     [003]     0.000000: [UNKNOWN EVENT 99]\n");
	/* only in order, and by libtraceevent */
	record[0] = 105;
	complete(&f, &event);
	assert_int_equal(printer_put(f.fast, &event, false, &(struct text){}), PRINTER_E_ORDER);
	teardown(&f);
}

static void test_clocks(void **state)
{
	static const struct {
		const char *clock, *time;
	} clocks[] = {
		{"[local] boot", " 12345.678901"}, {"local [mono_raw]", " 12345.678901"},
		{"[tai]", " 12345.678901"},	   {"[boot]", "12345678901234"},
		{"[counter]", "12345678901234"},   {"[x86-tsc]", "12345678901234"},
		{"garbage", " 12345.678901"},	   {NULL, " 12345.678901"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		struct craft_file file = demo;
		uint8_t record[40] = {101};
		struct decode_event event = {.ts = 12345678901234, .data = record, .size = 40};
		char expected[128];
		struct fixture f;

		file.clock = clocks[i].clock;
		setup(&f, &file, false);
		(void)snprintf(expected, sizeof(expected),
			       "          <idle>-0     [000]%s: sums:                 "
			       "0,0 0 7 1 1 ffffffffffffffff 0 0\n",
			       clocks[i].time);
		assert_line(&f, &event, expected);
		teardown(&f);
	}
}

static void test_json(void **state)
{
	uint8_t record[96] = {102};
	struct decode_event event = {.ts = UINT64_MAX, .data = record, .size = 96, .missed = -1};
	struct text out = {};
	struct fixture f;

	setup(&f, &demo, false);
	record[2] = 1;
	record[3] = 2;
	put32(record + 4, 42);
	put32(record + 8, (uint32_t)-3);
	record[15] = 1;
	memset(record + 16, 0xff, 16);
	memcpy(record + 32, "\x10\x01\0\x81\xff\xff\xff\xff", 8);
	memcpy(record + 40, "q\"\\\n\x01\x7f\xc3\xa4\xff\xe2\x82", 11);
	put32(record + 56, 6 << 16 | 80);
	memcpy(record + 80, "words", 6);
	put32(record + 64, 8 << 16 | 88);
	put32(record + 88, 1);
	put32(record + 92, UINT32_MAX);
	complete(&f, &event);
	assert_int_equal(json_printer_put(f.json, &event, &out), 0);
	text_char(&out, '\0');
	assert_string_equal(
		out.bytes,
		"{\"ts\":18446744073709551615,\"cpu\":0,\"pid\":42,\"comm\":\"a task\",\"flags\":1,"
		"\"preempt_count\":2,\"lost_before\":null,\"system\":\"demo\",\"event\":\"words\","
		"\"fields\":{\"i\":-3,\"h\":0,\"b\":0,\"o\":true,\"q\":18446744073709551615,"
		"\"l\":-1,\"p\":18446744071578845456,"
		"\"name\":\"q\\\"\\\\\\n\\u0001\\u007f\xc3\xa4\\udcff\\udce2\\udc82\","
		"\"text\":\"words\",\"more\":\"\",\"list\":[1,4294967295],\"mac\":[0,0,0,0,0,0]},"
		"\"symbols\":{\"p\":\"middle+0x10\"}}\n");
	text_done(&out);
	teardown(&f);
}

/* Names by address as libtraceevent finds them, also where several have one address */
static void test_symbols(void **state)
{
	struct tep_handle *tep = tep_alloc();
	_cleanup_(file_symbols_freep) struct file_symbols *symbols = NULL;
	struct symbols_cache *cache = calloc(1, sizeof(*cache));

	assert_non_null(tep);
	assert_non_null(cache);
	assert_int_equal(tep_parse_kallsyms(tep, kallsyms), 0);
	assert_int_equal(file_symbols_new(strdup(kallsyms), strdup(""), &symbols), 0);
	cache->symbols = symbols;
	for (unsigned round = 0; round < 2; round++) {
		for (uint64_t a = 0xffffffff80ffff00; a < 0xffffffff81000300; a += 0x10) {
			uint64_t start = 0;
			const char *name = symbols_find(cache, a, &start);
			const char *theirs = tep_find_function(tep, a);

			assert_int_equal(!name, !theirs);
			if (!name)
				continue;
			assert_string_equal(name, theirs);
			assert_int_equal(start, tep_find_function_address(tep, a));
		}
	}
	assert_null(symbols_find(cache, 0xffffffffc0001001, &(uint64_t){0}));
	assert_string_equal(symbols_find(cache, 0xffffffffc0001000, &(uint64_t){0}), "of_module");
	free(cache);
	tep_free(tep);
}

static void test_tasks(void **state)
{
	_cleanup_(tasks_freep) struct tasks *tasks = NULL;
	const struct task_name *before;

	assert_int_equal(tasks_new("1 init\n\n\n2 two words\n", &tasks), 0);
	assert_string_equal(tasks_find(tasks, 0)->text, "<idle>");
	assert_string_equal(tasks_find(tasks, 1)->text, "init");
	assert_string_equal(tasks_find(tasks, 2)->text, "two words");
	assert_int_equal(tasks_find(tasks, 2)->padding, 7);
	before = tasks_find(tasks, 3);
	assert_false(before->known);
	assert_int_equal(tasks_learn(tasks, 3, "three\0rest", 10, false), 0);
	assert_int_equal(tasks_learn(tasks, 1, "other", 5, false), 0);
	assert_int_equal(tasks_learn(tasks, 0, "swapper", 7, false), 0);
	assert_string_equal(tasks_find(tasks, 3)->text, "three");
	assert_string_equal(tasks_find(tasks, 1)->text, "init");
	assert_string_equal(tasks_find(tasks, 0)->text, "<idle>");
	assert_string_equal(before->text, "<...>");
	for (int32_t pid = 10; pid < 5000; pid++)
		assert_int_equal(tasks_learn(tasks, pid, "many", 4, false), 0);
	assert_string_equal(tasks_find(tasks, 4999)->text, "many");
	assert_string_equal(tasks_find(tasks, 3)->text, "three");
}

/* Numbers as printf prints them */
static void test_numbers(void **state)
{
	static const uint64_t values[] = {0,	     1,		 9,	     10,
					  99,	     100,	 12345,	     UINT32_MAX,
					  INT64_MAX, 1ULL << 63, UINT64_MAX, 1000000};
	static const char letters[] = "diuxXo";
	char format[32], expected[128];
	struct text out = {};

	for (unsigned flags = 0; flags < 8; flags++)
		for (unsigned width = 0; width < 26; width += 5)
			for (const char *c = letters; *c; c++)
				for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
					const struct text_spec spec = {
						.conversion = *c,
						.left = flags & 1,
						.zero = flags & 2 && !(flags & 1),
						.alternate = flags & 4 && *c != 'o',
						.width = width,
					};
					const char digits[] = {(char)('0' + width / 10),
							       (char)('0' + width % 10), 0};

					(void)snprintf(format, sizeof(format), "%%%s%s%s%.*sll%c",
						       spec.left ? "-" : "", spec.zero ? "0" : "",
						       spec.alternate ? "#" : "", width ? 2 : 0,
						       width < 10 ? digits + 1 : digits, *c);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
					(void)snprintf(expected, sizeof(expected), format,
						       (unsigned long long)values[i]);
#pragma GCC diagnostic pop
					out.size = 0;
					text_number(&out, &spec, values[i]);
					text_char(&out, '\0');
					assert_string_equal(out.bytes, expected);
				}
	text_done(&out);
}

/* --- events of user_events that describe themselves */

static const struct craft_format header_formats[] = {
	{"user_events",
	 "name: Demo_L4K1\nID: 300\n" CRAFT_COMMON_FIELDS
	 "\tfield:u8 eventheader_flags;\toffset:8;\tsize:1;\tsigned:0;\n"
	 "\tfield:u8 version;\toffset:9;\tsize:1;\tsigned:0;\n"
	 "\tfield:u16 id;\toffset:10;\tsize:2;\tsigned:0;\n"
	 "\tfield:u16 tag;\toffset:12;\tsize:2;\tsigned:0;\n"
	 "\tfield:u8 opcode;\toffset:14;\tsize:1;\tsigned:0;\n"
	 "\tfield:u8 level;\toffset:15;\tsize:1;\tsigned:0;\n"
	 "\nprint fmt: \"eventheader_flags=%u version=%u id=%u tag=%u opcode=%u level=%u\", "
	 "REC->eventheader_flags, REC->version, REC->id, REC->tag, REC->opcode, REC->level\n"},
};

static const struct craft_file header_file = {
	.formats = header_formats,
	.n_formats = ARRAY_SIZE(header_formats),
	.cmdlines = "42 a task\n",
};

/* Encodings, formats, counts; in the order of the payload below */
#define DESCRIPTION                                                             \
	"Reply;level=high\0"                                                    \
	"n\0\x04"	       /* value32 */                                    \
	"minus\0\x82\x02"      /* value8, signed */                             \
	"flags\0\x85\x03"      /* value64, hex */                               \
	"ok\0\x82\x87\x34\x12" /* value8, boolean, with a tag */                \
	"ratio\0\x85\x08"      /* value64, float */                             \
	"port\0\x83\x10"       /* value16, port */                              \
	"ip\0\x84\x11"	       /* value32, IPv4 */                              \
	"ip6\0\x86\x12"	       /* value128, IPv6 */                             \
	"text\0\x07"	       /* zstring_char8 */                              \
	"wide\0\x0b"	       /* string_length16_char16 */                     \
	"latin\0\x8a\x0a"      /* string_length16_char8, Latin-1 */             \
	"raw\0\x8a\x09"	       /* string_length16_char8, bytes */               \
	"three\0\x22\x03\0"    /* value8[3] */                                  \
	"list\0\x43"	       /* value16[], counted in the payload */          \
	"none\0\xc1\x02"       /* an empty array of structures of two fields */ \
	"no\0\x02"                                                              \
	"nor\0\x02"                                                             \
	"s\0\x81\x02" /* a structure of two fields */                           \
	"a\0\x02"                                                               \
	"t\0\xc1\x01" /* in it an array of structures */                        \
	"b\0\x02"
#define PAYLOAD                              \
	"\x2a\0\0\0"                         \
	"\xfe"                               \
	"\xef\xbe\0\0\0\0\0\0"               \
	"\x01"                               \
	"\0\0\0\0\0\0\xf8\x3f"               \
	"\x1f\x90"                           \
	"\x7f\0\0\x01"                       \
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01" \
	"say \"x\"\n\0"                      \
	"\x03\0"                             \
	"\xe4\0"                             \
	"\x3d\xd8\0\xde"                     \
	"\x01\0"                             \
	"\xe4"                               \
	"\x02\0"                             \
	"\x0a\xff"                           \
	"\x01\x02\x03"                       \
	"\x02\0"                             \
	"\x10\0"                             \
	"\x20\0"                             \
	"\0\0"                               \
	"\x05"                               \
	"\x02\0"                             \
	"\x06\x07"
#define ACTIVITY       \
	"\x10\0\x02\0" \
	"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"

/* Return: the size of the record */
static uint32_t make_header_event(uint8_t *record)
{
	const size_t size = sizeof(DESCRIPTION) - 1;
	uint8_t *p = record;

	memset(p, 0, 8);
	p[0] = 300 & 0xff;
	p[1] = 300 >> 8;
	put32(p + 4, 42);
	memcpy(p + 8, "\x07\x01\x05\0\0\0\0\x04", 8);
	p += 16;
	*p++ = (uint8_t)size;
	*p++ = (uint8_t)(size >> 8);
	*p++ = 1;
	*p++ = 0x80;
	memcpy(p, DESCRIPTION, size);
	p += size;
	memcpy(p, ACTIVITY, sizeof(ACTIVITY) - 1);
	p += sizeof(ACTIVITY) - 1;
	memcpy(p, PAYLOAD, sizeof(PAYLOAD) - 1);
	return (uint32_t)(p + sizeof(PAYLOAD) - 1 - record);
}

static void test_header(void **state)
{
	static uint8_t record[4096];
	struct decode_event event = {.data = record, .size = make_header_event(record)};
	_cleanup_free_ char *text = NULL;
	struct text out = {};
	struct fixture f;

	setup(&f, &header_file, false);
	text = line(&f, f.fast, &event);
	assert_non_null(strstr(
		text,
		"level=4 Reply n=42 minus=-2 flags=0xbeef ok=true ratio=1.5 port=8080 ip=127.0.0.1 "
		"ip6=::1 text=\"say \"x\"\\n\" wide=\"\xc3\xa4\xf0\x9f\x98\x80\" latin=\"\xc3\xa4\" "
		"raw=0aff three=[1,2,3] list=[16,32] none=[] s={a=5 t=[{b=6},{b=7}]} "
		"activity=01020304-0506-0708-090a-0b0c0d0e0f10\n"));
	assert_int_equal(json_printer_put(f.json, &event, &out), 0);
	text_char(&out, '\0');
	assert_non_null(strstr(
		out.bytes,
		"\"level\":4},\"eventheader\":{\"name\":\"Reply\",\"fields\":{\"n\":42,\"minus\":-2,"
		"\"flags\":\"0xbeef\",\"ok\":true,\"ratio\":1.5,\"port\":8080,\"ip\":\"127.0.0.1\","
		"\"ip6\":\"::1\",\"text\":\"say \\\"x\\\"\\n\",\"wide\":\"\xc3\xa4\xf0\x9f\x98\x80\","
		"\"latin\":\"\xc3\xa4\",\"raw\":\"0aff\",\"three\":[1,2,3],\"list\":[16,32],"
		"\"none\":[],\"s\":{\"a\":5,\"t\":[{\"b\":6},{\"b\":7}]}},"
		"\"activity\":\"01020304-0506-0708-090a-0b0c0d0e0f10\"}}\n"));
	text_done(&out);
	teardown(&f);
}

/* However they are cut and changed: JSON that is whole, within limits */
static void test_header_damaged(void **state)
{
	static uint8_t whole[4096];
	const uint32_t size = make_header_event(whole);
	struct fixture f;
	unsigned seed = 1;

	setup(&f, &header_file, false);
	for (unsigned round = 0; round < size + ROUNDS; round++) {
		const uint32_t n = round < size ? MAX(round, 16U) : size;
		_cleanup_free_ uint8_t *record = malloc(n);
		struct decode_event event = {.data = record, .size = n};
		struct text out = {};
		unsigned open = 0;
		bool quoted = false;

		assert_non_null(record);
		memcpy(record, whole, n);
		for (unsigned i = 0; round >= size && i < 1 + round % 4; i++)
			record[16 + (unsigned)rand_r(&seed) % (n - 16)] = (uint8_t)rand_r(&seed);
		free(line(&f, f.fast, &event));
		assert_int_equal(json_printer_put(f.json, &event, &out), 0);
		for (size_t i = 0; i < out.size; i++) {
			if (quoted && out.bytes[i] == '\\')
				i++;
			else if (out.bytes[i] == '"')
				quoted = !quoted;
			else if (!quoted && strchr("{[", out.bytes[i]))
				open++;
			else if (!quoted && strchr("}]", out.bytes[i]))
				open--;
		}
		assert_true(open == 0 && !quoted);
		if (round > 16 && round < size)
			assert_non_null(memmem(out.bytes, out.size, "\"damaged\":true", 14));
		text_done(&out);
	}
	teardown(&f);
}

/* Arrays of structures of arrays: 2^48 values in a few bytes */
static void test_header_bomb(void **state)
{
	static uint8_t record[KIB];
	struct decode_event event = {.data = record, .size = 512};
	static const char bomb[] = "x\0"
				   "s\0\xa1\x01\xff\xff"
				   "s\0\xa1\x01\xff\xff"
				   "s\0\xa1\x01\xff\xff"
				   "s\0\xa1\x00\xff\xff";
	struct text out = {};
	struct fixture f;

	setup(&f, &header_file, false);
	(void)make_header_event(record);
	memset(record + 16, 0, sizeof(record) - 16);
	record[16] = sizeof(bomb) - 1;
	record[18] = 1;
	memcpy(record + 20, bomb, sizeof(bomb) - 1);
	complete(&f, &event);
	assert_int_equal(json_printer_put(f.json, &event, &out), 0);
	assert_true(out.size < 256 * KIB);
	assert_non_null(memmem(out.bytes, out.size, "\"damaged\":true", 14));
	text_done(&out);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compare),	       cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_bounds),	       cmocka_unit_test(test_line),
		cmocka_unit_test(test_clocks),	       cmocka_unit_test(test_json),
		cmocka_unit_test(test_symbols),	       cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_numbers),	       cmocka_unit_test(test_header),
		cmocka_unit_test(test_header_damaged), cmocka_unit_test(test_header_bomb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
