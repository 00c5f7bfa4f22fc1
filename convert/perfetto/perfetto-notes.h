/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a file says beside its events: clocks, machine, losses in all, what the snapshot was taken
 * for, findings, lines of the journal. Main thread.
 */
#pragma once

#include "convert/convert.h"
#include "convert/perfetto/perfetto-plan.h"
#include "decode/text.h"

/* Tracks of flyrec's own: this one, and others below it */
#define PERFETTO_TRACK	 UINT64_C(0x666c79726563)
#define PERFETTO_JOURNAL (PERFETTO_TRACK + 0xffff)
#define PERFETTO_LOSSES	 (PERFETTO_TRACK + 0x10000) /* and CPU, and ring buffer */
#define PERFETTO_HOST	 (UINT64_C(1) << 48) /* between the tracks of one host and the next */

/* Kept from one part of a file of several hosts to the next */
struct perfetto_kept {
	uint64_t to_boot; /* the first host's, whose times all are by */
	unsigned host;	  /* of the last part */
	/* Its events that are typed already, in another part: Perfetto would take those of both for
	 * events of one ring buffer */
	const char *typed[PERFETTO_TYPED_MAX];
	size_t n_typed;
};

struct perfetto_notes {
	const struct export *export;
	uint64_t to_boot; /* what makes a time that is shown one since boot, modulo 2^64 */
	uint64_t tracks;  /* what is added to each track of this host */
	uint32_t cpus;	  /* and to each CPU */
	void (*on_fault)(const char *text);
	size_t n_faults; /* what was damaged and left out */
};

/**
 * perfetto_notes_begin() - append packets with all that, and set to_boot
 * @notes: all but to_boot and n_faults set
 * Return: 0 or negative errno with the story in @why.
 */
int perfetto_notes_begin(struct perfetto_notes *notes, struct text *out, struct fault *why);

/**
 * perfetto_track() - append a packet with a track
 * @parent: 0: none; @counter: it has numbers
 */
void perfetto_track(struct text *out, uint64_t uuid, uint64_t parent, const char *name,
		    bool counter);

/**
 * perfetto_counter() - append one with a number of such a track
 */
void perfetto_counter(struct text *out, uint64_t uuid, uint64_t boot, uint64_t value);
