/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The checksum of zlib, PNG and Ethernet. Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * crc32_add() - of @size bytes more
 * @before: what this returned for those before them; 0: there are none
 */
uint32_t crc32_add(uint32_t before, const void *bytes, size_t size);
