/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sections of a trace.dat of version 7, which formats/trace-dat-v7.h draws, as they lie in the
 * file: found one behind the other by their sizes, and by the places that options name. Which bytes
 * of the file are taken for what, so that it is told where two overlap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/trace-dat-damage.h"
#include "formats/trace-dat-data.h"

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

struct section {
	uint16_t id;
	bool packed;
	bool named;	/* by an option */
	uint64_t place; /* of its head */
	uint64_t size;	/* without its head; no more than there is */
};

struct section_claim;

/* Begins with the first four members set */
struct v7_sections {
	const struct trace_dat_data *data;
	const char *path; /* for messages */
	struct damages *damages;
	uint64_t file_size;

	struct section *items; /* as they lie in the file */
	size_t n;
	struct section_claim *claims;
	size_t n_claims;
};

void v7_sections_done(struct v7_sections *list);

/**
 * v7_sections_walk() - find all from @place on, as far as their sizes make sense
 * @finished: the file has a place of options; else the data of a ring buffer may have no size yet
 * Damages are told and stop nothing. Return: 0 or negative errno.
 */
int v7_sections_walk(struct v7_sections *list, uint64_t place, bool finished);

/**
 * v7_sections_read() - the head of one; its end may be behind that of the file
 * Return: 0, -ENODATA: the file ends before, or negative errno.
 */
int v7_sections_read(const struct v7_sections *list, uint64_t place, struct section *ret,
		     struct fault *why);

/**
 * v7_sections_cut() - let it end with the file. Return: does it run past that?
 */
bool v7_sections_cut(const struct v7_sections *list, struct section *s);

/**
 * v7_sections_piece() - where the bytes of a section are: whole, or the compressed block
 * @max: more than that, unpacked, cannot be
 * Return: 0, -EBADMSG, -ENODATA, or another negative errno.
 */
int v7_sections_piece(const struct v7_sections *list, const struct section *s, uint64_t max,
		      struct data_piece *ret, struct fault *why);

/**
 * v7_sections_at() - the one at @place that the walk has found, or NULL
 */
struct section *v7_sections_at(const struct v7_sections *list, uint64_t place);

/**
 * v7_sections_name() - what people call it
 * @room: for one that is not of enum trace_dat_section; else NULL will do
 */
const char *v7_sections_name(unsigned id, char *room, size_t size);

/**
 * v7_sections_claim() - these bytes of the file are @what, a literal. Return: 0 or -ENOMEM.
 */
int v7_sections_claim(struct v7_sections *list, uint64_t place, uint64_t end, const char *what);

/**
 * v7_sections_check_claims() - tell of those that overlap. Return: 0 or -ENOMEM.
 */
int v7_sections_check_claims(struct v7_sections *list);
