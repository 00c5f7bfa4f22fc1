/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * notify-listen SOCKET FILE - be somebody's NOTIFY_SOCKET: append each line of each message to FILE
 * as "PID: LINE" until SIGTERM. File descriptors that come along are closed.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "basic/macro.h"
#include "tests/tools/notify.h"

static void on_signal(int signal)
{
	_exit(0);
}

int main(int argc, char **argv)
{
	static struct notify_message message;
	struct pollfd p = {.events = POLLIN};
	FILE *log;

	if (argc != 3)
		errx(2, "usage: notify-listen SOCKET FILE");
	log = fopen(argv[2], "ae");
	if (!log)
		err(2, "Cannot open %s", argv[2]);
	p.fd = notify_bind(argv[1]);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	while (true) {
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			err(2, "poll");
		while (notify_receive(p.fd, &message) > 0) {
			char *rest = message.text, *line;

			notify_close_fds(&message);
			while ((line = strsep(&rest, "\n"))) {
				if (*line)
					fprintf(log, "%d: %s\n", message.pid, line);
			}
			fflush(log);
		}
	}
}
