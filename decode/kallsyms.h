/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's symbols, from a /proc/kallsyms text: name of an address as libtraceevent would find
 * it. One table serves all threads: nothing changes after kallsyms_parse().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "basic/macro.h"

struct kallsyms;

/**
 * kallsyms_parse() - make a table
 * @text: malloc'ed, NUL-terminated; taken over in any case
 * Reading stops at the first line that is none of kallsyms, as libtraceevent does.
 * Return: 0 or -ENOMEM.
 */
int kallsyms_parse(char *text, struct kallsyms **ret);
struct kallsyms *kallsyms_free(struct kallsyms *symbols);
DEFINE_CLEANUP(struct kallsyms *, kallsyms_free)

/**
 * kallsyms_address() - address of the symbol called @name; slow
 */
bool kallsyms_address(const struct kallsyms *symbols, const char *name, uint64_t *ret);

/* What one thread asked for last: addresses come again and again */
#define KALLSYMS_CACHE_SIZE 2048U

struct kallsyms_cache {
	const struct kallsyms *symbols; /* may be NULL: no symbols */
	struct {
		uint64_t address, start;
		const char *name;
	} entries[KALLSYMS_CACHE_SIZE];
};

/**
 * kallsyms_cache_find() - which symbol an address belongs to
 * @cache: all zero but for its symbols to begin with
 * @ret_start: where that begins; untouched if there is none
 * Return: the name, or NULL.
 */
const char *kallsyms_cache_find(struct kallsyms_cache *cache, uint64_t address,
				uint64_t *ret_start);
