/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "basic/macro.h"
#include "basic/pid-map.h"

#define ROOM_MIN 256

/* Where @pid is or belongs; there is room */
static struct pid_map_slot *find_slot(const struct pid_map *map, int32_t pid)
{
	size_t i = ((uint32_t)pid * UINT32_C(2654435761)) & (map->room - 1);

	while (map->slots[i].place != 0 && map->slots[i].pid != pid)
		i = (i + 1) & (map->room - 1);
	return &map->slots[i];
}

static int grow(struct pid_map *map)
{
	struct pid_map more = {.n = map->n, .room = MAX(2 * map->room, (size_t)ROOM_MIN)};

	more.slots = calloc(more.room, sizeof(*more.slots));
	if (!more.slots || more.n >= UINT32_MAX) {
		free(more.slots);
		return -ENOMEM;
	}
	for (size_t i = 0; i < map->room; i++)
		if (map->slots[i].place != 0)
			*find_slot(&more, map->slots[i].pid) = map->slots[i];
	free(map->slots);
	*map = more;
	return 0;
}

size_t pid_map_find(const struct pid_map *map, int32_t pid)
{
	uint32_t place = map->room > 0 ? find_slot(map, pid)->place : 0;

	return place > 0 ? place - 1 : PID_MAP_NONE;
}

int pid_map_add(struct pid_map *map, int32_t pid, size_t *ret)
{
	size_t index = pid_map_find(map, pid);
	int r = 0;

	if (index != PID_MAP_NONE) {
		*ret = index;
		return 0;
	}
	if (2 * (map->n + 1) > map->room)
		r = grow(map);
	if (r < 0)
		return r;
	*ret = map->n++;
	*find_slot(map, pid) = (struct pid_map_slot){.pid = pid, .place = (uint32_t)map->n};
	return 1;
}

void pid_map_done(struct pid_map *map)
{
	free(map->slots);
	*map = (struct pid_map){};
}
