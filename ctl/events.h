/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the verbs that show events have in common. Main thread.
 */
#pragma once

#include "ctl/ctl.h"
#include "decode/event-filter.h"

/**
 * events_filter() - all that was given of --event=, --pid=, --cpu=, --since= and --until=
 * @verb: for the line on standard error that says what is not understood
 */
bool events_filter(struct event_filter *filter, const struct ctl *ctl, const char *verb);

/**
 * events_warn() - log what is wrong with a file's formats
 */
void events_warn(const struct decoder *decoder);
