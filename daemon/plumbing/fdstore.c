/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "basic/log.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "daemon/plumbing/fdstore.h"

/*
 * All names are passed to the next process in one string of its environment, LISTEN_FDNAMES. Above
 * 128 KiB (the kernel's MAX_ARG_STRLEN on 4 KiB pages) it could not be executed any more.
 */
#define NAMES_MAX (124 * 1024)

/*
 * FileDescriptorStoreMax= of flyrecd.service. systemd says so in $FDSTORE, since its version 254;
 * what is beyond it closes, and says nothing to us.
 */
#define FDS_MAX	     4096
#define BARRIER_USEC (5 * USEC_PER_SEC) /* much less than the watchdog's time */

struct stored {
	char *name;
	int fd;
};

/* What nobody has taken, in no order; and what is known of the service manager's store */
struct fdstore {
	struct stored *entries;
	size_t n;
	size_t names; /* bytes of all names in the store, with a separator each */
	unsigned fds; /* in the store */
	unsigned max_fds;
	bool dropped; /* something, since fdstore_flush() */
	bool full;    /* for good: then @names and @fds are only lower bounds */
};

static bool is_ours(const char *name)
{
	const char *dot = strchr(name, '.');

	return dot && (strcmp(dot, ".slots") == 0 || strcmp(dot, ".notes") == 0 ||
		       strncmp(dot, ".cpu", 4) == 0 || strncmp(dot, ".worker", 7) == 0);
}

int fdstore_new(struct fdstore **ret)
{
	struct fdstore *store = calloc(1, sizeof(*store));
	const char *max = getenv("FDSTORE");
	char **names = NULL;
	int n;

	if (!store)
		return -ENOMEM;
	if (!max || parse_unsigned(max, &store->max_fds) < 0)
		store->max_fds = FDS_MAX;
	n = sd_listen_fds_with_names(false, &names);
	store->entries = calloc((size_t)MAX(n, 0) + 1, sizeof(*store->entries));
	for (int i = 0; i < n; i++) {
		store->names += strlen(names[i]) + 1;
		store->fds += is_ours(names[i]);
		if (store->entries && is_ours(names[i])) {
			store->entries[store->n++] =
				(struct stored){TAKE_PTR(names[i]), SD_LISTEN_FDS_START + i};
			(void)fcntl(SD_LISTEN_FDS_START + i, F_SETFD, FD_CLOEXEC);
		}
		free(names[i]);
	}
	free(names);
	if (!store->entries) {
		free(store);
		return -ENOMEM;
	}
	*ret = store;
	return 0;
}

static bool is_of(const struct stored *s, const char *session)
{
	size_t n = strlen(session);

	return strncmp(s->name, session, n) == 0 && s->name[n] == '.';
}

static bool is_pipe(const struct stored *s)
{
	return ends_with(s->name, ".pipe");
}

/* The last entry takes its place: whoever goes on from there goes backwards */
static int take_entry(struct fdstore *store, size_t i)
{
	int fd = store->entries[i].fd;

	free(store->entries[i].name);
	store->entries[i] = store->entries[--store->n];
	return fd;
}

static void close_entry(struct fdstore *store, size_t i)
{
	int fd = take_entry(store, i);

	close_p(&fd);
}

void fdstore_free(struct fdstore *store)
{
	if (!store)
		return;
	for (size_t i = store->n; i-- > 0;)
		if (is_pipe(&store->entries[i]))
			close_entry(store, i);
	while (store->n > 0)
		close_entry(store, store->n - 1);
	free(store->entries);
	free(store);
}

int fdstore_take(struct fdstore *store, const char *session, const char *what)
{
	char name[256];

	(void)snprintf(name, sizeof(name), "%s.%s", session, what);
	for (size_t i = 0; i < store->n; i++)
		if (strcmp(store->entries[i].name, name) == 0)
			return take_entry(store, i);
	return -ENOENT;
}

static bool has_room(struct fdstore *store, const char *session, size_t name_size)
{
	if (store->names + name_size > NAMES_MAX)
		log_warning(
			"the service manager's file descriptor store has no room for more names: what is in the pipes of session %s is lost if flyrecd is killed; fewer sessions, or shorter names of them, would fit",
			session);
	else if (store->fds >= store->max_fds)
		log_warning(
			"the service manager's file descriptor store has room for %u, which is too few: what is in the pipes of session %s is lost if flyrecd is killed; each session takes two, one for each CPU and one for each worker, FileDescriptorStoreMax= sets how many there may be",
			store->max_fds, session);
	else
		return true;
	store->full = true;
	return false;
}

void fdstore_put(struct fdstore *store, const char *session, const char *what, int fd)
{
	size_t name_size = strlen(session) + 1 + strlen(what) + 1;
	char text[320];

	if (store->full || !getenv("NOTIFY_SOCKET") || !has_room(store, session, name_size))
		return;
	store->names += name_size;
	store->fds++;
	/* FDPOLL=0: a pipe without a writer would otherwise be dropped as hung up */
	(void)snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s.%s", session, what);
	(void)sd_pid_notify_with_fds(0, 0, text, &fd, 1);
}

void fdstore_keep(struct fdstore *store, const char *session, const char *what, int fd)
{
	struct stored *more = reallocarray(store->entries, store->n + 1, sizeof(*more));

	if (more)
		store->entries = more;
	if (more && (more[store->n].name = strf("%s.%s", session, what)))
		more[store->n++].fd = fd;
	else
		close_p(&fd);
}

static void drop_name(struct fdstore *store, const char *name)
{
	store->names -= MIN(store->names, strlen(name) + 1);
	store->fds -= MIN(store->fds, 1U);
	(void)sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
	store->dropped = true;
}

void fdstore_flush(struct fdstore *store)
{
	if (store->dropped)
		(void)sd_notify_barrier(0, BARRIER_USEC);
	store->dropped = false;
}

void fdstore_drop(struct fdstore *store, const char *session, const char *what)
{
	char name[256];

	(void)snprintf(name, sizeof(name), "%s.%s", session, what);
	drop_name(store, name);
}

static void drop_entries(struct fdstore *store, const char *session, bool pipes)
{
	for (size_t i = store->n; i-- > 0;)
		if (is_of(&store->entries[i], session) && is_pipe(&store->entries[i]) == pipes) {
			drop_name(store, store->entries[i].name);
			close_entry(store, i);
		}
}

void fdstore_drop_session(struct fdstore *store, const char *session)
{
	drop_entries(store, session, true);
	drop_entries(store, session, false);
}

void fdstore_drop_rest(struct fdstore *store, bool (*may_take)(void *userdata, const char *session),
		       void *userdata)
{
	/* More than one entry may go at a time: what has not been looked at yet stays below i */
	for (size_t i = store->n; i-- > 0; i = MIN(i, store->n)) {
		char session[256];

		(void)snprintf(session, sizeof(session), "%s", store->entries[i].name);
		session[strcspn(session, ".")] = '\0';
		if (!may_take(userdata, session))
			fdstore_drop_session(store, session);
	}
}
