/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is the disk of a session gone, or is it only slow, or full? What the last writes came to is
 * looked at again and again. A plain value and pure functions over it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct disk_watch {
	uint64_t trouble_usec; /* monotonic: last time that there was no trouble but lack of room */
	uint64_t progress_usec; /* monotonic: last time that the workers came along; 0: never */
	uint64_t bytes;		/* moved by then */
};

/* A recording begins */
void disk_watch_begin(struct disk_watch *watch, uint64_t now_usec);

/**
 * disk_watch_look() - with each word of the workers
 * @trouble: negative errno of their last writes, or 0
 * @idle: they have done what they were asked for; @bytes: moved so far
 * Return: @trouble, or -ETIMEDOUT if they have not come back from a write for some seconds.
 */
int disk_watch_look(struct disk_watch *watch, int trouble, bool idle, uint64_t bytes,
		    uint64_t now_usec);

/**
 * disk_watch_observe() - now and then
 * @trouble: of disk_watch_look()
 * Return: true: it has lasted so long that the disk counts as gone. One that is full or does not
 * answer may be there again by itself.
 */
bool disk_watch_observe(struct disk_watch *watch, int trouble, uint64_t now_usec);

/* No room, which retention may make */
bool disk_watch_is_full(int trouble);
