/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks of configuration strings in the kernel's, systemd's and the password file's syntax.
 */
#include <errno.h>
#include <string.h>

#include "basic/parse.h"
#include "basic/strv.h"
#include "config/config-trace.h"
#include "config/config.h"
#include "config/journal-match.h"
#include "config/latency.h"
#include "config/post.h"
#include "config/pressure.h"
#include "config/probe-args.h"

#define DIGITS	       "0123456789"
#define LETTERS	       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define EVENT_NAME_MAX 63   /* MAX_EVENT_NAME_LEN of the kernel, less its NUL */
#define PROBE_MAX      4095 /* WRITE_BUFSIZE of kernel/trace/trace.c, likewise */

/* An identifier as in C, of @size bytes */
static bool is_name(const char *text, size_t size)
{
	return size > 0 && !strchr(DIGITS, *text) && strspn(text, LETTERS DIGITS "_") >= size;
}

/* --- probes: "p:NAME PLACE [ARGS]", "r[MAXACTIVE]:NAME PLACE [ARGS]" */

static const char *probe_name(const char *text, size_t *ret_size)
{
	const char *name = text + 1 + strspn(text + 1, DIGITS) + 1;

	*ret_size = strcspn(name, " ");
	return name;
}

/* All probes of a session share one group */
static bool name_taken(char *const *probes, const char *name, size_t size)
{
	STRV_FOREACH (p, probes) {
		_cleanup_free_ char *named = NULL;
		const char *other;
		size_t n;

		if (probe_args_name(*p, &named) < 0)
			continue;
		other = probe_name(named, &n);
		if (n == size && memcmp(other, name, n) == 0)
			return true;
	}
	return false;
}

static int check_kernel_line(const char *text, struct fault *why)
{
	if (strlen(text) > PROBE_MAX)
		return value_refuse(why, "longer than the kernel takes (%d bytes)", PROBE_MAX);
	if (strchr(text, '#'))
		return value_refuse(why, "the kernel would ignore everything after '#'");
	return 0;
}

int check_probe(const char *text, const void *object, struct fault *why)
{
	const struct session_config *session = object;
	const char *name;
	size_t size;

	if (*text != 'p' && *text != 'r')
		return value_refuse(why, "must begin with p:NAME or r:NAME");
	if (*text == 'p' && text[1] && strchr(DIGITS, text[1]))
		return value_refuse(why, "MAXACTIVE is for return probes, r%c…:NAME", text[1]);
	if (text[1 + strspn(text + 1, DIGITS)] != ':')
		return value_refuse(why,
				    "must begin with p:NAME or r:NAME, the probe needs a name");
	name = probe_name(text, &size);
	if (memchr(name, '/', size) || memchr(name, '.', size))
		return value_refuse(why, "the group is always flyrec_ and the session's name, give "
					 "only the probe's name");
	if (!is_name(name, size))
		return value_refuse(why, "not a name for a probe after ':'");
	if (size > EVENT_NAME_MAX)
		return value_refuse(why, "a probe's name has at most %d characters",
				    EVENT_NAME_MAX);
	if (!name[size])
		return value_refuse(why, "where to put the probe is missing after its name");
	if (name_taken(session->trace.kprobes, name, size) ||
	    name_taken(session->uprobes, name, size) || name_taken(session->usdts, name, size))
		return value_refuse(why, "there is another probe of this name");
	return check_kernel_line(text, why);
}

/* As they are for the kernel, see config/probe-args.h */
static int check_arguments(const char *text, struct fault *why)
{
	_cleanup_free_ char *expanded = NULL;
	struct fault reason = {0};
	int r = probe_args_expand(text, NULL, &expanded, &reason);

	if (r == -EINVAL)
		return value_refuse(why, "%s", reason.text);
	return r < 0 ? r : check_kernel_line(expanded, why);
}

/* NAME, NAME@VERSION, with "." of what a compiler made of a function */
#define SYMBOL LETTERS DIGITS "_.$@"

static int check_symbol(const char *text, size_t size, bool is_return, struct fault *why)
{
	size_t n = strspn(text, SYMBOL), m;

	if (n >= size)
		return 0;
	if (text[n] != '+')
		return value_refuse(why,
				    "not the name of a function after ':'; of C++ and Rust, give "
				    "the name as nm(1) prints it");
	if (is_return)
		return value_refuse(why,
				    "a return probe is of a function as a whole, leave out '+'");
	m = strspn(text + n + 1, DIGITS "abcdefABCDEFx");
	if (m == 0 || n + 1 + m < size || !strchr(DIGITS, text[n + 1]))
		return value_refuse(why, "not an offset after '+', as in main+8 or main+0x8");
	return 0;
}

int check_uprobe(const char *text, const void *object, struct fault *why)
{
	const char *place, *where;
	size_t size;
	int r;

	if (*text == 'r' && text[1] && strchr(DIGITS, text[1]))
		return value_refuse(why, "MAXACTIVE is for kprobes");
	r = check_probe(text, object, why);
	if (r < 0)
		return r;
	place = probe_name(text, &size);
	place += size + 1;
	size = strcspn(place, " ");
	if (*place != '/')
		return value_refuse(why,
				    "the file must be an absolute path, as in /bin/bash:readline");
	where = memrchr(place, ':', size);
	if (!where || where + 1 == place + size)
		return value_refuse(why, "a function or an offset into the file is missing, as in "
					 "/bin/bash:readline or /bin/bash:0x4245");
	if (!strchr(DIGITS, where[1])) {
		r = check_symbol(where + 1, (size_t)(place + size - where - 1), *text == 'r', why);
		if (r < 0)
			return r;
	}
	return check_arguments(text, why);
}

/* "PATH:PROVIDER:PROBE [ARGS]", which may have "p:NAME " before it */
int check_usdt(const char *text, const void *object, struct fault *why)
{
	_cleanup_free_ char *named = NULL;
	const char *place, *probe;
	size_t size;
	int r;

	if (*text == 'r')
		return value_refuse(why, "a USDT probe does not return, it can only be p:NAME");
	if (*text != '/' && *text != 'p')
		return value_refuse(why, "the file must be an absolute path, as in "
					 "/usr/lib64/libstdc++.so.6:libstdcxx:throw");
	r = probe_args_name(text, &named);
	if (r == -EINVAL)
		return value_refuse(why, "must be PATH:PROVIDER:PROBE, as in "
					 "/usr/lib64/libstdc++.so.6:libstdcxx:throw");
	if (r >= 0)
		r = check_probe(named, object, why);
	if (r < 0)
		return r;
	place = probe_name(named, &size);
	place += size + 1;
	size = strcspn(place, " ");
	probe = memrchr(place, ':', size);
	if (*place != '/' || !probe || probe + 1 == place + size ||
	    !memchr(place, ':', (size_t)(probe - place)) || probe[-1] == ':')
		return value_refuse(why, "must be PATH:PROVIDER:PROBE, as in "
					 "/usr/lib64/libstdc++.so.6:libstdcxx:throw");
	return check_arguments(named, why);
}

/* --- synthetic events: "NAME TYPE FIELD[; TYPE FIELD]…" */

static int check_synthetic_field(const char *field, size_t size, struct fault *why)
{
	const char *name;

	while (size > 0 && *field == ' ')
		field++, size--;
	while (size > 0 && field[size - 1] == ' ')
		size--;
	if (size > 0 && field[size - 1] == ']') { /* an array: TYPE FIELD[SIZE] */
		const char *open = memrchr(field, '[', size);

		if (!open)
			return value_refuse(why, "']' without '['");
		size = (size_t)(open - field);
	}
	name = memrchr(field, ' ', size);
	if (!name || !is_name(name + 1, size - (size_t)(name + 1 - field)))
		return value_refuse(why, "not a field, must be TYPE FIELD; TYPE FIELD; …");
	return 0;
}

int check_synthetic(const char *text, const void *object, struct fault *why)
{
	size_t size = strcspn(text, " ;");
	const char *p = text + size;

	if (*text == '!')
		return value_refuse(why, "\"!\" would remove an event");
	if (!is_name(text, size))
		return value_refuse(why, "must begin with the event's name, as in NAME TYPE FIELD");
	if (size > EVENT_NAME_MAX)
		return value_refuse(why, "an event's name has at most %d characters",
				    EVENT_NAME_MAX);
	if (*p != ' ')
		return value_refuse(why, "a field is missing, as in NAME TYPE FIELD");
	for (;; p += size) {
		int r;

		p++;
		size = strcspn(p, ";");
		if (p[-1] == ';' && !p[size] && strspn(p, " ") == size)
			break; /* a ';' after the last field is fine */
		r = check_synthetic_field(p, size, why);
		if (r < 0)
			return r;
		if (!p[size])
			break;
	}
	return check_kernel_line(text, why);
}

/* --- words for the kernel */

int check_function(const char *text, const void *object, struct fault *why)
{
	return *text == '!' ? value_refuse(why, "\"!\" would remove a filter") : 0;
}

int check_power_of_two(const char *text, const void *object, struct fault *why)
{
	uint64_t n;

	if (parse_size(text, &n) < 0 || (n & (n - 1)) != 0)
		return value_refuse(why, "must be a power of two, as in 4K or 16K");
	return 0;
}

int check_tracer(const char *text, const void *object, struct fault *why)
{
	if (text[strspn(text, LETTERS DIGITS "_-")])
		return value_refuse(why, "not the name of a tracer");
	return 0;
}

int check_option(const char *text, const void *object, struct fault *why)
{
	if (text[strspn(text, LETTERS DIGITS "_-")])
		return value_refuse(why, "not a word of trace_options, as in stacktrace or "
					 "nooverwrite");
	return 0;
}

/* --- units */

#define UNIT_NAME_MAX	255
#define UNIT_CHARACTERS LETTERS DIGITS ":-_.\\@"

int check_unit(const char *text, const void *object, struct fault *why)
{
	/* those with a control group */
	static const char *const suffixes[] = {
		".service", ".scope", ".slice", ".socket", ".mount", ".swap",
	};
	size_t n = strlen(text), i = 0, m;

	if (n > UNIT_NAME_MAX || text[strspn(text, UNIT_CHARACTERS)])
		return value_refuse(why, "not the name of a unit");
	while (i < ARRAY_SIZE(suffixes) && !ends_with(text, suffixes[i]))
		i++;
	m = i < ARRAY_SIZE(suffixes) ? strlen(suffixes[i]) : n;
	if (n <= m)
		return value_refuse(why, "must be the full name of a unit with processes, as in "
					 "NAME.service, NAME.scope or NAME.slice");
	if (*text == '@' || text[n - m - 1] == '@')
		return value_refuse(why, "a template is no unit, give NAME@INSTANCE%s",
				    suffixes[i]);
	return 0;
}

int check_unit_glob(const char *text, const void *object, struct fault *why)
{
	_cleanup_free_ char *pattern = NULL;
	uint64_t post_usec;
	int r = post_split(text, &pattern, &post_usec, why);

	if (r < 0)
		return r;
	if (strlen(pattern) > UNIT_NAME_MAX || pattern[strspn(pattern, UNIT_CHARACTERS "*?[]!^")])
		return value_refuse(why, "not the name of a unit, or a pattern of names as in "
					 "*.service");
	return 0;
}

/* --- snapshot triggers */

int check_pressure(const char *text, const void *object, struct fault *why)
{
	_cleanup_free_ char *condition = NULL;
	struct pressure pressure;
	uint64_t post_usec;
	int r = post_split(text, &condition, &post_usec, why);

	if (r >= 0)
		r = pressure_parse(condition, &pressure, why);
	return r < 0 || !pressure.unit[0] ? r : check_unit(pressure.unit, object, why);
}

int check_latency(const char *text, const void *object, struct fault *why)
{
	_cleanup_(latency_done) struct latency_config latency = {};

	return latency_parse(text, true, &latency, why);
}

int check_event(const char *text, const void *object, struct fault *why)
{
	_cleanup_(event_done) struct trace_event event = {};
	_cleanup_free_ char *condition = NULL;
	uint64_t post_usec;
	int r = post_split(text, &condition, &post_usec, why);

	if (r >= 0)
		r = event_parse(condition, &event, why);
	if (r < 0)
		return r;
	return event.name ? 0 : value_refuse(why, "must be one event, SYSTEM:NAME");
}

int check_shed(const char *text, const void *object, struct fault *why)
{
	_cleanup_(event_done) struct trace_event event = {};
	int r = event_parse(text, &event, why);

	if (r < 0)
		return r;
	return event.optional ? value_refuse(why, "must be SYSTEM:NAME, or a SYSTEM, without \"-\"")
			      : 0;
}

int check_journal(const char *text, const void *object, struct fault *why)
{
	_cleanup_(strv_freep) char **terms = NULL;
	_cleanup_free_ char *condition = NULL;
	uint64_t post_usec;
	int r = post_split(text, &condition, &post_usec, why);

	return r < 0 ? r : journal_match_parse(condition, &terms, why);
}

/* --- [Daemon] */

int check_group_name(const char *text, const void *object, struct fault *why)
{
	size_t n = strlen(text);

	if (text[strspn(text, DIGITS)] == '\0')
		return 0;
	if (n > 31 || strchr(DIGITS "-.", *text) || text[strspn(text, LETTERS DIGITS "_.-")])
		return value_refuse(why, "not the name or number of a group");
	return 0;
}

int check_instance_prefix(const char *text, const void *object, struct fault *why)
{
	if (*text == '.' || strlen(text) > 64 || text[strspn(text, LETTERS DIGITS "_.-")])
		return value_refuse(why,
				    "must be letters, digits, '_', '-' and '.', not begin with "
				    "'.', and be at most 64 long");
	return 0;
}
