/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text files of Arm snapshots: read, checked, written. Each fault is made in a copy of
 * tests/fixtures/arm-snapshot, which is right.
 */
#include <setjmp.h> /* before cmocka.h */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "convert/arm/arm-check.h"
#include "formats/arm-ini.h"
#include "formats/arm-snapshot.h"

/* --- files in memory */

#define FILES_MAX 16

struct memory_file {
	char name[32];
	char *data;
	size_t size;
};

struct memory {
	struct memory_file files[FILES_MAX];
	size_t n;
	char **faults;
};

static struct memory_file *find(struct memory *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->files[i].name, name) == 0)
			return &m->files[i];
	return NULL;
}

static int memory_read(void *userdata, const char *name, char **ret_data, size_t *ret_size)
{
	struct memory_file *f = find(userdata, name);

	if (!f)
		return -ENOENT;
	*ret_data = malloc(f->size + 1);
	memcpy(*ret_data, f->data, f->size);
	*ret_size = f->size;
	return 0;
}

static int memory_size(void *userdata, const char *name, uint64_t *ret)
{
	struct memory_file *f = find(userdata, name);

	if (!f)
		return -ENOENT;
	*ret = f->size;
	return 0;
}

static void add(struct memory *m, const char *name, const char *data, size_t size)
{
	struct memory_file *f = &m->files[m->n++];

	assert_true(m->n <= FILES_MAX);
	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	f->data = malloc(size + 1);
	memcpy(f->data, data, size);
	f->size = size;
}

static void load(struct memory *m)
{
	static const char *const names[] = {
		"snapshot.ini", "cpu_0.ini", "cpu_1.ini", "ETM_0.ini", "ETM_1.ini",
		"STM_0.ini",	"trace.ini", "cores.bin", "stm.bin",   "kernel_dump.bin"};
	_cleanup_close_ int fd =
		open(SOURCE_DIR "/tests/fixtures/arm-snapshot", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*m = (struct memory){};
	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_free_ char *data = NULL;
		size_t size;

		assert_int_equal(io_read_file_at(fd, names[i], &data, &size), 0);
		add(m, names[i], data, size);
	}
}

static void unload(struct memory *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->files[i].data);
	strv_free(m->faults);
}

static void on_fault(void *userdata, const char *file, unsigned line, const char *text)
{
	struct memory *m = userdata;
	char all[512];

	(void)snprintf(all, sizeof(all), "%s:%u: %s", file, line, text);
	assert_int_equal(strv_append(&m->faults, all), 0);
}

static unsigned check(struct memory *m)
{
	const struct arm_files files = {memory_read, memory_size, m};
	unsigned version;

	assert_int_equal(arm_check(&files, on_fault, m, &version), 0);
	return version;
}

/* --- each fault is named, with file and line, and nothing else */

struct change {
	const char *file, *from, *to; /* from NULL: the file is not there; "": all of it */
	const char *fault;	      /* the first one */
	unsigned n;		      /* faults in all; 0: one */
};

/* clang-format off */
static const struct change changes[] = {
	/* the list of what OpenCSD passes over */
	{ "snapshot.ini", "version=1.0\n", "version=1.0\r\n",
	  "snapshot.ini:2: the line ends in CR LF, which readers do not take" },
	{ "snapshot.ini", "version=1.0", "version=2.0", "snapshot.ini:2: version 2.0: only 1.0 is known" },
	{ "trace.ini", "[core_trace_sources]", "[core trace sources]",
	  "trace.ini:19: section [core trace sources]: readers look for [core_trace_sources]", 2 },
	{ "trace.ini", "[source_buffers]", "[Source_Buffers]",
	  "trace.ini:14: section [Source_Buffers]: readers look for [source_buffers]", 2 },
	{ "trace.ini", "ETM_1=ETB_0", "ETM_1=ETB_0,ETB_1",
	  "trace.ini:16: a list of buffers: readers take one" },
	{ "trace.ini", "file=cores.bin", "file=cores.bin,stm.bin",
	  "trace.ini:6: a list of files: readers take one, join them" },
	{ "cores.bin", NULL, NULL, "trace.ini:6: file cores.bin: No such file or directory" },
	{ "cores.bin", "", "", "trace.ini:6: file cores.bin is empty" },
	{ "cores.bin", "", "0123456789", "trace.ini:7: 10 bytes are no whole number of 16-byte frames" },
	{ "ETM_1.ini", NULL, NULL, "snapshot.ini:9: file ETM_1.ini cannot be read", 3 },
	{ "ETM_1.ini", "TRCIDR0(0x078)=0x28000EA1\n", "", "ETM_1.ini:6: no TRCIDR0, which ETM4 needs" },
	{ "ETM_1.ini", "type=ETM4", "type=ETM9", "ETM_1.ini:4: unknown type of a trace source: ETM9" },
	{ "cpu_0.ini", "type=Cortex-A53", "type=Cortex-Z1",
	  "cpu_0.ini:4: unknown type of a core: Cortex-Z1; readers know ARMv8-A, too" },
	{ "trace.ini", "[source_buffers]\nETM_0=ETB_0\nETM_1=ETB_0\nSTM_0=ETB_1\n", "",
	  "trace.ini:0: no [source_buffers] section, without which readers decode nothing" },
	/* snapshot.ini */
	{ "snapshot.ini", NULL, NULL, "snapshot.ini:0: cannot be read" },
	{ "snapshot.ini", "[snapshot]\n", "", "snapshot.ini:1: a key before the first [section]", 3 },
	{ "snapshot.ini", "version=1.0\n", "", "snapshot.ini:1: [snapshot] without version=" },
	{ "snapshot.ini", "version=1.0", "version 1.0", "snapshot.ini:2: missing '='", 2 },
	{ "snapshot.ini", "version=1.0", "version=1.0\n[oops", "snapshot.ini:3: a section header must end in ']'" },
	{ "snapshot.ini", "version=1.0", "version=1.0\n[]", "snapshot.ini:3: a section without a name" },
	{ "snapshot.ini", "version=1.0", "version=1.0\n=1", "snapshot.ini:3: missing key before '='" },
	{ "snapshot.ini", "two cores", "two\001cores", "snapshot.ini:3: a control character: this is not a text file" },
	{ "snapshot.ini", "[device_list]", "[devices]", "snapshot.ini:0: no [device_list] section", 8 },
	{ "snapshot.ini", "device1=", "device0=", "snapshot.ini:7: device0 is in [device_list] already, in line 6" },
	{ "snapshot.ini", "cpu_1.ini", "cpu_0.ini", "snapshot.ini:7: cpu_0.ini is in [device_list] twice", 3 },
	{ "snapshot.ini", "[trace]\nmetadata=trace.ini\n", "", "snapshot.ini:0: no [trace] section, but sources of trace" },
	{ "snapshot.ini", "metadata=", "meta=", "snapshot.ini:12: [trace] without metadata=" },
	{ "snapshot.ini", "metadata=trace.ini", "metadata=none.ini", "snapshot.ini:13: file none.ini cannot be read" },
	{ "snapshot.ini", "[trace]", "[clusters]\nbig=cpu_0, cpu_7\n[trace]",
	  "snapshot.ini:13: no device has the name \"cpu_7\"" },
	{ "snapshot.ini", "[trace]", "[ftrace]\nfile=trace.dat\n[trace]",
	  "snapshot.ini:13: file trace.dat: No such file or directory" },
	/* devices */
	{ "cpu_1.ini", "[device]", "[core]", "cpu_1.ini:0: no [device] section", 2 },
	{ "cpu_1.ini", "name=cpu_1\n", "", "cpu_1.ini:1: [device] without name=", 2 },
	{ "cpu_1.ini", "name=cpu_1", "name=cpu_0", "cpu_1.ini:2: cpu_0.ini has the name \"cpu_0\" too", 2 },
	{ "cpu_1.ini", "class=core\n", "", "cpu_1.ini:1: [device] without class=", 2 },
	{ "cpu_1.ini", "type=Cortex-A57\n", "", "cpu_1.ini:1: [device] without type=" },
	{ "cpu_1.ini", "SP(size:64)=0", "SP(size:64)=x", "cpu_1.ini:8: register SP(size:64): \"x\" is no number" },
	{ "cpu_1.ini", "SP(size:64)", "SP(size=64)", "cpu_1.ini:8: register SP(size: (ID) or (id:ID,size:BITS) is wanted" },
	{ "cpu_1.ini", "PC(size:64)", "PC", "cpu_1.ini:7: register PC: more than 32 bits in 0xFFFFFFC000081000" },
	{ "cpu_1.ini", "file=kernel_dump.bin", "file=none.bin", "cpu_1.ini:11: file none.bin: No such file or directory" },
	{ "cpu_1.ini", "length=0x100", "length=0x101", "cpu_1.ini:13: kernel_dump.bin has only 0x100 bytes" },
	{ "cpu_1.ini", "length=0x100", "offset=0x101", "cpu_1.ini:13: kernel_dump.bin has only 0x100 bytes" },
	{ "cpu_1.ini", "length=0x100", "size=0x100", "cpu_1.ini:13: unknown key size, which readers refuse in [dump]" },
	{ "cpu_1.ini", "address=0xFFFFFFC000081000\n", "", "cpu_1.ini:10: [dump1] without address=" },
	{ "cpu_1.ini", "address=0x", "address=x", "cpu_1.ini:12: address: \"xFFFFFFC000081000\" is no number" },
	{ "STM_0.ini", "STMTCSR(0x3A0)=0x00A00007\n", "", "STM_0.ini:6: no STMTCSR, which STM needs" },
	{ "ETM_1.ini", "=0x00000011", "=0x00000010", "ETM_1.ini:2: ETM_1 has the trace ID 0x10, as ETM_0" },
	/* trace.ini */
	{ "trace.ini", "buffers=buffer0,buffer1", "buffers=buffer0,buffer1,buffer2", "trace.ini:2: no section [buffer2]" },
	{ "trace.ini", "buffers=buffer0,buffer1\n", "", "trace.ini:1: [trace_buffers] without buffers=" },
	{ "trace.ini", "name=ETB_0\n", "", "trace.ini:4: [buffer0] without name=", 3 },
	{ "trace.ini", "file=cores.bin\n", "", "trace.ini:4: [buffer0] without file=" },
	{ "trace.ini", "format=coresight\n", "", "trace.ini:4: [buffer0] without format=" },
	{ "trace.ini", "format=coresight", "format=raw", "trace.ini:7: unknown format raw: coresight and source_data are known" },
	{ "trace.ini", "STM_0=ETB_1", "STM_0=ETB_7", "trace.ini:17: no buffer has the name \"ETB_7\"" },
	{ "trace.ini", "STM_0=ETB_1\n", "", "STM_0.ini:2: STM_0 is not in [source_buffers] of trace.ini" },
	{ "trace.ini", "STM_0=ETB_1", "STM_1=ETB_1",
	  "trace.ini:17: no device with class=trace_source has the name \"STM_1\"", 2 },
	{ "trace.ini", "cpu_1=ETM_1\n", "", "ETM_1.ini:2: ETM_1 is no core's in [core_trace_sources] of trace.ini" },
	{ "trace.ini", "cpu_1=", "cpu_9=", "trace.ini:21: no device with class=core has the name \"cpu_9\"" },
	{ "trace.ini", "cpu_1=ETM_1", "cpu_1=cpu_1",
	  "trace.ini:21: no device with class=trace_source has the name \"cpu_1\"", 2 },
};

/* As right as before */
static const struct change fine[] = {
	{ "snapshot.ini", "version=1.0", "version = 1.0 ; the only one" },
	{ "snapshot.ini", "[trace]", "[clusters]\nbig=cpu_0, cpu_1\n[ftrace]\nfile=stm.bin\n[other one]\nx=1\n[trace]" },
	{ "snapshot.ini", "[trace]", "# [clusters]\n; x\n\n  \t\n[trace]" },
	{ "cpu_0.ini", "type=Cortex-A53", "type=ARMv8-A" },
	{ "cpu_0.ini", "type=Cortex-A53", "type=ARMv8.3-R" },
	{ "cpu_0.ini", "type=Cortex-A53", "type=ARM-AA64" },
	{ "cpu_0.ini", "SP(size:64)", "SP(0x21, size:64)" },
	{ "cpu_0.ini", "[dump1]", "[dump]" },
	{ "cpu_0.ini", "length=0x100", "length=0xF0\noffset=16\nspace=\"EL1N\"" },
	{ "ETM_0.ini", "type=ETM4", "type=ETM4.2" },
	{ "ETM_0.ini", "TRCAUTHSTATUS(0x3EE)=", "TRCAUTHSTATUS (id:0x3EE) = " },
	{ "STM_0.ini", "type=STM\n\n[regs]\nSTMTCSR(0x3A0)=0x00A00007", "type=ITM\n[regs]\nCONTROL_REGISTER=0x00210006" },
	{ "trace.ini", "ETM_0=ETB_0", "ETM_0(stream:0)=ETB_0" },
	{ "trace.ini", "buffers=buffer0,buffer1", "buffers=buffer0, buffer1" },
};
/* clang-format on */

static void make(struct memory *m, const struct change *change)
{
	struct memory_file *f;
	char *at, *text;

	load(m);
	f = find(m, change->file);
	assert_non_null(f);
	if (!change->from) {
		f->name[0] = '\0';
		return;
	}
	f->data[f->size] = '\0';
	at = *change->from ? strstr(f->data, change->from) : f->data;
	if (!at)
		fail_msg("%s has no \"%s\"", change->file, change->from);
	assert_true(asprintf(&text, "%.*s%s%s", (int)(at - f->data), f->data, change->to,
			     *change->from ? at + strlen(change->from) : "") >= 0);
	free(f->data);
	f->data = text;
	f->size = strlen(text);
}

static void test_right(void **state)
{
	struct memory m;

	load(&m);
	assert_int_equal(check(&m), 1);
	assert_null(m.faults);
	unload(&m);
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++) {
		make(&m, &fine[i]);
		assert_int_equal(check(&m), 1);
		if (m.faults)
			fail_msg("%s: %s", fine[i].to, m.faults[0]);
		unload(&m);
	}
}

static void test_faults(void **state)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		const struct change *change = &changes[i];
		struct memory m;
		bool found = false;

		make(&m, change);
		(void)check(&m);
		STRV_FOREACH (fault, m.faults)
			found |= strcmp(*fault, change->fault) == 0;
		if (!found || strv_length(m.faults) != (change->n ? change->n : 1)) {
			print_error("expected %u: %s\n", change->n ? change->n : 1, change->fault);
			STRV_FOREACH (fault, m.faults)
				print_error("\tfound: %s\n", *fault);
			wrong++;
		}
		unload(&m);
	}
	assert_int_equal(wrong, 0);
}

/* Cut at each place: no crash, and reading ends */
static void test_cut(void **state)
{
	static const char *const names[] = {"snapshot.ini", "cpu_0.ini", "ETM_0.ini", "trace.ini"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct memory m;
		struct memory_file *f;

		load(&m);
		f = find(&m, names[i]);
		for (; f->size > 0; f->size--) {
			/* to its exact size: what is read beyond is noticed by the sanitizers */
			char *exact = malloc(f->size);

			memcpy(exact, f->data, f->size);
			free(f->data);
			f->data = exact;
			(void)check(&m);
		}
		assert_non_null(m.faults);
		unload(&m);
	}
}

static void count_fault(void *userdata, unsigned line, const char *text)
{
	(*(unsigned *)userdata)++;
}

static void test_large(void **state)
{
	_cleanup_free_ char *text = malloc(ARM_INI_SIZE_MAX + 1);
	struct arm_ini ini;
	unsigned n = 0;

	memset(text, '\n', ARM_INI_SIZE_MAX + 1);
	assert_int_equal(arm_ini_read(text, ARM_INI_SIZE_MAX + 1, count_fault, &n, &ini), 0);
	arm_ini_done(&ini);
	assert_int_equal(n, 1);
	assert_int_equal(arm_ini_read(text, ARM_INI_SIZE_MAX, count_fault, &n, &ini), 0);
	arm_ini_done(&ini);
	assert_int_equal(n, 2);
}

/* --- writing */

static int take(void *userdata, const char *file, const char *text, size_t size)
{
	add(userdata, file, text, size);
	return 0;
}

static int refuse(void *userdata, const char *file, const char *text, size_t size)
{
	return -ENOSPC;
}

static struct arm_source make_source(char *name, const char *type, int cpu, char *buffer)
{
	struct arm_source source = {.name = name, .cpu = cpu, .buffer = buffer};

	(void)snprintf(source.type, sizeof(source.type), "%s", type);
	source.kind = arm_source_kind(type);
	for (const struct arm_register_fact *f = source.kind->registers; f->name; f++)
		source.registers[source.n_registers++] = (struct arm_register){
			.fact = f,
			.value = strcmp(f->name, "STMTCSR") == 0 ? 0x210000 : 0x10 + (uint32_t)cpu,
		};
	return source;
}

static void test_encode(void **state)
{
	char *e = (char *)"etm0", *t = (char *)"ete1", *p = (char *)"ptm2", *s = (char *)"stm0",
	     *b = (char *)"tmc_etf0", *c = (char *)"tmc_etr0", *file = (char *)"tmc.bin",
	     *dump = (char *)"kernel.bin";
	struct arm_core cores[] = {{0, "Cortex-A53"}, {1, "ARMv8-A"}, {2, "Cortex-A15"}};
	struct arm_source sources[] = {make_source(e, "ETM4.0", 0, b), make_source(t, "ETE", 1, b),
				       make_source(p, "PFT1.1", 2, b),
				       make_source(s, "STM", -1, c)};
	struct arm_buffer buffers[] = {{b, file}, {c, file}};
	struct arm_dump dumps[] = {{dump, 0xffffffc000081000, 0x10}, {dump, 0, 16}};
	const struct arm_snapshot snapshot = {
		.description = "all there is",
		.ftrace = "../x.dat",
		.cores = cores,
		.n_cores = ARRAY_SIZE(cores),
		.sources = sources,
		.n_sources = ARRAY_SIZE(sources),
		.buffers = buffers,
		.n_buffers = ARRAY_SIZE(buffers),
		.dumps = dumps,
		.n_dumps = ARRAY_SIZE(dumps),
	};
	struct memory m = {};

	assert_int_equal(arm_snapshot_encode(&snapshot, refuse, &m), -ENOSPC);
	assert_int_equal(arm_snapshot_encode(&snapshot, take, &m), 0);
	assert_string_equal(m.files[m.n - 1].name, "snapshot.ini");
	add(&m, "tmc.bin", "0123456789abcdef", 16);
	add(&m, "kernel.bin", "0123456789abcdef", 16);
	add(&m, "../x.dat", "x", 1);
	assert_int_equal(check(&m), 1);
	if (m.faults)
		fail_msg("%s", m.faults[0]);
	unload(&m);
}

/* @n lines of @left, a number, @right */
static char *lines_of(const char *before, const char *left, const char *right, unsigned n,
		      const char *after)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	(void)fputs(before, out);
	for (unsigned i = 0; i < n; i++)
		(void)fprintf(out, "%s%u%s\n", left, i, right);
	(void)fputs(after, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void replace(struct memory *m, const char *name, const char *text)
{
	struct memory_file *f = find(m, name);

	free(f->data);
	f->size = strlen(text);
	f->data = malloc(f->size + 1);
	memcpy(f->data, text, f->size);
}

/* The number of faults, and with it the time, has an end */
static void test_many_faults(void **state)
{
	_cleanup_free_ char *devices =
		lines_of("[snapshot]\nversion=1.0\n[device_list]\n", "device", "=ETM_0.ini", 4090,
			 "[trace]\nmetadata=trace.ini\n");
	_cleanup_free_ char *keys = lines_of("[snapshot]\nversion=1.0\n[device_list]\na=cpu_0.ini\n"
					     "[clusters]\n",
					     "c", "=x,x,x,x,x,x,x,x,x,x", 10000, "");
	const char *const texts[] = {devices, keys};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct memory m;

		load(&m);
		replace(&m, "snapshot.ini", texts[i]);
		(void)check(&m);
		assert_int_equal(strv_length(m.faults), 1001);
		assert_non_null(strstr(m.faults[1000], "too many faults"));
		unload(&m);
	}
}

/* A few names are enough for the text of gigabytes */
static void test_total(void **state)
{
	_cleanup_free_ char *devices = lines_of("[snapshot]\nversion=1.0\n[device_list]\n",
						"device", "=cpu_0.ini", 100, "");
	_cleanup_free_ char *large =
		lines_of("[device]\nclass=x\nname=x\n",
			 "; a comment of some fifty-odd characters, to have many ", "", 17000, "");
	struct memory m;
	bool said = false;

	load(&m);
	replace(&m, "snapshot.ini", devices);
	replace(&m, "cpu_0.ini", large);
	(void)check(&m);
	STRV_FOREACH (f, m.faults)
		said |= strstr(*f, "64 MiB") != NULL;
	assert_true(said);
	unload(&m);
}

static void test_core_type(void **state)
{
	assert_string_equal(arm_core_type(0x410fd034, false), "Cortex-A53");
	assert_string_equal(arm_core_type(0x412fc0f0, true), "Cortex-A15");
	assert_string_equal(arm_core_type(0x410fd410, false),
			    "ARMv8-A"); /* newer than OpenCSD 1.3 */
	assert_string_equal(arm_core_type(0x510fd034, false), "ARMv8-A"); /* not Arm's */
	assert_string_equal(arm_core_type(0, true), "ARMv7-A");
	assert_true(arm_core_known(arm_core_type(0, true)));
	assert_false(arm_core_known("ARMv6-A"));
	assert_false(arm_core_known("ARMv8-AR"));
	assert_false(arm_core_known("cortex"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),	    cmocka_unit_test(test_faults),
		cmocka_unit_test(test_cut),	    cmocka_unit_test(test_large),
		cmocka_unit_test(test_encode),	    cmocka_unit_test(test_core_type),
		cmocka_unit_test(test_many_faults), cmocka_unit_test(test_total),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
