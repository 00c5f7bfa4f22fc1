/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The relay and the guard of its sockets: no descriptor gets in, with SO_PASSRIGHTS and without;
 * who does not read is not read from; closing never waits.
 */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#include "basic/now.h"
#include "daemon/control/control-relay.h"
#include "daemon/plumbing/guard.h"

#define HELLO "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n"
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

struct fixture {
	sd_event *event;
	struct relay *relay;
	int peer, own, out; /* the client's end, ours, what sd-bus would read from */
	int error;	    /* it was cut off for */
	bool idle;
};

static void on_cut(void *userdata, int error)
{
	((struct fixture *)userdata)->error = error;
}

static bool is_idle(void *userdata)
{
	return ((struct fixture *)userdata)->idle;
}

static const struct relay_owner owner = {on_cut, is_idle};

static void set_up(struct fixture *f)
{
	int pair[2];

	*f = (struct fixture){.idle = true, .out = -EBADF};
	assert_int_equal(sd_event_new(&f->event), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	f->peer = pair[0];
	f->own = pair[1];
}

static void start(struct fixture *f)
{
	assert_int_equal(relay_new(f->event, 0, f->own, &owner, f, &f->relay, &f->out), 0);
}

/* As on a kernel that does not have it */
static void let_pass(const struct fixture *f)
{
	const int yes = 1;

	(void)setsockopt(f->own, SOL_SOCKET, SO_PASSRIGHTS, &yes, sizeof(yes));
}

static void tear_down(struct fixture *f)
{
	relay_free(f->relay);
	close_p(&f->peer);
	close_p(&f->own);
	close_p(&f->out);
	sd_event_unref(f->event);
}

static void run(struct fixture *f)
{
	int r;

	for (unsigned i = 0; i < 100 && (r = sd_event_run(f->event, 0)) > 0; i++)
		;
	assert_int_equal(r, 0); /* nothing goes round and round */
}

static ssize_t pass(int socket, int fd, const void *bytes, size_t size, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct iovec iov = {.iov_base = (void *)bytes, .iov_len = size};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control.bytes)};

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	return sendmsg(socket, &m, flags | MSG_NOSIGNAL) < 0 ? -errno : (ssize_t)size;
}

static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

static size_t read_all(int fd)
{
	uint8_t bytes[4096];
	size_t total = 0;
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		total += (size_t)n;
	return total;
}

static void put_message(uint8_t *at, uint32_t body)
{
	memset(at, 0, 16);
	at[0] = 'l';
	at[1] = at[3] = 1;
	memcpy(at + 4, &body,
	       sizeof(body)); /* these tests run on little-endian machines or see no body */
}

static void test_refused_by_the_kernel(void **state)
{
	struct fixture f;

	set_up(&f);
	start(&f);
	if (guard_refuses(f.own))
		assert_int_equal(pass(f.peer, f.peer, "x", 1, 0), -EPERM);
	else
		print_message("this kernel has no SO_PASSRIGHTS\n");
	tear_down(&f);
}

/* @when: 0 passed before we look, 1 later, 2 alone as urgent data, with more behind it */
static void check_passed(unsigned when)
{
	struct fixture f;
	unsigned before;

	set_up(&f);
	before = count_fds();
	if (when == 0)
		assert_int_equal(pass(f.peer, f.peer, HELLO, 20, 0), 20);
	start(&f);
	let_pass(&f);
	if (when == 1) {
		assert_int_equal(send(f.peer, HELLO, sizeof(HELLO) - 1, 0), sizeof(HELLO) - 1);
		run(&f);
		assert_int_equal(f.error, 0);
		assert_int_equal(read_all(f.out), sizeof(HELLO) - 1);
		assert_int_equal(pass(f.peer, f.peer, "lxxx", 4, 0), 4);
	} else if (when == 2) {
		ssize_t n = pass(f.peer, f.peer, "l", 1, MSG_OOB);

		if (n == -EOPNOTSUPP) { /* before Linux 5.15 */
			tear_down(&f);
			return;
		}
		assert_int_equal(n, 1);
		assert_int_equal(send(f.peer, HELLO, sizeof(HELLO) - 1, 0), sizeof(HELLO) - 1);
	}
	run(&f);
	assert_int_equal(f.error, -EPERM);
	assert_int_equal(count_fds(), before + 2); /* those of start() */
	tear_down(&f);
}

static void test_passed_before(void **state)
{
	check_passed(0);
}

static void test_passed_later(void **state)
{
	check_passed(1);
}

static void test_passed_urgent(void **state)
{
	check_passed(2);
}

static void test_back_pressure(void **state)
{
	const size_t hello = sizeof(HELLO) - 1;
	uint8_t bytes[256] = HELLO;
	struct fixture f;

	set_up(&f);
	start(&f);
	put_message(bytes + hello, 0);
	put_message(bytes + hello + 16, 0);
	assert_int_equal(send(f.peer, bytes, hello + 32, 0), hello + 32);
	run(&f);
	assert_int_equal(read_all(f.out), hello); /* the first one comes when this has been read */
	f.idle = false;
	run(&f);
	assert_int_equal(read_all(f.out), 0);
	f.idle = true;
	run(&f);
	assert_int_equal(read_all(f.out), 16);
	f.idle = false;
	run(&f);
	/* more is not even received */
	assert_int_equal(send(f.peer, bytes, 100, 0), 100);
	run(&f);
	assert_int_equal(read_all(f.out), 0);
	f.idle = true;
	run(&f);
	assert_int_equal(read_all(f.out), 16);
	close_p(&f.peer);
	run(&f);
	assert_int_equal(f.error, -EBADMSG); /* a greeting is no message */
	tear_down(&f);
}

/* A call without an answer and its caller gone at once: it is handed on all the same */
static void test_gone_peer(void **state)
{
	const size_t hello = sizeof(HELLO) - 1;
	uint8_t bytes[256] = HELLO;
	struct fixture f;

	set_up(&f);
	start(&f);
	put_message(bytes + hello, 0);
	put_message(bytes + hello + 16, 0);
	assert_int_equal(send(f.peer, bytes, hello + 32, 0), hello + 32);
	close_p(&f.peer);
	run(&f);
	assert_int_equal(read_all(f.out), hello);
	run(&f);
	assert_int_equal(read_all(f.out), 16);
	run(&f);
	assert_int_equal(read_all(f.out), 16);
	run(&f);
	assert_int_equal(recv(f.out, bytes, 1, MSG_DONTWAIT), 0);
	tear_down(&f);
}

/* A TCP socket whose last close() waits half a minute for @ret_other */
static int lingering_socket(int *ret_other)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger linger = {1, 30};
	socklen_t size = sizeof(address);
	static char bytes[65536];
	_cleanup_close_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
	*ret_other = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(*ret_other >= 0);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

static void nap(void)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	(void)nanosleep(&pause, NULL);
}

static void test_close_never_waits(void **state)
{
	enum { N = GUARD_THREADS_MAX + 3 };
	const uid_t uid = 1000, other_uid = 1001;
	uint64_t begin = now_usec(CLOCK_MONOTONIC);
	struct guard *guard;
	unsigned before;
	int others[N];

	assert_int_equal(guard_new(&guard), 0);
	before = count_fds();
	for (unsigned i = 0; i < N; i++) {
		int pair[2], fd = lingering_socket(&others[i]);

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		assert_int_equal(send(pair[0], "abc", 3, 0), 3);
		assert_int_equal(pass(pair[0], fd, "x", 1, 0), 1);
		close(fd);
		close(pair[0]);
		guard_close(guard, pair[1], false, uid);
	}
	assert_true(now_usec(CLOCK_MONOTONIC) - begin < 10 * USEC_PER_SEC);
	assert_int_equal(guard_count(guard, NULL), N);
	assert_int_equal(guard_count(guard, &uid), N);
	assert_int_equal(guard_count(guard, &other_uid), 0);
	/* Those which no thread works on are open */
	for (unsigned i = 0; i < 200 && count_fds() > before + N + 3; i++)
		nap();
	assert_int_equal(count_fds(), before + N + 3);
	for (unsigned i = 0; i < N; i++)
		close(others[i]);
	for (unsigned i = 0; i < 500 && guard_count(guard, NULL) > 0; i++)
		nap();
	assert_int_equal(guard_count(guard, NULL), 0);
	assert_int_equal(count_fds(), before);
	guard_free(guard);
}

/* What holds no descriptor is closed at once */
static void test_close_at_once(void **state)
{
	struct guard *guard;
	int pair[2];
	char byte;

	assert_int_equal(guard_new(&guard), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(send(pair[0], "abc", 3, 0), 3);
	assert_int_equal(send(pair[1], "d", 1, 0), 1);
	guard_close(guard, pair[1], false, 0);
	assert_int_equal(guard_count(guard, NULL), 0);
	/* and what we had said can be read */
	assert_int_equal(recv(pair[0], &byte, 1, 0), 1);
	close(pair[0]);
	guard_free(guard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_by_the_kernel), cmocka_unit_test(test_passed_before),
		cmocka_unit_test(test_passed_later),	      cmocka_unit_test(test_passed_urgent),
		cmocka_unit_test(test_back_pressure),	      cmocka_unit_test(test_gone_peer),
		cmocka_unit_test(test_close_never_waits),     cmocka_unit_test(test_close_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
