/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* In which order events come, what is left out, and what is said of losses and names */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basic/io.h"
#include "decode/event-stream.h"
#include "tests/unit/craft-formats.h"

#define PAGE 4096

struct fixture {
	int fd;
	struct trace_dat *dat;
	struct decoder *decoder;
};

/*
 * cpu 0: 1010, 1020, 1030 and 2000; cpu 1: 1507 and 1514, 5 lost before; cpu 1 of another ring
 * buffer: 1603
 */
static void setup(struct fixture *f)
{
	struct craft c = {.commit_size = 8};
	struct craft_dat at;

	craft_dat(&c, NULL, "other", &at);
	craft_open(&c, &f->fd, &f->dat, &f->decoder);
}

static void teardown(struct fixture *f)
{
	craft_close(f->fd, f->dat, f->decoder);
}

static void poke(struct fixture *f, uint32_t buffer, uint32_t cpu, uint64_t at, uint64_t value)
{
	assert_int_equal(io_pwrite_all(f->fd, &value, sizeof(value),
				       f->dat->buffers[buffer].regions[cpu].offset + at),
			 0);
}

static struct event_stream *open_stream(struct fixture *f, const struct event_stream_config *config)
{
	struct event_stream *stream = NULL;
	struct fault why = {};

	if (event_stream_new(f->decoder, config, &stream, &why) < 0)
		fail_msg("%s", why.text);
	return stream;
}

/* The next ones are "TIME/BUFFER.CPU" */
static void expect(struct event_stream *stream, const char *wanted)
{
	struct decode_event event;
	struct fault why = {};
	char text[512] = "";
	int r;

	while ((r = event_next(stream, &event, &why)) > 0)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
			       "%s%" PRIu64 "/%" PRIu32 ".%" PRIu32, *text ? " " : "", event.ts,
			       event.buffer, event.cpu);
	assert_int_equal(r, 0);
	assert_string_equal(text, wanted);
}

/* The other way to take them */
static void expect_runs(struct event_stream *stream, const char *wanted)
{
	struct fault why = {};
	struct event_run run;
	char text[512] = "";
	int r;

	while ((r = event_stream_run(stream, &run, &why)) > 0)
		for (size_t i = 0; i < run.n; i++)
			(void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
				       "%s%" PRIu64 "/%" PRIu32 ".%" PRIu32, *text ? " " : "",
				       run.events[i].ts, run.buffer, run.cpu);
	assert_int_equal(r, 0);
	assert_string_equal(text, wanted);
}

static void expect_all(struct fixture *f, const struct event_stream_config *config,
		       const char *wanted)
{
	struct event_stream *stream = open_stream(f, config);

	expect(stream, wanted);
	expect(stream, ""); /* and no more */
	event_stream_free(stream);
	if (config->pair_leaves)
		return;
	stream = open_stream(f, config);
	expect_runs(stream, wanted);
	expect_runs(stream, "");
	event_stream_free(stream);
}

/* Both in turns, up to a time; a run ends where another CPU comes first */
static void test_runs(void **state)
{
	struct event_stream *stream;
	struct decode_event event;
	struct fault why = {};
	struct event_run run;
	struct fixture f;
	uint64_t next;

	setup(&f);
	stream = open_stream(&f, &(struct event_stream_config){});
	event_stream_until(stream, 1020);
	expect_runs(stream, "1010/0.0 1020/0.0");
	event_stream_until(stream, UINT64_MAX);
	assert_int_equal(event_next(stream, &event, &why), 1);
	assert_int_equal(event.ts, 1030);
	assert_int_equal(event_stream_run(stream, &run, &why), 1);
	assert_int_equal(run.n, 2);
	assert_int_equal(run.cpu, 1);
	assert_int_equal(run.events[1].ts, 1514);
	assert_int_equal(event_peek(stream, &next, &why), 1);
	assert_int_equal(next, 1603);
	expect(stream, "1603/1.1 2000/0.0");
	event_stream_free(stream);
	teardown(&f);
}

static void test_order(void **state)
{
	const struct event_stream_config config = {};
	struct fixture f;

	setup(&f);
	expect_all(&f, &config, "1010/0.0 1020/0.0 1030/0.0 1507/0.1 1514/0.1 1603/1.1 2000/0.0");
	/* equal times: the lower buffer first, then the lower cpu */
	poke(&f, 0, 1, 0, 1003);
	poke(&f, 1, 1, 0, 1007);
	expect_all(&f, &config, "1010/0.0 1010/0.1 1010/1.1 1017/0.1 1020/0.0 1030/0.0 2000/0.0");
	/* also in the middle of a run */
	poke(&f, 0, 1, 0, 1006);
	expect_all(&f, &config, "1010/0.0 1010/1.1 1013/0.1 1020/0.0 1020/0.1 1030/0.0 2000/0.0");
	teardown(&f);
}

static int64_t first_missed(struct fixture *f)
{
	struct event_stream *stream = open_stream(f, &(struct event_stream_config){});
	struct decode_event event;
	struct fault why = {};
	int64_t missed = 0;

	for (unsigned n = 0; event_next(stream, &event, &why) > 0; n++) {
		/* told once, of the event behind the gap */
		assert_int_equal(event.missed != 0, event.ts == 1507);
		missed += event.missed;
	}
	event_stream_free(stream);
	return missed;
}

static void test_losses(void **state)
{
	struct fixture f;
	uint64_t commit;

	setup(&f);
	assert_int_equal(first_missed(&f), 5);
	/* how many is not stored */
	assert_int_equal(io_pread_all(f.fd, &commit, 8, f.dat->buffers[0].regions[1].offset + 8),
			 0);
	poke(&f, 0, 1, 8, commit & ~(UINT64_C(1) << 30));
	assert_int_equal(first_missed(&f), -1);
	teardown(&f);
}

static unsigned n_told;
static char told[256];

static void on_fault(const char *text)
{
	n_told++;
	(void)snprintf(told, sizeof(told), "%s", text);
}

static void test_broken(void **state)
{
	struct event_stream_config config = {.on_fault = on_fault};
	struct event_stream *stream;
	struct fixture f;

	setup(&f);
	poke(&f, 0, 0, 8, 5000);
	stream = open_stream(&f, &config);
	expect(stream, "1507/0.1 1514/0.1 1603/1.1 2000/0.0");
	assert_int_equal(event_stream_faults(stream), 1);
	assert_int_equal(n_told, 1);
	assert_non_null(strstr(told, "f: offset 0x"));
	assert_non_null(strstr(told, ": cpu 0: a commit of 5000 bytes"));
	event_stream_free(stream);
	teardown(&f);
}

static void expect_filtered(struct fixture *f, struct event_filter *filter, const char *wanted)
{
	struct fault why = {};
	int r = event_filter_prepare(filter, f->decoder, &why);

	if (wanted) {
		if (r < 0)
			fail_msg("%s", why.text);
		expect_all(f, &(struct event_stream_config){.filter = filter}, wanted);
	} else {
		assert_int_equal(r, -EINVAL);
		assert_non_null(strchr(why.text, ':'));
	}
	event_filter_done(filter);
}

static void test_filter(void **state)
{
	static const char all[] = "1010/0.0 1020/0.0 1030/0.0 1507/0.1 1514/0.1 1603/1.1 2000/0.0";
	static const struct {
		const char *events;
		bool lenient;
		const char *wanted; /* NULL: refused */
	} cases[] = {
		{"demo:hello", false, all},  {"demo", false, all},    {"hello", false, all},
		{"de*:h?l*", false, all},    {"h[a-f]*", false, all}, {"none,hello", true, all},
		{"none", true, ""},	     {"none", false, NULL},   {"demo:h", false, NULL},
		{"hello,none", false, NULL},
	};
	struct event_filter filter = {};
	struct fixture f;

	setup(&f);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		filter.lenient = cases[i].lenient;
		assert_int_equal(event_filter_event(&filter, cases[i].events), 0);
		expect_filtered(&f, &filter, cases[i].wanted);
	}
	assert_int_equal(event_filter_event(&filter, "no$name"), -EINVAL);
	assert_int_equal(event_filter_event(&filter, ","), -EINVAL);
	assert_int_equal(event_filter_pids(&filter, "-1"), -EINVAL);
	event_filter_done(&filter);
	/* all are of one task */
	assert_int_equal(event_filter_pids(&filter, "1234567"), 0);
	expect_filtered(&f, &filter, "");
	assert_int_equal(event_filter_cpus(&filter, "1-3"), 0);
	expect_filtered(&f, &filter, "1507/0.1 1514/0.1 1603/1.1");
	assert_int_equal(event_filter_cpus(&filter, "2"), 0);
	expect_filtered(&f, &filter, NULL);
	/* as they are shown: microseconds, rounded */
	assert_int_equal(event_filter_time(&filter.since, "0.000002"), 0);
	expect_filtered(&f, &filter, "1507/0.1 1514/0.1 1603/1.1 2000/0.0");
	assert_int_equal(event_filter_time(&filter.until, "0.000001"), 0);
	expect_filtered(&f, &filter, "1010/0.0 1020/0.0 1030/0.0");
	/* the file has no date */
	assert_int_equal(event_filter_time(&filter.since, "yesterday"), 0);
	expect_filtered(&f, &filter, NULL);
	teardown(&f);
}

/* What the filter does not want is there for who learns from it, but not of other CPUs */
static void test_all(void **state)
{
	struct event_filter filter = {.from = 2000, .to = UINT64_MAX};
	struct event_stream_config config = {.filter = &filter, .all = true};
	struct fixture f;

	setup(&f);
	/* whole sub-buffers are skipped */
	expect_all(&f, &config, "1010/0.0 1020/0.0 1030/0.0 1507/0.1 1514/0.1 1603/1.1 2000/0.0");
	filter.from = 2001;
	expect_all(&f, &config, "1507/0.1 1514/0.1 1603/1.1 2000/0.0");
	assert_int_equal(event_filter_cpus(&filter, "0"), 0);
	expect_all(&f, &config, "2000/0.0");
	event_filter_done(&filter);
	teardown(&f);
}

/* cpu 1's come 500 earlier, and one of them is none */
static bool key_of(void *userdata, const struct decode_event *event, uint64_t *ret)
{
	*ret = event->cpu == 1 ? event->ts - *(uint64_t *)userdata : event->ts;
	return event->ts != 1514;
}

static void test_key(void **state)
{
	struct event_filter filter = {.from = 1015, .to = 1999};
	struct event_stream *stream;
	struct fixture f;
	uint64_t less = 500;

	setup(&f);
	stream = open_stream(&f, &(struct event_stream_config){});
	event_stream_order(stream, key_of, &less);
	expect(stream, "1507/0.1 1010/0.0 1020/0.0 1030/0.0 1603/1.1 2000/0.0");
	event_stream_free(stream);
	stream = open_stream(&f, &(struct event_stream_config){.filter = &filter});
	event_stream_order(stream, key_of, &less);
	expect(stream, "1507/0.1 1020/0.0 1030/0.0 1603/1.1");
	event_stream_free(stream);
	teardown(&f);
}

static void test_growing(void **state)
{
	uint64_t sizes[2] = {PAGE + 17, 0}, ts = 0;
	struct event_stream *stream;
	struct fault why = {};
	struct fixture f;

	setup(&f);
	stream = open_stream(&f, &(struct event_stream_config){.sizes = sizes});
	assert_int_equal(event_stream_left(stream), PAGE);
	event_stream_until(stream, 1020);
	assert_int_equal(event_peek(stream, &ts, &why), 1);
	assert_int_equal(ts, 1010);
	expect(stream, "1010/0.0 1020/0.0");
	assert_int_equal(event_peek(stream, &ts, &why), 0);
	event_stream_until(stream, UINT64_MAX);
	expect(stream, "1030/0.0");
	assert_int_equal(event_stream_left(stream), 0);
	/* what is there is asked for when it is said to be there */
	sizes[0] = sizes[1] = 2 * PAGE;
	sizes[1] = PAGE;
	expect(stream, "");
	event_stream_grow(stream, sizes);
	assert_int_equal(event_stream_left(stream), 2 * PAGE);
	expect(stream, "1507/0.1 1514/0.1 2000/0.0");
	sizes[0] = 0; /* less than before is none of ours */
	event_stream_grow(stream, sizes);
	assert_int_equal(event_stream_left(stream), 0);
	expect(stream, "");
	event_stream_free(stream);
	teardown(&f);
}

/* The data from elsewhere: of cpu 0 a sub-buffer at a time, each when it is there */
struct elsewhere {
	struct fixture *f;
	unsigned there, given;
};

static ssize_t read_elsewhere(void *userdata, uint32_t cpu, uint8_t *bytes, size_t size,
			      struct fault *why)
{
	struct elsewhere *e = userdata;
	uint64_t at = e->f->dat->buffers[0].regions[0].offset + e->given * (uint64_t)PAGE;

	assert_true(size >= PAGE);
	if (cpu != 0 || e->given == e->there)
		return e->there > 2 ? fault_set(why, -EIO, "gone") : 0;
	e->given++;
	assert_int_equal(io_pread_all(e->f->fd, bytes, PAGE, at), 0);
	return PAGE;
}

static void test_read(void **state)
{
	struct elsewhere e = {.there = 1};
	struct event_stream *stream;
	struct fault why = {};
	struct event_run run;
	struct fixture f;

	setup(&f);
	e.f = &f;
	stream = open_stream(&f,
			     &(struct event_stream_config){.read = read_elsewhere, .userdata = &e});
	expect_runs(stream, "1010/0.0 1020/0.0 1030/0.0");
	e.there = 2;
	expect_runs(stream, "");
	event_stream_grow(stream, NULL);
	expect_runs(stream, "2000/0.0");
	assert_int_equal(event_stream_left(stream), 0);
	e.there = 3;
	e.given = 3;
	event_stream_grow(stream, NULL);
	assert_int_equal(event_stream_run(stream, &run, &why), -EIO);
	event_stream_free(stream);
	teardown(&f);
}

/* None of them is wanted, but what tells of a loss */
static void test_pick(void **state)
{
	static struct subbuf_pick pick;
	struct event_stream_config config = {.pick = &pick};
	struct event_stream *stream;
	struct fixture f;

	setup(&f);
	stream = open_stream(&f, &config);
	expect_runs(stream, "1507/0.1");
	event_stream_free(stream);
	pick.ids[CRAFT_EVENT_ID] = SUBBUF_PICK_ALL;
	stream = open_stream(&f, &config);
	expect_runs(stream, "1010/0.0 1020/0.0 1030/0.0 1507/0.1 1514/0.1 1603/1.1 2000/0.0");
	event_stream_free(stream);
	teardown(&f);
}

/* Events stay until their blocks are let go of, whatever is read meanwhile */
static void test_keep(void **state)
{
	struct event_stream_config config = {.memory = 1}; /* a sub-buffer at a time */
	struct decode_event events[7];
	struct event_keep odd = {}, even = {};
	struct event_stream *stream;
	struct fault why = {};
	struct fixture f;
	uint8_t bytes[16];

	setup(&f);
	stream = open_stream(&f, &config);
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(event_next_keep(stream, i % 2 ? &odd : &even, &events[i], &why),
				 1);
	assert_int_equal(event_next_keep(stream, &odd, &events[0], &why), 0);
	assert_int_equal(even.n, 4); /* cpu 0's two, cpu 1's two */
	assert_int_equal(odd.n, 3);
	event_keep_clear(&odd);
	for (unsigned i = 0; i < 7; i += 2) {
		assert_int_equal(io_pread_all(f.fd, bytes, sizeof(bytes), events[i].offset), 0);
		assert_memory_equal(events[i].data, bytes, sizeof(bytes));
		assert_int_equal(events[i].id, CRAFT_EVENT_ID);
	}
	event_keep_done(&even);
	event_keep_done(&odd);
	event_stream_free(stream);
	teardown(&f);
}

static const struct craft_format formats[] = {
	{"ftrace", "name: funcgraph_entry\nID: 11\n" CRAFT_COMMON_FIELDS
		   "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
		   "\tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n"
		   "\nprint fmt: \"--> %lx (%d)\", REC->func, REC->depth\n"},
	{"ftrace", "name: funcgraph_exit\nID: 10\n" CRAFT_COMMON_FIELDS
		   "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n"
		   "\tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n"
		   "\nprint fmt: \"<-- %lx (%d)\", REC->func, REC->depth\n"},
	{"sched", "name: sched_wakeup\nID: 100\n" CRAFT_COMMON_FIELDS
		  "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		  "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		  "\nprint fmt: \"comm=%s pid=%d\", REC->comm, REC->pid\n"},
};

static void put_head(struct craft *c, unsigned words, uint16_t id, uint32_t pid)
{
	craft_head(c, words, 10);
	craft_number(c, 2, id);
	craft_number(c, 2, 0);
	craft_number(c, 4, pid);
}

static void put_wakeup(struct craft *c, uint32_t by, const char *comm, uint32_t pid)
{
	char name[16] = "";

	memcpy(name, comm, strlen(comm));
	put_head(c, 7, 100, by);
	craft_bytes(c, name, sizeof(name));
	craft_number(c, 4, pid);
}

static void put_call(struct craft *c, uint16_t id, uint64_t func)
{
	put_head(c, 5, id, 1);
	craft_number(c, 8, func);
	craft_number(c, 4, 0);
}

static void open_pages(struct fixture *f, struct craft *pages)
{
	const struct craft_file file = {.formats = formats,
					.n_formats = ARRAY_SIZE(formats),
					.cmdlines = "1 init\n",
					.pages = pages};
	struct craft c = {.commit_size = 8};

	craft_file(&c, &file);
	craft_done(pages);
	craft_open(&c, &f->fd, &f->dat, &f->decoder);
}

/* A name is known from the event on that tells it, also if that is not wanted; each stream anew */
static void test_names(void **state)
{
	struct event_filter filter = {.to = UINT64_MAX};
	struct craft pages = {.commit_size = 8};
	size_t page = craft_page_begin(&pages, 1000);
	struct fault why = {};
	struct fixture f;

	put_wakeup(&pages, 7, "other", 1);
	put_wakeup(&pages, 1, "seven", 7);
	put_wakeup(&pages, 7, "late", 7);
	craft_page_end(&pages, page, PAGE, 0);
	open_pages(&f, &pages);
	assert_int_equal(event_filter_pids(&filter, "7"), 0);
	for (unsigned round = 0; round < 2; round++) {
		struct event_stream *stream =
			open_stream(&f, &(struct event_stream_config){.filter = &filter});
		struct decode_event event;
		const struct task_name *before;

		assert_int_equal(event_next(stream, &event, &why), 1);
		before = event.task;
		assert_false(before->known);
		assert_int_equal(event_next(stream, &event, &why), 1);
		assert_string_equal(event.task->text, "seven");
		assert_false(before->known); /* it stays as it was for who has it */
		assert_int_equal(event_stream_rename(stream, 7, "eight"), 0);
		assert_int_equal(event_stream_task(stream, &event), 0);
		assert_string_equal(event.task->text, "eight");
		event_stream_free(stream);
	}
	event_filter_done(&filter);
	teardown(&f);
}

static void test_leaves(void **state)
{
	struct event_stream_config config = {.pair_leaves = true};
	struct craft pages = {.commit_size = 8};
	size_t page = craft_page_begin(&pages, 1000);
	struct event_filter filter = {};
	struct event_stream *stream;
	struct fault why = {};
	struct fixture f;

	put_call(&pages, 11, 0xa);
	put_call(&pages, 11, 0xb);
	put_call(&pages, 10, 0xb);
	put_call(&pages, 10, 0xa);
	craft_page_end(&pages, page, PAGE, 0);
	open_pages(&f, &pages);
	expect_all(&f, &config, "1010/0.0 1020/0.0 1040/0.0");
	/* the end of one that is not wanted is not, either */
	config.filter = &filter;
	assert_int_equal(event_filter_event(&filter, "funcgraph_exit"), 0);
	assert_int_equal(event_filter_prepare(&filter, f.decoder, &why), 0);
	expect_all(&f, &config, "1040/0.0");
	config.pair_leaves = false;
	expect_all(&f, &config, "1030/0.0 1040/0.0");
	event_filter_done(&filter);
	/* one that is not there yet */
	config = (struct event_stream_config){.pair_leaves = true};
	stream = open_stream(&f, &config);
	event_stream_until(stream, 1020);
	expect(stream, "1010/0.0 1020/0.0");
	event_stream_until(stream, UINT64_MAX);
	expect(stream, "1030/0.0 1040/0.0");
	event_stream_free(stream);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),   cmocka_unit_test(test_order),
		cmocka_unit_test(test_losses), cmocka_unit_test(test_broken),
		cmocka_unit_test(test_filter), cmocka_unit_test(test_all),
		cmocka_unit_test(test_key),    cmocka_unit_test(test_growing),
		cmocka_unit_test(test_read),   cmocka_unit_test(test_pick),
		cmocka_unit_test(test_keep),   cmocka_unit_test(test_names),
		cmocka_unit_test(test_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
