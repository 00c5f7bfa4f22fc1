/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copying a mapped ring buffer piece by piece, oldest first, ahead of the writer that overwrites it
 * in the same order. What it has overtaken is left out: if nothing older has been handed out yet
 * the copy just begins later, else the next sub-buffer says that events are missing before it. What
 * it has written since we looked through the ring is not wanted, so that the copy ends at a hole of
 * the list, unless more is behind it than before it. An object belongs to one thread at a time.
 */
#pragma once

#include "recorder/ring-map.h"

struct ring_copy {
	struct ring_map map;
	struct ring_list list;
	struct ring_slot head; /* the last that ring_copy_head() has copied */
	uint32_t head_seen;    /* the last id that it has looked at */
	uint64_t head_next;    /* the time of the one behind that, when it was copied */
	size_t next;	       /* in list */
	size_t end;	       /* one behind the last that is wanted */
	size_t overtaken;      /* of list, from the oldest: known to be overwritten */
	size_t handed_out;     /* so many older ones are with the caller for good */
	bool gap;	       /* the next one comes after a loss */
	uint64_t torn;	       /* sub-buffers that were listed and wanted, and could not be kept */
};

/**
 * ring_copy_open() - map the first page; ring_copy_map() is next
 * Return: as ring_map_open().
 */
int ring_copy_open(int trace_fd, unsigned subbuf_size, struct ring_copy *ret);

/**
 * ring_copy_map() - map sub-buffers, instead of those that were before
 * @trace_fd: of the same CPU
 * @n: the first ones, which are the oldest, and the reader's; SIZE_MAX: all
 * Return: 0 or negative errno.
 */
int ring_copy_map(struct ring_copy *copy, int trace_fd, size_t n);

/**
 * ring_copy_head() - copy what will be overwritten first, before all is mapped and looked through,
 * which takes milliseconds
 * @to: room for @max sub-buffers
 * @n: how many there are, from an earlier call too; ring_copy_join() tells whether they are what
 *     the copy begins with
 *
 * Of those that are mapped but the last, which tells what follows. The kernel numbers them from
 * the oldest on when a ring buffer is mapped.
 */
void ring_copy_head(struct ring_copy *copy, char *to, size_t max, size_t *n);

/**
 * ring_copy_list() - list what is there, when all is mapped
 * @overrun: see ring_map_list()
 * Return: 0 or -ENOMEM.
 */
int ring_copy_list(struct ring_copy *copy, bool overrun);

/**
 * ring_copy_newer() - ring_copy_map(), _list() and _range() in one, of what comes with @from_nsec
 * or later; just after ring_copy_open() Return: 0 or negative errno.
 */
int ring_copy_newer(struct ring_copy *copy, int trace_fd, bool overrun, uint64_t from_nsec);

/**
 * ring_copy_range() - only what may hold events of @from_nsec to @to_nsec of the instance's clock
 * Whole sub-buffers: the one that begins before @from_nsec too. Before the first ring_copy_fill().
 */
void ring_copy_range(struct ring_copy *copy, uint64_t from_nsec, uint64_t to_nsec);

/**
 * ring_copy_join() - go on behind what ring_copy_head() has copied
 * @n: as many; 0 afterwards if the list does not begin with them. After ring_copy_range().
 */
void ring_copy_join(struct ring_copy *copy, size_t *n);

/* Sub-buffers still to be copied, at most */
size_t ring_copy_left(const struct ring_copy *copy);

/* How many sub-buffers the writer has yet to overwrite before it comes to the next one */
size_t ring_copy_lead(struct ring_copy *copy);

/**
 * ring_copy_begin() - the same, of which the caller has handed nothing out yet
 * @to: room for @until sub-buffers
 * @n: in @to by now; less after a loss: it begins later rather than with a hole
 * Returns when @n is @until, or there are no more. Nothing is unmapped.
 */
void ring_copy_begin(struct ring_copy *copy, char *to, size_t *n, size_t until);

/**
 * ring_copy_fill() - the next ones, without gaps between them where that is possible
 * @to: room for @max sub-buffers
 * Return: how many; less than @max: that was the last. Unmaps then.
 */
size_t ring_copy_fill(struct ring_copy *copy, char *to, size_t max);

/* Zeroed objects are fine. */
void ring_copy_close(struct ring_copy *copy);

/**
 * ring_list_range() - of a list of timestamps, oldest first: those of a time range
 * @next: gives the timestamp of item @i
 * @ret_begin, @ret_end: from the last that begins at or before @from_nsec (or the first there is)
 * to the last that begins at or before @to_nsec
 */
void ring_list_range(const void *items, size_t n,
		     uint64_t (*timestamp)(const void *items, size_t i), uint64_t from_nsec,
		     uint64_t to_nsec, size_t *ret_begin, size_t *ret_end);
