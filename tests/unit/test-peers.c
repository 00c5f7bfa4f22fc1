/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/peers: who gets a snapshot of its own, and who one that is there. Files are empty: nothing
 * is in them but attributes. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "basic/now.h"
#include "basic/strv.h"
#include "daemon/session/peers.h"
#include "tests/unit/tmp.h"
#include "writer/file-info.h"
#include "writer/store.h"

#define S    USEC_PER_SEC
#define MOST (30 * S)

/* A session's snapshots; the last one ordered is not finished until finish() */
struct fake {
	struct peers peers;
	struct tmp tmp;
	int snapshot_fd;
	unsigned orders, widened;
	uint64_t from_usec, to_usec, post_usec;
	int refusal;
	bool begun; /* cannot be widened */
	unsigned answers, had, failures;
	char path[128];
};

/* When the data of a file begins; a file is one of ours */
static uint64_t data_from_usec;

int __wrap_file_info_read(int fd, const char *name, struct file_info *ret);
int __wrap_file_info_read(int fd, const char *name, struct file_info *ret)
{
	*ret = (struct file_info){.start_usec = data_from_usec};
	return 0;
}

static int on_order(void *userdata, const struct snapshot_order *order, uint64_t post_usec,
		    struct fault *why)
{
	struct fake *f = userdata;

	if (f->refusal < 0)
		return fault_set(why, f->refusal, "refused");
	f->orders++;
	f->from_usec = order->from_usec;
	f->to_usec = order->to_usec;
	f->post_usec = post_usec;
	assert_string_equal(order->reason, "peer");
	assert_int_equal(order->asker.origin, SNAPSHOT_BY_PEER);
	peers_begin(&f->peers, (void *)(uintptr_t)f->orders, order, post_usec);
	return 0;
}

static bool on_widen(void *userdata, const void *which, uint64_t from_usec, uint64_t to_usec)
{
	struct fake *f = userdata;

	if (f->begun)
		return false;
	f->widened++;
	f->from_usec = from_usec;
	f->to_usec = to_usec;
	return true;
}

static int on_state_fd(void *userdata)
{
	const struct fake *f = userdata;

	return f->tmp.fd;
}

static char *on_path(void *userdata, const char *name)
{
	return strdup(name);
}

static const struct peer_host host = {
	.order = on_order,
	.widen = on_widen,
	.state_fd = on_state_fd,
	.path = on_path,
};

static void on_answer(void *userdata, int result, const char *path, bool had, const char *why)
{
	struct fake *f = userdata;

	f->answers++;
	f->failures += result < 0;
	f->had += had;
	(void)snprintf(f->path, sizeof(f->path), "%s", result < 0 ? "" : path);
	assert_true(result >= 0 || *why);
}

static void fake_init(struct fake *f)
{
	*f = (struct fake){.peers = {.host = &host, .userdata = f, .name = "demo"}};
	tmp_init(&f->tmp);
	assert_true(sd_event_new(&f->peers.event) >= 0);
	assert_int_equal(mkdirat(f->tmp.fd, "snapshot", 0755), 0);
	f->snapshot_fd = openat(f->tmp.fd, "snapshot", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	data_from_usec = 0;
}

static void run(struct fake *f, unsigned answers)
{
	while (f->answers < answers)
		assert_true(sd_event_run(f->peers.event, 10 * S) > 0);
	assert_int_equal(f->answers, answers);
}

static void fake_done(struct fake *f)
{
	peers_drop(&f->peers);
	assert_true(sd_event_run(f->peers.event, 0) >= 0);
	sd_event_unref(f->peers.event);
	(void)close(f->snapshot_fd);
	tmp_done(&f->tmp);
}

static void ask(struct fake *f, const char *id, uint64_t from_usec, uint64_t to_usec)
{
	const struct peer_wish wish = {
		.id = id,
		.lines = "for: test\n",
		.from_usec = from_usec,
		.to_usec = to_usec,
		.most_usec = MOST,
	};

	assert_int_equal(peers_ask(&f->peers, &wish, on_answer, f), 0);
}

/* Until there are so many orders: looking for a file takes a job */
static void run_until_ordered(struct fake *f, unsigned orders)
{
	while (f->orders < orders)
		assert_true(sd_event_run(f->peers.event, 10 * S) > 0);
	assert_int_equal(f->orders, orders);
}

static void make_file(struct fake *f, const char *name, const char *id)
{
	int fd = openat(f->snapshot_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0640);

	assert_true(fd >= 0);
	if (id)
		assert_int_equal(store_add_id(fd, id), 1);
	(void)close(fd);
}

/* The last one, or with @result less than 0 nothing comes of it */
static void finish(struct fake *f, const char *name, const char *id, int result)
{
	struct snapshot_result made = SNAPSHOT_RESULT_INIT;

	if (result >= 0) {
		make_file(f, name, id);
		(void)snprintf(made.name, sizeof(made.name), "%s", name);
		made.path = (char *)name;
	} else {
		(void)fault_set(&made.why, result, "nothing");
	}
	peers_end(&f->peers, (void *)(uintptr_t)f->orders, result, &made);
}

#define NAME  "20260921T141320.123456Z-peer.dat"
#define OTHER "20260921T141330.123456Z-peer.dat"

/* A thousand hosts tell of the same: while it waits, while it is made, afterwards */
static void test_storm(void **state)
{
	const uint64_t now = now_usec(CLOCK_REALTIME);
	struct fake f;
	char id[32];

	fake_init(&f);
	if (!store_takes_attributes(f.tmp.fd)) {
		fake_done(&f);
		skip();
	}
	for (unsigned i = 0; i < 1000; i++) {
		(void)snprintf(id, sizeof(id), "h%u-1", i);
		ask(&f, id, now - 10 * S + i * 300, now + S + i * 300);
		if (i == 300)
			run_until_ordered(&f, 1);
		f.begun = i > 600;
		if (i == 800)
			finish(&f, NAME, "h0-1", 0);
	}
	run(&f, 1000);
	assert_int_equal(f.orders, 1);
	assert_int_equal(f.had, 999);
	assert_int_equal(f.failures, 0);
	assert_string_equal(f.path, NAME);
	assert_true(f.post_usec > 0 && f.post_usec <= 2 * S);
	fake_done(&f);
}

static void test_covered(void **state)
{
	const uint64_t now = now_usec(CLOCK_REALTIME), from = now - 20 * S, to = now - 10 * S;
	struct fake f;

	fake_init(&f);
	if (!store_takes_attributes(f.tmp.fd)) {
		fake_done(&f);
		skip();
	}
	ask(&f, "a", from, to);
	run_until_ordered(&f, 1);
	assert_int_equal(f.post_usec, 0);
	finish(&f, NAME, "a", 0);
	run(&f, 1);
	assert_int_equal(f.had, 0);
	/* 95 % of it */
	ask(&f, "b", from + S / 2, to + S / 2);
	run(&f, 2);
	/* the same id, another window */
	ask(&f, "a", from - 5 * S, to + 5 * S);
	run(&f, 3);
	assert_int_equal(f.had, 2);
	assert_int_equal(f.orders, 1);
	/* less */
	ask(&f, "c", from + S, to + S);
	run_until_ordered(&f, 2);
	finish(&f, OTHER, "c", 0);
	run(&f, 4);
	assert_int_equal(f.had, 2);
	assert_string_equal(f.path, OTHER);
	/* a file that retention has removed */
	assert_int_equal(unlinkat(f.snapshot_fd, NAME, 0), 0);
	ask(&f, "a", from, to);
	run_until_ordered(&f, 3);
	finish(&f, NAME, "a", -ENODATA);
	run(&f, 5);
	assert_int_equal(f.failures, 1);
	fake_done(&f);
}

/* Of one that waits, within a second, up to the limit; never a trigger's */
static void test_widen(void **state)
{
	const uint64_t now = now_usec(CLOCK_REALTIME);
	const struct snapshot_order trigger = {
		.from_usec = now - 5 * S,
		.to_usec = UINT64_MAX,
		.reason = "event",
		.id = "t",
		.trigger_usec = now,
	};
	struct fake f;

	fake_init(&f);
	ask(&f, "a", now - 10 * S, now);
	run_until_ordered(&f, 1);
	ask(&f, "b", now - 5 * S, now + 5 * S);
	assert_int_equal(f.widened, 1);
	assert_int_equal(f.from_usec, now - 10 * S);
	assert_int_equal(f.to_usec, now + 5 * S);
	ask(&f, "c", now - 26 * S, now); /* 31 s together */
	run_until_ordered(&f, 2);
	ask(&f, "d", now - 60 * S, now - 40 * S); /* none of it */
	run_until_ordered(&f, 3);
	assert_int_equal(f.widened, 1);
	peers_drop(&f.peers);
	assert_int_equal(f.answers, 4);
	assert_int_equal(f.failures, 4);

	peers_begin(&f.peers, &f, &trigger, S);
	ask(&f, "e", now - 5 * S, now + S); /* what the trigger has */
	ask(&f, "f", now - 10 * S, now + S);
	run_until_ordered(&f, 4);
	assert_int_equal(f.widened, 1);
	peers_end(&f.peers, &f, -EIO, &(struct snapshot_result){.why = {-EIO, "disk"}});
	assert_int_equal(f.failures, 5);
	fake_done(&f);
	assert_int_equal(f.failures, 6);
}

/* All there was may begin only afterwards; ids of an earlier flyrecd; what is refused */
static void test_files(void **state)
{
	const uint64_t now = now_usec(CLOCK_REALTIME);
	const struct snapshot_order trigger = {
		.to_usec = UINT64_MAX, .reason = "event", .id = "t", .trigger_usec = now};
	struct snapshot_result made = SNAPSHOT_RESULT_INIT;
	struct fake f;

	fake_init(&f);
	if (!store_takes_attributes(f.tmp.fd)) {
		fake_done(&f);
		skip();
	}
	make_file(&f, NAME, "old-1");
	ask(&f, "old-1", now - 2 * S, now);
	run(&f, 1);
	assert_string_equal(f.path, NAME);
	assert_int_equal(f.had, 1);
	make_file(&f, OTHER, "t");
	peers_begin(&f.peers, &f, &trigger, 0);
	(void)snprintf(made.name, sizeof(made.name), "%s", OTHER);
	peers_end(&f.peers, &f, 0, &made);
	data_from_usec = now - 100 * S;
	ask(&f, "a", now - 20 * S, now);
	run(&f, 2);
	assert_string_equal(f.path, OTHER);
	f.refusal = -EUSERS;
	ask(&f, "b", now - 200 * S, now - 180 * S);
	run(&f, 3);
	assert_int_equal(f.failures, 1);
	assert_int_equal(f.orders, 0);
	fake_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_covered),
		cmocka_unit_test(test_widen),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
