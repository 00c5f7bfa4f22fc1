/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Several recordings as one: the events of all files in the order of time, as the segments of a
 * session have them, whose CPUs do not all begin at the same moment. A file is open only while its
 * time has come. One thread.
 */
#pragma once

#include "analysis/source-set.h"
#include "analysis/spans.h"
#include "decode/event-filter.h"
#include "formats/own-shed.h"

struct journal_lines;

struct sources_config {
	const struct source *sources;
	size_t n;
	struct source_set *set; /* in their place, for whoever comes again; NULL */
	const char *host;	/* only those of this one; NULL: all, which are of one host */
	/* By which events are not even looked at; units and containers: by whose tasks spans are
	 * chosen (struct tables_config), and events counted */
	const struct event_filter *filter;
	uint64_t last;	   /* nanoseconds: only so much before the end; 0: all */
	size_t memory;	   /* as in struct event_stream_config, of each file */
	uint64_t from, to; /* times wanted beside those of the filter; to 0: to the end */
	const struct event_filter_time *at; /* a time to be looked up; NULL: none */
	bool machine;			    /* find out whose system calls' numbers these are */
	struct spans *spans;		    /* NULL: nobody takes spans */
	struct who *who;		    /* learns who tasks are; NULL: nobody asks */
	bool tasks;			    /* names of tasks are wanted, in struct source_run */
	struct own_sheds *sheds; /* gets which events were not recorded for a while, within what is
				    analysed, times as decoder_time(); NULL: nobody asks, or nobody
				    takes spans */
	struct journal_lines *journal; /* of all files; NULL: nobody asks */
	/* All events as they come, in order of time; NULL: nobody asks */
	void (*on_events)(void *userdata, const struct event_run *run);
	/* How many events of each kind a file had, and their bytes; NULL: nobody counts */
	int (*on_count)(void *userdata, const char *name, uint64_t count, uint64_t bytes);
	/* A file has been opened, whose events come next; it will be closed. NULL: nobody asks.
	 * Return: 0 or negative errno with @why. */
	int (*on_open)(void *userdata, size_t source, const struct decoder *decoder,
		       struct fault *why);
	void (*on_close)(void *userdata, size_t source);
	void *userdata;
	void (*on_fault)(const char *text); /* as in struct event_stream_config */
};

/**
 * sources_read_sheds() - which events of a file were not recorded for a while
 * @ret: these are added, times as decoder_time(); UINT64_MAX: it did not come back
 */
int sources_read_sheds(const struct decoder *decoder, struct own_sheds *ret, struct fault *why);

/* What all files have in common */
struct sources_facts {
	bool in_usecs, has_date; /* as in struct decoder_facts */
	size_t n_faults;
	size_t n_silent;  /* files that do not say who their tasks are, if somebody asks */
	uint64_t at;	  /* that time, as decoder_time() */
	unsigned machine; /* that of the first one: */
};

enum {
	MACHINE_UNKNOWN,
	MACHINE_X86_64,
	MACHINE_ARM64,
};

/**
 * sources_run() - take all events
 * Return: 0 or negative errno with the story in @why.
 */
int sources_run(const struct sources_config *config, struct sources_facts *ret, struct fault *why);

/* --- the same bit by bit */

struct sources;

/* Events of one file that come before those of all others */
struct source_run {
	size_t source; /* which file it is */
	const struct decoder *decoder;
	/* To learn from these events is up to who takes them, unless there are spans */
	struct tasks *tasks;	    /* NULL: without struct sources_config.tasks */
	const struct who_file *who; /* NULL: nobody asks who tasks are */
	struct event_run events;
};

/**
 * sources_new() - before the first event
 * @config: what it points to outlives @ret, and @facts, which are filled in as it goes on
 */
int sources_new(const struct sources_config *config, struct sources_facts *facts,
		struct sources **ret, struct fault *why);
struct sources *sources_free(struct sources *sources);
DEFINE_CLEANUP(struct sources *, sources_free)

/**
 * sources_next() - the next events; spans and whoever learns have had them
 * @ret: good until the next call
 * Return: 1, 0 when there are none, or negative errno.
 */
int sources_next(struct sources *sources, struct source_run *ret, struct fault *why);

/**
 * sources_done() - bytes of the files that are done with, of sources_bytes()
 */
uint64_t sources_done(const struct sources *sources);
uint64_t sources_bytes(const struct sources *sources);

/**
 * source_run_event() - one of them as others know it
 */
struct decode_event source_run_event(const struct source_run *run, size_t i);
