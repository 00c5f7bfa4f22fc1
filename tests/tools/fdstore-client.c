/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fdstore-client - a service for testing fdstore-run with: each time it starts it finds its pipe in
 * the file descriptor store (or makes one and stores both ends), prints what the earlier run left
 * in it, writes its own number into it and waits to be killed. A pipe whose other end is closed is
 * stored too: it must leave the store by itself. Ends after --forget with an empty store.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "basic/macro.h"

static void make_pipe(int fds[2])
{
	int broken[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(broken, O_CLOEXEC) < 0)
		err(1, "pipe2");
	if (sd_pid_notify_with_fds(0, false, "FDSTORE=1\nFDNAME=pipe", fds, 2) <= 0 ||
	    sd_pid_notify_with_fds(0, false, "FDSTORE=1\nFDNAME=broken", broken, 1) <= 0)
		errx(1, "Cannot store");
	close(broken[0]);
	close(broken[1]);
}

static void find_pipe(int fds[2])
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(true, &names), found = 0;

	for (int i = 0; i < n; i++) {
		if (strcmp(names[i], "pipe") == 0 && found < 2)
			fds[found++] = SD_LISTEN_FDS_START + i;
		free(names[i]);
	}
	free(names);
	printf("fds=%d\n", MAX(n, 0));
	if (found != 2)
		make_pipe(fds);
	else if (sd_pid_notify_with_fds(0, false, "FDSTORE=1\nFDNAME=pipe", fds, 2) <= 0)
		errx(1, "Cannot store again");
}

int main(int argc, char **argv)
{
	char text[256];
	int fds[2];
	ssize_t n;

	setvbuf(stdout, NULL, _IOLBF, 0);
	find_pipe(fds);
	n = read(fds[0], text, sizeof(text) - 1);
	if (n > 0)
		printf("%.*s\n", (int)n, text);
	snprintf(text, sizeof(text), "pid=%d", getpid());
	if (write(fds[1], text, strlen(text)) < 0)
		err(1, "write");
	if (argc > 1 && strcmp(argv[1], "--forget") == 0)
		sd_notify(false, "FDSTOREREMOVE=1\nFDNAME=pipe");
	sd_notify(false, "READY=1");
	while (true)
		pause();
}
