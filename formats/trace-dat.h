/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The trace.dat format, version 6, as trace-cmd.dat(5) gives it: the only place with its constants.
 *
 *   "\x17\x08\x44tracing" "6\0"  endian:u8  long_size:u8  page_size:u32
 *   "header_page\0"  size:u64  text          events/header_page
 *   "header_event\0" size:u64  text          events/header_event
 *   count:u32  { size:u64 text }*            events/ftrace/NAME/format
 *   systems:u32 { name\0 count:u32 { size:u64 text }* }*   events/SYSTEM/NAME/format
 *   size:u32  text                           /proc/kallsyms
 *   size:u32  text                           printk_formats
 *   size:u64  text                           saved_cmdlines, "PID COMM\n" lines
 *   cpus:u32
 *   "options  \0" { id:u16 size:u32 data }* 0:u16
 *   "flyrecord\0" { offset:u64 size:u64 }*cpus
 *   padding to a page
 *   one page-aligned region per CPU
 *
 * Another ring buffer (an instance) is one more "flyrecord" with a table of all CPUs and regions;
 * an option BUFFER has its place and its name.
 *
 * All numbers in the file's byte order. "page_size" is the sub-buffer size of the instance.
 */
#pragma once

#include <stdint.h>

#define TRACE_DAT_MAGIC	       "\x17\x08\x44tracing"
#define TRACE_DAT_MAGIC_SIZE   10
#define TRACE_DAT_HEADER_PAGE  "header_page"  /* 12 bytes with the NUL */
#define TRACE_DAT_HEADER_EVENT "header_event" /* 13 bytes with the NUL */
#define TRACE_DAT_OPTIONS      "options  "    /* these three: 10 bytes with the NUL */
#define TRACE_DAT_LATENCY      "latency  "
#define TRACE_DAT_FLYRECORD    "flyrecord"
#define TRACE_DAT_WORD_SIZE    10

/* An entry of the CPU table: offset:u64 size:u64; where a CPU's is, and its size */
#define TRACE_DAT_ENTRY_SIZE 16

static inline uint64_t trace_dat_entry_at(uint64_t table_at, unsigned cpu)
{
	return table_at + (uint64_t)cpu * TRACE_DAT_ENTRY_SIZE;
}

static inline uint64_t trace_dat_size_at(uint64_t table_at, unsigned cpu)
{
	return trace_dat_entry_at(table_at, cpu) + 8;
}

/*
 * A CPUSTAT text of flyrec's own that begins so has a line for each kprobe and uprobe whose events
 * may be in the file, as dynamic_events has it; `trace-cmd report --stat` shows it. Behind them are
 * the programs that uprobes are in, "build-id HEX PATH": an offset is good for one build only.
 */
#define TRACE_DAT_PROBES   "Probes:\n"
#define TRACE_DAT_BUILD_ID "build-id "

/*
 * In a CPU's CPUSTAT text of a snapshot: from when on (its clock, nanoseconds) the file has all
 * that was recorded, of each CPU. Some begin earlier, as it is made of whole sub-buffers.
 */
#define TRACE_DAT_FROM "flyrec from: "

/* CPUSTAT texts after one of "\nBuffer: NAME\n\n" are of that buffer; trace-cmd writes it so */
#define TRACE_DAT_BUFFER_STATS "\nBuffer: "

/* Option ids of trace-cmd (lib/trace-cmd/include/private/trace-cmd-private.h names them) */
enum trace_dat_option {
	TRACE_DAT_OPTION_END = 0,
	TRACE_DAT_OPTION_DATE = 1,	 /* ASCII "0x%x": microseconds added to each timestamp */
	TRACE_DAT_OPTION_CPUSTAT = 2,	 /* free text, NUL-terminated, one option a CPU */
	TRACE_DAT_OPTION_BUFFER = 3,	 /* u64 offset, name, NUL: another flyrecord part */
	TRACE_DAT_OPTION_TRACECLOCK = 4, /* the trace_clock file, "local [mono]\n" */
	TRACE_DAT_OPTION_UNAME = 5,
	TRACE_DAT_OPTION_HOOK = 6,
	TRACE_DAT_OPTION_OFFSET = 7,   /* ASCII: nanoseconds added to each timestamp */
	TRACE_DAT_OPTION_CPUCOUNT = 8, /* u32 */
	TRACE_DAT_OPTION_VERSION = 9,  /* text: what wrote the file */
	TRACE_DAT_OPTION_PROCMAPS = 10,
	TRACE_DAT_OPTION_TRACEID = 11,	  /* u64 */
	TRACE_DAT_OPTION_TIME_SHIFT = 12, /* of a KVM guest: formats/time-shift.h */
	TRACE_DAT_OPTION_TSC2NSEC = 14,	  /* mult:u32 shift:u32 offset:u64, of the clock x86-tsc */
	TRACE_DAT_OPTION_SECTIONS = 15,	  /* version 7: from here on the ids of sections */
};
