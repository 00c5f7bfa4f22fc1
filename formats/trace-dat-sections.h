/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The numbers of trace.dat version 7, which formats/trace-dat-v7.h draws.
 */
#pragma once

enum trace_dat_section {
	TRACE_DAT_SECTION_OPTIONS = 0,
	TRACE_DAT_SECTION_BUFFER = 3,
	TRACE_DAT_SECTION_STRINGS = 15,
	TRACE_DAT_SECTION_HEADERS = 16,
	TRACE_DAT_SECTION_FTRACE = 17,
	TRACE_DAT_SECTION_EVENTS = 18,
	TRACE_DAT_SECTION_KALLSYMS = 19,
	TRACE_DAT_SECTION_PRINTK = 20,
	TRACE_DAT_SECTION_CMDLINES = 21,
	_TRACE_DAT_SECTION_MAX = 22,
};

#define TRACE_DAT_SECTION_HEAD	  16 /* id:u16 flags:u16 description:u32 size:u64 */
#define TRACE_DAT_SECTION_SIZE_AT 8  /* where in it the size is */
#define TRACE_DAT_SECTION_PACKED  1  /* a flag */
#define TRACE_DAT_PACKED_HEAD	  8  /* of a compressed section: packed:u32 unpacked:u32 */
#define TRACE_DAT_FILE_HEAD	  18 /* up to the page size, the same in both versions */
