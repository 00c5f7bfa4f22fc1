/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * "post=TIME" at the end of a trigger: how long its snapshots go on after it, instead of PostSec=.
 */
#pragma once

#include <stdint.h>

#include "basic/fault.h"

#define POST_DEFAULT UINT64_MAX /* as PostSec= says */

/**
 * post_split() - take it off
 * @text: a trigger as it is configured, with single spaces
 * @ret_condition: what is before it; free() it
 * @ret_usec: POST_DEFAULT: there is none
 * A string of a filter is none of it: 'if comm == "post=2s"'.
 * Return: 0, -EINVAL with @why set, or -ENOMEM.
 */
int post_split(const char *text, char **ret_condition, uint64_t *ret_usec, struct fault *why);
