/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arm's debug and trace snapshot (ARM-ECM-0611873 version 0.2), a directory that OpenCSD and
 * debuggers open:
 *
 *	snapshot.ini      [snapshot] version, [device_list] the files below, [trace] metadata
 *	cpu_0.ini         [device] class=core type=Cortex-A53; [dump1] memory: file, address, length
 *	etm0.ini          [device] class=trace_source type=ETM4.0; [regs] NAME(ID)=value
 *	trace.ini         [trace_buffers] [buffer0] file and format;
 *	                  [core_trace_sources] core=source; [source_buffers] source=buffer
 *	*.bin             trace and memory, as they are
 *
 * What readers need beyond the document is OpenCSD's: sections of buffers begin with "buffer", one
 * file a buffer, one buffer a source, [source_buffers] always there. Register numbers are offsets
 * in the component divided by 4, as in the real snapshots of CSAL and OpenCSD.
 *
 * Plain values and pure functions; any thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

#define ARM_SNAPSHOT_INI     "snapshot.ini"
#define ARM_TRACE_INI	     "trace.ini"
#define ARM_SNAPSHOT_VERSION "1.0"

/* A register that a decoder of a kind of source needs */
struct arm_register_fact {
	const char *name;
	uint32_t id;
	unsigned optional; /* for kinds with one of these bits */
	const char *sysfs; /* below its device in Linux's sysfs; NULL: not there */
	const char *alias; /* another name for it in snapshots, or NULL */
};

struct arm_source_kind {
	const char *type; /* what a device's type begins with, up to a '.' and a version */
	bool of_core;	  /* a core's, and named in [core_trace_sources] */
	const char *id;	  /* the register with the trace ID */
	unsigned id_shift;
	const struct arm_register_fact *registers; /* ends with a name of NULL */
	unsigned bit;				   /* in their optional, or 0 */
};

/**
 * arm_source_kind() - what @type, e.g. "ETM4.2", is; NULL: nothing that is known
 */
const struct arm_source_kind *arm_source_kind(const char *type);

/**
 * arm_core_known() - do readers know this type of a core?
 */
bool arm_core_known(const char *type);

/**
 * arm_core_type() - the type of a core by its main ID register (MIDR)
 * @v7: an architecture before Armv8
 * Only names that each version of OpenCSD knows; else the architecture's.
 */
const char *arm_core_type(uint32_t midr, bool v7);

/* --- a snapshot to be written */

#define ARM_REGISTERS_MAX 16U

struct arm_register {
	const struct arm_register_fact *fact;
	uint32_t value;
};

struct arm_core {
	unsigned cpu; /* cpu_N */
	const char *type;
};

struct arm_source {
	char *name;
	char type[16];
	const struct arm_source_kind *kind;
	int cpu; /* -1: not a core's */
	struct arm_register registers[ARM_REGISTERS_MAX];
	size_t n_registers;
	char *buffer; /* name of the buffer with its data */
};

struct arm_buffer {
	char *name;
	char *file; /* in the directory */
};

struct arm_dump {
	char *file; /* in the directory */
	uint64_t address, length;
};

struct arm_snapshot {
	const char *description; /* or NULL */
	const char *ftrace;	 /* [ftrace] file=: the trace.dat of the same time; or NULL */
	struct arm_core *cores;
	size_t n_cores;
	struct arm_source *sources;
	size_t n_sources;
	struct arm_buffer *buffers;
	size_t n_buffers;
	struct arm_dump *dumps; /* seen by every core */
	size_t n_dumps;
};

/* Frees what it owns, and sets it to nothing */
void arm_snapshot_done(struct arm_snapshot *snapshot);

typedef int (*arm_emit_t)(void *userdata, const char *file, const char *text, size_t size);

/**
 * arm_snapshot_encode() - its text files, snapshot.ini last
 * @emit: called for each; a negative return ends it and is passed on
 * Return: 0, -ENOMEM, or what @emit returned.
 */
int arm_snapshot_encode(const struct arm_snapshot *snapshot, arm_emit_t emit, void *userdata);
