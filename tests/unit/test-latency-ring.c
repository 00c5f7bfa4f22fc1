/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is new in a mapped ring buffer is given out once, and what is missing is said */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "basic/io.h"
#include "daemon/latency/latency-ring.h"
#include "tests/unit/ring-map-fixture.h"

#define RING  6U /* sub-buffers, of which 0 is the reader's */
#define BEGAN (100 * NSEC_PER_SEC)
#define STEP  10U /* nanoseconds between two events */
#define EVENT 8U  /* bytes */
#define MOST  64U

struct test {
	struct ring kernel;
	struct latency_ring *ring;
	struct latency_ring_feed feed;
	int stats_fd;
	unsigned events; /* that the kernel has counted */
	/* given out by a look */
	uint64_t times[MOST];
	unsigned n, missed;
};

static void set_stats(struct test *t, unsigned overrun)
{
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "entries: %u\noverrun: %u\ncommit overrun: 0\nbytes: 1\noldest event ts: "
			 "1.000000\nnow ts: 100.000000\ndropped events: 0\nread events: 0\n",
			 t->events - overrun, overrun);

	assert_int_equal(ftruncate(t->stats_fd, 0), 0);
	assert_true(io_pwrite_all(t->stats_fd, text, (size_t)n, 0) >= 0);
}

/* One more at the end of a sub-buffer, which begins with the first one's time */
static void add_event(struct test *t, unsigned id, uint64_t time)
{
	unsigned long *commit = ring_commit(&t->kernel, id);
	uint64_t *timestamp = ring_timestamp(&t->kernel, id);
	const uint32_t words[2] = {1U | (*commit ? STEP : 0) << 5, 7};
	char *at = t->kernel.data + (size_t)id * t->kernel.subbuf + DATA + *commit;

	if (*commit == 0)
		*timestamp = time;
	memcpy(at, words, sizeof(words));
	*commit += EVENT;
	t->events++;
}

static void add(struct test *t, const char *subbuf)
{
	const struct subbuf_layout layout = subbuf_layout_native(PAGE);
	struct subbuf_event event;
	struct subbuf_fault fault;
	struct subbuf_iter iter;

	assert_int_equal(subbuf_iter_init(&layout, subbuf, &iter, &fault), 0);
	t->missed += iter.header.missed;
	while (subbuf_iter_next(&iter, &event, &fault) > 0) {
		assert_true(t->n < MOST);
		t->times[t->n++] = event.ts;
	}
}

static void look(struct test *t)
{
	char subbufs[2 * PAGE];
	int n;

	t->n = t->missed = 0;
	latency_ring_look(t->ring);
	while ((n = latency_ring_read(t->ring, 0, subbufs, 2)) > 0)
		for (int i = 0; i < n; i++)
			add(t, subbufs + (size_t)i * PAGE);
	assert_int_equal(n, 0);
	latency_ring_leave(t->ring);
}

static void setup(struct test *t)
{
	*t = (struct test){.stats_fd = memfd_create("stats", MFD_CLOEXEC)};
	assert_true(t->stats_fd >= 0);
	ring_make(&t->kernel, PAGE, RING);
	t->feed = (struct latency_ring_feed){
		.n_cpus = 1,
		.subbuf_size = PAGE,
		.trace_fds = &t->kernel.fd,
		.stats_fds = &t->stats_fd,
	};
	set_stats(t, 0);
	assert_int_equal(latency_ring_new(&t->feed, &t->ring), 0);
}

static void teardown(struct test *t)
{
	latency_ring_free(t->ring);
	ring_done(&t->kernel);
	close(t->stats_fd);
}

static void test_new_parts(void **state)
{
	uint64_t time = BEGAN + 1, next = BEGAN + 1;
	struct test t;

	setup(&t);
	look(&t);
	assert_int_equal(t.n, 0);
	/* nothing twice, nothing left out: more in one sub-buffer, then the next one, too */
	for (unsigned round = 0; round < 8; round++) {
		const unsigned added = 1 + round % 3;

		for (unsigned i = 0; i < added; i++, time += STEP)
			add_event(&t, 1 + round / 3, time);
		/* time goes on where a sub-buffer begins, too */
		set_stats(&t, 0);
		look(&t);
		assert_int_equal(t.n, added);
		assert_int_equal(t.missed, 0);
		for (unsigned i = 0; i < added; i++, next += STEP)
			assert_int_equal(t.times[i], next);
		look(&t);
		assert_int_equal(t.n, 0);
	}
	teardown(&t);
}

/* The writer has come by and has overwritten what had not been seen */
static void test_overtaken(void **state)
{
	struct test t;

	setup(&t);
	add_event(&t, 1, BEGAN + 1);
	set_stats(&t, 0);
	look(&t);
	assert_int_equal(t.n, 1);
	for (unsigned id = 2; id < RING; id++)
		add_event(&t, id, BEGAN + 100 * id);
	*ring_commit(&t.kernel, 1) = 0;
	add_event(&t, 1, BEGAN + 1000);
	set_stats(&t, 1);
	look(&t);
	assert_int_equal(t.n, RING - 1);
	assert_int_equal(t.missed, 1);
	assert_int_equal(t.times[0], BEGAN + 200);
	assert_int_equal(t.times[RING - 2], BEGAN + 1000);
	teardown(&t);
}

/* What was there before is not wanted, but for the sub-buffer that is being written */
static void test_before(void **state)
{
	struct test t;

	setup(&t);
	add_event(&t, 1, BEGAN - 300);
	add_event(&t, 2, BEGAN - 200);
	add_event(&t, 3, BEGAN + 100);
	set_stats(&t, 0);
	look(&t);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.times[1], BEGAN + 100);
	teardown(&t);
}

/* What was not read in time is there at the next look */
static void test_left(void **state)
{
	char subbufs[2 * PAGE];
	struct test t;

	setup(&t);
	for (unsigned id = 1; id < RING; id++)
		add_event(&t, id, BEGAN + 100 * id);
	set_stats(&t, 0);
	latency_ring_look(t.ring);
	assert_int_equal(latency_ring_read(t.ring, 0, subbufs, 2), 2);
	latency_ring_leave(t.ring);
	look(&t);
	assert_int_equal(t.n, RING - 3);
	assert_int_equal(t.times[0], BEGAN + 300);
	assert_int_equal(t.missed, 0);
	look(&t);
	assert_int_equal(t.n, 0);
	teardown(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_parts),
		cmocka_unit_test(test_overtaken),
		cmocka_unit_test(test_before),
		cmocka_unit_test(test_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
