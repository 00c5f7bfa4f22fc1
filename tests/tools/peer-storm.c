/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * peer-storm - ask flyrecd for COUNT snapshots for other hosts at the same time, over as many
 * connections as that takes: each for SECONDS before now and one after, STEP microseconds later
 * than the one before, with an id of its own, PREFIX-N. Prints how many answers name which file, a
 * line for each, and of errors how many there were and the last one.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <time.h>

#include "tests/tools/common.h"

#define SESSION_INTERFACE "org.flyrec.Recorder1.Session"
#define SESSIONS	  "/org/flyrec/Recorder1/session"
#define CALLS		  16 /* of a connection: CONTROL_CALLS_MAX */
#define FILES		  64

static struct {
	char path[512];
	unsigned answers;
} files[FILES];
static unsigned waiting, errors;
static char error[512];

static void count_file(const char *path)
{
	for (size_t i = 0; i < FILES; i++)
		if (!files[i].path[0] || strcmp(files[i].path, path) == 0) {
			(void)snprintf(files[i].path, sizeof(files[i].path), "%s", path);
			files[i].answers++;
			return;
		}
	errx(1, "more than %d files", FILES);
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *ignored)
{
	const sd_bus_error *e = sd_bus_message_get_error(m);
	const char *path;
	int had;

	waiting--;
	if (e) {
		errors++;
		(void)snprintf(error, sizeof(error), "%s", e->message);
	} else if (sd_bus_message_read(m, "sb", &path, &had) < 0) {
		errx(1, "no path in the answer");
	} else {
		count_file(path);
	}
	return 0;
}

static sd_bus *connect_to(const char *socket)
{
	char address[512];
	sd_bus *bus = NULL;
	int r = sd_bus_new(&bus);

	(void)snprintf(address, sizeof(address), "unix:path=%s", socket);
	if (r >= 0)
		r = sd_bus_set_address(bus, address);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0)
		errx(1, "Cannot connect to %s: %s", socket, strerror(-r));
	return bus;
}

int main(int argc, char **argv)
{
	uint64_t count, seconds, step, now;
	struct timespec t;
	char *session = NULL;
	size_t n_buses;
	sd_bus **buses;

	if (argc != 7) {
		fprintf(stderr, "peer-storm SOCKET SESSION PREFIX COUNT SECONDS STEP\n");
		return 2;
	}
	count = number_parse("COUNT", argv[4]);
	seconds = number_parse("SECONDS", argv[5]);
	step = number_parse("STEP", argv[6]);
	if (sd_bus_path_encode(SESSIONS, argv[2], &session) < 0)
		errx(2, "%s is no session", argv[2]);
	n_buses = (count + CALLS - 1) / CALLS;
	buses = calloc(n_buses, sizeof(sd_bus *));
	if (!buses)
		err(1, "no memory");
	for (size_t i = 0; i < n_buses; i++)
		buses[i] = connect_to(argv[1]);
	(void)clock_gettime(CLOCK_REALTIME, &t);
	now = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
	for (uint64_t i = 0; i < count; i++, waiting++) {
		char id[64];
		int r;

		(void)snprintf(id, sizeof(id), "%s-%llu", argv[3], (unsigned long long)i);
		r = sd_bus_call_method_async(buses[i / CALLS], NULL, NULL, session,
					     SESSION_INTERFACE, "SnapshotLimited", on_answer, NULL,
					     "ttss", now - seconds * 1000000 + i * step,
					     now + 1000000 + i * step, "storm", id);
		if (r < 0)
			errx(1, "Cannot ask: %s", strerror(-r));
	}
	while (waiting > 0)
		for (size_t i = 0; i < n_buses; i++) {
			int r = sd_bus_process(buses[i], NULL);

			if (r == 0)
				r = sd_bus_wait(buses[i], 1000);
			if (r < 0)
				errx(1, "The connection is lost: %s", strerror(-r));
		}
	for (size_t i = 0; i < FILES && files[i].path[0]; i++)
		printf("%u %s\n", files[i].answers, files[i].path);
	if (errors > 0)
		printf("%u refused: %s\n", errors, error);
	for (size_t i = 0; i < n_buses; i++)
		sd_bus_flush_close_unref(buses[i]);
	free(buses);
	free(session);
	return 0;
}
