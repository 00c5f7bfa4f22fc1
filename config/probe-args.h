/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Usdt= without a name for its event, and shorthands among the arguments of a probe of a program,
 * for what gdb wants to see of a program:
 *
 *	regs=all           the registers, each in a field of its name: ax=%ax:x64 …
 *	stack=2048         so many bytes from the stack pointer on
 *	mem=%di:24         so many bytes at a register
 *	mem=%bp-16:64
 *
 * Memory comes in arrays of at most 64 elements, all that the kernel takes, in fields whose names
 * say where it was: mem_sp_0, mem_sp_512, mem_bp_m16. The register is recorded too. Pure functions.
 */
#pragma once

#include "basic/fault.h"

#define PROBE_ARGS_MEMORY_MAX 2560U /* bytes a hit: the kernel drops larger ones without a word */

/**
 * probe_args_name() - "PATH:PROVIDER:PROBE …" with a name, "p:PROVIDER_PROBE PATH:PROVIDER:PROBE …"
 * @text: what begins with p: or r: stays as it is
 * @ret: malloc'ed
 * Return: 0, -EINVAL: there is no probe to name it after; or -ENOMEM.
 */
int probe_args_name(const char *text, char **ret);

/**
 * probe_args_expand() - a uprobe with shorthands in the kernel's syntax
 * @text: "p:NAME PATH:OFFSET ARGUMENTS"
 * @machine: as uname(2) names it, NULL: this one
 * @ret: the same without shorthands; malloc'ed
 * Return: 0, -EINVAL with the reason in @why (without @text), or -ENOMEM.
 */
int probe_args_expand(const char *text, const char *machine, char **ret, struct fault *why);
