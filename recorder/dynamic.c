/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <tracefs.h>

#include "basic/near.h"
#include "basic/strv.h"
#include "recorder/dynamic.h"
#include "recorder/probe-place.h"

#define FILE_NAME "dynamic_events"

void dynamic_free(struct dynamic *dynamic)
{
	if (!dynamic)
		return;
	for (size_t i = 0; i < dynamic->n_events; i++) {
		free(dynamic->events[i].system);
		free(dynamic->events[i].name);
		free(dynamic->events[i].definition);
		free(dynamic->events[i].shown);
		free(dynamic->events[i].filter);
	}
	free(dynamic->events);
	free(dynamic->group);
	strv_free(dynamic->build_ids);
	free(dynamic);
}

static int invalid(const char *key, const char *text, const char *reason, struct fault *why)
{
	return fault_set(why, -EINVAL, "%s=%s: %s", key, text, reason);
}

/* The event's name ends at white space, or at the ";" of a synthetic event's list of fields */
static size_t name_size(const char *text)
{
	return strcspn(text, " \t;/");
}

/* "p[:NAME] PLACE [ARGS]" -> "p:GROUP/NAME PLACE [ARGS]" */
static int parse_probe(const char *key, const char *text, const char *group, unsigned number,
		       struct dynamic_event *event, struct fault *why)
{
	size_t type = strcspn(text, ": \t"), n;
	const char *name = text + type, *rest;

	if (!isalpha((unsigned char)*text) || !*name)
		return invalid(key, text, "not a probe, which is p[:NAME] PLACE [ARGUMENTS]", why);
	if (*name == ':') {
		name++;
		n = name_size(name);
		rest = name + n;
		if (n == 0)
			return invalid(key, text, "no name after \":\"", why);
		if (*rest == '/')
			return invalid(key, text, "must not name a group: the session has its own",
				       why);
		event->name = strndup(name, n);
	} else {
		rest = name;
		event->name = strf("probe%u", number);
	}
	event->system = strdup(group);
	if (!event->name || !event->system)
		return -ENOMEM;
	rest += strspn(rest, " \t");
	if (!*rest)
		return invalid(key, text, "no place to probe", why);
	event->definition = strf("%.*s:%s/%s %s", (int)type, text, group, event->name, rest);
	/* without its arguments, which may be long */
	n = (size_t)(rest - text) + strcspn(rest, " \t");
	event->shown = strf("%s=%.*s", key, (int)n, text);
	if (!event->definition || !event->shown)
		return -ENOMEM;
	return 0;
}

/* "+NAME TYPE FIELD; … if FILTER" */
static int parse_own(const char *text, const char *group, struct dynamic_event *event)
{
	const char *filter = strstr(text, " if ");
	size_t n = filter ? (size_t)(filter - text) : strlen(text);

	event->optional = true;
	event->system = strdup(DYNAMIC_SYNTHETIC);
	event->name = strf("%s_%.*s", group, (int)strcspn(text, " ") - 1, text + 1);
	event->definition = strf("s:%s_%.*s", group, (int)n - 1, text + 1);
	event->filter = filter ? strdup(filter + strlen(" if ")) : NULL;
	return !event->system || !event->name || !event->definition || (filter && !event->filter)
		       ? -ENOMEM
		       : 0;
}

/* "[s:][synthetic/]NAME TYPE FIELD; …" -> "s:NAME TYPE FIELD; …" */
static int parse_synthetic(const char *text, struct dynamic_event *event, struct fault *why)
{
	static const char prefix[] = DYNAMIC_SYNTHETIC "/";
	const char *name = text;
	size_t n;

	if (strncmp(name, "s:", 2) == 0)
		name += 2;
	if (strncmp(name, prefix, strlen(prefix)) == 0)
		name += strlen(prefix);
	n = name_size(name);
	if (n == 0 || name[n] == '/' || !name[n])
		return invalid("SyntheticEvent", text,
			       "not a synthetic event, which is NAME TYPE FIELD[; TYPE FIELD …]",
			       why);
	event->name = strndup(name, n);
	event->system = strdup(DYNAMIC_SYNTHETIC);
	if (!event->name || !event->system)
		return -ENOMEM;
	event->definition = strf("s:%s", name);
	if (!event->definition)
		return -ENOMEM;
	return 0;
}

static int parse_probes(struct dynamic *dynamic, const char *key, char *const *probes,
			enum event_source source, unsigned *number, struct fault *why)
{
	STRV_FOREACH (p, probes) {
		struct dynamic_event *event = &dynamic->events[dynamic->n_events++];
		int r = parse_probe(key, *p, dynamic->group, ++*number, event, why);

		if (r < 0)
			return r;
		event->source = source;
	}
	return 0;
}

char *dynamic_group(const char *instance)
{
	char *group = strdup(instance);

	for (char *c = group; c && *c; c++)
		if (!isalnum((unsigned char)*c))
			*c = '_';
	return group;
}

static bool has_synthetic(const struct tracedir *top)
{
	return tracedir_exists(top, "synthetic_events");
}

int dynamic_has_latencies(struct fault *why)
{
	_cleanup_(tracedir_done) struct tracedir top = {.fd = -EBADF};
	const char *path = tracefs_tracing_dir();
	int r = path ? tracedir_open(&top, path) : -ENOENT;

	if (r < 0)
		return fault_errno(why, r, "cannot open tracefs");
	if (!has_synthetic(&top))
		return fault_set(why, -EOPNOTSUPP,
				 "this kernel has no synthetic events (CONFIG_SYNTH_EVENTS), which "
				 "way=kernel needs; way=user needs none");
	if (!tracedir_exists(&top, "events/sched/sched_switch/hist"))
		return fault_set(
			why, -EOPNOTSUPP,
			"this kernel has no histogram triggers (CONFIG_HIST_TRIGGERS), which "
			"way=kernel needs; way=user needs none");
	return 0;
}

int dynamic_new(const struct trace_config *config, const char *group, struct dynamic **ret,
		struct fault *why)
{
	_cleanup_(dynamic_freep) struct dynamic *dynamic = calloc(1, sizeof(*dynamic));
	unsigned number = 0;
	size_t n = strv_length(config->synthetic_events) + strv_length(config->kprobes) +
		   strv_length(config->uprobes) + strv_length(config->usdts);
	int r;

	if (!dynamic)
		return -ENOMEM;
	dynamic->group = strdup(group);
	dynamic->events = calloc(MAX(n, 1U), sizeof(*dynamic->events));
	if (!dynamic->group || !dynamic->events)
		return -ENOMEM;
	for (char **s = config->synthetic_events; s && *s; s++) {
		struct dynamic_event *event = &dynamic->events[dynamic->n_events++];

		r = **s == DYNAMIC_OWN ? parse_own(*s, group, event)
				       : parse_synthetic(*s, event, why);
		if (r < 0)
			return r;
	}
	r = parse_probes(dynamic, "Kprobe", config->kprobes, EVENT_AS_IT_IS, &number, why);
	if (r >= 0)
		r = parse_probes(dynamic, "Uprobe", config->uprobes, EVENT_UPROBE, &number, why);
	if (r >= 0)
		r = parse_probes(dynamic, "Usdt", config->usdts, EVENT_USDT, &number, why);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(dynamic);
	return 0;
}

int dynamic_parse_line(const char *line, char **ret_group, char **ret_name)
{
	size_t type = strcspn(line, ": \t\n"), group, name;
	char *g, *n;

	if (type == 0 || line[type] != ':')
		return -EBADMSG;
	line += type + 1;
	group = strcspn(line, "/ \t\n");
	if (group == 0 || line[group] != '/')
		return -EBADMSG;
	name = strcspn(line + group + 1, " \t\n");
	if (name == 0)
		return -EBADMSG;
	g = strndup(line, group);
	n = strndup(line + group + 1, name);
	if (!g || !n) {
		free(g);
		free(n);
		return -ENOMEM;
	}
	*ret_group = g;
	*ret_name = n;
	return 0;
}

/* O_APPEND as the documentation has it: O_TRUNC would remove everybody's events. */
static int write_line(const struct tracedir *top, const char *line, struct fault *why,
		      const char *verb, const char *system, const char *name)
{
	return tracedir_write(top, FILE_NAME, line, O_APPEND, why, "cannot %s %s:%s (%s)", verb,
			      system, name, line);
}

static int remove_one(const struct tracedir *top, const char *system, const char *name,
		      struct fault *why)
{
	_cleanup_free_ char *line = NULL;

	line = strf("-:%s/%s", system, name);
	if (!line)
		return -ENOMEM;
	return write_line(top, line, why, "remove the event", system, name);
}

/* GROUP_latN */
static bool is_own(const struct dynamic *dynamic, const char *name)
{
	size_t n = strlen(dynamic->group), m = strlen("_" DYNAMIC_OWN_NAME);

	return strncmp(name, dynamic->group, n) == 0 &&
	       strncmp(name + n, "_" DYNAMIC_OWN_NAME, m) == 0 &&
	       isdigit((unsigned char)name[n + m]) &&
	       name[n + m + strspn(name + n + m, "0123456789")] == '\0';
}

static bool is_ours(const struct dynamic *dynamic, const char *system, const char *name)
{
	return strcmp(system, DYNAMIC_SYNTHETIC) == 0 ? is_own(dynamic, name)
						      : strcmp(system, dynamic->group) == 0;
}

/* Every event of our group that the kernel lists, ours or left over, and such synthetic ones */
static int remove_group(const struct dynamic *dynamic, const struct tracedir *top,
			struct fault *why)
{
	_cleanup_free_ char *text = NULL;
	struct fault step = {0};
	char *save, *line;
	int r, first = 0;

	if (!tracedir_exists(top, FILE_NAME))
		return 0;
	r = tracedir_read(top, FILE_NAME, &text, why);
	if (r < 0)
		return r;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		_cleanup_free_ char *group = NULL, *name = NULL;

		if (dynamic_parse_line(line, &group, &name) < 0 || !is_ours(dynamic, group, name))
			continue;
		/* A name may have several probes: one line each, all gone with the first. */
		first = first_fault(first, remove_one(top, group, name, &step), &step, why);
	}
	return first;
}

static int take_build_id(struct dynamic *dynamic, const char *build_id)
{
	return !build_id || strv_contains(dynamic->build_ids, build_id)
		       ? 0
		       : strv_append(&dynamic->build_ids, build_id);
}

/* A probe of a program: where it is now, and which build of the program that is */
static int make_uprobe(struct dynamic *dynamic, struct dynamic_event *event,
		       const struct tracedir *top, struct fault *why)
{
	_cleanup_(probe_lines_done) struct probe_lines lines = {};
	struct fault reason = {};
	int r = probe_place_resolve(event->source == EVENT_USDT ? PROBE_USDT : PROBE_UPROBE,
				    event->definition, &lines, &reason);

	if (r < 0)
		return fault_set(why, r, "%s: %s", event->shown, reason.text);
	STRV_FOREACH (l, lines.lines) {
		r = write_line(top, *l, why, "make the event", event->system, event->name);
		if (r < 0)
			return r;
		event->made = true;
	}
	r = take_build_id(dynamic, lines.build_id);
	return r < 0 ? fault_errno(why, r, "cannot make the event %s", event->name) : 0;
}

/* After a refusal: functions of the kernel that may have been meant by one that it does not have */
static void suggest_function(const struct dynamic_event *event, const struct tracedir *top,
			     struct fault *why)
{
	_cleanup_free_ char *text = NULL, *wanted = NULL;
	const char *place = strchr(event->definition, ' ');
	char *save = NULL, suggestion[NEAR_TEXT_SIZE];
	struct near_list near = {};
	struct fault refusal = *why;

	wanted = place ? strndup(place + 1, strcspn(place + 1, " +")) : NULL;
	/* "MODULE:FUNCTION" is the kernel's to judge, and so is an address */
	if (!wanted || strchr(wanted, ':') || isdigit((unsigned char)*wanted) ||
	    tracedir_read(top, "available_filter_functions", &text, NULL) < 0)
		return;
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		l[strcspn(l, " \t")] = '\0'; /* "FUNCTION [MODULE]" */
		if (strcmp(l, wanted) == 0)
			return;
		near_add(&near, wanted, l);
	}
	if (near.n > 0)
		(void)fault_set(why, refusal.error, "%s: no function '%s' in the kernel%s (%s)",
				event->shown, wanted, near_text(&near, suggestion), refusal.text);
}

static int make(struct dynamic *dynamic, struct dynamic_event *event, const struct tracedir *top,
		struct fault *why)
{
	int r;

	if (event->optional && !has_synthetic(top))
		return 0;
	if (event->source != EVENT_AS_IT_IS)
		return make_uprobe(dynamic, event, top, why);
	/* it would take the line for one of another kind, and say nothing of use */
	if (strcmp(event->system, DYNAMIC_SYNTHETIC) == 0 && !has_synthetic(top))
		return fault_set(why, -EOPNOTSUPP,
				 "SyntheticEvent=%s: this kernel has no synthetic events "
				 "(CONFIG_SYNTH_EVENTS)",
				 event->name);
	r = write_line(top, event->definition, why, "make the event", event->system, event->name);
	if (r < 0 && event->shown && why)
		suggest_function(event, top, why);
	if (r >= 0)
		event->made = true;
	return r;
}

int dynamic_create(struct dynamic *dynamic, const struct tracedir *top, struct fault *why)
{
	int r;

	r = remove_group(dynamic, top, why);
	for (size_t i = 0; r >= 0 && i < dynamic->n_events; i++)
		r = make(dynamic, &dynamic->events[i], top, why);
	if (r < 0)
		(void)dynamic_remove(dynamic, top, NULL);
	return r;
}

int dynamic_set_build_ids(struct dynamic *dynamic, char *const *build_ids)
{
	strv_free(TAKE_PTR(dynamic->build_ids));
	return strv_copy(build_ids, &dynamic->build_ids);
}

void dynamic_adopt(struct dynamic *dynamic)
{
	for (size_t i = 0; i < dynamic->n_events; i++)
		dynamic->events[i].made = true;
}

int dynamic_remove(struct dynamic *dynamic, const struct tracedir *top, struct fault *why)
{
	struct fault step = {0};
	int first;

	first = remove_group(dynamic, top, why);
	for (size_t i = dynamic->n_events; i-- > 0;) {
		struct dynamic_event *event = &dynamic->events[i];
		bool made = event->made;

		event->made = false;
		if (!made || event->optional || /* removed already, with the group */
		    strcmp(event->system, DYNAMIC_SYNTHETIC) != 0)
			continue;
		first = first_fault(first, remove_one(top, event->system, event->name, &step),
				    &step, why);
	}
	return first;
}

int dynamic_check(struct dynamic *dynamic, const struct tracedir *top, struct changes *changes,
		  struct fault *why)
{
	for (size_t i = 0; i < dynamic->n_events; i++) {
		struct dynamic_event *event = &dynamic->events[i];
		_cleanup_free_ char *path = NULL;
		int r;

		path = strf("events/%s/%s", event->system, event->name);
		if (!path)
			return -ENOMEM;
		if (tracedir_exists(top, path) || (event->optional && !has_synthetic(top)))
			continue;
		r = make(dynamic, event, top, why);
		if (r < 0)
			return r;
		changes_add(changes, "the event %s:%s had been removed", event->system,
			    event->name);
	}
	return 0;
}
