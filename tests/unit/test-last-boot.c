/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is known of a boot that died: last_boot_info and symbols, the note that it left, the
 * instance in its memory, the command line that makes one. With a kernel: tests/vm.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "basic/io.h"
#include "daemon/manager/boot-parameters.h"
#include "engine/boot-trace.h"
#include "tests/unit/fake-instance.h"

/* As Linux 6.12 and 7.3 print them */
static const char delta_form[] = "text delta:\t-20971520\ndata delta:\t-18874368\n";
static const char address_form[] = "ffffffffa9c00000\t[kernel]\nffffffffc0800000\tautofs4\n"
				   "ffffffffc0894000\tkvm\nffffffffc0894000\tgone\n";

static const char kallsyms[] = "0000000000000000 A fixed_percpu_data\n"
			       "0000000000001000 A cpu_debug_store\n"
			       "ffffffff81000000 T _text\n"
			       "ffffffff81000010 t do_one_thing\n"
			       "ffffffff82000000 D a_table\n"
			       "ffffffff83000000 B _end\n"
			       "ffffffffc0601000 t autofs4_mount\t[autofs4]\n"
			       "ffffffffc0609000 d autofs4_data\t[autofs4]\n"
			       "ffffffffc0701000 T kvm_init\t[kvm]\n"
			       "ffffffffc0800000 t new_here\t[newer]\n"
			       "ffffffffc0900000 t bpf_prog_1\t[bpf]\n";

static const char modules[] = "kvm 1 0 - Live 0xffffffffc0700000\n"
			      "autofs4 57344 2 - Live 0xffffffffc0600000 (E)\n"
			      "newer 1 0 - Live 0xffffffffc0800000\n";

static void test_parse(void **state)
{
	struct last_boot boot;

	assert_int_equal(last_boot_parse(delta_form, &boot), 0);
	assert_true(boot.has_kernel && !boot.has_text && !boot.current && !boot.tells_current);
	assert_int_equal(boot.text_delta, -20971520);
	assert_int_equal(boot.data_delta, -18874368);
	last_boot_done(&boot);

	assert_int_equal(last_boot_parse(address_form, &boot), 0);
	assert_true(boot.has_kernel && boot.has_text && !boot.current && boot.tells_current);
	assert_int_equal(boot.text, 0xffffffffa9c00000);
	assert_int_equal(boot.n_modules, 3);
	assert_string_equal(boot.modules[1].name, "kvm");
	assert_int_equal(boot.modules[1].text, 0xffffffffc0894000);
	last_boot_done(&boot);

	assert_int_equal(last_boot_parse("# Current\n", &boot), 0);
	assert_true(boot.current && boot.tells_current && !boot.has_kernel);
	last_boot_done(&boot);

	/* Never used; how far it was moved, as kernels in between had it; a line of a later one */
	assert_int_equal(last_boot_parse("0\t[kernel]\n", &boot), 0);
	assert_true(!boot.current && !boot.has_kernel);
	last_boot_done(&boot);
	assert_int_equal(last_boot_parse("39000000\t[kernel]\n", &boot), 0);
	assert_false(boot.has_kernel);
	last_boot_done(&boot);
	assert_int_equal(
		last_boot_parse("# Later\nffffffffa9c00000\t[kernel]\nwhat is this\n", &boot), 0);
	assert_true(boot.has_text && boot.n_modules == 0);
	last_boot_done(&boot);

	assert_int_equal(last_boot_parse("", &boot), -EBADMSG);
	assert_int_equal(last_boot_parse("text delta:\tmuch\n", &boot), -EBADMSG);
	assert_int_equal(last_boot_parse("ffffffffc0894000\tkvm\n", &boot), -EBADMSG);
}

static void check_symbols(const char *info, const char *expected, unsigned n_modules)
{
	_cleanup_free_ char *text = NULL;
	struct last_boot boot;
	unsigned n = 77;

	assert_int_equal(last_boot_parse(info, &boot), 0);
	assert_int_equal(last_boot_symbols(&boot, kallsyms, modules, &text, &n), 0);
	assert_string_equal(text, expected);
	assert_int_equal(n, n_modules);
	last_boot_done(&boot);
}

static void test_symbols(void **state)
{
	/* By the deltas, without modules, of which that kernel says nothing */
	check_symbols(delta_form,
		      "0000000000000000 A fixed_percpu_data\n0000000000001000 A cpu_debug_store\n"
		      "ffffffff82400000 T _text\nffffffff82400010 t do_one_thing\n"
		      "ffffffff83200000 D a_table\nffffffff84200000 B _end\n",
		      0);
	/* By addresses; of modules the code alone, as their data is elsewhere */
	check_symbols(address_form,
		      "0000000000000000 A fixed_percpu_data\n0000000000001000 A cpu_debug_store\n"
		      "ffffffffa9c00000 T _text\nffffffffa9c00010 t do_one_thing\n"
		      "ffffffffaac00000 D a_table\nffffffffabc00000 B _end\n"
		      "ffffffffc0801000 t autofs4_mount\t[autofs4]\n"
		      "ffffffffc0895000 T kvm_init\t[kvm]\n",
		      2);
	check_symbols("39000000\t[kernel]\n", "", 0);
	check_symbols("0\t[kernel]\n", "", 0);
}

/* Not found, cut off, empty: nothing, or whole lines that are right */
static void test_symbols_cut(void **state)
{
	struct last_boot boot;

	assert_int_equal(last_boot_parse(address_form, &boot), 0);
	for (size_t n = 0; n < strlen(kallsyms); n++) {
		_cleanup_free_ char *cut = strndup(kallsyms, n), *text = NULL;

		assert_int_equal(last_boot_symbols(&boot, cut, modules, &text, NULL), 0);
		assert_true(strlen(text) <= n);
		assert_int_equal(*text != '\0',
				 n >= (size_t)(strstr(kallsyms, "_end") - kallsyms) + 4);
	}
	for (size_t n = 0; n < strlen(modules); n++) {
		_cleanup_free_ char *cut = strndup(modules, n), *text = NULL;

		assert_int_equal(last_boot_symbols(&boot, kallsyms, cut, &text, NULL), 0);
		assert_non_null(strstr(text, "ffffffffa9c00000 T _text"));
	}
	last_boot_done(&boot);
}

/* --- an instance in such memory, of plain files */

#define I	  FAKE_INSTANCE
#define BOOT_NOW  "11111111111111111111111111111111"
#define BOOT_THEN "00000000000000000000000000000002"

static void assert_file(struct tmp *tmp, const char *path, const char *text)
{
	_cleanup_free_ char *now = NULL;

	assert_int_equal(io_read_file_at(tmp->fd, path, &now, NULL), 0);
	assert_string_equal(now, text);
}

static void test_instance(void **state)
{
	struct trace_event event = {.system = (char *)"sched", .name = (char *)"sched_switch"};
	struct trace_config config = {
		.events = &event,
		.n_events = 1,
		.clock = (char *)"mono",
		.buffer_size = TIB, /* more than there is: it is not asked for */
		.buffer_percent = 25,
		.persistent = true,
	};
	struct instance *instance = NULL;
	struct fault why = {0};
	uint64_t size;
	struct tmp tmp;

	tmp_init(&tmp);
	fake_instance_put(&tmp, address_form);
	assert_int_equal(instance_create("flyrec.oom", "flyrec_oom", &config, &instance, &why), 0);
	assert_true(instance_is_kept(instance));
	assert_file(&tmp, I "tracing_on", "0\n");
	assert_file(&tmp, I "trace", "\n"); /* the kernel empties the ring buffer over this */
	assert_file(&tmp, I "trace_clock", "monoal] global mono\n");
	assert_file(&tmp, I "buffer_size_kb", "10180\n");
	assert_file(&tmp, I "buffer_subbuf_size_kb", "4\n");
	assert_int_equal(instance_buffer_size(instance, &size), 0);
	assert_int_equal(size, 10180 * KIB);
	/* rmdir would give its memory back for good, where the kernel does not refuse */
	tmp_write(&tmp, I "trace", "something");
	tmp_write(&tmp, I "tracing_on", "1");
	assert_int_equal(instance_destroy(instance, &why), 0);
	assert_file(&tmp, I "tracing_on", "0");
	assert_file(&tmp, I "trace", "\n");
	assert_file(&tmp, I "events/enable", "0\n");

	/* One that somebody else made is not taken, though persistent */
	assert_int_equal(unlinkat(tmp.fd, I "last_boot_info", 0), 0);
	assert_int_equal(instance_create("flyrec.oom", "flyrec_oom", &config, &instance, &why),
			 -EEXIST);
	fake_instance_drop(&tmp);
}

/* --- the note */

static void test_note(void **state)
{
	struct boot_note *note = NULL;
	struct trace_file_params params;
	struct fault why = {0};
	struct tmp tmp;

	tmp_init(&tmp);
	params = fake_instance_params(&tmp);
	assert_int_equal(boot_note_read(tmp.fd, &note), -ENOENT);
	assert_int_equal(boot_note_write(tmp.fd, &params, BOOT_THEN, &why), 0);
	assert_int_equal(boot_note_read(tmp.fd, &note), 0);
	assert_string_equal(note->boot_id, BOOT_THEN);
	assert_string_equal(note->clock, "local");
	assert_true(note->has_date);
	assert_int_equal(note->date_usec, -5);
	assert_int_equal(note->subbuf_size, 4096);
	assert_non_null(memmem(note->kept.formats, note->kept.formats_size, "ID: 314", 7));
	assert_string_equal(note->kept.printk, "0xffffffff82000000 : \"x\"\n");
	assert_true(boot_note_same_kernel(note));
	note->version[0]++;
	assert_false(boot_note_same_kernel(note));
	boot_note_free(note);
	assert_int_equal(boot_note_remove(tmp.fd), 0);
	assert_int_equal(boot_note_remove(tmp.fd), 0);
	assert_int_equal(boot_note_read(tmp.fd, &note), -ENOENT);
	boot_note_free(NULL);
	tmp_done(&tmp);
}

/* Cut off anywhere it is refused, or only the printk formats are shorter */
static void test_note_cut(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct trace_file_params params;
	struct fault why = {0};
	struct tmp tmp;
	size_t size, head;

	tmp_init(&tmp);
	params = fake_instance_params(&tmp);
	assert_int_equal(boot_note_write(tmp.fd, &params, BOOT_THEN, &why), 0);
	assert_int_equal(io_read_file_at(tmp.fd, "boot", &text, &size), 0);
	head = size - strlen("0xffffffff82000000 : \"x\"\n");
	for (size_t n = 0; n < size; n++) {
		struct boot_note *note = NULL;

		tmp_write_bytes(&tmp, "boot", text, n);
		assert_int_equal(boot_note_read(tmp.fd, &note), n < head ? -EBADMSG : 0);
		boot_note_free(note);
	}
	tmp_write(&tmp, "boot", "boot-id x\nformats 99999999999999999999\n");
	assert_int_equal(boot_note_read(tmp.fd, &(struct boot_note *){NULL}), -EBADMSG);
	tmp_done(&tmp);
}

/* --- is there anything to be saved? */

static int find(struct tmp *tmp, const char **ret_boot_id, const char **ret_missing)
{
	static char boot_id[33], missing[16];
	struct trace_config config = {.clock = (char *)"local", .persistent = true};
	const struct boot_trace_params params = {
		.session = "oom",
		.instance = "flyrec.oom",
		.group = "flyrec_oom",
		.trace = &config,
		.boot_id = BOOT_NOW,
		.dir_fd = tmp->fd,
		.tracing_fd = tmp->fd,
	};
	struct boot_trace *trace = NULL;
	struct fault why;
	int r = boot_trace_find(&params, &trace, &why);

	if (trace) {
		(void)snprintf(boot_id, sizeof(boot_id), "%s", boot_trace_boot_id(trace));
		(void)snprintf(missing, sizeof(missing), "%.15s", boot_trace_missing(trace));
	}
	*ret_boot_id = boot_id;
	*ret_missing = missing;
	boot_trace_free(trace);
	return r;
}

static void test_find(void **state)
{
	const char *boot_id, *missing;
	struct trace_file_params params;
	struct fault why;
	struct tmp tmp;

	tmp_init(&tmp);
	fake_instance_put(&tmp, NULL);
	params = fake_instance_params(&tmp);
	/* Made by mkdir; made at boot and empty; with data of nobody knows whom */
	assert_int_equal(find(&tmp, &boot_id, &missing), BOOT_TRACE_NONE);
	tmp_write(&tmp, I "last_boot_info", delta_form);
	assert_int_equal(find(&tmp, &boot_id, &missing), BOOT_TRACE_NONE);
	tmp_write(&tmp, I "per_cpu/cpu0/stats", "entries: 7\n");
	assert_int_equal(find(&tmp, &boot_id, &missing), BOOT_TRACE_HERE);
	assert_string_equal(boot_id, "unknown");
	/* Of a boot that was noted; of this boot, by the note or by the kernel's word */
	assert_int_equal(boot_note_write(tmp.fd, &params, BOOT_THEN, &why), 0);
	assert_int_equal(find(&tmp, &boot_id, &missing), BOOT_TRACE_HERE);
	assert_string_equal(boot_id, BOOT_THEN);
	tmp_write(&tmp, I "last_boot_info", "# Current\n");
	assert_int_equal(find(&tmp, &boot_id, &missing), BOOT_TRACE_NONE);
	tmp_write(&tmp, I "last_boot_info", delta_form);
	assert_int_equal(boot_note_write(tmp.fd, &params, BOOT_NOW, &why), 0);
	assert_int_equal(find(&tmp, &boot_id, &missing), BOOT_TRACE_NONE);
	/* Noted, and nothing left of it */
	assert_int_equal(boot_note_write(tmp.fd, &params, BOOT_THEN, &why), 0);
	tmp_write(&tmp, I "per_cpu/cpu0/stats", "entries: 0\n");
	assert_int_equal(find(&tmp, &boot_id, &missing), BOOT_TRACE_LOST);
	assert_int_equal(*missing, '0');
	tmp_write(&tmp, I "last_boot_info", "gibberish\n");
	assert_int_equal(find(&tmp, &boot_id, &missing), -EBADMSG);
	fake_instance_drop(&tmp);
}

/* --- the command line */

static void test_parameters(void **state)
{
	struct session_config oom = {.name = (char *)"oom", .enabled = true};
	struct session_config net = {.name = (char *)"net", .enabled = true};
	struct session_config *sessions[] = {&net, &oom};
	struct daemon_config config = {.instance_prefix = (char *)"flyrec.", .sessions = sessions};
	char *one[] = {(char *)"net", NULL}, *none[] = {(char *)"nosuch", NULL};
	_cleanup_free_ char *text = NULL;
	struct fault why;

	oom.trace.buffer_size = 4 * MIB;
	net.trace.buffer_size = 10 * MIB;
	config.n_sessions = 2;
	assert_int_equal(boot_parameters_format(&config, NULL, 2, 4096, &text, &why), -ENOENT);
	oom.trace.persistent = true;
	assert_int_equal(boot_parameters_format(&config, NULL, 2, 4096, &text, &why), 0);
	assert_string_equal(text, "reserve_mem=9M:2M:flyrec1 "
				  "trace_instance=flyrec.oom^traceoff@flyrec1");
	free(text);
	net.trace.persistent = true;
	assert_int_equal(boot_parameters_format(&config, NULL, 4, 4096, &text, &why), 0);
	assert_string_equal(text, "reserve_mem=41M:2M:flyrec1 "
				  "trace_instance=flyrec.net^traceoff@flyrec1 "
				  "reserve_mem=17M:2M:flyrec2 "
				  "trace_instance=flyrec.oom^traceoff@flyrec2");
	free(text);
	/* By name: also what is not switched on yet */
	net.enabled = net.trace.persistent = false;
	assert_int_equal(boot_parameters_format(&config, one, 1, 4096, &text, &why), 0);
	assert_string_equal(text, "reserve_mem=11M:2M:flyrec1 "
				  "trace_instance=flyrec.net^traceoff@flyrec1");
	assert_int_equal(boot_parameters_format(&config, none, 1, 4096, &text, &why), -ENOENT);
	assert_non_null(strstr(why.text, "nosuch"));
	/* Sub-buffers of one MiB of them and their description: 258, 1 page, 3; 16 K pages */
	assert_int_equal(boot_parameters_size(MIB, 1, 4096), 2 * MIB);
	assert_int_equal(boot_parameters_size(MIB, 64, 16384), 70 * MIB);
}

static void test_too_many(void **state)
{
	struct session_config one = {.name = (char *)"a", .enabled = true};
	struct session_config *sessions[BOOT_PARAMETERS_MAX + 1];
	struct daemon_config config = {.instance_prefix = (char *)"f.", .sessions = sessions};
	char *text = NULL;
	struct fault why;

	one.trace.persistent = true;
	one.trace.buffer_size = MIB;
	for (config.n_sessions = 0; config.n_sessions <= BOOT_PARAMETERS_MAX; config.n_sessions++)
		sessions[config.n_sessions] = &one;
	assert_int_equal(boot_parameters_format(&config, NULL, 1, 4096, &text, &why), -E2BIG);
	config.n_sessions--;
	assert_int_equal(boot_parameters_format(&config, NULL, 1, 4096, &text, &why), 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),	    cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_symbols_cut), cmocka_unit_test(test_instance),
		cmocka_unit_test(test_note),	    cmocka_unit_test(test_note_cut),
		cmocka_unit_test(test_find),	    cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
