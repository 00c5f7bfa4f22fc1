/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrec-announce: tells the other hosts of each trigger, at once. What the broker has not
 * confirmed is kept, up to a number and for as long as it is of use, also over a restart. Main
 * thread.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "basic/log.h"
#include "basic/now.h"
#include "basic/strv.h"
#include "fleet/broker.h"
#include "fleet/notice.h"
#include "fleet/pending.h"
#include "fleet/program.h"

#define KEPT_MAX   64U
#define NOTICE_MAX 65536 /* bytes */

struct kept {
	struct kept *next;
	char id[OWN_ID_MAX + 1];
	char *payload;
	uint64_t expires_usec; /* by the clock that runs on while the machine sleeps */
	int number;	       /* under which it was published; 0: not on this connection */
	bool stored;	       /* there is a file */
};

struct announce {
	struct fleet fleet;
	sd_event *event;
	struct broker *broker;
	char *topic;
	struct kept *kept; /* oldest first */
	unsigned n_kept;
	int fd; /* flyrecd's notices */
	char *buffer;
	struct pending pending;
	bool refusal_said;
};

/* --- what is to be sent */

static void kept_free(struct announce *a, struct kept *k)
{
	LIST_REMOVE(a->kept, k);
	a->n_kept--;
	free(k->payload);
	free(k);
}

static void forget(struct announce *a, struct kept *k)
{
	if (k->stored)
		pending_remove(&a->pending, k->id);
	kept_free(a, k);
}

static void publish(struct announce *a, struct kept *k, uint64_t now)
{
	if (broker_publish(a->broker, a->topic, k->payload, k->expires_usec - now, &k->number) < 0)
		k->number = 0;
}

static void publish_all(struct announce *a)
{
	uint64_t now = now_usec(CLOCK_BOOTTIME);
	struct kept *next;

	for (struct kept *k = a->kept; k; k = next) {
		next = k->next;
		if (k->expires_usec <= now) {
			(void)log_warning("%s is no longer of use to other hosts, dropped", k->id);
			forget(a, k);
		} else if (k->number == 0 && broker_is_up(a->broker)) {
			publish(a, k, now);
		}
	}
}

/* @left_usec: so long it is of use */
static int keep(struct announce *a, const struct message *m, uint64_t left_usec, bool stored)
{
	struct kept *k = calloc(1, sizeof(*k)), **at = &a->kept;

	if (!k || message_write(m, &k->payload) < 0) {
		free(k);
		return log_error_errno(-ENOMEM, "Cannot tell other hosts of %s: %m", m->id);
	}
	(void)snprintf(k->id, sizeof(k->id), "%s", m->id);
	k->expires_usec = now_usec(CLOCK_BOOTTIME) + left_usec;
	k->stored = stored;
	while (*at)
		at = &(*at)->next;
	*at = k;
	if (++a->n_kept > KEPT_MAX) {
		(void)log_warning("%s is one too many for the other hosts while the broker is "
				  "away, dropped",
				  a->kept->id);
		forget(a, a->kept);
	}
	return 0;
}

/* What another process has left */
static bool on_found(void *userdata, const struct message *m, uint64_t age_usec)
{
	struct announce *a = userdata;
	const uint64_t expire = a->fleet.config->announce.expire_usec;

	if (strcmp(m->host, a->fleet.config->host) != 0)
		return false;
	(void)keep(a, m, expire - MIN(age_usec, expire), true);
	return true;
}

/* --- the broker */

static void on_up(void *userdata)
{
	publish_all(userdata);
}

static void on_down(void *userdata, const char *reason)
{
	struct announce *a = userdata;

	for (struct kept *k = a->kept; k; k = k->next)
		k->number = 0;
}

static void on_published(void *userdata, int number, const char *refused)
{
	struct announce *a = userdata;
	struct kept *k = a->kept;

	while (k && k->number != number)
		k = k->next;
	if (!k)
		return;
	if (refused && !a->refusal_said)
		(void)log_error("The broker refuses messages to %s: %s", a->topic, refused);
	a->refusal_said = refused;
	if (!refused)
		(void)log_info("Told other hosts of %s", k->id);
	forget(a, k);
}

static const struct broker_client client = {
	.name = "announce",
	.on_up = on_up,
	.on_down = on_down,
	.on_published = on_published,
};

/* --- flyrecd */

static void tell(struct announce *a, const char *bytes, size_t size)
{
	char **sessions = a->fleet.config->announce.sessions;
	struct message m;
	struct fault why;

	if (notice_read(a->fleet.config, bytes, size, &m, &why) < 0)
		(void)log_warning("A notice of flyrecd, ignoring: %s", why.text);
	else if (!sessions || strv_contains(sessions, m.session))
		(void)keep(a, &m, a->fleet.config->announce.expire_usec, false);
}

static int on_notice(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct announce *a = userdata;
	ssize_t n;

	while ((n = recv(fd, a->buffer, NOTICE_MAX, MSG_DONTWAIT)) >= 0)
		tell(a, a->buffer, (size_t)n);
	if (errno != EAGAIN && errno != EINTR)
		return log_error_errno(-errno, "Cannot read flyrecd's notices: %m");
	publish_all(a);
	/* Not before: others shall know first */
	for (struct kept *k = a->kept; k; k = k->next)
		k->stored = k->stored || pending_put(&a->pending, k->id, k->payload);
	return 0;
}

/* That of flyrec-announce.socket, or an own one */
static int open_socket(struct announce *a)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int n = sd_listen_fds(true);

	if (n > 0) {
		a->fd = SD_LISTEN_FDS_START;
		return n == 1 && sd_is_socket(a->fd, AF_UNIX, SOCK_DGRAM, -1) > 0
			       ? 0
			       : log_error_errno(-EINVAL, "Not one socket for datagrams: %m");
	}
	n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/trigger",
		     a->fleet.runtime_dir);
	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return log_error_errno(-ENAMETOOLONG, "%s: %m", a->fleet.runtime_dir);
	a->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (a->fd >= 0 && (unlink(address.sun_path) == 0 || errno == ENOENT) &&
	    bind(a->fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return 0;
	return log_error_errno(-errno, "Cannot listen on %s: %m", address.sun_path);
}

static int run(struct announce *a)
{
	int r = fleet_run_begin(&a->fleet, &a->event);

	if (r < 0)
		return r;
	a->topic = message_topic(a->fleet.config, a->fleet.config->host);
	a->buffer = malloc(NOTICE_MAX);
	if (!a->topic || !a->buffer)
		return -ENOMEM;
	r = open_socket(a);
	if (r < 0)
		return r;
	pending_open(&a->pending);
	pending_read(&a->pending, on_found, a);
	r = sd_event_add_io(a->event, NULL, a->fd, EPOLLIN, on_notice, a);
	if (r >= 0)
		r = broker_new(a->event, a->fleet.config, &client, false, a, &a->broker);
	return r < 0 ? r : fleet_run(a->event);
}

int main(int argc, char *argv[])
{
	struct announce a = {
		.fleet = {.name = "flyrec-announce"}, .fd = -EBADF, .pending = {.fd = -EBADF}};
	int r = fleet_program(&a.fleet, argc, argv,
			      "Tell the other hosts of each trigger of this one's flyrecd.");

	if (r == 1)
		r = run(&a);
	broker_free(a.broker);
	while (a.kept)
		kept_free(&a, a.kept);
	close_p(&a.fd);
	pending_close(&a.pending);
	free(a.topic);
	free(a.buffer);
	(void)sd_event_unref(a.event);
	fleet_done(&a.fleet);
	return r == -EINVAL ? 2 : r < 0;
}
