/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "basic/log.h"
#include "config/config-session.h"
#include "daemon/control/control-internal.h"
#include "tests/fuzz/control-target.h"

#define ROUNDS_MAX 4096

static struct {
	struct manager_options options;
	struct manager *manager;
	struct control *control;
	sd_event *event;
	char dir[64];
} target;

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	(void)fprintf(stderr, "not so: %s\n", what);
	abort();
}

static struct session_config *add_session(const char *name)
{
	static const char text[] = "[Trace]\nEvent=sched:sched_switch\nEvent=irq\n";
	struct session_config *config = NULL;
	struct config_reader reader = {};

	require(session_config_new(name, NULL, &config) >= 0 &&
			session_config_read(&reader, "x", text, strlen(text), NULL, config) >= 0 &&
			session_config_finish(&reader, "x", config) >= 0 && reader.n_errors == 0,
		"there are sessions");
	return config;
}

/* It goes on starting, so starts and reloads are refused: nothing is traced */
static void set_up(void)
{
	struct daemon_config *config = calloc(1, sizeof(*config));

	log_open(LOG_CRIT);
	(void)strcpy(target.dir, "/tmp/flyrec-fuzz.XXXXXX");
	require(config && mkdtemp(target.dir), "there is a directory");
	require(daemon_config_init(config) >= 0, "there is a configuration");
	config->sessions = calloc(2, sizeof(struct session_config *));
	config->sessions[0] = add_session("a");
	config->sessions[1] = add_session("b-c");
	config->n_sessions = 2;
	target.options = (struct manager_options){target.dir, target.dir, target.dir};
	require(manager_new_idle(&target.options, config, &target.manager) >= 0,
		"there is a manager");
	target.event = manager_environment(target.manager)->event;
	require(control_new_unbound(target.manager, &target.control) >= 0, "there is a server");
	target.control->groups.flyrec = 4711;
}

static size_t take_answers(int fd)
{
	char bytes[65536];
	size_t total = 0;
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		total += (size_t)n;
	return total;
}

/* Everything that can happen now; @patience: for threads, microseconds */
static size_t run(int fd, uint64_t patience)
{
	size_t answered = 0;

	for (unsigned i = 0; i < ROUNDS_MAX; i++) {
		int r = sd_event_run(target.event, patience);

		require(r >= 0, "the loop goes on");
		if (fd >= 0)
			answered += take_answers(fd);
		if (r == 0)
			break;
	}
	return answered;
}

size_t control_target_feed(const uint8_t *bytes, size_t size)
{
	static const char hello[] = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";
	struct control *c;
	size_t answered;
	int fds[2];

	if (!target.control)
		set_up();
	c = target.control;
	if (size == 0)
		return 0;
	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) >= 0, "there are sockets");
	require(control_add_peer(c, fds[0]) >= 0, "a peer is taken");
	c->peers->who.uid = bytes[0] & 1 ? 0 : 1000;
	c->peers->who.groups[0] = bytes[0] & 2 ? 4711 : 1000;
	c->peers->who.n_groups = 1;
	(void)send(fds[1], hello, sizeof(hello) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)send(fds[1], bytes + 1, size - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	answered = run(fds[1], 0);
	for (unsigned i = 0; c->peers && c->peers->n_requests > 0 && i < 100; i++)
		answered += run(fds[1], 10000);
	(void)shutdown(fds[1], SHUT_WR);
	answered += run(fds[1], 0);
	close(fds[1]);
	for (unsigned i = 0; c->peers && i < ROUNDS_MAX; i++)
		(void)run(-1, 1000);
	require(!c->peers, "who hangs up is forgotten");
	return answered;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

void control_target_done(void)
{
	if (!target.control)
		return;
	for (unsigned i = 0; i < 10; i++)
		(void)run(-1, 20000);
	control_free(TAKE_PTR(target.control));
	manager_free(TAKE_PTR(target.manager));
	(void)nftw(target.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
