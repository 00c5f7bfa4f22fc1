/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "ctl/bus.h"
#include "ctl/output.h"
#include "ctl/view.h"

static enum ctl_status usage(const struct ctl *ctl, const char *what)
{
	return ctl_complain(ctl, "%s, see flyrecctl %s --help", what, ctl->verb);
}

/*
 * What scripts get with --json from verbs that have nothing to tell: {"sessions":[NAME…]}
 * @names: NULL-terminated
 */
static enum ctl_status done_with(const struct ctl *ctl, char *const *names)
{
	return ctl->json ? print_json_member("sessions", json_list(names)) : CTL_DONE;
}

/* --- trigger */

enum ctl_status verb_trigger(struct ctl *ctl, int argc, char **argv)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	char *const names[] = {argv[1], NULL};

	if (argc < 3)
		return usage(ctl, "a session and a text are missing");
	if (argc > 3)
		return usage(ctl, "the text must be one argument, in quotes");
	return bus_call(ctl, argv[1], "Trigger", &reply, "s", argv[2]) < 0 ? CTL_FAILED
									   : done_with(ctl, names);
}

/* --- rotate */

static int rotate_one(struct ctl *ctl, const char *name, struct json_object *array)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	const char *file;
	int r = bus_call(ctl, name, "Rotate", &reply, NULL);

	if (r >= 0)
		r = bus_read(ctl, reply, "s", &file);
	if (r < 0)
		return r;
	if (array) {
		struct json_object *o = json_object_new_object();

		json_add(o, "name", json_text(name));
		json_add(o, "path", json_text(file));
		json_append(array, o);
	} else if (*file) {
		printf("%s\n", file);
	} else {
		(void)ctl_complain(ctl, "session %s had recorded nothing yet", name);
	}
	return 0;
}

enum ctl_status verb_rotate(struct ctl *ctl, int argc, char **argv)
{
	struct json_object *array = ctl->json ? json_object_new_array() : NULL;
	_cleanup_(strv_freep) char **all = NULL;
	int r = argc == 1 ? view_recording(ctl, false, NULL, &all) : 0;

	STRV_FOREACH (name, all ? all : argv + 1) {
		int one = rotate_one(ctl, *name, array);

		r = one < 0 ? one : r;
	}
	if (array && print_json_member("sessions", array) != CTL_DONE)
		return CTL_FAILED;
	return r < 0 ? CTL_FAILED : CTL_DONE;
}

/* --- start, stop, pause, resume */

/* @types: "b" where the method takes whether to keep it, or NULL */
static enum ctl_status each_session(struct ctl *ctl, int argc, char **argv, const char *types)
{
	int r = 0;

	if (argc < 2)
		return usage(ctl, "a SESSION is missing");
	for (int i = 1; i < argc; i++) {
		int one = bus_call(ctl, argv[i], ctl->method, NULL, types, ctl->persist);

		r = one < 0 ? one : r;
	}
	return r < 0 ? CTL_FAILED : done_with(ctl, argv + 1);
}

enum ctl_status verb_start(struct ctl *ctl, int argc, char **argv)
{
	return each_session(ctl, argc, argv, "b");
}

enum ctl_status verb_pause(struct ctl *ctl, int argc, char **argv)
{
	return each_session(ctl, argc, argv, NULL);
}

/* --- events */

enum ctl_status verb_events(struct ctl *ctl, int argc, char **argv)
{
	if (argc < 3)
		return usage(ctl, "a SESSION and an EVENT are needed");
	if (bus_call(ctl, argv[1], ctl->method, NULL, "asb", argv + 2, ctl->persist) < 0)
		return CTL_FAILED;
	return done_with(ctl, (char *[]){argv[1], NULL});
}

enum ctl_status verb_filter(struct ctl *ctl, int argc, char **argv)
{
	if (argc != 4)
		return usage(ctl, "SESSION, EVENT and FILTER are needed");
	if (bus_call(ctl, argv[1], "SetFilter", NULL, "ssb", argv[2], argv[3], ctl->persist) < 0)
		return CTL_FAILED;
	return done_with(ctl, (char *[]){argv[1], NULL});
}

/* --- vacuum */

enum ctl_status verb_vacuum(struct ctl *ctl, int argc, char **argv)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	_cleanup_free_ char *freed = NULL;
	uint64_t max_use = 0, older = 0, bytes;
	uint32_t files;

	if (argc > 1)
		return usage(ctl, "no arguments but options");
	if (!ctl->max_use && !ctl->older_than)
		return usage(ctl, "--max-use= or --older-than= is needed");
	if (ctl->max_use && parse_size(ctl->max_use, &max_use) < 0)
		return usage(ctl, "--max-use= takes a size such as 500M; 0: remove all");
	if (ctl->older_than && parse_time(ctl->older_than, &older) < 0)
		return usage(ctl, "--older-than= takes a time span such as 2weeks; 0: remove all");
	/* 0 of the call is no limit; the least that is one removes all, too */
	if (ctl->max_use)
		max_use = MAX(max_use, UINT64_C(1));
	if (ctl->older_than)
		older = MAX(older, UINT64_C(1));
	if (bus_call(ctl, NULL, "Vacuum", &reply, "stt", "", max_use, older) < 0 ||
	    bus_read(ctl, reply, "ut", &files, &bytes) < 0)
		return CTL_FAILED;
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

enum ctl_status verb_reload(struct ctl *ctl, int argc, char **argv)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	_cleanup_(strv_freep) char **warnings = NULL;
	int r;

	if (argc > 1)
		return usage(ctl, "no arguments");
	if (bus_call(ctl, NULL, "Reload", &reply, NULL) < 0)
		return CTL_FAILED;
	r = sd_bus_message_read_strv(reply, &warnings);
	if (r < 0) {
		(void)bus_bad_answer(ctl, r);
		return CTL_FAILED;
	}
	if (ctl->json)
		return print_json_member("warnings", json_list(warnings));
	STRV_FOREACH (warning, warnings) {
		_cleanup_free_ char *shown = escape_text(*warning, false);

		(void)fprintf(stderr, "%s\n", shown ? shown : "?");
	}
	return CTL_DONE;
}

/* --- pin, unpin */

enum ctl_status verb_pin(struct ctl *ctl, int argc, char **argv)
{
	const bool pin = strcmp(ctl->verb, "pin") == 0;
	struct json_object *o;
	int r = 0;

	if (argc < 2)
		return usage(ctl, "a FILE is missing");
	for (int i = 1; i < argc; i++) {
		/* "./x" and links are ours to resolve */
		_cleanup_free_ char *path = argv[i][0] == '/' ? NULL : realpath(argv[i], NULL);
		int one = bus_call(ctl, NULL, "PinFile", NULL, "sb", path ? path : argv[i], pin);

		r = one < 0 ? one : r;
	}
	if (r < 0 || !ctl->json)
		return r < 0 ? CTL_FAILED : CTL_DONE;
	o = json_object_new_object();
	json_add(o, "pinned", json_object_new_boolean(pin));
	json_add(o, "files", json_list(argv + 1));
	return print_json(o);
}
