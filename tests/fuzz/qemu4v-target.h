/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any bytes as lines of a text trace, and as events of it: for fuzz-qemu4v and for the unit test,
 * which runs what was found before.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * qemu4v_target() - aborts where a line does not survive being an event and being printed, and
 * where the printed line means something else
 */
void qemu4v_target(const uint8_t *data, size_t size);
