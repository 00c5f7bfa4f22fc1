/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Places where the tests end the process, to see what the next one makes of it. With
 * FLYREC_FAULT_POINT=NAME[:COUNT] in the environment the process stops itself (SIGSTOP) when it
 * comes to that place for the COUNTth time, so that the test can shut down the file system under
 * it, or kill it, and nothing else happens meanwhile. Without it: one getenv(). Any thread.
 */
#pragma once

/**
 * fault_point() - @name: "MODULE-STEP", listed in HACKING.md
 */
void fault_point(const char *name);
