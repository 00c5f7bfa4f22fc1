/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* daemon/snapshot-queue: who may ask for a snapshot, and whose turn it is */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/session/snapshot-queue.h"

#define N_MAX 64

struct queue {
	struct snapshot_turn turns[N_MAX];
	struct snapshot_turn *head;
	size_t n;
};

static struct snapshot_turn *add(struct queue *q, enum snapshot_origin origin, uid_t uid)
{
	struct snapshot_turn *turn = &q->turns[q->n++];

	assert_true(q->n <= N_MAX);
	turn->asker = (struct snapshot_asker){origin, uid};
	snapshot_queue_add(&q->head, turn);
	return turn;
}

/* The numbers of the turns in the order in which they are taken */
static void assert_taken(struct queue *q, bool all, const char *expected)
{
	struct snapshot_turn *turn;
	char taken[N_MAX + 1] = "";
	size_t n = 0;

	while ((turn = snapshot_queue_next(&q->head, all))) {
		assert_ptr_equal(q->head, turn);
		taken[n++] = (char)('a' + (turn - q->turns));
		snapshot_queue_remove(&q->head, turn);
	}
	assert_string_equal(taken, expected);
}

static void test_order(void **state)
{
	struct queue q = {};

	assert_null(snapshot_queue_next(&q.head, true));
	add(&q, SNAPSHOT_BY_MEMBER, 1);
	add(&q, SNAPSHOT_BY_MEMBER, 2);
	add(&q, SNAPSHOT_BY_ADMIN, 0);
	add(&q, SNAPSHOT_BY_TRIGGER, 0);
	add(&q, SNAPSHOT_BY_ADMIN, 3);
	add(&q, SNAPSHOT_BY_TRIGGER, 0);
	assert_taken(&q, false, "dfceab");
	assert_null(q.head);
}

static void test_too_early(void **state)
{
	struct queue q = {};

	add(&q, SNAPSHOT_BY_TRIGGER, 0)->too_early = true;
	add(&q, SNAPSHOT_BY_MEMBER, 1);
	add(&q, SNAPSHOT_BY_ADMIN, 0);
	assert_taken(&q, false, "cb");
	assert_ptr_equal(q.head, &q.turns[0]);
	assert_taken(&q, true, "a");
}

static int admit(const struct queue *q, enum snapshot_origin origin, uid_t uid)
{
	const struct snapshot_asker asker = {origin, uid};
	struct fault why = {};
	int r = snapshot_queue_admit(q->head, &asker, "demo", &why);

	/* Both figures, and whose they are */
	if (r == -EUSERS) {
		assert_non_null(strstr(why.text, "session demo: "));
		assert_non_null(strstr(why.text, "at most 16 may, 4 of one user other than root"));
	}
	return r;
}

static void test_limit_of_a_user(void **state)
{
	struct queue q = {};

	for (unsigned i = 0; i < SNAPSHOT_QUEUE_UID_MAX; i++) {
		assert_int_equal(admit(&q, SNAPSHOT_BY_MEMBER, 7), 0);
		add(&q, SNAPSHOT_BY_MEMBER, 7);
	}
	assert_int_equal(admit(&q, SNAPSHOT_BY_MEMBER, 7), -EUSERS);
	assert_int_equal(admit(&q, SNAPSHOT_BY_MEMBER, 8), 0);
	assert_int_equal(admit(&q, SNAPSHOT_BY_ADMIN, 0), 0);
	assert_int_equal(admit(&q, SNAPSHOT_BY_TRIGGER, 0), 0);
	for (unsigned i = 0; i < SNAPSHOT_QUEUE_UID_MAX; i++)
		add(&q, SNAPSHOT_BY_ADMIN, 0);
	assert_int_equal(admit(&q, SNAPSHOT_BY_ADMIN, 0), 0);
	/* What is under way waits no more */
	q.head->begun = true;
	assert_int_equal(admit(&q, SNAPSHOT_BY_MEMBER, 7), 0);
}

static void test_limit_of_all(void **state)
{
	struct queue q = {};

	for (unsigned i = 0; i < SNAPSHOT_QUEUE_MAX; i++) {
		assert_int_equal(admit(&q, SNAPSHOT_BY_MEMBER, 100 + i), 0);
		add(&q, SNAPSHOT_BY_MEMBER, 100 + i);
	}
	assert_int_equal(admit(&q, SNAPSHOT_BY_MEMBER, 99), -EUSERS);
	/* Neither lock administrators out, nor triggers, however many there are */
	for (unsigned i = 0; i < SNAPSHOT_QUEUE_MAX; i++) {
		assert_int_equal(admit(&q, SNAPSHOT_BY_TRIGGER, 0), 0);
		add(&q, SNAPSHOT_BY_TRIGGER, 0);
		assert_int_equal(admit(&q, SNAPSHOT_BY_ADMIN, i), 0);
		add(&q, SNAPSHOT_BY_ADMIN, i);
	}
	assert_int_equal(admit(&q, SNAPSHOT_BY_TRIGGER, 0), 0);
	assert_int_equal(admit(&q, SNAPSHOT_BY_ADMIN, 50), -EUSERS);
}

/* Out of the middle, as when a peer goes */
static void test_remove(void **state)
{
	struct queue q = {};

	for (unsigned i = 0; i < 4; i++)
		add(&q, SNAPSHOT_BY_MEMBER, 1);
	snapshot_queue_remove(&q.head, &q.turns[1]);
	snapshot_queue_remove(&q.head, &q.turns[3]);
	snapshot_queue_remove(&q.head, &q.turns[3]);
	assert_taken(&q, false, "ac");
}

/* Other hosts come last, and hold up nobody */
static void test_peers(void **state)
{
	struct queue q = {};

	for (unsigned i = 0; i < SNAPSHOT_QUEUE_UID_MAX; i++) {
		assert_int_equal(admit(&q, SNAPSHOT_BY_PEER, 7), 0);
		add(&q, SNAPSHOT_BY_PEER, 7);
	}
	assert_int_equal(admit(&q, SNAPSHOT_BY_PEER, 7), -EUSERS);
	assert_int_equal(admit(&q, SNAPSHOT_BY_MEMBER, 7), 0);
	add(&q, SNAPSHOT_BY_MEMBER, 7);
	add(&q, SNAPSHOT_BY_TRIGGER, 0);
	assert_taken(&q, false, "feabcd");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),		cmocka_unit_test(test_too_early),
		cmocka_unit_test(test_limit_of_a_user), cmocka_unit_test(test_limit_of_all),
		cmocka_unit_test(test_remove),		cmocka_unit_test(test_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
