/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include <tracefs.h>

#include "basic/strv.h"
#include "recorder/events.h"
#include "recorder/kernel-text.h"

struct wanted {
	const char *system;
	const char *name;   /* NULL: the whole system */
	const char *filter; /* or NULL */
	bool optional;
	bool present; /* the kernel has it */
	/*
	 * A system's filter file never tells the filter that was accepted. So one event is watched
	 * that has taken it; NULL: none known, or none has (all have filters of their own).
	 */
	char *witness;
	bool no_witness;
};

/* For "%s%s%s": SYSTEM:NAME, or SYSTEM alone */
#define NAMES(system, name) (system), (name) ? ":" : "", (name) ? (name) : ""

struct events {
	const struct trace_config *config;
	struct wanted *wanted;
	size_t n_wanted;
	char **shed; /* "SYSTEM:NAME": off for now, see events_shed() */
};

int events_new(const struct trace_config *config, const struct dynamic *dynamic,
	       struct events **ret)
{
	_cleanup_(events_freep) struct events *events = calloc(1, sizeof(*events));
	size_t n = config->n_events + dynamic->n_events;

	if (!events)
		return -ENOMEM;
	events->config = config;
	events->wanted = calloc(MAX(n, 1U), sizeof(*events->wanted));
	if (!events->wanted)
		return -ENOMEM;
	for (size_t i = 0; i < config->n_events; i++) {
		const struct trace_event *e = &config->events[i];

		events->wanted[events->n_wanted++] = (struct wanted){
			.system = e->system,
			.name = e->name,
			.filter = e->filter,
			.optional = e->optional,
		};
	}
	for (size_t i = 0; i < dynamic->n_events; i++)
		events->wanted[events->n_wanted++] = (struct wanted){
			.system = dynamic->events[i].system,
			.name = dynamic->events[i].name,
			.filter = dynamic->events[i].filter,
			.optional = dynamic->events[i].optional,
		};
	*ret = TAKE_PTR(events);
	return 0;
}

void events_free(struct events *events)
{
	if (!events)
		return;
	for (size_t i = 0; i < events->n_wanted; i++)
		free(events->wanted[i].witness);
	free(events->wanted);
	strv_free(events->shed);
	free(events);
}

static bool kernel_has(const struct tracedir *dir, const char *system, const char *name)
{
	_cleanup_free_ char *path = NULL;

	/* events/ has files of its own, and the names come from people. */
	return system[0] && !strpbrk(system, "/.") && (!name || (name[0] && !strchr(name, '/'))) &&
	       tracedir_event_path(system, name, "enable", &path) >= 0 &&
	       tracedir_exists(dir, path);
}

static int lacks(const struct tracedir *dir, const char *key, const char *system, const char *name,
		 struct fault *why)
{
	if (!name)
		return fault_set(why, -ENOENT,
				 "%s=%s: this kernel has no events of system %s "
				 "(%s/events/%s)",
				 key, system, system, dir->path, system);
	return fault_set(why, -ENOENT,
			 "%s=%s:%s: this kernel has no event %s:%s "
			 "(%s/events/%s/%s)",
			 key, system, name, system, name, dir->path, system, name);
}

/* --- filters */

/* Do the texts agree but for white space around them? */
static bool same_filter(const char *a, const char *b)
{
	static const char space[] = " \t\n";
	size_t n, m;

	a += strspn(a, space);
	b += strspn(b, space);
	for (n = strlen(a); n > 0 && strchr(space, a[n - 1]); n--)
		;
	for (m = strlen(b); m > 0 && strchr(space, b[m - 1]); m--)
		;
	return n == m && memcmp(a, b, n) == 0;
}

/* The filter of one event: @ret_now for the report */
static int has_filter(const struct tracedir *dir, const char *system, const char *name,
		      const char *want, bool *ret, char **ret_now, struct fault *why)
{
	_cleanup_free_ char *path = NULL;
	int r;

	r = tracedir_event_path(system, name, "filter", &path);
	if (r >= 0)
		r = tracedir_read_line(dir, path, ret_now, why);
	if (r >= 0)
		*ret = same_filter(*ret_now, want);
	return r;
}

static void find_witness(const struct tracedir *dir, struct wanted *w)
{
	char **names = tracefs_system_events(dir->path, w->system);

	for (char **n = names; !w->witness && n && *n; n++) {
		_cleanup_free_ char *now = NULL;
		bool same;

		if (has_filter(dir, w->system, *n, w->filter, &same, &now, NULL) >= 0 && same)
			w->witness = strdup(*n);
	}
	tracefs_list_free(names);
	w->no_witness = !w->witness;
}

/*
 * A system's filter goes to those of its events that have the fields. If none has, write(2) still
 * succeeds all the same (6.18), so look whether one took it.
 */
static int check_taken(const struct tracedir *dir, const char *path, struct wanted *w,
		       struct fault *why)
{
	_cleanup_free_ char *log = NULL, *quote = NULL;

	free(TAKE_PTR(w->witness));
	find_witness(dir, w);
	if (w->witness)
		return 0;
	if (tracedir_read(dir, "error_log", &log, NULL) >= 0)
		(void)kernel_text_error_log_last(log, &quote);
	return fault_set(why, -EINVAL, "cannot set filter of %s: %s/%s: no event takes it%s%s",
			 w->system, dir->path, path, quote ? ": " : "", quote ? quote : "");
}

static int write_filter(const struct tracedir *dir, struct wanted *w, struct fault *why)
{
	_cleanup_free_ char *path = NULL;
	int r;

	r = tracedir_event_path(w->system, w->name, "filter", &path);
	if (r < 0)
		return r;
	/* "0" takes a filter away. */
	r = tracedir_write(dir, path, w->filter ? w->filter : "0", 0, why,
			   "cannot set filter of %s%s%s", NAMES(w->system, w->name));
	if (r >= 0 && !w->name)
		r = check_taken(dir, path, w, why);
	return r;
}

/* For those of an instance whose filters are set already, too */
static void filters_find_witnesses(struct wanted *wanted, size_t n, const struct tracedir *dir)
{
	for (size_t i = 0; i < n; i++) {
		struct wanted *w = &wanted[i];

		if (!w->present || w->name || !w->filter)
			continue;
		free(TAKE_PTR(w->witness));
		find_witness(dir, w);
	}
}

/*
 * In the order of the list, so that the last one for an event counts. -EINVAL also when no event of
 * a system takes its filter.
 */
static int filters_apply(struct wanted *wanted, size_t n, const struct tracedir *dir,
			 struct fault *why)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++)
		if (wanted[i].present && wanted[i].filter)
			r = write_filter(dir, &wanted[i], why);
	filters_find_witnesses(wanted, n, dir);
	return r;
}

/*
 * What the filter file of the event wanted[i] must say; NULL: cannot tell, since another Event=
 * also filters it. Filters are applied in the order of the configuration, so the last one counts.
 */
static const char *expected_filter(const struct wanted *wanted, size_t n, size_t i)
{
	const struct wanted *w = &wanted[i];

	for (size_t j = 0; j < n; j++) {
		const struct wanted *other = &wanted[j];
		bool covers = !other->name || strcmp(other->name, w->name) == 0;

		if (j == i || !other->present || !other->filter || !covers ||
		    strcmp(other->system, w->system) != 0)
			continue;
		if (j > i || !w->filter)
			return NULL;
	}
	return w->filter ? w->filter : "none";
}

static int check_one(struct wanted *w, const char *want, const struct tracedir *dir,
		     struct changes *changes, struct fault *why)
{
	_cleanup_free_ char *event = NULL, *now = NULL;
	bool same = false;
	int r = 0;

	if (w->name || w->witness) {
		event = strdup(w->name ? w->name : w->witness);
		if (!event)
			return -ENOMEM;
		r = has_filter(dir, w->system, event, want, &same, &now, why);
	}
	if (r < 0 || same)
		return r;
	r = write_filter(dir, w, why);
	if (r >= 0)
		changes_add(changes, "the filter of %s%s%s had been set to %s",
			    NAMES(w->system, event), now ? now : "none");
	return r;
}

/* Compare, and write again what is different */
static int filters_check(struct wanted *wanted, size_t n, const struct tracedir *dir,
			 struct changes *changes, struct fault *why)
{
	unsigned before = changes->n;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct wanted *w = &wanted[i];
		const char *want = w->name ? expected_filter(wanted, n, i) : w->filter;

		if (w->present && want && (w->name || !w->no_witness))
			r = check_one(w, want, dir, changes, why);
	}
	if (changes->n > before)
		filters_find_witnesses(wanted, n, dir);
	return r;
}

/* --- triggers */

static int write_trigger(const struct tracedir *dir, const struct trace_trigger *t, bool undo,
			 struct fault *why)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	int r;

	r = tracedir_event_path(t->system, t->name, "trigger", &path);
	if (r < 0)
		return r;
	text = strf("%s%s", undo ? "!" : "", t->trigger);
	if (!text)
		return -ENOMEM;
	return tracedir_write(dir, path, text, 0, why, "cannot %s trigger of %s:%s (%s)",
			      undo ? "remove" : "set", t->system, t->name, t->trigger);
}

static int setup_triggers(const struct events *events, const struct tracedir *dir,
			  struct fault *why)
{
	for (size_t i = 0; i < events->config->n_triggers; i++) {
		const struct trace_trigger *t = &events->config->triggers[i];
		int r;

		if (!kernel_has(dir, t->system, t->name)) {
			if (t->optional)
				continue;
			return lacks(dir, "EventTrigger", t->system, t->name, why);
		}
		r = write_trigger(dir, t, false, why);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Triggers are printed one a line; the lines with "#" are an explanation. */
static size_t count_triggers(const char *text)
{
	size_t n = 0;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		n += *text != '#' && *text != '\n';
	return n;
}

static bool same_event(const struct trace_trigger *a, const struct trace_trigger *b)
{
	return strcmp(a->system, b->system) == 0 && strcmp(a->name, b->name) == 0;
}

/*
 * The kernel prints triggers in its own words (counts go down, hist gets all its defaults), so only
 * their number is compared. Those that are still there answer -EEXIST when set again.
 */
static int check_triggers_of(const struct events *events, size_t first, const struct tracedir *dir,
			     struct changes *changes, struct fault *why)
{
	const struct trace_config *config = events->config;
	const struct trace_trigger *t = &config->triggers[first];
	_cleanup_free_ char *path = NULL, *text = NULL;
	size_t n = 0;
	int r;

	for (size_t i = first; i < config->n_triggers; i++)
		n += same_event(t, &config->triggers[i]);
	r = tracedir_event_path(t->system, t->name, "trigger", &path);
	if (r >= 0)
		r = tracedir_read(dir, path, &text, why);
	if (r < 0 || count_triggers(text) >= n)
		return r;
	for (size_t i = first; i < config->n_triggers; i++) {
		if (!same_event(t, &config->triggers[i]))
			continue;
		r = write_trigger(dir, &config->triggers[i], false, why);
		if (r < 0 && r != -EEXIST)
			return r;
	}
	changes_add(changes, "triggers of %s:%s had been removed", t->system, t->name);
	return 0;
}

static int check_triggers(const struct events *events, const struct tracedir *dir,
			  struct changes *changes, struct fault *why)
{
	const struct trace_config *config = events->config;

	for (size_t i = 0; i < config->n_triggers; i++) {
		const struct trace_trigger *t = &config->triggers[i];
		bool seen = false;
		int r;

		for (size_t j = 0; j < i; j++)
			seen = seen || same_event(t, &config->triggers[j]);
		if (seen || (t->optional && !kernel_has(dir, t->system, t->name)))
			continue;
		r = check_triggers_of(events, i, dir, changes, why);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- enabling */

static int write_to_event(const struct tracedir *dir, const char *system, const char *name,
			  const char *file, const char *text, struct fault *why)
{
	_cleanup_free_ char *path = NULL;
	int r;

	r = tracedir_event_path(system, name, file, &path);
	if (r < 0)
		return r;
	return tracedir_write(dir, path, text, 0, why, "cannot %s %s%s%s",
			      strcmp(file, "enable") != 0 ? "take away the filter of"
			      : text[0] == '1'		  ? "enable"
							  : "disable",
			      NAMES(system, name));
}

static int write_enable(const struct tracedir *dir, const struct wanted *w, struct fault *why)
{
	return write_to_event(dir, w->system, w->name, "enable", "1", why);
}

/* May a configured trigger itself enable or disable it? */
static bool flipped_by_trigger(const struct trace_config *config, const struct wanted *w)
{
	static const char *const verbs[] = {"enable_event:", "disable_event:"};

	for (size_t i = 0; i < config->n_triggers; i++)
		for (size_t v = 0; v < ARRAY_SIZE(verbs); v++) {
			const char *t = config->triggers[i].trigger;
			size_t n = strlen(verbs[v]), s = strlen(w->system);

			if (strncmp(t, verbs[v], n) != 0 || strncmp(t + n, w->system, s) != 0 ||
			    t[n + s] != ':')
				continue;
			if (!w->name || strncmp(t + n + s + 1, w->name, strlen(w->name)) == 0)
				return true;
		}
	return false;
}

/*
 * "1", "0", or "X" for a system of which some are enabled; "*" behind it: a trigger is on the
 * event, so that "0*" says that nothing but the trigger keeps it attached.
 */
static int is_enabled(const struct tracedir *dir, const struct wanted *w, bool *ret,
		      struct fault *why)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	int r;

	r = tracedir_event_path(w->system, w->name, "enable", &path);
	if (r >= 0)
		r = tracedir_read(dir, path, &text, why);
	if (r >= 0)
		*ret = text[0] == '1';
	return r;
}

/* Is it, or an event of it, off for now? */
static bool is_shed(const struct events *events, const struct wanted *w)
{
	size_t n = strlen(w->system);

	STRV_FOREACH (s, events->shed) {
		if (strncmp(*s, w->system, n) == 0 && (*s)[n] == ':' &&
		    (!w->name || strcmp(*s + n + 1, w->name) == 0))
			return true;
	}
	return false;
}

static int check_enabled(const struct events *events, const struct wanted *w,
			 const struct tracedir *dir, struct changes *changes, struct fault *why)
{
	bool enabled;
	int r;

	r = is_enabled(dir, w, &enabled, why);
	if (r < 0 || enabled || flipped_by_trigger(events->config, w) || is_shed(events, w))
		return r;
	r = write_enable(dir, w, why);
	if (r >= 0)
		changes_add(changes, "%s%s%s had been disabled", NAMES(w->system, w->name));
	return r;
}

/* --- all */

static void look_for_events(struct events *events, const struct tracedir *dir)
{
	for (size_t i = 0; i < events->n_wanted; i++)
		events->wanted[i].present =
			kernel_has(dir, events->wanted[i].system, events->wanted[i].name);
}

static int all_present(const struct events *events, const struct tracedir *dir, struct fault *why)
{
	for (size_t i = 0; i < events->n_wanted; i++) {
		const struct wanted *w = &events->wanted[i];

		if (!w->present && !w->optional)
			return lacks(dir, "Event", w->system, w->name, why);
	}
	return 0;
}

int events_exist(const struct trace_config *config, const struct tracedir *dir, struct fault *why)
{
	for (size_t i = 0; i < config->n_events; i++) {
		const struct trace_event *e = &config->events[i];

		if (!e->optional && !kernel_has(dir, e->system, e->name))
			return lacks(dir, "Event", e->system, e->name, why);
	}
	return 0;
}

int events_setup(struct events *events, const struct tracedir *dir, struct fault *why)
{
	int r;

	look_for_events(events, dir);
	r = all_present(events, dir, why);
	if (r < 0)
		return r;
	r = filters_apply(events->wanted, events->n_wanted, dir, why);
	if (r >= 0)
		r = setup_triggers(events, dir, why);
	for (size_t i = 0; r >= 0 && i < events->n_wanted; i++)
		if (events->wanted[i].present)
			r = write_enable(dir, &events->wanted[i], why);
	return r;
}

/* --- replacing */

/* @name: NULL: the system as a whole */
static const struct wanted *find_wanted(const struct events *events, const char *system,
					const char *name, bool exactly)
{
	for (size_t i = 0; i < events->n_wanted; i++) {
		const struct wanted *w = &events->wanted[i];

		if (!w->present || strcmp(w->system, system) != 0)
			continue;
		if (w->name && name ? strcmp(w->name, name) == 0 : !w->name && (!name || !exactly))
			return w;
	}
	return NULL;
}

/* A system goes event by event, so that those that stay are traced all the time */
static int disable_system(const struct events *after, const char *system,
			  const struct tracedir *dir, struct fault *why)
{
	char **names = tracefs_system_events(dir->path, system);
	int r = 0;

	for (char **n = names; r >= 0 && n && *n; n++)
		if (!find_wanted(after, system, *n, false))
			r = write_to_event(dir, system, *n, "enable", "0", why);
	tracefs_list_free(names);
	return r;
}

static int disable_rest(const struct events *before, const struct events *after,
			const struct tracedir *dir, struct fault *why)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < before->n_wanted; i++) {
		const struct wanted *w = &before->wanted[i], *still;

		if (!w->present)
			continue;
		if (!w->name && !find_wanted(after, w->system, NULL, true))
			r = disable_system(after, w->system, dir, why);
		else if (w->name && !find_wanted(after, w->system, w->name, false))
			r = write_to_event(dir, w->system, w->name, "enable", "0", why);
		if (r < 0 || !w->name || !w->filter)
			continue;
		still = find_wanted(after, w->system, w->name, true);
		if (!still || !still->filter)
			r = write_to_event(dir, w->system, w->name, "filter", "0", why);
	}
	return r;
}

static int go_over(const struct events *before, struct events *after, const struct tracedir *dir,
		   struct fault *why)
{
	int r = disable_rest(before, after, dir, why);

	if (r >= 0)
		r = filters_apply(after->wanted, after->n_wanted, dir, why);
	for (size_t i = 0; r >= 0 && i < after->n_wanted; i++)
		if (after->wanted[i].present)
			r = write_enable(dir, &after->wanted[i], why);
	return r;
}

int events_replace(struct events *before, struct events *after, const struct tracedir *dir,
		   struct fault *why)
{
	int r;

	look_for_events(after, dir);
	r = all_present(after, dir, why);
	if (r < 0)
		return r;
	r = go_over(before, after, dir, why);
	if (r < 0)
		(void)go_over(after, before, dir, NULL);
	return r;
}

void events_adopt(struct events *events, const struct tracedir *dir)
{
	look_for_events(events, dir);
	filters_find_witnesses(events->wanted, events->n_wanted, dir);
	/* If there is none, somebody may have cleared the filter: the first check sets it again. */
	for (size_t i = 0; i < events->n_wanted; i++)
		events->wanted[i].no_witness = false;
}

/* A module may have been unloaded: said once, and fine for an optional event */
static void forget_gone(struct events *events, const struct tracedir *dir, struct changes *changes)
{
	for (size_t i = 0; i < events->n_wanted; i++) {
		struct wanted *w = &events->wanted[i];

		if (!w->present || kernel_has(dir, w->system, w->name))
			continue;
		w->present = false;
		if (!w->optional)
			changes_add(changes, "the event %s%s%s has gone, its module most likely",
				    NAMES(w->system, w->name));
	}
}

int events_check(struct events *events, const struct tracedir *dir, struct changes *changes,
		 struct fault *why)
{
	int r;

	forget_gone(events, dir, changes);
	/* Filters before enabling, as at the beginning. */
	r = filters_check(events->wanted, events->n_wanted, dir, changes, why);
	if (r >= 0)
		r = check_triggers(events, dir, changes, why);
	for (size_t i = 0; r >= 0 && i < events->n_wanted; i++)
		if (events->wanted[i].present)
			r = check_enabled(events, &events->wanted[i], dir, changes, why);
	return r;
}

int events_shed(struct events *events, const struct tracedir *dir, const char *name, bool shed,
		struct fault *why)
{
	_cleanup_free_ char *system = strdup(name);
	char *colon = system ? strchr(system, ':') : NULL;
	int r;

	if (!colon)
		return fault_errno(why, system ? -EINVAL : -ENOMEM, "cannot disable %s", name);
	*colon = '\0';
	r = shed ? strv_append(&events->shed, name) : 0;
	if (r < 0)
		return fault_errno(why, r, "cannot disable %s", name);
	r = write_to_event(dir, system, colon + 1, "enable", shed ? "0" : "1", why);
	if (!shed || r < 0)
		strv_remove(events->shed, name);
	return r;
}

int events_teardown(const struct events *events, const struct tracedir *dir, struct fault *why)
{
	const struct trace_config *config = events->config;
	struct fault step = {0};
	int first = 0;

	/* Last first: a hist trigger may refer to an earlier one. */
	for (size_t i = config->n_triggers; i-- > 0;) {
		int r = write_trigger(dir, &config->triggers[i], true, &step);

		/* What is not there (any more) is refused as invalid; rmdir removes all others. */
		if (r != -EINVAL)
			first = first_fault(first, r, &step, why);
	}
	return first_fault(
		first,
		tracedir_write(dir, "events/enable", "0", 0, &step, "cannot disable all events"),
		&step, why);
}

/* Linux 7.3 prints this key of a histogram so, which it does not understand itself */
static void mend_trigger(char *text)
{
	static const char twice[] = "common_cpucommon_cpu";
	const size_t half = strlen(twice) / 2;

	for (char *at = text; (at = strstr(at, twice));) {
		at += half;
		memmove(at, at + half, strlen(at + half) + 1);
	}
}

/* "TRIGGER [active]" as the kernel prints it. Return: how many of the event's are gone now. */
static unsigned clear_triggers_of(const struct tracedir *dir, const char *system, const char *name)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	unsigned n = 0;
	char *save = NULL;

	if (tracedir_event_path(system, name, "trigger", &path) < 0 ||
	    tracedir_read(dir, path, &text, NULL) < 0)
		return 0;
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		_cleanup_free_ char *undo = NULL;
		char *state = strstr(l, " [");

		if (*l == '#')
			continue;
		if (state)
			*state = '\0';
		mend_trigger(l);
		undo = strf("!%s", l);
		n += undo && tracedir_write(dir, path, undo, 0, NULL, "cannot remove") >= 0;
	}
	return n;
}

static unsigned clear_triggers(const struct tracedir *dir)
{
	char **systems = tracefs_event_systems(dir->path);
	unsigned n = 0;

	for (char **s = systems; s && *s; s++) {
		char **names = tracefs_system_events(dir->path, *s);

		for (char **e = names; e && *e; e++)
			n += clear_triggers_of(dir, *s, *e);
		tracefs_list_free(names);
	}
	tracefs_list_free(systems);
	return n;
}

void events_clear_triggers(const struct tracedir *dir)
{
	/* one that others refer to goes after these */
	for (int i = 0; i < 4 && clear_triggers(dir) > 0; i++)
		;
}

int events_systems(const struct events *events, const struct tracedir *dir, char ***list,
		   struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = tracedir_read(dir, "set_event", &text, why);
	if (r >= 0)
		r = kernel_text_set_event(text, list);
	for (size_t i = 0; r >= 0 && i < events->n_wanted; i++)
		if (events->wanted[i].present)
			r = kernel_text_list_add(list, events->wanted[i].system,
						 strlen(events->wanted[i].system));
	for (size_t i = 0; r >= 0 && i < events->config->n_triggers; i++) {
		const struct trace_trigger *t = &events->config->triggers[i];

		if (!kernel_has(dir, t->system, t->name))
			continue;
		r = kernel_text_list_add(list, t->system, strlen(t->system));
		if (r >= 0)
			r = kernel_text_trigger_systems(t->trigger, list);
	}
	return r;
}
