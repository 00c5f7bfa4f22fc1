/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

#include "basic/log.h"
#include "basic/now.h"
#include "daemon/trigger/unit-watch.h"

#define SYSTEMD	     "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define UNIT_PATH    SYSTEMD_PATH "/unit"
#define UNIT	     SYSTEMD ".Unit"
/* All changes of units, among them the ones to "failed", also of services that die by themselves */
#define MATCH                                                                   \
	"type='signal',interface='org.freedesktop.DBus.Properties',"            \
	"member='PropertiesChanged',path_namespace='" UNIT_PATH "',arg0='" UNIT \
	"',sender='" SYSTEMD "'" /* anybody may send signals */
#define RETRY_USEC (10 * USEC_PER_SEC)
#define SEEN_MAX   64 /* units that have failed lately */

struct seen {
	char *unit;
	uint64_t usec; /* monotonic, when it failed last */
};

struct unit_watch {
	sd_event *event; /* borrowed */
	int64_t priority;
	unit_failed_t on_failed;
	void *userdata;
	sd_bus *bus; /* NULL, or it has ended when there is a retry_source: not connected */
	sd_event_source *retry_source;
	uint64_t since_usec; /* monotonic: what failed before is no news */
	struct seen seen[SEEN_MAX];
	size_t next;
	char trouble[256]; /* "": none */
	bool told;	   /* in the log */
};

static void join(struct unit_watch *w);

/* The same failure may be told more than once. Returns whether this one is new. */
static bool is_news(struct unit_watch *w, const char *unit, uint64_t usec)
{
	struct seen *s = NULL;

	if (usec < w->since_usec)
		return false;
	for (size_t i = 0; i < SEEN_MAX; i++)
		if (w->seen[i].unit && strcmp(w->seen[i].unit, unit) == 0)
			s = &w->seen[i];
	if (s && s->usec >= usec)
		return false;
	if (!s) {
		s = &w->seen[w->next++ % SEEN_MAX];
		free(s->unit);
		s->unit = strdup(unit);
	}
	s->usec = usec;
	return true;
}

/* What is of interest of a unit's changes */
struct change {
	const char *state;
	uint64_t usec, monotonic_usec; /* when it came to be inactive or failed */
};

/* a{sv} */
static int read_change(sd_bus_message *m, struct change *ret)
{
	int r = sd_bus_message_enter_container(m, 'a', "{sv}");

	while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		const char *key;

		r = sd_bus_message_read(m, "s", &key);
		if (r < 0)
			return r;
		if (strcmp(key, "ActiveState") == 0)
			r = sd_bus_message_read(m, "v", "s", &ret->state);
		else if (strcmp(key, "InactiveEnterTimestamp") == 0)
			r = sd_bus_message_read(m, "v", "t", &ret->usec);
		else if (strcmp(key, "InactiveEnterTimestampMonotonic") == 0)
			r = sd_bus_message_read(m, "v", "t", &ret->monotonic_usec);
		else
			r = sd_bus_message_skip(m, "v");
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	return r;
}

/* @m: at the properties of the unit called @unit */
static void tell(struct unit_watch *w, sd_bus_message *m, const char *unit)
{
	struct change change = {};

	if (read_change(m, &change) >= 0 && change.state && strcmp(change.state, "failed") == 0 &&
	    is_news(w, unit, change.monotonic_usec))
		w->on_failed(w->userdata, unit, change.usec);
}

static int on_changed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_free_ char *unit = NULL;

	if (sd_bus_message_skip(m, "s") >= 0 &&
	    sd_bus_path_decode(sd_bus_message_get_path(m), UNIT_PATH, &unit) > 0)
		tell(userdata, m, unit);
	return 0;
}

/* --- those that failed while there was no connection */

struct question {
	struct unit_watch *watch;
	char unit[];
};

static int on_properties(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const struct question *q = userdata;

	if (!sd_bus_message_is_method_error(m, NULL))
		tell(q->watch, m, q->unit);
	return 0;
}

static int ask(struct unit_watch *w, const char *unit, const char *path)
{
	size_t size = strlen(unit) + 1;
	struct question *q = malloc(sizeof(*q) + size);
	sd_bus_slot *slot = NULL;
	int r;

	if (!q)
		return -ENOMEM;
	q->watch = w;
	memcpy(q->unit, unit, size);
	r = sd_bus_call_method_async(w->bus, &slot, SYSTEMD, path,
				     "org.freedesktop.DBus.Properties", "GetAll", on_properties, q,
				     "s", UNIT);
	if (r >= 0)
		r = sd_bus_slot_set_destroy_callback(slot, free);
	if (r < 0)
		free(q);
	else
		r = sd_bus_slot_set_floating(slot, 1);
	sd_bus_slot_unref(slot);
	return r;
}

static int on_failed_units(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const char *unit, *path;
	int r;

	if (sd_bus_message_is_method_error(m, NULL))
		return 0;
	r = sd_bus_message_enter_container(m, 'a', "(ssssssouso)");
	while (r >= 0 && (r = sd_bus_message_read(m, "(ssssssouso)", &unit, NULL, NULL, NULL, NULL,
						  NULL, &path, NULL, NULL, NULL)) > 0)
		r = ask(userdata, unit, path);
	return 0;
}

/* @log: false: not yet, the next try may do */
static void set_trouble(struct unit_watch *w, const char *text, bool log)
{
	bool same = strcmp(w->trouble, text) == 0;

	if (*text && log && !(same && w->told))
		log_warning("OnUnitFailed= does not work: %s", text);
	else if (!*text && w->told)
		log_notice("OnUnitFailed= works again");
	w->told = *text && (log || w->told);
	if (!same)
		(void)snprintf(w->trouble, sizeof(w->trouble), "%s", text);
}

/* --- connecting */

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct unit_watch *w = userdata;

	w->retry_source = sd_event_source_disable_unref(w->retry_source);
	w->bus = sd_bus_close_unref(w->bus); /* now that it is not in a call of it */
	join(w);
	return 0;
}

static void leave(struct unit_watch *w, const char *why, bool log)
{
	set_trouble(w, why, log);
	if (!w->retry_source)
		(void)sd_event_add_time_relative(w->event, &w->retry_source, CLOCK_MONOTONIC,
						 RETRY_USEC, USEC_PER_SEC, on_retry, w);
}

static int filter(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	if (sd_bus_message_is_signal(m, "org.freedesktop.DBus.Local", "Disconnected") > 0)
		/* So it does, too, just before the machine goes down */
		leave(userdata, "the connection to systemd has ended", false);
	return 0;
}

static int on_subscribed(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const sd_bus_error *e = sd_bus_message_get_error(m);
	struct unit_watch *w = userdata;
	char text[200];

	if (!e)
		return sd_bus_call_method_async(w->bus, NULL, SYSTEMD, SYSTEMD_PATH,
						SYSTEMD ".Manager", "ListUnitsFiltered",
						on_failed_units, w, "as", 1, "failed");
	(void)snprintf(text, sizeof(text), "systemd refuses: %s", e->message ? e->message : "?");
	leave(w, text, true);
	return 0;
}

static int connect_bus(struct unit_watch *w)
{
	int r = sd_bus_open_system(&w->bus);

	if (r >= 0)
		r = sd_bus_add_filter(w->bus, NULL, filter, w);
	if (r >= 0)
		r = sd_bus_add_match_async(w->bus, NULL, MATCH, on_changed, NULL, w);
	/* systemd tells those who ask, whoever they are */
	if (r >= 0)
		r = sd_bus_call_method_async(w->bus, NULL, SYSTEMD, SYSTEMD_PATH,
					     SYSTEMD ".Manager", "Subscribe", on_subscribed, w,
					     NULL);
	if (r >= 0)
		r = sd_bus_attach_event(w->bus, w->event, (int)w->priority);
	return r;
}

static void join(struct unit_watch *w)
{
	char text[128];
	int r;

	if (sd_booted() <= 0) {
		/* No reason to look again: it will not come while we run */
		set_trouble(w, "systemd does not run on this machine", true);
		return;
	}
	r = connect_bus(w);
	if (r >= 0) {
		set_trouble(w, "", true);
		return;
	}
	(void)snprintf(text, sizeof(text), "cannot talk to systemd over the system bus: %s",
		       strerror(-r));
	leave(w, text, true);
}

int unit_watch_new(sd_event *event, int64_t priority, unit_failed_t on_failed, void *userdata,
		   struct unit_watch **ret)
{
	struct unit_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->event = event;
	w->priority = priority;
	w->on_failed = on_failed;
	w->userdata = userdata;
	w->since_usec = now_usec(CLOCK_MONOTONIC);
	join(w);
	*ret = w;
	return 0;
}

void unit_watch_free(struct unit_watch *w)
{
	if (!w)
		return;
	sd_event_source_disable_unref(w->retry_source);
	sd_bus_close_unref(w->bus);
	for (size_t i = 0; i < SEEN_MAX; i++)
		free(w->seen[i].unit);
	free(w);
}

const char *unit_watch_trouble(const struct unit_watch *w)
{
	return *w->trouble ? w->trouble : NULL;
}
