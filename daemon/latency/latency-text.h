/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a hit of OnLatency= is about, in words: the same of all ways. No state, any thread.
 */
#pragma once

#include "analysis/latency-config.h"
#include "daemon/latency/latency-process.h"

/**
 * latency_hit_lines() - lines "KEY: VALUE", the first one says it in a sentence
 * Names that @m lacks, and the task's unit, are those that /proc has now.
 * @ret: malloc'ed; NULL: no memory for it
 * Return: 0; -ESRCH: the task is in no such unit as the condition wants.
 */
int latency_hit_lines(const struct latency_config *c, const struct latency_message *m, char **ret);
