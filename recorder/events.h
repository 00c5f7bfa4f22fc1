/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The events of an instance: filters, event triggers, enabling; comparing and undoing all that.
 * Owner: the instance. Main thread.
 */
#pragma once

#include "recorder/dynamic.h"
#include "recorder/trace-config.h"
#include "recorder/tracedir.h"

struct events;

/**
 * events_new() - what is wanted: Event=, and every event of @dynamic
 * @config: must outlive it, as must @dynamic
 */
int events_new(const struct trace_config *config, const struct dynamic *dynamic,
	       struct events **ret);
void events_free(struct events *events);

/**
 * events_setup() - filters, then triggers, then enable
 * Optional events that this kernel lacks are left out. Whole systems are enabled by their own file.
 * Return: 0; -ENOENT for an event that the kernel lacks; or what it refused.
 */
int events_setup(struct events *events, const struct tracedir *dir, struct fault *why);

/**
 * events_exist() - has the kernel what @config asks for, optional events aside?
 */
int events_exist(const struct trace_config *config, const struct tracedir *dir, struct fault *why);

/**
 * events_replace() - from what one object wants to what another one wants, in a tracing instance
 * Events in both stay enabled throughout. On error everything is as @before has it.
 */
int events_replace(struct events *before, struct events *after, const struct tracedir *dir,
		   struct fault *why);

/**
 * events_adopt() - the instance was set up by an earlier process
 * An optional event that the kernel has by now counts as wanted.
 */
void events_adopt(struct events *events, const struct tracedir *dir);

/**
 * events_check() - compare and repair: filters, triggers, enabled events
 * Of a system with a filter one event is looked at; the events of a system without one are not.
 */
int events_check(struct events *events, const struct tracedir *dir, struct changes *changes,
		 struct fault *why);

/**
 * events_shed() - switch off one event that is traced, or on again
 * events_check() leaves it off; events_replace() forgets that it was.
 * @name: "SYSTEM:NAME"
 * Return: 0 or negative errno with @why: it is as before, or, having gone, forgotten.
 */
int events_shed(struct events *events, const struct tracedir *dir, const char *name, bool shed,
		struct fault *why);

/**
 * events_teardown() - triggers removed, everything in the instance disabled
 * Goes on after an error; @why has the first.
 */
int events_teardown(const struct events *events, const struct tracedir *dir, struct fault *why);

/**
 * events_clear_triggers() - remove all event triggers of an instance, whoever set them
 * Histograms whose variables others use keep an instance from being removed. Best effort.
 */
void events_clear_triggers(const struct tracedir *dir);

/**
 * events_systems() - add the systems of all events that the instance uses, see instance_systems()
 */
int events_systems(const struct events *events, const struct tracedir *dir, char ***list,
		   struct fault *why);

DEFINE_CLEANUP(struct events *, events_free)
