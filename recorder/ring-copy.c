/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "recorder/ring-copy.h"
#include "recorder/ring-header.h"

int ring_copy_open(int trace_fd, unsigned subbuf_size, struct ring_copy *ret)
{
	struct ring_copy copy = {0};
	int r = ring_map_open(trace_fd, subbuf_size, &copy.map);

	if (r >= 0)
		*ret = copy;
	return r;
}

int ring_copy_map(struct ring_copy *copy, int trace_fd, size_t n)
{
	return ring_map_data(&copy->map, trace_fd, (unsigned)MIN(n, (size_t)copy->map.n_subbufs));
}

void ring_copy_head(struct ring_copy *copy, char *to, size_t max, size_t *n)
{
	size_t mapped = copy->map.data_size / copy->map.subbuf_size;

	while (*n < max && copy->head_seen + 2 < mapped) {
		struct ring_slot slot = {0}, next = {0};
		bool whole = ring_map_look(&copy->map, ++copy->head_seen, &slot);

		/* The writer may have come by; and time goes back behind one that is not the
		 * oldest any more */
		if (slot.timestamp != copy->head_next || slot.timestamp < copy->head.timestamp)
			*n = 0;
		whole = whole && ring_map_copy(&copy->map, &slot, to + *n * copy->map.subbuf_size);
		/* As long as this one is there, that is the one that follows it */
		(void)ring_map_look(&copy->map, copy->head_seen + 1, &next);
		whole = whole && ring_map_holds(&copy->map, &slot);
		*n = whole ? *n + 1 : 0;
		copy->head = slot;
		copy->head_next = next.timestamp;
	}
}

int ring_copy_list(struct ring_copy *copy, bool overrun)
{
	int r = ring_map_list(&copy->map, overrun, &copy->list);

	if (r < 0)
		return r;
	copy->end = copy->list.n;
	/* The reader's is not overwritten with the others */
	copy->overtaken = copy->end > 0 && copy->list.slots[0].id == copy->map.meta->reader.id;
	return 0;
}

int ring_copy_newer(struct ring_copy *copy, int trace_fd, bool overrun, uint64_t from_nsec)
{
	int r = ring_map_newer(&copy->map, trace_fd, from_nsec, &copy->list);

	if (r > 0) {
		copy->end = copy->list.n;
		return 0;
	}
	if (r >= 0)
		r = ring_copy_map(copy, trace_fd, SIZE_MAX);
	if (r >= 0)
		r = ring_copy_list(copy, overrun);
	if (r >= 0)
		ring_copy_range(copy, from_nsec, UINT64_MAX);
	return r;
}

void ring_copy_join(struct ring_copy *copy, size_t *n)
{
	const struct ring_slot *slots = copy->list.slots, *head = &copy->head;
	size_t next;
	bool joins = *n > 0 && copy->list.n > 0 && copy->next == 0 && slots[0].id > 0 &&
		     slots[0].id <= head->id + 1;

	/* Some or all of them may have been overwritten since, but nothing behind them */
	if (joins) {
		next = head->id + 1 - slots[0].id;
		joins = next < copy->end && next <= copy->list.hole &&
			slots[next].id == head->id + 1 &&
			slots[next].timestamp == copy->head_next &&
			slots[next].timestamp >= head->timestamp &&
			(next == 0 || (slots[next - 1].id == head->id &&
				       slots[next - 1].timestamp == head->timestamp));
	}
	if (joins)
		copy->next = next;
	else
		*n = 0;
}

void ring_copy_close(struct ring_copy *copy)
{
	ring_map_close(&copy->map);
	free(copy->list.slots);
	copy->list = (struct ring_list){0};
	copy->next = copy->end = copy->overtaken = 0;
}

/* How many items begin at or before @nsec */
static size_t count_until(const void *items, size_t n, uint64_t (*timestamp)(const void *, size_t),
			  uint64_t nsec)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (timestamp(items, middle) <= nsec)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void ring_list_range(const void *items, size_t n,
		     uint64_t (*timestamp)(const void *items, size_t i), uint64_t from_nsec,
		     uint64_t to_nsec, size_t *ret_begin, size_t *ret_end)
{
	size_t before = count_until(items, n, timestamp, from_nsec);

	*ret_begin = before > 0 ? before - 1 : 0;
	*ret_end = MAX(count_until(items, n, timestamp, to_nsec), *ret_begin);
}

static uint64_t slot_timestamp(const void *items, size_t i)
{
	const struct ring_slot *slots = items;

	return slots[i].timestamp;
}

void ring_copy_range(struct ring_copy *copy, uint64_t from_nsec, uint64_t to_nsec)
{
	ring_list_range(copy->list.slots, copy->list.n, slot_timestamp, from_nsec, to_nsec,
			&copy->next, &copy->end);
}

size_t ring_copy_left(const struct ring_copy *copy)
{
	return copy->end - copy->next;
}

size_t ring_copy_lead(struct ring_copy *copy)
{
	while (copy->overtaken < copy->next &&
	       !ring_map_holds(&copy->map, &copy->list.slots[copy->overtaken]))
		copy->overtaken++;
	return copy->next - copy->overtaken;
}

static void mark_gap(char *subbuf)
{
	unsigned long commit;

	memcpy(&commit, subbuf + COMMIT_AT, sizeof(commit));
	commit |= MISSED;
	memcpy(subbuf + COMMIT_AT, &commit, sizeof(commit));
}

/*
 * What is behind it is later than the trigger: wanted if that is most of what is left, and as far
 * as one follows the other. @older: so many have been copied.
 */
static void end_at_hole(struct ring_copy *copy, size_t older)
{
	const struct ring_slot *slots = copy->list.slots;
	size_t end = copy->next;

	do
		end++;
	while (end < copy->end && slots[end].id == slots[end - 1].id + 1);
	copy->end = older < end - copy->next ? end : copy->next;
	copy->gap |= older > 0;
}

void ring_copy_begin(struct ring_copy *copy, char *to, size_t *n, size_t until)
{
	size_t size = copy->map.subbuf_size;

	while (*n < until && copy->next < copy->end) {
		char *at = to + *n * size;

		if (copy->next == copy->list.hole) {
			end_at_hole(copy, copy->handed_out + *n);
			if (copy->next == copy->end)
				break;
		}
		if (ring_map_copy(&copy->map, &copy->list.slots[copy->next++], at)) {
			if (copy->gap)
				mark_gap(at);
			copy->gap = false;
			(*n)++;
			continue;
		}
		copy->torn++;
		copy->gap = copy->handed_out > 0;
		/* Begin later rather than with a hole */
		if (!copy->handed_out) {
			copy->torn += *n;
			*n = 0;
		}
	}
}

size_t ring_copy_fill(struct ring_copy *copy, char *to, size_t max)
{
	size_t n = 0;

	ring_copy_begin(copy, to, &n, max);
	copy->handed_out += n;
	if (copy->next == copy->end)
		ring_copy_close(copy);
	return n;
}
