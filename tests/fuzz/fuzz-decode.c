/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fuzz-decode - any bytes as a trace.dat: all its events as text and as JSON, by threads, as export
 * does it. libFuzzer target; the corpus is in tests/fuzz/corpus/decode.
 *
 * The formats' texts go to libtraceevent, whose faults on broken ones are not ours and would hide
 * ours: unless FUZZ_FORMATS is set in the environment, the formats are those of the corpus, put in
 * the place of what the file has, and only the events' bytes, the tables and the other texts are
 * the fuzzer's. libtraceevent alone prints an event only where that cannot hurt.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "basic/io.h"
#include "ctl/export-run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COMMON                                                                         \
	"format:\n"                                                                    \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

struct known {
	const char *system, *text;
};

/* Each way of printing an argument, and the events that are printed in ways of their own */
static const struct known formats[] = {
	{"ftrace", "name: funcgraph_entry\nID: 11\n" COMMON
		   "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
		   "\tfield:unsigned int depth;\toffset:16;\tsize:4;\tsigned:0;\n\n"
		   "print fmt: \"--> %ps (%u)\", (void *)REC->func, REC->depth\n"},
	{"ftrace", "name: funcgraph_exit\nID: 10\n" COMMON
		   "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
		   "\tfield:unsigned int depth;\toffset:16;\tsize:4;\tsigned:0;\n"
		   "\tfield:unsigned long long calltime;\toffset:24;\tsize:8;\tsigned:0;\n"
		   "\tfield:unsigned long long rettime;\toffset:32;\tsize:8;\tsigned:0;\n\n"
		   "print fmt: \"<-- %ps\", (void *)REC->func\n"},
	{"ftrace",
	 "name: kernel_stack\nID: 4\n" COMMON "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
	 "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n\n"
	 "print fmt: \"\\t=> %ps\", (void *)REC->caller[0]\n"},
	{"ftrace",
	 "name: print\nID: 5\n" COMMON "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
	 "\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n\n"
	 "print fmt: \"%ps: %s\", (void *)REC->ip, REC->buf\n"},
	{"demo",
	 "name: hello\nID: 42\n" COMMON "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
	 "\tfield:u64 q;\toffset:16;\tsize:8;\tsigned:0;\n"
	 "\tfield:char name[16];\toffset:24;\tsize:16;\tsigned:0;\n"
	 "\tfield:__data_loc char[] text;\toffset:40;\tsize:4;\tsigned:0;\n"
	 "\tfield:__rel_loc char[] more;\toffset:44;\tsize:4;\tsigned:0;\n"
	 "\tfield:__data_loc u32[] list;\toffset:48;\tsize:4;\tsigned:0;\n"
	 "\tfield:__data_loc cpumask_t cpus;\toffset:52;\tsize:4;\tsigned:0;\n"
	 "\tfield:__data_loc unsigned long[] mask;\toffset:56;\tsize:4;\tsigned:0;\n"
	 "\tfield:unsigned long args[3];\toffset:64;\tsize:24;\tsigned:0;\n\n"
	 "print fmt: \"%d %5u %#llx %.3d %*d|%s|%-8s|%.*s|%s|%s|%s|%s|%s|%lx %lu %llu\", "
	 "REC->a, REC->a / REC->q, REC->q, REC->a, REC->a, REC->a, REC->name, __get_str(text), "
	 "REC->a, __get_str(text), __get_rel_str(more), __get_cpumask(cpus), "
	 "__get_bitmask(mask), __print_hex(REC->name, REC->a), "
	 "__print_array(__get_dynamic_array(list), REC->a, 4), REC->args[REC->a], "
	 "REC->q % REC->a, REC->q << REC->a\n"},
	{"demo", "name: words\nID: 43\n" COMMON "\tfield:u32 f;\toffset:8;\tsize:4;\tsigned:0;\n"
		 "\tfield:u8 ip6[16];\toffset:12;\tsize:16;\tsigned:0;\n"
		 "\tfield:__data_loc u8[] peer;\toffset:28;\tsize:4;\tsigned:0;\n"
		 "\tfield:const char * s;\toffset:32;\tsize:8;\tsigned:0;\n\n"
		 "print fmt: \"%s %s %s %pI6c %pU %pISpc %p %pS\", "
		 "__print_flags(REC->f, \"|\", { 1, \"A\" }, { 4, \"B\" }), "
		 "__print_symbolic(REC->f, { 0, \"ZERO\" }, { 7, \"SEVEN\" }), REC->s, REC->ip6, "
		 "REC->ip6, __get_dynamic_array(peer), REC->s, REC->s\n"},
	{"sched", "name: sched_switch\nID: 44\n" COMMON
		  "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		  "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		  "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
		  "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
		  "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
		  "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
		  "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n"
		  "print fmt: \"%s %d\", REC->prev_comm, REC->prev_pid\n"},
};

/* The formats behind the file's own bytes, with their places in the frame that was read */
static void own_formats(int fd, struct trace_dat *dat)
{
	static char *systems[] = {(char *)"ftrace", (char *)"demo", (char *)"sched"};
	static struct trace_dat_format places[ARRAY_SIZE(formats)];
	uint64_t at = dat->file_size;

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		size_t n = strlen(formats[i].text);

		if (io_pwrite_all(fd, formats[i].text, n, at) < 0)
			abort();
		places[i].text = (struct trace_dat_extent){at, n};
		for (uint32_t s = 0; s < ARRAY_SIZE(systems); s++)
			if (strcmp(systems[s], formats[i].system) == 0)
				places[i].system = s;
		at += n;
	}
	dat->systems = systems;
	dat->n_systems = ARRAY_SIZE(systems);
	dat->formats = places;
	dat->n_formats = ARRAY_SIZE(formats);
}

static void export_all(const struct trace_dat *dat, enum export_format format, int null)
{
	struct export_filter filter = {.to = UINT64_MAX};
	struct decoder *decoder;
	struct export_job job;
	struct fault why = {};

	if (decoder_new(dat, &decoder, &why) < 0) {
		if (why.text[0] == '\0')
			abort(); /* each refusal says why */
		return;
	}
	job = (struct export_job){
		.dat = dat,
		.decoder = decoder,
		.filter = &filter,
		.format = format,
		.workers = 2,
		.fd = null,
	};
	if (export_run(&job, &why) < 0 && why.text[0] == '\0')
		abort();
	decoder_free(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	_cleanup_close_ int fd = memfd_create("fuzz-decode", MFD_CLOEXEC);
	struct trace_dat *dat = NULL, read;
	struct fault why = {};

	if (null < 0 || fd < 0 || io_pwrite_all(fd, data, size, 0) < 0)
		abort();
	if (trace_dat_open_fd(fd, "fuzz", &dat, &why) < 0)
		return 0;
	read = *dat;
	if (!getenv("FUZZ_FORMATS"))
		own_formats(fd, &read);
	export_all(&read, EXPORT_TEXT, null);
	export_all(&read, EXPORT_JSON, null);
	trace_dat_free(dat);
	return 0;
}
