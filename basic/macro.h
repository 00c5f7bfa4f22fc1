/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Small language helpers that every folder may use: cleanup attributes, array sizes, rounding.
 * No state, any thread.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define SWAP(a, b)                     \
	do {                           \
		typeof(a) swap_ = (a); \
		(a) = (b);             \
		(b) = swap_;           \
	} while (0)

/* Out of a singly linked list by its members' next, if it is in it */
#define LIST_REMOVE(head, item)                \
	do {                                   \
		typeof(head) *at_ = &(head);   \
		while (*at_ && *at_ != (item)) \
			at_ = &(*at_)->next;   \
		if (*at_)                      \
			*at_ = (*at_)->next;   \
	} while (0)

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)

#define USEC_PER_SEC  UINT64_C(1000000)
#define NSEC_PER_SEC  UINT64_C(1000000000)
#define NSEC_PER_USEC UINT64_C(1000)

#define _always_inline_ inline __attribute__((always_inline))
#define _cleanup_(f)	__attribute__((cleanup(f)))
#define _printf_(a, b)	__attribute__((format(printf, a, b)))

static inline void free_p(void *p)
{
	free(*(void **)p);
}

static inline void close_p(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void fclose_p(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void closedir_p(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#define _cleanup_free_	   _cleanup_(free_p)
#define _cleanup_close_	   _cleanup_(close_p)
#define _cleanup_fclose_   _cleanup_(fclose_p)
#define _cleanup_closedir_ _cleanup_(closedir_p)

/* DEFINE_CLEANUP(struct thing *, thing_free) makes thing_freep for _cleanup_(thing_freep) */
#define DEFINE_CLEANUP(type, func)          \
	static inline void func##p(type *p) \
	{                                   \
		if (*p)                     \
			func(*p);           \
	}

/* TAKE_PTR(p), TAKE_FD(fd): hand ownership on, so that the cleanup attribute does nothing */
#define TAKE_PTR(p)                      \
	({                               \
		__typeof__(p) _pp = (p); \
		(p) = NULL;              \
		_pp;                     \
	})
#define TAKE_FD(fd)             \
	({                      \
		int _fd = (fd); \
		(fd) = -1;      \
		_fd;            \
	})

/* to: a power of two */
static inline uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) & ~(to - 1);
}

static inline uint64_t round_down(uint64_t n, uint64_t to)
{
	return n & ~(to - 1);
}

/**
 * array_grow() - room for one more in an array that began as NULL and grows by this alone
 * @array_p: address of the pointer; the room doubles when @n is a power of two
 * @n: items in it, each of @item bytes
 * Return: 0 or -ENOMEM, with the array as it was.
 */
static inline int array_grow(void *array_p, size_t n, size_t item)
{
	void **array = array_p, *more;

	if (n & (n - 1))
		return 0;
	more = reallocarray(*array, n ? 2 * n : 1, item);
	if (!more)
		return -ENOMEM;
	*array = more;
	return 0;
}
