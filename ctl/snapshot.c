/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/parse.h"
#include "basic/timestamp.h"
#include "ctl/copy.h"
#include "ctl/output.h"
#include "ctl/snapshot.h"
#include "ctl/view.h"

/* What is wanted, once for all sessions */
struct wanted {
	const struct ctl *ctl;
	uint64_t from_usec, to_usec;
	int out_fd; /* --output= */
	struct json_object *array;
};

static bool parse_when(const char *option, const char *text, uint64_t now, uint64_t *ret)
{
	if (!text || timestamp_parse(text, now, ret) >= 0)
		return true;
	(void)fprintf(stderr,
		      "flyrecctl: snapshot: %s: \"%s\" is no point in time, see "
		      "systemd.time(7)\n",
		      option, text);
	return false;
}

static bool parse_range(const struct ctl *ctl, struct wanted *w)
{
	uint64_t now = timestamp_now(), last;

	w->to_usec = UINT64_MAX;
	if (ctl->last && (ctl->since || ctl->until)) {
		(void)fprintf(stderr, "flyrecctl: snapshot: --last= or --since= and --until=, "
				      "not both\n");
		return false;
	}
	if (ctl->last && (parse_time(ctl->last, &last) < 0 || last == 0)) {
		(void)fprintf(stderr, "flyrecctl: snapshot: --last= takes a time span, as in "
				      "30s\n");
		return false;
	}
	if (ctl->last)
		w->from_usec = now - MIN(last, now);
	if (!parse_when("--since=", ctl->since, now, &w->from_usec) ||
	    !parse_when("--until=", ctl->until, now, &w->to_usec))
		return false;
	if (w->from_usec < w->to_usec)
		return true;
	(void)fprintf(stderr, "flyrecctl: snapshot: the range ends before it begins\n");
	return false;
}

static int copy_out(sd_bus *bus, const struct wanted *w, const char *name, const char *path)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	struct fault why;
	int fd, r;

	r = bus_call(bus, "snapshot", BUS_PATH, BUS_MANAGER, "OpenFile", &reply, "ss", name, path);
	if (r < 0)
		return r;
	r = sd_bus_message_read(reply, "h", &fd);
	if (r < 0)
		return bus_bad_answer("snapshot", r);
	r = copy_trace(fd, path, w->out_fd, NULL, &why);
	if (r < 0)
		(void)fprintf(stderr, "flyrecctl: snapshot: %s\n", why.text);
	return r;
}

static int snapshot_one(sd_bus *bus, const struct wanted *w, const char *name)
{
	const char *reason = w->ctl->reason ? w->ctl->reason : "control", *path;
	_cleanup_message_ sd_bus_message *reply = NULL, *where = NULL;
	const char *object;
	int r;

	r = bus_call(bus, "snapshot", BUS_PATH, BUS_MANAGER, "GetSession", &where, "s", name);
	if (r < 0)
		return r;
	r = sd_bus_message_read(where, "o", &object);
	if (r < 0)
		return bus_bad_answer("snapshot", r);
	r = bus_call(bus, "snapshot", object, BUS_SESSION, "Snapshot", &reply, "ttsb", w->from_usec,
		     w->to_usec, reason, w->ctl->pin);
	if (r < 0)
		return r;
	r = sd_bus_message_read(reply, "s", &path);
	if (r < 0)
		return bus_bad_answer("snapshot", r);
	if (w->out_fd >= 0) {
		r = copy_out(bus, w, name, path);
		path = w->ctl->output;
	}
	if (r < 0)
		return r;
	if (w->array) {
		struct json_object *o = json_object_new_object();

		json_add(o, "name", json_text(name));
		json_add(o, "path", json_text(path));
		(void)json_object_array_add(w->array, o);
	} else {
		printf("%s\n", path);
	}
	return 0;
}

static int snapshot_all(sd_bus *bus, const struct wanted *w)
{
	struct view_status status;
	unsigned n = 0;
	int r = view_read_status(bus, "snapshot", NULL, &status);

	if (r < 0)
		return r;
	for (size_t i = 0; i < status.n_sessions; i++) {
		const char *state = status.sessions[i].state;
		int one;

		if (strcmp(state, "recording") != 0 && strcmp(state, "paused") != 0)
			continue;
		n++;
		one = snapshot_one(bus, w, status.sessions[i].name);
		r = one < 0 ? one : r;
	}
	view_status_done(&status);
	if (n > 0)
		return r;
	(void)fprintf(stderr, "flyrecctl: snapshot: no session records\n");
	return -ENOTCONN;
}

static enum ctl_status take(struct wanted *w, int argc, char **argv)
{
	_cleanup_bus_ sd_bus *bus = NULL;
	struct json_object *o;
	int r;

	if (bus_connect(w->ctl, "snapshot", &bus) < 0)
		return CTL_FAILED;
	if (w->ctl->json)
		w->array = json_object_new_array();
	r = argc == 1 ? snapshot_all(bus, w) : 0;
	for (int i = 1; i < argc; i++) {
		int one = snapshot_one(bus, w, argv[i]);

		r = one < 0 ? one : r;
	}
	if (w->array) {
		o = json_object_new_object();
		json_add(o, "sessions", w->array);
		if (print_json(o) != CTL_DONE)
			r = -EIO;
	}
	return r < 0 ? CTL_FAILED : CTL_DONE;
}

enum ctl_status verb_snapshot(const struct ctl *ctl, int argc, char **argv)
{
	struct wanted w = {.ctl = ctl, .out_fd = -EBADF};
	enum ctl_status result;

	if (!parse_range(ctl, &w))
		return CTL_USAGE;
	if (ctl->output && (argc != 2 || ctl->host)) {
		(void)fprintf(stderr, "flyrecctl: snapshot: --output= takes one SESSION, here\n");
		return CTL_USAGE;
	}
	if (ctl->output) {
		w.out_fd = open(ctl->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (w.out_fd < 0) {
			(void)fprintf(stderr, "flyrecctl: snapshot: cannot write to %s: %s\n",
				      ctl->output, strerror(errno));
			return CTL_FAILED;
		}
	}
	result = take(&w, argc, argv);
	close_p(&w.out_fd);
	return result;
}
