/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrecctl import --format=F -o OUT FILE: offline, needs no daemon. What the formats share: the
 * input is opened for them, the file they make appears when it is complete. Main thread.
 */
#pragma once

#include "ctl/ctl.h"
#include "ctl/out-file.h"
#include "writer/event-file.h"

/* One import, for the function of its format */
struct import {
	const struct ctl *ctl;	 /* options */
	const char *name;	 /* of the input, for messages */
	int fd;			 /* read from here: a file, or a pipe that cannot seek */
	struct event_file *file; /* import_begin() makes it; freed for you */
	struct out_file out;	 /* its file, if it is a new one, is event_file's */
};

/**
 * import_begin() - begin the trace.dat
 * @params: all but path and mode; what it points to must outlive the import
 */
int import_begin(struct import *import, const struct event_file_params *params, struct fault *why);

/**
 * import_finish() - complete the trace.dat and put it where it was asked for
 */
int import_finish(struct import *import, struct event_file_totals *ret, struct fault *why);

/**
 * import_read() - more of the input
 * Return: number of bytes, 0 at its end, or negative errno with @why; -EINTR: asked to stop.
 */
ssize_t import_read(const struct import *import, void *buffer, size_t size, struct fault *why);

/**
 * import_stopped() - for who reads import->fd itself, now and then
 * Return: 0, or -EINTR with @why: asked to stop.
 */
int import_stopped(const struct import *import, struct fault *why);

/* The names of all, for people */
const char *import_formats(void);

/**
 * verb_import() - see flyrecctl(1)
 */
enum ctl_status verb_import(const struct ctl *ctl, int argc, char **argv);
