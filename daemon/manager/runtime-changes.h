/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How what a session does differs from what its configuration says: because somebody asked for it
 * at runtime. Also the arithmetic of such changes. Pure functions over plain values. Main thread.
 */
#pragma once

#include "basic/fault.h"
#include "config/config.h"

/* What a session does now */
struct runtime_state {
	const struct session_config *in_force; /* NULL: stopped */
	bool running;			       /* or failed, or on its way: not stopped by hand */
	bool paused;
};

/**
 * runtime_changes() - lines for a person: "paused", "stopped", "started", "+Event=…", "-Event=…"
 * @configured: NULL: it is not (any more)
 * Return: 0 or -ENOMEM.
 */
int runtime_changes(const struct session_config *configured, const struct runtime_state *now,
		    char ***ret);

/**
 * runtime_event_text() - "[-]SYS[:NAME][ if FILTER]", as in Event=
 * Return: malloc'ed, or NULL.
 */
char *runtime_event_text(const struct trace_event *event);

/* All of them, added to *@ret. Return: 0 or -ENOMEM. */
int runtime_events(const struct session_config *config, char ***ret);

/* The events of a system, for taking one of them out; NULL-terminated, malloc'ed all over */
typedef int (*runtime_expand_t)(void *userdata, const char *system, char ***ret);

/**
 * runtime_enable_event() - add one, "SYS:NAME[ if FILTER]" or "SYS"; it stays if it is there
 * runtime_disable_event() - take one out, "SYS:NAME", or a system with all its events
 * runtime_filter_event() - set the filter of one, "" or "0": none
 * @config: changed; its texts are not
 * Return: 0; -EINVAL, -ENOENT (not among those that are traced) with @why; -ENOMEM.
 */
int runtime_enable_event(struct session_config *config, const char *text, struct fault *why);
int runtime_disable_event(struct session_config *config, const char *text, runtime_expand_t expand,
			  void *userdata, struct fault *why);
int runtime_filter_event(struct session_config *config, const char *text, const char *filter,
			 struct fault *why);
