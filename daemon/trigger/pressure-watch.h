/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's pressure stall triggers: a file descriptor that becomes readable with EPOLLPRI.
 * Main thread.
 */
#pragma once

#include "config/pressure.h"

/**
 * pressure_watch_open() - begin to watch; closing the descriptor ends it
 * Return: 0, or negative errno and @why names the file and what this process or kernel lacks.
 */
int pressure_watch_open(const struct pressure *pressure, int *ret_fd, struct fault *why);
