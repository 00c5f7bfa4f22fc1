/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The parts of a check: arm-check.c (snapshot.ini), arm-check-device.c, arm-check-trace.c.
 */
#pragma once

#include "convert/arm/arm-check.h"
#include "formats/arm-ini.h"
#include "formats/arm-snapshot.h"

#define ARM_DEVICES_MAX 4096U
#define ARM_FAULTS_MAX	1000U	   /* what comes then is left out */
#define ARM_TOTAL_MAX	(64 * MIB) /* of all text files */

struct arm_check_file {
	const char *name; /* borrowed, from the file that names it */
	struct arm_ini ini;
	bool there;
};

struct arm_check_device {
	struct arm_check_file file;
	const char *name, *class, *location; /* or NULL */
	unsigned line;			     /* of the name */
	const struct arm_source_kind *kind;  /* NULL: no source, or an unknown one */
	bool core, source;
	bool has_core;
	const char *buffer; /* from [source_buffers], or NULL */
	uint64_t trace_id;
};

struct arm_check {
	const struct arm_files *files;
	arm_check_fault_t on_fault;
	void *userdata;
	struct arm_check_file index, trace;
	struct arm_check_device *devices;
	size_t n_devices;
	const char *reading; /* the file that is being read */
	unsigned n_faults;
	size_t total; /* bytes of text */
	bool no_memory;
};

/* A fault; from ARM_FAULTS_MAX on only that there are more. Loops end at arm_check_full(). */
void arm_check_fault(struct arm_check *check, const char *file, unsigned line, const char *format,
		     ...) _printf_(4, 5);

static inline bool arm_check_full(const struct arm_check *check)
{
	return check->no_memory || check->n_faults > ARM_FAULTS_MAX;
}

/* A text file; what is wrong with its syntax is reported. Return: false: it cannot be read. */
bool arm_check_read(struct arm_check *check, const char *name, struct arm_check_file *ret);

/* Is there such a file, with something in it? Else that is reported for @file and @line. */
bool arm_check_binary(struct arm_check *check, const char *file, unsigned line, const char *name,
		      uint64_t *ret_size);

/* Keys that are there twice; sections too if @sections; names that only look like known ones */
void arm_check_names(struct arm_check *check, const struct arm_check_file *file,
		     const char *const *known);

void arm_check_device(struct arm_check *check, struct arm_check_device *device);
void arm_check_trace(struct arm_check *check);

struct arm_check_device *arm_check_find(struct arm_check *check, const char *name);
