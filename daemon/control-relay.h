/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A relay stands between a peer's socket and sd-bus and hands on what the peer sends, with its
 * descriptors: sd-bus takes messages of up to 128 MiB and makes room for all of one at its first
 * byte, which is too much trust in whoever may connect. The relay reads the length that each
 * message begins with and cuts off a peer that sends more than we take, or that does not speak
 * D-Bus at all. What we send goes to the peer's socket directly. Main thread.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "basic/macro.h"

#define RELAY_MESSAGE_MAX (256 * KIB) /* bytes; the longest sensible call is a filter of 4 KiB */
#define RELAY_AUTH_MAX	  (16 * KIB)  /* bytes before the first message */

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
 * relay_frame_check() - follow the stream over the next @size bytes
 * Pure function. Return: 0, -EMSGSIZE for a message that is too long, -EBADMSG for no D-Bus.
 */
int relay_frame_check(struct relay_frame *frame, const uint8_t *bytes, size_t size);

struct relay;

/**
 * relay_new() - start handing on
 * @peer_fd: borrowed (a duplicate is watched); its writing side stays the caller's
 * @ret_fd: what sd-bus reads from; the caller's
 * @on_cut: the peer broke the rules (@error), nothing more is read from it
 */
int relay_new(sd_event *event, int64_t priority, int peer_fd,
	      void (*on_cut)(void *userdata, int error), void *userdata, struct relay **ret,
	      int *ret_fd);

/* NULL is fine */
void relay_free(struct relay *relay);
