/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The same work for many CPUs on a few threads, for jobs: begins, and is over when all is done. Any
 * thread that may wait.
 */
#pragma once

/**
 * parallel_run() - @work for each of 0 … @n - 1, on at most @n_threads threads, one is the caller's
 * @work: touches only what belongs to its item; 0 or negative errno. After an error those that have
 * not begun are left out.
 * Return: 0 or the first error.
 */
int parallel_run(unsigned n, unsigned n_threads, int (*work)(void *userdata, unsigned item),
		 void *userdata);
