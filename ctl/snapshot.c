/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/now.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "basic/timestamp.h"
#include "convert/convert.h"
#include "ctl/bus.h"
#include "ctl/output.h"
#include "ctl/remote.h"
#include "ctl/view.h"
#include "formats/own-cause.h"

#define REASON_MAX 28U

/* What is wanted, once for all sessions */
struct wanted {
	struct ctl *ctl;
	uint64_t from_usec, to_usec;
	struct out_file out; /* --output= */
	bool coresight;	     /* still to be asked for: reading a sink takes what is in it */
	struct json_object *array;
};

static enum ctl_status parse_when(const struct ctl *ctl, const char *option, const char *text,
				  uint64_t now, uint64_t *ret)
{
	if (!text || timestamp_parse(text, now, ret) >= 0)
		return CTL_DONE;
	return ctl_complain(ctl, "%s: \"%s\" is not a point in time, see systemd.time(7)", option,
			    text);
}

static enum ctl_status parse_range(const struct ctl *ctl, struct wanted *w)
{
	uint64_t now = now_usec(CLOCK_REALTIME), last = 0;
	_cleanup_free_ char *text = NULL;

	w->to_usec = UINT64_MAX;
	if (ctl->last && (ctl->since || ctl->until))
		return ctl_complain(ctl, "--last= or --since= and --until=, not both");
	if (ctl->last && parse_time(ctl->last, &last) < 0)
		return ctl_complain(ctl,
				    "--last=: \"%s\" is not a time span such as 30s; 0, or no "
				    "--last=, is all there is",
				    ctl->last);
	if (last > 0) /* as Last= of a configuration: 0 is all */
		w->from_usec = now - MIN(last, now);
	if (parse_when(ctl, "--since=", ctl->since, now, &w->from_usec) != CTL_DONE ||
	    parse_when(ctl, "--until=", ctl->until, now, &w->to_usec) != CTL_DONE)
		return CTL_USAGE;
	text = format_time(w->from_usec);
	if (w->from_usec > now)
		return ctl_complain(ctl, "--since=%s is in the future: %s", ctl->since,
				    text ? text : "?");
	if (w->from_usec >= w->to_usec)
		return ctl_complain(ctl, "the range ends before it begins");
	return CTL_DONE;
}

static int copy_out(struct wanted *w, const char *name, const char *path)
{
	int r = output_copy(w->ctl, name, path, &w->out, NULL);

	return r < 0 ? r : output_publish(w->ctl, &w->out);
}

/* What was made, and where */
struct made {
	const char *path;		      /* of the snapshot */
	const char *directory;		      /* of the CoreSight snapshot; "" or NULL: none */
	const char *why;		      /* there is none */
	const char *id;			      /* of another host's; or NULL */
	bool had;			      /* it was there, or under way, for somebody else */
	uint64_t start_usec, end_usec, bytes; /* of the snapshot, once they are known; 0 else */
};

/* What there is instead */
static void tell_nothing(const struct wanted *w, const char *name)
{
	_cleanup_free_ char *from = format_time(w->from_usec), *to = NULL, *back = NULL;
	struct view_status status = {};
	const struct view_session *s;
	uint64_t now = now_usec(CLOCK_REALTIME);

	if (view_read_status(w->ctl, name, &status) < 0)
		return;
	s = &status.sessions[0];
	to = format_time(MIN(w->to_usec, now));
	if (s->history_usec > 0)
		back = format_time(now - MIN(now, s->history_usec));
	else if (s->started_usec > 0)
		back = format_time(s->started_usec);
	if (s->history_usec > 0 && (w->from_usec > 0 || w->to_usec < UINT64_MAX))
		(void)ctl_complain(w->ctl,
				   "%s: nothing was recorded from %s to %s; it reaches back to %s",
				   name, w->from_usec > 0 ? from : "the first event", to ? to : "?",
				   back ? back : "?");
	else
		(void)ctl_complain(w->ctl, "%s: no events yet%s%s%s", name,
				   back ? " (recording since " : "", back ? back : "",
				   back ? ")" : "");
	view_done(view_status_fields, &status);
}

static int call_snapshot(struct wanted *w, const char *name, sd_bus_message **ret_reply,
			 struct made *ret)
{
	const char *reason = w->ctl->reason ? w->ctl->reason : "control";
	bool coresight = w->coresight;
	int r = bus_call(w->ctl, name, coresight ? "SnapshotCoresight" : "Snapshot", ret_reply,
			 "ttsb", w->from_usec, w->to_usec, reason, w->ctl->pin);

	if (r == BUS_E_NOTHING_RECORDED)
		tell_nothing(w, name);
	if (r < 0)
		return r;
	*ret = (struct made){};
	if (coresight)
		r = bus_read(w->ctl, *ret_reply, "sss", &ret->path, &ret->directory, &ret->why);
	else
		r = bus_read(w->ctl, *ret_reply, "s", &ret->path);
	if (r >= 0)
		w->coresight = false;
	return r;
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
	(void)ctl_complain(w->ctl, "%s: asked for %s%s, has %s, from %s on", name,
			   w->ctl->last ? "" : "what is since ",
			   w->ctl->last ? w->ctl->last : w->ctl->since, has ? has : "?",
			   start ? start : "?");
}

/* What the list of files says of it; nothing if it has been removed already */
static void find_span(const struct wanted *w, const char *name, struct made *made)
{
	struct view_files files;

	if ((!w->array && w->from_usec == 0) || view_read_files(w->ctl, name, &files) < 0)
		return;
	for (size_t i = 0; i < files.n; i++)
		if (strcmp(files.files[i].path, made->path) == 0) {
			made->start_usec = files.files[i].start_usec;
			made->end_usec = files.files[i].end_usec;
			made->bytes = files.files[i].bytes;
		}
	view_done(view_files_fields, &files);
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
		if (made->id) {
			json_add(o, "id", json_text(made->id));
			json_add(o, "had", json_object_new_boolean(made->had));
		}
		json_append(w->array, o);
	} else if (!copied || w->out.kind != OUT_FILE_STANDARD) {
		printf("%s\n", copied ? w->ctl->output : made->path);
		if (made->directory && !lacking)
			printf("%s\n", made->directory);
	}
	tell_span(w, name, made);
	if (lacking)
		(void)ctl_complain(w->ctl, "%s: made, but without CoreSight: %s", name, made->why);
	return lacking ? -EIO : 0;
}

/* Copy and show it */
static int finish_made(struct wanted *w, const char *name, struct made *made)
{
	int r = 0;

	find_span(w, name, made);
	if (w->ctl->output)
		r = copy_out(w, name, made->path);
	return r < 0 ? r : show_made(w, name, made);
}

static int snapshot_one(struct wanted *w, const char *name)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	struct made made;
	int r = call_snapshot(w, name, &reply, &made);

	return r < 0 ? r : finish_made(w, name, &made);
}

/* --coresight=DIR: the sinks first, then the snapshot, which is copied beside them */
struct local {
	struct wanted *w;
	const char *name;
	sd_bus_message *reply;
	struct made made;
};

static int open_local(void *userdata)
{
	struct local *local = userdata;
	int r = call_snapshot(local->w, local->name, &local->reply, &local->made);

	return r < 0 ? r
		     : bus_call_fd(local->w->ctl, NULL, NULL, "OpenFile", "ss", local->name,
				   local->made.path);
}

static int snapshot_local(struct wanted *w, const char *name)
{
	struct local local = {.w = w, .name = name};
	const struct arm_dat dat = {.open = open_local, .userdata = &local, .path = name};
	int r = arm_save(&w->ctl->convert, w->ctl->coresight_dir, &dat) == CONVERT_DONE ? 0 : -EIO;

	if (r >= 0) {
		local.made.directory = w->ctl->coresight_dir;
		r = finish_made(w, name, &local.made);
	}
	(void)sd_bus_message_unref(local.reply);
	return r;
}

/* --together: one file of several sessions */
static int snapshot_together(struct wanted *w, char **names)
{
	_cleanup_message_ sd_bus_message *reply = NULL;
	struct made made = {};
	int r = bus_call(w->ctl, NULL, "SnapshotTogether", &reply, "asttsb", names, w->from_usec,
			 w->to_usec, w->ctl->reason ? w->ctl->reason : "", w->ctl->pin);

	if (r >= 0)
		r = bus_read(w->ctl, reply, "s", &made.path);
	if (r < 0 || !w->array)
		return r < 0 ? r : finish_made(w, names[0], &made);
	find_span(w, names[0], &made);
	if (w->ctl->output)
		r = copy_out(w, names[0], made.path);
	for (char **name = names; r >= 0 && *name; name++)
		(void)show_made(w, *name, &made);
	return r;
}

#define LIMITED_MAX 8 /* calls at a time: flyrecd has 16 from one client, ListFiles too */

static int finish_limited(struct wanted *w, const char *name, struct bus_pending *pending)
{
	struct made made = {.id = w->ctl->id};
	int had, r = bus_await(pending);

	if (r == BUS_E_NOTHING_RECORDED)
		tell_nothing(w, name);
	if (r >= 0)
		r = bus_read(w->ctl, pending->reply, "sb", &made.path, &had);
	if (r < 0)
		return r;
	made.had = had;
	return finish_made(w, name, &made);
}

/* All at once: while one is made, the ring buffers of the others lose what is wanted. @all: of
 * those that refuse, others are none the worse. */
static int snapshot_limited(struct wanted *w, char **names, bool all)
{
	struct bus_pending pending[LIMITED_MAX];
	size_t n = strv_length(names);
	unsigned made = 0;
	int failure = 0;

	for (size_t first = 0; first < n; first += LIMITED_MAX) {
		size_t some = MIN(n - first, (size_t)LIMITED_MAX);
		int begun[LIMITED_MAX];

		for (size_t i = 0; i < some; i++)
			begun[i] = bus_begin(w->ctl, names[first + i], "SnapshotLimited",
					     &pending[i], "ttss", w->from_usec, w->to_usec,
					     w->ctl->reason ? w->ctl->reason : "peer", w->ctl->id);
		for (size_t i = 0; i < some; i++) {
			int r = begun[i] < 0 ? begun[i]
					     : finish_limited(w, names[first + i], &pending[i]);

			bus_pending_done(&pending[i]);
			made += r >= 0;
			failure = r < 0 ? r : failure;
		}
	}
	return all && made > 0 ? 0 : failure;
}

/* @all: one that has nothing yet does not make the others fail */
static int snapshot_each(struct wanted *w, char **names, bool all)
{
	unsigned made = 0;
	int r = 0;

	for (char **name = names; *name; name++) {
		int one = (w->ctl->coresight_dir ? snapshot_local : snapshot_one)(w, *name);

		made += one >= 0;
		if (one < 0 && !(all && one == BUS_E_NOTHING_RECORDED))
			r = one;
	}
	return r < 0 || made > 0 ? r : BUS_E_NOTHING_RECORDED;
}

/* @named: NULL-terminated; none: all that record */
static enum ctl_status take(struct wanted *w, char **named)
{
	_cleanup_(strv_freep) char **recording = NULL;
	int r = *named ? 0
		       : view_recording(w->ctl, true, w->ctl->limited ? "peer" : NULL, &recording);
	char **names = recording ? recording : named;

	if (w->ctl->json)
		w->array = json_object_new_array();
	if (r >= 0 && !*names) {
		(void)ctl_complain(w->ctl, "no session is recording%s",
				   w->ctl->limited ? " and takes snapshots for other hosts" : "");
		r = -ENOTCONN;
	}
	if (r >= 0)
		r = w->ctl->together  ? snapshot_together(w, names)
		    : w->ctl->limited ? snapshot_limited(w, names, recording)
				      : snapshot_each(w, names, recording);
	if (w->array && print_json_member("sessions", w->array) != CTL_DONE)
		r = -EIO;
	return r < 0 ? CTL_FAILED : CTL_DONE;
}

static enum ctl_status check_options(const struct ctl *ctl, int argc)
{
	const char *reason = ctl->reason ? ctl->reason : "-";
	size_t n = strcspn(reason, " ");

	/* A word for the file's name, and maybe text behind it, which flyrecd checks */
	if (n == 0 || n > REASON_MAX || strspn(reason, "abcdefghijklmnopqrstuvwxyz0123456789-") < n)
		return ctl_complain(ctl,
				    "--reason=: \"%s\": the first word may have a-z, 0-9 and "
				    "\"-\", at most %u of them",
				    reason, REASON_MAX);
	if (ctl->limited != !!ctl->id)
		return ctl_complain(ctl, "--limited and --id= need each other");
	if (ctl->id && !own_id_valid(ctl->id))
		return ctl_complain(
			ctl,
			"--id=: \"%s\": 1 to %d of A-Z, a-z, 0-9, \".\", \"_\", \":\" and "
			"\"-\", the first a letter or digit",
			ctl->id, OWN_ID_MAX);
	if (ctl->limited && !ctl->since && !ctl->last)
		return ctl_complain(ctl, "--limited needs --since= or --last=");
	if (ctl->limited && (ctl->together || ctl->coresight || ctl->coresight_dir || ctl->pin))
		return ctl_complain(ctl, "--limited excludes --together, --coresight and --pin");
	if (ctl->together && argc == 2)
		return ctl_complain(ctl, "--together needs two SESSIONs or more, or none for all "
					 "that record");
	if (ctl->together && ctl->coresight)
		return ctl_complain(ctl, "--together and --coresight exclude each other");
	if (ctl->output && argc != 2 && !ctl->together)
		return ctl_complain(ctl, "--output= needs one SESSION or --together");
	if (ctl->output && ctl->host)
		return ctl_complain(ctl,
				    "--output= would be on %s: take the snapshot without it and "
				    "use flyrecctl -H %s cat",
				    ctl->host, ctl->host);
	if (ctl->output && out_file_is_standard(ctl->output) && ctl->json)
		return ctl_complain(ctl, "--json and --output=- would both be on standard output");
	if (ctl->coresight_dir && ctl->host)
		return ctl_complain(ctl, "--coresight=DIR reads this machine's sinks: not with -H");
	if (ctl->coresight_dir && argc != 2)
		return ctl_complain(ctl, "--coresight=DIR needs one SESSION");
	if (!ctl->coresight_dir && (ctl->convert.sysroot || ctl->convert.memory))
		return ctl_complain(ctl, "--sysroot= and --memory= need --coresight=DIR");
	return CTL_DONE;
}

enum ctl_status verb_snapshot(struct ctl *ctl, int argc, char **argv)
{
	struct wanted w = {
		.ctl = ctl,
		.out = {.fd = -EBADF, .file = {.fd = -EBADF}},
		.coresight = ctl->coresight && !ctl->coresight_dir,
	};
	enum ctl_status result = CTL_DONE;

	if (parse_range(ctl, &w) != CTL_DONE || check_options(ctl, argc) != CTL_DONE)
		return CTL_USAGE;
	if (ctl->host)
		return remote_run(ctl, argv, STDOUT_FILENO);
	if (ctl->output)
		result = output_open(ctl, &w.out);
	if (result == CTL_DONE)
		result = take(&w, argv + 1);
	out_file_done(&w.out);
	return result;
}
