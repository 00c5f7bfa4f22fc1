/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The strings of the kernel that events point to, from a printk_formats text. Nothing changes after
 * printk_formats_parse(); any thread.
 */
#pragma once

#include <stdint.h>

#include "basic/macro.h"

struct printk_formats;

/**
 * printk_formats_parse() - make a table
 * @text: malloc'ed, NUL-terminated, lines 0xADDRESS : "STRING"; taken over in any case
 */
int printk_formats_parse(char *text, struct printk_formats **ret);
struct printk_formats *printk_formats_free(struct printk_formats *formats);
DEFINE_CLEANUP(struct printk_formats *, printk_formats_free)

/**
 * printk_formats_find() - the string at an address, without quotes and a "\n" at its end, or NULL
 */
const char *printk_formats_find(const struct printk_formats *formats, uint64_t address);

struct tep_handle;

/**
 * printk_formats_give() - make a handle of libtraceevent's know them, for what that prints itself
 * Its own parser reads beyond the end of lines that are cut.
 * Return: 0 or -ENOMEM.
 */
int printk_formats_give(const struct printk_formats *formats, struct tep_handle *tep);
