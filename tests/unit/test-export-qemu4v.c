/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* export --format=qemu4v of mmiotrace events, which need hardware and a kernel option to record */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/io.h"
#include "convert/convert.h"
#include "decode/event-filter.h"
#include "tests/unit/event-file-add.h"
#include "tests/unit/tmp.h"

#define ID 7

/* Of Linux 6.18, x86-64 */
static const char rw_format[] =
	"name: mmiotrace_rw\nID: 7\n" EVENT_FILE_HEAD_FORMAT
	"\tfield:resource_size_t phys;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned long value;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:unsigned long pc;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:int map_id;\toffset:32;\tsize:4;\tsigned:1;\n"
	"\tfield:unsigned char opcode;\toffset:36;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char width;\toffset:37;\tsize:1;\tsigned:0;\n\n"
	"print fmt: \"%lx %lx %lx %d %x %x\", (unsigned long)REC->phys, REC->value, REC->pc, "
	"REC->map_id, REC->opcode, REC->width\n";

struct rw {
	struct event_file_head head;
	uint64_t phys, value, pc;
	int32_t map_id;
	uint8_t opcode, width;
	uint16_t unused;
};

static const struct {
	unsigned cpu;
	uint64_t ts;
	struct rw event;
} events[] = {
	{1, 1000, {{ID, 0, 0, 1}, 0xfeb00010, 0xdeadbeef, 0, 0, 1, 4, 0}},
	{0, 1500, {{ID, 0, 0, 1}, 0xfeb00014, 0x1, 0, 0, 2, 1, 0}},
	{0, 1600, {{ID, 0, 0, 1}, 0xfeb00014, 0x1, 0, 0, 5, 1, 0}}, /* unknown operation */
	{1, 2000, {{ID, 0, 0, 1}, 0x380000000000, 0x0123456789abcdef, 0, 0, 2, 8, 0}},
};

static const char lines[] = "1000 ns MR4 feb00010 deadbeef\n"
			    "1500 ns MW1 feb00014 01\n"
			    "2000 ns MW8 0000380000000000 0123456789abcdef\n";

static void make_file(const char *path, const char *system, const char *format, size_t n)
{
	const struct sections_format formats[] = {{system, format}};
	const struct event_file_params params = {
		.path = path,
		.mode = 0600,
		.formats = formats,
		.n_formats = 1,
		.clock = "[local]\n",
		.uname = "test",
	};
	_cleanup_(event_file_freep) struct event_file *file = NULL;
	struct fault why;

	assert_int_equal(event_file_new(&params, &file, &why), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(event_file_add(file, events[i].cpu, events[i].ts, &events[i].event,
						sizeof(events[i].event)),
				 0);
	assert_int_equal(event_file_finish(file, NULL, &why), 0);
}

static enum convert_status export_to(const char *from, const char *to)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_(decoder_freep) struct decoder *decoder = NULL;
	const struct convert_options options = {};
	struct event_filter filter = {};
	struct fault why;

	if (trace_dat_open(from, &dat, &why) < 0 || decoder_new(dat, &decoder, &why) < 0 ||
	    event_filter_prepare(&filter, decoder, &why) < 0)
		fail_msg("%s", why.text);
	return export_qemu4v(&(struct export){
		.options = &options,
		.path = to,
		.dat = dat,
		.decoder = decoder,
		.filter = &filter,
	});
}

static void test_mmiotrace(void **state)
{
	_cleanup_free_ char *from = NULL, *to = NULL, *text = NULL;
	struct tmp tmp;

	tmp_init(&tmp);
	assert_true(asprintf(&from, "%s/f.dat", tmp.path) > 0);
	assert_true(asprintf(&to, "%s/f.txt", tmp.path) > 0);
	make_file(from, "ftrace", rw_format, ARRAY_SIZE(events));
	assert_int_equal(export_to(from, to), CONVERT_DONE);
	assert_int_equal(io_read_file_at(AT_FDCWD, to, &text, NULL), 0);
	assert_string_equal(text, lines);
	tmp_done(&tmp);
}

/* No such events; a format that is not what it should be */
static void test_refused(void **state)
{
	static const struct {
		const char *system, *format;
		size_t n;
	} files[] = {
		{"ftrace", rw_format, 0},
		{"other", rw_format, 1},
		{"qemu4v", rw_format, 1},
		{"ftrace", "name: mmiotrace_rw\nID: 7\n" EVENT_FILE_HEAD_FORMAT
			   "\tfield:u64 phys;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n"},
	};
	_cleanup_free_ char *from = NULL, *to = NULL;
	struct tmp tmp;
	struct stat st;

	tmp_init(&tmp);
	assert_true(asprintf(&from, "%s/f.dat", tmp.path) > 0);
	assert_true(asprintf(&to, "%s/f.txt", tmp.path) > 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		make_file(from, files[i].system, files[i].format, files[i].n);
		assert_int_equal(export_to(from, to), CONVERT_FAILED);
		assert_int_equal(stat(to, &st), -1);
	}
	tmp_done(&tmp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mmiotrace),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
