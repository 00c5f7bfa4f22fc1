/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading the frame of a trace.dat: header, sections, options and CPU tables; formats/trace-dat.h
 * draws it. Texts and sub-buffers are not loaded: the caller gets their places and reads what it
 * wants. Versions 6 and 7 of any byte order and long size; version 7 is shown as one of version 6
 * (formats/trace-dat-v7.h), so that all offsets here are those of trace_dat_read(), and only
 * trace_dat_place() knows where that is in the file. Bytes nobody vouches for are fine: everything
 * is checked against the file's size. Uses pread only, so a file cut while it is read is an error,
 * not SIGBUS. Owner: the caller; an object belongs to one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "basic/fault.h"
#include "basic/macro.h"
#include "formats/subbuf.h"
#include "formats/trace-dat-damage.h"
#include "formats/trace-dat.h"

struct trace_dat_data;

/* A piece of the file; text is without its size word */
struct trace_dat_extent {
	uint64_t offset;
	uint64_t size;
};

/* An events/SYSTEM/NAME/format text */
struct trace_dat_format {
	struct trace_dat_extent text;
	uint32_t system; /* index in systems[] */
};

struct trace_dat_option_place {
	uint16_t id;
	struct trace_dat_extent data; /* behind id and size */
};

/* A section of version 7 that is not read here, as those of BTF and modules by trace-cmd 3.4 */
struct trace_dat_kept {
	uint16_t id; /* of it, and of the option that names it */
	struct trace_dat_extent data;
};

/* A CPU's entry in a table, as the file has it: see trace_dat_check_region() */
struct trace_dat_region {
	uint64_t entry; /* where the 16-byte entry (offset, size) is */
	uint64_t offset;
	uint64_t size;
};

/* A ring buffer's data: the file's own (name "") first, then one for each BUFFER option */
struct trace_dat_buffer {
	char *name;
	struct trace_dat_extent table;	  /* from the "flyrecord" word to the last entry */
	struct trace_dat_region *regions; /* n_cpus of them, by CPU */
};

struct trace_dat {
	char *path; /* for messages */
	int fd;
	bool own_fd;
	uint64_t file_size; /* when opened; version 7: of what it is shown as */

	unsigned version;	     /* 6 or 7 */
	struct trace_dat_data *data; /* of version 7: its bytes; else NULL */
	struct damages damages;
	bool big_endian;
	unsigned long_size;
	uint32_t page_size; /* the file header's, by which readers step through a region */
	uint64_t page_size_offset;
	struct subbuf_layout layout; /* size: page_size, the rest: header_page */
	uint32_t header_page_subbuf; /* sub-buffer size as header_page gives it */

	struct trace_dat_extent header_page, header_event;
	char **systems; /* systems[0] is "ftrace" */
	size_t n_systems;
	struct trace_dat_format *formats;
	size_t n_formats;
	struct trace_dat_extent kallsyms, printk_formats, cmdlines;
	struct trace_dat_kept *kept; /* for who writes version 7; 6 has no place for them */
	size_t n_kept;
	struct trace_dat_extent own; /* see trace_dat_own_place(); its size 0: none */

	uint32_t n_cpus;
	uint64_t n_cpus_offset;
	struct trace_dat_option_place *options;
	size_t n_options;
	uint64_t options_end; /* where the closing zero id is; 0: no options */
	struct trace_dat_buffer *buffers;
	size_t n_buffers;
	/* The trace_clock text that readers expect behind the first table if there is a TRACECLOCK
	 * option; size 0 if there is none or it does not fit */
	struct trace_dat_extent clock;
};

/**
 * trace_dat_open() - open and read the frame of @path
 * Return: 0 or negative errno with a line in @why that names file, offset and reason: -EBADMSG what
 * is there cannot be right, -ENODATA the file ends too early, -EOPNOTSUPP a kind of trace.dat that
 * is not supported.
 */
int trace_dat_open(const char *path, struct trace_dat **ret, struct fault *why);

/**
 * trace_dat_open_fd() - the same for an open file
 * @fd: stays the caller's and must stay open as long as @ret lives
 * @path: for messages
 */
int trace_dat_open_fd(int fd, const char *path, struct trace_dat **ret, struct fault *why);

/**
 * trace_dat_open_frame() - the same for a frame in a merged file (formats/own-hosts.h)
 * @at: where in the file it begins; version 6
 */
int trace_dat_open_frame(int fd, const char *path, uint64_t at, struct trace_dat **ret,
			 struct fault *why);

/**
 * trace_dat_version() - the version alone, also of files that trace_dat_open() refuses
 * @ret: 6 or 7
 * Return: 0 or negative errno if this is no trace.dat.
 */
int trace_dat_version(int fd, unsigned *ret);

struct trace_dat *trace_dat_free(struct trace_dat *dat);
DEFINE_CLEANUP(struct trace_dat *, trace_dat_free)
#define _cleanup_trace_dat_ _cleanup_(trace_dat_freep)

/**
 * trace_dat_read() - bytes by their offset, which in a compressed file have to be unpacked
 * Return: 0 or negative errno with file, offset and reason in @why.
 */
int trace_dat_read(const struct trace_dat *dat, void *bytes, size_t size, uint64_t offset,
		   struct fault *why);

/**
 * trace_dat_read_some() - the same, but as many as can be read
 * @ret: bytes that were read, at least one; fewer than @size if what follows is damaged. With
 *	-EBADMSG: so many from @offset on are damaged, others may be behind them
 */
int trace_dat_read_some(const struct trace_dat *dat, void *bytes, size_t size, uint64_t offset,
			size_t *ret, struct fault *why);

/**
 * trace_dat_timestamp() - of the sub-buffer at @offset, or where that is damaged of the next one
 * @end: of the region
 * @ret: UINT64_MAX: none follows
 */
int trace_dat_timestamp(const struct trace_dat *dat, uint64_t offset, uint64_t end, uint64_t *ret,
			struct fault *why);

/**
 * trace_dat_search() - how many sub-buffers of a region, or of a part of one, begin before a time
 * @before: does one that begins at @timestamp? If so then all in front of it do. UINT64_MAX is one
 *	    that is damaged with nothing behind it.
 * Where a file of version 7 has an index at most one chunk is unpacked.
 */
int trace_dat_search(const struct trace_dat *dat, const struct trace_dat_extent *region,
		     bool (*before)(const void *userdata, uint64_t timestamp), const void *userdata,
		     uint64_t *ret, struct fault *why);

struct trace_dat_at {
	char text[64];
};

/**
 * trace_dat_at() - where an offset is in the file, for messages: "0x1000", or where the compressed
 * bytes begin and how far behind it is when they are unpacked: "0x1000 (unpacked 0x20)"
 */
struct trace_dat_at trace_dat_at(const struct trace_dat *dat, uint64_t offset);

/**
 * trace_dat_load() - read a text or an option's data
 * @max: more bytes than this is -EFBIG
 * @ret: malloc'ed, with a NUL byte behind its extent->size bytes
 */
int trace_dat_load(const struct trace_dat *dat, const struct trace_dat_extent *extent, uint64_t max,
		   char **ret, struct fault *why);

/**
 * trace_dat_load_option() - the data of the first option of a kind, as trace_dat_load() has it
 * Return: 1, 0 there is none, or negative errno.
 */
int trace_dat_load_option(const struct trace_dat *dat, enum trace_dat_option id, uint64_t max,
			  char **ret, struct fault *why);

/**
 * trace_dat_next_note() - the next CPUSTAT text that begins with certain words
 * @from: index of the option to look from; set behind the one that was found
 * @ret: malloc'ed: what follows those words
 * Return: 1, 0 there is none, or negative errno.
 */
int trace_dat_next_note(const struct trace_dat *dat, const char *words, size_t *from, char **ret,
			struct fault *why);

/**
 * trace_dat_note_number() - that of a line "KEY: NUMBER" in such a text
 */
bool trace_dat_note_number(const char *text, const char *key, uint64_t *ret);

/**
 * trace_dat_from() - from when on a snapshot has all of each CPU, by its clock, nanoseconds
 * Return: 1, 0 the file does not tell: as far as it has anything; or negative errno.
 */
int trace_dat_from(const struct trace_dat *dat, uint64_t *ret, struct fault *why);

/**
 * trace_dat_date() - realtime minus the file's clock, microseconds
 * Return: 1, 0 the file does not tell, or negative errno.
 */
int trace_dat_date(const struct trace_dat *dat, int64_t *ret, struct fault *why);

/**
 * trace_dat_clock() - its text of trace_clock, as the kernel had it
 * @ret: malloc'ed; "": it has none
 */
int trace_dat_clock(const struct trace_dat *dat, char **ret, struct fault *why);

/**
 * trace_dat_clock_name() - the clock in use in a text of trace_clock: "local [mono] boot" -> "mono"
 * Return: malloc'ed; "" if none is; NULL without memory.
 */
char *trace_dat_clock_name(const char *text);

/**
 * trace_dat_host() - the name of the machine that it was made on, by the option UNAME
 * @ret: malloc'ed; "unknown": the file does not tell
 */
int trace_dat_host(const struct trace_dat *dat, char **ret, struct fault *why);

/**
 * trace_dat_own_place() - flyrec's own section of a file of version 7
 * @place: of its content in the file itself, not an offset for trace_dat_read(); @size: there
 * Return: 0, or -ENOENT: it has none, or is of version 6, where only its magic tells the place.
 */
int trace_dat_own_place(const struct trace_dat *dat, uint64_t *place, uint64_t *size);

/**
 * trace_dat_check_region() - may a region's bytes be read: aligned, whole sub-buffers, behind the
 * tables, inside the file
 * Return: 0, or -EBADMSG with file, the table entry's offset and the reason in @why. A region
 * of size 0 is always right.
 */
int trace_dat_check_region(const struct trace_dat *dat, const struct trace_dat_buffer *buffer,
			   unsigned cpu, struct fault *why);

/**
 * trace_dat_u16() - a number in the file's byte order; _u32 and _u64 likewise
 */
uint16_t trace_dat_u16(const struct trace_dat *dat, const void *bytes);
uint32_t trace_dat_u32(const struct trace_dat *dat, const void *bytes);
uint64_t trace_dat_u64(const struct trace_dat *dat, const void *bytes);

/**
 * trace_dat_put() - the other way round: @size bytes, 2, 4 or 8, in the file's byte order
 */
void trace_dat_put(const struct trace_dat *dat, void *bytes, size_t size, uint64_t value);
