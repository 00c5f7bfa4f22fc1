/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small program as an ELF file of 32 or 64 bits, with what recorder/program.h looks for: symbols,
 * versions of them, a build ID, a USDT probe. It was moved after it was linked, as prelink does.
 */
#pragma once

#include <stdint.h>

#define CRAFT_PROGRAM_BASE     0x10000 /* address of the file's first byte */
#define CRAFT_PROGRAM_TEXT     0x200   /* in the file: where craft_add() begins, */
#define CRAFT_PROGRAM_OLD      0x220   /* craft_both@V1, */
#define CRAFT_PROGRAM_NEW      0x230   /* craft_both@@V2, */
#define CRAFT_PROGRAM_PROBE    0x208   /* craft:request, */
#define CRAFT_PROGRAM_DATA     0x240   /* craft_number, */
#define CRAFT_PROGRAM_COUNTER  0x248   /* and the probe's semaphore */
#define CRAFT_PROGRAM_BUILD_ID "000102030405060708090a0b0c0d0e0f10111213"

/**
 * craft_program() - write it to an empty file
 * @class: ELFCLASS32 or ELFCLASS64
 * @machine: EM_…
 * @arguments: of the probe
 */
void craft_program(int fd, int class, unsigned machine, const char *arguments);
