/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basic/near.h"
#include "basic/parse.h"
#include "basic/strv.h"
#include "config/config-trace.h"
#include "config/latency-kernel.h"
#include "config/latency.h"
#include "config/post.h"

#define CALLS_MAX 1024 /* numbers of system calls are smaller */
#define MINOR_MAX 0xfffffU
#define MAJOR_MAX 0xfffU

#define BIT(kind) (1U << (kind))
#define OF_ALL	  (BIT(_LATENCY_MAX) - 1)
#define OF_TASKS                                                                                  \
	(BIT(LATENCY_RUNQUEUE) | BIT(LATENCY_BLOCKED) | BIT(LATENCY_IRQ) | BIT(LATENCY_SOFTIRQ) | \
	 BIT(LATENCY_SYSCALL))

static const char *const kinds[LATENCY_PAIR] = {
	[LATENCY_RUNQUEUE] = "runqueue", [LATENCY_BLOCKED] = "blocked",
	[LATENCY_IRQ] = "irq",		 [LATENCY_SOFTIRQ] = "softirq",
	[LATENCY_BLOCK] = "block",	 [LATENCY_SYSCALL] = "syscall",
};

void latency_done(struct latency_config *latency)
{
	free(latency->task);
	free(latency->unit);
	free(latency->call);
	free(latency->events[0]);
	free(latency->events[1]);
	strv_free(latency->keys);
	*latency = (struct latency_config){};
}

/* --- values; @value is what comes behind "=" */

static int take_text(char **field, const char *name, const char *value, struct fault *why)
{
	if (*field)
		return value_refuse(why, "%s is there twice", name);
	if (!*value)
		return value_refuse(why, "a value is missing after %s", name);
	return strv_set(field, value);
}

static int take_task(struct latency_config *l, const char *value, struct fault *why)
{
	return take_text(&l->task, "task=", value, why);
}

static int take_unit(struct latency_config *l, const char *value, struct fault *why)
{
	int r = check_unit_glob(value, NULL, why);

	return r < 0 ? r : take_text(&l->unit, "unit=", value, why);
}

static int take_device(struct latency_config *l, const char *value, struct fault *why)
{
	_cleanup_free_ char *major = strndup(value, strcspn(value, ":"));
	const char *colon = strchr(value, ':');
	unsigned a, b;

	if (!major)
		return -ENOMEM;
	if (l->has_device)
		return value_refuse(why, "dev= is there twice");
	if (!colon || parse_unsigned(major, &a) < 0 || parse_unsigned(colon + 1, &b) < 0 ||
	    a > MAJOR_MAX || b > MINOR_MAX)
		return value_refuse(why,
				    "dev=%s: must be MAJOR:MINOR, as in dev=8:0; lsblk(8) "
				    "shows them",
				    value);
	l->has_device = true;
	l->device = a << 20 | b;
	return 0;
}

static bool is_field(const char *text)
{
	for (const char *p = text; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '_')
			return false;
	return *text && !isdigit((unsigned char)*text);
}

static int take_keys(struct latency_config *l, const char *value, struct fault *why)
{
	_cleanup_free_ char *copy = strdup(value);
	char *rest = copy;

	if (!copy)
		return -ENOMEM;
	if (l->keys)
		return value_refuse(why,
				    "key= is there twice, give the fields as in key=dev,sector");
	for (char *name = strsep(&rest, ","); name; name = strsep(&rest, ",")) {
		if (!is_field(name))
			return value_refuse(why,
					    "key=%s: must be fields of both events, as in "
					    "key=dev,sector",
					    value);
		if (strv_append(&l->keys, name) < 0)
			return -ENOMEM;
	}
	if (strv_length(l->keys) > LATENCY_KEYS)
		return value_refuse(why, "key=%s: at most %u fields", value, LATENCY_KEYS);
	return 0;
}

static int take_way(struct latency_config *l, const char *value, struct fault *why)
{
	if (strcmp(value, "kernel") != 0 && strcmp(value, "user") != 0)
		return value_refuse(why, "way=%s: must be kernel or user", value);
	if (l->has_way)
		return value_refuse(why, "way= is there twice");
	l->has_way = true;
	l->in_kernel = *value == 'k';
	return 0;
}

static const struct {
	const char *name;
	unsigned kinds;
	int (*take)(struct latency_config *l, const char *value, struct fault *why);
	const char *where; /* for people: what has it */
} options[] = {
	{"task=", OF_TASKS, take_task, "runqueue, blocked, irq, softirq and syscall"},
	{"unit=", OF_TASKS, take_unit, "runqueue, blocked, irq, softirq and syscall"},
	{"dev=", BIT(LATENCY_BLOCK), take_device, "block"},
	{"key=", BIT(LATENCY_PAIR), take_keys, "two events"},
	{"way=", OF_ALL, take_way, "all"},
};

static int take_option(struct latency_config *l, const char *word, struct fault *why)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		size_t n = strlen(options[i].name);

		if (strncmp(word, options[i].name, n) != 0)
			continue;
		if (!(options[i].kinds & BIT(l->kind)))
			return value_refuse(why, "%s is for %s only", options[i].name,
					    options[i].where);
		return options[i].take(l, word + n, why);
	}
	return value_refuse(why,
			    "unknown \"%s\", there are task=, unit=, dev=, key= and way=", word);
}

static int take_time(struct latency_config *l, const char *word, struct fault *why)
{
	uint64_t usec;

	if (parse_time(word, &usec) < 0 || usec > UINT64_MAX / NSEC_PER_USEC)
		return value_refuse(why, "\"%s\" is not a time span, as in 20ms", word);
	if (l->nsec > 0)
		return value_refuse(why, "two time spans, the second one is \"%s\"", word);
	if (usec == 0)
		return value_refuse(why, "the time must be at least 1us");
	l->nsec = usec * NSEC_PER_USEC;
	return 0;
}

/* --- what it is about */

static int take_call(struct latency_config *l, const char *name, struct fault *why)
{
	struct near_list near = {};
	char text[NEAR_TEXT_SIZE];

	if (!name || strchr(name, '='))
		return value_refuse(why, "a system call is missing, as in syscall fsync 1s");
	if (seccomp_syscall_resolve_name(name) != __NR_SCMP_ERROR)
		return strv_set(&l->call, name);
	for (int i = 0; i < CALLS_MAX; i++) {
		_cleanup_free_ char *known = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);

		if (known)
			near_add(&near, name, known);
	}
	return value_refuse(why, "no system call \"%s\"%s", name, near_text(&near, text));
}

static int take_event(char **field, const char *word, struct fault *why)
{
	_cleanup_(event_done) struct trace_event event = {};
	int r = word ? event_parse(word, &event, why) : 0;

	if (r < 0)
		return r;
	if (!word || !event.name || event.optional)
		return value_refuse(why,
				    "must be two events and a time, as in block:block_rq_issue "
				    "block:block_rq_complete key=dev,sector 500ms");
	return strv_set(field, word);
}

static int take_kind(struct latency_config *l, const char *word, struct fault *why)
{
	struct near_list near = {};
	char text[NEAR_TEXT_SIZE];

	l->kind = LATENCY_PAIR;
	for (size_t i = 0; word && i < ARRAY_SIZE(kinds); i++) {
		near_add(&near, word, kinds[i]);
		if (strcmp(word, kinds[i]) == 0)
			l->kind = (enum latency_kind)i;
	}
	if (l->kind != LATENCY_PAIR)
		return 0;
	if (word && strchr(word, ':'))
		return take_event(&l->events[0], word, why);
	return value_refuse(
		why,
		"must begin with runqueue, blocked, irq, softirq, block, syscall, or an "
		"event SYSTEM:NAME%s",
		near_text(&near, text));
}

static int parse_words(char *text, bool needs_time, struct latency_config *l, struct fault *why)
{
	char *state = NULL;
	int r = take_kind(l, strtok_r(text, " \t", &state), why);

	if (r >= 0 && l->kind == LATENCY_SYSCALL)
		r = take_call(l, strtok_r(NULL, " \t", &state), why);
	if (r >= 0 && l->kind == LATENCY_PAIR)
		r = take_event(&l->events[1], strtok_r(NULL, " \t", &state), why);
	for (char *word; r >= 0 && (word = strtok_r(NULL, " \t", &state));)
		r = strchr(word, '=') ? take_option(l, word, why) : take_time(l, word, why);
	if (r < 0)
		return r;
	if (l->kind == LATENCY_PAIR && !l->keys)
		return value_refuse(why,
				    "key=FIELD is missing: the field by which two events belong "
				    "together");
	if (l->in_kernel) {
		r = latency_kernel_check(l, why);
		if (r < 0)
			return r;
	}
	if (needs_time && l->nsec == 0)
		return value_refuse(why, "a time is missing, as in 20ms");
	return 0;
}

int latency_parse(const char *text, bool needs_time, struct latency_config *ret, struct fault *why)
{
	_cleanup_(latency_done) struct latency_config latency = {};
	_cleanup_free_ char *copy = NULL;
	uint64_t post_usec;
	int r = 0;

	if (needs_time)
		r = post_split(text, &copy, &post_usec, why);
	else if (!(copy = strdup(text)))
		r = -ENOMEM;
	if (r >= 0)
		r = parse_words(copy, needs_time, &latency, why);
	if (r < 0)
		return r;
	*ret = latency;
	latency = (struct latency_config){};
	return 0;
}

/* --- and back */

static void put_time(FILE *f, uint64_t nsec)
{
	const uint64_t usec = nsec / NSEC_PER_USEC;

	if (usec % USEC_PER_SEC == 0)
		(void)fprintf(f, " %" PRIu64 "s", usec / USEC_PER_SEC);
	else if (usec % 1000 == 0)
		(void)fprintf(f, " %" PRIu64 "ms", usec / 1000);
	else
		(void)fprintf(f, " %" PRIu64 "us", usec);
}

char *latency_format(const struct latency_config *latency, uint64_t nsec)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	if (latency->kind == LATENCY_PAIR)
		(void)fprintf(f, "%s %s", latency->events[0], latency->events[1]);
	else
		(void)fputs(kinds[latency->kind], f);
	if (latency->call)
		(void)fprintf(f, " %s", latency->call);
	if (nsec > 0)
		put_time(f, nsec);
	if (latency->task)
		(void)fprintf(f, " task=%s", latency->task);
	if (latency->unit)
		(void)fprintf(f, " unit=%s", latency->unit);
	if (latency->has_device)
		(void)fprintf(f, " dev=%u:%u", latency->device >> 20, latency->device & MINOR_MAX);
	for (size_t i = 0; latency->keys && latency->keys[i]; i++)
		(void)fprintf(f, "%s%s", i == 0 ? " key=" : ",", latency->keys[i]);
	if (latency->has_way)
		(void)fprintf(f, " way=%s", latency->in_kernel ? "kernel" : "user");
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

/* --- what it takes */

static const struct {
	const char *name;
	unsigned kinds;
} needs[] = {
	{"sched:sched_switch", BIT(LATENCY_RUNQUEUE) | BIT(LATENCY_BLOCKED)},
	{"sched:sched_waking", BIT(LATENCY_RUNQUEUE) | BIT(LATENCY_BLOCKED)},
	{"sched:sched_wakeup_new", BIT(LATENCY_RUNQUEUE)},
	{"irq:irq_handler_entry", BIT(LATENCY_IRQ)},
	{"irq:irq_handler_exit", BIT(LATENCY_IRQ)},
	{"irq:softirq_entry", BIT(LATENCY_SOFTIRQ)},
	{"irq:softirq_exit", BIT(LATENCY_SOFTIRQ)},
	{"block:block_rq_issue", BIT(LATENCY_BLOCK)},
	{"block:block_rq_complete", BIT(LATENCY_BLOCK)},
	{"raw_syscalls:sys_enter", BIT(LATENCY_SYSCALL)},
	{"raw_syscalls:sys_exit", BIT(LATENCY_SYSCALL)},
};

/* What has its end filtered away would seem to go on for ever */
static int check_filter(const struct trace_event *there, const char *name, struct fault *why)
{
	return there->filter ? value_refuse(why,
					    "needs every %s, Event= has it with a filter: leave "
					    "that out",
					    name)
			     : 0;
}

/* Another system call, of those that are traced for conditions alone */
static int widen(struct trace_event *event, const char *filter)
{
	_cleanup_free_ char *both = NULL;

	if (!event->filter || !filter || !*filter || strstr(event->filter, filter))
		return 0;
	both = strf("%s || %s", event->filter, filter);
	return both ? strv_set(&event->filter, both) : -ENOMEM;
}

/* @filter: to be added with; of one event of a pair NULL, and any will do */
static int add_event(const char *name, const char *filter, struct trace_config *trace,
		     char ***added, struct fault *why)
{
	_cleanup_(event_done) struct trace_event event = {};
	struct trace_event *there;
	int r = event_parse(name, &event, why);

	if (r < 0)
		return r;
	there = event_find(trace, event.system, event.name);
	if (there && strv_contains(*added, name))
		return widen(there, filter);
	if (!there)
		there = event_find(trace, event.system, NULL);
	if (there)
		return filter ? check_filter(there, name, why) : 0;
	if (filter && *filter && strv_set(&event.filter, filter) < 0)
		return -ENOMEM;
	r = event_put(trace, &event);
	return r < 0 ? r : strv_append(added, name);
}

int latency_add_events(const struct latency_config *latency, struct trace_config *trace,
		       char ***added, struct fault *why)
{
	const bool names = latency->task || latency->unit;
	char filter[32] = "";
	int r = 0;

	if (latency->kind == LATENCY_SYSCALL)
		(void)snprintf(filter, sizeof(filter), "id == %d",
			       seccomp_syscall_resolve_name(latency->call));
	for (unsigned i = 0; i < 2 && latency->kind == LATENCY_PAIR && r >= 0; i++)
		r = add_event(latency->events[i], NULL, trace, added, why);
	for (size_t i = 0; i < ARRAY_SIZE(needs) && r >= 0; i++) {
		/* the names of tasks come from switches */
		if (needs[i].kinds & BIT(latency->kind) || (i == 0 && names))
			r = add_event(needs[i].name, i > 0 ? filter : "", trace, added, why);
	}
	return r;
}
