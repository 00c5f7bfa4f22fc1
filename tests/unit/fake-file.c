/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/io.h"
#include "ctl/verify.h"
#include "tests/unit/craft.h"
#include "tests/unit/fake-file.h"

const char *fake_kallsyms, *fake_modules;

int __real_io_read_file_at(int dir_fd, const char *path, char **ret_data, size_t *ret_size);
int __wrap_io_read_file_at(int dir_fd, const char *path, char **ret_data, size_t *ret_size);

int __wrap_io_read_file_at(int dir_fd, const char *path, char **ret_data, size_t *ret_size)
{
	const char *text;

	if (strcmp(path, "/proc/kallsyms") == 0)
		text = fake_kallsyms;
	else if (strcmp(path, "/proc/modules") == 0)
		text = fake_modules;
	else
		return __real_io_read_file_at(dir_fd, path, ret_data, ret_size);
	if (!text)
		return -ENOENT;
	*ret_data = strdup(text);
	assert_non_null(*ret_data);
	if (ret_size)
		*ret_size = strlen(text);
	return 0;
}

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

static const char hello[] = "name: hello\nID: 42\n" CRAFT_COMMON_FIELDS
			    "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
			    "\tfield:int b;\toffset:12;\tsize:4;\tsigned:1;\n\n"
			    "print fmt: \"a=%d b=%d\", REC->a, REC->b\n";

static const char print[] = "name: print\nID: 5\n" CRAFT_COMMON_FIELDS
			    "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
			    "\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n\n"
			    "print fmt: \"%ps: %s\", (void *)REC->ip, REC->buf\n";

static char *const systems[] = {(char *)"demo", (char *)"gone", (char *)"empty", NULL};

void fake_init(struct fake *f, unsigned n_cpus)
{
	memset(f, 0, sizeof(*f));
	fake_kallsyms = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\n";
	fake_modules = "demo 16384 0 - Live 0x0000000000000000\n";
	tmp_init(&f->tmp);
	tmp_write(&f->tmp, "dir/keep", "");
	tmp_write(&f->tmp, "tracing/events/header_page", "not this one\n");
	tmp_write(&f->tmp, "tracing/events/header_event", "# compressed entry header\n");
	tmp_write(&f->tmp, "tracing/events/ftrace/print/format", print);
	tmp_write(&f->tmp, "tracing/events/ftrace/enable", "0\n");
	tmp_write(&f->tmp, "tracing/events/demo/hello/format", hello);
	tmp_write(&f->tmp, "tracing/events/demo/hello/enable", "1\n");
	tmp_write(&f->tmp, "tracing/events/demo/no-event/enable", "1\n");
	tmp_write(&f->tmp, "tracing/events/demo/filter", "none\n");
	tmp_write(&f->tmp, "tracing/events/empty/enable", "0\n");
	tmp_write(&f->tmp, "tracing/printk_formats", "0xffffffff82000000 : \"hello %d\\n\"\n");
	tmp_write(&f->tmp, "tracing/instances/t/events/header_page", header_page);
	f->tracing_fd = openat(f->tmp.fd, "tracing", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->dir_fd = openat(f->tmp.fd, "dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->symbols = symbols_new();
	assert_true(f->tracing_fd >= 0 && f->dir_fd >= 0);
	assert_non_null(f->symbols);
	f->params = (struct trace_file_params){
		.source =
			{
				.tracing_fd = f->tracing_fd,
				.instance_fd = openat(f->tracing_fd, "instances/t",
						      O_RDONLY | O_DIRECTORY | O_CLOEXEC),
				.systems = systems,
			},
		.symbols = f->symbols,
		.n_cpus = n_cpus,
		.subbuf_size = FAKE_SUBBUF,
		.max_file_size = 3 * MIB,
		.slack = MIB,
		.direct = STORAGE_DIRECT_AUTO,
		.names_room = FAKE_NAMES_ROOM,
		.clock = "local [mono]\n",
		.has_date = true,
		.date_usec = FAKE_DATE,
		.boot_id = "fedcba9876543210",
	};
	assert_true(f->params.source.instance_fd >= 0);
}

void fake_done(struct fake *f)
{
	close(f->params.source.instance_fd);
	close(f->tracing_fd);
	close(f->dir_fd);
	symbols_free(f->symbols);
	tmp_done(&f->tmp);
}

struct trace_file *fake_create(struct fake *f, const char *name)
{
	struct trace_file *file = NULL;
	struct fault why = {};

	if (trace_file_create(f->dir_fd, name, &f->params, &file, &why) < 0 ||
	    trace_file_publish(f->dir_fd, name, false, &why) < 0)
		fail_msg("%s", why.text);
	return file;
}

struct trace_file *fake_open(struct fake *f, const char *name)
{
	struct trace_file *file = NULL;
	struct fault why = {};

	if (trace_file_open(f->dir_fd, name, f->params.direct, &file, &why) < 0)
		fail_msg("%s", why.text);
	return file;
}

void fake_subbuf(char *bytes, uint64_t timestamp)
{
	struct craft c = {.big_endian = __BYTE_ORDER == __BIG_ENDIAN, .commit_size = sizeof(long)};

	(void)craft_page_begin(&c, timestamp);
	craft_event(&c, 4, 0, FAKE_EVENT_ID);
	craft_event(&c, 4, 1, FAKE_EVENT_ID);
	craft_page_end(&c, 0, FAKE_SUBBUF, 0);
	memcpy(bytes, c.bytes, FAKE_SUBBUF);
	craft_done(&c);
}

void fake_put(struct trace_file *file, unsigned cpu, unsigned n, uint64_t timestamp)
{
	struct trace_file_region region;
	char bytes[FAKE_SUBBUF];

	trace_file_region(file, cpu, &region);
	fake_subbuf(bytes, timestamp);
	assert_int_equal(io_pwrite_all(region.buffered_fd, bytes, sizeof(bytes),
				       region.offset + (uint64_t)n * FAKE_SUBBUF),
			 0);
}

void fake_set_size(struct trace_file *file, unsigned cpu, uint64_t size)
{
	struct trace_file_region region;

	trace_file_region(file, cpu, &region);
	assert_int_equal(io_pwrite_all(region.buffered_fd, &size, sizeof(size), region.size_at), 0);
}

uint64_t fake_size(struct trace_file *file, unsigned cpu)
{
	uint64_t size = UINT64_MAX;

	assert_int_equal(trace_file_read_size(file, cpu, &size), 0);
	return size;
}

off_t fake_length(struct fake *f, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(f->dir_fd, name, &st, 0), 0);
	return st.st_size;
}

void fake_verify(struct fake *f, const char *name, unsigned subbufs)
{
	_cleanup_trace_dat_ struct trace_dat *dat = NULL;
	_cleanup_close_ int fd = openat(f->dir_fd, name, O_RDONLY | O_CLOEXEC);
	struct verify_report report;
	struct fault why = {};
	uint64_t found = 0;

	assert_true(fd >= 0);
	if (trace_dat_open_fd(fd, name, &dat, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(verify_report_init(&report, name), 0);
	assert_int_equal(verify_dat(dat, &report), 0);
	if (!verify_report_ok(&report))
		fail_msg("%s", report.errors[0]);
	for (size_t i = 0; i < report.n_cpus; i++)
		found += report.cpus[i].subbufs;
	assert_int_equal(found, subbufs);
	verify_report_done(&report);
}
