/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files of several hosts in one: whose event it was, when, by whom, and what is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/hosts.h"
#include "basic/io.h"
#include "basic/strv.h"
#include "decode/event-stream.h"
#include "decode/symbols.h"
#include "formats/own-hosts.h"
#include "tests/unit/craft-formats.h"
#include "tests/unit/tmp.h"
#include "writer/merge-axis.h"
#include "writer/merge-names.h"
#include "writer/merge.h"

#define PAGE   4096
#define SECOND 1000000000ULL

#define FIELD		 "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"a=%d\", REC->a\n"
#define FORMAT(name, id) "name: " name "\nID: " id "\n" CRAFT_COMMON_FIELDS FIELD

/* "two" is the same on both, but for its id, which is that of something else on the other */
static const struct craft_format formats_a[] = {
	{"ftrace", FORMAT("print", "5")},
	{"demo", FORMAT("one", "10")},
	{"demo", FORMAT("two", "11")},
};
static const struct craft_format formats_b[] = {
	{"ftrace", FORMAT("print", "5")},
	{"demo", FORMAT("two", "10")},
	{"demo", FORMAT("three", "11")},
};
/* Another field at the beginning of each event, as kernels with PREEMPT_RT have it */
static const struct craft_format formats_rt[] = {
	{"ftrace", "name: print\nID: 5\nformat:\n\tfield:unsigned short common_type;\toffset:0;"
		   "\tsize:2;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
		   "\tfield:int common_more;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n"},
};

struct event {
	uint64_t ts;
	uint16_t id;
	int pid, a;
};

static void put_page(struct craft *c, const struct event *events, size_t n)
{
	size_t page = craft_page_begin(c, events[0].ts);

	for (size_t i = 0; i < n; i++) {
		craft_head(c, 3, (uint32_t)(events[i].ts - events[i > 0 ? i - 1 : 0].ts));
		craft_number(c, 2, events[i].id);
		craft_number(c, 2, 0);
		craft_number(c, 4, (uint32_t)events[i].pid);
		craft_number(c, 4, (uint32_t)events[i].a);
	}
	craft_page_end(c, page, PAGE, 0);
}

static struct craft native(void)
{
	return (struct craft){.big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
			      .commit_size = 8};
}

/* Return: its descriptor */
static int make(struct tmp *tmp, const char *name, const struct craft_file *file)
{
	struct craft c = native();
	int fd;

	craft_file(&c, file);
	fd = openat(tmp->fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(io_pwrite_all(fd, c.bytes, c.size, 0), 0);
	craft_done(&c);
	return fd;
}

/* Host a: the clock began 1000 s after 1970, events at 1 s and 3 s; b: 900 s after, 102 s, 104 s */
static const struct event events_a[] = {{1 * SECOND, 10, 7, 1}, {3 * SECOND, 11, 7, 2}};
static const struct event events_b[] = {
	{102 * SECOND, 10, 7, 3},
	{102 * SECOND + 1000, 11, 8, 4},
};

struct two {
	struct tmp tmp;
	struct craft_file a, b;
	struct craft pages_a, pages_b;
	int fd_a, fd_b, out;
	int64_t tsc_offset; /* of b; 0: none is given */
};

static void two_init(struct two *two)
{
	*two = (struct two){.pages_a = native(), .pages_b = native()};
	tmp_init(&two->tmp);
	put_page(&two->pages_a, events_a, 1);
	put_page(&two->pages_a, events_a + 1, 1);
	put_page(&two->pages_b, events_b, 2);
	two->a = (struct craft_file){.formats = formats_a,
				     .n_formats = ARRAY_SIZE(formats_a),
				     .kallsyms = "ffffffff81000000 T at_a\n",
				     .cmdlines = "7 nginx\n9 none\n",
				     .clock = "[mono]\n",
				     .date = "0x3b9aca00", /* 1000 s */
				     .pages = &two->pages_a};
	two->b = (struct craft_file){.formats = formats_b,
				     .n_formats = ARRAY_SIZE(formats_b),
				     .kallsyms = "ffffffff81000000 T at_b\n",
				     .cmdlines = "7 sshd\n8 bash\n9 other\n",
				     .clock = "[boot]\n",
				     .date = "0x35a4e900", /* 900 s */
				     .pages = &two->pages_b};
	two->fd_a = two->fd_b = -EBADF;
	two->out = openat(two->tmp.fd, "out.dat", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(two->out >= 0);
}

static void two_done(struct two *two)
{
	close(two->fd_a);
	close(two->fd_b);
	close(two->out);
	craft_done(&two->pages_a);
	craft_done(&two->pages_b);
	tmp_done(&two->tmp);
}

static int two_merge(struct two *two, const struct merge_options *options,
		     struct merge_report *report, struct fault *why)
{
	const struct merge_input inputs[] = {
		{"/var/lib/flyrec/sched/record/a.dat", "a", two->fd_a},
		{"b.dat", "b", two->fd_b, two->tsc_offset != 0, two->tsc_offset}};

	return merge_files(inputs, 2, two->out, options, report, why);
}

static int two_make(struct two *two, struct merge_report *report, struct fault *why)
{
	static const struct merge_options options;

	two->fd_a = make(&two->tmp, "a.dat", &two->a);
	two->fd_b = make(&two->tmp, "b.dat", &two->b);
	return two_merge(two, &options, report, why);
}

/* "BUFFER TASK TIME EVENT a" of each event, a line each */
static char *lines_of(const struct trace_dat *dat)
{
	static const struct event_stream_config config;
	struct decoder *decoder;
	struct event_stream *stream;
	struct decode_event event;
	struct fault why;
	char *text = strdup("");

	assert_int_equal(decoder_new(dat, &decoder, &why), 0);
	assert_int_equal(event_stream_new(decoder, &config, &stream, &why), 0);
	while (event_next(stream, &event, &why) > 0) {
		const int32_t format = decoder_find(decoder, event.id);
		char *old = text;
		int a;

		memcpy(&a, event.data + 8, sizeof(a));
		text = strf("%s%s %s %" PRIu64 " %s %d%s\n", old, dat->buffers[event.buffer].name,
			    event.task->text, event.ts,
			    format < 0 ? "?" : decoder_name(decoder, (size_t)format), a,
			    event.missed ? " missed" : "");
		free(old);
	}
	event_stream_free(stream);
	decoder_free(decoder);
	return text;
}

static void assert_lines(const struct trace_dat *dat, const char *expected)
{
	char *text = lines_of(dat);

	assert_string_equal(text, expected);
	free(text);
}

static void test_merged(void **state)
{
	struct merge_report report;
	struct trace_dat *dat;
	struct fault why;
	struct two two;

	(void)state;
	two_init(&two);
	assert_int_equal(two_make(&two, &report, &why), 0);
	assert_string_equal(report.text,
			    "flyrec merge: times by the clock of b:b (boot)\n"
			    "a:sched: moved by 100.000000000 s, not known how right its clock was\n"
			    "b:b: not moved, not known how right its clock was\n");
	assert_true(report.symbols_differ);
	assert_int_equal(report.shared_names, 2); /* 7, and 9, which has no events */
	assert_int_equal(report.n_apart, 0);
	merge_report_done(&report);

	assert_int_equal(trace_dat_open_fd(two.out, "out.dat", &dat, &why), 0);
	assert_int_equal(dat->kallsyms.size, 0);
	assert_int_equal(dat->n_formats, 4); /* "two" once */
	assert_lines(dat, "a:sched nginx|sshd 1001000000000 one 1\n"
			  "b:b nginx|sshd 1002000000000 two 3\n"
			  "b:b bash 1002000001000 three 4\n"
			  "a:sched nginx|sshd 1003000000000 two 2\n");
	trace_dat_free(dat);
	two_done(&two);
}

/* What the file itself said: its names, symbols, and no other's */
static void test_frames(void **state)
{
	static const char *const lines[] = {
		" nginx 1001000000000 one 1\n nginx 1003000000000 two 2\n",
		" sshd 1002000000000 two 3\n bash 1002000001000 three 4\n",
	};
	static const char *const names[] = {"out.dat (a:sched)", "out.dat (b:b)"};
	static const char *const symbols[] = {"at_a", "at_b"};
	struct merge_report report;
	struct host_sources hosts;
	struct fault why;
	struct two two;

	(void)state;
	two_init(&two);
	assert_int_equal(two_make(&two, &report, &why), 0);
	merge_report_done(&report);
	assert_int_equal(host_sources_find(&(struct source){.name = "out.dat", .fd = two.out}, 1,
					   &hosts, &why),
			 0);
	assert_int_equal(hosts.n, 2);
	assert_int_equal(strv_length(hosts.names), 2);
	for (size_t i = 0; i < 2; i++) {
		struct trace_dat *dat;
		struct decoder *decoder;
		uint64_t address;

		assert_string_equal(hosts.list[i].name, names[i]);
		assert_string_equal(hosts.list[i].host, i == 0 ? "a" : "b");
		assert_int_equal(
			trace_dat_open_frame(two.out, names[i], hosts.list[i].frame, &dat, &why),
			0);
		assert_lines(dat, lines[i]);
		assert_int_equal(decoder_new(dat, &decoder, &why), 0);
		assert_true(symbols_address(decoder_symbols(decoder), symbols[i], &address));
		decoder_free(decoder);
		trace_dat_free(dat);
	}
	host_sources_done(&hosts);
	two_done(&two);
}

static void test_same_symbols(void **state)
{
	struct merge_report report;
	struct trace_dat *dat;
	struct fault why;
	struct two two;

	(void)state;
	two_init(&two);
	two.b.kallsyms = two.a.kallsyms;
	assert_int_equal(two_make(&two, &report, &why), 0);
	assert_false(report.symbols_differ);
	merge_report_done(&report);
	assert_int_equal(trace_dat_open_fd(two.out, "out.dat", &dat, &why), 0);
	assert_int_equal(dat->kallsyms.size, strlen(two.a.kallsyms));
	trace_dat_free(dat);
	two_done(&two);
}

static void test_apart(void **state)
{
	struct merge_report report;
	struct fault why;
	struct two two;

	(void)state;
	two_init(&two);
	two.b.date = "0x3b9aca00"; /* a hundred seconds later */
	assert_int_equal(two_make(&two, &report, &why), 0);
	assert_int_equal(report.n_apart, 2);
	merge_report_done(&report);
	two_done(&two);
}

static void assert_refused(struct two *two, const char *text)
{
	struct merge_report report;
	struct fault why;

	assert_true(two_make(two, &report, &why) < 0);
	if (!strstr(why.text, text))
		fail_msg("%s, not: %s", why.text, text);
	two_done(two);
}

static void test_refused(void **state)
{
	struct merge_report report;
	struct fault why;
	struct two two;

	(void)state;
	two_init(&two);
	two.b.date = NULL;
	assert_refused(&two, "b.dat: does not tell what time of day it was");
	two_init(&two);
	two.b.clock = "[counter]\n";
	assert_refused(&two, "b.dat: Clock=counter does not count nanoseconds");
	two_init(&two);
	two.b.formats = formats_rt;
	two.b.n_formats = ARRAY_SIZE(formats_rt);
	assert_refused(&two, "begin events with different fields");

	two_init(&two);
	two.fd_a = make(&two.tmp, "a.dat", &two.a);
	two.fd_b = openat(two.tmp.fd, "a.dat", O_RDONLY | O_CLOEXEC);
	assert_int_equal(two_merge(&two, &(struct merge_options){}, &report, &why), -EINVAL);
	assert_non_null(strstr(why.text, "are the same recording"));
	two_done(&two);

	two_init(&two);
	assert_int_equal(two_make(&two, &report, &why), 0);
	merge_report_done(&report);
	close(two.fd_b);
	two.fd_b = two.out;
	two.out = openat(two.tmp.fd, "again.dat", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(two_merge(&two, &(struct merge_options){}, &report, &why), -EINVAL);
	assert_non_null(strstr(why.text, "is merged already"));
	two_done(&two);
}

static void count_line(void *userdata, const char *line)
{
	assert_non_null(strstr(line, "sched/record/a.dat: offset 0x"));
	(*(unsigned *)userdata)++;
}

static void test_damaged(void **state)
{
	unsigned n = 0;
	const struct merge_options options = {.told = count_line, .userdata = &n};
	struct merge_report report;
	struct trace_dat *dat;
	struct fault why;
	struct two two;

	(void)state;
	two_init(&two);
	put_page(&two.pages_a, events_a + 1, 1);
	craft_set(&two.pages_a, PAGE + 16, 4, 0x7c); /* longer than the sub-buffer's events */
	assert_int_equal(two_make(&two, &report, &why), -EBADMSG);
	assert_int_equal(lseek(two.out, 0, SEEK_SET), 0);
	assert_int_equal(two_merge(&two, &options, &report, &why), 0);
	merge_report_done(&report);
	assert_int_equal(n, 1);
	assert_int_equal(trace_dat_open_fd(two.out, "out.dat", &dat, &why), 0);
	assert_lines(dat, "a:sched nginx|sshd 1001000000000 one 1\n"
			  "b:b nginx|sshd 1002000000000 two 3\n"
			  "b:b bash 1002000001000 three 4\n"
			  "a:sched nginx|sshd 1003000000000 two 2 missed\n");
	trace_dat_free(dat);
	two_done(&two);
}

/* --- times */

static struct axis_file clock_of(const char *clock, uint8_t boot, uint64_t realtime, uint64_t trace,
				 uint32_t maxerror)
{
	struct axis_file file = {.error = OWN_HOST_ERROR_UNKNOWN};
	struct own_clocks clocks;
	const uint8_t boot_id[16] = {boot};

	own_clocks_init(&clocks, clock, boot_id);
	(void)strncpy(file.clock, clock, sizeof(file.clock) - 1);
	(void)own_clocks_add(&clocks, &(struct own_clock){.realtime = realtime,
							  .trace = trace,
							  .maxerror = maxerror,
							  .width = 100});
	/* it drifted by 30 ns */
	(void)own_clocks_add(&clocks, &(struct own_clock){.realtime = realtime + SECOND,
							  .trace = trace + SECOND - 30,
							  .maxerror = maxerror,
							  .width = 100});
	(void)own_clocks_add(&clocks,
			     &(struct own_clock){.realtime = 1, .flags = OWN_CLOCK_NO_TRACE});
	axis_of_readings(&file, &clocks);
	return file;
}

static void test_axis(void **state)
{
	struct axis_file files[] = {
		clock_of("mono", 1, 5000 * SECOND, 10 * SECOND, 200),
		clock_of("mono", 2, 5000 * SECOND, 4000 * SECOND, 300),
		clock_of("mono", 1, 6000 * SECOND, 10 * SECOND, 200), /* was set meanwhile */
		clock_of("boot", 1, 5000 * SECOND, 20 * SECOND, 200),
		{.offset = 2000 * (int64_t)SECOND, .error = OWN_HOST_ERROR_UNKNOWN},
		{.offset = 2001 * (int64_t)SECOND, .error = OWN_HOST_ERROR_UNKNOWN},
	};

	struct fault why;
	size_t best;

	(void)state;
	assert_int_equal(files[0].error, 200000 + 50 + 30);
	for (size_t i = 4; i < 6; i++) {
		(void)strcpy(files[i].clock, "mono");
		files[i].has_date = true;
	}
	assert_int_equal(axis_place(files, ARRAY_SIZE(files), &best, &why), 0);
	assert_int_equal(best, 1);
	assert_int_equal(files[1].moved, 0);
	assert_int_equal(files[0].moved, 3990 * SECOND);
	assert_int_equal(files[2].moved, files[0].moved);
	assert_int_equal(files[2].same_as, 0);
	assert_int_equal(files[3].moved, 3980 * SECOND);
	assert_int_equal(files[3].same_as, 3);
	assert_int_equal(files[4].moved, 1000 * SECOND - 30);
	assert_int_equal(files[5].same_as, 5); /* not known to be the same boot */
}

/* --- hosts and guests */

static void put_option(struct craft *c, uint16_t id, uint32_t size)
{
	craft_number(c, 2, id);
	craft_number(c, 4, size);
}

static void put_id(struct craft *c, uint64_t id)
{
	put_option(c, 11, 8);
	craft_number(c, 8, id);
}

/* A cycle has @mult / 4 ns */
static void put_nsec(struct craft *c, uint32_t mult)
{
	put_option(c, 14, 16);
	craft_number(c, 4, mult);
	craft_number(c, 4, 2);
	craft_number(c, 8, 77); /* for trace-cmd only */
}

/* As trace-cmd attach does it, for a CPU */
static void put_shift(struct craft *c, uint64_t host, uint64_t offset, uint64_t scaling,
		      uint64_t fraction)
{
	put_option(c, 12, 16 + 4 + 4 * 8);
	craft_number(c, 8, host);
	craft_number(c, 4, 0);
	craft_number(c, 4, 1);
	craft_number(c, 4, 1);
	craft_number(c, 8, 0);
	craft_number(c, 8, offset);
	craft_number(c, 8, scaling);
	craft_number(c, 8, fraction);
}

/* a: the host, b: its guest, whose TSC is twice as fast; cycle 100 of the host is its cycle 0 */
static const struct event tsc_a[] = {{1000, 10, 7, 1}, {3000, 11, 7, 2}, {3002, 11, 7, 2}};
static const struct event tsc_b[] = {{1800, 10, 7, 3}, {5805, 11, 8, 4}};

struct guest {
	struct two two;
	struct craft options_a, options_b;
};

static void guest_init(struct guest *g)
{
	two_init(&g->two);
	g->options_a = g->options_b = native();
	put_id(&g->options_a, 0xaaaa);
	put_id(&g->options_b, 0xbbbb);
	craft_done(&g->two.pages_a);
	craft_done(&g->two.pages_b);
	g->two.pages_a = g->two.pages_b = native();
	put_page(&g->two.pages_a, tsc_a, 3);
	put_page(&g->two.pages_b, tsc_b, 2);
	g->two.a.clock = g->two.b.clock = "[x86-tsc]\n";
	g->two.a.date = g->two.b.date = NULL;
	g->two.a.options = &g->options_a;
	g->two.b.options = &g->options_b;
}

static void guest_done(struct guest *g)
{
	craft_done(&g->options_a);
	craft_done(&g->options_b);
	two_done(&g->two);
}

/* @said: nothing if it is refused */
static void guest_merged(struct guest *g, const char *said, const char *lines)
{
	struct merge_report report;
	struct trace_dat *dat;
	struct fault why;

	if (two_make(&g->two, &report, &why) < 0)
		fail_msg("%s", why.text);
	assert_string_equal(report.text, said);
	merge_report_done(&report);
	assert_int_equal(trace_dat_open_fd(g->two.out, "out.dat", &dat, &why), 0);
	assert_lines(dat, lines);
	trace_dat_free(dat);
	guest_done(g);
}

static void guest_refused(struct guest *g, const char *text)
{
	struct merge_report report;
	struct fault why;

	assert_true(two_make(&g->two, &report, &why) < 0);
	if (!strstr(why.text, text))
		fail_msg("%s, not: %s", why.text, text);
	guest_done(g);
}

#define CYCLES                            \
	"a:sched nginx|sshd 1000 one 1\n" \
	"b:b nginx|sshd 1000 two 3\n"     \
	"a:sched nginx|sshd 3000 two 2\n" \
	"a:sched nginx|sshd 3002 two 2\n" \
	"b:b bash 3002 three 4\n"
#define NANOSECONDS                      \
	"a:sched nginx|sshd 250 one 1\n" \
	"b:b nginx|sshd 250 two 3\n"     \
	"a:sched nginx|sshd 750 two 2\n" \
	"a:sched nginx|sshd 750 two 2\n" \
	"b:b bash 750 three 4\n"

static void test_guest(void **state)
{
	struct guest g;

	(void)state;
	/* how long a cycle is nobody knows, nor does it matter */
	guest_init(&g);
	put_shift(&g.options_b, 0xaaaa, 100, 1, 1);
	guest_merged(&g,
		     "flyrec merge: times by the clock of a:sched (x86-tsc)\n"
		     "a:sched: not moved, not known how right its clock was\n"
		     "b:b: not moved, by TSC offset the clock of a:sched\n",
		     CYCLES);

	/* the host knows it, and not its guest */
	guest_init(&g);
	put_nsec(&g.options_a, 1);
	put_nsec(&g.options_b, 3);
	put_shift(&g.options_b, 0xaaaa, 100, 1, 1);
	guest_merged(&g,
		     "flyrec merge: times by the clock of a:sched (tsc2nsec)\n"
		     "a:sched: not moved, not known how right its clock was\n"
		     "b:b: not moved, by TSC offset the clock of a:sched\n",
		     NANOSECONDS);

	/* the last option counts; two guests of a host that is not there */
	guest_init(&g);
	put_shift(&g.options_a, 0xcccc, 0, 1, 0);
	put_shift(&g.options_b, 0xcccc, 7, 1, 0);
	put_shift(&g.options_b, 0xcccc, 100, 1, 1);
	guest_merged(&g,
		     "flyrec merge: times by the clock of a:sched (x86-tsc)\n"
		     "a:sched: not moved, by TSC offset the clock of its host\n"
		     "b:b: not moved, by TSC offset the clock of a:sched\n",
		     CYCLES);
}

/* Of trace-cmd, whose files have no ids by themselves */
static void test_guest_given(void **state)
{
	static const struct event tsc[] = {{1100, 10, 7, 3}, {3102, 11, 8, 4}};
	struct guest g;

	(void)state;
	guest_init(&g);
	g.options_a.size = g.options_b.size = 0;
	g.two.pages_b.size = 0;
	put_page(&g.two.pages_b, tsc, 2);
	g.two.tsc_offset = 100;
	guest_merged(&g,
		     "flyrec merge: times by the clock of a:sched (x86-tsc)\n"
		     "a:sched: not moved, not known how right its clock was\n"
		     "b:b: not moved, by TSC offset the clock of a:sched\n",
		     CYCLES);

	guest_init(&g);
	g.two.a.clock = "[mono]\n";
	g.two.tsc_offset = 100;
	guest_refused(&g,
		      "b.dat: the first file that is no guest's is to be that of its host, with "
		      "the same clock");
}

static void test_guest_refused(void **state)
{
	struct guest g;

	(void)state;
	/* another host's */
	guest_init(&g);
	put_shift(&g.options_b, 0xcccc, 100, 1, 1);
	guest_refused(&g,
		      "a.dat: Clock=x86-tsc does not count nanoseconds, nor says option TSC2NSEC "
		      "how long a cycle is");
	guest_init(&g);
	put_nsec(&g.options_a, 1);
	put_nsec(&g.options_b, 1);
	put_shift(&g.options_b, 0xcccc, 100, 1, 1);
	g.two.a.date = "0x3b9aca00";
	g.two.b.date = "0x3b9aca00"; /* of its own clock */
	guest_refused(&g, "b.dat: is of a KVM guest; when it was, only the file of its host tells, "
			  "which has the trace id 0xcccc");
	/* not known to be of one boot */
	guest_init(&g);
	put_nsec(&g.options_a, 1);
	put_nsec(&g.options_b, 1);
	guest_refused(&g, "a.dat: does not tell what time of day it was");
	guest_init(&g);
	put_nsec(&g.options_a, 5);
	put_shift(&g.options_b, 0xaaaa, 100, 1, 1);
	guest_refused(&g, "a.dat: its clock is slower than that of the new file");
	guest_init(&g);
	put_shift(&g.options_b, 0xaaaa, 100, 3, 1);
	guest_refused(&g, "b.dat: its clock is slower than that of the new file");
	guest_init(&g);
	put_shift(&g.options_b, 0xaaaa, 100, 0, 1);
	guest_refused(&g, "b.dat: option TIME_SHIFT has a scaling of 0");
}

/* Of one boot; the days are the host's */
static void test_guest_date(void **state)
{
	static const uint8_t boot[16] = {1};
	struct merge_report report;
	struct trace_dat *dat;
	struct fault why;
	struct guest g;

	(void)state;
	guest_init(&g);
	put_nsec(&g.options_b, 1);
	put_shift(&g.options_b, 0xaaaa, 100, 1, 1);
	g.two.a.date = "0x3b9aca00";
	g.two.b.date = "0x3b9aca01";
	g.two.a.boot_id = boot; /* which knows mono only: it is of this boot, too */
	assert_int_equal(two_make(&g.two, &report, &why), 0);
	merge_report_done(&report);
	assert_int_equal(trace_dat_open_fd(g.two.out, "out.dat", &dat, &why), 0);
	assert_lines(dat, "a:sched nginx|sshd 1000000000250 one 1\n"
			  "b:b nginx|sshd 1000000000250 two 3\n"
			  "a:sched nginx|sshd 1000000000750 two 2\n"
			  "a:sched nginx|sshd 1000000000750 two 2\n"
			  "b:b bash 1000000000750 three 4\n");
	trace_dat_free(dat);
	guest_done(&g);
}

/* --- names */

static char *names_of(struct merge_names *names, size_t room)
{
	size_t shared;
	char *text, *end;

	assert_int_equal(merge_names_put(names, room, &text, &shared), 0);
	text = realloc(text, room + 1);
	assert_non_null(text);
	text[room] = '\0';
	end = strstr(text, "\n\n");
	assert_non_null(end);
	end[1] = '\0';
	merge_names_free(names);
	return text;
}

static void test_names(void **state)
{
	struct merge_names *names = merge_names_new();
	uint8_t *one = calloc(1, SUBBUF_MOVE_PIDS / 8), *two = calloc(1, SUBBUF_MOVE_PIDS / 8);
	char *text;

	(void)state;
	assert_non_null(names);
	assert_non_null(one);
	assert_non_null(two);
	one[0] = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6;
	two[0] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7;
	assert_int_equal(merge_names_add(names, 0, "1 init\n2 a\n3 c\n4 x\n5 e\n9 n\n", one), 0);
	assert_int_equal(merge_names_add(names, 1, "1 init\n2 b\n3 y\n4 d\n9 m\n", two), 0);
	text = names_of(names, 200);
	/* 3 and 4 have events on one host only; 5 has no name on the other, 6 on neither, 7 is on
	 * one */
	assert_string_equal(text, "1 init\n2 a|b\n3 c\n4 d\n5 e|<...>\n6 <...>\n9 n|m\n");
	free(text);

	names = merge_names_new();
	assert_non_null(names);
	assert_int_equal(merge_names_add(names, 0, "1 a\n22 bbbbbbbb\n", one), 0);
	text = names_of(names, 8); /* no room for the second */
	assert_string_equal(text, "1 a\n");
	free(text);
	free(one);
	free(two);
}

/* --- lines in flyrec's own section */

static void test_hosts(void **state)
{
	static const char *const bad[] = {
		"1\t2\t3\th\n",			      /* a column is missing */
		"1\t2\t3\th\tn\tm\n",		      /* one too many */
		"x\t2\t3\th\tn\n",		      /* no number */
		"1\t-2\t3\th\tn\n",		      /* likewise */
		"1\t2\t99999999999999999999\th\tn\n", /* too large */
		"1\t2\t3\th\tn",		      /* no end */
	};
	struct own_hosts hosts = {}, again;
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(own_hosts_add(&hosts, &(struct own_host){(char *)"web\t1", (char *)"a\n",
								  0xabc, 12, 34}),
			 0);
	assert_int_equal(
		own_hosts_add(&hosts, &(struct own_host){(char *)"db", (char *)"b", 1, UINT64_MAX,
							 OWN_HOST_ERROR_UNKNOWN}),
		0);
	assert_int_equal(own_hosts_put(&hosts, &text, &size), 0);
	assert_int_equal(own_hosts_take(text, size, &again), 0);
	free(text);
	assert_int_equal(again.n, 2);
	assert_string_equal(again.list[0].host, "web 1");
	assert_string_equal(again.list[0].name, "a\\n");
	assert_int_equal(again.list[0].frame, 0xabc);
	assert_int_equal(again.list[0].error, 34);
	assert_int_equal(again.list[1].moved, UINT64_MAX);
	assert_int_equal(again.list[1].error, OWN_HOST_ERROR_UNKNOWN);
	own_hosts_done(&again);
	own_hosts_done(&hosts);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		text = strdup(bad[i]);
		assert_int_equal(own_hosts_take(text, strlen(text), &again), -EBADMSG);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merged),	      cmocka_unit_test(test_frames),
		cmocka_unit_test(test_same_symbols),  cmocka_unit_test(test_apart),
		cmocka_unit_test(test_refused),	      cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_axis),	      cmocka_unit_test(test_names),
		cmocka_unit_test(test_hosts),	      cmocka_unit_test(test_guest),
		cmocka_unit_test(test_guest_refused), cmocka_unit_test(test_guest_date),
		cmocka_unit_test(test_guest_given),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
