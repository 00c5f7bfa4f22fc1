/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the frames of a gdb trace file are kept as events of a trace.dat: what import writes and
 * export reads. All events are of the system "tfile":
 *
 *	tpN, tpN_2 …   a frame of tracepoint N; one format for each set of what frames of N have:
 *	               frame:u32 tracepoint:u32, the register block, the variables
 *	memory         a block of memory of the frame before
 *	registers      the register block beyond GDB_RECORD_REGISTERS
 *	variable       a variable beyond GDB_RECORD_VARIABLES
 *
 * Registers of up to 8 bytes are numbers in the byte order of the trace.dat, others are bytes as
 * they were. The description is a CPUSTAT text: GDB_RECORD_NOTE, "big" or "little", its lines. One
 * thread.
 */
#pragma once

#include "basic/fault.h"
#include "convert/gdb/gdb-tfile.h"
#include "formats/gdb-registers.h"

#define GDB_RECORD_SYSTEM "tfile"
#define GDB_RECORD_NOTE	  "GDB trace file:\n"

/* Bytes of registers and number of variables that one event has room for */
#define GDB_RECORD_REGISTERS 2944U
#define GDB_RECORD_VARIABLES 128U

#define GDB_RECORD_FRAME_AT	 8U
#define GDB_RECORD_TRACEPOINT_AT 12U
#define GDB_RECORD_BLOCK_AT	 16U /* registers, then variables */

/* The other events: frame at 8, then */
#define GDB_RECORD_MEMORY_ADDRESS_AT 16U
#define GDB_RECORD_MEMORY_DATA_AT    24U /* a __data_loc */
#define GDB_RECORD_MEMORY_SIZE	     28U /* and the bytes */
#define GDB_RECORD_REGISTERS_FROM_AT 12U
#define GDB_RECORD_REGISTERS_DATA_AT 16U /* a __data_loc */
#define GDB_RECORD_REGISTERS_SIZE    20U
#define GDB_RECORD_VARIABLE_AT	     12U
#define GDB_RECORD_VARIABLE_VALUE_AT 16U
#define GDB_RECORD_VARIABLE_SIZE     24U

enum {
	GDB_RECORD_MEMORY_ID = 997,
	GDB_RECORD_REGISTERS_ID,
	GDB_RECORD_VARIABLE_ID,
	GDB_RECORD_FIRST_ID, /* of frames */
};

extern const char *const gdb_record_formats[3]; /* of the events other than frames */

/* What is common to the frames of a file */
struct gdb_record {
	enum gdb_arch arch;
	struct gdb_registers registers; /* those that an event has fields for */
	uint32_t kept;			/* bytes of the block in it */
	char **names;			/* of the variables' fields, as in tfile->variables */
};

/**
 * gdb_record_new() - registers by the target description, or by the size of the block
 * Return: 0 or -ENOMEM. Registers that nobody knows the names of are one field of bytes.
 */
int gdb_record_new(const struct gdb_tfile *tfile, struct gdb_record **ret);
struct gdb_record *gdb_record_free(struct gdb_record *record);
DEFINE_CLEANUP(struct gdb_record *, gdb_record_free)

/* What frames of one kind have */
struct gdb_shape {
	uint32_t tracepoint;
	bool has_registers;
	uint32_t n;
	uint32_t variables[GDB_RECORD_VARIABLES]; /* numbers, in the order of the fields */
};

/**
 * gdb_record_size() - of an event of a kind, bytes
 */
uint32_t gdb_record_size(const struct gdb_record *record, const struct gdb_shape *shape);

/**
 * gdb_record_format() - the kernel-like text of a kind's format
 * @ordinal: 1 for the first kind of its tracepoint
 * @ret: malloc'ed
 */
int gdb_record_format(const struct gdb_record *record, const struct gdb_tfile *tfile,
		      const struct gdb_shape *shape, unsigned ordinal, unsigned id, char **ret);

/**
 * gdb_record_variable() - the number of the variable of a field; false: no field of one
 */
bool gdb_record_variable(const struct gdb_record *record, const struct gdb_tfile *tfile,
			 const char *field, uint32_t *ret);

/**
 * gdb_record_swap() - turn the bytes of each register of 2, 4 or 8 around, in place
 */
void gdb_record_swap(const struct gdb_record *record, uint8_t *block);
