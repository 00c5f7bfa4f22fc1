/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Printing all events of a file, with all cores: the main thread collects batches of events, worker
 * threads turn these into lines, the main thread writes them in order. Memory is bounded by the
 * number of batches, whatever the file's size. Main thread; workers live as long as print_all().
 */
#pragma once

#include "decode/event-stream.h"
#include "decode/printer.h"

struct print_all {
	const struct decoder *decoder;
	const struct event_filter *filter;
	struct printer_config printer;
	unsigned workers; /* 0: as many as there are CPUs */
	int fd;		  /* stays the caller's */
	/* a part of the file is broken and was left out; @text names the file */
	void (*on_fault)(const char *text);
	size_t n_faults;
};

/**
 * print_all() - write to job->fd
 * Return: 0, OUT_FILE_E_PIPE, or negative errno with the story in @why.
 */
int print_all(struct print_all *job, struct fault *why);
