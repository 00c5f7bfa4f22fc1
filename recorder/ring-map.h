/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One CPU's ring buffer, mapped (Linux 6.10 and later) and copied while the kernel writes to it:
 * nothing is consumed, nothing is paused. TRACE_MMAP_IOCTL_GET_READER is never called: it would
 * advance the reader. While a CPU is mapped splice gives nothing and its buffer cannot be resized:
 * unmap soon. An object belongs to one thread at a time.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"
#include "formats/ring-meta.h"

struct ring_map {
	const struct ring_meta *meta;
	size_t meta_size;
	const char *data; /* sub-buffers, some or all; NULL: none yet */
	size_t data_size;
	uint32_t first; /* the id of the first one there */
	unsigned subbuf_size;
	unsigned n_subbufs;
};

/* A sub-buffer as it was when the ring was looked through */
struct ring_slot {
	uint64_t timestamp;
	uint32_t id;
};

/* Oldest first */
struct ring_list {
	struct ring_slot *slots;
	size_t n;
	size_t hole; /* slots[hole] may not be what follows the one before; SIZE_MAX: there is none
		      */
};

/**
 * ring_map_probe() - can this CPU's trace_pipe_raw be mapped?
 * Return: 0; -ENODEV: not with this kernel; -EINVAL: this CPU has no ring buffer (never online);
 * -EBUSY: a snapshot trigger is attached; or negative errno.
 */
int ring_map_probe(int trace_fd);

/**
 * ring_map_open() - map the first page
 * @subbuf_size: as the instance has it; -EBADMSG when the mapping says otherwise
 * Return: 0 or as ring_map_probe(). The fd stays the caller's and may be closed.
 */
int ring_map_open(int trace_fd, unsigned subbuf_size, struct ring_map *ret);

/**
 * ring_map_data() - map sub-buffers, instead of those that were before
 * @trace_fd: of the same CPU
 * @n: those with the ids 0 to @n - 1; no more than there are
 * Return: 0 or negative errno.
 */
int ring_map_data(struct ring_map *map, int trace_fd, unsigned n);

/* Unmap. Zeroed objects are fine. */
void ring_map_close(struct ring_map *map);

/**
 * ring_map_list() - what is in it now, oldest first
 * Empty sub-buffers are left out. So is the reader's, which may be left from a read long ago,
 * unless it is the newest, or the oldest and nothing has been overwritten since.
 * Where the writer came from behind and overtook us, what it has written in the places that we had
 * looked at is missing, and what it wrote then is listed: between them is the hole.
 * @overrun: events have been overwritten in this ring buffer (per_cpu/cpuN/stats)
 * @ret: slots malloc'ed
 * Return: 0 or -ENOMEM.
 */
int ring_map_list(const struct ring_map *map, bool overrun, struct ring_list *ret);

/**
 * ring_map_newer() - the newest ones, oldest first: the last that begins at @from_nsec or before,
 * and those behind it, and nothing but them is mapped In a ring buffer of 4096 sub-buffers this
 * takes a fifth of the time that mapping and looking through all takes. Just after ring_map_open(),
 * when the kernel has numbered them from the oldest on.
 * @ret: slots malloc'ed, without a hole
 * Return: 1; 0: it cannot be told so, ring_map_data() and ring_map_list() can; or negative errno.
 */
int ring_map_newer(struct ring_map *map, int trace_fd, uint64_t from_nsec, struct ring_list *ret);

/* What sub-buffer @id is now; false: empty */
bool ring_map_look(const struct ring_map *map, uint32_t id, struct ring_slot *ret);

/* Is the sub-buffer still the one that was listed? */
bool ring_map_holds(const struct ring_map *map, const struct ring_slot *slot);

/**
 * ring_map_copy() - copy a sub-buffer that may be written to, or begun anew, meanwhile
 * @slot: as listed
 * @to: subbuf_size bytes: header, the events that were complete at first, zeros
 * Return: true; false: it is no longer the one that was listed, or changed under our hands.
 */
bool ring_map_copy(const struct ring_map *map, const struct ring_slot *slot, char *to);
