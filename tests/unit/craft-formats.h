/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace.dat with event formats of the test's choice, for the decoder's tests, and records full of
 * random numbers that fit a format. Aborts without memory.
 */
#pragma once

#include <traceevent/event-parse.h>

#include "decode/decoder.h"
#include "formats/trace-dat.h"
#include "tests/unit/craft.h"

struct craft_format {
	const char *system, *text;
};

struct craft_file {
	const struct craft_format *formats; /* those of one system stand together, "ftrace" first */
	size_t n_formats;
	const char *kallsyms, *printk, *cmdlines; /* NULL: empty */
	const char *clock;			  /* option and text; NULL: none */
	const char *date;			  /* the DATE option; NULL: none */
	const struct craft *options;		  /* more: id:u16 size:u32 data; or NULL */
	const char
		*sheds; /* lines of formats/own-shed.h in flyrec's own section; NULL: not there */
	const uint8_t *boot_id;	   /* 16 bytes, of clock "mono" in that section; NULL: not there */
	const struct craft *pages; /* cpu 0's region, whole sub-buffers; or NULL */
};

/**
 * craft_file() - append a whole version 6 file with one CPU
 */
void craft_file(struct craft *c, const struct craft_file *file);

/**
 * craft_fd() - @c as a file without a name; frees it
 */
int craft_fd(struct craft *c);

/**
 * craft_open() - the file of craft_fd(), opened; craft_close() closes it
 * @ret_dat: "f"
 */
void craft_open(struct craft *c, int *ret_fd, struct trace_dat **ret_dat,
		struct decoder **ret_decoder);
void craft_close(int fd, struct trace_dat *dat, struct decoder *decoder);

/**
 * craft_record() - a record of an event
 * @hostile: no field means what it should; else lengths and strings fit
 * @ret: at least 64 KiB
 * Return: its size.
 */
uint32_t craft_record(const struct tep_event *event, bool big_endian, bool hostile, unsigned *seed,
		      uint8_t *ret);
