/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When the calling thread, and those that it starts, get a CPU. None of it needs a privilege; where
 * it is not allowed all the same, or the kernel does not know it, things go on without.
 */
#pragma once

/**
 * scheduling_alert() - to run soon after waking up, on a busy CPU too
 */
void scheduling_alert(void);

/**
 * scheduling_idle() - only when nobody else wants the CPU, and the disk
 * There is no way back for a thread without privileges.
 */
void scheduling_idle(void);
