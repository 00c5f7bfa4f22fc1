/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process that looks for what takes too long in what a session records, as that comes: it has
 * descriptors and no rights, so that what anybody may have put into a trace is not parsed by
 * flyrecd. Of a record session it reads what has just been written to its file, once a second, of
 * a flight session what is new in the mapped ring buffer.
 */
#pragma once

#include "analysis/latency-config.h"
#include "basic/fault.h"
#include "daemon/latency/latency-ring.h"

/* Where the events come from; what is open in it is the process's */
struct latency_feed {
	int tail_fd; /* of a record session: formats/tail-message.h, with times; else -EBADF and: */
	bool direct; /* its files are written past the page cache, and shall be read so */
	struct latency_ring_feed ring;
	/* Make a file like the session's, without data; in the process, with all rights. Return: an
	 * fd, or negative errno with @why. */
	int (*make_file)(void *userdata, struct fault *why);
	void *userdata;
};

enum latency_message_type {
	LATENCY_WATCHING = 1, /* it has begun */
	LATENCY_HIT,
	LATENCY_LEFT_OUT, /* hits that nobody took in time */
	LATENCY_FAILED,	  /* with text: it ends */
};

#define LATENCY_TEXT 256U

/* What it says, a packet each */
struct latency_message {
	uint32_t type;
	uint32_t condition; /* of LATENCY_HIT, and all below; and of LATENCY_LEFT_OUT, with: */
	uint32_t left_out;
	uint32_t cpu;
	int32_t pid, waker_pid; /* 0: none */
	uint32_t open;		/* it goes on */
	uint32_t preempted;	/* a wait for a CPU began so */
	uint32_t waker;		/* enum span_waker */
	uint64_t nsec;
	uint64_t at_usec;	       /* realtime, when that was */
	char comm[16], waker_comm[16]; /* NUL-terminated, as all texts */
	char text[LATENCY_TEXT]; /* an interrupt's name, what a request does; LATENCY_FAILED: why */
};

/**
 * latency_process() - in a new process; never returns
 * @conditions: their units are not looked at
 * @output: SOCK_SEQPACKET; ends with its peer
 */
_Noreturn void latency_process(const struct latency_feed *feed,
			       const struct latency_config *conditions, size_t n, int output,
			       pid_t parent);
