/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The trace.dat format, version 7, as trace-cmd.dat.v7(5) gives it, for formats/trace-dat-read.c:
 * shown to it as a file of version 6 that has the same content.
 *
 *   "\x17\x08\x44tracing" "7\0"  endian:u8  long_size:u8  page_size:u32
 *   "zstd\0" "1.5.4\0"                       compression and its version; "none\0" "\0"
 *   options:u64                              place of the first section of options
 *   sections, behind each other:
 *
 *   id:u16 flags:u16 description:u32 size:u64, then size bytes
 *   flags 1: compressed: packed:u32 unpacked:u32, then packed bytes
 *
 *   16 headers  17 ftrace's formats  18 formats of events  19 kallsyms  20 printk formats
 *   21 task names: what the parts of version 6 have, sizes included
 *   0  options: { id:u16 size:u32 data }*, the last one DONE (0): u64 place of the next options
 *   3  ring buffer: the data of its CPUs; flags 1 says only of these that they are compressed
 *   15 strings, for descriptions alone
 *   23 BTF  24 how the last boot was traced  25 modules: kept for who writes version 7, not read
 *   0x4652 what flyrec knows of the file; no option names it, so that other readers skip it
 *
 *   option 16 to 25: u64 place of the section
 *   option BUFFER (3): section:u64 name\0 clock\0 page_size:u32 n:u32 { cpu:u32 place:u64 size:u64
 * }* a CPU's data: n:u32 { packed:u32 unpacked:u32 bytes }*n, chunks of whole sub-buffers; not
 * compressed: the sub-buffers
 *
 * All numbers in the file's byte order. A place is an offset in the file. All others options are
 * those of version 6.
 */
#pragma once

#include "formats/trace-dat-cursor.h"

#define TRACE_DAT_V7_OWN 0x4652 /* id of the section, not compressed */

/**
 * trace_dat_v7_open() - find everything that version 6 has
 * @c: behind the page size, its window on the file itself; afterwards at the same place of what it
 *     is shown as
 * Sets dat->data, dat->own and dat->kept, and file_size to what it says; what is damaged and can be
 * done without goes to dat->damages. Return: 0 or negative errno, in @c, too.
 */
int trace_dat_v7_open(struct cursor *c);
