/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flyrec-fleet check: one line for each thing that has to be right, with what is wrong and what
 * would help. Main thread.
 */
#pragma once

#include <stdbool.h>

#include "basic/macro.h"
#include "fleet/program.h"

struct check {
	const struct fleet *fleet;
	unsigned n_failed, n_warnings;
};

/**
 * check_ok() - a line of what is right, of what could be better, of what does not work
 * @what: a word: "broker"
 */
void check_ok(struct check *check, const char *what, const char *format, ...) _printf_(3, 4);
void check_warn(struct check *check, const char *what, const char *format, ...) _printf_(3, 4);
void check_fail(struct check *check, const char *what, const char *format, ...) _printf_(3, 4);

/* Each says one thing at least */
void check_certificates(struct check *check); /* CA=, Certificate=, Key= */
void check_broker(struct check *check);	  /* who it is, whom it lets in, and what it lets them do */
void check_recorder(struct check *check); /* flyrecd, its sessions, its notices */
void check_clock(struct check *check);
void check_store(struct check *check); /* Remote=, if the program for it is installed */

/**
 * verb_check() - all of them
 * Return: 0, or -EIO: something does not work.
 */
int verb_check(struct fleet *fleet, int argc, char *argv[]);
