/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/crc32.h"
#include "basic/macro.h"
#include "formats/own-clocks.h"
#include "formats/own-section.h"

#define AT_BOOT_ID  32
#define AT_RECORD   48
#define AT_N	    52
#define AT_CHECKSUM 60 /* in a record */

#define FIRST (OWN_CLOCKS_MAX / 2) /* records that stay */

void own_clocks_init(struct own_clocks *clocks, const char *clock, const uint8_t boot_id[16])
{
	*clocks = (struct own_clocks){};
	(void)strncat(clocks->clock, clock, sizeof(clocks->clock) - 1);
	memcpy(clocks->boot_id, boot_id, sizeof(clocks->boot_id));
}

unsigned own_clocks_add(struct own_clocks *clocks, const struct own_clock *reading)
{
	uint32_t before = clocks->sequence++;
	unsigned slot =
		before < FIRST ? before : FIRST + (before - FIRST) % (OWN_CLOCKS_MAX - FIRST);

	clocks->slots[slot] = *reading;
	clocks->slots[slot].sequence = clocks->sequence;
	return slot;
}

static int by_sequence(const void *a, const void *b)
{
	const struct own_clock *const *x = a, *const *y = b;

	return ((*x)->sequence > (*y)->sequence) - ((*x)->sequence < (*y)->sequence);
}

size_t own_clocks_list(const struct own_clocks *clocks, const struct own_clock **ret)
{
	size_t n = 0;

	for (unsigned i = 0; i < OWN_CLOCKS_MAX; i++)
		if (clocks->slots[i].sequence > 0)
			ret[n++] = &clocks->slots[i];
	qsort(ret, n, sizeof(*ret), by_sequence);
	return n;
}

void own_clocks_put_record(const struct own_clock *reading, bool big_endian,
			   uint8_t bytes[static OWN_CLOCKS_RECORD])
{
	const uint64_t times[] = {reading->realtime, reading->trace, reading->mono_raw,
				  reading->boot};
	const uint32_t rest[] = {reading->width,	 reading->maxerror, reading->status,
				 (uint32_t)reading->tai, reading->at,	    reading->flags,
				 reading->sequence};

	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		own_put_u64(big_endian, bytes + 8 * i, times[i]);
	for (size_t i = 0; i < ARRAY_SIZE(rest); i++)
		own_put_u32(big_endian, bytes + 32 + 4 * i, rest[i]);
	own_put_u32(big_endian, bytes + AT_CHECKSUM, crc32_add(0, bytes, AT_CHECKSUM));
}

static void take_record(const uint8_t *bytes, bool big_endian, struct own_clock *ret)
{
	const uint8_t *rest = bytes + 32;

	*ret = (struct own_clock){
		.realtime = own_u64(big_endian, bytes),
		.trace = own_u64(big_endian, bytes + 8),
		.mono_raw = own_u64(big_endian, bytes + 16),
		.boot = own_u64(big_endian, bytes + 24),
		.width = own_u32(big_endian, rest),
		.maxerror = own_u32(big_endian, rest + 4),
		.status = own_u32(big_endian, rest + 8),
		.tai = (int32_t)own_u32(big_endian, rest + 12),
		.at = own_u32(big_endian, rest + 16),
		.flags = own_u32(big_endian, rest + 20),
		.sequence = own_u32(big_endian, rest + 24),
	};
}

void own_clocks_put(const struct own_clocks *clocks, bool big_endian,
		    uint8_t bytes[static OWN_CLOCKS_SIZE])
{
	memset(bytes, 0, OWN_CLOCKS_SIZE);
	memcpy(bytes, clocks->clock, sizeof(clocks->clock));
	memcpy(bytes + AT_BOOT_ID, clocks->boot_id, sizeof(clocks->boot_id));
	own_put_u32(big_endian, bytes + AT_RECORD, OWN_CLOCKS_RECORD);
	own_put_u32(big_endian, bytes + AT_N, OWN_CLOCKS_MAX);
	for (unsigned i = 0; i < OWN_CLOCKS_MAX; i++)
		if (clocks->slots[i].sequence > 0)
			own_clocks_put_record(&clocks->slots[i], big_endian,
					      bytes + OWN_CLOCKS_HEAD + i * OWN_CLOCKS_RECORD);
}

static bool is_empty(const uint8_t *record)
{
	return record[0] == 0 && memcmp(record, record + 1, OWN_CLOCKS_RECORD - 1) == 0;
}

int own_clocks_take(const uint8_t *bytes, size_t size, bool big_endian, struct own_clocks *ret,
		    void (*told)(void *userdata, size_t at), void *userdata)
{
	struct own_clocks c = {};

	if (size != OWN_CLOCKS_SIZE ||
	    own_u32(big_endian, bytes + AT_RECORD) != OWN_CLOCKS_RECORD ||
	    own_u32(big_endian, bytes + AT_N) != OWN_CLOCKS_MAX || bytes[AT_BOOT_ID - 1] != 0)
		return -EBADMSG;
	memcpy(c.clock, bytes, sizeof(c.clock));
	memcpy(c.boot_id, bytes + AT_BOOT_ID, sizeof(c.boot_id));
	for (unsigned i = 0; i < OWN_CLOCKS_MAX; i++) {
		size_t at = OWN_CLOCKS_HEAD + i * OWN_CLOCKS_RECORD;

		if (is_empty(bytes + at))
			continue;
		if (crc32_add(0, bytes + at, AT_CHECKSUM) !=
		    own_u32(big_endian, bytes + at + AT_CHECKSUM)) {
			if (told)
				told(userdata, at);
			continue;
		}
		take_record(bytes + at, big_endian, &c.slots[i]);
		c.sequence = MAX(c.sequence, c.slots[i].sequence);
	}
	*ret = c;
	return 0;
}

const char *own_clock_at_name(uint32_t at)
{
	static const char *const names[] = {"?", "begin", "end", "step", "snapshot"};

	return at < ARRAY_SIZE(names) ? names[at] : names[0];
}
