/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "ctl/output.h"
#include "ctl/verbs.h"
#include "ctl/view.h"

static enum ctl_status usage(const char *verb, const char *what)
{
	(void)fprintf(stderr, "flyrecctl: %s: %s, see flyrecctl %s --help\n", verb, what, verb);
	return CTL_USAGE;
}

/* What scripts get with --json from verbs that have nothing to tell: {"sessions":[NAME…]} */
static enum ctl_status done_with(const struct ctl *ctl, char *const *names, int n)
{
	struct json_object *o, *array;

	if (!ctl->json)
		return CTL_DONE;
	o = json_object_new_object();
	array = json_object_new_array();
	for (int i = 0; array && i < n; i++)
		(void)json_object_array_add(array, json_text(names[i]));
	json_add(o, "sessions", array);
	return print_json(o);
}

/* --- rotate */

static int rotate_one(sd_bus *bus, const char *name, struct json_object *array)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	_cleanup_free_ char *path = NULL;
	const char *file;
	int r = bus_find_session(bus, "rotate", name, &path);

	if (r >= 0)
		r = bus_call(bus, "rotate", path, BUS_SESSION, "Rotate", &reply, NULL);
	if (r < 0)
		return r;
	r = sd_bus_message_read(reply, "s", &file);
	if (r < 0)
		return bus_bad_answer("rotate", r);
	if (array) {
		struct json_object *o = json_object_new_object();

		json_add(o, "name", json_text(name));
		json_add(o, "path", json_text(file));
		(void)json_object_array_add(array, o);
	} else if (*file) {
		printf("%s\n", file);
	} else {
		(void)fprintf(stderr, "flyrecctl: rotate: session %s had recorded nothing yet\n",
			      name);
	}
	return 0;
}

static int rotate_all(sd_bus *bus, struct json_object *array)
{
	struct view_status status;
	int r = view_read_status(bus, "rotate", NULL, &status);

	if (r < 0)
		return r;
	for (size_t i = 0; i < status.n_sessions; i++) {
		const char *state = status.sessions[i].state;
		bool runs = strcmp(state, "recording") == 0 || strcmp(state, "paused") == 0;
		int one = 0;

		if (runs && strcmp(status.sessions[i].mode, "flight") != 0)
			one = rotate_one(bus, status.sessions[i].name, array);
		r = one < 0 ? one : r;
	}
	view_status_done(&status);
	return r;
}

enum ctl_status verb_rotate(const struct ctl *ctl, int argc, char **argv)
{
	_cleanup_bus_ sd_bus *bus = NULL;
	struct json_object *array = NULL, *o;
	int r;

	if (bus_connect(ctl, argv[0], &bus) < 0)
		return CTL_FAILED;
	if (ctl->json)
		array = json_object_new_array();
	r = argc == 1 ? rotate_all(bus, array) : 0;
	for (int i = 1; i < argc; i++) {
		int one = rotate_one(bus, argv[i], array);

		r = one < 0 ? one : r;
	}
	if (array) {
		o = json_object_new_object();
		json_add(o, "sessions", array);
		if (print_json(o) != CTL_DONE)
			r = -EIO;
	}
	return r < 0 ? CTL_FAILED : CTL_DONE;
}

/* --- start, stop, pause, resume */

/* @persistable: the method takes whether to keep it */
static enum ctl_status each_session(const struct ctl *ctl, int argc, char **argv,
				    const char *method, bool persistable)
{
	_cleanup_bus_ sd_bus *bus = NULL;
	int r = 0;

	if (argc < 2)
		return usage(argv[0], "a SESSION is missing");
	if (bus_connect(ctl, argv[0], &bus) < 0)
		return CTL_FAILED;
	for (int i = 1; i < argc; i++) {
		_cleanup_free_ char *path = NULL;
		int one = bus_find_session(bus, argv[0], argv[i], &path);

		if (one >= 0)
			one = persistable ? bus_call(bus, argv[0], path, BUS_SESSION, method, NULL,
						     "b", ctl->persist)
					  : bus_call(bus, argv[0], path, BUS_SESSION, method, NULL,
						     NULL);
		r = one < 0 ? one : r;
	}
	return r < 0 ? CTL_FAILED : done_with(ctl, argv + 1, argc - 1);
}

enum ctl_status verb_start(const struct ctl *ctl, int argc, char **argv)
{
	return each_session(ctl, argc, argv, "Start", true);
}

enum ctl_status verb_stop(const struct ctl *ctl, int argc, char **argv)
{
	return each_session(ctl, argc, argv, "Stop", true);
}

enum ctl_status verb_pause(const struct ctl *ctl, int argc, char **argv)
{
	return each_session(ctl, argc, argv, "Pause", false);
}

enum ctl_status verb_resume(const struct ctl *ctl, int argc, char **argv)
{
	return each_session(ctl, argc, argv, "Resume", false);
}

/* --- events */

static enum ctl_status change_events(const struct ctl *ctl, int argc, char **argv,
				     const char *method)
{
	_cleanup_message_ sd_bus_message *call = NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *path = NULL;
	int r;

	if (argc < 3)
		return usage(argv[0], "a SESSION and an EVENT are needed");
	if (bus_connect(ctl, argv[0], &bus) < 0 ||
	    bus_find_session(bus, argv[0], argv[1], &path) < 0)
		return CTL_FAILED;
	r = sd_bus_message_new_method_call(bus, &call, NULL, path, BUS_SESSION, method);
	if (r >= 0)
		r = sd_bus_message_append_strv(call, argv + 2);
	if (r >= 0)
		r = sd_bus_message_append(call, "b", ctl->persist);
	if (r < 0)
		(void)fprintf(stderr, "flyrecctl: %s: %s\n", argv[0], strerror(-r));
	else
		r = bus_call_message(bus, argv[0], call, NULL);
	return r < 0 ? CTL_FAILED : done_with(ctl, argv + 1, 1);
}

enum ctl_status verb_event_enable(const struct ctl *ctl, int argc, char **argv)
{
	return change_events(ctl, argc, argv, "EnableEvents");
}

enum ctl_status verb_event_disable(const struct ctl *ctl, int argc, char **argv)
{
	return change_events(ctl, argc, argv, "DisableEvents");
}

enum ctl_status verb_filter(const struct ctl *ctl, int argc, char **argv)
{
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *path = NULL;

	if (argc != 4)
		return usage(argv[0], "SESSION, EVENT and FILTER are needed");
	if (bus_connect(ctl, argv[0], &bus) < 0 ||
	    bus_find_session(bus, argv[0], argv[1], &path) < 0 ||
	    bus_call(bus, argv[0], path, BUS_SESSION, "SetFilter", NULL, "ssb", argv[2], argv[3],
		     ctl->persist) < 0)
		return CTL_FAILED;
	return done_with(ctl, argv + 1, 1);
}

/* --- vacuum */

enum ctl_status verb_vacuum(const struct ctl *ctl, int argc, char **argv)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	_cleanup_free_ char *freed = NULL;
	uint64_t max_use = 0, older = 0, bytes;
	uint32_t files;
	int r;

	if (argc > 1)
		return usage(argv[0], "no arguments but options");
	if (!ctl->max_use && !ctl->older_than)
		return usage(argv[0], "--max-use= or --older-than= is needed");
	if (ctl->max_use && parse_size(ctl->max_use, &max_use) < 0)
		return usage(argv[0], "--max-use= takes a size such as 500M; 0: remove all");
	if (ctl->older_than && parse_time(ctl->older_than, &older) < 0)
		return usage(argv[0], "--older-than= takes a time span such as 2weeks; 0: remove "
				      "all");
	/* 0 of the call is no limit; the least that is one removes all, too */
	if (ctl->max_use)
		max_use = MAX(max_use, UINT64_C(1));
	if (ctl->older_than)
		older = MAX(older, UINT64_C(1));
	if (bus_connect(ctl, argv[0], &bus) < 0 ||
	    bus_call(bus, argv[0], BUS_PATH, BUS_MANAGER, "Vacuum", &reply, "stt", "", max_use,
		     older) < 0)
		return CTL_FAILED;
	r = sd_bus_message_read(reply, "ut", &files, &bytes);
	if (r < 0)
		return bus_bad_answer(argv[0], r) < 0 ? CTL_FAILED : CTL_DONE;
	if (ctl->json) {
		struct json_object *o = json_object_new_object();

		json_add(o, "files", json_number(files));
		json_add(o, "bytes", json_number(bytes));
		return print_json(o);
	}
	freed = format_bytes(bytes);
	printf("Removed %" PRIu32 " files, %s\n", files, freed ? freed : "?");
	return CTL_DONE;
}

/* --- reload */

enum ctl_status verb_reload(const struct ctl *ctl, int argc, char **argv)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	_cleanup_(strv_freep) char **warnings = NULL;
	_cleanup_bus_ sd_bus *bus = NULL;
	int r;

	if (argc > 1)
		return usage(argv[0], "no arguments");
	if (bus_connect(ctl, argv[0], &bus) < 0 ||
	    bus_call(bus, argv[0], BUS_PATH, BUS_MANAGER, "Reload", &reply, NULL) < 0)
		return CTL_FAILED;
	r = sd_bus_message_read_strv(reply, &warnings);
	if (r < 0)
		return bus_bad_answer(argv[0], r) < 0 ? CTL_FAILED : CTL_DONE;
	if (ctl->json) {
		struct json_object *o = json_object_new_object();

		json_add(o, "warnings", json_list(warnings));
		return print_json(o);
	}
	STRV_FOREACH (warning, warnings) {
		_cleanup_free_ char *shown = escape_text(*warning, false);

		(void)fprintf(stderr, "%s\n", shown ? shown : "?");
	}
	return CTL_DONE;
}

/* --- pin, unpin */

static enum ctl_status pin_files(const struct ctl *ctl, int argc, char **argv, bool pin)
{
	_cleanup_bus_ sd_bus *bus = NULL;
	int r = 0;

	if (argc < 2)
		return usage(argv[0], "a FILE is missing");
	if (bus_connect(ctl, argv[0], &bus) < 0)
		return CTL_FAILED;
	for (int i = 1; i < argc; i++) {
		/* "./x" and links are ours to resolve, unless the file is on another machine */
		_cleanup_free_ char *path =
			argv[i][0] == '/' || ctl->host ? NULL : realpath(argv[i], NULL);
		int one = bus_call(bus, argv[0], BUS_PATH, BUS_MANAGER, "PinFile", NULL, "sb",
				   path ? path : argv[i], pin);

		r = one < 0 ? one : r;
	}
	if (r < 0)
		return CTL_FAILED;
	if (ctl->json) {
		struct json_object *o = json_object_new_object();

		json_add(o, "pinned", json_object_new_boolean(pin));
		json_add(o, "files", json_list(argv + 1));
		return print_json(o);
	}
	return CTL_DONE;
}

enum ctl_status verb_pin(const struct ctl *ctl, int argc, char **argv)
{
	return pin_files(ctl, argc, argv, true);
}

enum ctl_status verb_unpin(const struct ctl *ctl, int argc, char **argv)
{
	return pin_files(ctl, argc, argv, false);
}
