/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <systemd/sd-event.h>

/* Order in which the event loop serves what is ready at the same time: small numbers first */
enum priority {
	PRIORITY_WORKER = SD_EVENT_PRIORITY_NORMAL - 20, /* a full region must not wait */
	PRIORITY_SIGNAL = SD_EVENT_PRIORITY_NORMAL,
	PRIORITY_TRIGGER = SD_EVENT_PRIORITY_NORMAL,
	PRIORITY_ROOT = SD_EVENT_PRIORITY_NORMAL + 10, /* what root asks, whatever others ask for */
	PRIORITY_CONTROL = SD_EVENT_PRIORITY_NORMAL + 20, /* who asks can wait */
};
