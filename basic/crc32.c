/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/crc32.h"

/* Four bits at a time: the table is small, and nothing large is checked */
uint32_t crc32_add(uint32_t before, const void *bytes, size_t size)
{
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};
	const uint8_t *p = bytes;
	uint32_t crc = ~before;

	for (size_t i = 0; i < size; i++) {
		crc ^= p[i];
		crc = table[crc & 15] ^ (crc >> 4);
		crc = table[crc & 15] ^ (crc >> 4);
	}
	return ~crc;
}
