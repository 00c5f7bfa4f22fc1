/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that are gone through once or many times: when each begins and ends is looked up once, and
 * again when it has grown; those used last stay open, so that a look at some milliseconds of them
 * costs no more than these. One thread.
 */
#pragma once

#include <sys/stat.h>

#include "decode/decoder.h"

struct source {
	const char *name; /* for messages */
	int fd;		  /* stays the caller's */
	/* Files of the same recording, segments and what was cut from them: what several of them
	 * have of a CPU counts once. 0: of a recording of its own */
	unsigned recording;
	const char *host;    /* whose it is; NULL: nobody asks */
	uint64_t frame;	     /* where in a merged file its own begins; 0: it is a file by itself */
	const char *session; /* of a frame, as struct own_host has it */
	uint64_t error;	     /* likewise; of a file by itself where placed */
	bool placed, dated;  /* its times are shown by what follows, as decoder_place() does it */
	struct time_rate rate;
	int64_t offset;
};

/* Whose clock it was, and how its times are shown */
struct source_clock {
	char name[32];
	uint8_t boot_id[16]; /* 0: it does not tell */
	int64_t offset;	     /* as in struct decoder_facts */
};

/* Times as decoder_time() has them */
struct source_look {
	uint64_t first; /* of its first sub-buffer; UINT64_MAX: it has none */
	uint64_t last;	/* of its last event; 0: none, or nobody asked */
	uint64_t *ends; /* the same of each CPU, of the file's own ring buffer */
	uint32_t n_cpus;
	struct source_clock clock;
	uint64_t bytes; /* of its sub-buffers, unpacked */
};

struct source_set;

/**
 * source_set_new() - nothing is read yet
 * @sources: copied; their names and descriptors outlive @ret
 */
int source_set_new(const struct source *sources, size_t n, struct source_set **ret);
struct source_set *source_set_free(struct source_set *set);
DEFINE_CLEANUP(struct source_set *, source_set_free)

size_t source_set_size(const struct source_set *set);
const struct source *source_set_source(const struct source_set *set, size_t i);

/**
 * source_set_open() - what one of them is decoded with
 * @ret: until source_set_close(), as often as it was opened
 * Return: 0 or negative errno with the story in @why.
 */
int source_set_open(struct source_set *set, size_t i, const struct decoder **ret,
		    struct fault *why);
void source_set_close(struct source_set *set, size_t i);

/**
 * source_set_look() - when it begins, as far as it goes now
 * @ends: and when it ends, which in a compressed file has to be unpacked
 * @ret: until the next look at this one
 */
int source_set_look(struct source_set *set, size_t i, bool ends, const struct source_look **ret,
		    struct fault *why);

/**
 * source_set_fresh() - close those that nobody has open and that have grown since they were opened
 */
void source_set_fresh(struct source_set *set);
