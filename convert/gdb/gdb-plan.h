/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How an event of a trace.dat becomes a frame of a gdb trace file: worked out once for each kind of
 * event, by its format and, for probes, by what its fields were read from.
 *
 *	a full set of registers           R block
 *	memory at a recorded register     M block where it was
 *	other arrays and strings          M block at an address of our own, and a variable with it
 *	numbers, time, CPU, pid           V block
 *
 * One thread.
 */
#pragma once

#include "convert/gdb/gdb-probe.h"
#include "decode/decoder.h"

/* Where what has no address is put: no program of x86-64 or aarch64 has anything there */
#define GDB_PLAN_OWN_ADDRESS UINT64_C(0x0010000000000000)

/* The names of all events' variables; their numbers are index + 1 */
struct gdb_variables {
	char **names;
	size_t n;
};

/* What is common to all kinds of a file */
struct gdb_planner {
	const struct decoder *decoder;
	enum gdb_arch arch;
	bool big_endian;
	struct gdb_probes probes;
	struct gdb_variables variables;
};

/**
 * gdb_planner_new() - read definitions and architecture
 * @decoder: stays the caller's
 */
int gdb_planner_new(const struct decoder *decoder, struct gdb_planner **ret, struct fault *why);
struct gdb_planner *gdb_planner_free(struct gdb_planner *planner);
DEFINE_CLEANUP(struct gdb_planner *, gdb_planner_free)

struct gdb_plan;

/**
 * gdb_plan_new() - of a format in dat->formats
 * Return: 0; -EOPNOTSUPP if libtraceevent cannot parse the format: then frames have time, CPU and
 * pid alone; or -ENOMEM.
 */
int gdb_plan_new(struct gdb_planner *planner, size_t format, struct gdb_plan **ret);
struct gdb_plan *gdb_plan_free(struct gdb_plan *plan);
DEFINE_CLEANUP(struct gdb_plan *, gdb_plan_free)

/**
 * gdb_plan_address() - of the tracepoint that an event belongs to; the event's id for what is no
 * probe
 */
uint64_t gdb_plan_address(const struct gdb_plan *plan, const struct decode_event *event);

/**
 * gdb_plan_probe() - its definition, or NULL
 */
const struct gdb_probe *gdb_plan_probe(const struct gdb_plan *plan);

/**
 * gdb_plan_frame_size() - of the event's frame with its head, bytes
 */
size_t gdb_plan_frame_size(const struct gdb_plan *plan, const struct decode_event *event);

/**
 * gdb_plan_put() - the frame
 * @p: has room for gdb_plan_frame_size() bytes
 * @event: with its task
 */
void gdb_plan_put(const struct gdb_plan *plan, const struct decode_event *event,
		  uint32_t tracepoint, size_t size, uint8_t *p);

/**
 * gdb_plan_collects() - commands of a tracepoint that would have collected the same: "cmd" lines
 */
void gdb_plan_collects(const struct gdb_plan *plan, FILE *out, uint32_t tracepoint,
		       uint64_t address);
