/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * STATE/NAME/state: what the next daemon must know of this one's kernel objects. Written before an
 * instance is made, so that one can never be left behind unknown; removed when all is undone. The
 * main loop does not wait until the disk has it, a job does soon after. Never two threads at a time
 * for one directory.
 *
 *   KEY VALUE lines; the last one is "trace" and the canonical text of [Trace] follows it
 */
#pragma once

#include <stdbool.h>

#include "basic/fault.h"
#include "engine/ledger.h"

struct state {
	char *session;	  /* whose; NULL: it is not in those of earlier versions */
	char *instance;	  /* name below instances/ */
	char *group;	  /* of kprobes and uprobes */
	char **synthetic; /* definitions, NULL-terminated; may be NULL */
	char **build_ids; /* of probed programs, "HEX PATH", NULL-terminated; may be NULL */
	char **watched;	  /* OnEvent= of the instance INSTANCE.trigger, NULL-terminated; NULL:
			     there is none */
	char *boot_id;	  /* 32 hex digits */
	uint64_t inode;	  /* of the instance's directory; 0: not made yet */
	bool flight;	  /* nothing was drained: there is nothing to save */
	bool paused;	  /* by somebody: it stays so */
	bool handed_over; /* the process that wrote it ended in order, with empty pipes */
	char *trace_text;
	struct ledger_base *base;
	unsigned n_cpus; /* of base */

	/* Of a session that has let go of its disk */
	bool mounted;	     /* its directory is a file system of its own */
	uint64_t file_id;    /* trace id of the file that it had */
	uint64_t *published; /* bytes of each CPU in that file, as far as it knew */
	unsigned n_published;
};

/**
 * state_read() - -ENOENT: there is none
 */
int state_read(int dir_fd, struct state **ret);
/**
 * state_write() - whole for every process at once; the disk may not have it yet
 */
int state_write(int dir_fd, const struct state *state);
/**
 * state_format() - the file's text; malloc'ed
 * state_write_text() - write that, and wait until the disk has it; for a job, which must not read a
 * state that the main loop may change
 */
int state_format(const struct state *state, char **ret);
int state_write_text(int dir_fd, const char *text);
int state_remove(int dir_fd);
void state_free(struct state *state);

DEFINE_CLEANUP(struct state *, state_free)
