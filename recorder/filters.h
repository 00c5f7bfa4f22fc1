/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Filters of the events that a session wants. Part of recorder/events, which owns the list. Main
 * thread.
 */
#pragma once

#include "basic/macro.h"
#include "recorder/tracedir.h"

struct wanted {
	const char *system;
	const char *name;   /* NULL: the whole system */
	const char *filter; /* or NULL */
	bool optional;
	bool present; /* the kernel has it */
	/*
	 * A system's filter file never tells the filter that was accepted. So one event is watched
	 * that has taken it; NULL: none known, or none has (all have filters of their own).
	 */
	char *witness;
	bool no_witness;
};

/**
 * filters_apply() - write them in the order of the list, so that the last one for an event counts
 * Those that are not present are left out.
 * Return: 0, or what the kernel refused; -EINVAL also when no event of a system takes its filter.
 */
int filters_apply(struct wanted *wanted, size_t n, const struct tracedir *dir, struct fault *why);

/**
 * filters_find_witnesses() - for an instance whose filters are set already
 */
void filters_find_witnesses(struct wanted *wanted, size_t n, const struct tracedir *dir);

/**
 * filters_check() - compare and write again what is different
 */
int filters_check(struct wanted *wanted, size_t n, const struct tracedir *dir,
		  struct changes *changes, struct fault *why);
