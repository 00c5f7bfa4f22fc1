/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic/crc32.h"
#include "basic/io.h"
#include "formats/own-clocks.h"
#include "formats/own-section.h"

#define AT_SIZE	    16 /* in the head */
#define AT_CHECKSUM 20

uint32_t own_u32(bool big_endian, const void *bytes)
{
	uint32_t v;

	memcpy(&v, bytes, sizeof(v));
	return big_endian ? be32toh(v) : le32toh(v);
}

uint64_t own_u64(bool big_endian, const void *bytes)
{
	uint64_t v;

	memcpy(&v, bytes, sizeof(v));
	return big_endian ? be64toh(v) : le64toh(v);
}

void own_put_u32(bool big_endian, void *bytes, uint32_t value)
{
	value = big_endian ? htobe32(value) : htole32(value);
	memcpy(bytes, &value, sizeof(value));
}

void own_put_u64(bool big_endian, void *bytes, uint64_t value)
{
	value = big_endian ? htobe64(value) : htole64(value);
	memcpy(bytes, &value, sizeof(value));
}

void own_section_done(struct own_section *section)
{
	free(section->entries);
	free(section->bytes);
	*section = (struct own_section){};
}

const char *own_section_kind(uint32_t kind)
{
	static const char *const names[] = {"end",	"tasks",   "clocks", "cause", "index",
					    "findings", "journal", "shed",   "hosts"};

	return kind < ARRAY_SIZE(names) ? names[kind] : "?";
}

uint32_t own_section_checked(uint32_t kind, uint32_t size)
{
	if (kind == OWN_CAUSE || kind == OWN_TASKS)
		return 0;
	return kind == OWN_CLOCKS ? MIN(size, OWN_CLOCKS_HEAD) : size;
}

/* --- reading */

/* Where the first region may begin; in a hostile file anywhere behind the table */
static uint64_t regions_begin(const struct trace_dat *dat, uint64_t table_end)
{
	uint64_t first = dat->file_size;

	for (size_t i = 0; i < dat->n_buffers; i++)
		for (unsigned cpu = 0; cpu < dat->n_cpus; cpu++) {
			uint64_t at = dat->buffers[i].regions[cpu].offset;

			if (at >= table_end)
				first = MIN(first, at);
		}
	return first;
}

/* @ret_max: bytes that it can have */
static int find_section(const struct trace_dat *dat, uint64_t *ret, uint64_t *ret_max)
{
	uint64_t begin, end;

	if (dat->version == 7)
		return trace_dat_own_place(dat, ret, ret_max);
	if (dat->n_buffers == 0)
		return -ENOENT;
	begin = dat->buffers[0].table.offset + dat->buffers[0].table.size;
	end = regions_begin(dat, begin);
	begin = round_up(begin, OWN_SECTION_ALIGN);
	for (uint64_t at = begin;
	     at < end && end - at >= OWN_SECTION_HEAD && at - begin <= OWN_SECTION_REACH;
	     at += OWN_SECTION_ALIGN) {
		char magic[sizeof(OWN_SECTION_MAGIC)];
		int r = io_pread_all(dat->fd, magic, sizeof(magic), at);

		if (r < 0)
			return r == -ENODATA ? -ENOENT : r;
		if (memcmp(magic, OWN_SECTION_MAGIC, sizeof(magic)) == 0) {
			*ret = at;
			*ret_max = end - at;
			return 0;
		}
	}
	return -ENOENT;
}

static int add_entry(struct own_section *s, size_t at, bool big_endian)
{
	const uint8_t *head = s->bytes + at;
	struct own_entry *entry;
	int r = array_grow(&s->entries, s->n, sizeof(*s->entries));

	if (r < 0)
		return r;
	entry = &s->entries[s->n];
	*entry = (struct own_entry){
		.kind = own_u32(big_endian, head),
		.room = own_u32(big_endian, head + 4),
		.size = own_u32(big_endian, head + 8),
		.data = head + OWN_ENTRY_HEAD,
		.place = s->place + at,
	};
	if (entry->room % OWN_ENTRY_HEAD != 0 || entry->size > entry->room ||
	    entry->room > s->size - at - OWN_ENTRY_HEAD)
		return -EBADMSG;
	entry->damaged = crc32_add(0, entry->data, own_section_checked(entry->kind, entry->size)) !=
			 own_u32(big_endian, head + 12);
	s->n++;
	return 0;
}

static int take_entries(const struct trace_dat *dat, struct own_section *s, struct fault *why)
{
	uint32_t checksum = crc32_add(0, s->bytes, AT_CHECKSUM);
	size_t at = OWN_SECTION_HEAD;
	int r = 0;

	while (s->size - at >= OWN_ENTRY_HEAD &&
	       own_u32(dat->big_endian, s->bytes + at) != OWN_END) {
		r = add_entry(s, at, dat->big_endian);
		if (r == -EBADMSG)
			return fault_at(why, r, dat->path, s->place + at,
					"flyrec's own section: an entry of %" PRIu32
					" bytes in room of %" PRIu32 " makes no sense",
					own_u32(dat->big_endian, s->bytes + at + 8),
					own_u32(dat->big_endian, s->bytes + at + 4));
		if (r < 0)
			return fault_errno(why, r, "%s: cannot read flyrec's own section",
					   dat->path);
		checksum = crc32_add(checksum, s->bytes + at, 8);
		at += OWN_ENTRY_HEAD + s->entries[s->n - 1].room;
	}
	if (checksum != own_u32(dat->big_endian, s->bytes + AT_CHECKSUM))
		return fault_at(why, -EBADMSG, dat->path, s->place,
				"flyrec's own section: its checksum does not match");
	return 0;
}

/* Its bytes, as far as its head can be right */
static int read_bytes(const struct trace_dat *dat, uint64_t max, struct own_section *s,
		      struct fault *why)
{
	uint8_t head[OWN_SECTION_HEAD];
	int r = max < sizeof(head) ? -ENODATA : io_pread_all(dat->fd, head, sizeof(head), s->place);

	if (r < 0)
		return fault_at(why, r == -ENODATA ? -EBADMSG : r, dat->path, s->place,
				"flyrec's own section cannot be read: %s", strerror(-r));
	s->size = own_u32(dat->big_endian, head + AT_SIZE);
	if (memcmp(head, OWN_SECTION_MAGIC, sizeof(OWN_SECTION_MAGIC)) != 0)
		return fault_at(why, -EBADMSG, dat->path, s->place,
				"flyrec's own section begins with something else");
	if (s->size < sizeof(head) || s->size % OWN_ENTRY_HEAD != 0 || s->size > max ||
	    s->size > OWN_SECTION_MAX)
		return fault_at(why, -EBADMSG, dat->path, s->place + AT_SIZE,
				"flyrec's own section has %" PRIu32
				" bytes, where there are %" PRIu64,
				s->size, max);
	s->bytes = malloc(s->size);
	r = s->bytes ? io_pread_all(dat->fd, s->bytes, s->size, s->place) : -ENOMEM;
	return r < 0 ? fault_at(why, r == -ENODATA ? -EBADMSG : r, dat->path, s->place,
				"flyrec's own section cannot be read: %s", strerror(-r))
		     : 0;
}

int own_section_load(const struct trace_dat *dat, struct own_section *ret, struct fault *why)
{
	struct own_section s = {};
	uint64_t max;
	int r = find_section(dat, &s.place, &max);

	if (r == -ENOENT)
		return r;
	if (r < 0)
		return fault_errno(why, r, "%s: cannot look for flyrec's own section", dat->path);
	r = read_bytes(dat, max, &s, why);
	if (r >= 0)
		r = take_entries(dat, &s, why);
	if (r < 0) {
		own_section_done(&s);
		return r;
	}
	*ret = s;
	return 0;
}

/* The first one of a kind, or NULL */
static const struct own_entry *find_entry(const struct own_section *s, enum own_kind kind)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->entries[i].kind == kind)
			return &s->entries[i];
	return NULL;
}

int own_section_read(const struct trace_dat *dat, enum own_kind kind, uint8_t **ret,
		     size_t *ret_size, struct fault *why)
{
	_cleanup_own_section_ struct own_section s = {};
	const struct own_entry *entry;
	uint8_t *data;
	int r = own_section_load(dat, &s, why);

	if (r < 0)
		return r;
	entry = find_entry(&s, kind);
	if (!entry || (entry->size == 0 && !entry->damaged)) /* room alone */
		return -ENOENT;
	if (entry->damaged)
		return fault_at(why, -EBADMSG, dat->path, entry->place,
				"flyrec's own section: the checksum of its %s does not match",
				own_section_kind(kind));
	data = malloc((size_t)entry->size + 1);
	if (!data)
		return fault_errno(why, -ENOMEM, "%s: cannot read flyrec's own section", dat->path);
	memcpy(data, entry->data, entry->size);
	data[entry->size] = '\0';
	*ret = data;
	*ret_size = entry->size;
	return 0;
}

/* --- writing */

void own_section_put_head(const struct own_entry *entry, bool big_endian,
			  uint8_t head[static OWN_ENTRY_HEAD])
{
	own_put_u32(big_endian, head, entry->kind);
	own_put_u32(big_endian, head + 4, entry->room);
	own_put_u32(big_endian, head + 8, entry->size);
	own_put_u32(big_endian, head + 12,
		    crc32_add(0, entry->data, own_section_checked(entry->kind, entry->size)));
}

/* Such that the next entry is where it should be */
static uint64_t room_of(const struct own_entry *entry)
{
	uint64_t wanted = MAX(entry->room, entry->size);

	return wanted == 0 ? 0
			   : round_up(OWN_ENTRY_HEAD + wanted, OWN_RECORD_ALIGN) - OWN_ENTRY_HEAD;
}

int own_section_build(struct own_entry *entries, size_t n, bool big_endian, uint8_t **ret,
		      size_t *ret_size)
{
	uint64_t size = OWN_SECTION_HEAD + OWN_ENTRY_HEAD;
	size_t at = OWN_SECTION_HEAD;
	uint32_t checksum;
	uint8_t *bytes;

	for (size_t i = 0; i < n; i++)
		size += room_of(&entries[i]) > 0 ? OWN_ENTRY_HEAD + room_of(&entries[i]) : 0;
	if (size > OWN_SECTION_MAX)
		return -EFBIG;
	bytes = calloc(1, size);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, OWN_SECTION_MAGIC, sizeof(OWN_SECTION_MAGIC));
	own_put_u32(big_endian, bytes + AT_SIZE, (uint32_t)size);
	checksum = crc32_add(0, bytes, AT_CHECKSUM);
	for (size_t i = 0; i < n; i++) {
		struct own_entry *entry = &entries[i];

		entry->room = (uint32_t)room_of(entry);
		if (entry->room == 0)
			continue;
		entry->place = at;
		own_section_put_head(entry, big_endian, bytes + at);
		if (entry->size > 0)
			memcpy(bytes + at + OWN_ENTRY_HEAD, entry->data, entry->size);
		checksum = crc32_add(checksum, bytes + at, 8);
		at += OWN_ENTRY_HEAD + entry->room;
	}
	own_put_u32(big_endian, bytes + AT_CHECKSUM, checksum);
	*ret = bytes;
	*ret_size = size;
	return 0;
}

int own_section_write(const struct trace_dat *dat, enum own_kind kind, const void *data,
		      size_t size, struct fault *why)
{
	_cleanup_own_section_ struct own_section s = {};
	_cleanup_free_ uint8_t *bytes = NULL;
	const struct own_entry *found;
	struct own_entry entry;
	int r = own_section_load(dat, &s, why);

	if (r < 0 && r != -ENOENT)
		return r;
	found = r < 0 ? NULL : find_entry(&s, kind);
	if (!found)
		return fault_set(why, -ENOENT, "%s: no room was reserved for its %s", dat->path,
				 own_section_kind(kind));
	if (size > found->room)
		return fault_set(why, -ENOSPC,
				 "%s: %zu bytes do not fit into the %" PRIu32 " of its %s",
				 dat->path, size, found->room, own_section_kind(kind));
	entry = *found;
	entry.data = data;
	entry.size = (uint32_t)size;
	bytes = malloc(OWN_ENTRY_HEAD + size);
	if (!bytes)
		return fault_errno(why, -ENOMEM, "%s: cannot write its %s", dat->path,
				   own_section_kind(kind));
	own_section_put_head(&entry, dat->big_endian, bytes);
	if (size > 0)
		memcpy(bytes + OWN_ENTRY_HEAD, data, size);
	r = io_pwrite_all(dat->fd, bytes, OWN_ENTRY_HEAD + size, found->place);
	return r < 0 ? fault_errno(why, r, "%s: cannot write its %s", dat->path,
				   own_section_kind(kind))
		     : 0;
}
