/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/parse.h"
#include "basic/strv.h"
#include "config/config-keys.h"
#include "config/config-trace.h"

#define PID_LIMIT 4194304 /* PID_MAX_LIMIT of 64-bit kernels */

static struct trace_config *trace_of(const struct config_key *key, const void *object)
{
	return value_field(key, object);
}

/* --- events */

/* Characters of names in events/: modules' systems have '-', user events '.' */
static bool is_event_word(const char *text)
{
	return *text && *text != '.' && *text != '-' &&
	       !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_.-")];
}

/* "SYS:NAME" or "SYS", cut in place */
static int split_event(char *text, char **ret_system, char **ret_name, struct fault *why)
{
	char *colon = strchr(text, ':');

	if (colon)
		*colon = '\0';
	if (strpbrk(text, "*?[") || (colon && strpbrk(colon + 1, "*?[")))
		return value_refuse(why, "no wildcards here; SYSTEM alone means all its events");
	if (!is_event_word(text))
		return value_refuse(why, "not an event, SYSTEM:NAME or SYSTEM");
	if (colon && !is_event_word(colon + 1))
		return value_refuse(why, "not an event name after %s:", text);
	*ret_system = text;
	*ret_name = colon ? colon + 1 : NULL;
	return 0;
}

static int set_filter(struct trace_event *event, const char *rest, struct fault *why)
{
	if (strncmp(rest, "if", 2) != 0 || (rest[2] && rest[2] != ' '))
		return value_refuse(why, "only \" if FILTER\" can follow the event");
	if (!rest[2])
		return value_refuse(why, "a filter is missing after \"if\"");
	if (!event->name)
		return value_refuse(why, "a filter needs one event, SYSTEM:NAME if FILTER");
	if (strcmp(rest + 3, "0") == 0)
		return value_refuse(why, "the filter 0 means no filter, leave it out");
	if (strlen(rest + 3) >= (size_t)sysconf(_SC_PAGESIZE))
		return value_refuse(why, "the filter is longer than the kernel takes");
	event->filter = strdup(rest + 3);
	return event->filter ? 0 : -ENOMEM;
}

int event_parse(const char *text, struct trace_event *ret, struct fault *why)
{
	_cleanup_free_ char *line = NULL;
	char *p, *rest, *system, *name;
	int r;

	r = value_squeeze(text, &line);
	if (r < 0)
		return r;
	p = line;
	ret->optional = *p == '-';
	if (ret->optional)
		p += 1 + (p[1] == ' ');
	rest = strchr(p, ' ');
	if (rest)
		*rest++ = '\0';
	r = split_event(p, &system, &name, why);
	if (r < 0)
		return r;
	ret->system = strdup(system);
	ret->name = name ? strdup(name) : NULL;
	if (!ret->system || (name && !ret->name))
		return -ENOMEM;
	return rest ? set_filter(ret, rest, why) : 0;
}

void event_done(struct trace_event *event)
{
	free(event->system);
	free(event->name);
	free(event->filter);
}

struct trace_event *event_find(const struct trace_config *trace, const char *system,
			       const char *name)
{
	for (size_t i = 0; i < trace->n_events; i++)
		if (strcmp(trace->events[i].system, system) == 0 &&
		    text_equal(trace->events[i].name, name))
			return &trace->events[i];
	return NULL;
}

int event_put(struct trace_config *trace, struct trace_event *event)
{
	struct trace_event *same = event_find(trace, event->system, event->name), *more;

	if (!same) {
		more = reallocarray(trace->events, trace->n_events + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		trace->events = more;
		same = &more[trace->n_events++];
		*same = (struct trace_event){};
	}
	SWAP(*same, *event);
	return 0;
}

static int events_parse(const struct config_key *key, void *object, const char *text,
			struct fault *why)
{
	struct trace_config *trace = trace_of(key, object);
	_cleanup_(event_done) struct trace_event event = {};
	int r = event_parse(text, &event, why);

	return r < 0 ? r : event_put(trace, &event);
}

static void events_clear(const struct config_key *key, void *object)
{
	struct trace_config *trace = trace_of(key, object);

	for (size_t i = 0; i < trace->n_events; i++)
		event_done(&trace->events[i]);
	free(trace->events);
	trace->events = NULL;
	trace->n_events = 0;
}

static int events_copy(const struct config_key *key, const void *from, void *to)
{
	const struct trace_config *a = trace_of(key, from);
	struct trace_config *b = trace_of(key, to);

	if (a->n_events == 0)
		return 0;
	b->events = calloc(a->n_events, sizeof(*b->events));
	if (!b->events)
		return -ENOMEM;
	b->n_events = a->n_events;
	for (size_t i = 0; i < a->n_events; i++) {
		b->events[i].optional = a->events[i].optional;
		if (strv_set(&b->events[i].system, a->events[i].system) < 0 ||
		    strv_set(&b->events[i].name, a->events[i].name) < 0 ||
		    strv_set(&b->events[i].filter, a->events[i].filter) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void events_print(const struct config_key *key, const void *object, FILE *f)
{
	const struct trace_config *trace = trace_of(key, object);

	for (size_t i = 0; i < trace->n_events; i++) {
		const struct trace_event *e = &trace->events[i];

		(void)fprintf(f, "%s=%s%s%s%s%s%s\n", key->name, e->optional ? "-" : "", e->system,
			      e->name ? ":" : "", e->name ? e->name : "", e->filter ? " if " : "",
			      e->filter ? e->filter : "");
	}
}

const struct value_kind value_events = {
	.is_list = true,
	.parse = events_parse,
	.clear = events_clear,
	.copy = events_copy,
	.print = events_print,
};

/* --- triggers */

void trigger_done(struct trace_trigger *trigger)
{
	free(trigger->system);
	free(trigger->name);
	free(trigger->trigger);
}

static int trigger_parse(char *line, struct trace_trigger *ret, struct fault *why)
{
	char *system, *name, *rest;
	int r;

	ret->optional = *line == '-';
	if (ret->optional)
		line += 1 + (line[1] == ' ');
	rest = strchr(line, ' ');
	if (rest)
		*rest++ = '\0';
	r = split_event(line, &system, &name, why);
	if (r < 0)
		return r;
	if (!name)
		return value_refuse(why, "a trigger needs one event, SYSTEM:NAME TRIGGER");
	if (!rest)
		return value_refuse(why, "a trigger is missing after the event");
	if (*rest == '!')
		return value_refuse(why, "\"!\" would remove a trigger");
	if (strlen(rest) >= (size_t)sysconf(_SC_PAGESIZE))
		return value_refuse(why, "the trigger is longer than the kernel takes");
	ret->system = strdup(system);
	ret->name = strdup(name);
	ret->trigger = strdup(rest);
	return ret->system && ret->name && ret->trigger ? 0 : -ENOMEM;
}

static int triggers_parse(const struct config_key *key, void *object, const char *text,
			  struct fault *why)
{
	struct trace_config *trace = trace_of(key, object);
	_cleanup_(trigger_done) struct trace_trigger trigger = {};
	_cleanup_free_ char *line = NULL;
	struct trace_trigger *more;
	int r;

	r = value_squeeze(text, &line);
	if (r >= 0)
		r = trigger_parse(line, &trigger, why);
	if (r < 0)
		return r;
	for (size_t i = 0; i < trace->n_triggers; i++) {
		struct trace_trigger *t = &trace->triggers[i];

		if (strcmp(t->system, trigger.system) == 0 && strcmp(t->name, trigger.name) == 0 &&
		    strcmp(t->trigger, trigger.trigger) == 0) {
			t->optional = trigger.optional;
			return 0; /* the kernel takes it once */
		}
	}
	more = reallocarray(trace->triggers, trace->n_triggers + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	more[trace->n_triggers++] = trigger;
	trace->triggers = more;
	trigger = (struct trace_trigger){};
	return 0;
}

static void triggers_clear(const struct config_key *key, void *object)
{
	struct trace_config *trace = trace_of(key, object);

	for (size_t i = 0; i < trace->n_triggers; i++)
		trigger_done(&trace->triggers[i]);
	free(trace->triggers);
	trace->triggers = NULL;
	trace->n_triggers = 0;
}

static int triggers_copy(const struct config_key *key, const void *from, void *to)
{
	const struct trace_config *a = trace_of(key, from);
	struct trace_config *b = trace_of(key, to);

	if (a->n_triggers == 0)
		return 0;
	b->triggers = calloc(a->n_triggers, sizeof(*b->triggers));
	if (!b->triggers)
		return -ENOMEM;
	b->n_triggers = a->n_triggers;
	for (size_t i = 0; i < a->n_triggers; i++) {
		b->triggers[i].optional = a->triggers[i].optional;
		if (strv_set(&b->triggers[i].system, a->triggers[i].system) < 0 ||
		    strv_set(&b->triggers[i].name, a->triggers[i].name) < 0 ||
		    strv_set(&b->triggers[i].trigger, a->triggers[i].trigger) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void triggers_print(const struct config_key *key, const void *object, FILE *f)
{
	const struct trace_config *trace = trace_of(key, object);

	for (size_t i = 0; i < trace->n_triggers; i++) {
		const struct trace_trigger *t = &trace->triggers[i];

		(void)fprintf(f, "%s=%s%s:%s %s\n", key->name, t->optional ? "-" : "", t->system,
			      t->name, t->trigger);
	}
}

const struct value_kind value_triggers = {
	.is_list = true,
	.parse = triggers_parse,
	.clear = triggers_clear,
	.copy = triggers_copy,
	.print = triggers_print,
};

/* --- pids */

static int add_pid(struct trace_config *trace, uint32_t pid)
{
	size_t at = 0;
	uint32_t *more;

	while (at < trace->n_pids && trace->pids[at] < pid)
		at++;
	if (at < trace->n_pids && trace->pids[at] == pid)
		return 0;
	more = reallocarray(trace->pids, trace->n_pids + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memmove(more + at + 1, more + at, (trace->n_pids - at) * sizeof(*more));
	more[at] = pid;
	trace->pids = more;
	trace->n_pids++;
	return 0;
}

static int pids_parse(const struct config_key *key, void *object, const char *text,
		      struct fault *why)
{
	struct trace_config *trace = trace_of(key, object);
	_cleanup_free_ char *copy = strdup(text);
	char *state = NULL;
	int r;

	if (!copy)
		return -ENOMEM;
	for (char *w = strtok_r(copy, " \t", &state); w; w = strtok_r(NULL, " \t", &state)) {
		unsigned pid;

		r = parse_unsigned(w, &pid);
		if (r == -EINVAL)
			return value_refuse(why, "not a process number");
		if (r < 0 || pid < 1 || pid >= PID_LIMIT)
			return value_refuse(why, "out of range, must be 1 to %d", PID_LIMIT - 1);
		r = add_pid(trace, pid);
		if (r < 0)
			return r;
	}
	return 0;
}

static void pids_clear(const struct config_key *key, void *object)
{
	struct trace_config *trace = trace_of(key, object);

	free(trace->pids);
	trace->pids = NULL;
	trace->n_pids = 0;
}

static int pids_copy(const struct config_key *key, const void *from, void *to)
{
	const struct trace_config *a = trace_of(key, from);

	for (size_t i = 0; i < a->n_pids; i++)
		if (add_pid(trace_of(key, to), a->pids[i]) < 0)
			return -ENOMEM;
	return 0;
}

static void pids_print(const struct config_key *key, const void *object, FILE *f)
{
	const struct trace_config *trace = trace_of(key, object);

	for (size_t i = 0; i < trace->n_pids; i++)
		(void)fprintf(f, "%s=%" PRIu32 "\n", key->name, trace->pids[i]);
}

const struct value_kind value_pids = {
	.is_list = true,
	.parse = pids_parse,
	.clear = pids_clear,
	.copy = pids_copy,
	.print = pids_print,
};
