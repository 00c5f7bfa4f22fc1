/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fdstore-run --dir=DIR COMMAND... - a very small service manager, for tests where systemd is not
 * PID 1. It runs COMMAND, is its NOTIFY_SOCKET and its file descriptor store, and starts it again
 * with the stored fds when it was killed by SIGKILL or when told so. Rules are systemd's
 * (systemd.service(5), sd_pid_notify_with_fds(3)): messages only from the main process; an fd that
 * is in the store already is not stored twice; an fd that hangs up leaves the store unless it came
 * with FDPOLL=0; FDSTOREREMOVE=1 removes by FDNAME.
 *
 * In DIR: `notify` (socket), `control` (FIFO for commands), `pid` (the running process), `log`:
 *   start PID FDS | PID: LINE of a message | stored PID NAME | removed NAME | exit PID STATUS
 * Commands: "kill SIGNAL", "stop [SIGNAL]", "restart [SIGNAL]" with names such as KILL or RTMIN+1;
 * "drop NAME": out of the store, and the process does not know.
 * Ends with the status of COMMAND (128 + signal if one killed it).
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "basic/macro.h"
#include "tests/tools/notify.h"

struct stored {
	int fd;
	char name[256];
};

/* What happens when COMMAND ends */
enum then {
	THEN_RESTART_IF_KILLED,
	THEN_RESTART,
	THEN_END,
};

struct manager {
	char *dir;
	char **command;
	FILE *log;
	int notify_fd;
	int control_fd;
	int signal_fd;
	int hangup_fd; /* epoll of the stored fds */
	struct stored *store;
	unsigned int n_stored;
	uint64_t max_stored; /* as FileDescriptorStoreMax= */
	pid_t pid;
	enum then then;
};

static const char help[] =
	"fdstore-run --dir=DIR [--max=N] COMMAND...\n"
	"Runs COMMAND as a service with a file descriptor store of at most N (512; 0: none).\n"
	"Write \"kill SIG\", \"stop [SIG]\", \"restart [SIG]\" or \"drop NAME\" to DIR/control.\n";

static void _printf_(2, 3) log_line(struct manager *m, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(m->log, format, ap);
	va_end(ap);
	fputc('\n', m->log);
	fflush(m->log);
}

/* --- the store */

static bool same_file(int a, int b)
{
	pid_t self = getpid();

	return syscall(SYS_kcmp, self, self, KCMP_FILE, a, b) == 0;
}

static void store_add(struct manager *m, int fd, const char *name, bool poll_it)
{
	struct epoll_event event = {.data.fd = fd};

	for (unsigned int i = 0; i < m->n_stored; i++) {
		if (same_file(m->store[i].fd, fd)) {
			close(fd);
			return;
		}
	}
	if (m->n_stored == m->max_stored) {
		log_line(m, "full %s", name);
		close(fd);
		return;
	}
	m->store[m->n_stored].fd = fd;
	snprintf(m->store[m->n_stored].name, sizeof(m->store[0].name), "%s", name);
	m->n_stored++;
	/* plain files cannot be polled: EPERM */
	if (poll_it && epoll_ctl(m->hangup_fd, EPOLL_CTL_ADD, fd, &event) < 0 && errno != EPERM)
		err(2, "epoll_ctl");
	log_line(m, "stored %d %s", m->pid, name);
}

static void store_remove(struct manager *m, unsigned int i)
{
	log_line(m, "removed %s", m->store[i].name);
	(void)epoll_ctl(m->hangup_fd, EPOLL_CTL_DEL, m->store[i].fd, NULL);
	close(m->store[i].fd);
	m->n_stored--;
	memmove(m->store + i, m->store + i + 1, (m->n_stored - i) * sizeof(*m->store));
}

static void store_remove_name(struct manager *m, const char *name)
{
	for (unsigned int i = m->n_stored; i-- > 0;) {
		if (strcmp(m->store[i].name, name) == 0)
			store_remove(m, i);
	}
}

static void store_drop_hung_up(struct manager *m)
{
	struct epoll_event event;

	while (epoll_wait(m->hangup_fd, &event, 1, 0) > 0) {
		for (unsigned int i = 0; i < m->n_stored; i++) {
			if (m->store[i].fd == event.data.fd) {
				store_remove(m, i);
				break;
			}
		}
	}
}

/* --- messages */

struct request {
	bool store;
	bool remove;
	bool poll;
	const char *name;
};

static struct request read_lines(struct manager *m, struct notify_message *message)
{
	struct request request = {.poll = true, .name = "stored"};
	char *rest = message->text, *line;

	while ((line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		log_line(m, "%d: %s", message->pid, line);
		if (strcmp(line, "FDSTORE=1") == 0)
			request.store = true;
		else if (strcmp(line, "FDSTOREREMOVE=1") == 0)
			request.remove = true;
		else if (strcmp(line, "FDPOLL=0") == 0)
			request.poll = false;
		else if (strncmp(line, "FDNAME=", 7) == 0)
			request.name = line + 7;
	}
	return request;
}

static void take_messages(struct manager *m)
{
	static struct notify_message message;

	while (notify_receive(m->notify_fd, &message) > 0) {
		struct request request;

		if (message.pid != m->pid) {
			log_line(m, "ignored message of %d", message.pid);
			notify_close_fds(&message);
			continue;
		}
		request = read_lines(m, &message);
		if (request.remove)
			store_remove_name(m, request.name);
		else if (request.store) {
			for (unsigned int i = 0; i < message.n_fds; i++)
				store_add(m, message.fds[i], request.name, request.poll);
			message.n_fds = 0;
		}
		notify_close_fds(&message);
	}
}

/* --- the process */

static void set_listen_environment(const struct manager *m)
{
	_cleanup_free_ char *names = NULL;
	char number[32];
	size_t size;
	FILE *f;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	unsetenv("FDSTORE");
	if (m->max_stored) {
		snprintf(number, sizeof(number), "%" PRIu64, m->max_stored);
		setenv("FDSTORE", number, true);
	}
	if (!m->n_stored)
		return;
	f = open_memstream(&names, &size);
	if (!f)
		_exit(126);
	for (unsigned int i = 0; i < m->n_stored; i++)
		fprintf(f, "%s%s", i ? ":" : "", m->store[i].name);
	fclose(f);
	setenv("LISTEN_FDNAMES", names, true);
	snprintf(number, sizeof(number), "%d", getpid());
	setenv("LISTEN_PID", number, true);
	snprintf(number, sizeof(number), "%u", m->n_stored);
	setenv("LISTEN_FDS", number, true);
}

/* First out of the way, then to 3, 4, …: no fd is overwritten before it is moved */
static void move_fds(const struct manager *m)
{
	int above = 3 + (int)m->n_stored;

	for (unsigned int i = 0; i < m->n_stored; i++) {
		m->store[i].fd = fcntl(m->store[i].fd, F_DUPFD_CLOEXEC, above);
		if (m->store[i].fd < 0)
			err(126, "Cannot pass fds");
	}
	for (unsigned int i = 0; i < m->n_stored; i++) {
		if (dup2(m->store[i].fd, 3 + (int)i) < 0)
			err(126, "Cannot pass fds");
	}
}

static void run_child(const struct manager *m)
{
	char path[PATH_MAX];
	sigset_t none;

	/* no process survives the test that started it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "%s/notify", m->dir);
	setenv("NOTIFY_SOCKET", path, true);
	set_listen_environment(m);
	move_fds(m);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(m->command[0], m->command);
	warn("Cannot execute %s", m->command[0]);
	_exit(127);
}

static void write_pid(const struct manager *m)
{
	char path[PATH_MAX], new[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/pid", m->dir);
	snprintf(new, sizeof(new), "%s/pid.new", m->dir);
	f = fopen(new, "we");
	if (!f)
		err(2, "Cannot write %s", new);
	fprintf(f, "%d\n", m->pid);
	if (fclose(f) != 0 || rename(new, path) < 0)
		err(2, "Cannot write %s", path);
}

static void start(struct manager *m)
{
	m->then = THEN_RESTART_IF_KILLED;
	fflush(NULL);
	m->pid = fork();
	if (m->pid < 0)
		err(2, "fork");
	if (m->pid == 0)
		run_child(m);
	log_line(m, "start %d %u", m->pid, m->n_stored);
	write_pid(m);
}

/* Return: -1 while there is a process, else the status to end with */
static int on_child(struct manager *m)
{
	int status, code;

	if (waitpid(m->pid, &status, WNOHANG) != m->pid)
		return -1;
	/* what it sent before it died counts */
	take_messages(m);
	code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	log_line(m, "exit %d %d", m->pid, code);
	if ((m->then == THEN_RESTART && code == 0) ||
	    (m->then != THEN_END && code == 128 + SIGKILL)) {
		start(m);
		return -1;
	}
	return code;
}

/* --- commands */

static int signal_parse(const char *name)
{
	int n = 0, used = 0;

	if (sscanf(name, "RTMIN+%d%n", &n, &used) == 1 && !name[used] && SIGRTMIN + n <= SIGRTMAX)
		return SIGRTMIN + n;
	for (int s = 1; s < SIGRTMIN; s++) {
		const char *abbreviation = sigabbrev_np(s);

		if (abbreviation && strcmp(abbreviation, name) == 0)
			return s;
	}
	warnx("Unknown signal: %s", name);
	return 0;
}

static void on_command(struct manager *m, const char *line)
{
	char verb[16] = "", name[256] = "";
	int n = sscanf(line, "%15s %255s", verb, name), signal;

	if (strcmp(verb, "drop") == 0) {
		store_remove_name(m, name);
		return;
	}
	if (strcmp(verb, "stop") == 0)
		m->then = THEN_END;
	else if (strcmp(verb, "restart") == 0)
		m->then = THEN_RESTART;
	else if (strcmp(verb, "kill") != 0 || n != 2) {
		warnx("Unknown command: %s", line);
		return;
	}
	signal = signal_parse(n == 2 ? name : m->then == THEN_END ? "TERM" : "RTMIN+1");
	if (signal)
		kill(m->pid, signal);
}

static void on_control(struct manager *m)
{
	char text[512], *rest = text, *line;
	ssize_t n = read(m->control_fd, text, sizeof(text) - 1);

	if (n <= 0)
		return;
	text[n] = 0;
	while ((line = strsep(&rest, "\n"))) {
		if (*line)
			on_command(m, line);
	}
}

static void on_signal(struct manager *m)
{
	struct signalfd_siginfo info;

	while (read(m->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			on_command(m, "stop TERM");
	}
}

static int run(struct manager *m)
{
	struct pollfd fds[] = {{m->signal_fd, POLLIN, 0},
			       {m->notify_fd, POLLIN, 0},
			       {m->control_fd, POLLIN, 0},
			       {m->hangup_fd, POLLIN, 0}};
	int status = -1;

	start(m);
	while (status < 0) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			err(2, "poll");
		if (fds[1].revents)
			take_messages(m);
		if (fds[3].revents)
			store_drop_hung_up(m);
		if (fds[2].revents)
			on_control(m);
		if (fds[0].revents)
			on_signal(m);
		status = on_child(m);
	}
	return status;
}

static void prepare(struct manager *m)
{
	char path[PATH_MAX];
	sigset_t set;

	snprintf(path, sizeof(path), "%s/log", m->dir);
	m->log = fopen(path, "we");
	if (!m->log)
		err(2, "Cannot write %s", path);
	snprintf(path, sizeof(path), "%s/notify", m->dir);
	m->notify_fd = notify_bind(path);
	snprintf(path, sizeof(path), "%s/control", m->dir);
	unlink(path);
	/* opened for both, so that it never reads as ended */
	if (mkfifo(path, 0600) < 0 ||
	    (m->control_fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)) < 0)
		err(2, "Cannot make %s", path);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	m->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	m->hangup_fd = epoll_create1(EPOLL_CLOEXEC);
	m->store = calloc(m->max_stored + 1, sizeof(*m->store));
	if (m->signal_fd < 0 || m->hangup_fd < 0 || !m->store)
		err(2, "Cannot start");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"dir", required_argument, NULL, 'd'},
						{"max", required_argument, NULL, 'm'},
						{"help", no_argument, NULL, 'h'},
						{}};
	struct manager m = {.max_stored = 512};
	int c, status;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
		switch (c) {
		case 'd':
			m.dir = optarg;
			break;
		case 'm':
			m.max_stored = strtoul(optarg, NULL, 10);
			break;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return 2;
		}
	}
	if (!m.dir || optind == argc)
		errx(2, "usage: %s", help);
	m.command = argv + optind;
	m.dir = realpath(m.dir, NULL);
	if (!m.dir)
		err(2, "Cannot use --dir");
	prepare(&m);
	status = run(&m);
	while (m.n_stored)
		store_remove(&m, m.n_stored - 1);
	free(m.store);
	free(m.dir);
	fclose(m.log);
	return status;
}
