/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CoreSight trace out of trees that are wrong, hostile, or only unusual; that a right one comes out
 * as it should is tests/integration/test-coresight.sh's.
 */
#include <setjmp.h> /* before cmocka.h */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/in-root.h"
#include "basic/io.h"
#include "basic/new-dir.h"
#include "basic/strv.h"
#include "recorder/coresight.h"
#include "tests/unit/tmp.h"

#define DEVICES "root/sys/bus/coresight/devices/"
#define FRAMES	"0123456789abcdef0123456789abcdef"

/* What the kernel says of a device that is in use cannot be had from a file */
static const char *busy;

int __real_in_root_open(int root_fd, const char *path, int flags);
int __wrap_in_root_open(int root_fd, const char *path, int flags);

int __wrap_in_root_open(int root_fd, const char *path, int flags)
{
	if (busy && strcmp(path, busy) == 0)
		return -EBUSY;
	return __real_in_root_open(root_fd, path, flags);
}

struct world {
	struct tmp tmp;
	struct fault why;
	char **notes;
	int result;
};

static void attribute(struct world *w, const char *device, const char *name, const char *value)
{
	char path[256];

	(void)snprintf(path, sizeof(path), DEVICES "%s/%s", device, name);
	tmp_write(&w->tmp, path, value);
}

static void connect_to(struct world *w, const char *from, const char *to)
{
	char path[256], target[256];

	(void)snprintf(path, sizeof(path), DEVICES "%s/connections", from);
	assert_true(mkdirat(w->tmp.fd, path, 0755) == 0 || errno == EEXIST);
	(void)snprintf(path, sizeof(path), DEVICES "%s/connections/out:0", from);
	(void)snprintf(target, sizeof(target), "../../%s", to);
	assert_int_equal(symlinkat(target, w->tmp.fd, path), 0);
}

static void etm(struct world *w, const char *name, const char *cpu)
{
	static const char *const registers[] = {
		"mgmt/trcconfig",  "mgmt/trcauthstatus", "trcidr/trcidr0",  "trcidr/trcidr1",
		"trcidr/trcidr2",  "trcidr/trcidr8",	 "trcidr/trcidr9",  "trcidr/trcidr10",
		"trcidr/trcidr11", "trcidr/trcidr12",	 "trcidr/trcidr13",
	};
	char id[16];

	for (size_t i = 0; i < ARRAY_SIZE(registers); i++)
		attribute(w, name, registers[i], "0x41\n");
	(void)snprintf(id, sizeof(id), "0x1%s\n", cpu);
	attribute(w, name, "mgmt/trctraceid", id);
	attribute(w, name, "enable_source", "1\n");
	attribute(w, name, "cpu", cpu);
}

/* etm0 -> funnel0 -> tmc_etf0, not enabled -> tmc_etr0; and round in a circle */
static void setup(struct world *w)
{
	*w = (struct world){};
	tmp_init(&w->tmp);
	etm(w, "etm0", "0");
	attribute(w, "funnel0", "x", "");
	attribute(w, "tmc_etf0", "enable_sink", "0\n");
	attribute(w, "tmc_etr0", "enable_sink", "1\n");
	connect_to(w, "etm0", "funnel0");
	connect_to(w, "funnel0", "tmc_etf0");
	connect_to(w, "tmc_etf0", "tmc_etr0");
	connect_to(w, "tmc_etr0", "funnel0");
	tmp_write(&w->tmp, "root/dev/tmc_etr0", FRAMES);
	assert_int_equal(mkdirat(w->tmp.fd, "out", 0755), 0);
}

static void collect_with(struct world *w, const struct coresight_memory *memory)
{
	_cleanup_close_ int root = openat(w->tmp.fd, "root", O_PATH | O_DIRECTORY);
	_cleanup_close_ int out = openat(w->tmp.fd, "out", O_RDONLY | O_DIRECTORY);

	assert_true(root >= 0 && out >= 0);
	w->result = coresight_collect(&(struct coresight_request){.root_fd = root,
								  .dir_fd = out,
								  .memory = memory,
								  .n_memory = memory != NULL},
				      &w->notes, &w->why);
}

static void collect(struct world *w)
{
	collect_with(w, NULL);
}

static void teardown(struct world *w)
{
	strv_free(w->notes);
	tmp_done(&w->tmp);
}

static bool noted(const struct world *w, const char *text)
{
	STRV_FOREACH (note, w->notes)
		if (strstr(*note, text))
			return true;
	STRV_FOREACH (note, w->notes)
		print_error("noted: %s\n", *note);
	return false;
}

static void assert_failed(const struct world *w, int error, const char *text)
{
	assert_int_equal(w->result, error);
	assert_int_equal(w->why.error, error);
	if (!strstr(w->why.text, text))
		fail_msg("not \"%s\" but \"%s\"", text, w->why.text);
}

static void assert_file(const struct world *w, const char *path, const char *expected)
{
	_cleanup_free_ char *text = NULL;

	assert_int_equal(io_read_file_at(w->tmp.fd, path, &text, NULL), 0);
	if (!strstr(text, expected))
		fail_msg("%s: no \"%s\" in \"%s\"", path, expected, text);
}

static void remove_file(struct world *w, const char *path)
{
	assert_int_equal(unlinkat(w->tmp.fd, path, 0), 0);
}

static void test_right(void **state)
{
	struct world w;

	setup(&w);
	collect(&w);
	assert_int_equal(w.result, 0);
	assert_file(&w, "out/tmc_etr0.bin", FRAMES);
	assert_file(&w, "out/trace.ini", "\netm0=tmc_etr0\n");
	assert_file(&w, "out/cpu_0.ini", "type=ARMv8-A");
	assert_true(noted(&w, "the kernel's text is left out: /proc/kallsyms: No such file"));
	teardown(&w);
}

/* Before Linux 5.9 the connections are not shown: with one sink there is nothing to choose */
static void test_no_connections(void **state)
{
	struct world w;

	setup(&w);
	assert_int_equal(remove_tree_at(w.tmp.fd, DEVICES "etm0/connections"), 0);
	collect(&w);
	assert_int_equal(w.result, 0);
	assert_file(&w, "out/trace.ini", "\netm0=tmc_etr0\n");
	teardown(&w);

	setup(&w); /* with two there is */
	attribute(&w, "tmc_etf0", "enable_sink", "1\n");
	assert_int_equal(remove_tree_at(w.tmp.fd, DEVICES "etm0/connections"), 0);
	collect(&w);
	assert_failed(&w, -ENODATA, "etm0 is left out: it leads to no sink that is enabled");
	teardown(&w);
}

static void test_none(void **state)
{
	struct world w;

	setup(&w);
	assert_int_equal(remove_tree_at(w.tmp.fd, "root/sys"), 0);
	collect(&w);
	assert_failed(&w, -ENODEV, "no CoreSight here: there is no /sys/bus/coresight/devices");
	teardown(&w);

	setup(&w);
	attribute(&w, "tmc_etr0", "enable_sink", "0\n");
	collect(&w);
	assert_failed(&w, -ENODATA, "no sink is enabled");
	teardown(&w);

	setup(&w);
	remove_file(&w, DEVICES "tmc_etr0/enable_sink");
	remove_file(&w, DEVICES "tmc_etf0/enable_sink");
	collect(&w);
	assert_failed(&w, -ENODEV, "no CoreSight sink in");
	teardown(&w);
}

static void test_sinks(void **state)
{
	struct world w;

	setup(&w);
	tmp_write(&w.tmp, "root/dev/tmc_etr0", "");
	collect(&w);
	assert_failed(&w, -ENODATA, "no CoreSight trace: tmc_etr0: empty");
	assert_int_equal(faccessat(w.tmp.fd, "out/tmc_etr0.bin", F_OK, 0), -1);
	teardown(&w);

	setup(&w);
	remove_file(&w, "root/dev/tmc_etr0");
	collect(&w);
	assert_failed(&w, -ENODATA, "tmc_etr0: it has no device to read from");
	teardown(&w);

	setup(&w); /* a FIFO hangs nobody */
	remove_file(&w, "root/dev/tmc_etr0");
	assert_int_equal(mkfifoat(w.tmp.fd, "root/dev/tmc_etr0", 0600), 0);
	collect(&w);
	assert_failed(&w, -ENODATA, "tmc_etr0: No such device");
	teardown(&w);

	setup(&w);
	busy = "/dev/tmc_etr0";
	collect(&w);
	busy = NULL;
	assert_failed(&w, -ENODATA, "tmc_etr0: busy: somebody else reads it");
	teardown(&w);

	setup(&w); /* one of two has nothing: the other one counts */
	attribute(&w, "tmc_etf0", "enable_sink", "1\n");
	etm(&w, "etm1", "1");
	connect_to(&w, "etm1", "tmc_etr0");
	collect(&w);
	assert_int_equal(w.result, 0);
	assert_true(noted(&w, "tmc_etf0: it has no device to read from"));
	assert_file(&w, "out/trace.ini", "[source_buffers]\netm1=tmc_etr0\n\n");
	teardown(&w);

	setup(&w); /* nothing leads to it */
	remove_file(&w, DEVICES "tmc_etf0/connections/out:0");
	collect(&w);
	assert_failed(&w, -ENODATA,
		      "etm0 is left out: it leads to no sink that is enabled; "
		      "tmc_etr0: no source leads to it");
	teardown(&w);
}

static void test_registers(void **state)
{
	struct world w;

	setup(&w);
	remove_file(&w, DEVICES "etm0/trcidr/trcidr2");
	collect(&w);
	assert_failed(&w, -ENODATA, "etm0 is left out: trcidr/trcidr2: No such file");
	teardown(&w);

	setup(&w);
	attribute(&w, "etm0", "mgmt/trcconfig", "0x123456789\n");
	collect(&w);
	assert_failed(&w, -ENODATA, "etm0 is left out: mgmt/trcconfig: ");
	teardown(&w);

	setup(&w);
	attribute(&w, "etm0", "mgmt/trcconfig", "-1\n");
	collect(&w);
	assert_failed(&w, -ENODATA, "etm0 is left out: mgmt/trcconfig: Invalid");
	teardown(&w);

	setup(&w);
	attribute(&w, "etm0", "cpu", "-5\n");
	collect(&w);
	assert_failed(&w, -ENODATA, "etm0 is left out: cpu: ");
	teardown(&w);
}

static void test_offline(void **state)
{
	struct world w;

	setup(&w);
	etm(&w, "etm1", "1");
	connect_to(&w, "etm1", "funnel0");
	attribute(&w, "etm1", "trcidr/trcidr1", "0x0\n");
	collect(&w);
	assert_int_equal(w.result, 0);
	assert_true(noted(&w, "etm1 is left out: its registers read as 0: its CPU is offline"));
	assert_file(&w, "out/trace.ini", "[core_trace_sources]\ncpu_0=etm0\n");
	teardown(&w);
}

/* What the registers and directories tell of sources, whatever they are called */
static void test_kinds(void **state)
{
	struct world w;

	setup(&w);
	attribute(&w, "etm0", "mgmt/trcdevarch", "0x47715a13\n"); /* an ETE */
	attribute(&w, "20010000.ptm", "enable_source", "1\n");
	attribute(&w, "20010000.ptm", "cpu", "3\n");
	attribute(&w, "20010000.ptm", "mgmt/etmcr", "0x10001000\n");
	attribute(&w, "20010000.ptm", "mgmt/etmidr", "0x411cf312\n");
	attribute(&w, "20010000.ptm", "mgmt/etmccer", "0x34c01ac2\n");
	attribute(&w, "20010000.ptm", "mgmt/etmtraceidr", "0x13\n");
	attribute(&w, "stm0", "enable_source", "1\n");
	attribute(&w, "stm0", "traceid", "0x20\n"); /* no mgmt/tcsr */
	attribute(&w, "other0", "enable_source", "1\n");
	connect_to(&w, "20010000.ptm", "funnel0");
	connect_to(&w, "stm0", "funnel0");
	tmp_write(
		&w.tmp, "root/proc/cpuinfo",
		"processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd07\n"
		"\nprocessor\t: 3\nCPU implementer\t: 0x41\nCPU architecture: 7\n"
		"CPU part\t: 0xfff\n\n");
	collect(&w);
	assert_int_equal(w.result, 0);
	assert_file(&w, "out/etm0.ini", "type=ETE\n");
	assert_file(&w, "out/etm0.ini", "TRCDEVARCH(0x3EF)=0x47715A13\n");
	assert_file(&w, "out/20010000.ptm.ini", "type=PFT1.1\n");
	assert_file(&w, "out/stm0.ini", "STMTCSR(0x3A0)=0x00200000\n");
	assert_file(&w, "out/cpu_0.ini", "type=Cortex-A57\n");
	assert_file(&w, "out/cpu_3.ini", "type=ARMv7-A\n");
	assert_true(noted(&w, "other0 is left out: not an ETM, PTM, ETE or STM"));
	teardown(&w);
}

static void test_hostile(void **state)
{
	struct world w;
	char *secret;

	setup(&w); /* links lead nowhere but below the root */
	tmp_write(&w.tmp, "secret", FRAMES);
	assert_true(asprintf(&secret, "%s/secret", w.tmp.path) > 0);
	remove_file(&w, "root/dev/tmc_etr0");
	assert_int_equal(symlinkat(secret, w.tmp.fd, "root/dev/tmc_etr0"), 0);
	collect(&w);
	assert_failed(&w, -ENODATA, "tmc_etr0: it has no device");
	strv_free(w.notes);
	remove_file(&w, "root/dev/tmc_etr0");
	assert_int_equal(symlinkat("../../secret", w.tmp.fd, "root/dev/tmc_etr0"), 0);
	collect(&w);
	assert_failed(&w, -ENODATA, "tmc_etr0: it has no device");
	strv_free(w.notes);
	remove_file(&w, "root/dev/tmc_etr0");
	tmp_write(&w.tmp, "root/trace", FRAMES);
	assert_int_equal(symlinkat("/trace", w.tmp.fd, "root/dev/tmc_etr0"), 0);
	collect(&w); /* an absolute one is the root's */
	assert_int_equal(w.result, 0);
	free(secret);
	teardown(&w);

	setup(&w); /* names that would be something else in a text file */
	attribute(&w, "x]\n[y", "enable_sink", "1\n");
	attribute(&w, "a=b", "enable_source", "1\n");
	etm(&w, "-", "2");
	collect(&w);
	assert_int_equal(w.result, 0);
	assert_file(&w, "out/snapshot.ini", "device0=cpu_0.ini\ndevice1=etm0.ini\n\n");
	teardown(&w);

	setup(&w); /* a text without end */
	remove_file(&w, DEVICES "etm0/mgmt/trcconfig");
	assert_int_equal(symlinkat("../big", w.tmp.fd, DEVICES "etm0/mgmt/trcconfig"), 0);
	attribute(&w, "etm0", "big", "");
	assert_int_equal(truncate(strcat(strcpy((char[256]){}, w.tmp.path), "/" DEVICES "etm0/big"),
				  1 << 20),
			 0);
	collect(&w);
	assert_failed(&w, -ENODATA, "etm0 is left out: mgmt/trcconfig: File too large");
	teardown(&w);

	setup(&w); /* what is there already is not ours: nothing is written over */
	tmp_write(&w.tmp, "out/tmc_etr0.bin", "mine");
	collect(&w);
	assert_failed(&w, -EEXIST, "tmc_etr0.bin: cannot create");
	assert_file(&w, "out/tmc_etr0.bin", "mine");
	teardown(&w);
}

static void test_memory(void **state)
{
	struct coresight_memory memory = {.address = 0x400000, .name = "program"};
	struct world w;

	setup(&w);
	tmp_write(&w.tmp, "program", "text of a program");
	memory.fd = openat(w.tmp.fd, "program", O_RDONLY);
	collect_with(&w, &memory);
	assert_int_equal(w.result, 0);
	assert_file(&w, "out/memory1.bin", "text of a program");
	assert_file(&w, "out/cpu_0.ini",
		    "[dump1]\nfile=memory1.bin\naddress=0x400000\nlength=0x11\n");
	close(memory.fd);
	teardown(&w);

	setup(&w);
	tmp_write(&w.tmp, "program", "");
	memory.fd = openat(w.tmp.fd, "program", O_RDONLY);
	collect_with(&w, &memory);
	assert_failed(&w, -ENODATA, "program: is empty");
	close(memory.fd);
	teardown(&w);

	setup(&w);
	tmp_write(&w.tmp, "program", "text");
	memory.address = UINT64_MAX - 2;
	memory.fd = openat(w.tmp.fd, "program", O_RDONLY);
	collect_with(&w, &memory);
	assert_failed(&w, -ERANGE, "program: reaches beyond the last address");
	close(memory.fd);
	teardown(&w);
}

/* /proc/kcore: what is no ELF core file with that memory is left out, not believed */
static void test_kcore(void **state)
{
	static const struct {
		const char *kallsyms, *kcore, *note;
	} cases[] = {
		{"0000000000000000 T _stext\n0000000000000000 T _etext\n", "", "no addresses of"},
		{"1000 T _stext\n0800 T _etext\n", "", "no addresses of"},
		{"", "", "no addresses of"},
		{"garbage\n1000 T _stext\n2000 T _etext\n", "", "/proc/kcore: No data"},
		{"1000 T _stext\n2000 T _etext\n",
		 "not an ELF file, but long enough to be one: 0123456789",
		 "/proc/kcore: Exec format"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct world w;

		setup(&w);
		tmp_write(&w.tmp, "root/proc/kallsyms", cases[i].kallsyms);
		tmp_write(&w.tmp, "root/proc/kcore", cases[i].kcore);
		collect(&w);
		assert_int_equal(w.result, 0);
		assert_true(noted(&w, cases[i].note));
		assert_int_equal(faccessat(w.tmp.fd, "out/kernel.bin", F_OK, 0), -1);
		teardown(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),	  cmocka_unit_test(test_no_connections),
		cmocka_unit_test(test_none),	  cmocka_unit_test(test_sinks),
		cmocka_unit_test(test_registers), cmocka_unit_test(test_offline),
		cmocka_unit_test(test_kinds),	  cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_memory),	  cmocka_unit_test(test_kcore),
	};
	_cleanup_close_ int fd = in_root_open(AT_FDCWD, ".", O_PATH);

	if (fd == -ENOSYS) {
		(void)fprintf(stderr, "SKIP: no openat2() here\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
