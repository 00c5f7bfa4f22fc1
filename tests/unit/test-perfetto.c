/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export --format=perfetto, byte for byte: what is wanted is put together from texts such as
 * "1{1=0 2'name' 3[1,2] 4{…}}", a field's number and its value, a string, packed numbers or a
 * message, by Protobuf's rules alone. That Perfetto means the same by it test-perfetto.sh shows.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "convert/convert.h"
#include "convert/perfetto/perfetto-wire.h"
#include "decode/event-filter.h"
#include "formats/own-section.h"
#include "tests/unit/craft.h"
#include "tests/unit/event-file-add.h"
#include "tests/unit/fake-file.h"
#include "tests/unit/tmp.h"

/* --- what is wanted */

static void add_number(struct text *out, uint64_t value)
{
	do {
		text_char(out, (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0)));
		value >>= 7;
	} while (value);
}

/* Up to a closing brace, or the end; Return: behind that */
static const char *assemble(const char *p, struct text *out)
{
	while (*p && *p != '}') {
		_cleanup_(text_done) struct text inner = {};
		char *end;
		uint64_t field;

		p += strspn(p, " \n");
		if (!*p || *p == '}')
			break;
		field = strtoull(p, &end, 10);
		if (end == p)
			fail_msg("not understood: %s", p);
		if (*end == '=') {
			add_number(out, field << 3);
			/* "-1" and the like with their sign */
			add_number(out, end[1] == '-' ? (uint64_t)strtoll(end + 1, &end, 10)
						      : strtoull(end + 1, &end, 10));
			p = end;
			continue;
		}
		if (*end == '{') {
			p = assemble(end + 1, &inner);
		} else if (*end == '[') {
			for (p = end; *p != ']'; p = end)
				add_number(&inner, p[1] == '-' ? (uint64_t)strtoll(p + 1, &end, 10)
							       : strtoull(p + 1, &end, 10));
			p++;
		} else {
			p = strchr(end + 1, '\'') + 1;
			text_bytes(&inner, end + 1, (size_t)(p - 1 - (end + 1)));
		}
		add_number(out, field << 3 | 2);
		add_number(out, inner.size);
		text_bytes(out, inner.bytes, inner.size);
	}
	return *p ? p + 1 : p;
}

static void expect(const void *bytes, size_t size, const char *wanted)
{
	_cleanup_(text_done) struct text text = {};

	assemble(wanted, &text);
	if (size != text.size || memcmp(bytes, text.bytes, size) != 0)
		for (size_t i = 0; i < MIN(size, text.size); i++)
			if (((const char *)bytes)[i] != text.bytes[i])
				fail_msg("byte %zu of %zu (wanted %zu): %02x, not %02x: %s", i,
					 size, text.size, ((const uint8_t *)bytes)[i],
					 (uint8_t)text.bytes[i], wanted);
	assert_int_equal(size, text.size);
}

/* --- the wire */

static void test_numbers(void **state)
{
	_cleanup_(text_done) struct text out = {};

	wire_number(&out, 1, 0);
	wire_number(&out, 15, 127);
	wire_number(&out, 16, 128);
	wire_number(&out, 131071, UINT64_C(1) << 63);
	wire_number(&out, 2, (uint64_t)-1);
	wire_bytes(&out, 3, "ab", 2);
	expect(out.bytes, out.size, "1=0 15=127 16=128 131071=9223372036854775808 2=-1 3'ab'");
	out.size = 0;
	wire_raw(&out, 300);
	assert_int_equal(out.size, 2);
	assert_memory_equal(out.bytes, "\xac\x02", 2);
}

/* Up to the NUL byte; bytes that are no UTF-8, wherever they are, become text */
static void test_text(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		const char *wanted;
	} texts[] = {
		{"", 0, "1''"},
		{"name\0junk", 9, "1'name'"},
		{"name", 3, "1'nam'"},
		{"0123456789abcdef\xc3\xa4", 18, "1'0123456789abcdef\xc3\xa4'"},
		{"\xff", 1, "1'\\xff'"},
		{"01234567\x80\xe2\x82\xac\xc3", 13, "1'01234567\\x80\xe2\x82\xac\\xc3'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_(text_done) struct text out = {};

		wire_text(&out, 1, texts[i].text, texts[i].size);
		expect(out.bytes, out.size, texts[i].wanted);
	}
}

/* Where the size of a message takes one byte more */
static void test_messages(void **state)
{
	static const size_t sizes[] = {0, 1, 126, 127, 128, 129, 16383, 16384, 2097151, 2097152};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		_cleanup_(text_done) struct text out = {}, wanted = {};
		_cleanup_free_ char *filler = malloc(sizes[i] + 1);
		size_t outer, inner;

		assert_non_null(filler);
		memset(filler, 'x', sizes[i]);
		filler[sizes[i]] = '\0';
		wire_number(&out, 1, 1);
		outer = wire_begin(&out, 2);
		inner = wire_begin(&out, 3);
		text_bytes(&out, filler, sizes[i]);
		wire_end(&out, inner);
		wire_number(&out, 4, 4);
		wire_end(&out, outer);
		wire_number(&out, 5, 5);
		text_printf(&wanted, "1=1 2{3'%s' 4=4} 5=5", filler);
		text_char(&wanted, '\0');
		expect(out.bytes, out.size, wanted.bytes);
	}
}

/* --- files */

static enum convert_status export_from(int fd, const char *to, struct event_filter *filter)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_(decoder_freep) struct decoder *decoder = NULL;
	const struct convert_options options = {};
	struct fault why;

	if (trace_dat_open_fd(fd, "f.dat", &dat, &why) < 0 ||
	    decoder_new(dat, &decoder, &why) < 0 || event_filter_prepare(filter, decoder, &why) < 0)
		fail_msg("%s", why.text);
	return export_perfetto(&(struct export){
		.options = &options,
		.path = to,
		.dat = dat,
		.decoder = decoder,
		.filter = filter,
	});
}

/* @all: with findings, if there are any; else it is as if --cpu= was given */
static void expect_export(int fd, bool all, const char *wanted)
{
	_cleanup_free_ char *to = NULL, *bytes = NULL;
	struct event_filter filter = {};
	struct tmp tmp;
	size_t size;

	if (!all)
		assert_int_equal(event_filter_cpus(&filter, "0-1"), 0);
	tmp_init(&tmp);
	assert_true(asprintf(&to, "%s/f.pb", tmp.path) > 0);
	assert_int_equal(export_from(fd, to, &filter), CONVERT_DONE);
	assert_int_equal(io_read_file_at(AT_FDCWD, to, &bytes, &size), 0);
	expect(bytes, size, wanted);
	tmp_done(&tmp);
	event_filter_done(&filter);
}

#define TRACK  "112616080041315"
#define LOSSES "112616080106852"
/* of an event that is filled up with 0x5a: its task and two fields */
#define ZZ	 "2=1515870810 65578{1=1515870810 2=1515870810"
#define COUNTS_0 "2{1=0 2=0 3=0 4=0 5=0 8=0 9=0}"
#define COUNTS_1 "2{1=1 2=0 3=0 4=0 5=0 8=0 9=0}"

/* A file of any byte order and size of long; two ring buffers, and a loss */
static void test_crafted(void **state)
{
	static const char wanted[] =
		"1{6{1{1=6 2=1000000000} 2=6} 13=1 87=1 10=1}"
		"1{45{8=2} 10=1}"
		"1{34{1=1 " COUNTS_0 COUNTS_1 " 8=1} 10=1}"
		"1{34{1=2 2{1=0 2=4 3=3 4=0 5=0 8=7 9=0}" COUNTS_1 "} 10=1}"
		"1{60{1=" TRACK " 2'flyrec'} 10=1}"
		/* what the main thread says: the event's fields, the loss */
		"1{1{1=0 11{1=65578 2{1'hello' 2{1'a' 3=1 4=1 5=5} 2{1'b' 3=2 4=1 5=5}"
		" 2{1'ring_buffer' 3=3 4=1 5=9}}}} 10=1}"
		"1{60{1=" LOSSES " 2'lost events, CPU 1' 5=" TRACK " 8{3=2}} 10=1}"
		"1{8=1507 11{9=4 11=" LOSSES " 30=5} 10=1}"
		/* CPU 0, CPU 1, and that of the other ring buffer */
		"1{1{1=0 2{1=1010 " ZZ "}} 2{1=1020 " ZZ "}} 2{1=1030 " ZZ "}} 2{1=2000 " ZZ
		"}}} 10=1}"
		"1{1{1=1 3=1 2{1=1507 " ZZ "}} 2{1=1514 " ZZ "}}} 10=1}"
		"1{1{1=1 2{1=1603 " ZZ " 3'other'}}} 10=1}";

	FOR_EACH_CRAFT(c)
	{
		struct craft_dat at;
		int fd = memfd_create("test-perfetto", MFD_CLOEXEC);

		craft_dat(&c, "CPU: 0\nentries: 4\noverrun: 3\ndropped events: 7\n", "other", &at);
		assert_int_equal(io_pwrite_all(fd, c.bytes, c.size, 0), 0);
		expect_export(fd, false, wanted);
		close(fd);
	}
}

#define FIELD(n) "\tfield:u8 f" #n ";\toffset:8;\tsize:1;\tsigned:0;\n"
#define EIGHT(n)    \
	FIELD(n##0) \
	FIELD(n##1) FIELD(n##2) FIELD(n##3) FIELD(n##4) FIELD(n##5) FIELD(n##6) FIELD(n##7)

static const struct sections_format formats[] = {
	{"irq", "name: irq_handler_entry\nID: 3\n" EVENT_FILE_HEAD_FORMAT
		"\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\n"
		"print fmt: \"%d\", REC->irq\n"},
	{"many", "name: fields\nID: 4\n" EVENT_FILE_HEAD_FORMAT EIGHT(1) EIGHT(2) EIGHT(3)
			 EIGHT(4) "\nprint fmt: \"\"\n"},
	{"more", "name: kinds\nID: 5\n" EVENT_FILE_HEAD_FORMAT
		 "\tfield:s64 big;\toffset:8;\tsize:8;\tsigned:1;\n"
		 "\tfield:bool yes;\toffset:16;\tsize:1;\tsigned:0;\n"
		 "\tfield:u16 array[3];\toffset:18;\tsize:6;\tsigned:0;\n\n"
		 "print fmt: \"\"\n"},
	{"sched", "name: sched_switch\nID: 1\n" EVENT_FILE_HEAD_FORMAT
		  "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		  "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		  "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
		  "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
		  "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
		  "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
		  "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n"
		  "print fmt: \"%d\", REC->next_pid\n"},
	{"sched", "name: sched_waking\nID: 2\n" EVENT_FILE_HEAD_FORMAT
		  "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		  "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		  "\tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n"
		  "\tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n"
		  "print fmt: \"%d\", REC->pid\n"},
};

struct switched {
	struct event_file_head head;
	char prev_comm[16];
	int32_t prev_pid, prev_prio;
	int64_t prev_state;
	char next_comm[16];
	int32_t next_pid, next_prio;
};

struct waking {
	struct event_file_head head;
	char comm[16];
	int32_t pid, prio, target_cpu;
};

static void add(struct event_file *file, uint64_t ts, const void *data, size_t size)
{
	assert_int_equal(event_file_add(file, 0, ts, data, size), 0);
}

static void add_switch(struct event_file *file, uint64_t ts, int64_t state, const char *comm,
		       int32_t pid)
{
	struct switched event = {.head = {1, 0, 0, 7}, .prev_state = state, .next_pid = pid};

	event.next_prio = 120;
	memcpy(event.next_comm, comm, strnlen(comm, sizeof(event.next_comm)));
	add(file, ts, &event, sizeof(event));
}

static void add_others(struct event_file *file)
{
	static const struct {
		struct event_file_head head;
		int32_t irq;
		uint32_t name;
		char text[4];
	} irq = {{3, 0, 0, -1}, -5, 4 << 16 | 16, "eth"};
	static const struct {
		struct event_file_head head;
		int64_t big;
		uint8_t yes, unused;
		uint16_t array[3];
	} kinds = {{5, 0, 0, 8}, -2, 2, 0, {1, 2, 65535}};
	static const struct {
		struct event_file_head head;
		uint8_t byte, unused[7];
	} fields = {{4, 0, 0, 9}, 200, {}}, unknown = {{99, 0, 0, 9}, 1, {2}};

	add(file, 1600, &irq, sizeof(irq));
	add(file, 1700, &kinds, sizeof(kinds));
	add(file, 1800, &fields, sizeof(fields));
	add(file, 1900, &unknown, sizeof(unknown));
}

/* clang-format off */
#define NAMED(n) " 2{1'f" #n "' 5=200}"
#define NAMED_8(n)                                                                          \
	NAMED(n##0) NAMED(n##1) NAMED(n##2) NAMED(n##3) NAMED(n##4) NAMED(n##5) NAMED(n##6) \
	NAMED(n##7)
/* clang-format on */

/* Columns with their names, a message that Perfetto knows, others with and without a descriptor */
static void test_kinds(void **state)
{
	static const char wanted[] =
		"1{6{1{1=6 2=1000000000} 2=6} 13=1 87=1 10=1}"
		"1{45{1{1'Linux' 3'6.18.0' 4'x86_64'} 8=1} 10=1}"
		"1{34{1=1 " COUNTS_0 " 8=1} 10=1}"
		"1{34{1=2 2{1=0 2=8 3=0 4=0 5=0 8=0 9=0}} 10=1}"
		"1{60{1=" TRACK " 2'flyrec'} 10=1}"
		"1{1{1=0 11{1=65541 2{1'kinds' 2{1'big' 3=1 4=1 5=3} 2{1'yes' 3=2 4=1 5=8}"
		" 2{1'array' 3=3 4=1 5=9}}}} 10=1}"
		"1{1{1=0 4{5'first' 5'0123456789abcdef'"
		" 1[1000,100,400] 2[1,-2,0] 3[20,30,20] 4[120,120,120] 6[0,1,0]"
		" 7[1200] 8[21] 9[3] 10[100] 11[0] 12[4]}"
		" 2{1=1600 2=4294967295 36{1=-5 2'eth'}}"
		" 2{1=1700 2=8 65541{1=-2 2=1 3'[1,2,65535]'}}"
		" 2{1=1800 2=9 327{1'fields'" NAMED_8(1) NAMED_8(2) NAMED_8(3) NAMED_8(
			4) "}}"
			   " 2{1=1900 2=9 327{1'event_99' 2{1'data' 3'63000000090000000102000000000000'}}}"
			   "} 10=1}";
	static const struct waking waking = {{2, 4, 0, 7}, "first", 21, 100, 3};
	const struct event_file_params params = {
		.mode = 0600,
		.formats = formats,
		.n_formats = ARRAY_SIZE(formats),
		.clock = "[local]\n",
		.uname = "Linux host 6.18.0 x86_64",
	};
	_cleanup_(event_file_freep) struct event_file *file = NULL;
	struct fault why;

	assert_int_equal(event_file_new(&params, &file, &why), 0);
	add_switch(file, 1000, 1, "first", 20);
	add_switch(file, 1100, -2, "0123456789abcdef", 30); /* without a NUL byte */
	add(file, 1200, &waking, sizeof(waking));
	add_switch(file, 1500, 0, "first", 20);
	add_others(file);
	assert_int_equal(event_file_finish(file, NULL, &why), 0);
	expect_export(event_file_fd(file), false, wanted);
}

/* Nothing to analyse: as much as of an empty file */
static void test_empty(void **state)
{
	const struct event_file_params params = {
		.mode = 0600,
		.formats = formats,
		.n_formats = ARRAY_SIZE(formats),
		.clock = "[local]\n",
		.uname = "test",
		.has_date = true,
		.date_usec = 5,
	};
	_cleanup_(event_file_freep) struct event_file *file = NULL;
	struct fault why;

	assert_int_equal(event_file_new(&params, &file, &why), 0);
	assert_int_equal(event_file_finish(file, NULL, &why), 0);
	expect_export(event_file_fd(file), true,
		      "1{6{1{1=6 2=1000000000} 1{1=1 2=1000005000} 2=6} 13=1 87=1 10=1}"
		      "1{45{8=1} 10=1} 1{34{1=1 " COUNTS_0 " 8=1} 10=1}"
		      "1{34{1=2 " COUNTS_0 "} 10=1}"
		      "1{60{1=" TRACK " 2'flyrec'} 10=1}");
}

/* A live file with these in its room for the journal */
static int make_journal(struct fake *f, const char *text)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_file_ struct trace_file *file = NULL;
	struct fault why = {};
	int fd;

	(void)unlinkat(f->dir_fd, "a.dat", 0);
	f->params.own = (struct own_content){.journal_room = 4096};
	file = fake_create(f, "a.dat");
	fd = openat(f->dir_fd, "a.dat", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(trace_dat_open_fd(fd, "a.dat", &dat, &why), 0);
	if (own_section_write(dat, OWN_JOURNAL, text, strlen(text), &why) < 0)
		fail_msg("%s", why.text);
	return fd;
}

/* Return: are these packets in a row in it? */
static bool export_has(int fd, enum convert_status status, const char *wanted)
{
	_cleanup_free_ char *to = NULL, *bytes = NULL;
	_cleanup_(text_done) struct text text = {};
	struct event_filter filter = {};
	struct tmp tmp;
	size_t size;

	assert_int_equal(event_filter_cpus(&filter, "0"), 0);
	tmp_init(&tmp);
	assert_true(asprintf(&to, "%s/f.pb", tmp.path) > 0);
	assert_int_equal(export_from(fd, to, &filter), status);
	assert_int_equal(io_read_file_at(AT_FDCWD, to, &bytes, &size), 0);
	tmp_done(&tmp);
	event_filter_done(&filter);
	assemble(wanted, &text);
	return memmem(bytes, size, text.bytes, text.size);
}

#define JOURNAL "112616080106850"
#define SOME	"1{60{1=" JOURNAL " 2'journal' 5=" TRACK "} 10=1}"
#define FIRST(x)                                                   \
	"1{8=" x " 11{9=3 11=" JOURNAL " 22'journal' 23'id[3]: a'" \
	" 4{10'priority' 3=6} 4{10'unit' 6'u.service'}} 10=1}"

/* Lines of the journal are moments of their own track */
static void test_journal(void **state)
{
	static const char *const lines = "1700000000000000 1700000000000009 0\n"
					 "1700000000000005 6 3 0 id u.service a\n"
					 "1700000000000007 3 0 1 kernel  b c\n";
	_cleanup_free_ char *text = strdup(lines), *bad = NULL;
	struct fake f;
	int fd;

	fake_init(&f, 1);
	for (char *p = text; *p; p++)
		if (*p == ' ' && p[1] != 'c')
			*p = '\t';
	fd = make_journal(&f, text);
	assert_true(export_has(fd, CONVERT_DONE,
			       SOME FIRST("5000") "1{8=7000 11{9=3 11=" JOURNAL
						  " 22'journal' 23'kernel: b c...'"
						  " 4{10'priority' 3=3}} 10=1}"));
	close(fd);
	/* damaged behind the first line */
	assert_true(asprintf(&bad, "%s\001\n", text) > 0);
	fd = make_journal(&f, bad);
	assert_true(export_has(fd, CONVERT_FAILED, SOME FIRST("5000")));
	close(fd);
	/* room alone */
	fd = make_journal(&f, "");
	assert_false(export_has(fd, CONVERT_DONE, "60{1=" JOURNAL));
	close(fd);
	fake_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),	 cmocka_unit_test(test_text),
		cmocka_unit_test(test_messages), cmocka_unit_test(test_crafted),
		cmocka_unit_test(test_kinds),	 cmocka_unit_test(test_empty),
		cmocka_unit_test(test_journal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
