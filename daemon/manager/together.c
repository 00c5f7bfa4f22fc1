/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One snapshot of several sessions. Each makes its part as it makes any snapshot, at the same time
 * as the others, but without a name; when all are there, the first session puts them side by side
 * into its own snapshot folder. Main thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <syslog.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "config/config-trace.h"
#include "daemon/manager/together.h"
#include "engine/snapshot-order.h"
#include "writer/store.h"

struct member {
	struct together *together;
	char *name;
	char boot_id[33]; /* of its part's; "": this one */
};

struct together {
	struct manager *manager;
	struct member *members;	     /* [n] */
	struct together_part *parts; /* [n]; names are the members' */
	size_t n, waiting;
	char *names; /* of all, for people */
	char *reason;
	uint64_t trigger_usec;
	struct snapshot_asker asker;
	bool pin;
	sd_event_source *complete;
	struct fault failure; /* the first part's that could not be made */
	session_snapshot_done_t done;
	void *userdata;
};

static void together_free(struct together *t)
{
	if (!t)
		return;
	for (size_t i = 0; t->members && i < t->n; i++)
		free(t->members[i].name);
	for (size_t i = 0; t->parts && i < t->n; i++)
		close_p(&t->parts[i].fd);
	(void)sd_event_source_disable_unref(t->complete);
	free(t->members);
	free(t->parts);
	free(t->names);
	free(t->reason);
	free(t);
}

DEFINE_CLEANUP(struct together *, together_free)

static void on_joined(void *userdata, int result, const struct snapshot_result *made)
{
	struct together *t = userdata;

	t->done(t->userdata, result, made);
	together_free(t);
}

static void fail(struct together *t)
{
	const struct snapshot_result none = {
		.dir_fd = -EBADF, .part_fd = -EBADF, .why = t->failure};

	on_joined(t, none.why.error, &none);
}

static const char *boot_of(const struct together *t)
{
	return manager_environment(t->manager)->boot_id_text;
}

/* The boot of the file: this one if a part is of it, else the first part's */
static const char *find_boot(const struct together *t)
{
	const char *boot_id = NULL;

	for (size_t i = 0; i < t->n; i++) {
		const char *one = t->members[i].boot_id;

		if (t->parts[i].fd < 0 || strcmp(one, BOOT_UNKNOWN) == 0)
			continue;
		if (!one[0] || strcmp(one, boot_of(t)) == 0)
			return boot_of(t);
		boot_id = boot_id ? boot_id : one;
	}
	return boot_id ? boot_id : boot_of(t);
}

/* A file has one clock, and numbers of events and addresses of one kernel */
static void leave_out_other_boots(struct together *t, const char *boot_id)
{
	for (size_t i = 0; i < t->n; i++) {
		const char *one = t->members[i].boot_id;

		one = one[0] ? one : boot_of(t);
		if (t->parts[i].fd < 0 || strcmp(one, boot_id) == 0 ||
		    strcmp(one, BOOT_UNKNOWN) == 0)
			continue;
		(void)log_full(LOG_NOTICE, t->members[i].name, MESSAGE_SNAPSHOT, 0,
			       "what it has of that time is of another boot: it is left out");
		close_p(&t->parts[i].fd);
		t->parts[i].fd = -EBADF;
		t->parts[i].other_boot = true;
	}
}

static void join(struct together *t)
{
	struct session *first = manager_find(t->manager, t->members[0].name);
	const char *boot_id = find_boot(t);
	struct snapshot_order what = {
		.to_usec = UINT64_MAX,
		.trigger_usec = t->trigger_usec,
		.asker = t->asker,
		.pin = t->pin,
		.session = t->names,
		.parts = t->parts,
		.n_parts = t->n,
	};
	int r = t->failure.error;
	struct fault why;

	(void)snprintf(what.boot_id, sizeof(what.boot_id), "%s", boot_id);
	if (r == 0) {
		leave_out_other_boots(t, boot_id);
		r = first ? session_order_snapshot(first, &what, t->reason, on_joined, t, &why)
			  : fault_set(&why, -ENOTCONN, "session %s has ended", t->members[0].name);
		if (r >= 0)
			return;
		(void)fault_set(&t->failure, r, "the file would go there, but %s", why.text);
	}
	fail(t);
}

static int on_complete(sd_event_source *source, void *userdata)
{
	join(userdata);
	return 0;
}

/*
 * The last one that has an answer goes on; not at once, as a session is not to be asked for the
 * next thing while it answers. Nothing of that time: the others may have something.
 */
static void part_ended(struct together *t, const char *name, int result, const struct fault *why)
{
	char own[SESSION_NAME_MAX + sizeof("session : ")]; /* not said twice */
	int r;

	(void)snprintf(own, sizeof(own), "session %s: ", name);
	if (result < 0 && result != -ENODATA && t->failure.error == 0)
		(void)fault_set(&t->failure, result, "session %s: %s", name,
				strncmp(why->text, own, strlen(own)) == 0 ? why->text + strlen(own)
									  : why->text);
	if (--t->waiting > 0)
		return;
	r = sd_event_add_defer(manager_environment(t->manager)->event, &t->complete, on_complete,
			       t);
	if (r < 0) {
		(void)fault_errno(&t->failure, r, "cannot take a snapshot");
		fail(t);
	}
}

static void on_part(void *userdata, int result, const struct snapshot_result *made)
{
	struct member *member = userdata;
	struct together *t = member->together;
	struct fault why = made->why;
	int fd;

	if (result >= 0) {
		fd = fcntl(made->part_fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			result = fault_errno(&why, -errno, "cannot keep a part");
		t->parts[member - t->members].fd = fd;
		memcpy(member->boot_id, made->boot_id, sizeof(member->boot_id));
	}
	part_ended(t, member->name, result, &why);
}

/* --- what is asked for */

static int check_sessions(struct session *const *sessions, size_t n, struct fault *why)
{
	if (n < 2)
		return fault_set(why, -EINVAL,
				 "a snapshot together takes two sessions or more, not %zu", n);
	for (size_t i = 0; i < n; i++) {
		struct together_shape first, other;
		int r;

		for (size_t k = 0; k < i; k++)
			if (sessions[k] == sessions[i])
				return fault_set(why, -EINVAL, "session %s is named twice",
						 session_name(sessions[i]));
		if (!session_steady(sessions[i]))
			return fault_set(why, -ENOTCONN, "session %s does not record",
					 session_name(sessions[i]));
		session_shape(sessions[0], &first);
		session_shape(sessions[i], &other);
		r = together_compare(&first, &other, why);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_name(struct together *t, const char *name)
{
	char *names = strf("%s%s%s", t->names ? t->names : "", t->names ? ", " : "", name);

	if (!names)
		return -ENOMEM;
	free(t->names);
	t->names = names;
	return 0;
}

static struct together *together_new(struct manager *manager, struct session *const *sessions,
				     size_t n, const char *reason)
{
	_cleanup_(together_freep) struct together *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->n = n;
	t->manager = manager;
	t->trigger_usec = now_usec(CLOCK_REALTIME);
	t->members = calloc(n, sizeof(*t->members));
	t->parts = calloc(n, sizeof(*t->parts));
	for (size_t i = 0; t->parts && i < n; i++)
		t->parts[i].fd = -EBADF;
	t->reason = strdup(reason);
	if (!t->members || !t->parts || !t->reason)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		t->members[i] = (struct member){t, strdup(session_name(sessions[i])), ""};
		t->parts[i].name = t->members[i].name;
		if (!t->members[i].name || add_name(t, t->members[i].name) < 0)
			return NULL;
	}
	return TAKE_PTR(t);
}

int together_snapshot(struct manager *manager, struct session *const *sessions, size_t n,
		      const struct snapshot_wish *wish, session_snapshot_done_t done,
		      void *userdata, struct fault *why)
{
	struct together *t;
	int r = check_sessions(sessions, n, why);

	for (size_t i = 0; i < n && r >= 0; i++)
		r = session_admit_snapshot(sessions[i], &wish->asker, why);
	if (r < 0)
		return r;
	t = together_new(manager, sessions, n, wish->reason);
	if (!t)
		return fault_errno(why, -ENOMEM, "cannot take a snapshot");
	t->asker = wish->asker;
	t->pin = wish->pin;
	t->done = done;
	t->userdata = userdata;
	t->waiting = n + 1; /* one is ours: nobody is answered before all are asked */
	for (size_t i = 0; i < n; i++) {
		const struct snapshot_order what = {
			.from_usec = wish->from_usec,
			.to_usec = wish->to_usec,
			.trigger_usec = t->trigger_usec,
			.asker = t->asker,
			.is_part = true,
		};
		struct fault refused;

		r = session_order_snapshot(sessions[i], &what, wish->reason, on_part,
					   &t->members[i], &refused);
		if (r < 0)
			part_ended(t, t->members[i].name, r, &refused);
	}
	part_ended(t, "", 0, NULL);
	return 0;
}
