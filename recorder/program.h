/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program or shared library, as an ELF file: where in the file its functions and USDT probes are,
 * and which build it is. Read by libelf with read(2), never mapped, so that a file which shrinks
 * meanwhile is an error and no signal. The file is not trusted: tables have limits, and what does
 * not add up is refused. Any thread. Formats: elf(5); USDT notes:
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "basic/fault.h"

struct program;

/* One place of a USDT probe; there may be several of a name */
struct usdt_site {
	uint64_t address; /* as linked */
	uint64_t offset;  /* in the file */
	uint64_t counter; /* offset of its semaphore; 0: it has none */
	char *arguments;  /* as in the note, "-4@%edi 8@%rsi" */
};

struct usdt_sites {
	struct usdt_site *list;
	size_t n;
};

/**
 * program_open() - for this machine: another one's is refused
 * @path: absolute
 * Return: 0, or negative errno with @path and the reason in @why.
 */
int program_open(const char *path, struct program **ret, struct fault *why);
void program_free(struct program *program);

/**
 * program_machine() - e_machine, an EM_… of elf.h
 */
unsigned program_machine(const struct program *program);

/**
 * program_build_id() - in hex digits, "" where it has none
 */
const char *program_build_id(const struct program *program);

/**
 * program_function() - where a function begins
 * @symbol: NAME or NAME@VERSION, as the linker has it (C++ names mangled)
 * @ret_address: as linked
 * @ret_offset: in the file
 * Return: 0, or -ENOENT (with names that are near), -EINVAL or another negative errno with @why.
 */
int program_function(struct program *program, const char *symbol, uint64_t *ret_address,
		     uint64_t *ret_offset, struct fault *why);

/**
 * program_variable() - the address of one, as linked
 * Return: 0, -ENOENT, or another negative errno with @why.
 */
int program_variable(struct program *program, const char *name, uint64_t *ret_address,
		     struct fault *why);

/**
 * program_usdt() - all places of a probe
 * @ret: undo with usdt_sites_done()
 */
int program_usdt(struct program *program, const char *provider, const char *name,
		 struct usdt_sites *ret, struct fault *why);
void usdt_sites_done(struct usdt_sites *sites);

DEFINE_CLEANUP(struct program *, program_free)
