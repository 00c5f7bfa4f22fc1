/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A relay stands between a peer's socket and sd-bus and hands on what the peer sends, a message at
 * a time: sd-bus takes messages of up to 128 MiB and makes room for all of one at its first byte,
 * and it answers all it has read, whether the answers are read or not. That is too much trust in
 * whoever may connect. The relay reads the length that each message begins with and cuts off a peer
 * that sends more than we take, that does not speak D-Bus at all, or that passes descriptors: no
 * call takes one. What we send goes to the peer's socket directly. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "basic/macro.h"

#define RELAY_MESSAGE_MAX (64 * KIB) /* bytes; the longest sensible call is a filter of 4 KiB */
#define RELAY_AUTH_MAX	  (16 * KIB) /* bytes before the first message */

/* Where a stream of D-Bus messages is; zero it to begin */
struct relay_frame {
	bool authenticated; /* "BEGIN" was seen */
	uint32_t skipped;   /* bytes before that */
	char line[8];	    /* the end of what was seen of it */
	uint8_t header[16];
	uint32_t have; /* bytes of header */
	uint64_t left; /* bytes of the message behind it */
};

/**
 * relay_frame_check() - follow the stream over the next @size bytes, up to the end of the greeting
 * or of a message
 * @ret_size: bytes up to there, or all
 * Pure function. Return: 0, -EMSGSIZE for a message that is too long, -EBADMSG for no D-Bus.
 */
int relay_frame_check(struct relay_frame *frame, const uint8_t *bytes, size_t size,
		      size_t *ret_size);

struct relay;

struct relay_owner {
	/* The peer broke the rules, nothing more is read from it; -EPERM: it passed descriptors */
	void (*on_cut)(void *userdata, int error);
	/* All that sd-bus has read is done with, and the peer has read what there was to say */
	bool (*is_idle)(void *userdata);
};

/**
 * relay_new() - start handing on
 * @peer_fd: borrowed; its writing side stays the caller's
 * @ret_fd: what sd-bus reads from; the caller's
 */
int relay_new(sd_event *event, int64_t priority, int peer_fd, const struct relay_owner *owner,
	      void *userdata, struct relay **ret, int *ret_fd);

/* "BEGIN" has come */
bool relay_greeted(const struct relay *relay);

/* NULL is fine */
void relay_free(struct relay *relay);
