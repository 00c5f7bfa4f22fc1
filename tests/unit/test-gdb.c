/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gdb's trace files: the description, frames and blocks byte by byte, register tables and target
 * descriptions, probes' definitions and shorthands, and the corpus of the fuzzer.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "basic/io.h"
#include "convert/gdb/gdb-probe.h"
#include "convert/gdb/gdb-record.h"
#include "convert/gdb/gdb-tfile.h"
#include "tests/fuzz/gdb-target.h"

#define HEAD GDB_TFILE_MAGIC

static unsigned unknown_lines;

static void on_unknown(const char *text)
{
	assert_non_null(strstr(text, "x.tf: offset 0x"));
	unknown_lines++;
}

static struct gdb_tfile *parse(const char *text, size_t size)
{
	struct gdb_tfile *tfile = NULL;
	struct fault why = {};

	unknown_lines = 0;
	if (gdb_tfile_parse(text, size, "x.tf", on_unknown, &tfile, &why) < 0)
		fail_msg("%s", why.text);
	return tfile;
}

static void test_description(void **state)
{
	static const char text[] = HEAD "R a4\nstatus 0;tframes:2\n"
					"tsv 1:5:0:7473\ntsv 1f:ffffffffffffffff:1:61\n"
					"tsv 1:0:0:62\n" /* a number that there is */
					"tp T2:401126:E:0:0\ntp Z2:401126:cmd:0:1:61\ntp A2:1:R03\n"
					"tdesc <a>\ntdesc </a>\nodd\n\n\x02\x00";
	struct gdb_tfile *t = parse(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(t->register_size, 0xa4);
	assert_int_equal(t->n_lines, 11);
	assert_int_equal(t->n_variables, 2);
	assert_int_equal(t->variables[0].number, 1);
	assert_int_equal(t->variables[0].initial, 5);
	assert_string_equal(t->variables[0].name, "ts");
	assert_int_equal(t->variables[1].number, 0x1f);
	assert_true(t->variables[1].initial == -1);
	assert_int_equal(t->n_tracepoints, 1);
	assert_int_equal(t->tracepoints[0].number, 2);
	assert_int_equal(t->tracepoints[0].address, 0x401126);
	assert_string_equal(t->tdesc, "<a>\n</a>\n");
	assert_int_equal(t->frames_at, sizeof(text) - 1 - 2);
	assert_int_equal(unknown_lines, 2);
	gdb_tfile_free(t);
}

/* Wherever a description is cut, it is refused with the place */
static void test_description_cut(void **state)
{
	static const char text[] = HEAD "R a4\ntsv 1:5:0:7473\ntdesc <a>\n\n";

	(void)state;
	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		char *copy = malloc(n + !n); /* to the byte, for the address sanitizer */
		struct gdb_tfile *tfile = NULL;
		struct fault why = {};

		memcpy(copy, text, n);
		assert_int_equal(gdb_tfile_parse(copy, n, "x.tf", NULL, &tfile, &why), -EBADMSG);
		assert_non_null(strstr(why.text, "x.tf: offset 0x"));
		assert_null(tfile);
		free(copy);
	}
}

static void test_line_length(void **state)
{
	char text[GDB_TFILE_MAGIC_SIZE + 4 + 1001 + 2];
	struct gdb_tfile *tfile = NULL;
	struct fault why = {};

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, HEAD "R 8\n", GDB_TFILE_MAGIC_SIZE + 4);
	text[GDB_TFILE_MAGIC_SIZE + 4 + 999] = '\n';
	text[GDB_TFILE_MAGIC_SIZE + 4 + 1000] = '\n';
	tfile = parse(text, sizeof(text));
	gdb_tfile_free(tfile);
	tfile = NULL;
	text[GDB_TFILE_MAGIC_SIZE + 4 + 999] = 'x';
	assert_int_equal(gdb_tfile_parse(text, sizeof(text), "x.tf", NULL, &tfile, &why), -EBADMSG);
	assert_non_null(strstr(why.text, "offset 0xc: a line of more than 999 bytes"));
}

static void check_frame(bool big)
{
	uint8_t bytes[256], *p = bytes;
	struct gdb_tfile_frame frame;
	struct gdb_tfile_block block;
	struct fault why = {};
	uint32_t pos = 0, size = 1 + 8 + GDB_TFILE_MEMORY_SIZE + 3 + GDB_TFILE_VARIABLE_SIZE;
	size_t whole;

	p = gdb_tfile_put_frame(p, big, 300, size);
	*p++ = 'R';
	memcpy(p, "12345678", 8);
	p = gdb_tfile_put_memory(p + 8, big, UINT64_C(0x1122334455667788), "abc", 3);
	p = gdb_tfile_put_variable(p, big, 7, (uint64_t)-9);
	whole = (size_t)(p - bytes);
	assert_int_equal(whole, GDB_TFILE_HEAD_SIZE + size);
	assert_int_equal(bytes[big], 44);
	assert_int_equal(gdb_tfile_frame(bytes, whole, big, 100, "x", &frame, &why), 1);
	assert_int_equal(frame.tracepoint, 300);
	assert_int_equal(frame.size, size);
	p = bytes + GDB_TFILE_HEAD_SIZE;
	assert_int_equal(gdb_tfile_block(p, &frame, 8, big, "x", &pos, &block, &why), 1);
	assert_true(block.type == 'R' && block.size == 8 && block.data[7] == '8');
	assert_int_equal(gdb_tfile_block(p, &frame, 8, big, "x", &pos, &block, &why), 1);
	assert_true(block.type == 'M' && block.address == UINT64_C(0x1122334455667788));
	assert_true(block.size == 3 && memcmp(block.data, "abc", 3) == 0);
	assert_int_equal(gdb_tfile_block(p, &frame, 8, big, "x", &pos, &block, &why), 1);
	assert_true(block.type == 'V' && block.number == 7 && block.value == -9);
	assert_int_equal(gdb_tfile_block(p, &frame, 8, big, "x", &pos, &block, &why), 0);
	for (size_t left = 1; left < whole; left++) {
		assert_int_equal(gdb_tfile_frame(bytes, left, big, 100, "x", &frame, &why),
				 -EBADMSG);
		assert_non_null(strstr(why.text, "x: offset 0x64: "));
	}
	/* blocks that the frame cuts */
	for (frame.size = 0; frame.size < size; frame.size++) {
		int r;

		pos = 0;
		do
			r = gdb_tfile_block(p, &frame, 8, big, "x", &pos, &block, &why);
		while (r > 0);
		assert_int_equal(
			r, frame.size == 0 || frame.size == 9 || frame.size == 23 ? 0 : -EBADMSG);
	}
}

static void test_frames(void **state)
{
	static const uint8_t end[2], negative[6] = {0xff, 0xff};
	struct gdb_tfile_frame frame;
	struct fault why = {};

	(void)state;
	check_frame(false);
	check_frame(true);
	assert_int_equal(gdb_tfile_frame(end, 0, false, 0, "x", &frame, &why), 0);
	assert_int_equal(gdb_tfile_frame(end, 2, false, 0, "x", &frame, &why), 0);
	assert_int_equal(gdb_tfile_frame(negative, 6, false, 0, "x", &frame, &why), -EBADMSG);
}

static const struct gdb_register *find(const struct gdb_registers *registers, const char *name)
{
	for (size_t i = 0; i < registers->n; i++)
		if (strcmp(registers->list[i].name, name) == 0)
			return &registers->list[i];
	fail_msg("no register %s", name);
	return NULL;
}

static void test_registers(void **state)
{
	static const struct {
		enum gdb_arch arch;
		uint32_t size;
		const char *name;
		uint32_t offset, bytes;
	} known[] = {
		{GDB_X86_64, 164, "rip", 128, 8},   {GDB_X86_64, 164, "gs", 160, 4},
		{GDB_X86_64, 164, "rsp", 56, 8},    {GDB_AARCH64, 268, "x30", 240, 8},
		{GDB_AARCH64, 268, "pc", 256, 8},   {GDB_AARCH64, 268, "cpsr", 264, 4},
		{GDB_NIOS2, 196, "ra", 124, 4},	    {GDB_NIOS2, 196, "pc", 128, 4},
		{GDB_NIOS2, 196, "mpuacc", 192, 4}, {GDB_NIOS2, 196, "sp", 108, 4},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct gdb_registers r;
		const struct gdb_register *reg;
		uint32_t at = 0;

		assert_int_equal(gdb_registers_of(known[i].arch, &r), 0);
		assert_int_equal(r.size, known[i].size);
		assert_int_equal(gdb_arch_of_size(r.size), known[i].arch);
		reg = find(&r, known[i].name);
		assert_int_equal(reg->offset, known[i].offset);
		assert_int_equal(reg->size, known[i].bytes);
		for (size_t k = 0; k < r.n; at += r.list[k++].size)
			assert_int_equal(r.list[k].offset, at);
		assert_int_equal(at, r.size);
		gdb_registers_done(&r);
	}
	assert_int_equal(gdb_arch_of_size(8), GDB_ARCH_UNKNOWN);
	assert_int_equal(gdb_arch_of_size(132), GDB_NIOS2);
}

static void test_tdesc(void **state)
{
	struct gdb_registers r;

	(void)state;
	assert_int_equal(gdb_registers_from_tdesc(
				 "<target><architecture> aarch64 </architecture>\n"
				 "<reg name='late' bitsize='16' regnum='9'/>\n"
				 "<regular name='none' bitsize='8'/>"
				 "<reg bitsize=\"128\" name=\"v0\" type = 'x' regnum=\"0\"/>"
				 "<reg name='next' bitsize='32'/><reg name='bad' bitsize='x'/>"
				 "<reg name='next' bitsize='8'/><reg name='a-b' bitsize='80'/>"
				 "<reg name='1' bitsize='8'",
				 &r),
			 0);
	assert_int_equal(r.n, 6);
	assert_string_equal(r.list[0].name, "v0");
	assert_int_equal(r.list[0].size, 16);
	assert_string_equal(r.list[1].name, "next");
	assert_int_equal(r.list[1].offset, 16);
	assert_string_equal(r.list[2].name, "_register2"); /* the name is taken */
	assert_string_equal(r.list[3].name, "a_b");
	assert_int_equal(r.list[3].size, 10);
	assert_string_equal(r.list[5].name, "late");
	assert_int_equal(r.size, 16 + 4 + 1 + 10 + 1 + 2);
	gdb_registers_done(&r);
	assert_int_equal(gdb_registers_from_tdesc("<target/>", &r), -ENOENT);
	assert_int_equal(gdb_arch_of_tdesc("<architecture>aarch64</architecture>"), GDB_AARCH64);
	assert_int_equal(gdb_arch_of_tdesc("<architecture>i386:x86-64</architecture>"), GDB_X86_64);
	assert_int_equal(gdb_arch_of_tdesc("<architecture>m68k</architecture>"), GDB_ARCH_UNKNOWN);
	assert_int_equal(gdb_arch_of_tdesc(NULL), GDB_ARCH_UNKNOWN);
}

static void check_argument(const struct gdb_probe *probe, const char *field,
			   enum gdb_argument_kind kind, const char *reg, int64_t offset,
			   bool by_name)
{
	struct gdb_argument a = gdb_probe_argument(probe, GDB_X86_64, field);

	assert_int_equal(a.kind, kind);
	if (kind == GDB_ARGUMENT_OTHER)
		return;
	assert_string_equal(a.reg->name, reg);
	assert_true(a.offset == offset);
	assert_int_equal(a.by_name, by_name);
}

static void test_probe(void **state)
{
	struct gdb_probe p;

	(void)state;
	assert_int_equal(gdb_probe_parse("p:g/leaf /usr/bin/a:b:0x0001149 ax=%ax:x64 di=%si k=%dx "
					 "obj=-0x10(%di):x8[4] s=+u8(%di):string far=+8(+0(%di)) "
					 "mem_sp_512=+512(%sp):x64[64] c=$comm",
					 &p),
			 0);
	assert_string_equal(p.system, "g");
	assert_string_equal(p.name, "leaf");
	assert_string_equal(p.path, "/usr/bin/a:b");
	assert_int_equal(p.offset, 0x1149);
	check_argument(&p, "ax", GDB_ARGUMENT_REGISTER, "rax", 0, true);
	check_argument(&p, "di", GDB_ARGUMENT_REGISTER, "rsi", 0, false); /* the name lies */
	check_argument(&p, "k", GDB_ARGUMENT_REGISTER, "rdx", 0, false);
	check_argument(&p, "obj", GDB_ARGUMENT_MEMORY, "rdi", -16, false);
	check_argument(&p, "s", GDB_ARGUMENT_MEMORY, "rdi", 8, false);
	check_argument(&p, "mem_sp_512", GDB_ARGUMENT_MEMORY, "rsp", 512, true);
	check_argument(&p, "far", GDB_ARGUMENT_OTHER, NULL, 0, false);
	check_argument(&p, "c", GDB_ARGUMENT_OTHER, NULL, 0, false);
	check_argument(&p, "bx", GDB_ARGUMENT_OTHER, NULL, 0, false); /* not in the definition */
	gdb_probe_done(&p);
	/* without a definition the names count */
	check_argument(NULL, "bx", GDB_ARGUMENT_REGISTER, "rbx", 0, true);
	check_argument(NULL, "mem_bp_m16", GDB_ARGUMENT_MEMORY, "rbp", -16, true);
	check_argument(NULL, "mem_bp_", GDB_ARGUMENT_OTHER, NULL, 0, false);
	check_argument(NULL, "mem_bp_1x", GDB_ARGUMENT_OTHER, NULL, 0, false);
	check_argument(NULL, "mem_zz_1", GDB_ARGUMENT_OTHER, NULL, 0, false);
	check_argument(NULL, "other", GDB_ARGUMENT_OTHER, NULL, 0, false);
	assert_int_equal(gdb_probe_parse("r16:g/ret kernel_clone ret=$retval", &p), 0);
	assert_null(p.path);
	gdb_probe_done(&p);
	assert_int_equal(gdb_probe_parse("s:synthetic/x u64 a", &p), -EINVAL);
	assert_int_equal(gdb_probe_parse("p:leaf /a:1", &p), -EINVAL);
	assert_int_equal(gdb_probe_parse("", &p), -EINVAL);
}

/* Names of fields that would not be unique, or none at all */
static void test_record_names(void **state)
{
	static const char text[] = HEAD "R c\ntdesc <reg name='a' bitsize='32'/>\n"
					"tdesc <reg name='b' bitsize='64'/>\n"
					"tsv 1:0:0:61\ntsv 2:0:0:6120\ntsv 3:0:0:6672616d65\n"
					"tsv 4:0:0:3978\n\n";
	static const char *const names[] = {"a_", "a__", "frame_", "_9x"};
	struct gdb_tfile *t = parse(text, sizeof(text) - 1);
	struct gdb_record *record;
	struct gdb_shape shape = {
		.tracepoint = 3, .has_registers = true, .n = 2, .variables = {4, 99}};
	_cleanup_free_ char *format = NULL;
	uint32_t number;

	(void)state;
	assert_int_equal(gdb_record_new(t, &record), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_string_equal(record->names[i], names[i]);
		assert_true(gdb_record_variable(record, t, names[i], &number));
		assert_int_equal(number, i + 1);
	}
	assert_true(gdb_record_variable(record, t, "_variable99", &number));
	assert_int_equal(number, 99);
	assert_false(gdb_record_variable(record, t, "a", &number));
	assert_int_equal(gdb_record_size(record, &shape), 16 + 12 + 16);
	assert_int_equal(gdb_record_format(record, t, &shape, 2, 1001, &format), 0);
	assert_non_null(strstr(format, "name: tp3_2\nID: 1001\n"));
	assert_non_null(strstr(format, "field:u64 b;\toffset:20;\tsize:8;"));
	assert_non_null(strstr(format, "field:s64 _9x;\toffset:28;\tsize:8;"));
	assert_non_null(strstr(format, "field:s64 _variable99;\toffset:36;"));
	assert_non_null(
		strstr(format, "a=0x%x b=0x%llx _9x=%lld _variable99=%lld\", REC->frame, "));
	gdb_record_free(record);
	gdb_tfile_free(t);
}

/* Taken files come out again; what a fuzzer found stays found */
static void test_corpus(void **state)
{
	static const char dir[] = SOURCE_DIR "/tests/fuzz/corpus/gdb";
	DIR *d = opendir(dir);
	unsigned n = 0, taken = 0;

	(void)state;
	assert_non_null(d);
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		_cleanup_free_ char *bytes = NULL;
		size_t size;

		if (*e->d_name == '.')
			continue;
		assert_int_equal(io_read_file_at(dirfd(d), e->d_name, &bytes, &size), 0);
		taken += (unsigned)gdb_target((uint8_t *)bytes, size);
		n++;
	}
	closedir(d);
	assert_true(n >= 6);
	assert_true(taken >= 6);
}

/* A file cut or changed at each place is taken or refused, nothing else */
static void test_changed(void **state)
{
	static const char path[] = SOURCE_DIR "/tests/fuzz/corpus/gdb/blocks";
	_cleanup_free_ char *bytes = NULL;
	size_t size;

	(void)state;
	assert_int_equal(io_read_file_at(-1, path, &bytes, &size), 0);
	for (size_t n = 0; n < size; n++) {
		(void)gdb_target((uint8_t *)bytes, n);
		bytes[n] ^= 0x55;
		(void)gdb_target((uint8_t *)bytes, size);
		bytes[n] ^= 0x55;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_description), cmocka_unit_test(test_description_cut),
		cmocka_unit_test(test_line_length), cmocka_unit_test(test_frames),
		cmocka_unit_test(test_registers),   cmocka_unit_test(test_tdesc),
		cmocka_unit_test(test_probe),	    cmocka_unit_test(test_record_names),
		cmocka_unit_test(test_corpus),	    cmocka_unit_test(test_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
