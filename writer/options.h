/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The options section of a trace.dat as one block of bytes, from the word "options" to the word
 * "flyrecord", so that its size is known before it is written. Plain memory, any thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"

/* A ring buffer beside the file's own */
struct options_buffer {
	const char *name;
	char *const *cpustats; /* texts of its CPUs, NULL-terminated; or NULL */
};

struct options_params {
	unsigned n_cpus;
	size_t cpustat_room; /* bytes for each CPU's statistics, NUL included; 0: none at all */
	const struct options_buffer *buffers;
	size_t n_buffers;
	const char *clock; /* text of trace_clock: "local [mono]\n" */
	bool has_date;
	int64_t date_usec; /* realtime minus the clock */
	uint64_t trace_id;
	const char *uname;  /* NULL: this machine's */
	const char *probes; /* a text of probes_read(), or NULL */
	const char *note;   /* a CPUSTAT text of its own behind those of the CPUs, or NULL */
};

struct options {
	char *data;
	size_t size;
	size_t *cpustat_at; /* [n_cpus], where each CPU's text is, from the start of data */
	size_t *buffer_at;  /* [n_buffers], where the 8-byte offset of each one's part goes */
};

/**
 * options_make() - compose; texts of CPUs say "CPU: N" and are filled up with blanks
 * Return: 0 or -ENOMEM.
 */
int options_make(const struct options_params *params, struct options *ret);

/**
 * options_cpustat() - a CPU's text as the file wants it: exactly @room bytes, blanks at the end
 * Readers print it as it is: one blank line at the end rather than hundreds. Cut if too long.
 */
void options_cpustat(char *ret, size_t room, const char *text);

/**
 * options_trimmed() - the other way round: a text of a file without what fills it up
 * @words: what it begins with and @text is without
 * Return: malloc'ed; NULL without memory.
 */
char *options_trimmed(const char *words, const char *text);

/**
 * options_drop_bytes() - of a CPU's text, in place: how many bytes it has, for a file of other
 * sub-buffers
 */
void options_drop_bytes(char *text);

/* For the TRACEID option: a number that no other file has */
uint64_t options_new_trace_id(void);

/* What a finished file has of a CPU */
struct options_count {
	uint64_t events;
	uint64_t lost; /* events, as the sub-buffers say */
	uint64_t subbufs, bytes;
	uint64_t unknown_losses; /* where the kernel does not say how many */
	uint64_t from_nsec;	 /* TRACE_DAT_FROM; 0: nothing to say */
};

/**
 * options_cpustat_final() - the text of a CPU whose data is complete, as options_cpustat() puts it
 */
void options_cpustat_final(char *ret, size_t room, unsigned cpu, const struct options_count *count);

void options_done(struct options *options);
