/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What event-file.c (events come in) and event-file-finish.c (the file is put together) share.
 */
#pragma once

#include "basic/new-file.h"
#include "writer/event-file.h"

#define EVENT_FILE_CHUNK (64U * 1024) /* bytes of a CPU in memory, written at once */

/* One CPU: pieces of EVENT_FILE_CHUNK bytes that were written, then the chunk in memory */
struct event_file_cpu {
	uint8_t *chunk;		   /* NULL: no event yet */
	uint32_t used;		   /* bytes of ended sub-buffers in it */
	struct subbuf_write write; /* the one behind them; bytes NULL: none begun */
	uint64_t last_ts;
	uint64_t events, subbufs;
	uint64_t *pieces; /* where they are in the spool; of the direct CPU: NULL */
	size_t n_pieces, room_pieces;
};

struct event_file {
	struct event_file_params params;
	struct new_file out;
	struct event_file_cpu *cpus;
	unsigned n_cpus;
	int direct;	       /* the CPU that is written straight to its place; -1: none yet */
	uint64_t direct_at;    /* where its region begins */
	struct new_file spool; /* the pieces of the others; fd -EBADF: none yet */
	uint64_t spooled;      /* bytes */
	char *names;	       /* "PID COMM\n" lines */
	size_t names_size;
	FILE *names_stream;
	char *note;
	int error; /* writing has failed */
};

/* The header and all tables in memory, with the file's own numbers of events and sub-buffers */
struct event_file_header {
	char *bytes;
	size_t size;
	uint64_t table_at; /* the first CPU's entry: all zero yet */
};

/**
 * event_file_make_header() - for as many CPUs as there are now
 */
int event_file_make_header(const struct event_file *file, struct event_file_header *ret);
