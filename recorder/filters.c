/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include <tracefs.h>

#include "recorder/filters.h"
#include "recorder/kernel-text.h"

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
			   "cannot set filter of %s%s%s", w->system, w->name ? ":" : "",
			   w->name ? w->name : "");
	if (r >= 0 && !w->name)
		r = check_taken(dir, path, w, why);
	return r;
}

void filters_find_witnesses(struct wanted *wanted, size_t n, const struct tracedir *dir)
{
	for (size_t i = 0; i < n; i++) {
		struct wanted *w = &wanted[i];

		if (!w->present || w->name || !w->filter)
			continue;
		free(TAKE_PTR(w->witness));
		find_witness(dir, w);
	}
}

int filters_apply(struct wanted *wanted, size_t n, const struct tracedir *dir, struct fault *why)
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
		changes_add(changes, "the filter of %s%s%s had been set to %s", w->system,
			    event ? ":" : "", event ? event : "", now ? now : "none");
	return r;
}

int filters_check(struct wanted *wanted, size_t n, const struct tracedir *dir,
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
