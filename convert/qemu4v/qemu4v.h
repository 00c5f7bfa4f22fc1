/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lines of execution traces of QEMU4V and of Arm's Tarmac family:
 *
 *   TIME SCALE [CPU] IT|IS (ID) ADDR[:PHYS] OPCODE ISET MODE[_SECURITY] : DISASM     instruction
 *   TIME SCALE [CPU] MR|MW SIZE[ATTRIB] ADDR[:PHYS] [(ABORTED)] DATA                 memory access
 *   TIME SCALE [CPU] R NAME[ (BANK)] VALUE                                           register write
 *
 * TIME, ID and SIZE are decimal, the rest is hexadecimal. SCALE: clk (the index of the executed
 * instruction), tic, cyc, cs, ps, ns, us. CPU: a number (QEMU4V), "cpu" and a number (Tarmac), or
 * nothing. ISET: A T X O T16 T32. SECURITY: s, ns or n. PHYS may end in _S or _NS. DATA and VALUE
 * may have underscores in them, and several words. Any other line is a text.
 *
 * Sources: "Trace Format" of QEMU4V (2018), lib/parser.cpp and tests of Arm's Tarmac Trace
 * Utilities. Pure functions over bytes nobody vouches for; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU4V_MAX_LINE 65536U /* without the end of the line */
#define QEMU4V_MAX_CPU	4095U
#define QEMU4V_MAX_MODE 11U

enum qemu4v_kind {
	QEMU4V_TEXT,
	QEMU4V_INSN,
	QEMU4V_MEM,
	QEMU4V_REG,
	_QEMU4V_KIND_MAX,
};

enum qemu4v_scale {
	QEMU4V_CLK,
	QEMU4V_TIC,
	QEMU4V_CYC,
	QEMU4V_CS,
	QEMU4V_PS,
	QEMU4V_NS,
	QEMU4V_US,
	_QEMU4V_SCALE_MAX,
};

enum qemu4v_cpu {
	QEMU4V_CPU_NONE,
	QEMU4V_CPU_NUMBER,
	QEMU4V_CPU_NAME, /* "cpu0" */
};

enum qemu4v_secure {
	QEMU4V_NON_SECURE = 0,
	QEMU4V_SECURE = 1,
	QEMU4V_SECURE_UNTOLD = 2,
};

enum qemu4v_flag {
	QEMU4V_UPPER_ADDR = 1, /* digits above 9 are capital letters */
	QEMU4V_UPPER_PHYS = 2,
	QEMU4V_UPPER_DATA = 4,
	QEMU4V_BRACKET_ADDR = 8, /* the address stands in the place of the id, which is missing */
	QEMU4V_NO_ID = 16,
	QEMU4V_SHORT_N = 32,	 /* "_n" instead of "_ns" */
	QEMU4V_UNDERSCORES = 64, /* after each 8 digits of the data */
	QEMU4V_TWO_WORDS = 128,	 /* 16 digits of data, a blank, the rest */
	QEMU4V_BARE_COLON = 256, /* nothing, not even a blank, behind it */
	QEMU4V_PHYS_S = 512,
	QEMU4V_PHYS_NS = 1024,
	QEMU4V_CR = 2048,	  /* the line ends in "\r\n" */
	QEMU4V_NO_NEWLINE = 4096, /* the input ends without a newline */
	QEMU4V_CONTINUED = 8192,  /* a text goes on in the next event */
};

/* How a line was written, where its fields leave a choice; 8 bytes, as events have it */
struct qemu4v_form {
	uint16_t flags; /* enum qemu4v_flag, or-ed */
	uint8_t scale;
	uint8_t cpu;	     /* enum qemu4v_cpu */
	uint8_t addr_digits; /* 1 to 16 */
	uint8_t phys_digits; /* 0: no physical address */
	uint8_t data_digits; /* 0 to 32 */
	uint8_t zeros;	     /* before the time: low 4 bits, before the id: high 4 bits */
};

/* One line. Texts point into the line, or into an event, and have no NUL at the end. */
struct qemu4v_record {
	enum qemu4v_kind kind;
	struct qemu4v_form form;
	uint32_t cpu;
	uint64_t time; /* of a text: 0 if it has none */
	uint64_t addr, phys;
	uint64_t data, data_hi; /* of an instruction: its opcode */
	uint64_t id;
	uint16_t bits; /* of opcode or register */
	uint8_t size;  /* of a memory access, bytes */
	uint8_t secure;
	bool taken, write, aborted;
	bool has_time;
	char iset[4], attrib[4], mode[QEMU4V_MAX_MODE + 1]; /* NUL-terminated */
	const char *name, *text; /* register; disassembly, value of a register as written, text */
	uint32_t name_size, text_size;
};

/**
 * qemu4v_parse() - one line
 * @line: without its newline; may end in a carriage return
 * @ret: what it says; for a text, all of it
 * @ret_why: why this is no record although it has to be one: a static string, no newline; untouched
 *	else
 * Return: 0; -EBADMSG: malformed, @ret is a text, @ret_why is set.
 */
int qemu4v_parse(const char *line, size_t size, struct qemu4v_record *ret, const char **ret_why);

struct text;

/**
 * qemu4v_print() - append the line that a record was made of, with its newline
 * Records of qemu4v_parse() become the same line again, if its words were separated by single
 * blanks, and a hexadecimal number had no capital and small letters at a time.
 */
void qemu4v_print(const struct qemu4v_record *record, struct text *out);
