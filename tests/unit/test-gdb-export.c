/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * export --format=gdb-tfile of files made here: registers of aarch64 and x86-64, memory at
 * registers, strings, names of variables, and no registers where one is missing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "basic/io.h"
#include "convert/gdb/export-gdb.h"
#include "convert/gdb/gdb-command.h"
#include "convert/gdb/gdb-tfile.h"
#include "formats/gdb-registers.h"
#include "tests/unit/event-file-add.h"

#define PROBE_IP UINT64_C(0xaaaab0001149)
#define STACK	 UINT64_C(0xffffee000100)

/* A trace.dat with one kind of event, built field by field */
struct made {
	char *fields;
	size_t fields_size;
	FILE *out;
	uint8_t record[2048];
	uint32_t size;
	const char *machine, *probes;
	unsigned n_events;
};

static void begin(struct made *m, const char *machine, const char *probes)
{
	*m = (struct made){.machine = machine, .probes = probes, .size = 8, .n_events = 1};
	m->out = open_memstream(&m->fields, &m->fields_size);
	assert_non_null(m->out);
	m->record[0] = 77; /* the id */
	m->record[4] = 42; /* the pid */
}

static void add_number(struct made *m, const char *type, const char *name, uint32_t size,
		       uint64_t value)
{
	(void)fprintf(m->out, "\tfield:%s %s;\toffset:%u;\tsize:%u;\tsigned:%d;\n", type, name,
		      m->size, size, *type == 's');
	memcpy(m->record + m->size, &value, size);
	m->size += size;
}

static void add_array(struct made *m, const char *name, uint32_t n, uint8_t first)
{
	(void)fprintf(m->out, "\tfield:u64 %s[];\toffset:%u;\tsize:%u;\tsigned:0;\n", name, m->size,
		      n);
	for (uint32_t i = 0; i < n; i++)
		m->record[m->size++] = (uint8_t)(first + i);
}

/* Behind all others: what the __data_loc means comes last */
static void add_string(struct made *m, const char *name, const char *text)
{
	const uint32_t n = (uint32_t)strlen(text) + 1, loc = n << 16 | (m->size + 4);

	(void)fprintf(m->out, "\tfield:__data_loc char[] %s;\toffset:%u;\tsize:4;\tsigned:1;\n",
		      name, m->size);
	memcpy(m->record + m->size, &loc, 4);
	memcpy(m->record + m->size + 4, text, n);
	m->size += 4 + n;
}

static void add_registers(struct made *m, enum gdb_arch arch, const char *without)
{
	size_t n;
	const struct gdb_general *general = gdb_general_registers(arch, &n);

	add_number(m, "unsigned long", "__probe_ip", 8, PROBE_IP);
	for (size_t i = 0; i < n; i++)
		if (general[i].kernel && strcmp(general[i].kernel, without) != 0)
			add_number(m, "u64", general[i].kernel, 8,
				   strcmp(general[i].kernel, "sp") == 0 ? STACK : 0x1000 + i);
}

static struct event_file *make(struct made *m)
{
	_cleanup_free_ char *format = NULL, *uname = NULL;
	struct sections_format list = {.system = "g"};
	struct event_file_params params = {.formats = &list, .n_formats = 1, .clock = "[mono]\n"};
	struct event_file *file;
	struct fault why = {};

	assert_int_equal(fclose(m->out), 0);
	assert_true(asprintf(&format,
			     "name: leaf\nID: 77\n" EVENT_FILE_HEAD_FORMAT
			     "%s\nprint fmt: \"(%%lx)\", REC->common_pid\n",
			     m->fields) > 0);
	assert_true(asprintf(&uname, "Linux host 6.1 %s", m->machine) > 0);
	list.text = format;
	params.uname = uname;
	if (event_file_new(&params, &file, &why) < 0)
		fail_msg("%s", why.text);
	for (unsigned i = 0; i < m->n_events; i++)
		assert_int_equal(event_file_add(file, 0, 5000 + i, m->record, m->size), 0);
	assert_int_equal(event_file_task(file, 42, "demo"), 0);
	if (m->probes)
		assert_int_equal(event_file_note(file, m->probes), 0);
	if (event_file_finish(file, NULL, &why) < 0)
		fail_msg("%s", why.text);
	free(m->fields);
	return file;
}

/* The exported file, taken apart up to its first frame */
struct exported {
	char *bytes, *command;
	size_t size, command_size;
	struct gdb_tfile *tfile;
	struct gdb_tfile_frame frame;
	const uint8_t *blocks;
};

static void done(struct exported *x)
{
	gdb_tfile_free(x->tfile);
	free(x->bytes);
	free(x->command);
}

static unsigned notices;

static void on_notice(const char *text)
{
	assert_non_null(strstr(text, "only the first"));
	notices++;
}

static void export(struct made *m, uint64_t max_frames, struct exported *ret)
{
	_cleanup_(event_file_freep) struct event_file *file = make(m);
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_(decoder_freep) struct decoder *decoder = NULL;
	_cleanup_close_ int fd = memfd_create("out", MFD_CLOEXEC);
	struct event_filter filter = {.to = UINT64_MAX};
	struct export_gdb_job job = {.filter = &filter,
				     .fd = fd,
				     .tfile = "out.tf",
				     .max_frames = max_frames,
				     .on_notice = on_notice};
	struct fault why = {};

	*ret = (struct exported){};
	job.command = open_memstream(&ret->command, &ret->command_size);
	if (trace_dat_open_fd(event_file_fd(file), "made", &dat, &why) < 0 ||
	    decoder_new(dat, &decoder, &why) < 0)
		fail_msg("%s", why.text);
	job.dat = dat;
	job.decoder = decoder;
	if (export_gdb_run(&job, &why) != 0)
		fail_msg("%s", why.text);
	assert_int_equal(job.n_faults, 0);
	(void)fclose(job.command);
	ret->size = (size_t)lseek(fd, 0, SEEK_END);
	ret->bytes = malloc(ret->size);
	assert_int_equal(io_pread_all(fd, ret->bytes, ret->size, 0), 0);
	if (gdb_tfile_parse(ret->bytes, ret->size, "out", NULL, &ret->tfile, &why) < 0)
		fail_msg("%s", why.text);
	ret->blocks = (uint8_t *)ret->bytes + ret->tfile->frames_at;
	assert_int_equal(gdb_tfile_frame(ret->blocks, ret->size - ret->tfile->frames_at, false, 0,
					 "out", &ret->frame, &why),
			 1);
	ret->blocks += GDB_TFILE_HEAD_SIZE;
}

/* The first block of a type; of 'V' with that variable, of 'M' that begins there */
static bool find(const struct exported *x, char type, uint64_t key, struct gdb_tfile_block *ret)
{
	struct fault why;
	uint32_t pos = 0;
	int r;

	while ((r = gdb_tfile_block(x->blocks, &x->frame, x->tfile->register_size, false, "out",
				    &pos, ret, &why)) > 0)
		if (ret->type == type && (type == 'R' || (type == 'V' && ret->number == key) ||
					  (type == 'M' && ret->address == key)))
			return true;
	assert_int_equal(r, 0);
	return false;
}

static int64_t value_of(const struct exported *x, const char *name)
{
	struct gdb_tfile_block block;

	for (size_t i = 0; i < x->tfile->n_variables; i++)
		if (strcmp(x->tfile->variables[i].name, name) == 0) {
			assert_true(find(x, 'V', x->tfile->variables[i].number, &block));
			return block.value;
		}
	fail_msg("no variable %s", name);
	return 0;
}

static bool has_variable(const struct exported *x, const char *name)
{
	for (size_t i = 0; i < x->tfile->n_variables; i++)
		if (strcmp(x->tfile->variables[i].name, name) == 0)
			return true;
	return false;
}

static void has_text(const struct exported *x, const char *variable, const char *text)
{
	struct gdb_tfile_block block;

	assert_true(find(x, 'M', (uint64_t)value_of(x, variable), &block));
	assert_true(block.size >= strlen(text) + 1);
	assert_string_equal((const char *)block.data, text);
}

static void test_aarch64(void **state)
{
	struct made m;
	struct exported x;
	struct gdb_tfile_block block;

	(void)state;
	begin(&m, "aarch64", NULL);
	add_registers(&m, GDB_AARCH64, "");
	add_array(&m, "mem_sp_0", 512, 1);
	add_array(&m, "mem_sp_512", 88, 2);
	add_number(&m, "s32", "pid", 4, (uint32_t)-7);
	add_number(&m, "u8", "flags", 1, 200);
	export(&m, 0, &x);
	assert_int_equal(x.tfile->register_size, 268);
	assert_non_null(strstr(x.tfile->tdesc, "<architecture>aarch64</architecture>"));
	assert_int_equal(x.tfile->n_tracepoints, 1);
	assert_true(x.tfile->tracepoints[0].address == PROBE_IP);
	assert_true(find(&x, 'R', 0, &block));
	for (size_t i = 0; i <= 30; i++)
		assert_true(gdb_tfile_get(block.data + 8 * i, 8, false) == 0x1000 + i);
	assert_true(gdb_tfile_get(block.data + 248, 8, false) == STACK);
	assert_true(gdb_tfile_get(block.data + 256, 8, false) == PROBE_IP);
	assert_true(gdb_tfile_get(block.data + 264, 4, false) == 0x1000 + 33);
	/* one piece of memory, of two arrays */
	assert_true(find(&x, 'M', STACK, &block));
	assert_int_equal(block.size, 600);
	assert_int_equal(block.data[511], 0);
	assert_int_equal(block.data[512], 2);
	assert_int_equal(value_of(&x, "pid"), 42);
	assert_int_equal(value_of(&x, "pid_"), -7);
	assert_int_equal(value_of(&x, "flags"), 200); /* no name of aarch64's */
	assert_int_equal(value_of(&x, "ts"), 5000);
	assert_int_equal(value_of(&x, "lost"), 0);
	assert_false(has_variable(&x, "x0"));
	has_text(&x, "comm", "demo");
	assert_non_null(strstr(x.command, "does not tell which program"));
	assert_non_null(strstr(x.command, "\ntarget tfile out.tf\n"));
	done(&x);
}

static void test_missing_register(void **state)
{
	struct made m;
	struct exported x;
	struct gdb_tfile_block block;

	(void)state;
	begin(&m, "x86_64", NULL);
	add_registers(&m, GDB_X86_64, "r13");
	add_array(&m, "mem_sp_0", 16, 1);
	export(&m, 0, &x);
	assert_int_equal(x.tfile->register_size, 164);
	assert_false(find(&x, 'R', 0, &block));
	assert_true(find(&x, 'M', STACK, &block)); /* that is still known */
	done(&x);
	/* flags and segments may be missing */
	begin(&m, "x86_64", NULL);
	add_registers(&m, GDB_X86_64, "flags");
	export(&m, 0, &x);
	assert_true(find(&x, 'R', 0, &block));
	assert_true(gdb_tfile_get(block.data + 136, 4, false) == 0);
	assert_true(gdb_tfile_get(block.data + 56, 8, false) == STACK);
	done(&x);
}

static void test_definitions(void **state)
{
	struct made m;
	struct exported x;
	struct gdb_tfile_block block;

	(void)state;
	begin(&m, "x86_64",
	      "Probes:\np:g/leaf /not/there\"x:0x149 di=%di:x64 obj=+8(%di):x64[2] id=-4(%di):s32 "
	      "other=+0(%si):x64[1] sp=%di:u32 name=+24(%di):string\n");
	add_number(&m, "unsigned long", "__probe_ip", 8, PROBE_IP);
	add_number(&m, "u64", "di", 8, 0x5000);
	add_array(&m, "obj", 16, 7);
	add_number(&m, "s32", "id", 4, (uint32_t)-3);
	add_array(&m, "other", 8, 9);
	add_number(&m, "u32", "sp", 4, 5); /* cut, and another register: a number */
	add_string(&m, "name", "bravo");
	export(&m, 0, &x);
	assert_false(find(&x, 'R', 0, &block));
	assert_true(find(&x, 'M', 0x5008, &block));
	assert_true(block.size == 16 && block.data[0] == 7);
	assert_int_equal(value_of(&x, "obj"), 0x5008);
	assert_true(find(&x, 'M', 0x4ffc, &block));
	assert_int_equal(block.size, 4);
	assert_int_equal(value_of(&x, "id"), -3);
	/* %si was not recorded */
	assert_true(value_of(&x, "other") >= INT64_C(0x0010000000000000));
	assert_true(find(&x, 'M', (uint64_t)value_of(&x, "other"), &block));
	assert_int_equal(block.data[0], 9);
	assert_int_equal(value_of(&x, "sp_"), 5);
	assert_int_equal(value_of(&x, "name"), 0x5018);
	has_text(&x, "name", "bravo");
	assert_non_null(strstr(x.command, "the base is a guess"));
	assert_non_null(strstr(x.command, "symbol-file -o 0xaaaab0001000 \"/not/there\\\"x\"\n"));
	done(&x);
}

static void test_max_frames(void **state)
{
	static const struct {
		uint64_t most;
		unsigned frames, notices;
	} cases[] = {{0, 5, 0}, {3, 3, 1}, {5, 5, 0}, {9, 5, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made m;
		struct exported x;
		struct fault why;
		uint64_t at;
		unsigned n = 0;

		notices = 0;
		begin(&m, "x86_64", NULL);
		add_number(&m, "u32", "n", 4, 1);
		m.n_events = 5;
		export(&m, cases[i].most, &x);
		at = x.tfile->frames_at;
		while (gdb_tfile_frame((uint8_t *)x.bytes + at, x.size - at, false, at, "x",
				       &x.frame, &why) > 0) {
			at += GDB_TFILE_HEAD_SIZE + x.frame.size;
			n++;
		}
		assert_int_equal(n, cases[i].frames);
		assert_int_equal(notices, cases[i].notices);
		assert_int_equal(x.size - at, 4);		    /* the end */
		assert_true(x.tfile->tracepoints[0].address == 77); /* the id */
		done(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aarch64),
		cmocka_unit_test(test_missing_register),
		cmocka_unit_test(test_definitions),
		cmocka_unit_test(test_max_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
