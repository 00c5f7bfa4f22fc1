/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From one event to another one: two events of any kind belong together if fields of the same names
 * have the same values in both. So many may be open at a time and no more; if there is no room, the
 * one that has waited longest of some is forgotten and counted. For spans.c. One thread.
 */
#pragma once

#include "analysis/latency-config.h"
#include "decode/event-stream.h"

struct pair {
	uint32_t number; /* index of its condition */
	int32_t pid;	 /* whose its first event is */
	uint32_t cpu;
	uint64_t from;
	uint64_t keys[LATENCY_KEYS];
	bool used; /* it goes on */
};

struct pairs;

/**
 * pairs_new() - look for those of LATENCY_PAIR
 * @conditions: borrowed
 */
int pairs_new(const struct latency_config *conditions, size_t n, struct pairs **ret);
struct pairs *pairs_free(struct pairs *pairs);
DEFINE_CLEANUP(struct pairs *, pairs_free)

/* What is looked up once in a file */
struct pairs_file {
	uint8_t *wanted; /* by event id */
	struct pairs_side *sides;
};

/**
 * pairs_file_open() - look events and fields up
 * A file may lack the events. Return: 0, -ENOMEM, or -EINVAL with @why: an event without the field.
 */
int pairs_file_open(struct pairs *pairs, const struct decoder *decoder, struct pairs_file *ret,
		    struct fault *why);
void pairs_file_done(struct pairs_file *file);

/**
 * pairs_event() - one that the file has as wanted
 * @on_pair: is called for what ends with it, which is not used any more
 * @left_out: counts those that had to go
 * Return: 0, or what @on_pair returned if less than 0.
 */
int pairs_event(struct pairs *pairs, struct pairs_file *file, const struct decode_event *event,
		int (*on_pair)(void *userdata, const struct pair *pair, uint64_t to),
		void *userdata, uint64_t *left_out);

/**
 * pairs_waiting() - those that began at @before or earlier and have not ended
 */
int pairs_waiting(struct pairs *pairs, uint64_t before, uint64_t now,
		  int (*on_pair)(void *userdata, const struct pair *pair, uint64_t to),
		  void *userdata);

/**
 * pairs_forget() - events were lost: what has ended meanwhile is not known
 * Return: how many were open.
 */
uint64_t pairs_forget(struct pairs *pairs);

/* Has a recording had this event, 0 or 1, of that condition? */
bool pairs_seen(const struct pairs *pairs, size_t condition, unsigned event);
