/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Snapshots of a flight session, from the kernel's ring buffer into a trace.dat, in two steps that
 * run as jobs: capture, which has to be quick because the ring buffer goes on, and export, which
 * waits for the disk. Three methods, best first:
 *
 *   mapped  the ring buffer is copied as it is; nothing consumed, nothing paused
 *   swap    the kernel swaps the ring buffer for an empty one (its `snapshot` file)
 *   drain   sub-buffers are read out up to the moment of the trigger
 *
 * The last two leave the kernel without history: what they take goes into a carry (writer/carry.h),
 * out of which each snapshot has the whole window again.
 *
 * Owner: the session, on the main thread, which leaves it alone while a job is under way; only
 * flight_counts() and flight_method_name() read nothing that a job writes.
 */
#pragma once

#include "engine/file-plan.h"
#include "engine/ledger.h"
#include "engine/snapshot-order.h"

enum flight_method {
	FLIGHT_MAPPED,
	FLIGHT_SWAP,
	FLIGHT_DRAIN,
};

struct flight;

struct flight_params {
	const struct instance *instance; /* borrowed; what any thread may ask it */
	int dir_fd;			 /* STATE/NAME/snapshot; borrowed */
	const char *method;		 /* Method= */
	uint64_t memory;		 /* Memory=: bytes for all CPUs together */
	uint64_t buffer_size;		 /* BufferSize=: bytes a CPU */
	unsigned threads;
	bool counts_time; /* the clock's timestamps are nanoseconds */
};

/* Method=auto would have taken swap, but there is no second ring buffer to be had; see @why */
#define FLIGHT_SECOND_BEST 1

/**
 * flight_new() - choose a method; of swap, the second ring buffer is made, see
 * instance_make_spare()
 * Return: 0 or FLIGHT_SECOND_BEST; -EOPNOTSUPP: the one that is forced does not work here; or
 * negative errno with @why.
 */
int flight_new(const struct flight_params *params, struct flight **ret, struct fault *why);

/**
 * flight_change() - other Method= or Memory=; as before on error
 * Return: as flight_new().
 */
int flight_change(struct flight *flight, const struct flight_params *params, struct fault *why);

/**
 * flight_fall_back() - after flight_capture() has failed: from now on a method without what it
 * failed over, a map that cannot be had (-EBUSY) or a swap
 * @error: what it returned
 * Return: false: it was over something else, or it is not for us to choose.
 */
bool flight_fall_back(struct flight *flight, int error);

/* NULL is fine. */
void flight_free(struct flight *flight);

const char *flight_method_name(const struct flight *flight);
/* What a CPU has given and lost for snapshots, since flight_new() */
void flight_counts(const struct flight *flight, unsigned cpu, struct ledger_moved *ret);
/* After flight_export(), on the main thread: from now on flight_counts() has what that wrote */
void flight_add_counts(struct flight *flight);

/* Real-time priority for the calling thread, and those that it starts, as long as it is on */
void flight_hurry(bool on);

/**
 * flight_capture() - job: what the ring buffer holds now; what is not copied yet stays mapped
 * @from_nsec, @to_nsec: of the instance's clock; whole sub-buffers
 * Return: 0; -ENODATA when there is nothing of that time; -EBUSY: it cannot be mapped, as
 * somebody's snapshot trigger may swap it; or negative errno with @why. Undo with flight_drop().
 */
int flight_capture(struct flight *flight, uint64_t from_nsec, uint64_t to_nsec, struct fault *why);

/**
 * flight_check_room() - job: does the disk have room for what flight_capture() would take out of
 * the kernel, and for the file that it becomes, too?
 * @head: bytes of that file before the data, and what is to stay free
 * For a flight whose carry nobody keeps until there is room for the file, and for somebody who may
 * not have all the room there is.
 * Return: 0, also with a method that takes nothing; or -ENOSPC or another negative errno with @why.
 */
int flight_check_room(struct flight *flight, uint64_t head, struct fault *why);

/* The last flight_capture() may have taken something out of the kernel, even if it failed */
bool flight_has_taken(const struct flight *flight);

/**
 * flight_export() - job: what was captured into a file, then the snapshots' own retention
 * @made: from snapshot_order_open(), or with its dir_fd
 * Nothing is left behind on error.
 */
int flight_export(struct flight *flight, const struct file_plan *plan,
		  const struct snapshot_order *order, struct snapshot_result *made,
		  struct fault *why);

/* The capture is no longer needed */
void flight_drop(struct flight *flight);

DEFINE_CLEANUP(struct flight *, flight_free)
