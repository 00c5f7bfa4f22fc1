/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is in a register block of gdb's trace file: registers in the order of the remote protocol's
 * packet g, told by a target description or by what gdb assumes of an architecture. Plain memory,
 * any thread. From the features of gdb, amd64-tdep.c, aarch64-tdep.c and nios2-tdep.c.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

enum gdb_arch {
	GDB_X86_64,
	GDB_AARCH64,
	GDB_NIOS2,
	GDB_ARCH_UNKNOWN,
};

struct gdb_register {
	char name[32];	 /* letters, digits and '_', never empty */
	uint32_t offset; /* in the block */
	uint32_t size;	 /* bytes */
};

struct gdb_registers {
	struct gdb_register *list; /* without gaps, in the order of their offsets */
	size_t n;
	uint32_t size; /* of the block */
};

/**
 * gdb_registers_from_tdesc() - the <reg> elements of a target description
 * Return: 0, -ENOENT if there is none that makes sense, -ENOMEM.
 */
int gdb_registers_from_tdesc(const char *xml, struct gdb_registers *ret);

/**
 * gdb_registers_of() - the general registers of an architecture
 */
int gdb_registers_of(enum gdb_arch arch, struct gdb_registers *ret);
void gdb_registers_done(struct gdb_registers *registers);

/**
 * gdb_arch_of_tdesc() - by the <architecture> element; NULL is fine
 */
enum gdb_arch gdb_arch_of_tdesc(const char *xml);

/**
 * gdb_arch_of_size() - whose general registers make a block of this size
 */
enum gdb_arch gdb_arch_of_size(uint32_t size);

/**
 * gdb_arch_of_machine() - as uname(2) names it
 */
enum gdb_arch gdb_arch_of_machine(const char *machine);

/* A general register of x86-64 or aarch64, and what probes of the kernel call it */
struct gdb_general {
	const char *name;   /* gdb's */
	const char *kernel; /* behind '%' in a probe's argument; NULL: the kernel has none */
	uint16_t offset, size;
	bool needed; /* without it a register block would tell lies */
};

/**
 * gdb_general_registers() - those that make up the block that we write
 * @ret_n: 0 for an architecture that probes cannot be exported of
 */
const struct gdb_general *gdb_general_registers(enum gdb_arch arch, size_t *ret_n);

/**
 * gdb_general_find() - by the kernel's name
 */
const struct gdb_general *gdb_general_find(enum gdb_arch arch, const char *kernel, size_t size);

/**
 * gdb_general_size() - of the block
 */
uint32_t gdb_general_size(enum gdb_arch arch);

/**
 * gdb_general_pc() - the program counter; the stack pointer is "sp" to the kernel on all of them
 */
const struct gdb_general *gdb_general_pc(enum gdb_arch arch);

/**
 * gdb_arch_tdesc() - a target description that tells gdb the architecture and nothing else
 */
const char *gdb_arch_tdesc(enum gdb_arch arch);
