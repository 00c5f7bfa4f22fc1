/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The texts that recorder reads in the kernel's files, as tests/fixtures/tracefs has them and as
 * other kernels may write them; and the definitions of dynamic events that it writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <tracefs.h>

#include "basic/io.h"
#include "recorder/dynamic.h"
#include "recorder/kernel-text.h"
#include "recorder/tracefs.h"
#include "recorder/unit-group.h"

#define RECORDED SOURCE_DIR "/tests/fixtures/tracefs/instances/rec"

static void read_recorded(const char *file, char **ret)
{
	_cleanup_free_ char *path = NULL;

	assert_true(asprintf(&path, RECORDED "/%s", file) > 0);
	assert_int_equal(io_read_file_at(AT_FDCWD, path, ret, NULL), 0);
}

static void test_header_page(void **state)
{
	_cleanup_free_ char *text = NULL;
	unsigned size = 0;

	read_recorded("events/header_page", &text);
	assert_int_equal(kernel_text_header_page(text, &size), 0);
	assert_int_equal(size, 16384);
	assert_int_equal(kernel_text_header_page("\tfield: local_t commit;\toffset:8;\tsize:4;\n"
						 "\tfield: char data;\toffset:12;\tsize:4084;\n",
						 &size),
			 0);
	assert_int_equal(size, 4096);
	assert_int_equal(kernel_text_header_page("", &size), -EBADMSG);
	assert_int_equal(kernel_text_header_page("field: char data;\toffset:16;\tsize:0;", &size),
			 -EBADMSG);
	assert_int_equal(
		kernel_text_header_page("field: char data;\toffset:4294967295;\tsize:2;", &size),
		-EBADMSG);
	assert_int_equal(size, 4096);
}

static void test_stats(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct cpu_stats stats;

	read_recorded("per_cpu/cpu0/stats", &text);
	assert_int_equal(kernel_text_stats(text, &stats), 0);
	assert_int_equal(stats.entries, 2419);
	assert_int_equal(stats.overrun, 0);
	assert_int_equal(stats.bytes, 106208);
	assert_int_equal(stats.oldest_usec, 1826396030);
	assert_int_equal(stats.now_usec, 1827402055);

	/* a clock without time; counters beyond 32 bits; a line of a later kernel */
	assert_int_equal(kernel_text_stats("entries: 1\noverrun: 5000000000\ncommit overrun: 3\n"
					   "bytes: 4\noldest event ts: 1234567\nnow ts: 7654321\n"
					   "dropped events: 6\nread events: 7\nnew: 8\n",
					   &stats),
			 0);
	assert_int_equal(stats.overrun, 5000000000);
	assert_int_equal(stats.commit_overrun, 3);
	assert_int_equal(stats.oldest_usec, 0);
	assert_int_equal(stats.now_usec, 0);
	assert_int_equal(stats.dropped_events, 6);
	assert_int_equal(stats.read_events, 7);
	assert_int_equal(kernel_text_stats("overrun: 1\n", &stats), -EBADMSG);
}

static void test_cpus(void **state)
{
	static const char *const bad[] = {"", "a", "1-", "-1", "3-1", "1,", "1,,2", "1-2-3"};
	unsigned n = 77;
	char *mask;

	assert_int_equal(kernel_text_possible_cpus("0-1\n", &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(kernel_text_possible_cpus("0\n", &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(kernel_text_possible_cpus("4-7,0,2\n", &n), 0);
	assert_int_equal(n, 8);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(kernel_text_possible_cpus(bad[i], &n), -EINVAL);
		assert_int_equal(kernel_text_cpu_list(bad[i], 8, &mask), -EINVAL);
	}
	assert_int_equal(kernel_text_possible_cpus("70000", &n), -ERANGE);
	assert_int_equal(kernel_text_cpu_list("70000", 8, &mask), -ERANGE);
	assert_int_equal(kernel_text_cpu_list("0,8", 8, &mask), -ERANGE);
	assert_int_equal(kernel_text_cpu_list(NULL, 0, &mask), -EINVAL);

	assert_int_equal(kernel_text_cpu_list("0-3, 8", 40, &mask), 0);
	assert_string_equal(mask, "00000000,0000010f");
	free(mask);
	assert_int_equal(kernel_text_cpu_list(NULL, 34, &mask), 0);
	assert_string_equal(mask, "00000003,ffffffff");
	assert_true(kernel_text_cpumask_equal(mask, "3,ffffffff\n"));
	assert_true(kernel_text_cpumask_equal("000000,00000003,FFFFFFFF", mask));
	assert_false(kernel_text_cpumask_equal(mask, "1,ffffffff"));
	assert_false(kernel_text_cpumask_equal(mask, "ffffffff"));
	assert_true(kernel_text_cpumask_equal("0", "00000000,00000000"));
	assert_false(kernel_text_cpumask_equal("0", "10"));
	free(mask);
}

static void test_error_log(void **state)
{
	_cleanup_free_ char *text = NULL, *quote = NULL;
	char *other = (char *)"";

	read_recorded("error_log", &text);
	assert_int_equal(kernel_text_error_log_last(text, &quote), 0);
	assert_string_equal(quote, "Field not found in \"xx==3\" at character 4");

	assert_int_equal(kernel_text_error_log_last("", &other), 0);
	assert_null(other);
	/* several entries of an event whose place ends in "error"; no command; no caret */
	assert_int_equal(kernel_text_error_log_last("[    1.0] a: error: First\n  Command: a\n  ^\n"
						    "[    2.0] x parse error: error: No hope\n",
						    &other),
			 0);
	assert_string_equal(other, "No hope");
	free(other);
	assert_int_equal(kernel_text_error_log_last("[    1.0] hist:sched:x: error: Bad key\n"
						    "  Command: keys=foo\n",
						    &other),
			 0);
	assert_string_equal(other, "Bad key in \"keys=foo\"");
	free(other);
}

static void test_systems_text(void **state)
{
	_cleanup_free_ char *text = NULL;
	char **list = NULL;

	read_recorded("set_event", &text);
	assert_int_equal(kernel_text_set_event(text, &list), 0);
	assert_int_equal(kernel_text_set_event("*:mod:foo\nsched:mod:bar\nftrace:print\n"
					       "synthetic:lat\nnonsense\n",
					       &list),
			 0);
	assert_int_equal(tracefs_list_size(list), 3);
	assert_string_equal(list[0], "irq");
	assert_string_equal(list[1], "sched");
	assert_string_equal(list[2], "synthetic");
	assert_int_equal(kernel_text_trigger_systems("enable_event:kmem:kmalloc:3 if a > 1", &list),
			 0);
	assert_int_equal(kernel_text_trigger_systems("stacktrace if prev_comm == \"a.b\"", &list),
			 0);
	assert_int_equal(
		kernel_text_trigger_systems("hist:keys=next_pid:lat=common_timestamp.usecs-$ts0:"
					    "onmatch(timer.hrtimer_start).trace(lat,$lat)",
					    &list),
		0);
	assert_int_equal(tracefs_list_size(list), 5);
	assert_string_equal(list[3], "kmem");
	assert_string_equal(list[4], "timer");
	tracefs_list_free(list);
}

static void test_words(void **state)
{
	_cleanup_free_ char *text = NULL;
	char *word = NULL;

	read_recorded("trace_clock", &text);
	assert_int_equal(kernel_text_selected(text, &word), 0);
	assert_string_equal(word, "mono");
	free(word);
	assert_int_equal(kernel_text_selected("local global", &word), -EBADMSG);
	assert_true(kernel_text_has_word("blk function nop\n", "nop"));
	assert_true(kernel_text_has_word("blk function nop\n", "blk"));
	assert_false(kernel_text_has_word("blk function nop\n", "func"));
	assert_false(kernel_text_has_word("nooverwrite\n", "overwrite"));
	assert_false(kernel_text_has_word("", "x"));
}

static void test_mountinfo(void **state)
{
	char **dirs = NULL;

	assert_int_equal(
		unit_group_parse_mounts(
			"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
			"32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
			"33 31 0:30 / /sys/fs/cgroup/systemd rw shared:9 master:1 - cgroup cgroup "
			"rw,name=systemd\n"
			"34 31 0:31 / /mnt/with\\040space rw - cgroup2 cgroup2 rw\n"
			"35 31 0:31 / /x/cgroup2 rw - ext4 cgroup2 rw\nnonsense\n",
			&dirs),
		0);
	assert_int_equal(tracefs_list_size(dirs), 2);
	assert_string_equal(dirs[0], "/sys/fs/cgroup/systemd");
	assert_string_equal(dirs[1], "/mnt/with space");
	tracefs_list_free(dirs);
}

static void test_lockdown(void **state)
{
	assert_false(tracefs_locked_down("[none] integrity confidentiality\n"));
	assert_false(tracefs_locked_down("none [integrity] confidentiality\n"));
	assert_true(tracefs_locked_down("none integrity [confidentiality]\n"));
}

/* --- dynamic events */

static void test_dynamic_names(void **state)
{
	char *kprobes[] = {(char *)"p vfs_read", (char *)"r8:ret vfs_read $retval", NULL};
	char *uprobes[] = {(char *)"p:main /bin/true:0x1000", NULL};
	char *synthetic[] = {(char *)"lat u64 delta; int pid", (char *)"s:synthetic/b int x",
			     (char *)"+lat1 u64 nsec; int pid if nsec >= 5 && x", NULL};
	const struct trace_config config = {
		.kprobes = kprobes,
		.uprobes = uprobes,
		.synthetic_events = synthetic,
	};
	static const char *const want[] = {
		"s:lat u64 delta; int pid",   "s:b int x",
		"s:g_lat1 u64 nsec; int pid", "p:g/probe1 vfs_read",
		"r8:g/ret vfs_read $retval",  "p:g/main /bin/true:0x1000",
	};
	_cleanup_(dynamic_freep) struct dynamic *dynamic = NULL;
	struct fault why = {0};

	assert_int_equal(dynamic_new(&config, "g", &dynamic, &why), 0);
	assert_int_equal(dynamic->n_events, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_string_equal(dynamic->events[i].definition, want[i]);
	assert_string_equal(dynamic->events[1].system, "synthetic");
	assert_string_equal(dynamic->events[1].name, "b");
	assert_null(dynamic->events[1].filter);
	assert_string_equal(dynamic->events[2].system, "synthetic");
	assert_string_equal(dynamic->events[2].name, "g_lat1");
	assert_string_equal(dynamic->events[2].filter, "nsec >= 5 && x");
	assert_string_equal(dynamic->events[3].system, "g");
	assert_string_equal(dynamic->events[3].name, "probe1");
}

static void test_dynamic_refused(void **state)
{
	static const char *const bad[] = {"",	  "p",	 "p:", "p:name", "p:sched/x vfs_read",
					  ":x y", "p: y"};
	struct dynamic *dynamic = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char *kprobes[] = {(char *)bad[i], NULL};
		const struct trace_config config = {.kprobes = kprobes};
		struct fault why = {0};

		assert_int_equal(dynamic_new(&config, "g", &dynamic, &why), -EINVAL);
		assert_non_null(strstr(why.text, "Kprobe="));
	}
	assert_null(dynamic);
}

static void test_dynamic_lines(void **state)
{
	_cleanup_free_ char *group = NULL, *name = NULL;

	assert_int_equal(dynamic_parse_line("p:flyrec_x/foo /bin/true:0x1000 a=%ax", &group, &name),
			 0);
	assert_string_equal(group, "flyrec_x");
	assert_string_equal(name, "foo");
	assert_int_equal(dynamic_parse_line("", &group, &name), -EBADMSG);
	assert_int_equal(dynamic_parse_line("p vfs_read", &group, &name), -EBADMSG);
	assert_int_equal(dynamic_parse_line("p:/x y", &group, &name), -EBADMSG);
	assert_int_equal(dynamic_parse_line("p:x/ y", &group, &name), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_header_page),   cmocka_unit_test(test_stats),
		cmocka_unit_test(test_cpus),	      cmocka_unit_test(test_error_log),
		cmocka_unit_test(test_systems_text),  cmocka_unit_test(test_words),
		cmocka_unit_test(test_mountinfo),     cmocka_unit_test(test_lockdown),
		cmocka_unit_test(test_dynamic_names), cmocka_unit_test(test_dynamic_refused),
		cmocka_unit_test(test_dynamic_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
