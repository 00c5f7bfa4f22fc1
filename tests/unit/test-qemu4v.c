/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of text traces: what they mean, printed again, as events; corpus of the fuzzer */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/io.h"
#include "basic/macro.h"
#include "convert/qemu4v/qemu4v-event.h"
#include "decode/text.h"
#include "tests/fuzz/qemu4v-target.h"

static struct qemu4v_record parse(const char *line)
{
	const char *reason = "";
	struct qemu4v_record r;

	if (qemu4v_parse(line, strlen(line), &r, &reason) < 0)
		fail_msg("\"%s\": %s", line, reason);
	return r;
}

static void assert_text(const char *text, uint32_t size, const char *expected)
{
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(text, expected, size);
}

static void test_insn(void **state)
{
	struct qemu4v_record r = parse("1 clk 0 IT (1) 00000004 3c080001 A svc : lui t0,0x1");

	assert_int_equal(r.kind, QEMU4V_INSN);
	assert_int_equal(r.time, 1);
	assert_int_equal(r.form.scale, QEMU4V_CLK);
	assert_int_equal(r.form.cpu, QEMU4V_CPU_NUMBER);
	assert_int_equal(r.cpu, 0);
	assert_true(r.taken);
	assert_int_equal(r.id, 1);
	assert_int_equal(r.addr, 4);
	assert_int_equal(r.data, 0x3c080001);
	assert_int_equal(r.bits, 32);
	assert_string_equal(r.iset, "A");
	assert_string_equal(r.mode, "svc");
	assert_int_equal(r.secure, QEMU4V_SECURE_UNTOLD);
	assert_text(r.text, r.text_size, "lui t0,0x1");

	r = parse("12 clk IS (12) 0000802c 1afb T svc_s : SUBNE    r3,r7,r3");
	assert_false(r.taken);
	assert_int_equal(r.form.cpu, QEMU4V_CPU_NONE);
	assert_int_equal(r.bits, 16);
	assert_string_equal(r.iset, "T");
	assert_int_equal(r.secure, QEMU4V_SECURE);
	assert_text(r.text, r.text_size, "SUBNE    r3,r7,r3");

	r = parse("3 ns cpu2 IT (3) 815c:00000000815c_NS,00000000815e_NS f7ffef76 T32 hyp_n : B");
	assert_int_equal(r.form.scale, QEMU4V_NS);
	assert_int_equal(r.form.cpu, QEMU4V_CPU_NAME);
	assert_int_equal(r.cpu, 2);
	assert_int_equal(r.phys, 0x815c);
	assert_string_equal(r.iset, "T32");
	assert_string_equal(r.mode, "hyp");
	assert_int_equal(r.secure, QEMU4V_NON_SECURE);

	/* the address in the place of the id */
	r = parse("6 cs IT (00000000004d6eb8) 54fffea1 O  ---_- :        b.ne	0x4d6e8c");
	assert_int_equal(r.addr, 0x4d6eb8);
	assert_int_equal(r.data, 0x54fffea1);
	assert_int_equal(r.id, 0);
	assert_string_equal(r.mode, "---_-");
	r = parse("6 cs IT (10) 54fffea1 O EL0t : b");
	assert_int_equal(r.addr, 0x10);
	assert_int_equal(r.bits, 32);
}

static void test_mem(void **state)
{
	struct qemu4v_record r = parse("10 clk MR8 00103fc4 0010400000000000");

	assert_int_equal(r.kind, QEMU4V_MEM);
	assert_false(r.write);
	assert_int_equal(r.size, 8);
	assert_string_equal(r.attrib, "");
	assert_int_equal(r.addr, 0x103fc4);
	assert_int_equal(r.data, 0x10400000000000);
	assert_int_equal(r.data_hi, 0);

	r = parse("10 tic MW4X ffffffff80000000 deadBEEF");
	assert_true(r.write);
	assert_string_equal(r.attrib, "X");
	assert_int_equal(r.addr, 0xffffffff80000000);
	assert_int_equal(r.data, 0xdeadbeef);

	r = parse("1 clk MW16 cbf0:00000000cbf0 00000000_00000001_00000000_00000002");
	assert_int_equal(r.size, 16);
	assert_int_equal(r.phys, 0xcbf0);
	assert_int_equal(r.data_hi, 1);
	assert_int_equal(r.data, 2);

	r = parse("72415 clk MR16 400171e0 400f731b40000000 3ff87cc460000000");
	assert_int_equal(r.data_hi, 0x400f731b40000000);
	assert_int_equal(r.data, 0x3ff87cc460000000);

	r = parse("28491 clk MR4 dfdfdfcf (ABORTED)");
	assert_true(r.aborted);
	assert_int_equal(r.addr, 0xdfdfdfcf);
	assert_int_equal(r.form.data_digits, 0);
}

static void test_reg(void **state)
{
	struct qemu4v_record r = parse("14 clk R r8 00000010");

	assert_int_equal(r.kind, QEMU4V_REG);
	assert_text(r.name, r.name_size, "r8");
	assert_text(r.text, r.text_size, "00000010");
	assert_int_equal(r.data, 0x10);
	assert_int_equal(r.bits, 32);

	r = parse("513 clk R FPCR 01230123:23452345");
	assert_int_equal(r.data, 0x0123012323452345);
	assert_int_equal(r.bits, 64);
	r = parse("123 ns R Q0 -------- -------- 3ff6a09e 667f3bcd");
	assert_int_equal(r.data, 0x3ff6a09e667f3bcd);
	assert_int_equal(r.bits, 128);
	r = parse("3 clk R R1 (USR) 00000379");
	assert_text(r.name, r.name_size, "R1 (USR)");
	assert_int_equal(r.data, 0x379);
	r = parse("6000017 cs R cpsr 20000000 __C_");
	assert_int_equal(r.data, 0x20000000);
	assert_int_equal(r.bits, 32);
	assert_text(r.text, r.text_size, "20000000 __C_");
}

static void test_other(void **state)
{
	static const char *const lines[] = {
		"",
		"   ",
		"Tarmac Text Rev 3t",
		"0 clk SIGNAL: SIGNAL=DebugReset STATE=N",
		"0 clk cpu1 E DebugEvent_HaltingDebugState 00000000",
		"40 clk R DC CISW 00000000:00000000",
		"3041 cyc MNR4O__I 00022ae4 f7ffffcb",
		"17000 ns  ES  EXC [0x00] Reset",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct qemu4v_record r = parse(lines[i]);

		assert_int_equal(r.kind, QEMU4V_TEXT);
		assert_text(r.text, r.text_size, lines[i]);
	}
	assert_int_equal(parse("7 clk cpu1 E x").time, 7);
	assert_int_equal(parse("7 clk cpu1 E x").cpu, 1);
}

static void test_malformed(void **state)
{
	static const struct {
		const char *line, *reason;
	} lines[] = {
		{"hello", "no time"},
		{"R r0 00000000", "no time"},
		{"0x10 clk R r0 0", "no time"},
		{"18446744073709551616 clk R r0 0", "no time"},
		{"1 parsec R r0 0", "no scale"},
		{"1", "no scale"},
		{"1 clk", "nothing behind the time"},
		{"1 clk 5000 R r0 0", "CPU"},
		{"1 clk 00 R r0 0", "CPU"},
		{"1 clk IT", "no address"},
		{"1 clk IT (", "brackets"},
		{"1 clk IT (z) 4 3c080001 A svc : nop", "brackets"},
		{"1 clk IT (ff) 00000004 3c080001 A svc : nop", "not decimal"},
		{"1 clk IT (1) x 3c080001 A svc : nop", "no address"},
		{"1 clk IT (1) 00000000000000004 3c080001 A svc : nop", "no address"},
		{"1 clk IT (1) 00000004:x 3c080001 A svc : nop", "no address"},
		{"1 clk IT (1) 00000004 xyz A svc : nop", "no opcode"},
		{"1 clk IT (1) 00000004 3c080001 Z svc : nop", "instruction set"},
		{"1 clk IT (1) 00000004 3c080001 A", "no mode"},
		{"1 clk IT (1) 00000004 3c080001 A averylongmode : nop", "no mode"},
		{"1 clk IT (1) 00000004 3c080001 A svc nop", "no colon"},
		{"1 clk MR0 00000004 00", "size"},
		{"1 clk MR17 00000004 00", "size"},
		{"1 clk MR4XYZW 00000004 00", "attribute"},
		{"1 clk MR4- 00000004 00", "attribute"},
		{"1 clk MR4", "no address"},
		{"1 clk MR4 00000004", "no data"},
		{"1 clk MR4 00000004 xx", "data"},
		{"1 clk MR4 00000004 0000000000", "more data"},
		{"1 clk MR4 00000004 00000000 junk", "behind the data"},
		{"1 clk R ", "no name"},
		{"1 clk R r0", "no value"},
		{"1 clk R r0 (USR)", "no value"},
		{"1 clk R r0 hello", "no value"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		const char *line = lines[i].line, *reason = "nothing";
		struct qemu4v_record r;

		assert_int_equal(qemu4v_parse(line, strlen(line), &r, &reason), -EBADMSG);
		if (!strstr(reason, lines[i].reason))
			fail_msg("\"%s\": \"%s\" instead of \"%s\"", line, reason, lines[i].reason);
		assert_int_equal(r.kind, QEMU4V_TEXT);
		assert_text(r.text, r.text_size, line);
	}
}

static void assert_printed(const char *line, size_t size)
{
	_cleanup_(text_done) struct text out = {};
	_cleanup_free_ char *event = NULL;
	struct qemu4v_record r, back;
	const char *reason = "";
	uint64_t number;

	if (qemu4v_parse(line, size, &r, &reason) < 0 && r.kind != QEMU4V_TEXT)
		fail_msg("%.*s: %s", (int)size, line, reason);
	event = malloc(qemu4v_event_size(&r));
	qemu4v_event_write(&r, 1, 1, event);
	assert_int_equal(
		qemu4v_event_read(r.kind, r.cpu, event, qemu4v_event_size(&r), &back, &number), 0);
	qemu4v_print(&back, &out);
	if (out.size != size + 1 || memcmp(out.bytes, line, size) != 0 || out.bytes[size] != '\n')
		fail_msg("\"%.*s\" became \"%.*s\"", (int)size, line, (int)out.size, out.bytes);
}

/* Every line of the fixtures is the same again */
static void test_fixtures(void **state)
{
	static const char *const names[] = {"seed.txt", "dialects.txt"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_free_ char *path = NULL, *text = NULL;
		unsigned n = 0;

		assert_true(asprintf(&path, SOURCE_DIR "/tests/fixtures/qemu4v/%s", names[i]) > 0);
		assert_int_equal(io_read_file_at(-1, path, &text, NULL), 0);
		for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, n++)
			assert_printed(line, (size_t)(end - line));
		assert_true(n > 10);
	}
}

static unsigned pick(unsigned *seed, unsigned n)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 8) % n;
}

static void put_hex(char *out, unsigned *seed, unsigned n)
{
	bool upper = pick(seed, 4) == 0;

	out += strlen(out);
	for (unsigned i = 0; i < n; i++)
		*out++ = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[pick(seed, 16)];
	*out = '\0';
}

/* A line as the format's description has it */
static void make_line(char *out, unsigned *seed)
{
	static const char *const modes[] = {"svc", "irq", "fiq", "usr", "mon", "sys", "abt", "und"};
	static const char *const scales[] = {"clk", "ns", "ps", "us", "tic", "cs"};
	static const unsigned opcodes[] = {4, 8, 16};

	(void)sprintf(out, "%u %s ", pick(seed, 1000000), scales[pick(seed, 6)]);
	out += strlen(out);
	switch (pick(seed, 3)) {
	case 0:
		(void)sprintf(out, "%u I%c (%u) ", pick(seed, 64), "TS"[pick(seed, 2)],
			      pick(seed, 100000));
		put_hex(out, seed, pick(seed, 2) ? 8 : 16);
		(void)strcat(out, " ");
		put_hex(out, seed, opcodes[pick(seed, 3)]);
		out += strlen(out);
		(void)sprintf(
			out, " %c %s%s : mov r%u, [r%u]", "ATX" [pick(seed, 3)],
			modes[pick(seed, 8)], (const char *[]) { "_s", "_ns", "" }[pick(seed, 3)],
			pick(seed, 16), pick(seed, 16));
		break;
	case 1: {
		unsigned size = 1U << pick(seed, 5);

		(void)sprintf(
			out, "M%c%u%s ", "RW" [pick(seed, 2)], size,
			(const char *[]) { "", "X", "T" }[pick(seed, 3)]);
		put_hex(out, seed, pick(seed, 2) ? 8 : 16);
		(void)strcat(out, " ");
		put_hex(out, seed, 2 * size);
		break;
	}
	default:
		(void)sprintf(out, "R r%u ", pick(seed, 32));
		put_hex(out, seed, pick(seed, 2) ? 8 : 16);
	}
}

static void test_grammar(void **state)
{
	unsigned seed = 4711;

	for (unsigned i = 0; i < 100000; i++) {
		const char *reason = "";
		struct qemu4v_record r;
		char line[256];

		make_line(line, &seed);
		if (qemu4v_parse(line, strlen(line), &r, &reason) < 0 || r.kind == QEMU4V_TEXT)
			fail_msg("\"%s\": %s", line, reason);
		assert_printed(line, strlen(line));
	}
}

/* An event that is cut, or whose text is elsewhere */
static void test_bad_events(void **state)
{
	struct qemu4v_record r = parse("14 clk R r8 00000010"), back;
	size_t size = qemu4v_event_size(&r);
	_cleanup_free_ char *event = malloc(size);
	uint64_t line;

	qemu4v_event_write(&r, 1, 1, event);
	for (size_t n = 0; n < size; n++) {
		_cleanup_free_ char *cut = malloc(n ? n : 1);

		memcpy(cut, event, n);
		assert_int_equal(qemu4v_event_read(QEMU4V_REG, 0, cut, n, &back, &line), -EBADMSG);
	}
	for (size_t i = 44; i < 52; i++) { /* where the texts are */
		event[i] ^= 0x55;
		assert_int_equal(qemu4v_event_read(QEMU4V_REG, 0, event, size, &back, &line),
				 -EBADMSG);
		event[i] ^= 0x55;
	}
	assert_int_equal(qemu4v_event_read(QEMU4V_REG, 0, event, size, &back, &line), 0);
}

static void test_large(void **state)
{
	_cleanup_free_ char *line = malloc(QEMU4V_MAX_LINE);
	const char *start = "1 clk R z0 ", *reason = "";
	struct qemu4v_record r;

	memset(line, '0', QEMU4V_MAX_LINE);
	memcpy(line, start, strlen(start));
	assert_int_equal(qemu4v_parse(line, QEMU4V_MAX_LINE, &r, &reason), -EBADMSG);
	assert_int_equal(qemu4v_parse(line, 5000, &r, &reason), 0);
	assert_int_equal(r.kind, QEMU4V_REG);
	assert_int_equal(qemu4v_event_size(&r), 0);
	assert_int_equal(qemu4v_parse(line, 3000, &r, &reason), 0);
	assert_true(qemu4v_event_size(&r) > 3000);
}

static void test_corpus(void **state)
{
	const char *path = SOURCE_DIR "/tests/fuzz/corpus/qemu4v";
	DIR *dir = opendir(path);
	unsigned n = 0;

	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		_cleanup_free_ char *bytes = NULL;
		size_t size;

		if (e->d_name[0] == '.')
			continue;
		assert_int_equal(io_read_file_at(dirfd(dir), e->d_name, &bytes, &size), 0);
		qemu4v_target((const uint8_t *)bytes, size);
		n++;
	}
	assert_true(n >= 2);
	(void)closedir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_insn),	  cmocka_unit_test(test_mem),
		cmocka_unit_test(test_reg),	  cmocka_unit_test(test_other),
		cmocka_unit_test(test_malformed), cmocka_unit_test(test_fixtures),
		cmocka_unit_test(test_grammar),	  cmocka_unit_test(test_bad_events),
		cmocka_unit_test(test_large),	  cmocka_unit_test(test_corpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
