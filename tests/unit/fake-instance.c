/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <tracefs.h>

#include "tests/unit/fake-instance.h"

void fake_instance_put(struct tmp *tmp, const char *info)
{
	tmp_write(tmp, "instances/flyrec.oom.trigger/tracing_on", "1");
	tmp_write(tmp, FAKE_INSTANCE "tracing_on", "1\n");
	tmp_write(tmp, FAKE_INSTANCE "trace", "# tracer: nop\n");
	tmp_write(tmp, FAKE_INSTANCE "trace_clock", "[local] global mono\n");
	tmp_write(tmp, FAKE_INSTANCE "current_tracer", "nop\n");
	tmp_write(tmp, FAKE_INSTANCE "buffer_size_kb", "10180\n");
	tmp_write(tmp, FAKE_INSTANCE "buffer_subbuf_size_kb", "4\n");
	tmp_write(tmp, FAKE_INSTANCE "buffer_percent", "50\n");
	tmp_write(tmp, FAKE_INSTANCE "error_log", "");
	tmp_write(tmp, FAKE_INSTANCE "set_event", "sched:sched_switch\n");
	tmp_write(tmp, FAKE_INSTANCE "events/enable", "X\n");
	tmp_write(tmp, FAKE_INSTANCE "events/header_page",
		  "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
		  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
		  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
		  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n");
	tmp_write(tmp, FAKE_INSTANCE "events/sched/sched_switch/enable", "1\n");
	tmp_write(tmp, FAKE_INSTANCE "events/sched/sched_switch/filter", "none\n");
	tmp_write(tmp, FAKE_INSTANCE "per_cpu/cpu0/stats", "entries: 0\noverrun: 0\n");
	if (info)
		tmp_write(tmp, FAKE_INSTANCE "last_boot_info", info);
	assert_int_equal(tracefs_set_tracing_dir(tmp->path), 0);
}

void fake_instance_drop(struct tmp *tmp)
{
	(void)tracefs_set_tracing_dir(NULL);
	tmp_done(tmp);
}

struct trace_file_params fake_instance_params(struct tmp *tmp)
{
	static char *systems[] = {(char *)"sched", NULL};

	tmp_write(tmp, "events/header_page", "page");
	tmp_write(tmp, "events/header_event", "event");
	tmp_write(tmp, "events/ftrace/print/format", "name: print\nID: 5\n");
	tmp_write(tmp, "events/sched/sched_switch/format", "name: sched_switch\nID: 314\n");
	tmp_write(tmp, "printk_formats", "0xffffffff82000000 : \"x\"\n");
	return (struct trace_file_params){
		.source = {.tracing_fd = tmp->fd, .instance_fd = tmp->fd, .systems = systems},
		.subbuf_size = 4096,
		.clock = "[local] mono\n",
		.has_date = true,
		.date_usec = -5,
	};
}
