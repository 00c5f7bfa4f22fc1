/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copying a trace.dat to anywhere. One that is still sparse - being recorded, or left so - is made
 * dense on the way: its regions are far apart, and no pipe should have to carry the holes.
 */
#pragma once

#include "basic/fault.h"

/**
 * copy_trace() - all of @in_fd to @out_fd, by reference where the kernel can
 * @name: of the input, for messages
 * @progress: called now and then with bytes done and in all; may be NULL
 * Of a file that is being written that is what it holds when this begins.
 * Return: 0 or negative errno with @why.
 */
int copy_trace(int in_fd, const char *name, int out_fd,
	       void (*progress)(uint64_t done, uint64_t total), struct fault *why);
