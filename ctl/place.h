/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The times of several files as merge would have them: by the wall clocks of their machines, to the
 * nanosecond, where files without that have a date in microseconds. Main thread.
 */
#pragma once

#include "analysis/source-set.h"

/**
 * place_sources() - set by how much the times of each are moved, and how wrong they may be
 * Return: 0; -EINVAL: one does not know the time of day; or another negative errno; with @why.
 */
int place_sources(struct source *sources, size_t n, struct fault *why);
