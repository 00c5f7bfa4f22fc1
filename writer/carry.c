/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "writer/carry.h"

#define TEMPORARY ".carry.dat.new" /* tidied up at the next start if we are killed here */

struct carry_cpu {
	struct carry_item *items;
	size_t n, room;
};

struct carry {
	int fd;
	unsigned n_cpus;
	unsigned subbuf_size;
	struct carry_cpu *cpus;
	pthread_mutex_t lock; /* of what follows */
	uint64_t *unused;     /* slots that are free again */
	size_t n_unused;
	uint64_t end; /* slots in the file */
};

void carry_free(struct carry *c)
{
	if (!c)
		return;
	for (unsigned cpu = 0; c->cpus && cpu < c->n_cpus; cpu++)
		free(c->cpus[cpu].items);
	(void)pthread_mutex_destroy(&c->lock);
	close_p(&c->fd);
	free(c->cpus);
	free(c->unused);
	free(c);
}

static int open_file(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	(void)unlinkat(dir_fd, TEMPORARY, 0);
	fd = openat(dir_fd, TEMPORARY, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	(void)unlinkat(dir_fd, TEMPORARY, 0);
	return fd;
}

int carry_new(int dir_fd, unsigned n_cpus, unsigned subbuf_size, struct carry **ret)
{
	_cleanup_(carry_freep) struct carry *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->n_cpus = n_cpus;
	c->subbuf_size = subbuf_size;
	(void)pthread_mutex_init(&c->lock, NULL);
	c->fd = open_file(dir_fd);
	if (c->fd < 0)
		return c->fd;
	c->cpus = calloc(n_cpus, sizeof(*c->cpus));
	if (!c->cpus)
		return -ENOMEM;
	*ret = TAKE_PTR(c);
	return 0;
}

int carry_reserve(struct carry *c, uint64_t n)
{
	uint64_t more = n > c->n_unused ? n - c->n_unused : 0;

	if (more == 0 || fallocate(c->fd, FALLOC_FL_KEEP_SIZE, (off_t)(c->end * c->subbuf_size),
				   (off_t)(more * c->subbuf_size)) >= 0)
		return 0;
	return errno == EOPNOTSUPP ? 0 : -errno; /* not every file system can */
}

/* A run of slots: one that is free again, or as many as are wanted at the end of the file */
static uint64_t take_slots(struct carry *c, size_t wanted, size_t *ret_n)
{
	uint64_t slot;

	(void)pthread_mutex_lock(&c->lock);
	if (c->n_unused > 0) {
		slot = c->unused[--c->n_unused];
		*ret_n = 1;
	} else {
		slot = c->end;
		c->end += wanted;
		*ret_n = wanted;
	}
	(void)pthread_mutex_unlock(&c->lock);
	return slot;
}

static void give_slot_back(struct carry *c, uint64_t slot)
{
	(void)pthread_mutex_lock(&c->lock);
	/* It may have been longer: then it shrinks here. Else the slot is lost, no more. */
	if (array_grow(&c->unused, c->n_unused, sizeof(*c->unused)) >= 0)
		c->unused[c->n_unused++] = slot;
	(void)pthread_mutex_unlock(&c->lock);
}

static int make_room(struct carry_cpu *cpu, size_t n)
{
	size_t room = MAX(cpu->room, (size_t)256);
	struct carry_item *more;

	if (cpu->n + n <= cpu->room)
		return 0;
	while (room < cpu->n + n)
		room *= 2;
	more = reallocarray(cpu->items, room, sizeof(*more));
	if (!more)
		return -ENOMEM;
	cpu->items = more;
	cpu->room = room;
	return 0;
}

int carry_append(struct carry *c, unsigned cpu, const char *subbufs, size_t n)
{
	struct carry_cpu *to = &c->cpus[cpu];
	int r = make_room(to, n);

	while (n > 0 && r >= 0) {
		size_t run;
		uint64_t slot = take_slots(c, n, &run);

		r = io_pwrite_all(c->fd, subbufs, run * c->subbuf_size, slot * c->subbuf_size);
		for (size_t i = 0; i < run; i++, subbufs += c->subbuf_size) {
			struct carry_item item = {.slot = slot + i};

			memcpy(&item.timestamp, subbufs, sizeof(item.timestamp));
			if (r >= 0)
				to->items[to->n++] = item;
			else
				give_slot_back(c, item.slot);
		}
		n -= run;
	}
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct carry_item *x = a, *y = b;

	if (x->timestamp != y->timestamp)
		return x->timestamp < y->timestamp ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

void carry_sort(struct carry *c, unsigned cpu)
{
	struct carry_cpu *of = &c->cpus[cpu];

	/* Only if need be: equal timestamps, as of a coarse clock, are in order as they came */
	for (size_t i = 1; i < of->n; i++)
		if (of->items[i].timestamp < of->items[i - 1].timestamp) {
			qsort(of->items, of->n, sizeof(*of->items), compare);
			return;
		}
}

void carry_trim(struct carry *c, unsigned cpu, size_t keep)
{
	struct carry_cpu *from = &c->cpus[cpu];
	size_t drop = from->n > keep ? from->n - keep : 0;

	/* Backwards: they are taken from the end, and then follow each other in the file */
	for (size_t i = drop; i-- > 0;)
		give_slot_back(c, from->items[i].slot);
	from->n -= drop;
	if (drop > 0)
		memmove(from->items, from->items + drop, from->n * sizeof(*from->items));
}

const struct carry_item *carry_list(const struct carry *c, unsigned cpu, size_t *ret_n)
{
	*ret_n = c->cpus[cpu].n;
	return c->cpus[cpu].items;
}

int carry_read(const struct carry *c, const struct carry_item *item, char *to)
{
	return io_pread_all(c->fd, to, c->subbuf_size, item->slot * c->subbuf_size);
}
