/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of a collection: coresight.c (in which order), coresight-sysfs.c (devices, registers),
 * coresight-copy.c (sinks and memory).
 */
#pragma once

#include "basic/in-root.h"
#include "recorder/coresight.h"

#define CORESIGHT_DEVICES     "/sys/bus/coresight/devices"
#define CORESIGHT_DEVICES_MAX 8192U

struct coresight {
	const struct coresight_request *request;
	struct arm_snapshot snapshot;
	char **notes;
	char **sinks;  /* names of the enabled ones */
	bool no_sinks; /* there are sinks, but none is enabled */
};

/* A line of what is not in the snapshot. Return: 0 or -ENOMEM. */
int coresight_note(struct coresight *c, const char *format, ...) _printf_(2, 3);

/**
 * coresight_read_devices() - enabled sinks, and the sources that lead to one
 */
int coresight_read_devices(struct coresight *c, struct fault *why);

/**
 * coresight_read_sinks() - what is in each sink to a file; snapshot.buffers are those that had some
 * Sources without a buffer are taken out. -ENODATA: none is left.
 */
int coresight_read_sinks(struct coresight *c, struct fault *why);

/**
 * coresight_read_memory() - the kernel's text, and the caller's
 */
int coresight_read_memory(struct coresight *c, struct fault *why);

/**
 * coresight_read_cores() - the cores of the sources, with their types
 */
int coresight_read_cores(struct coresight *c, struct fault *why);
