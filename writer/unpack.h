/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace.dat of any kind as one of version 6, which all readers know: region behind region,
 * without holes, nothing compressed. It is written front to back, so that it may go into a pipe;
 * damaged data keeps its place for that (writer/region-read.h). Any thread.
 */
#pragma once

#include "basic/fault.h"
#include "formats/trace-dat-read.h"

struct unpack_options {
	/* Hears of what is damaged and was left out; NULL: that is an error */
	void (*told)(void *userdata, const char *line);
	void *userdata;
	void (*progress)(uint64_t done, uint64_t total); /* now and then, bytes; or NULL */
};

/**
 * unpack_file() - write @in as version 6
 * @out_fd: a new file, or a pipe
 * Return: 0, or negative errno with a line in @why.
 */
int unpack_file(const struct trace_dat *in, int out_fd, const struct unpack_options *options,
		struct fault *why);
