/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sub-buffers kept between snapshots, where taking a snapshot empties the ring buffer: a file
 * without a name that stands in for the ring, as large as it. What is oldest makes room. Its index
 * is in memory. Appending and reading may go on on several threads, one a CPU.
 */
#pragma once

#include "basic/macro.h"

struct carry;

struct carry_item {
	uint64_t timestamp;
	uint64_t slot; /* where in the file, in sub-buffers */
};

/**
 * carry_new() - empty
 * @dir_fd: the file has no name in there
 * Return: 0 or negative errno.
 */
int carry_new(int dir_fd, unsigned n_cpus, unsigned subbuf_size, struct carry **ret);
void carry_free(struct carry *carry);

/**
 * carry_reserve() - disk blocks for @n more sub-buffers, so that -ENOSPC comes before anything is
 * taken out of a ring buffer
 */
int carry_reserve(struct carry *carry, uint64_t n);

/**
 * carry_append() - @n sub-buffers of a CPU
 */
int carry_append(struct carry *carry, unsigned cpu, const char *subbufs, size_t n);

/**
 * carry_sort() - a CPU's by time, after some that may be older than those before
 */
void carry_sort(struct carry *carry, unsigned cpu);

/**
 * carry_trim() - forget all but the newest @keep of a CPU
 */
void carry_trim(struct carry *carry, unsigned cpu, size_t keep);

/* A CPU's, oldest first; good until the next append or trim. NULL if there are none. */
const struct carry_item *carry_list(const struct carry *carry, unsigned cpu, size_t *ret_n);

/**
 * carry_read() - one sub-buffer
 */
int carry_read(const struct carry *carry, const struct carry_item *item, char *to);

DEFINE_CLEANUP(struct carry *, carry_free)
