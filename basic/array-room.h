/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arrays that are filled at any index. Any thread.
 */
#pragma once

#include <string.h>

#include "basic/macro.h"

/**
 * array_room() - room for one at @index, with zeroes in what is new
 * @array_p: address of the pointer, NULL at first
 * @n: how many there is room for, each of @item bytes; it doubles
 * Return: 0 or -ENOMEM, with the array as it was.
 */
static inline int array_room(void *array_p, size_t *n, size_t index, size_t item)
{
	void **array = array_p, *more;
	size_t room = MAX(*n, (size_t)16);

	if (index < *n)
		return 0;
	while (room <= index)
		room *= 2;
	more = reallocarray(*array, room, item);
	if (!more)
		return -ENOMEM;
	memset((char *)more + *n * item, 0, (room - *n) * item);
	*array = more;
	*n = room;
	return 0;
}
