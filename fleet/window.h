/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What another host may ask of this one: bounds, by this host's configuration and clock. Pure
 * functions, any thread.
 */
#pragma once

#include <stdint.h>

#include "fleet/message.h"

struct window {
	uint64_t since_usec, until_usec; /* realtime */
};

enum window_fault {
	WINDOW_OK,
	WINDOW_TOO_LONG,
	WINDOW_AHEAD,
	WINDOW_TOO_OLD, /* no fault of the one who asks */
	WINDOW_N_FAULTS,
};

/**
 * window_judge() - may it be asked for?
 * @now_usec: realtime
 * @ret: the window, with MarginSec= on both sides as far as bounds allow
 * @why: of anything but WINDOW_OK, for a person
 */
enum window_fault window_judge(const struct fleet_follow_config *config, const struct message *m,
			       uint64_t now_usec, struct window *ret, struct fault *why);

/**
 * window_covers() - is @of in @w, but for a twentieth?
 */
bool window_covers(const struct window *w, const struct window *of);
