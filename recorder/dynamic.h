/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kprobe=, Uprobe=, Usdt= and SyntheticEvent=: events that exist because a session asks for them.
 * They are the machine's, not the instance's, so they carry the session's own group as system
 * (synthetic events: always "synthetic") and are removed with it. Owner: the instance. Main thread.
 * Syntax: Documentation/trace/kprobetrace.rst, uprobetracer.rst, events.rst.
 */
#pragma once

#include <stdbool.h>

#include "recorder/trace-config.h"
#include "recorder/tracedir.h"

#define DYNAMIC_SYNTHETIC "synthetic"
/*
 * Begins a SyntheticEvent= that flyrec itself has added: "+NAME FIELDS if FILTER", which becomes
 * the event GROUP_NAME; none where the kernel has no synthetic events. NAME is DYNAMIC_OWN_NAME and
 * a number: what an earlier process left is found by it.
 */
#define DYNAMIC_OWN	 '+'
#define DYNAMIC_OWN_NAME "lat"

/* How its definition becomes what is written to dynamic_events */
enum event_source {
	EVENT_AS_IT_IS,
	EVENT_UPROBE, /* by recorder/probe-place.h, when it is made */
	EVENT_USDT,
};

struct dynamic_event {
	char *system;
	char *name;
	char *definition;
	char *shown;   /* of a probe: how a message names it */
	char *filter;  /* or NULL */
	bool optional; /* DYNAMIC_OWN */
	enum event_source source;
	bool made; /* by us, or by the process we took over from */
};

struct dynamic {
	char *group;
	struct dynamic_event *events; /* synthetic ones first, then kprobes, uprobes, USDT probes */
	size_t n_events;
	char **build_ids; /* "HEX PATH" of each program that was probed, NULL-terminated */
};

/**
 * dynamic_group() - the system of an instance's probes
 * "flyrec.NAME" -> "flyrec_NAME": names of systems have letters, digits and "_" only. Return:
 * malloc'ed; NULL without memory.
 */
char *dynamic_group(const char *instance);

/**
 * dynamic_has_latencies() - can this kernel make synthetic events of histograms?
 * Return: 0, -EOPNOTSUPP with @why: what it lacks; or another negative errno.
 */
int dynamic_has_latencies(struct fault *why);

/**
 * dynamic_new() - work out names and definitions; the kernel is not asked
 * A probe without a name gets "probe1", "probe2" … in the order of the configuration.
 * @group: system of the probes
 * Return: 0, -EINVAL with @why set when a definition names a group of its own or is not one.
 */
int dynamic_new(const struct trace_config *config, const char *group, struct dynamic **ret,
		struct fault *why);
void dynamic_free(struct dynamic *dynamic);

/**
 * dynamic_create() - make them all, or none
 * What an earlier process left in our group is removed first.
 * @top: the machine's tracefs, whose dynamic_events file is written
 */
int dynamic_create(struct dynamic *dynamic, const struct tracedir *top, struct fault *why);

/**
 * dynamic_set_build_ids() - those that an earlier process had in build_ids: the files may be others
 * by now
 * Return: 0 or -ENOMEM.
 */
int dynamic_set_build_ids(struct dynamic *dynamic, char *const *build_ids);

/**
 * dynamic_adopt() - they are there already, made by an earlier process for us
 */
void dynamic_adopt(struct dynamic *dynamic);

/**
 * dynamic_remove() - everything in our group, and the synthetic events we made
 * None may be enabled anywhere. Goes on after an error; @why has the first.
 */
int dynamic_remove(struct dynamic *dynamic, const struct tracedir *top, struct fault *why);

/**
 * dynamic_check() - make those again that somebody has removed; they are disabled then
 */
int dynamic_check(struct dynamic *dynamic, const struct tracedir *top, struct changes *changes,
		  struct fault *why);

/**
 * dynamic_parse_line() - "p:GROUP/NAME …" of dynamic_events
 * Return: 0, -EBADMSG for a line that is no such thing.
 */
int dynamic_parse_line(const char *line, char **ret_group, char **ret_name);

DEFINE_CLEANUP(struct dynamic *, dynamic_free)
