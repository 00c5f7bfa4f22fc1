/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Snapshots of a session: requests wait in a queue, each is a flush by the workers, a job that
 * finds what belongs to it, and one that copies that, while the session goes on. Those of flight
 * sessions are two jobs: capture and export. Main thread, but for what runs as a job.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

#include "basic/escape.h"
#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "config/post.h"
#include "daemon/plumbing/job.h"
#include "daemon/plumbing/ship.h"
#include "daemon/plumbing/timer.h"
#include "daemon/session/addition.h"
#include "daemon/session/session-internal.h"
#include "engine/boot-note.h"
#include "writer/store.h"

#define POSTS_MAX  16
#define DETAIL_MAX 512
#define JOIN_USEC  USEC_PER_SEC /* a trigger within this time of another joins its snapshot */
#define JOIN_MAX   8		/* so many of them are named in the file and in the log */

struct snapshot_request {
	struct snapshot_turn turn;   /* the first member */
	struct snapshot_order order; /* its texts are those below */
	struct snapshot_result made;
	char *session, *reason;
	char *detail; /* or NULL */
	char *what;   /* of a trigger */
	char *id;
	struct own_clocks clocks;     /* when it was begun */
	sd_event_source *post;	      /* while PostSec= runs */
	session_snapshot_done_t done; /* NULL: it is a trigger's */
	void *userdata;
	/* What is to be added to its file, where it is no longer the one that triggers join */
	struct snapshot_join *joined;
};

/* The last snapshot of a trigger, and what of others is to be added to its file */
struct snapshot_join {
	char *what;			  /* whose it is, as the configuration says it */
	uint64_t asked_usec;		  /* monotonic */
	uint64_t post_usec;		  /* how long it waits, or has waited, after that */
	struct snapshot_request *request; /* NULL: it is finished */
	char name[64];			  /* then: of the file; "": there is none */
	char *lines;
	char *reason;  /* of the last of them */
	uint64_t usec; /* likewise, realtime */
	unsigned rank;
	unsigned n;
};

static struct snapshot_request *request_of(struct snapshot_turn *turn)
{
	return (void *)turn;
}

/* The one under way, or next */
static struct snapshot_request *first(const struct session *s)
{
	return request_of(s->orders.requests);
}

static void join_free(struct snapshot_join *join)
{
	if (join) {
		free(join->what);
		free(join->lines);
		free(join->reason);
	}
	free(join);
}

static void request_free(struct snapshot_request *request)
{
	(void)sd_event_source_disable_unref(request->post);
	snapshot_result_done(&request->made);
	free(request->session);
	free(request->reason);
	free(request->detail);
	free(request->what);
	free(request->id);
	join_free(request->joined);
	free(request);
}

static void join_add_to_file(const struct session *s, struct snapshot_join *join);

/* Nobody waits for it: the log says what became of it */
static void report_triggered(struct session *s, struct snapshot_request *request, int result)
{
	const struct snapshot_result *made = &request->made;

	if (result < 0) {
		(void)log_full(result == -ENODATA ? LOG_WARNING : LOG_ERR, s->name,
			       MESSAGE_SNAPSHOT, result, "snapshot failed: %s", made->why.text);
		/* Nothing had been traced yet: the next one shall not be refused over that */
		if (result == -ENODATA)
			triggers_give_back(s->triggers, request->what);
		return;
	}
	(void)log_full(LOG_NOTICE, s->name, MESSAGE_SNAPSHOT, 0, "snapshot %s", made->path);
	join_add_to_file(s, request->joined ? request->joined : s->orders.join);
}

static void join_made(struct snapshot_join *join, const struct snapshot_request *request,
		      int result)
{
	if (!join || join->request != request)
		return;
	join->request = NULL;
	(void)snprintf(join->name, sizeof(join->name), "%s", result >= 0 ? request->made.name : "");
}

/* @request->made says why, if @result is negative */
static void answer(struct session *s, struct snapshot_request *request, int result)
{
	snapshot_queue_remove(&s->orders.requests, &request->turn);
	join_made(s->orders.join, request, result);
	join_made(request->joined, request, result);
	if (request->id)
		peers_end(&s->peers, request, result, &request->made);
	if (request->done)
		request->done(request->userdata, result, &request->made);
	else
		report_triggered(s, request, result);
	request_free(request);
}

void session_drop_snapshots(struct session *s)
{
	while (s->orders.requests) {
		struct snapshot_request *request = first(s);

		answer(s, request,
		       fault_set(&request->made.why, -ECANCELED, "session %s has ended", s->name));
	}
	peers_drop(&s->peers);
	join_free(TAKE_PTR(s->orders.join)); /* what is gone with it is only who comes too late */
}

/* Nothing came of it: the next one shall not be refused over that */
static void give_back(struct session *s, const struct snapshot_order *order)
{
	if (order->asker.origin == SNAPSHOT_BY_MEMBER && !order->parts)
		trigger_limit_give_back(&s->orders.member_limit);
}

static struct snapshot_request *find_call(const struct session *s, const void *call)
{
	for (struct snapshot_turn *t = s->orders.requests; t; t = t->next)
		if (!t->begun && t->asker.call == call)
			return request_of(t);
	return NULL;
}

void session_cancel_snapshots(struct session *s, const void *call)
{
	struct snapshot_request *request;

	while ((request = find_call(s, call))) {
		give_back(s, &request->order);
		answer(s, request,
		       fault_set(&request->made.why, -ECANCELED, "nobody waits for it any more"));
	}
}

static bool on_busy(void *userdata)
{
	const struct session *s = userdata;
	unsigned waiting = 0;

	for (const struct snapshot_turn *t = s->orders.requests; t; t = t->next)
		if (t->asker.origin == SNAPSHOT_BY_TRIGGER &&
		    (!t->too_early || ++waiting >= POSTS_MAX))
			return true;
	return false;
}

static bool is_word(const char *reason)
{
	return *reason && strlen(reason) <= 28 &&
	       strspn(reason, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(reason);
}

static int on_post(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct session *s = userdata;

	for (struct snapshot_turn *t = s->orders.requests; t; t = t->next)
		if (request_of(t)->post == source) {
			request_of(t)->post = sd_event_source_disable_unref(source);
			t->too_early = false;
		}
	session_advance(s);
	return 0;
}

/* --- triggers that come together */

struct addition {
	int dir_fd; /* STATE/NAME */
	char name[64];
	char *lines;
	char *reason;  /* of the last of them */
	uint64_t usec; /* likewise, realtime */
	unsigned rank;
};

static void addition_free(struct addition *a)
{
	close_p(&a->dir_fd);
	free(a->lines);
	free(a->reason);
	free(a);
}

/* Thread: job, beside all others: it has nothing of the session's */
static int run_addition(void *userdata, struct fault *why)
{
	const struct addition *a = userdata;
	const struct own_cause cause = {a->usec, a->reason, a->lines};

	return addition_write(a->dir_fd, a->name, &cause, a->rank, NULL, why);
}

static void on_addition_done(void *userdata, int result, const struct fault *why)
{
	struct addition *a = userdata;

	/* The log has it in any case */
	if (result < 0)
		(void)log_full(LOG_NOTICE, NULL, MESSAGE_SNAPSHOT, result,
			       "cannot add a trigger to a snapshot, ignoring: %s", why->text);
	addition_free(a);
}

/* What has joined the last snapshot while it was made, or since */
static void join_add_to_file(const struct session *s, struct snapshot_join *join)
{
	struct addition *a;

	if (!join || !join->lines || join->request || !join->name[0])
		return;
	a = calloc(1, sizeof(*a));
	if (!a)
		return;
	a->dir_fd = fcntl(s->claim.dir_fd, F_DUPFD_CLOEXEC, 3);
	a->lines = TAKE_PTR(join->lines);
	a->reason = TAKE_PTR(join->reason);
	a->usec = join->usec;
	a->rank = join->rank;
	(void)snprintf(a->name, sizeof(a->name), "%s", join->name);
	if (a->dir_fd < 0 || job_start(s->env->event, run_addition, on_addition_done, a) < 0)
		addition_free(a);
}

/* How long @cause has its snapshot wait */
static uint64_t post_of(const struct session *s, const struct snapshot_cause *cause)
{
	return cause->post_usec == POST_DEFAULT ? s->spec.config->snapshot.post_usec
						: cause->post_usec;
}

/* A new snapshot, which others may join */
static int join_begin(struct session *s, struct snapshot_request *request,
		      const struct snapshot_cause *cause)
{
	struct snapshot_join *join = calloc(1, sizeof(*join)), *last = s->orders.join;

	if (!join)
		return -ENOMEM;
	*join = (struct snapshot_join){
		.what = strdup(cause->what),
		.asked_usec = now_usec(CLOCK_MONOTONIC),
		.post_usec = post_of(s, cause),
		.request = request,
		.rank = cause->rank,
	};
	if (last && last->request && last->lines)
		last->request->joined = last;
	else
		join_free(last);
	s->orders.join = join;
	return 0;
}

static int append(char **text, const char *more)
{
	char *both = strf("%s%s", *text ? *text : "", more);

	if (!both)
		return -ENOMEM;
	free(*text);
	*text = both;
	return 0;
}

/* One that has not begun is of both; the file is called after what is worth more */
static int join_waiting(struct snapshot_request *request, const struct snapshot_cause *cause,
			const char *lines)
{
	char *word;

	if (append(&request->detail, lines) < 0)
		return -ENOMEM;
	request->order.detail = request->detail;
	if (cause->rank <= request->order.rank)
		return 0;
	request->order.rank = cause->rank;
	word = strdup(cause->reason);
	if (!word)
		return 0;
	free(request->reason);
	request->order.reason = request->reason = word;
	return 0;
}

/* The others are added when the file is there */
static int join_later(struct snapshot_join *join, const struct snapshot_cause *cause,
		      const char *lines)
{
	char *reason = strdup(cause->reason);

	if (!reason || append(&join->lines, lines) < 0) {
		free(reason);
		return -ENOMEM;
	}
	free(join->reason);
	join->reason = reason;
	join->usec = cause->time_usec > 0 ? cause->time_usec : now_usec(CLOCK_REALTIME);
	return 0;
}

/* Of two the longer one counts. @ago_usec: since @join was asked for */
static int join_wait(struct session *s, struct snapshot_join *join, uint64_t ago_usec,
		     uint64_t post_usec)
{
	struct snapshot_request *request = join->request;
	int r;

	if (post_usec == 0 || ago_usec + post_usec <= join->post_usec)
		return 0;
	r = timer_arm(s->env->event, &request->post, post_usec, on_post, s);
	if (r < 0)
		return r;
	request->turn.too_early = true;
	join->post_usec = ago_usec + post_usec;
	return 0;
}

static int on_join(void *userdata, const struct snapshot_cause *cause)
{
	struct session *s = userdata;
	struct snapshot_join *join = s->orders.join;
	uint64_t ago_usec = join ? now_usec(CLOCK_MONOTONIC) - join->asked_usec : JOIN_USEC;
	_cleanup_free_ char *lines = NULL;
	bool waits;
	int r;

	if (!session_steady(s))
		return -ENOTCONN;
	if (ago_usec >= JOIN_USEC || (!join->request && !join->name[0]))
		return 0;
	/* The same once more has its own, as far as Burst= goes */
	if (!join->what || strcmp(join->what, cause->what) == 0)
		return 0;
	waits = join->request && !join->request->turn.begun;
	/* What this one waits for is not in a snapshot that is taken */
	if (!waits && post_of(s, cause) > join->post_usec)
		return 0;
	if (join->n++ >= JOIN_MAX)
		return 1;
	lines = strf("also: %s\n%s", cause->what, cause->detail ? cause->detail : "");
	if (!lines)
		return -ENOMEM;
	r = waits ? join_waiting(join->request, cause, lines) : join_later(join, cause, lines);
	if (r >= 0 && waits)
		r = join_wait(s, join, ago_usec, post_of(s, cause));
	if (r < 0)
		return r;
	join->rank = MAX(join->rank, cause->rank);
	(void)log_full(LOG_NOTICE, s->name, MESSAGE_SNAPSHOT, 0,
		       "%s triggered%s, joining the snapshot of %llu ms ago", cause->what,
		       cause->text, (unsigned long long)(ago_usec / 1000));
	join_add_to_file(s, join);
	return 1;
}

/* @order, @cause: their texts are copied; @cause, and no @done: of a trigger */
static int enqueue(struct session *s, const struct snapshot_order *order,
		   const struct snapshot_cause *cause, uint64_t post_usec,
		   session_snapshot_done_t done, void *userdata)
{
	struct snapshot_request *request;
	int r = 0;

	if (!session_steady(s))
		return -ENOTCONN;
	if (!is_word(order->reason) || order->from_usec > order->to_usec)
		return -EINVAL;
	request = calloc(1, sizeof(*request));
	if (!request)
		return -ENOMEM;
	request->order = *order;
	request->made = (struct snapshot_result)SNAPSHOT_RESULT_INIT;
	request->order.session = request->session =
		strdup(order->session ? order->session : s->name);
	request->order.reason = request->reason = strdup(order->reason);
	request->order.detail = request->detail = order->detail ? strdup(order->detail) : NULL;
	request->what = cause ? strdup(cause->what) : NULL;
	request->order.id = request->id = order->id ? strdup(order->id) : NULL;
	/* What a member has asked for goes before others: no trigger's data may be in it alone */
	if (!request->session || !request->reason || (order->detail && !request->detail) ||
	    (cause && !request->what) || (order->id && !request->id) ||
	    (cause && !snapshot_is_guests(&order->asker) && join_begin(s, request, cause) < 0))
		r = -ENOMEM;
	else if (post_usec > 0)
		r = timer_arm(s->env->event, &request->post, post_usec, on_post, s);
	if (r < 0) {
		if (s->orders.join && s->orders.join->request == request)
			s->orders.join->request = NULL;
		request_free(request);
		return r;
	}
	request->done = done;
	request->userdata = userdata;
	request->turn.asker = order->asker;
	request->turn.too_early = request->post;
	snapshot_queue_add(&s->orders.requests, &request->turn);
	if (request->id)
		peers_begin(&s->peers, request, &request->order, post_usec);
	session_advance(s);
	return 0;
}

static bool on_widen(void *userdata, const void *which, uint64_t from_usec, uint64_t to_usec)
{
	struct session *s = userdata;
	uint64_t now = now_usec(CLOCK_REALTIME);
	struct snapshot_turn *turn = s->orders.requests;
	struct snapshot_request *request;

	while (turn && turn != which)
		turn = turn->next;
	if (!turn || turn->begun)
		return false;
	request = request_of(turn);
	if (to_usec > MAX(now, request->order.to_usec)) {
		if (timer_arm(s->env->event, &request->post, to_usec - now, on_post, s) < 0)
			return false;
		turn->too_early = true;
	}
	request->order.from_usec = MIN(request->order.from_usec, from_usec);
	request->order.to_usec = MAX(request->order.to_usec, to_usec);
	return true;
}

/* What follows the word, as a line of the file's text; *@ret is NULL if nothing does */
static int detail_of(const char *reason, char **ret)
{
	const char *text = strchr(reason, ' ');
	size_t n;

	*ret = NULL;
	if (!text)
		return 0;
	text += strspn(text, " ");
	n = strlen(text);
	if (n > DETAIL_MAX || escape_plain(text, n, false) != n || memchr(text, '\t', n))
		return -EINVAL;
	*ret = strf("for: %s\n", text);
	return *ret ? 0 : -ENOMEM;
}

static int refuse(const struct session *s, int error, struct fault *why)
{
	switch (error) {
	case -ENOTCONN:
		return fault_set(why, error, "session %s does not record", s->name);
	case -EINVAL:
		return fault_set(why, error,
				 "a reason is a word of a-z, 0-9 and -, at most 28 long, and maybe "
				 "a line of text; a range begins before it ends");
	default:
		return fault_errno(why, error, "session %s: cannot take a snapshot", s->name);
	}
}

static void count_member(struct session *s)
{
	struct snapshot_burst limits = snapshot_burst_of_guests(&s->spec.config->snapshot);

	(void)trigger_limit_admit(&s->orders.member_limit, limits.burst, limits.interval_usec,
				  now_usec(CLOCK_MONOTONIC));
}

int session_order_snapshot(struct session *s, const struct snapshot_order *what, const char *reason,
			   session_snapshot_done_t done, void *userdata, struct fault *why)
{
	_cleanup_free_ char *detail = NULL, *word = NULL;
	struct snapshot_order order = *what;
	int r = detail_of(reason, &detail);

	if (r < 0)
		return refuse(s, r, why);
	word = strndup(reason, strcspn(reason, " "));
	if (!word)
		return refuse(s, -ENOMEM, why);
	order.reason = word;
	order.detail = detail;
	/* One that is put together of its parts has been counted with those */
	if (order.asker.origin == SNAPSHOT_BY_MEMBER && !order.parts)
		count_member(s);
	r = enqueue(s, &order, NULL, 0, done, userdata);
	return r < 0 ? refuse(s, r, why) : 0;
}

int session_admit_snapshot(struct session *s, const struct snapshot_asker *asker, struct fault *why)
{
	struct snapshot_burst limits;
	uint64_t wait_usec;

	if (!session_steady(s))
		return refuse(s, -ENOTCONN, why);
	if (asker->origin == SNAPSHOT_BY_MEMBER) {
		limits = snapshot_burst_of_guests(&s->spec.config->snapshot);
		wait_usec = trigger_limit_wait(&s->orders.member_limit, limits.burst,
					       limits.interval_usec, now_usec(CLOCK_MONOTONIC));
		if (wait_usec > 0)
			return fault_set(
				why, -EUSERS,
				"session %s: group flyrec has had the %u snapshots that it "
				"may have in %.0f s; the next one in %.0f s",
				s->name, limits.burst, (double)limits.interval_usec / USEC_PER_SEC,
				(double)(wait_usec / USEC_PER_SEC + 1));
	}
	return snapshot_queue_admit(s->orders.requests, asker, s->name, why);
}

int session_snapshot(struct session *s, const struct snapshot_wish *wish,
		     session_snapshot_done_t done, void *userdata, struct fault *why)
{
	const struct snapshot_order what = {
		.from_usec = wish->from_usec,
		.to_usec = wish->to_usec,
		.trigger_usec = now_usec(CLOCK_REALTIME),
		.asker = wish->asker,
		.coresight = wish->coresight,
		.pin = wish->pin,
	};
	int r = session_admit_snapshot(s, &wish->asker, why);

	return r < 0 ? r : session_order_snapshot(s, &what, wish->reason, done, userdata, why);
}

void session_shape(const struct session *s, struct together_shape *ret)
{
	*ret = (struct together_shape){
		.name = s->name,
		.clock = s->spec.config->trace.clock,
		.n_cpus = instance_n_cpus(s->claim.instance),
	};
}

/* --- for other hosts */

#define AHEAD_USEC (60 * USEC_PER_SEC) /* so far a window may end in the future */

static int on_order(void *userdata, const struct snapshot_order *order, uint64_t post_usec,
		    struct fault *why)
{
	const struct snapshot_cause cause = {.what = TRIGGER_PEER_NAME};
	struct session *s = userdata;
	int r = session_admit_snapshot(s, &order->asker, why);

	if (r >= 0)
		r = triggers_on_peer(s->triggers, order->detail, why);
	if (r < 0)
		return r;
	(void)log_full(LOG_NOTICE, s->name, MESSAGE_SNAPSHOT, 0,
		       TRIGGER_PEER_NAME " triggered, %s, taking snapshot", order->id);
	r = enqueue(s, order, &cause, post_usec, NULL, NULL);
	if (r >= 0)
		return 0;
	triggers_give_back(s->triggers, TRIGGER_PEER_NAME);
	return refuse(s, r, why);
}

static int on_state_fd(void *userdata)
{
	const struct session *s = userdata;

	return s->claim.dir_fd;
}

static char *path_of(void *userdata, const char *name)
{
	const struct session *s = userdata;

	return strf("%s/%s/snapshot/%s", s->env->state_dir, s->name, name);
}

const struct peer_host session_peer_host = {
	.order = on_order,
	.widen = on_widen,
	.state_fd = on_state_fd,
	.path = path_of,
};

static int check_wish(const struct session *s, const struct limited_wish *wish, uint64_t to_usec,
		      struct fault *why)
{
	const uint64_t most = s->spec.config->snapshot.peer_max_usec;
	const uint64_t now = now_usec(CLOCK_REALTIME);

	if (most == 0)
		return fault_set(why, -EACCES,
				 "session %s: PeerMaxSec=0, it takes no snapshots for other hosts",
				 s->name);
	if (!own_id_valid(wish->id))
		return fault_set(
			why, -EINVAL,
			"an id is 1 to %d of A-Z, a-z, 0-9, \".\", \"_\", \":\" and \"-\", "
			"and begins with a letter or digit",
			OWN_ID_MAX);
	if (wish->from_usec >= to_usec)
		return fault_set(why, -EINVAL, "the window ends before it begins");
	if (to_usec > now + AHEAD_USEC)
		return fault_set(
			why, -EINVAL, "the window ends %.1f s in the future, %d s are allowed",
			(double)(to_usec - now) / USEC_PER_SEC, (int)(AHEAD_USEC / USEC_PER_SEC));
	if (to_usec - wish->from_usec > most)
		return fault_set(why, -EINVAL,
				 "session %s: a window for other hosts may be up to "
				 "PeerMaxSec=%.0fs, not %.0f s",
				 s->name, (double)most / USEC_PER_SEC,
				 (double)(to_usec - wish->from_usec) / USEC_PER_SEC);
	return 0;
}

int session_snapshot_limited(struct session *s, const struct limited_wish *what, peers_done_t done,
			     void *userdata, struct fault *why)
{
	struct peer_wish wish = {
		.id = what->id,
		.from_usec = what->from_usec,
		.to_usec = what->to_usec < UINT64_MAX ? what->to_usec : now_usec(CLOCK_REALTIME),
		.uid = what->uid,
	};
	_cleanup_free_ char *reason = NULL, *lines = NULL;
	int r;

	if (!session_steady(s))
		return refuse(s, -ENOTCONN, why);
	r = check_wish(s, what, wish.to_usec, why);
	if (r < 0)
		return r;
	wish.most_usec = s->spec.config->snapshot.peer_max_usec;
	/* The word in the name is not theirs */
	reason = strf(PEERS_REASON " %s", *what->reason ? what->reason : PEERS_REASON);
	r = reason ? detail_of(reason, &lines) : -ENOMEM;
	wish.lines = lines;
	if (r >= 0)
		r = peers_ask(&s->peers, &wish, done, userdata);
	return r < 0 ? refuse(s, r, why) : 0;
}

/* --- triggers */

/* Whoever asks other hosts for the same moment can begin */
static void tell_trigger(const struct session *s, const struct snapshot_order *order,
			 const struct snapshot_cause *cause)
{
	const struct ship_notice notice = {
		.id = order->id,
		.reason = order->reason,
		.session = s->name,
		.cause = cause->what,
		.text = cause->text + strspn(cause->text, ", "),
		.trigger_usec = order->trigger_usec,
		.since_usec = order->from_usec,
		.until_usec = order->trigger_usec + post_of(s, cause),
	};
	int r = ship_trigger(s->env->runtime_dir, &notice);

	if (r < 0 && r != -ENOENT)
		(void)log_full(LOG_WARNING, s->name, MESSAGE_SNAPSHOT, r,
			       "cannot tell other hosts of %s: %m", order->id);
}

static int on_fire(void *userdata, const struct snapshot_cause *cause)
{
	struct session *s = userdata;
	const struct snapshot_config *config = &s->spec.config->snapshot;
	struct snapshot_order order = {
		.to_usec = UINT64_MAX,
		.reason = cause->reason,
		.rank = cause->rank,
		.trigger_usec = cause->time_usec > 0 ? cause->time_usec : now_usec(CLOCK_REALTIME),
	};
	_cleanup_free_ char *lines = NULL;
	char id[OWN_ID_MAX + 1];
	struct utsname host;
	int r;

	own_id_make(uname(&host) < 0 ? "" : host.nodename, order.trigger_usec, id);
	lines = strf("id: %s\n%s", id, cause->detail ? cause->detail : "");
	order.id = id;
	order.detail = lines ? lines : cause->detail;
	if (cause->asker && cause->asker->origin == SNAPSHOT_BY_MEMBER) {
		order.asker = *cause->asker;
		count_member(s);
	}
	if (config->last_usec > 0)
		order.from_usec = order.trigger_usec - MIN(order.trigger_usec, config->last_usec);
	r = enqueue(s, &order, cause, post_of(s, cause), NULL, NULL);
	if (r >= 0)
		tell_trigger(s, &order, cause);
	/* Under way by now: events are being overwritten */
	(void)log_full(LOG_NOTICE, s->name, MESSAGE_SNAPSHOT, 0, "%s triggered%s, taking snapshot",
		       cause->what, cause->text);
	return r;
}

int session_trigger(struct session *s, const char *text, const struct snapshot_asker *asker,
		    struct fault *why)
{
	_cleanup_free_ char *lines = NULL;
	size_t n = strlen(text);
	int r;

	if (n == 0 || n > DETAIL_MAX || escape_plain(text, n, false) != n || memchr(text, '\t', n))
		return fault_set(why, -EINVAL,
				 "the text must be a line of 1 to %d bytes without control "
				 "characters",
				 DETAIL_MAX);
	r = session_admit_snapshot(s, asker, why);
	if (r < 0)
		return r;
	lines = strf("for: %s\nby: user %u\n", text, (unsigned)asker->uid);
	return lines ? triggers_on_call(s->triggers, lines, asker, why)
		     : fault_errno(why, -ENOMEM, "session %s: cannot take a snapshot", s->name);
}

static int on_remember(void *userdata, char *const *events, struct fault *why)
{
	return session_note_watched(userdata, events, why);
}

static void on_watch_wanted(void *userdata)
{
	const struct session *s = userdata;

	s->events->watch_wanted(s->events->userdata);
}

const struct trigger_host session_trigger_host = {
	.join = on_join,
	.fire = on_fire,
	.busy = on_busy,
	.remember = on_remember,
	.open_latency = session_open_latency,
	.watch_wanted = on_watch_wanted,
};

struct triggers *session_triggers(const struct session *s)
{
	return s->triggers;
}

/* STATE/NAME/snapshot/@name is there: tell clients, and whoever ships files. Return: its path,
 * malloc'ed, or NULL. */
static char *announce_snapshot(struct session *s, const char *name, const char *id)
{
	char *path = path_of(s, name);

	if (path)
		s->events->snapshot_finished(s->events->userdata, s, path, id ? id : "");
	return path;
}

bool session_snapshot_waits(const struct session *s)
{
	/* A stop cuts PostSec= short */
	for (const struct snapshot_turn *t = s->orders.requests; t; t = t->next)
		if (!t->too_early || s->wants & WANT_STOP)
			return true;
	return false;
}

/* What can only be done before the session goes on */
static bool is_whole(const struct session *s, const struct snapshot_order *order)
{
	return !s->mode->drains && !order->parts;
}

void session_begin_snapshot(struct session *s)
{
	struct snapshot_order *order;

	(void)snapshot_queue_next(&s->orders.requests, s->wants & WANT_STOP);
	s->orders.requests->begun = true;
	order = &first(s)->order;
	order->coresight =
		!order->is_part && (order->coresight || s->spec.config->snapshot.coresight);
	order->analyze = !order->is_part && s->spec.config->snapshot.analyze;
	order->journal = !order->is_part && s->spec.config->snapshot.journal;
	if (snapshot_is_guests(&order->asker))
		session_member_limits(s, &order->limits);
	else
		session_snapshot_limits(s, &order->limits);
	/* Of a flight session when its ring buffer is copied: nothing slow before that */
	if (!is_whole(s, order)) {
		session_clocks_now(s, &first(s)->clocks);
		order->clocks = &first(s)->clocks;
	}
	if (order->parts)
		session_start_job(s, STEP_CUTTING);
	else
		s->mode->snapshot(s, order);
}

int session_run_cut(void *userdata, struct fault *why)
{
	struct session *s = userdata;
	const struct snapshot_order *order = &first(s)->order;
	struct snapshot_result *made = &first(s)->made;
	int r = snapshot_order_open(order, s->claim.dir_fd, made, why);

	if (r < 0)
		return r;
	return order->parts ? snapshot_order_find(order, s->rec.files.dir_fd, made, why)
			    : s->mode->cut(s, order, made, why);
}

/* What is there, or why not. That a machine has none is said once. */
static void report_coresight(struct session *s)
{
	const struct coresight_job *job = &first(s)->made.coresight;

	if (!first(s)->order.coresight)
		return;
	STRV_FOREACH (note, job->notes)
		if (job->name[0])
			(void)log_full(LOG_NOTICE, s->name, NULL, 0, "CoreSight: %s", *note);
	if (job->name[0] || (job->why.error == -ENODEV && s->orders.coresight_said))
		return;
	s->orders.coresight_said |= job->why.error == -ENODEV;
	(void)log_full(job->why.error == -ENODEV ? LOG_NOTICE : LOG_WARNING, s->name, NULL,
		       job->why.error, "snapshot without CoreSight: %s", job->why.text);
}

static void report(struct session *s, const struct snapshot_result *made, int result)
{
	if (made->nameless.error < 0)
		(void)log_full(LOG_WARNING, s->name, MESSAGE_RECOVERED, made->nameless.error, "%s",
			       made->nameless.text);
	if (made->complaint.error < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, made->complaint.error, "%s",
			       made->complaint.text);
	if (made->evicted_files > 0)
		(void)log_full(LOG_NOTICE, s->name, MESSAGE_SNAPSHOT, 0,
			       "retention removed %u old snapshots, %llu bytes",
			       made->evicted_files, (unsigned long long)made->evicted_bytes);
	if (result >= 0 && made->report.left_out_files > 0)
		(void)log_full(LOG_NOTICE, s->name, MESSAGE_SNAPSHOT, 0,
			       "%u segments of that time are left out: a snapshot is of one boot, "
			       "one clock and one size of sub-buffers",
			       made->report.left_out_files);
	if (result >= 0)
		report_coresight(s);
}

static void finish(struct session *s, int result, const struct fault *why)
{
	const struct snapshot_order *order = &first(s)->order;
	struct snapshot_result *made = &first(s)->made;

	made->why = *why;
	report(s, made, result);
	if (result >= 0 && !order->is_part) {
		session_note_snapshots(s, made->kept_files, made->kept_bytes);
		made->path = announce_snapshot(s, made->name, order->id);
		if (!made->path)
			result = fault_errno(&made->why, -ENOMEM, "cannot name the snapshot");
	}
	if (result >= 0 && made->unpinned.error < 0)
		result = fault_set(&made->why, made->unpinned.error,
				   "%s is there, but cannot be pinned: %s", made->path,
				   made->unpinned.text);
	if (result == -ENODATA)
		give_back(s, order);
	answer(s, first(s), result);
	session_file_is_made();
	/* Nothing else looks after a flight session's instance */
	if (!s->mode->drains)
		(void)session_check_instance(s);
}

/* Thread: job. The session goes on meanwhile: its next segment, its syncs. */
static int run_copy(void *userdata, struct fault *why)
{
	struct session *s = userdata;

	return snapshot_order_make(&first(s)->order, &first(s)->made, why);
}

static void set_copying(struct session *s, bool copying)
{
	s->orders.copying = copying;
	recording_hold_open(s->rec.recording, copying);
}

static void on_copied(void *userdata, int result, const struct fault *why)
{
	struct session *s = userdata;

	set_copying(s, false);
	finish(s, result, why);
	session_advance(s);
}

void session_cut_done(struct session *s, int result, const struct fault *why)
{
	struct fault no_thread;

	if (s->mode->cut_done)
		s->mode->cut_done(s);
	if (result >= 0 && !is_whole(s, &first(s)->order)) {
		result = job_start(s->env->event, run_copy, on_copied, s);
		set_copying(s, result >= 0);
		if (s->orders.copying)
			return;
		(void)fault_errno(&no_thread, result, "cannot start a thread");
		why = &no_thread;
	}
	finish(s, result, why);
}

/* --- of a boot that died: with Persistent= the kernel makes the instance at boot, in memory that
 * outlives it. What is there is saved before the instance is set up for this boot. */

/* Trouble that may be over at the next try, or that somebody can end: until then the evidence stays
 * where it is */
static bool may_pass(int error)
{
	static const int errors[] = {EACCES, EPERM,  ELOOP,  ENOTDIR, EEXIST,
				     ENOENT, ENOMEM, EMFILE, ENFILE};

	return session_is_error_of(error, errors, ARRAY_SIZE(errors)) ||
	       session_disk_may_return(error);
}

/* It waits in its ring buffer for the next try */
static int fail_for_now(struct session *s, int error, const char *text, struct fault *why)
{
	(void)fault_set(
		why, error,
		"%s; the trace of the boot that died waits in its ring buffer for the next try",
		text);
	boot_trace_free(TAKE_PTR(s->boot_trace));
	return error;
}

static int find_boot(struct session *s, struct fault *why)
{
	_cleanup_free_ char *name = NULL, *group = NULL;
	struct boot_trace_params params = {
		.session = s->name,
		.trace = &s->spec.config->trace,
		.boot_id = s->env->boot_id_text,
		.dir_fd = s->claim.dir_fd,
		.tracing_fd = s->env->tracing_fd,
		.symbols = s->env->symbols,
		.memory = s->spec.config->snapshot.memory,
		.direct = s->spec.config->storage.direct,
	};
	int r = session_instance_names(s, &name, &group);

	if (r < 0)
		return fault_errno(why, r, "cannot name the instance");
	params.instance = name;
	params.group = group;
	session_snapshot_limits(s, &params.limits);
	return boot_trace_find(&params, &s->boot_trace, why);
}

static void forget_boot(struct session *s)
{
	int r = boot_note_remove(s->claim.dir_fd);

	boot_trace_free(TAKE_PTR(s->boot_trace));
	if (r < 0)
		(void)log_full(LOG_WARNING, s->name, NULL, r,
			       "cannot remove the last boot's note: %m, ignoring");
}

int session_find_boot_trace(struct session *s, struct fault *ret_why)
{
	struct fault why = {};
	int r;

	if (!s->spec.config->trace.persistent)
		return 0;
	r = find_boot(s, &why);
	if (r < 0 && may_pass(r))
		return fail_for_now(s, r, why.text, ret_why);
	if (r < 0)
		(void)log_full(LOG_ERR, s->name, MESSAGE_RECOVERED, r,
			       "cannot look for the last boot's trace: %s, ignoring", why.text);
	if (r == BOOT_TRACE_LOST) {
		(void)log_full(
			LOG_WARNING, s->name, MESSAGE_EVENTS_LOST, 0,
			"boot %s ended without stopping this session, but nothing of its trace is left: the memory was cleared, or is elsewhere now, or the kernel (see its log, \"Ring buffer\") did not take over what it found",
			boot_trace_boot_id(s->boot_trace));
		forget_boot(s);
	}
	return r == BOOT_TRACE_HERE;
}

int session_run_boot_trace(void *userdata, struct fault *why)
{
	struct session *s = userdata;

	return boot_trace_save(s->boot_trace, why);
}

static void report_saved(struct session *s)
{
	const char *missing = boot_trace_missing(s->boot_trace);
	_cleanup_free_ char *path = announce_snapshot(s, boot_trace_name(s->boot_trace), NULL);

	(void)log_full(LOG_NOTICE, s->name, MESSAGE_SNAPSHOT, 0,
		       "boot %s ended without stopping this session, its trace is saved: %s%s%s",
		       boot_trace_boot_id(s->boot_trace), path ? path : "",
		       *missing ? "; there was nothing of CPUs " : "", missing);
}

int session_boot_trace_done(struct session *s, int result, const struct fault *why,
			    struct fault *ret_why)
{
	bool taken = boot_trace_is_taken(s->boot_trace);

	if (result < 0 && may_pass(result) && !taken)
		return fail_for_now(s, result, why->text, ret_why);
	if (result < 0)
		(void)log_full(LOG_ERR, s->name, MESSAGE_EVENTS_LOST, result,
			       "the trace of boot %s could not be saved and is lost: %s",
			       boot_trace_boot_id(s->boot_trace), why->text);
	else
		report_saved(s);
	forget_boot(s);
	return 0;
}

void session_warn_of_clock(struct session *s)
{
	const char *clock = s->spec.config->trace.clock;
	struct last_boot boot;

	if (strcmp(clock, "local") == 0 ||
	    instance_read_last_boot(s->claim.instance, &boot, NULL) < 0)
		return;
	/* It sets the clock again at boot, over which the CPU that it starts on is emptied */
	if (boot.tells_current)
		(void)log_full(
			LOG_WARNING, s->name, NULL, 0,
			"Clock=%s with Persistent=yes: should this kernel die, the next boot will have nothing of its first CPU; Clock=local keeps that",
			clock);
	last_boot_done(&boot);
}
