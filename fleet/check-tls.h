/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What OpenSSL knows of the broker. Main thread.
 */
#pragma once

#include "fleet/check.h"

/**
 * check_tls() - is the broker there, and has it the right certificate? Says so.
 * Whether it takes ours it tells only later.
 * Return: it is worth talking to.
 */
bool check_tls(struct check *check);
