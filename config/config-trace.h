/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The values of [Trace] that have a syntax of their own: events, triggers, pids, CPU lists, and the
 * checks of strings that go to the kernel. What only the kernel can know (is there such an event?
 * such a function?) is found out when the session starts. Main thread.
 */
#pragma once

#include "config/config-value.h"
#include "recorder/trace-config.h"

/* Longest session name: "flyrec_NAME" must be a system name of the kernel (MAX_EVENT_NAME_LEN) */
#define SESSION_NAME_MAX 56

/* The next three keep a list and its length in struct trace_config; offset: of that struct */
extern const struct value_kind value_events;   /* events, n_events */
extern const struct value_kind value_triggers; /* triggers, n_triggers */
extern const struct value_kind value_pids;     /* pids, n_pids: sorted, each once */

/**
 * event_parse() - "[-]SYS:NAME [if FILTER]" or "[-]SYS"
 * @ret: zeroed before; the caller frees it with event_done(), also after an error
 * Return: 0, -EINVAL with @why, or -ENOMEM.
 */
int event_parse(const char *text, struct trace_event *ret, struct fault *why);
void event_done(struct trace_event *event);
void trigger_done(struct trace_trigger *trigger);

/* @name: NULL: the system as a whole. NULL: it is not among them */
struct trace_event *event_find(const struct trace_config *trace, const char *system,
			       const char *name);

/**
 * event_put() - an event has one filter: a later line takes the place of an earlier one
 * @event: taken over; what was there before is in it then
 * Return: 0 or -ENOMEM.
 */
int event_put(struct trace_config *trace, struct trace_event *event);

/* Checks for struct config_key; config/config-check.c */
int check_probe(const char *text, const void *object, struct fault *why);
int check_uprobe(const char *text, const void *object, struct fault *why);
int check_usdt(const char *text, const void *object, struct fault *why);
int check_synthetic(const char *text, const void *object, struct fault *why);
int check_function(const char *text, const void *object, struct fault *why);
int check_power_of_two(const char *text, const void *object, struct fault *why);
int check_tracer(const char *text, const void *object, struct fault *why);
int check_option(const char *text, const void *object, struct fault *why);
int check_unit(const char *text, const void *object, struct fault *why);
int check_unit_glob(const char *text, const void *object, struct fault *why);
int check_pressure(const char *text, const void *object, struct fault *why);
int check_latency(const char *text, const void *object, struct fault *why);
int check_event(const char *text, const void *object, struct fault *why);
int check_shed(const char *text, const void *object, struct fault *why);
int check_journal(const char *text, const void *object, struct fault *why);
int check_group_name(const char *text, const void *object, struct fault *why);
int check_instance_prefix(const char *text, const void *object, struct fault *why);
