/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/out-file.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "basic/timestamp.h"
#include "convert/convert.h"
#include "ctl/output.h"
#include "ctl/verbs.h"
#include "ctl/view.h"
#include "writer/copy.h"

#define REASON_MAX 28U

/* What is wanted, once for all sessions */
struct wanted {
	const struct ctl *ctl;
	uint64_t from_usec, to_usec;
	struct out_file out; /* --output= */
	bool coresight;	     /* still to be asked for: reading a sink takes what is in it */
	struct json_object *array;
};

static bool parse_when(const char *option, const char *text, uint64_t now, uint64_t *ret)
{
	if (!text || timestamp_parse(text, now, ret) >= 0)
		return true;
	(void)fprintf(stderr,
		      "flyrecctl: snapshot: %s: \"%s\" is not a point in time, see "
		      "systemd.time(7)\n",
		      option, text);
	return false;
}

static bool parse_range(const struct ctl *ctl, struct wanted *w)
{
	uint64_t now = now_usec(CLOCK_REALTIME), last = 0;

	w->to_usec = UINT64_MAX;
	if (ctl->last && (ctl->since || ctl->until)) {
		(void)fprintf(stderr, "flyrecctl: snapshot: --last= or --since= and --until=, "
				      "not both\n");
		return false;
	}
	if (ctl->last && parse_time(ctl->last, &last) < 0) {
		(void)fprintf(stderr,
			      "flyrecctl: snapshot: --last=: \"%s\" is not a time span such as "
			      "30s; 0, or no --last=, is all there is\n",
			      ctl->last);
		return false;
	}
	if (last > 0) /* as Last= of a configuration: 0 is all */
		w->from_usec = now - MIN(last, now);
	if (!parse_when("--since=", ctl->since, now, &w->from_usec) ||
	    !parse_when("--until=", ctl->until, now, &w->to_usec))
		return false;
	if (w->from_usec > now) {
		_cleanup_free_ char *text = format_time(w->from_usec);

		(void)fprintf(stderr, "flyrecctl: snapshot: --since=%s is in the future: %s\n",
			      ctl->since, text ? text : "?");
		return false;
	}
	if (w->from_usec < w->to_usec)
		return true;
	(void)fprintf(stderr, "flyrecctl: snapshot: the range ends before it begins\n");
	return false;
}

/* A word for the file's name, and maybe text behind it, which flyrecd checks */
static bool check_reason(const char *reason)
{
	size_t n = reason ? strcspn(reason, " ") : 0;

	if (!reason || (n > 0 && n <= REASON_MAX &&
			strspn(reason, "abcdefghijklmnopqrstuvwxyz0123456789-") >= n))
		return true;
	(void)fprintf(stderr,
		      "flyrecctl: snapshot: --reason=: \"%s\": the first word may have a-z, 0-9 "
		      "and \"-\", at most %u of them\n",
		      reason, REASON_MAX);
	return false;
}

static int copy_out(sd_bus *bus, struct wanted *w, const char *name, const char *path)
{
	_cleanup_close_ int fd = bus_open_file(bus, "snapshot", name, path);
	struct fault why;
	int r;

	if (fd < 0)
		return fd;
	r = copy_trace(fd, path, w->out.fd, NULL, &why);
	if (r >= 0)
		r = out_file_publish(&w->out, &why);
	if (r < 0)
		log_error("snapshot: %s", why.text);
	return r;
}

/* What was made, and where */
struct made {
	const char *path;		      /* of the snapshot */
	const char *directory;		      /* of the CoreSight snapshot; "" or NULL: none */
	const char *why;		      /* there is none */
	uint64_t start_usec, end_usec, bytes; /* of the snapshot, once they are known; 0 else */
};

/* What there is instead */
static void tell_nothing(sd_bus *bus, const struct wanted *w, const char *name)
{
	_cleanup_free_ char *from = format_time(w->from_usec), *to = NULL, *back = NULL;
	struct view_status status = {};
	const struct view_session *s;
	uint64_t now = now_usec(CLOCK_REALTIME);

	if (view_read_status(bus, "snapshot", name, &status) < 0)
		return;
	s = &status.sessions[0];
	to = format_time(MIN(w->to_usec, now));
	if (s->history_usec > 0)
		back = format_time(now - MIN(now, s->history_usec));
	else if (s->started_usec > 0)
		back = format_time(s->started_usec);
	if (s->history_usec > 0 && (w->from_usec > 0 || w->to_usec < UINT64_MAX))
		(void)fprintf(stderr,
			      "flyrecctl: snapshot: %s: nothing was recorded from %s to %s; it "
			      "reaches back to %s\n",
			      name, w->from_usec > 0 ? from : "the first event", to ? to : "?",
			      back ? back : "?");
	else
		(void)fprintf(stderr, "flyrecctl: snapshot: %s: no events yet%s%s%s\n", name,
			      back ? " (recording since " : "", back ? back : "", back ? ")" : "");
	view_status_done(&status);
}

static int call_snapshot(sd_bus *bus, struct wanted *w, const char *name,
			 sd_bus_message **ret_reply, struct made *ret)
{
	const char *reason = w->ctl->reason ? w->ctl->reason : "control";
	bool coresight = w->coresight;
	_cleanup_message_ sd_bus_message *call = NULL;
	_cleanup_free_ char *object = NULL;
	int r = bus_find_session(bus, "snapshot", name, &object);

	if (r < 0)
		return r;
	r = sd_bus_message_new_method_call(bus, &call, NULL, object, BUS_SESSION,
					   coresight ? "SnapshotCoresight" : "Snapshot");
	if (r >= 0)
		r = sd_bus_message_append(call, "ttsb", w->from_usec, w->to_usec, reason,
					  w->ctl->pin);
	if (r < 0) {
		(void)fprintf(stderr, "flyrecctl: snapshot: %s\n", strerror(-r));
		return r;
	}
	r = bus_call_snapshot(bus, "snapshot", call, ret_reply);
	if (r == -ENODATA)
		tell_nothing(bus, w, name);
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

/* How much of what was asked for is there */
static void tell_span(const struct wanted *w, const char *name, const struct made *made)
{
	uint64_t until = MIN(w->to_usec, now_usec(CLOCK_REALTIME));
	uint64_t asked = until - MIN(w->from_usec, until), missing;
	_cleanup_free_ char *has = NULL, *start = NULL;

	if (w->from_usec == 0 || made->start_usec <= w->from_usec)
		return;
	missing = made->start_usec - w->from_usec;
	if (missing <= MAX(USEC_PER_SEC, asked / 20))
		return;
	has = format_timespan(made->end_usec - MIN(made->start_usec, made->end_usec));
	start = format_time(made->start_usec);
	(void)fprintf(stderr, "flyrecctl: snapshot: %s: asked for %s%s, has %s, from %s on\n", name,
		      w->ctl->last ? "" : "what is since ",
		      w->ctl->last ? w->ctl->last : w->ctl->since, has ? has : "?",
		      start ? start : "?");
}

/* What the list of files says of it; nothing if it has been removed already */
static void find_span(sd_bus *bus, const struct wanted *w, const char *name, struct made *made)
{
	struct view_files files;

	if ((!w->array && w->from_usec == 0) || view_read_files(bus, "snapshot", name, &files) < 0)
		return;
	for (size_t i = 0; i < files.n; i++)
		if (strcmp(files.files[i].path, made->path) == 0) {
			made->start_usec = files.files[i].start_usec;
			made->end_usec = files.files[i].end_usec;
			made->bytes = files.files[i].bytes;
		}
	view_files_done(&files);
}

static int show_made(const struct wanted *w, const char *name, const struct made *made)
{
	bool lacking = made->directory && !*made->directory;
	bool copied = w->ctl->output;

	if (w->array) {
		struct json_object *o = json_object_new_object();

		json_add(o, "name", json_text(name));
		json_add(o, "path", json_text(copied ? w->ctl->output : made->path));
		if (made->directory)
			json_add(o, "coresight", lacking ? NULL : json_text(made->directory));
		json_add(o, "start_usec", json_number(made->start_usec));
		json_add(o, "end_usec", json_number(made->end_usec));
		json_add(o, "bytes", json_number(made->bytes));
		(void)json_object_array_add(w->array, o);
	} else if (!copied || w->out.kind != OUT_FILE_STANDARD) {
		printf("%s\n", copied ? w->ctl->output : made->path);
		if (made->directory && !lacking)
			printf("%s\n", made->directory);
	}
	tell_span(w, name, made);
	if (lacking)
		(void)fprintf(stderr, "flyrecctl: snapshot: %s: made, but without CoreSight: %s\n",
			      name, made->why);
	return lacking ? -EIO : 0;
}

/* Copy and show it */
static int finish_made(sd_bus *bus, struct wanted *w, const char *name, struct made *made)
{
	int r = 0;

	find_span(bus, w, name, made);
	if (w->ctl->output)
		r = copy_out(bus, w, name, made->path);
	return r < 0 ? r : show_made(w, name, made);
}

static int snapshot_one(sd_bus *bus, struct wanted *w, const char *name)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	struct made made;
	int r = call_snapshot(bus, w, name, &reply, &made);

	return r < 0 ? r : finish_made(bus, w, name, &made);
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

	return r < 0 ? r : bus_open_file(local->bus, "snapshot", local->name, local->made.path);
}

static int snapshot_local(sd_bus *bus, struct wanted *w, const char *name)
{
	struct local local = {.bus = bus, .w = w, .name = name};
	const struct arm_dat dat = {.open = open_local, .userdata = &local, .path = name};
	int r = arm_save(&w->ctl->convert, w->ctl->coresight_dir, &dat) == CONVERT_DONE ? 0 : -EIO;

	if (r >= 0) {
		local.made.directory = w->ctl->coresight_dir;
		r = finish_made(bus, w, name, &local.made);
	}
	(void)sd_bus_message_unref(local.reply);
	return r;
}

static bool records(const struct view_session *session)
{
	return strcmp(session->state, "recording") == 0 || strcmp(session->state, "paused") == 0;
}

/* One that has nothing yet does not make the others fail */
static int snapshot_all(sd_bus *bus, struct wanted *w)
{
	struct view_status status;
	unsigned n = 0, made = 0;
	int r = view_read_status(bus, "snapshot", NULL, &status);

	if (r < 0)
		return r;
	for (size_t i = 0; i < status.n_sessions; i++) {
		int one;

		if (!records(&status.sessions[i]))
			continue;
		n++;
		one = snapshot_one(bus, w, status.sessions[i].name);
		made += one >= 0;
		r = one < 0 && one != -ENODATA ? one : r;
	}
	view_status_done(&status);
	if (n > 0)
		return r < 0 || made > 0 ? r : -ENODATA;
	(void)fprintf(stderr, "flyrecctl: snapshot: no session is recording\n");
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
		(void)fprintf(stderr, "flyrecctl: snapshot: no session is recording\n");
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
	if (r < 0 || !w->array)
		return r < 0 ? r : finish_made(bus, w, names[0], &made);
	find_span(bus, w, names[0], &made);
	if (w->ctl->output)
		r = copy_out(bus, w, names[0], made.path);
	for (char **name = names; r >= 0 && *name; name++)
		(void)show_made(w, *name, &made);
	return r;
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

static bool usage(const char *what)
{
	(void)fprintf(stderr, "flyrecctl: snapshot: %s\n", what);
	return false;
}

static bool check_options(const struct ctl *ctl, int argc)
{
	if (!check_reason(ctl->reason))
		return false;
	if (ctl->together && argc == 2)
		return usage("--together needs two SESSIONs or more, or none for all that record");
	if (ctl->together && ctl->coresight)
		return usage("--together and --coresight exclude each other");
	if (ctl->output && argc != 2 && !ctl->together)
		return usage("--output= needs one SESSION or --together");
	if (ctl->output && ctl->host) {
		(void)fprintf(stderr,
			      "flyrecctl: snapshot: --output= would be on %s: take the snapshot "
			      "without it and use flyrecctl -H %s cat\n",
			      ctl->host, ctl->host);
		return false;
	}
	if (ctl->output && out_file_is_standard(ctl->output) && ctl->json)
		return usage("--json and --output=- would both be on standard output");
	if (ctl->coresight_dir && (argc != 2 || ctl->host))
		return usage(ctl->host ? "--coresight=DIR reads this machine's sinks: not with -H"
				       : "--coresight=DIR needs one SESSION");
	if (!ctl->coresight_dir && (ctl->convert.sysroot || ctl->convert.memory))
		return usage("--sysroot= and --memory= need --coresight=DIR");
	return true;
}

enum ctl_status verb_snapshot(const struct ctl *ctl, int argc, char **argv)
{
	struct wanted w = {
		.ctl = ctl,
		.out = {.fd = -EBADF, .file = {.fd = -EBADF}},
		.coresight = ctl->coresight && !ctl->coresight_dir,
	};
	enum ctl_status result;
	struct fault why;

	if (!parse_range(ctl, &w) || !check_options(ctl, argc))
		return CTL_USAGE;
	(void)signal(SIGPIPE, SIG_IGN); /* of --output=-: an error like others */
	if (ctl->output &&
	    out_file_open(&w.out, ctl->output, -EBADF, "copy", OUT_FILE_BINARY, &why) < 0) {
		log_error("snapshot: %s", why.text);
		return w.out.kind == OUT_FILE_STANDARD ? CTL_USAGE : CTL_FAILED;
	}
	result = take(&w, argc, argv);
	out_file_done(&w.out);
	return result;
}
