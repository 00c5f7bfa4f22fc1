/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The arguments of a USDT probe, as its note has them, in the syntax of the kernel's fetch
 * arguments. A note has the operands of the assembler, each with its size: "-4@%edi 8@-16(%rbp)
 * -4@$5", of aarch64 "-4@w0 8@[sp, 16] -4@5". Pure functions, any thread.
 */
#pragma once

#include <stdint.h>

#include "basic/fault.h"

struct usdt_argument {
	const char *type;  /* "s32" */
	char fetch[48];	   /* "%di", "-16(%bp)", "\5"; "" of a variable */
	char variable[96]; /* its name, or "" */
	int64_t addend;	   /* bytes behind the variable's address */
};

/**
 * usdt_next_argument() - take one off the front of @text
 * @machine: EM_… of elf.h
 * Return: 1; 0: there is none any more; -EOPNOTSUPP with the reason in @why: the kernel cannot read
 * it, but @text is behind it; -EBADMSG with @why.
 */
int usdt_next_argument(const char **text, unsigned machine, struct usdt_argument *ret,
		       struct fault *why);
