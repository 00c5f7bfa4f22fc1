/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks of ClickHouse's Native format, byte for byte, and their order. That ClickHouse means the
 * same by them test-clickhouse.sh shows.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "convert/clickhouse/clickhouse-order.h"
#include "convert/clickhouse/native-rows.h"
#include "tests/unit/analysis-fixture.h"

#define EXPECT(text, wanted) expect(text, wanted, sizeof(wanted) - 1)

static void expect(const struct text *text, const void *wanted, size_t size)
{
	assert_int_equal(text->size, size);
	assert_memory_equal(text->bytes, wanted, size);
}

static void test_numbers(void **state)
{
	_cleanup_(text_done) struct text out = {};

	native_varint(&out, 0);
	native_varint(&out, 127);
	native_varint(&out, 128);
	native_varint(&out, 300);
	native_number(&out, 0x0102, 2);
	native_number(&out, (uint64_t)-2, 4);
	native_string(&out, "ab", 2);
	EXPECT(&out, "\x00\x7f\x80\x01\xac\x02\x02\x01\xfe\xff\xff\xff\x02"
		     "ab");
}

static void test_block(void **state)
{
	_cleanup_(text_done) struct text out = {};
	struct native_block block;

	text_char(&out, 'x');
	native_begin(&block, &out, 2);
	native_column(&block, "n", NATIVE_U16);
	native_number(&out, 1, 2);
	native_number(&out, 2, 2);
	native_word(&block, "none", "");
	native_word(&block, "w", "ab");
	EXPECT(&out, "x\x02\x02"
		     "\x01n\x06UInt16\x01\x00\x02\x00"
		     "\x01w\x16LowCardinality(String)"
		     "\x01\0\0\0\0\0\0\0\x00\x06\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"
		     "\x02"
		     "ab\x02\0\0\0\0\0\0\0\0\0");
}

/* Each word once, whatever comes between; none twice in a row is looked up */
static void test_words(void **state)
{
	_cleanup_(text_done) struct text out = {};
	_cleanup_(native_words_done) struct native_words words = {};
	struct native_block block;

	native_begin(&block, &out, 5);
	native_words_begin(&words, 5);
	native_words_again(&words);
	native_words_add(&words, "0123456789", 10);
	native_words_add(&words, "0123456788", 10);
	native_words_again(&words);
	native_words_add(&words, "0123456789", 10);
	native_words_put(&words, &block, "w");
	EXPECT(&out, "\x01\x05\x01w\x16LowCardinality(String)"
		     "\x01\0\0\0\0\0\0\0\x00\x06\0\0\0\0\0\0\x03\0\0\0\0\0\0\0"
		     "\x00\x0a"
		     "0123456789\x0a"
		     "0123456788"
		     "\x05\0\0\0\0\0\0\0\x00\x01\x02\x02\x01");
	out.size = 0;
	native_begin(&block, &out, 2);
	native_words_begin(&words, 2);
	native_words_again(&words);
	native_words_again(&words);
	native_words_put(&words, &block, "w");
	EXPECT(&out, "\x00\x02");
}

/* How wide an index is; so many words that slots are next to each other */
static void test_widths(void **state)
{
	static const struct {
		uint32_t n;
		unsigned width;
	} cases[] = {{256, 0}, {257, 1}, {65536, 1}, {65537, 2}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(text_done) struct text out = {};
		_cleanup_(native_words_done) struct native_words words = {};
		const size_t size = (size_t)cases[i].n << cases[i].width;
		struct native_block block;
		uint32_t last = 0;

		native_begin(&block, &out, cases[i].n);
		native_words_begin(&words, cases[i].n);
		for (uint32_t k = 0; k < cases[i].n; k++)
			native_words_add(&words, &k, sizeof(k));
		native_words_put(&words, &block, "w");
		assert_int_equal(words.n_keys, cases[i].n);
		/* behind the number of columns and that of rows, of two or three bytes, and the
		 * column's name and type: version, and the width */
		assert_int_equal(out.bytes[(cases[i].n < 1 << 14 ? 3 : 4) + 2 + 23 + 8],
				 cases[i].width);
		memcpy(&last, out.bytes + out.size - ((size_t)1 << cases[i].width),
		       (size_t)1 << cases[i].width);
		assert_int_equal(le32toh(last), cases[i].n - 1);
		assert_true(out.size > size + 5 * (size_t)cases[i].n);
	}
}

static const struct native_table table = {
	"t",
	{{"n", NATIVE_U8}, {"w", NATIVE_WORD}, {"pids", NATIVE_PIDS}, {"texts", NATIVE_TEXTS}},
};

static void add(struct native_rows *rows, uint64_t n, const char *word, size_t items,
		struct text *out)
{
	const uint64_t pids[] = {1, (uint64_t)-1};
	const char *const texts[] = {"a", ""};

	assert_int_equal(native_rows_add(rows,
					 (const struct native_value[]){
						 {.number = n},
						 {.text = word},
						 {.n = items, .numbers = pids},
						 {.n = items, .texts = texts},
					 },
					 out),
			 0);
}

/* Arrays, of which one is empty; a word that no row has is no column */
static void test_rows(void **state)
{
	const struct clickhouse_labels labels = {
		.host = "h", .boot_id = "", .session = "", .file = ""};
	_cleanup_(text_done) struct text out = {};
	struct native_rows *rows;

	assert_int_equal(native_rows_new(&table, &labels, &rows), 0);
	assert_int_equal(native_rows_end(rows, &out), 0);
	assert_int_equal(out.size, 0);
	add(rows, 7, NULL, 2, &out);
	add(rows, 8, "", 0, &out);
	add(rows, 9, NULL, 1, &out);
	assert_int_equal(out.size, 0);
	assert_int_equal(native_rows_end(rows, &out), 0);
	EXPECT(&out, "\x04\x03"
		     "\x04host\x16LowCardinality(String)"
		     "\x01\0\0\0\0\0\0\0\x00\x06\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"
		     "\x01h\x03\0\0\0\0\0\0\0\0\0\0"
		     "\x01n\x05UInt8\x07\x08\x09"
		     "\x04pids\x0c"
		     "Array(Int32)"
		     "\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0"
		     "\x01\0\0\0\xff\xff\xff\xff\x01\0\0\0"
		     "\x05texts\x0d"
		     "Array(String)"
		     "\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0"
		     "\x01"
		     "a\x00\x01"
		     "a");
	native_rows_free(rows);
}

/* A block is full, and the next one has none of its rows */
static void test_full(void **state)
{
	const struct clickhouse_labels labels = {
		.host = "", .boot_id = "", .session = "", .file = ""};
	_cleanup_(text_done) struct text out = {};
	struct native_rows *rows;

	assert_int_equal(native_rows_new(&table, &labels, &rows), 0);
	for (uint64_t i = 0; i < NATIVE_ROWS; i++) {
		assert_int_equal(out.size, 0);
		add(rows, i, "word", 2, &out);
	}
	/* 8192 rows */
	assert_memory_equal(out.bytes, "\x04\x80\x40\x01n\x05UInt8\x00\x01\x02", 13);
	out.size = 0;
	add(rows, 5, NULL, 0, &out);
	assert_int_equal(native_rows_end(rows, &out), 0);
	EXPECT(&out, "\x03\x01\x01n\x05UInt8\x05"
		     "\x04pids\x0c"
		     "Array(Int32)\0\0\0\0\0\0\0\0"
		     "\x05texts\x0d"
		     "Array(String)\0\0\0\0\0\0\0\0");
	native_rows_free(rows);
}

/* --- the order of blocks */

static uint32_t kind_of(const struct decoder *decoder, const char *name)
{
	uint32_t kind = 1;

	while (strcmp(decoder_name(decoder, kind - 1), name) != 0)
		kind++;
	return kind;
}

static void expect_written(int fd, const char *text)
{
	char bytes[64] = "";

	assert_int_equal(pread(fd, bytes, sizeof(bytes) - 1, 0), strlen(text));
	assert_string_equal(bytes, text);
}

/* By name, each kind's in the order in which they came; written when there are enough */
static void test_order(void **state)
{
	const struct craft_file file = {.formats = fixture_formats, .n_formats = FIXTURE_FORMATS};
	struct craft c = craft_kinds[0];
	struct clickhouse_order *order;
	struct decoder *decoder;
	struct trace_dat *dat;
	uint32_t irq, switches, waking;
	int dat_fd, fd;
	struct fault why = {};

	craft_file(&c, &file);
	craft_open(&c, &dat_fd, &dat, &decoder);
	irq = kind_of(decoder, "irq_handler_entry");
	switches = kind_of(decoder, "sched_switch");
	waking = kind_of(decoder, "sched_waking");
	fd = memfd_create("order", MFD_CLOEXEC);
	assert_int_equal(clickhouse_order_new(decoder, fd, &order), 0);
	assert_int_equal(clickhouse_order_add(order, waking, "w1", 2, 1), 0);
	assert_int_equal(clickhouse_order_add(order, switches, "s1", 2, 1), 0);
	assert_int_equal(clickhouse_order_add(order, irq, "i1", 2, 1), 0);
	assert_int_equal(clickhouse_order_add(order, switches, "s2", 2, CLICKHOUSE_ORDER_ROWS - 4),
			 0);
	assert_int_equal(clickhouse_order_flush(order, false), 0);
	expect_written(fd, "");
	assert_int_equal(clickhouse_order_add(order, irq, "i2", 2, 1), 0);
	assert_int_equal(clickhouse_order_flush(order, false), 0);
	expect_written(fd, "i1i2s1s2w1");
	assert_int_equal(clickhouse_order_add(order, waking, "w2", 2, 1), 0);
	assert_int_equal(clickhouse_order_add(order, 0, "?", 1, 1), 0);
	assert_int_equal(clickhouse_order_flush(order, false), 0);
	assert_int_equal(clickhouse_order_flush(order, true), 0);
	expect_written(fd, "i1i2s1s2w1?w2");
	assert_int_equal(clickhouse_order_written(order, &why), 0);
	close(fd);
	assert_int_equal(clickhouse_order_add(order, irq, "i3", 2, 1), 0);
	assert_int_equal(clickhouse_order_flush(order, true), -EPIPE);
	assert_int_equal(clickhouse_order_written(order, &why), -EBADF);
	assert_int_equal(why.error, -EBADF);
	clickhouse_order_free(order);
	craft_close(dat_fd, dat, decoder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_block),
		cmocka_unit_test(test_words),	cmocka_unit_test(test_widths),
		cmocka_unit_test(test_rows),	cmocka_unit_test(test_full),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
