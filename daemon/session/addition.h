/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What joined a snapshot that is there already: added to its file. Thread: job.
 */
#pragma once

#include "formats/own-cause.h"
#include "formats/trace-dat-read.h"

/**
 * addition_write() - add a cause to a snapshot
 * @state_fd: STATE/NAME
 * @name: of the file in its folder snapshot
 * @rank: see retention_rank(); the higher one of both counts
 * @id: is added, too, with the attribute by which it is found; or NULL. If the file has it, or as
 * many as there may be, it stays as it is. Return: 0 or negative errno with @why.
 */
int addition_write(int state_fd, const char *name, const struct own_cause *cause, unsigned rank,
		   const char *id, struct fault *why);
