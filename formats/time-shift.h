/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Timestamps that are no nanoseconds of this machine: cycles of the clock x86-tsc, and those of a
 * KVM guest, beside which there is a file of its host. Options of trace-cmd:
 *
 *   TSC2NSEC:   mult:u32 shift:u32 offset:u64
 *   TIME_SHIFT: host:u64 flags:u32 cpus:u32
 *               { n:u32 time:u64[n] offset:s64[n] scaling:s64[n] }[cpus]  fraction:u64[cpus]
 *
 * A host's time is guest * scaling >> fraction, plus offset; nanoseconds are cycles * mult >>
 * shift. "host" is the TRACEID of the host's file. A KVM guest has one offset for all the time, so
 * all n are the same. trace-cmd attach writes the option into a guest's file, and so does its
 * agent, of older versions without fractions.
 */
#pragma once

#include "basic/fault.h"
#include "formats/time-rate.h"
#include "formats/trace-dat-read.h"

struct time_shift {
	uint64_t host;	 /* TRACEID of its file */
	uint32_t n_cpus; /* 0: the file is no guest's */
	struct time_rate *cpus;
};

void time_shift_done(struct time_shift *shift);

/**
 * time_shift_read() - that of a guest's file
 * Return: 0; -EBADMSG: it makes no sense, or changes while the file goes on; or another negative
 * errno; with @why.
 */
int time_shift_read(const struct trace_dat *dat, struct time_shift *ret, struct fault *why);

/**
 * time_shift_one() - what all CPUs have in common; off if the file is no guest's
 * Return: false, with @ret off: they differ.
 */
bool time_shift_one(const struct time_shift *shift, struct time_rate *ret);

/**
 * time_shift_nsec() - how long a cycle of the file's clock is, as TSC2NSEC says
 * @ret: mult and shift are set
 * Return: 1, 0 it does not tell, or negative errno.
 */
int time_shift_nsec(const struct trace_dat *dat, struct time_rate *ret, struct fault *why);
