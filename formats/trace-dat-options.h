/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The options of a trace.dat of version 7: a chain of sections, each of which ends with the place
 * of the next (formats/trace-dat-v7.h). Where the chain breaks, those that lie somewhere in the
 * file count, too.
 */
#pragma once

#include "formats/trace-dat-sections.h"

#define OPTION_HEAD 6 /* id:u16 size:u32 */

struct option {
	uint16_t id;
	uint32_t size;
	const uint8_t *data;
	uint64_t place; /* of its head, or of the section if that is compressed */
	bool packed;
};

/* Begins with the first two members set */
struct v7_options {
	struct v7_sections *sections;
	struct trace_dat_data *data;

	struct option *items;
	size_t n;
	bool broken;				/* not all could be read */
	uint64_t found[_TRACE_DAT_SECTION_MAX]; /* place of the section that one names; 0: none */
	uint64_t found_by[_TRACE_DAT_SECTION_MAX]; /* that one's */
	uint8_t **texts;			   /* they point into */
	size_t n_texts;
	uint64_t size; /* of all together */
};

void v7_options_done(struct v7_options *options);

/**
 * v7_options_read() - all of them
 * @place: of the first ones; 0: the file was not finished
 * @from: place of what says so
 * Their bytes are claimed; damages are told and stop nothing. Return: 0 or negative errno.
 */
int v7_options_read(struct v7_options *options, uint64_t place, uint64_t from);
