/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a file is that is not a trace.dat, by its first bytes, for people who have given the wrong
 * one. Pure function, any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FILE_KIND_BYTES 64U /* are enough */

/**
 * file_kind() - name a file that begins with @size bytes
 * Return: "perf.data, which …", in the words of a message; NULL: unknown.
 */
const char *file_kind(const uint8_t *bytes, size_t size);
