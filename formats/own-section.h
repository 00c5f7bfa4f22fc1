/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrec's own section of a trace.dat: what the format has no place for. Readers of the format do
 * not see it.
 *
 *   magic[16] "flyrec own 1\n"  size:u32 (of all of it)  checksum:u32  zero[24]
 *   { kind:u32 room:u32 size:u32 checksum:u32 data[room] }*
 *   kind:u32 0, zero[12]
 *
 * In the file's byte order. The checksum at the beginning is of magic, size, and the kind and room
 * of each entry, which never change; an entry's is of its first own_section_checked() bytes. So an
 * entry can be written in place, as long as it fits into its room.
 *
 * Version 6: at a multiple of 4096 in the padding between the CPU table, and the live block
 * (formats/live-block.h), and the first region. Version 7: a section that no option names
 * (TRACE_DAT_V7_OWN). Entries begin at multiples of 64 bytes from the beginning, less 16: so that
 * no record of 64 bytes lies in two sectors of a disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basic/fault.h"
#include "formats/trace-dat-read.h"

#define OWN_SECTION_MAGIC "flyrec own 1\n"
#define OWN_SECTION_ALIGN 4096
#define OWN_SECTION_REACH (64 * MIB) /* so far behind the table it may begin */
#define OWN_SECTION_MAX	  (64 * MIB)
#define OWN_SECTION_HEAD  48
#define OWN_ENTRY_HEAD	  16
#define OWN_RECORD_ALIGN  64

/* Others are kept as they are by whoever copies them */
enum own_kind {
	OWN_END = 0,
	OWN_TASKS = 1,	  /* formats/own-tasks.h */
	OWN_CLOCKS = 2,	  /* formats/own-clocks.h */
	OWN_CAUSE = 3,	  /* formats/own-cause.h */
	OWN_INDEX = 4,	  /* times of the chunks of a compressed file */
	OWN_FINDINGS = 5, /* what analysis said */
	OWN_JOURNAL = 6,  /* lines of the system journal */
	OWN_SHED = 7,	  /* formats/own-shed.h */
	OWN_HOSTS = 8,	  /* formats/own-hosts.h */
};

struct own_entry {
	uint32_t kind; /* an enum own_kind, or another */
	uint32_t room; /* bytes that it may have in place; to be built: at least */
	uint32_t size;
	const uint8_t *data;

	/* of one that was read */
	uint64_t place; /* of its head, in the file itself */
	bool damaged;	/* its checksum does not match */
};

/* As it is in a file */
struct own_section {
	uint64_t place; /* in the file itself: not an offset of trace_dat_read() */
	uint32_t size;
	uint8_t *bytes;
	struct own_entry *entries; /* into bytes */
	size_t n;
};

void own_section_done(struct own_section *section);
#define _cleanup_own_section_ _cleanup_(own_section_done)

/**
 * own_section_kind() - its name, "clocks"; "?" of one that is not known
 */
const char *own_section_kind(uint32_t kind);

/**
 * own_section_checked() - how many bytes of an entry's data its checksum is of
 * All but of kinds that are made of records, which have checksums of their own: such a record can
 * be written without the others.
 */
uint32_t own_section_checked(uint32_t kind, uint32_t size);

/**
 * own_section_load() - all of a file's, for who copies or checks it
 * @ret: undo with own_section_done(); entries may be damaged
 * Return: 0; -ENOENT: it has none; -EBADMSG: what is at its place makes no sense; or another
 * negative errno with file, offset and reason in @why.
 */
int own_section_load(const struct trace_dat *dat, struct own_section *ret, struct fault *why);

/**
 * own_section_read() - the data of one kind
 * @ret: malloc'ed, with a NUL byte behind its @ret_size bytes
 * Return: 0; -ENOENT: there is none, and nothing in @why; -EBADMSG: it is damaged; or another
 * negative errno.
 */
int own_section_read(const struct trace_dat *dat, enum own_kind kind, uint8_t **ret,
		     size_t *ret_size, struct fault *why);

/**
 * own_section_build() - the bytes of a section
 * @entries: kind, room, size and data; with neither room nor size they are left out. Places are
 *set: of their heads, from the section's beginning
 * @ret: malloc'ed
 * Return: 0, -ENOMEM, or -EFBIG.
 */
int own_section_build(struct own_entry *entries, size_t n, bool big_endian, uint8_t **ret,
		      size_t *ret_size);

/**
 * own_section_write() - other data of an entry, in place
 * @dat: of a file that is open for writing, too; its entry may be damaged
 * Not synced. Return: 0; -ENOENT: no room was reserved; -ENOSPC: not enough; or another negative
 * errno with @why.
 */
int own_section_write(const struct trace_dat *dat, enum own_kind kind, const void *data,
		      size_t size, struct fault *why);

/**
 * own_section_put_head() - that of an entry as it is in the file, for who writes it bit by bit
 * @entry: data: own_section_checked() bytes are looked at
 */
void own_section_put_head(const struct own_entry *entry, bool big_endian,
			  uint8_t head[static OWN_ENTRY_HEAD]);

/* --- numbers in the file's byte order */

uint32_t own_u32(bool big_endian, const void *bytes);
uint64_t own_u64(bool big_endian, const void *bytes);
void own_put_u32(bool big_endian, void *bytes, uint32_t value);
void own_put_u64(bool big_endian, void *bytes, uint64_t value);
