/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "daemon/plumbing/job.h"
#include "daemon/session/addition.h"
#include "daemon/session/peers.h"
#include "writer/file-info.h"
#include "writer/store.h"

#define WIDEN_USEC  USEC_PER_SEC /* so long after the first others may widen its snapshot */
#define COVERED	    95		 /* percent of a window that are all of it */
#define MOMENTS_MAX 16U		 /* finished ones that are remembered */

struct peer_ask {
	struct peer_ask *next;
	char *id;
	char *lines;				 /* for the file's text */
	uint64_t from_usec, to_usec, asked_usec; /* realtime */
	uint64_t most_usec;
	uid_t uid;
	peers_done_t done;
	void *userdata;
};

struct moment {
	struct moment *next;
	const void *which; /* its snapshot; NULL: that is finished */
	bool by_peer;
	char *id;
	uint64_t from_usec, to_usec;
	uint64_t begun_usec;	    /* monotonic */
	char name[STORE_NAME_SIZE]; /* of the file */
	struct peer_ask *first;	    /* whose snapshot it is; NULL: a trigger's */
	struct peer_ask *joined;
};

/* Belongs to the job while that runs */
struct peer_look {
	struct peers *peers; /* main thread only; NULL: it has ended */
	int dir_fd;	     /* STATE/NAME */
	char *id, *lines;
	uint64_t usec, to_usec;
	bool guessed;
	char name[STORE_NAME_SIZE]; /* where it may be, and then where it is; "": nowhere */
};

static void ask_free(struct peer_ask *ask)
{
	free(ask->id);
	free(ask->lines);
	free(ask);
}

static void ask_answer(struct peer_ask *ask, int result, const char *path, bool had,
		       const char *why)
{
	ask->done(ask->userdata, result, path, had, why);
	ask_free(ask);
}

static void append(struct peer_ask **list, struct peer_ask *ask)
{
	while (*list)
		list = &(*list)->next;
	*list = ask;
	ask->next = NULL;
}

static void moment_free(struct moment *m)
{
	free(m->id);
	free(m);
}

/* --- which moment */

/* Percent of what @ask wants that are in @m */
static unsigned covered(const struct moment *m, const struct peer_ask *ask)
{
	uint64_t from = MAX(m->from_usec, ask->from_usec);
	uint64_t to = MIN(m->to_usec, ask->to_usec);

	return from < to ? (unsigned)((to - from) * 100 / (ask->to_usec - ask->from_usec)) : 0;
}

static bool widen(struct peers *p, struct moment *m, const struct peer_ask *ask)
{
	uint64_t from = MIN(m->from_usec, ask->from_usec), to = MAX(m->to_usec, ask->to_usec);

	if (!m->by_peer || now_usec(CLOCK_MONOTONIC) - m->begun_usec >= WIDEN_USEC ||
	    to - from > ask->most_usec || covered(m, ask) == 0 ||
	    !p->host->widen(p->userdata, m->which, from, to))
		return false;
	m->from_usec = from;
	m->to_usec = to;
	return true;
}

static bool has_id(const struct moment *m, const char *id)
{
	if (strcmp(m->id, id) == 0)
		return true;
	for (const struct peer_ask *ask = m->joined; ask; ask = ask->next)
		if (strcmp(ask->id, id) == 0)
			return true;
	return false;
}

/* Wait for a snapshot that is not finished. Return: whether there is one. */
static bool ask_join(struct peers *p, struct peer_ask *ask)
{
	for (struct moment *m = p->moments; m; m = m->next)
		if (m->which &&
		    (has_id(m, ask->id) || covered(m, ask) >= COVERED || widen(p, m, ask))) {
			append(&m->joined, ask);
			return true;
		}
	return false;
}

/* The file that has it, as far as is remembered; "": none */
static const char *ask_find(const struct peers *p, const struct peer_ask *ask)
{
	for (const struct moment *m = p->moments; m; m = m->next)
		if (!m->which && (strcmp(m->id, ask->id) == 0 || covered(m, ask) >= COVERED))
			return m->name;
	return "";
}

/* --- a snapshot of its own */

/* Nothing that can be joined is there. Answers @ask, or leaves it to peers_end(). */
static void ask_order(struct peers *p, struct peer_ask *ask)
{
	uint64_t now = now_usec(CLOCK_REALTIME);
	_cleanup_free_ char *detail = strf("id: %s\n%s", ask->id, ask->lines);
	const struct snapshot_order order = {
		.from_usec = ask->from_usec,
		.to_usec = ask->to_usec,
		.reason = PEERS_REASON,
		.detail = detail,
		.id = ask->id,
		.trigger_usec = MIN(ask->to_usec, now),
		.asker = {.origin = SNAPSHOT_BY_PEER, .uid = ask->uid},
	};
	struct fault why;
	int r;

	if (!detail) {
		ask_answer(ask, -ENOMEM, NULL, false, NULL);
		return;
	}
	p->ordering = ask;
	r = p->host->order(p->userdata, &order, ask->to_usec > now ? ask->to_usec - now : 0, &why);
	/* Else peers_begin() has taken it */
	if (p->ordering != ask)
		return;
	p->ordering = NULL;
	ask_answer(ask, r < 0 ? r : -ENOMEM, NULL, false, r < 0 ? why.text : NULL);
}

/* --- looking for a file */

static void look_free(struct peer_look *look)
{
	close_p(&look->dir_fd);
	free(look->id);
	free(look->lines);
	free(look);
}

/* Where all there was, was asked for, that may begin only after what is looked for. @dir_fd: its
 * folder */
static bool look_has_file(const struct peer_look *look, int dir_fd)
{
	_cleanup_close_ int fd = look->name[0] ? io_open_at(dir_fd, look->name, O_NOFOLLOW) : -1;
	struct file_info info;

	return fd >= 0 && file_info_read(fd, look->name, &info) >= 0 &&
	       info.start_usec < look->to_usec;
}

/* Thread: job. The file may be gone; another one may have the id, also of an earlier flyrecd. */
static int run_look(void *userdata, struct fault *why)
{
	struct peer_look *look = userdata;
	const struct own_cause cause = {look->usec, PEERS_REASON, look->lines};
	_cleanup_close_ int dir_fd = io_open_dir_at(look->dir_fd, "snapshot");

	if (look_has_file(look, dir_fd))
		return addition_write(look->dir_fd, look->name, &cause, 0, look->id, why);
	look->name[0] = '\0';
	(void)store_find_id(dir_fd, look->id, look->name);
	return 0;
}

static void look_next(struct peers *p);

/* Of the first ask. @result: that its id is not in the file is no reason to make another one.
 * @guessed: a file was looked into; if not there may be one by now. */
static void look_done(struct peers *p, const char *name, bool guessed, int result,
		      const struct fault *why)
{
	struct peer_ask *ask = p->asks;
	_cleanup_free_ char *path = NULL;

	if (!*name && !guessed && *ask_find(p, ask))
		return; /* again */
	p->asks = ask->next;
	if (result < 0)
		(void)log_full(LOG_NOTICE, p->name, MESSAGE_SNAPSHOT, result,
			       "cannot add %s to a snapshot, ignoring: %s", ask->id, why->text);
	if (*name) {
		(void)log_full(LOG_INFO, p->name, MESSAGE_SNAPSHOT, 0,
			       "Peer triggered, %s, which is in %s", ask->id, name);
		path = p->host->path(p->userdata, name);
		ask_answer(ask, path ? 0 : -ENOMEM, path, true, NULL);
	} else if (!ask_join(p, ask)) {
		ask_order(p, ask);
	}
}

static void on_looked(void *userdata, int result, const struct fault *why)
{
	struct peer_look *look = userdata;
	struct peers *p = look->peers;

	if (p) {
		p->look = NULL;
		look_done(p, look->name, look->guessed, result, why);
		look_next(p);
	}
	look_free(look);
}

static int look_start(struct peers *p, const struct peer_ask *ask)
{
	struct peer_look *look = calloc(1, sizeof(*look));
	int r;

	if (!look)
		return -ENOMEM;
	*look = (struct peer_look){
		.peers = p,
		.dir_fd = fcntl(p->host->state_fd(p->userdata), F_DUPFD_CLOEXEC, 3),
		.id = strdup(ask->id),
		.lines = strf("id: %s\n%s", ask->id, ask->lines),
		.usec = ask->asked_usec,
		.to_usec = ask->to_usec,
	};
	(void)snprintf(look->name, sizeof(look->name), "%s", ask_find(p, ask));
	look->guessed = look->name[0];
	r = look->id && look->lines ? job_start(p->event, run_look, on_looked, look) : -ENOMEM;
	if (r < 0)
		look_free(look);
	else
		p->look = look;
	return r;
}

static void look_next(struct peers *p)
{
	while (p->asks && !p->look)
		if (look_start(p, p->asks) < 0)
			look_done(p, "", true, 0, NULL);
}

static void ask_look(struct peers *p, struct peer_ask *ask)
{
	append(&p->asks, ask);
	look_next(p);
}

/* --- told by who takes snapshots */

void peers_begin(struct peers *p, const void *which, const struct snapshot_order *order,
		 uint64_t post_usec)
{
	struct moment *m = calloc(1, sizeof(*m));
	char *id = strdup(order->id);

	if (!m || !id) {
		free(m);
		free(id);
		return;
	}
	*m = (struct moment){
		.next = p->moments,
		.which = which,
		.by_peer = order->asker.origin == SNAPSHOT_BY_PEER,
		.id = id,
		.from_usec = order->from_usec,
		.to_usec = MIN(order->to_usec, order->trigger_usec + post_usec),
		.begun_usec = now_usec(CLOCK_MONOTONIC),
		.first = TAKE_PTR(p->ordering),
	};
	p->moments = m;
}

static void forget_oldest(struct peers *p)
{
	unsigned n = 0;

	for (struct moment **at = &p->moments, *m; (m = *at);) {
		if (m->which || ++n <= MOMENTS_MAX) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		moment_free(m);
	}
}

void peers_end(struct peers *p, const void *which, int result, const struct snapshot_result *made)
{
	struct moment *m = p->moments;
	struct peer_ask *joined, *next;

	while (m && m->which != which)
		m = m->next;
	if (!m)
		return;
	m->which = NULL;
	joined = TAKE_PTR(m->joined);
	if (result >= 0)
		(void)snprintf(m->name, sizeof(m->name), "%s", made->name);
	if (m->first)
		ask_answer(TAKE_PTR(m->first), result, made->path, false, made->why.text);
	for (struct peer_ask *ask = joined; ask; ask = next) {
		next = ask->next;
		if (result >= 0)
			ask_look(p, ask);
		else
			ask_answer(ask, result, NULL, false, made->why.text);
	}
	if (result < 0) {
		LIST_REMOVE(p->moments, m);
		moment_free(m);
	}
	forget_oldest(p);
}

void peers_drop(struct peers *p)
{
	struct fault why;
	struct moment *m, *next;
	struct peer_ask *ask;

	(void)fault_set(&why, -ECANCELED, "session %s has ended", p->name);
	for (m = p->moments; m; m = next) {
		next = m->next;
		if (m->which)
			peers_end(p, m->which, why.error, &(struct snapshot_result){.why = why});
	}
	if (p->look)
		p->look->peers = NULL;
	p->look = NULL;
	while ((ask = p->asks)) {
		p->asks = ask->next;
		ask_answer(ask, why.error, NULL, false, why.text);
	}
	while ((m = p->moments)) {
		p->moments = m->next;
		moment_free(m);
	}
}

int peers_ask(struct peers *p, const struct peer_wish *wish, peers_done_t done, void *userdata)
{
	struct peer_ask *ask = calloc(1, sizeof(*ask));

	if (!ask)
		return -ENOMEM;
	*ask = (struct peer_ask){
		.id = strdup(wish->id),
		.lines = strdup(wish->lines),
		.from_usec = wish->from_usec,
		.to_usec = wish->to_usec,
		.asked_usec = now_usec(CLOCK_REALTIME),
		.most_usec = wish->most_usec,
		.uid = wish->uid,
		.done = done,
		.userdata = userdata,
	};
	if (!ask->id || !ask->lines) {
		ask_free(ask);
		return -ENOMEM;
	}
	if (!ask_join(p, ask))
		ask_look(p, ask);
	return 0;
}
