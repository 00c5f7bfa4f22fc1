/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * turns - have flyrecd rotate one session and take a snapshot of another, at the same time, COUNT
 * times, over one connection: a process for each would take longer than what it asks for. Prints
 * how many files of both kinds came of it; a rotation where there is nothing to rotate makes none.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "tests/tools/common.h"

#define SESSION_INTERFACE "org.flyrec.Recorder1.Session"
#define SESSIONS	  "/org/flyrec/Recorder1/session"

static unsigned int answers, files;

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *ignored)
{
	const sd_bus_error *e = sd_bus_message_get_error(m);
	const char *path = "";

	if (e)
		errx(1, "%s: %s", (const char *)userdata, e->message);
	if (sd_bus_message_read(m, "s", &path) < 0)
		errx(1, "%s: no path in the answer", (const char *)userdata);
	answers++;
	files += *path != '\0';
	return 0;
}

static char *object_of(const char *session)
{
	char *path;

	if (sd_bus_path_encode(SESSIONS, session, &path) < 0)
		errx(2, "%s is no session", session);
	return path;
}

static void turn(sd_bus *bus, const char *rotated, const char *taken)
{
	static char rotate[] = "rotate", snapshot[] = "snapshot";
	int r = sd_bus_call_method_async(bus, NULL, NULL, rotated, SESSION_INTERFACE, "Rotate",
					 on_answer, rotate, NULL);

	if (r >= 0)
		r = sd_bus_call_method_async(bus, NULL, NULL, taken, SESSION_INTERFACE, "Snapshot",
					     on_answer, snapshot, "ttsb", (uint64_t)0, UINT64_MAX,
					     "turns", 0);
	for (answers = 0; r >= 0 && answers < 2;) {
		r = sd_bus_process(bus, NULL);
		if (r == 0)
			r = sd_bus_wait(bus, UINT64_MAX);
	}
	if (r < 0)
		errx(1, "The connection is lost: %s", strerror(-r));
}

int main(int argc, char **argv)
{
	char *rotated, *taken;
	sd_bus *bus = NULL;
	uint64_t count;
	int r;

	if (argc != 5) {
		fprintf(stderr, "turns SOCKET COUNT SESSION-TO-ROTATE SESSION-IN-FLIGHT\n");
		return 2;
	}
	count = number_parse("COUNT", argv[2]);
	rotated = object_of(argv[3]);
	taken = object_of(argv[4]);
	r = sd_bus_new(&bus);
	if (r >= 0) {
		char address[512];

		(void)snprintf(address, sizeof(address), "unix:path=%s", argv[1]);
		r = sd_bus_set_address(bus, address);
	}
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0)
		errx(1, "Cannot connect to %s: %s", argv[1], strerror(-r));
	while (count-- > 0)
		turn(bus, rotated, taken);
	printf("%u\n", files);
	sd_bus_flush_close_unref(bus);
	free(rotated);
	free(taken);
	return 0;
}
