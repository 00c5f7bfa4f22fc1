/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "basic/timestamp.h"
#include "ctl/copy.h"
#include "ctl/export-arm.h"
#include "ctl/output.h"
#include "ctl/snapshot.h"
#include "ctl/view.h"

/* What is wanted, once for all sessions */
struct wanted {
	const struct ctl *ctl;
	uint64_t from_usec, to_usec;
	int out_fd;	/* --output= */
	bool coresight; /* still to be asked for: reading a sink takes what is in it */
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
	uint64_t now = now_usec(CLOCK_REALTIME), last;

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

/* Return: an fd of a snapshot, or negative errno */
static int open_file(sd_bus *bus, const char *name, const char *path)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	int fd, r;

	r = bus_call(bus, "snapshot", BUS_PATH, BUS_MANAGER, "OpenFile", &reply, "ss", name, path);
	if (r < 0)
		return r;
	r = sd_bus_message_read(reply, "h", &fd);
	if (r < 0)
		return bus_bad_answer("snapshot", r);
	/* the message has its own, and closes it */
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? bus_bad_answer("snapshot", -errno) : fd;
}

static int copy_out(sd_bus *bus, const struct wanted *w, const char *name, const char *path)
{
	_cleanup_close_ int fd = open_file(bus, name, path);
	struct fault why;
	int r;

	if (fd < 0)
		return fd;
	r = copy_trace(fd, path, w->out_fd, NULL, &why);
	if (r < 0)
		log_error("snapshot: %s", why.text);
	return r;
}

/* What was made, and where */
struct made {
	const char *path;      /* of the snapshot */
	const char *directory; /* of the CoreSight snapshot; "" or NULL: none */
	const char *why;       /* there is none */
};

static int call_snapshot(sd_bus *bus, struct wanted *w, const char *name,
			 sd_bus_message **ret_reply, struct made *ret)
{
	const char *reason = w->ctl->reason ? w->ctl->reason : "control", *object;
	bool coresight = w->coresight;
	_cleanup_message_ sd_bus_message *where = NULL;
	int r;

	r = bus_call(bus, "snapshot", BUS_PATH, BUS_MANAGER, "GetSession", &where, "s", name);
	if (r < 0)
		return r;
	r = sd_bus_message_read(where, "o", &object);
	if (r < 0)
		return bus_bad_answer("snapshot", r);
	r = bus_call(bus, "snapshot", object, BUS_SESSION,
		     coresight ? "SnapshotCoresight" : "Snapshot", ret_reply, "ttsb", w->from_usec,
		     w->to_usec, reason, w->ctl->pin);
	if (r < 0)
		return r;
	*ret = (struct made){};
	if (coresight)
		r = sd_bus_message_read(*ret_reply, "sss", &ret->path, &ret->directory, &ret->why);
	else
		r = sd_bus_message_read(*ret_reply, "s", &ret->path);
	if (r >= 0)
		w->coresight = false;
	return r < 0 ? bus_bad_answer("snapshot", r) : 0;
}

static int show_made(const struct wanted *w, const char *name, const struct made *made)
{
	bool lacking = made->directory && !*made->directory;

	if (w->array) {
		struct json_object *o = json_object_new_object();

		json_add(o, "name", json_text(name));
		json_add(o, "path", json_text(made->path));
		if (made->directory)
			json_add(o, "coresight", lacking ? NULL : json_text(made->directory));
		(void)json_object_array_add(w->array, o);
	} else {
		printf("%s\n", made->path);
		if (made->directory && !lacking)
			printf("%s\n", made->directory);
	}
	if (lacking)
		log_error("snapshot: made, but without CoreSight: %s", made->why);
	return lacking ? -ENODATA : 0;
}

static int snapshot_one(sd_bus *bus, struct wanted *w, const char *name)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	struct made made;
	int r = call_snapshot(bus, w, name, &reply, &made);

	if (r >= 0 && w->out_fd >= 0) {
		r = copy_out(bus, w, name, made.path);
		made.path = w->ctl->output;
	}
	return r < 0 ? r : show_made(w, name, &made);
}

/* --coresight=DIR: the sinks first, then the snapshot, which is copied beside them */
struct local {
	sd_bus *bus;
	struct wanted *w;
	const char *name;
	sd_bus_message *reply;
	struct made made;
};

static int open_local(void *userdata)
{
	struct local *local = userdata;
	int r = call_snapshot(local->bus, local->w, local->name, &local->reply, &local->made);

	return r < 0 ? r : open_file(local->bus, local->name, local->made.path);
}

static int snapshot_local(sd_bus *bus, struct wanted *w, const char *name)
{
	struct local local = {.bus = bus, .w = w, .name = name};
	const struct arm_dat dat = {.open = open_local, .userdata = &local, .path = name};
	int r = arm_save(w->ctl, w->ctl->coresight_dir, &dat) == CTL_DONE ? 0 : -EIO;

	if (r >= 0 && w->out_fd >= 0) {
		r = copy_out(bus, w, name, local.made.path);
		local.made.path = w->ctl->output;
	}
	if (r >= 0) {
		local.made.directory = w->ctl->coresight_dir;
		r = show_made(w, name, &local.made);
	}
	(void)sd_bus_message_unref(local.reply);
	return r;
}

static bool records(const struct view_session *session)
{
	return strcmp(session->state, "recording") == 0 || strcmp(session->state, "paused") == 0;
}

static int snapshot_all(sd_bus *bus, struct wanted *w)
{
	struct view_status status;
	unsigned n = 0;
	int r = view_read_status(bus, "snapshot", NULL, &status);

	if (r < 0)
		return r;
	for (size_t i = 0; i < status.n_sessions; i++) {
		int one;

		if (!records(&status.sessions[i]))
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

/* --- --together: one file of several sessions */

/* Those named, or all that record; @ret: NULL-terminated */
static int choose_sessions(sd_bus *bus, int argc, char **argv, char ***ret)
{
	_cleanup_(strv_freep) char **names = NULL;
	struct view_status status;
	int r = 0;

	for (int i = 1; i < argc && r >= 0; i++)
		r = strv_append(&names, argv[i]);
	if (argc == 1) {
		r = view_read_status(bus, "snapshot", NULL, &status);
		if (r < 0)
			return r;
		for (size_t i = 0; i < status.n_sessions && r >= 0; i++)
			if (records(&status.sessions[i]))
				r = strv_append(&names, status.sessions[i].name);
		view_status_done(&status);
	}
	if (r >= 0 && !names) {
		(void)fprintf(stderr, "flyrecctl: snapshot: no session records\n");
		return -ENOTCONN;
	}
	if (r < 0)
		return bus_bad_answer("snapshot", r);
	*ret = TAKE_PTR(names);
	return 0;
}

static int call_together(sd_bus *bus, const struct wanted *w, char **names,
			 sd_bus_message **ret_reply, struct made *ret)
{
	_cleanup_message_ sd_bus_message *call = NULL;
	int r = sd_bus_message_new_method_call(bus, &call, NULL, BUS_PATH, BUS_MANAGER,
					       "SnapshotTogether");

	if (r >= 0)
		r = sd_bus_message_append_strv(call, names);
	if (r >= 0)
		r = sd_bus_message_append(call, "ttsb", w->from_usec, w->to_usec,
					  w->ctl->reason ? w->ctl->reason : "", w->ctl->pin);
	if (r < 0) {
		(void)fprintf(stderr, "flyrecctl: snapshot: %s\n", strerror(-r));
		return r;
	}
	r = bus_call_message(bus, "snapshot", call, ret_reply);
	if (r < 0)
		return r;
	*ret = (struct made){};
	r = sd_bus_message_read(*ret_reply, "s", &ret->path);
	return r < 0 ? bus_bad_answer("snapshot", r) : 0;
}

static int snapshot_together(sd_bus *bus, struct wanted *w, int argc, char **argv)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	_cleanup_(strv_freep) char **names = NULL;
	struct made made;
	int r = choose_sessions(bus, argc, argv, &names);

	if (r >= 0)
		r = call_together(bus, w, names, &reply, &made);
	if (r >= 0 && w->out_fd >= 0) {
		r = copy_out(bus, w, names[0], made.path);
		made.path = w->ctl->output;
	}
	if (r < 0 || !w->array)
		return r < 0 ? r : show_made(w, names[0], &made);
	STRV_FOREACH (name, names)
		(void)show_made(w, *name, &made);
	return 0;
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
	if (w->ctl->together)
		r = snapshot_together(bus, w, argc, argv);
	else
		r = argc == 1 ? snapshot_all(bus, w) : 0;
	for (int i = 1; i < argc && !w->ctl->together; i++) {
		int one = (w->ctl->coresight_dir ? snapshot_local : snapshot_one)(bus, w, argv[i]);

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
	struct wanted w = {
		.ctl = ctl,
		.out_fd = -EBADF,
		.coresight = ctl->coresight && !ctl->coresight_dir,
	};
	enum ctl_status result;

	if (!parse_range(ctl, &w))
		return CTL_USAGE;
	if (ctl->together && (argc == 2 || ctl->coresight)) {
		(void)fprintf(stderr, "flyrecctl: snapshot: --together takes %s\n",
			      argc == 2 ? "two SESSIONs or more, or none for all that record"
					: "no --coresight");
		return CTL_USAGE;
	}
	if (ctl->output && ((argc != 2 && !ctl->together) || ctl->host)) {
		(void)fprintf(stderr, "flyrecctl: snapshot: --output= takes one SESSION (or "
				      "--together), here\n");
		return CTL_USAGE;
	}
	if (ctl->coresight_dir ? argc != 2 || ctl->host : ctl->sysroot || ctl->memory) {
		(void)fprintf(stderr, "flyrecctl: snapshot: %s\n",
			      ctl->coresight_dir ? "--coresight=DIR takes one SESSION, here"
						 : "--sysroot= and --memory= take --coresight=DIR");
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
