/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a file's kprobes and uprobes read, by their definitions (writer/probes.h), or, in a file
 * without them, by the names of their fields as regs= and stack= of a session make them. One
 * thread.
 */
#pragma once

#include <stdbool.h>

#include "formats/gdb-registers.h"
#include "formats/trace-dat-read.h"

enum gdb_argument_kind {
	GDB_ARGUMENT_OTHER,
	GDB_ARGUMENT_REGISTER, /* %REG */
	GDB_ARGUMENT_MEMORY,   /* +OFFSET(%REG) */
};

struct gdb_argument {
	enum gdb_argument_kind kind;
	const struct gdb_general *reg;
	int64_t offset;
	bool by_name; /* the field's name says all of it, so that no variable is wanted besides */
};

struct gdb_probe {
	char *system, *name;
	char *path;	 /* of a uprobe: the program or library; else NULL */
	uint64_t offset; /* in it */
	char *arguments; /* "NAME=WHAT NAME=WHAT" */
};

struct gdb_probes {
	struct gdb_probe *list;
	size_t n;
};

/**
 * gdb_probes_read() - the definitions that a file has
 */
int gdb_probes_read(const struct trace_dat *dat, struct gdb_probes *ret, struct fault *why);
void gdb_probes_done(struct gdb_probes *probes);

/**
 * gdb_probe_parse() - a line of dynamic_events
 * Return: 0, -EINVAL for what is no probe, -ENOMEM.
 */
int gdb_probe_parse(const char *line, struct gdb_probe *ret);
void gdb_probe_done(struct gdb_probe *probe);

/**
 * gdb_probes_find() - that of an event; NULL if there is none
 */
const struct gdb_probe *gdb_probes_find(const struct gdb_probes *probes, const char *system,
					const char *name);

/**
 * gdb_probe_argument() - what a field was read from
 * @probe: NULL: not known, the name must tell
 */
struct gdb_argument gdb_probe_argument(const struct gdb_probe *probe, enum gdb_arch arch,
				       const char *field);
