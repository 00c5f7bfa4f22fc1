/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When the calling thread, and those that it starts, get a CPU. None of it needs a privilege; where
 * it is not allowed all the same, or the kernel does not know it, things go on without.
 */
#pragma once

#include <sys/types.h>

/**
 * scheduling_alert() - to run soon after waking up, on a busy CPU too
 */
void scheduling_alert(void);

/**
 * scheduling_idle() - only when nobody else wants the CPU, and the disk
 */
void scheduling_idle(void);

/**
 * scheduling_normal() - like anybody again: for what others may have to wait for
 * @tid: of another thread, or 0. A process without privileges may do so if RLIMIT_NICE is 20.
 */
void scheduling_normal(pid_t tid);
