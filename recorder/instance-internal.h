/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What instance.c (made, checked, removed) and instance-read.c (read) share.
 */
#pragma once

#include "recorder/dynamic.h"
#include "recorder/events.h"
#include "recorder/instance.h"
#include "recorder/tracedir.h"

enum tracing {
	TRACING_UNKNOWN, /* attached: as the earlier process left it */
	TRACING_OFF,
	TRACING_ON,
};

struct instance {
	char *name;
	const struct trace_config *config;
	struct tracefs_instance *tracefs;
	struct tracedir top; /* the machine's tracefs: read, and dynamic_events */
	struct tracedir dir;
	struct dynamic *dynamic;
	struct events *events;
	unsigned n_cpus;
	unsigned subbuf_size;
	enum tracing tracing;
};
