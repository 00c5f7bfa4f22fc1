/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "recorder/ring-header.h"
#include "recorder/ring-map.h"

#define SUBBUF_MAX  (64 * MIB)
#define SUBBUFS_MAX (UINT32_C(1) << 28)

static int map_meta(int trace_fd, size_t size, const struct ring_meta **ret)
{
	void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, trace_fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	return 0;
}

int ring_map_probe(int trace_fd)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	const struct ring_meta *meta = NULL;
	int r = map_meta(trace_fd, size, &meta);

	if (r >= 0)
		(void)munmap((void *)meta, size);
	return r;
}

static bool is_sane(const struct ring_map *map, unsigned subbuf_size)
{
	const struct ring_meta *m = map->meta;

	return m->subbuf_size == subbuf_size && subbuf_size > DATA_AT &&
	       subbuf_size <= SUBBUF_MAX && m->nr_subbufs > 0 && m->nr_subbufs <= SUBBUFS_MAX &&
	       m->meta_page_size >= sizeof(*m) && m->meta_page_size % map->meta_size == 0;
}

int ring_map_open(int trace_fd, unsigned subbuf_size, struct ring_map *ret)
{
	struct ring_map map = {.meta_size = (size_t)sysconf(_SC_PAGESIZE)};
	int r;

	r = map_meta(trace_fd, map.meta_size, &map.meta);
	if (r < 0)
		return r;
	if (!is_sane(&map, subbuf_size)) {
		ring_map_close(&map);
		return -EBADMSG;
	}
	map.subbuf_size = subbuf_size;
	map.n_subbufs = map.meta->nr_subbufs;
	*ret = map;
	return 0;
}

static void unmap_data(struct ring_map *map)
{
	if (map->data)
		(void)munmap((void *)map->data, map->data_size);
	map->data = NULL;
}

static int map_some(struct ring_map *map, int trace_fd, uint32_t first, unsigned n)
{
	size_t size = (size_t)n * map->subbuf_size;
	off_t at = (off_t)map->meta->meta_page_size + (off_t)first * map->subbuf_size;
	void *p;

	unmap_data(map);
	p = mmap(NULL, size, PROT_READ, MAP_SHARED, trace_fd, at);
	if (p == MAP_FAILED)
		return -errno;
	map->data = p;
	map->data_size = size;
	map->first = first;
	return 0;
}

int ring_map_data(struct ring_map *map, int trace_fd, unsigned n)
{
	return map_some(map, trace_fd, 0, n);
}

void ring_map_close(struct ring_map *map)
{
	unmap_data(map);
	if (map->meta)
		(void)munmap((void *)map->meta, map->meta_size);
	*map = (struct ring_map){0};
}

static const char *subbuf(const struct ring_map *map, uint32_t id)
{
	return map->data + (size_t)(id - map->first) * map->subbuf_size;
}

static uint64_t read_timestamp(const char *p)
{
	return __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_ACQUIRE);
}

static unsigned long read_commit(const char *p)
{
	return __atomic_load_n((const unsigned long *)(const void *)(p + COMMIT_AT),
			       __ATOMIC_ACQUIRE);
}

/* Empty: never written, or begun anew this very moment */
bool ring_map_look(const struct ring_map *map, uint32_t id, struct ring_slot *ret)
{
	const char *p = subbuf(map, id);
	uint64_t timestamp = read_timestamp(p);

	if (timestamp == 0 || (read_commit(p) & COMMIT_MASK) == 0)
		return false;
	*ret = (struct ring_slot){timestamp, id};
	return true;
}

static void reverse(struct ring_slot *slots, size_t from, size_t to)
{
	for (; from + 1 < to; from++, to--)
		SWAP(slots[from], slots[to - 1]);
}

static int compare(const void *a, const void *b)
{
	const struct ring_slot *x = a, *y = b;

	if (x->timestamp != y->timestamp)
		return x->timestamp < y->timestamp ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/*
 * Ids follow each other round the ring, so that time jumps back in one place: begin there. Sorting
 * is for kernels that number otherwise, and for when the writer has overtaken us; with equal
 * timestamps (a coarse clock) it would guess. Return: was it sorted?
 */
static bool oldest_first(struct ring_list *list)
{
	size_t begin = 0, jumps = 0;

	for (size_t i = 1; i < list->n; i++)
		if (list->slots[i].timestamp < list->slots[i - 1].timestamp) {
			begin = i;
			jumps++;
		}
	if (jumps == 0)
		return false;
	if (jumps > 1 || list->slots[list->n - 1].timestamp > list->slots[0].timestamp) {
		qsort(list->slots, list->n, sizeof(*list->slots), compare);
		return true;
	}
	reverse(list->slots, 0, begin);
	reverse(list->slots, begin, list->n);
	reverse(list->slots, 0, list->n);
	return false;
}

/*
 * @empty: those that were, up to @end; @sorted: the writer may have been elsewhere too. The
 * earliest of what has been written in such places since is what the list lacks.
 */
static size_t find_hole(const struct ring_map *map, const struct ring_list *list,
			const struct ring_slot *empty, const struct ring_slot *end, bool sorted)
{
	uint64_t missing = UINT64_MAX;
	struct ring_slot slot;

	for (; empty < end; empty++)
		if (ring_map_look(map, empty->id, &slot))
			missing = MIN(missing, slot.timestamp);
	for (size_t i = 0; sorted && i < list->n; i++) {
		uint64_t now = read_timestamp(subbuf(map, list->slots[i].id));

		if (now != list->slots[i].timestamp)
			missing = MIN(missing, now);
	}
	for (size_t i = 0; i < list->n; i++)
		if (list->slots[i].timestamp >= missing)
			return i;
	return SIZE_MAX;
}

/* There is room for it */
static void add_reader(const struct ring_map *map, uint32_t id, bool overrun,
		       struct ring_list *list)
{
	struct ring_slot slot;

	if (id >= map->n_subbufs || !ring_map_look(map, id, &slot))
		return;
	if (list->n == 0 || slot.timestamp >= list->slots[list->n - 1].timestamp) {
		list->slots[list->n++] = slot;
	} else if (!overrun && slot.timestamp <= list->slots[0].timestamp) {
		memmove(list->slots + 1, list->slots, list->n * sizeof(slot));
		list->slots[0] = slot;
		list->n++;
		list->hole += list->hole != SIZE_MAX;
	}
}

int ring_map_list(const struct ring_map *map, bool overrun, struct ring_list *ret)
{
	struct ring_list list = {.slots = calloc(map->n_subbufs, sizeof(*list.slots))};
	struct ring_slot *end = list.slots + map->n_subbufs, *empty = end; /* from behind */
	/* Another program that maps it may have the kernel exchange it meanwhile */
	uint32_t reader = *(volatile const uint32_t *)&map->meta->reader.id;
	bool sorted;

	if (!list.slots)
		return -ENOMEM;
	for (uint32_t id = 0; id < map->n_subbufs; id++) {
		if (id == reader)
			continue;
		if (ring_map_look(map, id, &list.slots[list.n]))
			list.n++;
		else
			(--empty)->id = id;
	}
	sorted = oldest_first(&list);
	list.hole = find_hole(map, &list, empty, end, sorted);
	add_reader(map, reader, overrun, &list);
	*ret = list;
	return 0;
}

/*
 * The last id from @low to below @high whose sub-buffer is not empty and begins at @from to @to, if
 * all those of which this is so come first. One is mapped at a time. Return: 1, 0 there is none,
 * negative errno.
 */
static int search(struct ring_map *map, int trace_fd, uint32_t low, uint32_t high, uint64_t from,
		  uint64_t to, struct ring_slot *ret)
{
	int found = 0;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		struct ring_slot slot;
		int r = map_some(map, trace_fd, middle, 1);

		if (r < 0)
			return r;
		if (ring_map_look(map, middle, &slot) && slot.timestamp >= from &&
		    slot.timestamp <= to) {
			*ret = slot;
			found = 1;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return found;
}

/* Those of @first to @last, as they are mapped; @from: what the first one was */
static int list_some(const struct ring_map *map, const struct ring_slot *first, uint32_t last,
		     struct ring_list *ret)
{
	struct ring_list list = {.hole = SIZE_MAX};

	list.slots = calloc(last - first->id + 1, sizeof(*list.slots));
	if (!list.slots)
		return -ENOMEM;
	for (uint32_t id = first->id; id <= last; id++) {
		if (!ring_map_look(map, id, &list.slots[list.n]))
			break;
		if (list.n > 0 && list.slots[list.n].timestamp < list.slots[list.n - 1].timestamp)
			break;
		list.n++;
	}
	/* The writer comes by there first */
	if (list.n == 0 || !ring_map_holds(map, first)) {
		free(list.slots);
		return 0;
	}
	*ret = list;
	return 1;
}

int ring_map_newer(struct ring_map *map, int trace_fd, uint64_t from_nsec, struct ring_list *ret)
{
	struct ring_slot first, last, reader;
	int r;

	/* The reader's is the first one then, and not in the ring */
	if (*(volatile const uint32_t *)&map->meta->reader.id != 0)
		return 0;
	r = search(map, trace_fd, 1, map->n_subbufs, 0, from_nsec, &first);
	if (r > 0)
		r = search(map, trace_fd, first.id, map->n_subbufs, first.timestamp, UINT64_MAX,
			   &last);
	if (r <= 0)
		return r;
	r = map_some(map, trace_fd, 0, 1);
	if (r < 0)
		return r;
	/* What is written to now, if the ring's were all read */
	if (ring_map_look(map, 0, &reader) && reader.timestamp >= first.timestamp)
		return 0;
	r = map_some(map, trace_fd, first.id, last.id - first.id + 1);
	return r < 0 ? r : list_some(map, &first, last.id, ret);
}

bool ring_map_holds(const struct ring_map *map, const struct ring_slot *slot)
{
	return read_timestamp(subbuf(map, slot->id)) == slot->timestamp;
}

bool ring_map_copy(const struct ring_map *map, const struct ring_slot *slot, char *to)
{
	const char *p = subbuf(map, slot->id);
	unsigned long commit = read_commit(p);
	size_t events = commit & COMMIT_MASK;
	size_t size = events + (commit & STORED ? sizeof(long) : 0);

	if (!ring_map_holds(map, slot) || events == 0 || size > map->subbuf_size - DATA_AT)
		return false;
	memcpy(to, &slot->timestamp, sizeof(slot->timestamp));
	memcpy(to + COMMIT_AT, &commit, sizeof(commit));
	memcpy(to + DATA_AT, p + DATA_AT, size);
	memset(to + DATA_AT + size, 0, map->subbuf_size - DATA_AT - size);
	/* The body before the header's second look */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return (read_commit(p) & COMMIT_MASK) >= events && ring_map_holds(map, slot);
}
