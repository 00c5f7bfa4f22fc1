/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the kernel has at an address: a symbol, by a /proc/kallsyms text, as libtraceevent would
 * find it, or a string that events point to, by a printk_formats text. Nothing changes after
 * file_symbols_new(): one object serves all threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "basic/macro.h"

struct file_symbols;
struct tep_handle;

/**
 * file_symbols_new() - make the tables
 * @kallsyms, @printk_formats: malloc'ed, NUL-terminated; taken over in any case
 * Reading stops at the first line of another form, as libtraceevent does.
 * Return: 0 or -ENOMEM.
 */
int file_symbols_new(char *kallsyms, char *printk_formats, struct file_symbols **ret);
struct file_symbols *file_symbols_free(struct file_symbols *symbols);
DEFINE_CLEANUP(struct file_symbols *, file_symbols_free)

/**
 * symbols_address() - address of the symbol called @name; slow
 */
bool symbols_address(const struct file_symbols *symbols, const char *name, uint64_t *ret);

/**
 * symbols_string() - the string at an address, without quotes and a "\n" at its end, or NULL
 */
const char *symbols_string(const struct file_symbols *symbols, uint64_t address);

/**
 * symbols_give() - make a handle of libtraceevent's know the strings, for what that prints itself
 * Its own parser reads beyond the end of lines that are cut.
 * Return: 0 or -ENOMEM.
 */
int symbols_give(const struct file_symbols *symbols, struct tep_handle *tep);

/* What one thread asked for last: addresses come again and again */
#define SYMBOLS_CACHE_SIZE 2048U

struct symbols_cache {
	const struct file_symbols *symbols;
	struct {
		uint64_t address, start;
		const char *name;
	} entries[SYMBOLS_CACHE_SIZE];
};

/**
 * symbols_find() - which symbol an address belongs to
 * @cache: all zero but for its symbols to begin with
 * @ret_start: where that begins; untouched if there is none
 * Return: the name, or NULL.
 */
const char *symbols_find(struct symbols_cache *cache, uint64_t address, uint64_t *ret_start);
