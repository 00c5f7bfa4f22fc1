/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/ring-map-fixture.h"

void ring_make(struct ring *r, unsigned subbuf, unsigned n)
{
	size_t size = PAGE + (size_t)subbuf * n;
	char *p;

	r->fd = memfd_create("ring", MFD_CLOEXEC);
	assert_true(r->fd >= 0);
	assert_int_equal(ftruncate(r->fd, (off_t)size), 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	assert_true(p != MAP_FAILED);
	r->subbuf = subbuf;
	r->n = n;
	r->meta = (struct ring_meta *)(void *)p;
	r->data = p + PAGE;
	*r->meta = (struct ring_meta){
		.meta_page_size = PAGE,
		.meta_struct_len = sizeof(*r->meta),
		.subbuf_size = subbuf,
		.nr_subbufs = n,
	};
}

void ring_done(struct ring *r)
{
	(void)munmap(r->meta, PAGE + (size_t)r->subbuf * r->n);
	close(r->fd);
}

uint64_t *ring_timestamp(const struct ring *r, unsigned id)
{
	return (uint64_t *)(void *)(r->data + (size_t)id * r->subbuf);
}

unsigned long *ring_commit(const struct ring *r, unsigned id)
{
	return (unsigned long *)(void *)(r->data + (size_t)id * r->subbuf + 8);
}

void ring_write(const struct ring *r, unsigned id, uint64_t timestamp, size_t size)
{
	uint64_t *at = (uint64_t *)(void *)(r->data + (size_t)id * r->subbuf + DATA);

	__atomic_store_n(ring_commit(r, id), 0, __ATOMIC_RELEASE);
	__atomic_store_n(ring_timestamp(r, id), timestamp, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (size_t i = 0; i < size / sizeof(*at); i++)
		__atomic_store_n(&at[i], timestamp, __ATOMIC_RELAXED);
	__atomic_store_n(ring_commit(r, id), size, __ATOMIC_RELEASE);
}

size_t ring_full(const struct ring *r)
{
	return r->subbuf - DATA;
}

void ring_wrap(const struct ring *r, unsigned newest, uint64_t newest_time)
{
	unsigned id = newest;

	for (uint64_t t = newest_time; t > newest_time - (r->n - 1) * 10; t -= 10) {
		ring_write(r, id, t, ring_full(r));
		id = id > 1 ? id - 1 : r->n - 1;
	}
}

void ring_open_copy(const struct ring *r, bool overrun, struct ring_copy *ret)
{
	assert_int_equal(ring_copy_open(r->fd, r->subbuf, ret), 0);
	assert_int_equal(ring_copy_map(ret, r->fd, SIZE_MAX), 0);
	assert_int_equal(ring_copy_list(ret, overrun), 0);
}
